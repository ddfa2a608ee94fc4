/* What belongs to a thread: its current device and its last error. */
#include "state.h"

#include "base/log.h"
#include "device/host/host.h"

const char tuttiHostcuda[] = "Tutti host device 1";

int tuttiHostGetDevice(void)
{
    return host_thread.device;
}

int tuttiHostSetDevice(int device)
{
    if (host_forked()) return HOST_NOT_INITIALIZED;
    if (device < 0 || device >= host_device_count()) {
        return host_device_count() ? HOST_INVALID_DEVICE : HOST_NO_DEVICE;
    }
    host_thread.device = device;
    tt_log_set_device(device);
    return HOST_OK;
}

/* Whatever a forked child asks for, it has no devices. */
int tuttiHostErrorSet(int error)
{
    if (error && host_forked()) error = HOST_NOT_INITIALIZED;
    if (error) host_thread.last_error = error;
    return error;
}

int tuttiHostErrorPeek(void)
{
    return host_thread.last_error;
}

int tuttiHostErrorGet(void)
{
    int error = host_thread.last_error;
    host_thread.last_error = HOST_OK;
    return error;
}
