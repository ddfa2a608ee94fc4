/* Whether an operation may touch bytes: memory of ours must lie in one live allocation, mapped
 * parts must allow it. Of memory that the program has by itself nothing is known. No lock, unless
 * something is mapped in parts or from another process. */
#include "stream.h"

#include "base/mem.h"
#include "device/host/check/check.h"
#include "device/host/host.h"
#include "device/host/host_face.h"
#include "device/host/host_kernel.h"
#include "device/host/host_vmm.h"
#include "device/host/memory/memory.h"

#include <sys/mman.h>

/* Memory outside of the range. */
static bool foreign_fits(const char *ptr, size_t bytes, bool write)
{
    struct tt_pointer opened;
    struct tt_mapped mapped;
    struct tt_reserved reserved;
    const char *end = ptr + bytes;
    if (tuttiHostIpcMapped(ptr, &opened)) return end <= opened.base + opened.bytes;
    if (!tuttiHostMapped(ptr, &mapped)) return !tuttiHostReserved(ptr, &reserved);
    while (ptr < end) { /* parts side by side */
        if (!tuttiHostMapped(ptr, &mapped)) return false;
        if (mapped.access == 0 || (write && mapped.access != 3)) return false;
        ptr = mapped.base + mapped.bytes;
    }
    return true;
}

static bool fits(const void *ptr, size_t bytes, bool write)
{
    struct tt_host_block block;
    enum tt_memory_kind kind;
    int device;
    if ((uintptr_t)ptr > UINTPTR_MAX - bytes) return false;
    const struct tt_host_arena *arena = tt_host_arena_of(ptr, &device, &kind);
    if (!arena) return foreign_fits(ptr, bytes, write);
    if (!tt_host_arena_find(arena, ptr, &block)) return false;
    size_t before = (size_t)((const char *)ptr - block.base);
    return before <= block.asked && bytes <= block.asked - before;
}

/* The same, and nothing is said of memory that cannot be unmapped. */
static bool is_there(const void *ptr, size_t bytes, bool write)
{
    enum tt_memory_kind kind;
    int device;
    return tt_host_arena_of(ptr, &device, &kind) || foreign_fits(ptr, bytes, write);
}

/* Its list would be on the stack of every fill. */
__attribute__((noinline)) bool tuttiHostIsThere(const void *ptr, size_t bytes)
{
    enum { PAGE = 4096, PAGES = 1024 };
    unsigned char there[PAGES];
    uintptr_t from = (uintptr_t)ptr / PAGE * PAGE;
    uintptr_t to;
    if (__builtin_add_overflow((uintptr_t)ptr, bytes, &to)) return false;
    for (; from < to; from += (uintptr_t)PAGE * PAGES) {
        size_t part = tt_min_size(to - from, (size_t)PAGE * PAGES);
        if (mincore((void *)from, part, there)) return false;
    }
    return true;
}

static __attribute__((noinline)) bool rows_are_there(const struct tt_host_op *op)
{
    size_t bytes = op->set.width * op->set.elem_bytes; /* which was checked */
    bool there = true;
    for (size_t row = 0; there && row < op->set.height; row++)
        there = tuttiHostIsThere((const char *)op->set.ptr + row * op->set.pitch, bytes);
    return there;
}

typedef bool span_check(const void *ptr, size_t bytes, bool write);

struct box {
    size_t pitch, width, height, slice, depth;
};

/* Bytes from the first to the last one; false when no memory has as many. */
static bool extent(const struct box *box, size_t *bytes_out)
{
    size_t rows = 0;
    size_t slices = 0;
    if (!tt_mul_size(box->pitch, box->height > 1 ? box->height - 1 : 0, &rows)) return false;
    if (!tt_mul_size(box->slice, box->depth > 1 ? box->depth - 1 : 0, &slices)) return false;
    return !__builtin_add_overflow(rows, slices, bytes_out) &&
           !__builtin_add_overflow(*bytes_out, box->width, bytes_out);
}

static bool check_copy(const struct tt_copy *copy, span_check *check)
{
    const struct box to = {copy->dst_pitch, copy->width, copy->height, copy->dst_slice,
                           copy->depth};
    const struct box from = {copy->src_pitch, copy->width, copy->height, copy->src_slice,
                             copy->depth};
    size_t written = copy->width;
    size_t read = copy->width;
    if (copy->width == 0) return true;
    if (copy->height > 1 || copy->depth > 1) {
        if (!extent(&to, &written) || !extent(&from, &read)) return false;
    }
    return check(copy->dst, written, true) && check(copy->src, read, false);
}

static bool check_set(const struct tt_host_op *op, span_check *check)
{
    struct box box = {op->set.pitch, 0, op->set.height, 0, 1};
    size_t bytes = 0;
    if (!op->set.width || !op->set.height) return true;
    if (op->set.elem_bytes != 1 && op->set.elem_bytes != 2 && op->set.elem_bytes != 4) return false;
    uintptr_t lines = (uintptr_t)op->set.ptr | (op->set.height > 1 ? op->set.pitch : 0);
    if (lines % op->set.elem_bytes) return false; /* elements lie at multiples of their size */
    return tt_mul_size(op->set.width, op->set.elem_bytes, &box.width) && extent(&box, &bytes) &&
           check(op->set.ptr, bytes, true);
}

enum side { SIDE_DEVICE, SIDE_PINNED, SIDE_PAGEABLE };

/* Managed memory, parts, memory of other processes and device variables are the device's side. */
static enum side side_of(const void *ptr)
{
    struct tt_pointer where;
    tuttiHostLocate(ptr, &where);
    if (where.kind == TT_MEMORY_PINNED) return SIDE_PINNED;
    return where.kind == TT_MEMORY_FOREIGN && !tuttiHostInVariable(ptr) ? SIDE_PAGEABLE
                                                                        : SIDE_DEVICE;
}

bool tt_host_copy_blocks(const struct tt_copy *copy)
{
    enum side to = side_of(copy->dst);
    enum side from = side_of(copy->src);
    return to == SIDE_PAGEABLE || from == SIDE_PAGEABLE ||
           (to == SIDE_PINNED && from == SIDE_PINNED);
}

bool tt_host_copy_fits(const struct tt_copy *copy)
{
    return check_copy(copy, fits);
}

bool tt_host_set_fits(const struct tt_host_op *op)
{
    const struct tt_range *range = &tt_host.memory.range;
    bool ours = (size_t)((const char *)op->set.ptr - (const char *)range->base) < range->bytes;
    /* A fill of what is nowhere is refused, as a device does it. A copy is the program's access. */
    return check_set(op, fits) && (ours || rows_are_there(op));
}

bool tuttiHostWordFits(const struct tt_word *word)
{
    return fits(word->address, word->wide ? sizeof(uint64_t) : sizeof(uint32_t), !word->waits);
}

static bool is_opened(const void *ptr)
{
    struct tt_pointer where;
    return tuttiHostIpcMapped(ptr, &where);
}

void tt_host_op_note_opened(struct tt_host_op *op)
{
    bool copy = op->kind == TT_HOST_OP_COPY;
    op->opened = op->kind == TT_HOST_OP_ITEM ? tt_host_item_opened(op->item) : 0;
    if (!copy && op->kind != TT_HOST_OP_SET) return;
    if (is_opened(copy ? op->copy.dst : op->set.ptr)) op->opened |= TT_HOST_OPENED_TO;
    if (copy && is_opened(op->copy.src)) op->opened |= TT_HOST_OPENED_FROM;
}

bool tt_host_op_is_mapped(const struct tt_host_op *op)
{
    struct tt_host_op now = *op;
    if (op->opened) tt_host_op_note_opened(&now);
    if (now.opened != op->opened) return false; /* closed since */
    if (op->kind == TT_HOST_OP_COPY) return check_copy(&op->copy, is_there);
    return op->kind != TT_HOST_OP_SET || check_set(op, is_there);
}
