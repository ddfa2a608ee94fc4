/* Version, texts, and the log's reset. None of these fails or touches a device. */
#include "tutti.h"

#include "api/calls.h"
#include "base/error.h"
#include "base/log.h"

const char *tuttiVersion(void)
{
    return TUTTI_VERSION_TEXT;
}

ncclResult_t pncclGetVersion(int *version)
{
    ncclResult_t rc = tt_check_pointer(version, "GetVersion", "version");
    if (rc) return rc;
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *pncclGetErrorString(ncclResult_t result)
{
    return tt_result_text(result);
}

/* The communicator may be NULL or long gone, so it is not looked at. */
const char *pncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return tt_last_error();
}

void pncclResetDebugInit(void)
{
    tt_log_reset();
}

/* ---- the weak aliases ---- */

__typeof__(pncclGetVersion) ncclGetVersion __attribute__((weak, alias("pncclGetVersion")));
__typeof__(pncclGetErrorString) ncclGetErrorString
    __attribute__((weak, alias("pncclGetErrorString")));
__typeof__(pncclGetLastError) ncclGetLastError __attribute__((weak, alias("pncclGetLastError")));
__typeof__(pncclResetDebugInit) ncclResetDebugInit
    __attribute__((weak, alias("pncclResetDebugInit")));
