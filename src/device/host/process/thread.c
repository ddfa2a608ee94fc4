/* What belongs to a thread: its current device and its last error. */
#include "state.h"

#include "base/log.h"
#include "device/host/host.h"

#include <string.h>

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

/* Of more than there is room for, the oldest is forgotten. */
int tuttiHostDevicePush(int device)
{
    struct tt_host_thread *my = &tt_host_thread;
    int before = my->device;
    int rc = tuttiHostSetDevice(device);
    if (rc) return rc;
    if (my->npushed == TT_HOST_PUSHED_MOST) {
        my->npushed--;
        memmove(my->pushed, my->pushed + 1, sizeof(my->pushed) - sizeof(my->pushed[0]));
    }
    my->pushed[my->npushed++] = (int16_t)before;
    return TT_HOST_OK;
}

void tuttiHostDevicePop(void)
{
    struct tt_host_thread *my = &tt_host_thread;
    if (my->npushed) tuttiHostSetDevice(my->pushed[--my->npushed]);
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
