/* Host memory that was freed while streams still have work: any of it may use the memory, and the
 * caller does not wait for it (ranks that are threads wait for each other). Nobody finds it any
 * more; it returns to its arena when all that was queued before the free is done. */
#include "leaving.h"

#include "ends.h"

#include <stdlib.h>

struct host_leaver {
    struct host_leaver *next; /* owned */
    struct host_run run;
    struct host_ends *ends; /* owned */
};

bool host_leave(struct host_leavers *leavers, struct host_arena *arena, const void *ptr)
{
    struct host_run run;
    struct host_ends *ends = NULL;
    if (!host_arena_take(arena, ptr, &run)) return false; /* another thread was faster */
    struct host_leaver *leaver = malloc(sizeof(*leaver));
    if (!leaver || host_ends_note(&ends)) {
        free(leaver); /* rather lost than used by two */
        host_arena_keep(arena);
        return true;
    }
    if (!ends) {
        host_arena_give(arena, &run);
        free(leaver);
        return true;
    }
    *leaver = (struct host_leaver){.run = run, .ends = ends};
    pthread_mutex_lock(&leavers->lock);
    leaver->next = leavers->first;
    leavers->first = leaver;
    atomic_fetch_add_explicit(&leavers->count, 1, memory_order_relaxed);
    host_arena_keep(arena);
    pthread_mutex_unlock(&leavers->lock);
    return true;
}

/* Unlink what may go; returns it as a list. */
static struct host_leaver *pick(struct host_leavers *leavers, struct host_arena *arena)
{
    struct host_leaver *picked = NULL;
    pthread_mutex_lock(&leavers->lock);
    for (struct host_leaver **link = &leavers->first; *link;) {
        struct host_leaver *leaver = *link;
        if (!host_ends_reached(leaver->ends)) {
            link = &leaver->next;
            continue;
        }
        *link = leaver->next;
        leaver->next = picked;
        picked = leaver;
        host_arena_unkeep(arena);
        atomic_fetch_sub_explicit(&leavers->count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&leavers->lock);
    return picked;
}

void host_leavers_go(struct host_leavers *leavers, struct host_arena *arena)
{
    if (!atomic_load_explicit(&leavers->count, memory_order_relaxed)) return;
    for (struct host_leaver *leaver = pick(leavers, arena); leaver;) {
        struct host_leaver *next = leaver->next;
        host_arena_give(arena, &leaver->run);
        host_ends_free(leaver->ends);
        free(leaver);
        leaver = next;
    }
}
