/* Groups: depth and lists are the thread's own and live in room plan. */
#include "api/calls.h"
#include "base/log.h"

/* Apart, so that a group without a tool pays a branch alone. */
static __attribute__((noinline, cold)) ncclResult_t in_range(const char *name,
                                                             ncclResult_t (*run)(void))
{
    struct tt_nvtx_range range = tt_nvtx_begin(name, -1);
    ncclResult_t rc = run();
    tt_nvtx_end(&range);
    return rc;
}

ncclResult_t pncclGroupStart(void)
{
    if (tt_log_on(TT_LOG_TRACE, TT_LOG_CALL)) tt_trace(TT_LOG_CALL, "ncclGroupStart()");
    if (tt_nvtx_on()) return in_range("GroupStart", tt_group_start);
    return tt_group_start();
}

ncclResult_t pncclGroupEnd(void)
{
    if (tt_log_on(TT_LOG_TRACE, TT_LOG_CALL)) tt_trace(TT_LOG_CALL, "ncclGroupEnd()");
    if (tt_nvtx_on()) return in_range("GroupEnd", tt_group_end);
    return tt_group_end();
}

ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
    if (tt_log_on(TT_LOG_TRACE, TT_LOG_CALL)) tt_trace(TT_LOG_CALL, "ncclGroupSimulateEnd()");
    return tt_group_simulate(simInfo);
}

/* ---- the weak aliases ---- */

__typeof__(pncclGroupStart) ncclGroupStart __attribute__((weak, alias("pncclGroupStart")));
__typeof__(pncclGroupEnd) ncclGroupEnd __attribute__((weak, alias("pncclGroupEnd")));
__typeof__(pncclGroupSimulateEnd) ncclGroupSimulateEnd
    __attribute__((weak, alias("pncclGroupSimulateEnd")));
