/* Memory that was freed while streams still have work: any of it may use the memory, and the caller
 * does not wait for it (ranks that are threads wait for each other). Nobody finds it any more; it
 * returns to its arena when all that was queued before the free is done. What was freed later waits
 * for the same positions or later ones of the same streams, so the list is looked at from its
 * oldest end up to the first that has to stay. */
#include "leaving.h"

#include "ends.h"
#include "state.h"

#include <stdlib.h>

struct host_leaver {
    struct host_leaver *next; /* owned */
    struct host_arena *arena; /* borrowed; for ever */
    struct host_run run;
    struct host_ends *ends; /* owned */
};

bool host_leave(struct host_arena *arena, const void *ptr)
{
    struct host_leavers *leavers = &tt_host.memory.leavers;
    struct host_run run;
    struct host_ends *ends = NULL;
    if (!host_arena_take(arena, ptr, &run)) return false; /* another thread was faster */
    host_leavers_go();                                    /* also without another allocation */
    bool noted = host_ends_note(&ends) == HOST_OK;
    struct host_leaver *leaver = ends ? malloc(sizeof(*leaver)) : NULL;
    if (noted && !ends) {
        host_arena_give(arena, &run);
        return true;
    }
    if (!leaver) { /* rather lost than used by two */
        host_ends_free(ends);
        host_arena_keep(arena);
        return true;
    }
    *leaver = (struct host_leaver){.arena = arena, .run = run, .ends = ends};
    pthread_mutex_lock(&leavers->lock);
    struct host_leaver **last = leavers->first ? leavers->last : &leavers->first;
    *last = leaver;
    leavers->last = &leaver->next;
    atomic_fetch_add_explicit(&leavers->count, 1, memory_order_relaxed);
    host_arena_keep(arena);
    pthread_mutex_unlock(&leavers->lock);
    return true;
}

/* Unlink the oldest one if it may go. */
static struct host_leaver *pick(struct host_leavers *leavers)
{
    pthread_mutex_lock(&leavers->lock);
    struct host_leaver *oldest = leavers->first;
    if (oldest && !host_ends_reached(oldest->ends)) oldest = NULL;
    if (oldest) {
        leavers->first = oldest->next;
        host_arena_unkeep(oldest->arena);
        atomic_fetch_sub_explicit(&leavers->count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&leavers->lock);
    return oldest;
}

bool host_leavers_go(void)
{
    struct host_leavers *leavers = &tt_host.memory.leavers;
    while (atomic_load_explicit(&leavers->count, memory_order_relaxed)) {
        struct host_leaver *oldest = pick(leavers);
        if (!oldest) return true;
        host_arena_give(oldest->arena, &oldest->run);
        host_ends_free(oldest->ends);
        free(oldest);
    }
    return false;
}
