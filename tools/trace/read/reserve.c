/* With malloc() a page of 4 KiB is faulted in for each 30 events, which took a fifth of the time of
 * reading; huge pages alone did not help, as realloc() moves them to where they do not fit. */
#include "reserve.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES ((uintptr_t)2 << 20)

static void *take(struct reserve *reserve)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page_bytes <= 0 || (size_t)pages > SIZE_MAX / 2 / (size_t)page_bytes)
        return NULL;
    const size_t bytes = (size_t)pages * (size_t)page_bytes, map_bytes = bytes + HUGE_BYTES;
    char *map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return NULL;
    char *base = map + (HUGE_BYTES - (uintptr_t)map % HUGE_BYTES) % HUGE_BYTES;
    (void)madvise(base, bytes, MADV_HUGEPAGE); /* without any it is as good as before */
    *reserve = (struct reserve){base, bytes, map, map_bytes};
    return base;
}

void *reserve_grow(struct reserve *reserve, void *array, size_t used, size_t bytes)
{
    if (reserve->base) return bytes <= reserve->bytes ? reserve->base : NULL;
    if (!take(reserve)) return NULL;
    memcpy(reserve->base, array, used);
    free(array);
    return reserve->base;
}

void reserve_free(struct reserve *reserve, void *array)
{
    if (!reserve->base) {
        free(array);
    } else {
        munmap(reserve->map, reserve->map_bytes);
    }
    *reserve = (struct reserve){0};
}
