/* Memory that was freed while streams still have work: any of it may use the memory, and the caller
 * does not wait for it (ranks that are threads wait for each other). No lookup finds it any more;
 * it returns to its arena when all that was queued before the free is done. What was freed later
 * waits for the same positions or later ones of the same streams, so the list is looked at from its
 * oldest end up to the first that has to stay. */
#include "deferred_free.h"

#include "device/host/process/ends.h"
#include "device/host/process/state.h"

#include <stdlib.h>

struct tt_host_deferred_free {
    struct tt_host_deferred_free *next; /* owned */
    struct tt_host_arena *arena;        /* borrowed; for ever */
    struct tt_host_run run;
    struct tt_host_ends *ends; /* owned */
};

bool tt_host_free_deferred(struct tt_host_arena *arena, const void *ptr)
{
    struct tt_host_deferred *deferred = &tt_host.memory.deferred;
    struct tt_host_run run;
    struct tt_host_ends *ends = NULL;
    if (!tt_host_arena_take(arena, ptr, &run)) return false; /* another thread was faster */
    atomic_fetch_add_explicit(&tt_host.memory.frees, 1, memory_order_relaxed);
    tt_host_deferred_run(); /* also without another allocation */
    bool noted = tt_host_ends_note(&ends) == TT_HOST_OK;
    struct tt_host_deferred_free *entry = ends ? malloc(sizeof(*entry)) : NULL;
    if (noted && !ends) {
        tt_host_arena_give(arena, &run);
        return true;
    }
    if (!entry) { /* rather lost than used by two */
        tt_host_ends_free(ends);
        tt_host_arena_keep(arena);
        return true;
    }
    *entry = (struct tt_host_deferred_free){.arena = arena, .run = run, .ends = ends};
    pthread_mutex_lock(&deferred->lock);
    struct tt_host_deferred_free **last = deferred->first ? deferred->last : &deferred->first;
    *last = entry;
    deferred->last = &entry->next;
    atomic_fetch_add_explicit(&deferred->count, 1, memory_order_relaxed);
    tt_host_arena_keep(arena);
    pthread_mutex_unlock(&deferred->lock);
    return true;
}

/* Unlink the oldest one if it may go. */
static struct tt_host_deferred_free *pick(struct tt_host_deferred *deferred)
{
    pthread_mutex_lock(&deferred->lock);
    struct tt_host_deferred_free *oldest = deferred->first;
    if (oldest && !tt_host_ends_reached(oldest->ends)) oldest = NULL;
    if (oldest) {
        deferred->first = oldest->next;
        tt_host_arena_unkeep(oldest->arena);
        atomic_fetch_sub_explicit(&deferred->count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&deferred->lock);
    return oldest;
}

bool tt_host_deferred_run(void)
{
    struct tt_host_deferred *deferred = &tt_host.memory.deferred;
    while (atomic_load_explicit(&deferred->count, memory_order_relaxed)) {
        struct tt_host_deferred_free *oldest = pick(deferred);
        if (!oldest) return true;
        tt_host_arena_give(oldest->arena, &oldest->run);
        tt_host_ends_free(oldest->ends);
        free(oldest);
    }
    return false;
}
