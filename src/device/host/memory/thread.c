/* What belongs to a thread: its current device and its last error. */
#include "state.h"

#include "base/log.h"
#include "device/host/host.h"

const char tuttiHostcuda[] = "Tutti host device 1";

int tuttiHostGetDevice(void)
{
    return tt_host_thread.device;
}

int tuttiHostSetDevice(int device)
{
    if (tt_host_forked()) return TT_HOST_NOT_INITIALIZED;
    if (device < 0 || device >= tt_host_device_count()) {
        return tt_host_device_count() ? TT_HOST_INVALID_DEVICE : TT_HOST_NO_DEVICE;
    }
    tt_host_thread.device = device;
    tt_log_set_device(device);
    return TT_HOST_OK;
}

/* Whatever a forked child asks for, it has no devices. */
int tuttiHostErrorSet(int error)
{
    if (error && tt_host_forked()) error = TT_HOST_NOT_INITIALIZED;
    if (error) tt_host_thread.last_error = error;
    return error;
}

int tuttiHostErrorPeek(void)
{
    return tt_host_thread.last_error;
}

int tuttiHostErrorGet(void)
{
    int error = tt_host_thread.last_error;
    tt_host_thread.last_error = TT_HOST_OK;
    return error;
}
