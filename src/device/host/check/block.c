/* Life of memory: what is handed out starts anew, what is freed must not be touched. */
#include "device/host/check/shadow/guard.h"
#include "device/host/check/shadow/pattern.h"
#include "device/host/check/shadow/shadow.h"

void tt_check_allocate(struct tt_host_check *check, const struct tt_check_block *block,
                       struct tt_check_op *op)
{
    struct tt_check_mark *mark = tt_check_mark(&check->blocks, block->ptr, 0);
    tt_check_guard_forget(check, block->ptr, block->bytes);
    if (mark) {
        mark->site = tt_host_thread.check.site;
        mark->bytes = block->bytes;
        mark->kind = block->kind;
        mark->device = block->device;
        mark->gone.bytes = 0;
    }
    tt_check_reset(check, block->ptr, block->bytes, 0, op);
    if (block->kind != TT_MEMORY_DEVICE) return;
    tt_check_reset(check, block->ptr, tt_check_pattern_bytes(block->bytes), TT_CHECK_FRESH, op);
}

void tt_check_release(struct tt_host_check *check, const struct tt_check_block *block,
                      struct tt_check_op *op)
{
    struct tt_check_mark *mark = tt_check_mark(&check->blocks, block->ptr, 0);
    tt_check_touch(check, op, block->ptr, block->bytes, true);
    for (size_t i = 0; i < check->nprivate; i++) {
        if (check->private[i].ptr == block->ptr)
            check->private[i] = check->private[--check->nprivate];
    }
    if (op) tt_check_reset(check, block->ptr, block->bytes, TT_CHECK_FREED, op);
    if (!mark) return;
    mark->gone.bytes = block->bytes;
    mark->gone.site = tt_host_thread.check.site;
    mark->gone.turn = ++check->nfreed;
    mark->bytes = 0;
}

void tt_host_check_alloc(const struct tt_check_block *block)
{
    struct tt_host_check *check = block->ptr ? tt_host_check_lock() : NULL;
    if (check) {
        if (block->kind == TT_MEMORY_DEVICE)
            tt_check_pattern_fill(block->ptr, tt_check_pattern_bytes(block->bytes));
        tt_check_allocate(check, block, NULL);
    }
    tt_host_check_unlock(check);
}

void tt_host_check_free(const struct tt_check_block *block)
{
    struct tt_host_check *check = tt_host_check_lock();
    if (check && !tt_check_is_freed(check, block->ptr)) {
        struct tt_check_op *op = tt_check_op_begin(check, NULL, "free");
        tt_check_release(check, block, op);
        tt_check_op_drop(op);
    }
    tt_host_check_unlock(check);
}

void tt_host_check_withdraw(const char *what, const void *ptr, size_t bytes)
{
    struct tt_host_check *check = tt_host_check_lock();
    if (check) {
        struct tt_check_op *op = tt_check_op_begin(check, NULL, what);
        tt_check_touch(check, op, ptr, bytes, true);
        tt_check_reset(check, ptr, bytes, 0, NULL);
        tt_check_guard_return(check, ptr, bytes);
        tt_check_op_drop(op);
    }
    tt_host_check_unlock(check);
}

void tt_host_check_revive(void *ptr, size_t bytes)
{
    struct tt_host_check *check = tt_host_check_lock();
    if (check && tt_check_is_freed(check, ptr)) tt_check_reset(check, ptr, bytes, 0, NULL);
    tt_host_check_unlock(check);
}
