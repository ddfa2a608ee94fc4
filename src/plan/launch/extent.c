/* Buffers that lie in no live memory: refused when a call is bound, and again after memory was
 * freed, as what was bound is launched again without a look. */
#include "base/error.h"
#include "device/device.h"
#include "plan/bind/operator.h"
#include "plan/launch/launch_cache.h"

enum { LOOKS = 16 }; /* calls of a kind, which so may have as many buffers */

/* The allocation that ptr lies in has so many bytes from there on, or the device knows none. */
static bool holds(const void *ptr, size_t bytes, struct tt_pointer *pointer)
{
    *pointer = (struct tt_pointer){.kind = TT_MEMORY_FOREIGN};
    if (!bytes || tuttiHostPointer(ptr, pointer) || pointer->kind == TT_MEMORY_FOREIGN) return true;
    return pointer->base && bytes <= pointer->bytes - (size_t)((const char *)ptr - pointer->base);
}

bool tt_extent_is_live(const struct tt_task *task)
{
    size_t in_bytes, out_bytes;
    struct tt_pointer pointer;
    if (tt_func_is_message(task->func)) return true;
    tt_buffer_bytes(task, &in_bytes, &out_bytes);
    return holds(task->in, in_bytes, &pointer) && holds(task->out, out_bytes, &pointer);
}

static ncclResult_t check(const struct tt_task *task, const char *what, const void *ptr,
                          size_t bytes)
{
    struct tt_pointer pointer;
    if (holds(ptr, bytes, &pointer)) return ncclSuccess;
    if (!pointer.base) {
        return tt_fail(ncclInvalidArgument,
                       "nccl%s: %s %p lies in no live allocation: it was freed, or never allocated",
                       tt_func_name(task->func), what, ptr);
    }
    return tt_fail(ncclInvalidArgument,
                   "nccl%s: %s %p and %zu bytes run over the end of its allocation (%zu bytes at "
                   "%p)",
                   tt_func_name(task->func), what, ptr, bytes, pointer.bytes, (void *)pointer.base);
}

ncclResult_t tt_extent_check(const struct tt_task *task)
{
    size_t in_bytes, out_bytes;
    tt_buffer_bytes(task, &in_bytes, &out_bytes);
    ncclResult_t rc = check(task, "sendbuff", task->in, in_bytes);
    return rc ? rc : check(task, "recvbuff", task->out, out_bytes);
}

void tt_looked_note(struct tt_looked *looked, uint64_t frees)
{
    if (looked->latest != frees) looked->times = 0;
    looked->latest = frees;
    if (++looked->times >= LOOKS) looked->frees = frees;
}

ncclResult_t tt_looked_again(struct tt_looked *looked, uint64_t frees, const struct tt_task *task)
{
    if (!tt_extent_is_live(task)) return tt_extent_check(task);
    tt_looked_note(looked, frees);
    return ncclSuccess;
}
