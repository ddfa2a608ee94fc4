/* What the processor is. The system's own answer for the last-level cache is not enough: on some
 * processors it counts the caches of all core complexes, of which these cores share one. */
#include "base/system/cpu.h"

#include "base/arch/arch.h"
#include "base/process.h"

#include <stdio.h>
#include <unistd.h>

enum { LEVELS = 8 };
#define GUESS_BYTES ((size_t)32 << 20)

/* "32768K", or 0. The kernel lists a processor's caches from the nearest on. */
static size_t listed_bytes(int index)
{
    char path[80];
    size_t count = 0;
    char unit = 0;
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    /* NOLINTNEXTLINE(cert-err34-c): a number too large becomes the largest, refused below */
    int fields = fscanf(file, "%zu%c", &count, &unit);
    fclose(file);
    if (fields < 1 || count > SIZE_MAX >> 20) return 0;
    return unit == 'K' ? count << 10 : unit == 'M' ? count << 20 : count;
}

static size_t asked_bytes(void)
{
    size_t bytes = 0;
    for (int index = 0; index < LEVELS; index++)
        bytes = tt_max_size(bytes, listed_bytes(index));
    if (bytes) return bytes;
    intmax_t level3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return level3 > 0 ? (size_t)level3 : GUESS_BYTES;
}

size_t tt_cpu_cache_bytes(void)
{
    size_t bytes = atomic_load_explicit(&tt_base.cpu.cache_bytes, memory_order_relaxed);
    if (bytes) return bytes;
    bytes = asked_bytes();
    atomic_store_explicit(&tt_base.cpu.cache_bytes, bytes, memory_order_relaxed);
    return bytes;
}

int tt_cpu_tier(void)
{
    int known = atomic_load_explicit(&tt_base.cpu.tier, memory_order_relaxed); /* one more */
    if (known) return known - 1;
    known = tt_cpu_ask_tier() + 1;
    atomic_store_explicit(&tt_base.cpu.tier, known, memory_order_relaxed);
    return known - 1;
}
