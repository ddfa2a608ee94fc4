/* Checks that many calls share, in the order that callers can observe. */
#include "api/calls.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "device/device.h"
#include "plugin/plugin.h"

#include <string.h>

void tt_settings_load(void)
{
    tt_env_open();
    tt_param_load();
    tt_nvtx_load();
}

ncclResult_t tt_check_pointer(const void *ptr, const char *func, const char *what)
{
    if (ptr) return ncclSuccess;
    return tt_fail(ncclInvalidArgument, "%s: %s is NULL", func, what);
}

ncclResult_t tt_check_device(const char *func)
{
    tt_env_open();
    if (tuttiHostForbidsCalls()) {
        return tt_fail(ncclUnhandledCudaError,
                       "%s: called in a host function (cudaLaunchHostFunc), where CUDA forbids the "
                       "calls that NCCL makes (TUTTI_STRICT)",
                       func);
    }
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
