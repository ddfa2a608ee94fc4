/* Host memory that was freed while streams still have work: any of it may use the memory, and the
 * caller does not wait for it (ranks that are threads wait for each other). Nobody finds it any
 * more; it returns to its arena when all that was queued before the free is done. */
#include "leaving.h"

#include <stdlib.h>

struct host_leaver {
    struct host_leaver *next; /* owned */
    struct host_run run;
    size_t count;
    struct host_place places[];
};

static bool busy_end(size_t number, struct host_place *place_out)
{
    struct CUstream_st *stream = host_stream_numbered(number);
    if (host_stream_idle(stream)) return false;
    *place_out = (struct host_place){stream, atomic_load(&stream->tail)};
    return true;
}

/* The ends of all streams that have work; NULL when memory is short. */
static struct host_leaver *note_ends(void)
{
    size_t made = atomic_load_explicit(&tt_host.streams.places.made, memory_order_acquire);
    struct host_leaver *leaver = calloc(1, sizeof(*leaver) + made * sizeof(struct host_place));
    for (size_t i = 0; leaver && i < made; i++) {
        if (busy_end(i, &leaver->places[leaver->count])) leaver->count++;
    }
    return leaver;
}

static bool may_go(const struct host_leaver *leaver)
{
    bool reached = true;
    for (size_t i = 0; reached && i < leaver->count; i++) {
        reached = host_place_reached(&leaver->places[i]);
    }
    return reached;
}

/* Rather late than never: the notes cannot be kept, so the work is waited for. */
static void wait_for_all(void)
{
    for (int device = 0; device < host_device_count(); device++) {
        host_streams_wait(device);
    }
}

bool host_leave(struct host_leavers *leavers, struct host_arena *arena, const void *ptr)
{
    struct host_run run;
    if (!host_arena_take(arena, ptr, &run)) return false; /* another thread was faster */
    struct host_leaver *leaver = note_ends();
    if (!leaver) wait_for_all();
    if (!leaver || !leaver->count) {
        host_arena_give(arena, &run);
        free(leaver);
        return true;
    }
    leaver->run = run;
    pthread_mutex_lock(&leavers->lock);
    leaver->next = leavers->first;
    leavers->first = leaver;
    atomic_fetch_add_explicit(&leavers->count, 1, memory_order_relaxed);
    pthread_mutex_unlock(&leavers->lock);
    return true;
}

/* Unlink what may go; returns it as a list. */
static struct host_leaver *pick(struct host_leavers *leavers)
{
    struct host_leaver *picked = NULL;
    pthread_mutex_lock(&leavers->lock);
    for (struct host_leaver **link = &leavers->first; *link;) {
        struct host_leaver *leaver = *link;
        if (!may_go(leaver)) {
            link = &leaver->next;
            continue;
        }
        *link = leaver->next;
        leaver->next = picked;
        picked = leaver;
        atomic_fetch_sub_explicit(&leavers->count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&leavers->lock);
    return picked;
}

void host_leavers_go(struct host_leavers *leavers, struct host_arena *arena)
{
    if (!atomic_load_explicit(&leavers->count, memory_order_relaxed)) return;
    for (struct host_leaver *leaver = pick(leavers); leaver;) {
        struct host_leaver *next = leaver->next;
        host_arena_give(arena, &leaver->run);
        free(leaver);
        leaver = next;
    }
}
