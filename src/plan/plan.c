/* A communicator's plan: storage of choices, programs, edges and operators. Made before the
 * communicator is ready (its state is asked then already), filled at first use. */
#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/wait.h"
#include "device/device.h"
#include "mem/mem.h"
#include "plan/bind/events.h"
#include "plan/group/group.h"
#include "plan/launch/batch.h"
#include "plan/launch/launch_cache.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool wants_pointer_checks(void)
{
    const char *mode = tt_param_str("NCCL_CHECK_MODE");
    return tt_param_bool("NCCL_CHECK_POINTERS") || tt_param_bool("TUTTI_STRICT") ||
           (mode && strncmp(mode, "DEBUG", strlen("DEBUG")) == 0);
}

static bool wants_rank_checks(void)
{
    const char *mode = tt_param_str("NCCL_CHECK_MODE");
    return mode && strcmp(mode, "DEBUG_GLOBAL") == 0;
}

ncclResult_t tt_plan_create(struct tt_comm *comm, struct tt_plan **plan_out)
{
    tt_plan_free_ended();
    struct tt_plan *plan = tt_calloc(1, sizeof(*plan));
    if (!plan) return tt_fail(ncclSystemError, "plan: out of memory");
    ncclResult_t rc = tt_program_local_make(plan);
    if (rc) {
        free(plan);
        return rc;
    }
    plan->comm = comm;
    atomic_init(&plan->uses, TT_PLAN_HOLD);
    pthread_mutex_init(&plan->background_lock, NULL);
    atomic_init(&plan->process, getpid());
    plan->frees = tuttiHostFrees();
    plan->checks_pointers = wants_pointer_checks();
    plan->checks_ranks = wants_rank_checks();
    *plan_out = plan;
    return ncclSuccess;
}

/* ---- the end of its use ---- */

void tt_plan_note_fork(struct tt_plan *plan)
{
    pid_t before = atomic_load(&plan->process), now = getpid();
    if (before == now || !atomic_compare_exchange_strong(&plan->process, &before, now)) return;
    int running = ncclInProgress;
    pthread_mutex_init(&plan->background_lock, NULL);
    plan->background = NULL;
    atomic_fetch_and(&plan->uses, ~TT_PLAN_PINS);
    atomic_store(&plan->inside, 0);
    atomic_compare_exchange_strong(&plan->comm->state, &running, ncclInvalidUsage);
}

void tt_plan_destroy(struct tt_plan *plan)
{
    if (!plan) return;
    tt_plan_wait(plan);
    atomic_fetch_or(&plan->uses, TT_PLAN_CLOSED);
    for (int k = 0; k < TT_CACHE_ENTRIES; k++)
        tt_bound_fini(&plan->cache[k]);
    tt_bound_fini(&plan->overflow);
    tt_bound_fini(&plan->batch);
    tt_batches_fini(plan);
    tt_in_place_fini(plan);
    tt_program_cache_fini(plan);
    for (int conn = 0; conn < TT_CONN_COUNT_; conn++)
        free(plan->edges[conn].send);
    free(plan->links);
    free(plan->chain);
    tt_events_fini(plan);
    free(plan->redops);
    tt_global_check_destroy(plan->global_check);
    tt_plan_drop(plan);
}

/* ---- communicators that outlive their end ---- */

/* Works on streams or in graphs still refer to it. */
static bool is_referred_to(const struct tt_plan *plan)
{
    const struct tt_comm *comm = plan->comm;
    return atomic_load_explicit(&comm->graph_refs, memory_order_acquire) != 0 ||
           atomic_load_explicit(&comm->queue_used->served, memory_order_acquire) < plan->last_seq;
}

static void free_both(struct tt_plan *plan)
{
    struct tt_comm *comm = plan->comm;
    struct tt_registry *registry = comm->registry;
    tt_plan_destroy(plan);
    comm->registry = NULL;
    tt_registry_destroy(registry);
    tt_comm_free(comm);
}

void tt_plan_free_ended(void)
{
    struct tt_plans *plans = tt_comm_plans();
    struct tt_plan *free_now = NULL;
    pthread_mutex_lock(&plans->retired.lock);
    struct tt_plan **link = &plans->retired.kept;
    while (*link) {
        struct tt_plan *plan = *link;
        if (is_referred_to(plan)) {
            link = &plan->next_ended;
            continue;
        }
        *link = plan->next_ended;
        plan->next_ended = free_now;
        free_now = plan;
    }
    pthread_mutex_unlock(&plans->retired.lock);
    while (free_now) {
        struct tt_plan *plan = free_now;
        free_now = plan->next_ended;
        free_both(plan);
    }
}

void tt_plan_end(struct tt_comm *comm)
{
    struct tt_plans *plans = tt_comm_plans();
    struct tt_plan *plan = comm->plan;
    tt_plan_wait(plan);
    if (!is_referred_to(plan)) {
        free_both(plan);
    } else {
        tt_comm_hide(comm);
        pthread_mutex_lock(&plans->retired.lock);
        plan->next_ended = plans->retired.kept;
        plans->retired.kept = plan;
        pthread_mutex_unlock(&plans->retired.lock);
    }
    tt_plan_free_ended();
}
