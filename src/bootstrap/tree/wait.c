/* A caller that waits lets the service go on, and does other work of the process meanwhile. */
#include "bootstrap/tree/wait.h"

#include "base/member.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "bootstrap/tree/failure.h"
#include "bootstrap/wire/service.h"
#include "device/device.h"

#include <errno.h>
#include <time.h>

#define WAIT_SLICE_NSEC 4000000ull

ncclResult_t tt_tree_wait(struct tt_bootstrap *b, uint64_t deadline_nsec)
{
    uint64_t now = tt_now_nsec();
    uint64_t until = now + WAIT_SLICE_NSEC;
    if (deadline_nsec && now >= deadline_nsec) return ncclTimeout;
    const struct timespec at = tt_clock_at(until);
    b->waiting++;
    if (pthread_cond_clockwait(&b->changed, &tt_service()->lock, CLOCK_MONOTONIC, &at) ==
        ETIMEDOUT) {
        tt_service_unlock();
        for (int i = 0; i < 16 && tuttiHostHelp(); i++) {
        }
        tt_service_lock();
    }
    tt_failure_watch_parent(b);
    b->waiting--;
    if (atomic_load_explicit(&b->error, memory_order_relaxed)) return tt_failure_report(b);
    if (b->member && tt_member_aborted(b->member)) {
        return (ncclResult_t)atomic_load_explicit(&b->member->abort, memory_order_relaxed);
    }
    return ncclSuccess;
}

uint64_t tt_tree_report_nsec(void)
{
    int64_t report_sec = tt_param_int("TUTTI_WATCHDOG");
    return report_sec > 0 ? tt_now_nsec() + (uint64_t)report_sec * 1000000000ull : UINT64_MAX;
}
