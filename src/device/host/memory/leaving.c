/* Memory that was freed while streams still have work: any of it may use the memory, and the caller
 * does not wait for it (ranks that are threads wait for each other). Nobody finds it any more; it
 * returns to its arena when all that was queued before the free is done. What was freed later waits
 * for the same positions or later ones of the same streams, so the list is looked at from its
 * oldest end up to the first that has to stay. */
#include "leaving.h"

#include "ends.h"
#include "state.h"

#include <stdlib.h>

struct tt_host_leaver {
    struct tt_host_leaver *next; /* owned */
    struct tt_host_arena *arena; /* borrowed; for ever */
    struct tt_host_run run;
    struct tt_host_ends *ends; /* owned */
};

bool tt_host_leave(struct tt_host_arena *arena, const void *ptr)
{
    struct tt_host_leavers *leavers = &tt_host.memory.leavers;
    struct tt_host_run run;
    struct tt_host_ends *ends = NULL;
    if (!tt_host_arena_take(arena, ptr, &run)) return false; /* another thread was faster */
    atomic_fetch_add_explicit(&tt_host.memory.frees, 1, memory_order_relaxed);
    tt_host_leavers_go(); /* also without another allocation */
    bool noted = tt_host_ends_note(&ends) == TT_HOST_OK;
    struct tt_host_leaver *leaver = ends ? malloc(sizeof(*leaver)) : NULL;
    if (noted && !ends) {
        tt_host_arena_give(arena, &run);
        return true;
    }
    if (!leaver) { /* rather lost than used by two */
        tt_host_ends_free(ends);
        tt_host_arena_keep(arena);
        return true;
    }
    *leaver = (struct tt_host_leaver){.arena = arena, .run = run, .ends = ends};
    pthread_mutex_lock(&leavers->lock);
    struct tt_host_leaver **last = leavers->first ? leavers->last : &leavers->first;
    *last = leaver;
    leavers->last = &leaver->next;
    atomic_fetch_add_explicit(&leavers->count, 1, memory_order_relaxed);
    tt_host_arena_keep(arena);
    pthread_mutex_unlock(&leavers->lock);
    return true;
}

/* Unlink the oldest one if it may go. */
static struct tt_host_leaver *pick(struct tt_host_leavers *leavers)
{
    pthread_mutex_lock(&leavers->lock);
    struct tt_host_leaver *oldest = leavers->first;
    if (oldest && !tt_host_ends_reached(oldest->ends)) oldest = NULL;
    if (oldest) {
        leavers->first = oldest->next;
        tt_host_arena_unkeep(oldest->arena);
        atomic_fetch_sub_explicit(&leavers->count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&leavers->lock);
    return oldest;
}

bool tt_host_leavers_go(void)
{
    struct tt_host_leavers *leavers = &tt_host.memory.leavers;
    while (atomic_load_explicit(&leavers->count, memory_order_relaxed)) {
        struct tt_host_leaver *oldest = pick(leavers);
        if (!oldest) return true;
        tt_host_arena_give(oldest->arena, &oldest->run);
        tt_host_ends_free(oldest->ends);
        free(oldest);
    }
    return false;
}
