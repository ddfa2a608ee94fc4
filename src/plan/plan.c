/* A communicator's plan: storage of choices, programs, edges and operators. Made before the
 * communicator is ready (its state is asked then already), filled at first use. */
#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/wait.h"
#include "device/device.h"
#include "plan/events.h"
#include "plan/plan_state.h"

#include <stdlib.h>
#include <string.h>

static bool wants_pointer_checks(void)
{
    const char *mode = tt_param_str("NCCL_CHECK_MODE");
    return tt_param_bool("NCCL_CHECK_POINTERS") ||
           (mode && strncmp(mode, "DEBUG", strlen("DEBUG")) == 0);
}

ncclResult_t tt_plan_create(struct tt_comm *comm, struct tt_plan **plan_out)
{
    struct tt_plan *plan = tt_calloc(1, sizeof(*plan));
    if (!plan) return tt_fail(ncclSystemError, "plan: out of memory");
    plan->comm = comm;
    pthread_mutex_init(&plan->flight_lock, NULL);
    plan->checks_pointers = wants_pointer_checks();
    plan->checks_match = tt_param_bool("TUTTI_CHECK_MATCH");
    tt_program_local_init(&plan->local);
    *plan_out = plan;
    return ncclSuccess;
}

void tt_plan_destroy(struct tt_plan *plan)
{
    if (!plan) return;
    tt_plan_settle(plan);
    for (int k = 0; k < TT_MEMO_ENTRIES; k++)
        tt_bound_fini(&plan->memo[k]);
    tt_bound_fini(&plan->overflow);
    tt_bound_fini(&plan->batch);
    tt_in_place_fini(plan);
    tt_program_cache_fini(plan);
    for (int conn = 0; conn < TT_CONN_COUNT_; conn++) {
        for (int c = 0; plan->edges[conn] && c < TT_MAX_CHANNELS; c++) {
            free(plan->edges[conn][c].send);
        }
        free(plan->edges[conn]);
    }
    free(plan->links);
    free(plan->chain);
    free(plan->redops);
    pthread_mutex_destroy(&plan->flight_lock);
    free(plan);
}

ncclResult_t tt_plan_contended(const struct tt_plan *plan)
{
    return tt_fail(ncclInvalidUsage,
                   "rank %d of communicator %#lx: two threads call it at the same time",
                   plan->comm->member.rank, (unsigned long)plan->comm->member.comm_id);
}

ncclResult_t tt_plan_drain(struct tt_comm *comm)
{
    uint32_t spins = 0;
    ncclResult_t rc = tt_exec_drain(&comm->member, comm->order_used);
    if (rc) return rc;
    /* Graphs that hold operations of this communicator keep it alive until they are destroyed. */
    while (atomic_load_explicit(&comm->graph_refs, memory_order_acquire) != 0) {
        if (tt_member_aborted(&comm->member)) return tt_member_abort_code(&comm->member);
        if (!tuttiHostHelp()) tt_wait_relax(&spins, comm->tune.crowded);
    }
    return tt_exec_drain(&comm->member, comm->order_used);
}
