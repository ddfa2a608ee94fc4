/* Where a pointer of a call leads: to live memory that the communicator's device reaches, or not;
 * and what follows where a call was refused for that or another argument. */
#include "base/error.h"
#include "base/param.h"
#include "comm/comm.h"
#include "device/device.h"
#include "plan/bind/operator.h"

ncclResult_t tt_pointer_check(const struct tt_comm *comm, const char *name, const char *what,
                              const void *ptr)
{
    struct tt_pointer pointer;
    int err = tuttiHostLocate(ptr, &pointer);
    if (!err && pointer.kind != TT_MEMORY_FOREIGN && !pointer.base) {
        return tt_fail(ncclInvalidArgument,
                       "nccl%s: %s %p lies in no live allocation: it was freed, or never allocated",
                       name, what, ptr);
    }
    if (err || pointer.kind == TT_MEMORY_FOREIGN) {
        return tt_fail(ncclInvalidArgument, "nccl%s: %s %p is no memory of a device", name, what,
                       ptr);
    }
    if (pointer.kind == TT_MEMORY_DEVICE && pointer.device != comm->member.device) {
        return tt_fail(ncclInvalidArgument,
                       "nccl%s: %s %p lies on device %d, the communicator is on %d", name, what,
                       ptr, pointer.device, comm->member.device);
    }
    return ncclSuccess;
}

void tt_refusal_keep(struct tt_comm *comm, const char *why)
{
    tt_member_keep_refusal(&comm->member, why);
    if (tt_param_bool("TUTTI_STRICT")) tuttiHostFail("a call was refused (TUTTI_STRICT)");
}
