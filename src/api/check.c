/* Checks that many calls share, in the order that callers can observe. */
#include "api/calls.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "device/device.h"

#include <string.h>

ncclResult_t tt_check_pointer(const void *ptr, const char *func, const char *what)
{
    if (ptr) return ncclSuccess;
    return tt_fail(ncclInvalidArgument, "%s: %s is NULL", func, what);
}

ncclResult_t tt_check_device(const char *func)
{
    const char *wanted = tt_param_str("TUTTI_DEVICE");
    if (wanted && !strcmp(wanted, "cuda")) {
        return tt_fail(ncclUnhandledCudaError,
                       "%s: TUTTI_DEVICE is cuda, and there is no CUDA device yet; host and auto "
                       "take the host's",
                       func);
    }
    if (tuttiHostDeviceCount() > 0) return ncclSuccess;
    return tt_fail(ncclUnhandledCudaError,
                   "%s: this process has no device (CUDA_VISIBLE_DEVICES, TUTTI_DEVICES)", func);
}

ncclResult_t tt_call_failed(struct tt_comm *comm, ncclResult_t rc)
{
    if (rc != ncclSuccess && rc != ncclInProgress && comm->config.blocking == 0) {
        atomic_store_explicit(&comm->state, rc, memory_order_release);
    }
    return tt_group_error(rc);
}

ncclResult_t tt_call(struct tt_task *task, const char *name)
{
    ncclResult_t rc = tt_comm_check(task->comm, name);
    if (rc) return tt_group_error(rc);
    rc = tt_plan_add(task);
    return rc ? tt_call_failed(task->comm, rc) : ncclSuccess;
}
