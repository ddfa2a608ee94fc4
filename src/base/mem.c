/* Set-up allocations and element sizes. Every product of a count and a size is checked here. */
#include "base/mem.h"

#include "base/process.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void tt_fault_at(int64_t allocation)
{
    atomic_store_explicit(&tt_base.faulty_alloc, allocation < 0 ? 0 : allocation + 1,
                          memory_order_relaxed);
}

bool tt_mul_size(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

void *tt_calloc(size_t count, size_t size)
{
    size_t bytes = 0;
    if (!tt_mul_size(count, size, &bytes) || bytes > PTRDIFF_MAX - TT_LINE_BYTES) return NULL;
    if (atomic_load_explicit(&tt_base.faulty_alloc, memory_order_relaxed) > 0 &&
        atomic_fetch_sub_explicit(&tt_base.faulty_alloc, 1, memory_order_relaxed) == 1)
        return NULL; /* the one that a test picked */
    bytes = tt_max_size(tt_round_up(bytes, TT_LINE_BYTES), TT_LINE_BYTES);
    void *memory = aligned_alloc(TT_LINE_BYTES, bytes);
    if (memory) memset(memory, 0, bytes);
    return memory;
}

size_t tt_type_bytes(ncclDataType_t type)
{
    switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
    }
}
