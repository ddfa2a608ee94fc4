/* Device memory is handed out full of a pattern (a NaN for float and double), so that whether it
 * was written can be asked of the bytes themselves, whatever wrote them. */
#include "pattern.h"

#include "base/mem.h"
#include "device/host/check/state.h"
#include "device/host/memory/memory.h"

#include <string.h>

static const uint64_t pattern = 0xfff5a5a5fff5a5a5ull;
static const size_t filled_bytes = (size_t)32 << 20;

void tt_check_pattern_fill(void *ptr, size_t bytes) /* ptr is aligned to more than a word */
{
    char *to = tt_host_view(ptr);
    size_t at = 0;
    for (; at + sizeof(pattern) <= bytes; at += sizeof(pattern)) {
        memcpy(to + at, &pattern, sizeof(pattern));
    }
    memcpy(to + at, &pattern, bytes - at);
}

static bool is_pattern(const char *ptr, size_t bytes)
{
    unsigned char all[sizeof(pattern)];
    memcpy(all, &pattern, sizeof(all));
    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char)ptr[i] != all[((uintptr_t)ptr + i) % sizeof(all)]) return false;
    }
    return true;
}

/* An operation that was not reported may still be going to write there. */
static bool has_writer(const struct tt_host_check *check)
{
    for (size_t i = 1; i < check->ntasks; i++) {
        if (!tt_host_position_reached(&check->tasks[i].unreported)) return true;
    }
    return false;
}

bool tt_check_is_unwritten(struct tt_host_check *check, const void *ptr, size_t bytes)
{
    return !has_writer(check) && is_pattern(tt_host_view(ptr), bytes);
}

size_t tt_check_pattern_bytes(size_t bytes)
{
    return tt_min_size(bytes, filled_bytes);
}
