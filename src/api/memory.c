/* Memory of devices, registrations, windows. Peers map each other's device memory at init, so a
 * registration never exchanges anything; a window does (mem/window.c). */
#include "api/calls.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "device/device.h"
#include "mem/mem.h"
#include "transport/transport.h"

#include <stdlib.h>

ncclResult_t pncclMemAlloc(void **ptr, size_t size)
{
    ncclResult_t rc = tt_check_device("ncclMemAlloc");
    if (rc) return rc;
    if (!ptr) return tt_fail(ncclUnhandledCudaError, "ncclMemAlloc: ptr is NULL");
    *ptr = NULL;
    if (size == 0) return ncclSuccess;
    if (size > PTRDIFF_MAX) {
        return tt_fail(ncclUnhandledCudaError, "ncclMemAlloc: size %zu is beyond any memory", size);
    }
    int device = tuttiHostGetDevice();
    int err = tuttiHostMalloc(device, tt_round_up(size, NCCL_WIN_REQUIRED_ALIGNMENT), ptr);
    if (err == 0) {
        const struct tt_hold held = {.owner = *ptr,
                                     .base = *ptr,
                                     .device = device,
                                     .refuses = true,
                                     .why = "it is ncclMemAlloc's, which cudaFree refuses on a GPU "
                                            "(cudaErrorInvalidValue): call ncclMemFree"};
        tuttiHostHold(&held);
        return ncclSuccess;
    }
    *ptr = NULL;
    return tt_fail(ncclUnhandledCudaError,
                   "ncclMemAlloc: device %d gave no %zu bytes (CUDA error "
                   "%d)",
                   device, size, err);
}

ncclResult_t pncclMemFree(void *ptr)
{
    ncclResult_t rc = tt_check_device("ncclMemFree");
    if (rc || !ptr) return rc;
    tuttiHostLet(ptr);
    int err = tuttiHostFreeUsed(ptr);
    if (err == 0) return ncclSuccess;
    return tt_fail(ncclUnhandledCudaError,
                   "ncclMemFree: %p was not given out by a device (CUDA "
                   "error %d)",
                   ptr, err);
}

/* ---- registrations ---- */

ncclResult_t pncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
    static const char func[] = "ncclCommRegister";
    ncclResult_t rc = tt_check_pointer(handle, func, "handle");
    if (rc) return rc;
    *handle = NULL;
    if (!tt_param_bool("NCCL_LOCAL_REGISTER")) return ncclSuccess;
    struct tt_comm *own = (struct tt_comm *)comm;
    rc = tt_check_usable(own, "ncclCommRegister");
    if (!rc) rc = tt_check_pointer(buff, func, "buff");
    if (rc) return rc;
    struct tt_pointer pointer;
    if (tuttiHostLocate(buff, &pointer) || pointer.kind == TT_MEMORY_FOREIGN || !pointer.base) {
        return tt_fail(ncclUnhandledCudaError, "%s: buff %p is no memory of a device", func, buff);
    }
    const size_t into = (size_t)((char *)buff - pointer.base);
    if (size == 0 || size > pointer.bytes - into) {
        return tt_fail(ncclInvalidArgument,
                       "%s: %zu bytes at %p do not lie in the allocation of %zu bytes at %p", func,
                       size, buff, pointer.bytes, (void *)pointer.base);
    }
    struct tt_registry *registry = NULL;
    rc = tt_comm_registry(own, &registry);
    if (!rc) rc = tt_registry_add(registry, buff, size, handle);
    if (!rc) tt_transport_register(own->transport, *handle, buff, size);
    if (!rc) tt_info(TT_LOG_REG, "rank %d: registered %p, %zu bytes", own->member.rank, buff, size);
    return rc;
}

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle)
{
    static const char func[] = "ncclCommDeregister";
    struct tt_comm *own = (struct tt_comm *)comm;
    ncclResult_t rc = tt_check_alive(own, func);
    if (rc || !handle) return rc;
    struct tt_registry *registry = NULL;
    rc = tt_comm_registry(own, &registry);
    if (rc) return rc;
    tt_transport_forget(own->transport, handle); /* first: its memory may be the next handle's */
    return tt_registry_remove(registry, handle);
}

/* ---- windows ---- */

ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
                                     int winFlags)
{
    static const char func[] = "ncclCommWindowRegister";
    struct tt_comm *own = (struct tt_comm *)comm;
    ncclResult_t rc = tt_check_pointer(win, func, "win");
    if (!rc) *win = NULL;
    if (!rc) rc = tt_comm_check(own, func);
    if (!rc) rc = tt_check_pointer(buff, func, "buff");
    if (!rc && size == 0) rc = tt_fail(ncclInvalidArgument, "%s: size is 0", func);
    if (rc) return rc;
    const struct tt_window_call call = {.buff = buff, .bytes = size, .flags = winFlags, .win = win};
    return tt_job_window(own, &call);
}

static ncclResult_t window_of(ncclComm_t comm, ncclWindow_t win, const char *func,
                              struct tt_window **window_out)
{
    struct tt_comm *own = (struct tt_comm *)comm;
    struct tt_registry *registry = NULL;
    ncclResult_t rc = tt_comm_registry(own, &registry);
    if (rc) return rc;
    *window_out = tt_registry_window(registry, win);
    if (*window_out) return ncclSuccess;
    return tt_fail(ncclInternalError, "%s: window %p is unknown to this communicator (rank %d)",
                   func, (void *)win, own->member.rank);
}

ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
    static const char func[] = "ncclCommWindowDeregister";
    struct tt_comm *own = (struct tt_comm *)comm;
    ncclResult_t rc = tt_check_alive(own, func);
    if (rc || !win) return rc;
    struct tt_window *window = NULL;
    rc = window_of(comm, win, func, &window);
    if (rc) return rc;
    tt_transport_forget(own->transport, window);
    tt_registry_window_remove(own->registry, window);
    return ncclSuccess;
}

ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr)
{
    static const char func[] = "ncclWinGetUserPtr";
    ncclResult_t rc = tt_check_usable((struct tt_comm *)comm, "ncclWinGetUserPtr");
    if (!rc) rc = tt_check_pointer(outUserPtr, func, "outUserPtr");
    if (rc) return rc;
    *outUserPtr = NULL;
    rc = tt_check_pointer(win, func, "win");
    struct tt_window *window = NULL;
    if (!rc) rc = window_of(comm, win, func, &window);
    if (!rc) *outUserPtr = window->buff;
    return rc;
}

/* ---- the weak aliases ---- */

__typeof__(pncclMemAlloc) ncclMemAlloc __attribute__((weak, alias("pncclMemAlloc")));
__typeof__(pncclMemFree) ncclMemFree __attribute__((weak, alias("pncclMemFree")));
__typeof__(pncclCommRegister) ncclCommRegister __attribute__((weak, alias("pncclCommRegister")));
__typeof__(pncclCommDeregister) ncclCommDeregister
    __attribute__((weak, alias("pncclCommDeregister")));
__typeof__(pncclCommWindowRegister) ncclCommWindowRegister
    __attribute__((weak, alias("pncclCommWindowRegister")));
__typeof__(pncclCommWindowDeregister) ncclCommWindowDeregister
    __attribute__((weak, alias("pncclCommWindowDeregister")));
__typeof__(pncclWinGetUserPtr) ncclWinGetUserPtr __attribute__((weak, alias("pncclWinGetUserPtr")));
