/* The end of a communicator waits for its works, and for the graphs that hold some. */
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "base/wait.h"
#include "comm/comm.h"
#include "device/device.h"
#include "exec/exec.h"
#include "plan/plan.h"
#include "watch/watch.h"

#define NSEC 1000000000ull

enum { REPORT_SEC = 2 }; /* a wait for graphs of the program is reported after this time */

/* Graphs that hold operations of this communicator keep it alive until they are destroyed. A
 * program with one thread that destroys them afterwards waits for itself, so the wait is reported
 * soon. */
static ncclResult_t wait_graphs(struct tt_comm *comm, uint64_t began)
{
    static const char *const sentence =
        "rank %d: the end of communicator 0x%llx waits for graphs with %u operation(s) of it, for "
        "%u s: destroy them first, by cudaGraphExecDestroy and cudaGraphDestroy";
    const uint64_t abort_nsec = tt_watch_abort_nsec();
    bool reported = tt_param_int("TUTTI_WATCHDOG") <= 0;
    uint32_t spins = 0;
    uint32_t left;
    while ((left = atomic_load_explicit(&comm->graph_refs, memory_order_acquire)) != 0) {
        if (tt_member_aborted(&comm->member)) return tt_member_abort_code(&comm->member);
        if (tuttiHostHelp()) continue;
        tt_wait_relax(&spins, comm->tune.oversubscribed);
        uint64_t waited = tt_now_nsec() - began;
        uint32_t seconds = (uint32_t)(waited / NSEC);
        unsigned long long id = (unsigned long long)comm->member.comm_id;
        if (abort_nsec && waited > abort_nsec) {
            return tt_fail(ncclTimeout, sentence, comm->member.rank, id, left, seconds);
        }
        if (reported || waited < REPORT_SEC * NSEC) continue;
        reported = true;
        tt_warn(sentence, comm->member.rank, id, left, seconds);
    }
    return ncclSuccess;
}

ncclResult_t tt_plan_drain(struct tt_comm *comm)
{
    ncclResult_t rc = tt_exec_drain(&comm->member, comm->queue_used);
    if (rc) return rc;
    const uint64_t now = tt_now_nsec();
    atomic_store_explicit(&comm->graphs_nsec, now, memory_order_relaxed);
    rc = wait_graphs(comm, now);
    atomic_store_explicit(&comm->graphs_nsec, 0, memory_order_relaxed);
    if (rc) return rc;
    rc = tt_exec_drain(&comm->member, comm->queue_used);
    if (!rc) tuttiHostMemberOver(&comm->member);
    return rc;
}
