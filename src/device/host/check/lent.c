/* Memory that the program registered: pages that lie in it as a whole are closed as those of pinned
 * memory are (guard.c), where copies and fills can reach them all the same (stream/by_file.c). */
#include "base/mem.h"
#include "device/host/check/shadow/guard.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, OPEN = PROT_READ | PROT_WRITE };

/* Does the kernel move bytes from and to closed pages? */
static bool reaches_closed(void)
{
    char *page = mmap(NULL, PAGE, OPEN, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), seen = 0;
    const char other = 2;
    if (page == MAP_FAILED) return false;
    int file = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    page[0] = page[1] = 1;
    bool works = file >= 0 && !mprotect(page, PAGE, PROT_NONE) &&
                 pread(file, &seen, 1, (off_t)(uintptr_t)page) == 1 && seen == 1 &&
                 pwrite(file, &other, 1, (off_t)(uintptr_t)(page + 1)) == 1 &&
                 !mprotect(page, PAGE, OPEN) && page[1] == 2;
    if (file >= 0) close(file);
    munmap(page, PAGE);
    return works;
}

/* Is all of it private memory that may be read and written, and not run? */
static bool is_plain(uintptr_t at, uintptr_t end)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && at < end && fgets(line, sizeof(line), maps)) {
        char *rest;
        uintptr_t first = strtoull(line, &rest, 16);
        if (*rest != '-') continue;
        uintptr_t last = strtoull(rest + 1, &rest, 16);
        if (first > at) break;
        if (last > at) {
            if (strncmp(rest, " rw-p", 5) != 0) break;
            at = last;
        }
    }
    if (maps) fclose(maps);
    return at >= end;
}

void tt_host_check_lend(const void *ptr, size_t bytes)
{
    uintptr_t at = tt_round_up((uintptr_t)ptr, PAGE), end = ((uintptr_t)ptr + bytes) / PAGE * PAGE;
    if (at >= end || !is_plain(at, end) || !reaches_closed()) return;
    struct tt_host_check *check = tt_host_check_lock();
    struct tt_check_range *wider =
        check ? realloc(check->lent, (check->nlent + 1) * sizeof(*wider)) : NULL;
    if (wider) {
        check->lent = wider;
        wider[check->nlent++] = (struct tt_check_range){(const void *)at, end - at};
    }
    tt_host_check_unlock(check);
}
