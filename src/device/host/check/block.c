/* Life of memory: what is handed out starts anew, what is freed must not be touched. */
#include "guard.h"

void check_allocate(struct host_check *check, const struct check_block *block, struct check_op *op)
{
    struct check_mark *mark = check_mark(&check->blocks, block->ptr, 0);
    check_guard_forget(check, block->ptr, block->bytes);
    if (mark) {
        mark->site = host_thread.site;
        mark->bytes = block->bytes;
        mark->kind = block->kind;
        mark->device = block->device;
    }
    check_reset(check, block->ptr, block->bytes, 0, op);
    if (block->kind != TT_MEMORY_DEVICE) return;
    check_reset(check, block->ptr, check_pattern_bytes(block->bytes), CHECK_FRESH, op);
}

void check_release(struct host_check *check, const struct check_block *block, struct check_op *op)
{
    struct check_mark *mark = check_mark(&check->blocks, block->ptr, 0);
    check_touch(check, op, block->ptr, block->bytes, true);
    for (size_t i = 0; i < check->nprivate; i++) {
        if (check->private[i].ptr == block->ptr)
            check->private[i] = check->private[--check->nprivate];
    }
    if (op) check_reset(check, block->ptr, block->bytes, CHECK_FREED, op);
    if (mark) mark->bytes = 0;
}

void host_check_alloc(const struct check_block *block)
{
    struct host_check *check = block->ptr ? host_check_lock() : NULL;
    if (check) {
        if (block->kind == TT_MEMORY_DEVICE)
            check_pattern_fill(block->ptr, check_pattern_bytes(block->bytes));
        check_allocate(check, block, NULL);
    }
    host_check_unlock(check);
}

void host_check_free(const struct check_block *block)
{
    struct host_check *check = host_check_lock();
    if (check && !check_is_freed(check, block->ptr)) {
        struct check_op *op = check_op_begin(check, NULL, "free");
        check_release(check, block, op);
        check_op_drop(op);
    }
    host_check_unlock(check);
}

void host_check_withdraw(const char *what, const void *ptr, size_t bytes)
{
    struct host_check *check = host_check_lock();
    if (check) {
        struct check_op *op = check_op_begin(check, NULL, what);
        check_touch(check, op, ptr, bytes, true);
        check_reset(check, ptr, bytes, 0, NULL);
        check_op_drop(op);
    }
    host_check_unlock(check);
}

void host_check_revive(void *ptr, size_t bytes)
{
    struct host_check *check = host_check_lock();
    if (check && check_is_freed(check, ptr)) check_reset(check, ptr, bytes, 0, NULL);
    host_check_unlock(check);
}
