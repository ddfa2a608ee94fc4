/* Groups: depth and lists are the thread's own and live in room plan. */
#include "api/calls.h"
#include "base/log.h"

ncclResult_t pncclGroupStart(void)
{
    if (tt_log_on(TT_LOG_TRACE, TT_LOG_CALL)) tt_trace(TT_LOG_CALL, "ncclGroupStart()");
    return tt_group_start();
}

ncclResult_t pncclGroupEnd(void)
{
    if (tt_log_on(TT_LOG_TRACE, TT_LOG_CALL)) tt_trace(TT_LOG_CALL, "ncclGroupEnd()");
    return tt_group_end();
}

ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
    if (tt_log_on(TT_LOG_TRACE, TT_LOG_CALL)) tt_trace(TT_LOG_CALL, "ncclGroupSimulateEnd()");
    return tt_group_simulate(simInfo);
}

/* ---- the weak twins ---- */

__typeof__(pncclGroupStart) ncclGroupStart __attribute__((weak, alias("pncclGroupStart")));
__typeof__(pncclGroupEnd) ncclGroupEnd __attribute__((weak, alias("pncclGroupEnd")));
__typeof__(pncclGroupSimulateEnd) ncclGroupSimulateEnd
    __attribute__((weak, alias("pncclGroupSimulateEnd")));
