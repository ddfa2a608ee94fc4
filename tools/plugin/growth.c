/* What a process keeps of things that it does again and again. */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Pages of this process: all that are mapped (field 0), or those in memory (field 1). */
static double pages_bytes(int field)
{
    char text[128] = "", *rest = text; /* no stream, whose buffer would count */
    const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    long pages = 0;
    if (fd < 0) return 0;
    if (read(fd, text, sizeof(text) - 1) < 0) text[0] = '\0';
    close(fd);
    for (int k = 0; k <= field; k++)
        pages = strtol(rest, &rest, 10);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    double count = 0;
    if (!folder) return 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static double resident_bytes(void)
{
    return pages_bytes(1);
}

struct check_memory check_memory_now(void)
{
    const struct mallinfo2 info = mallinfo2();
    return (struct check_memory){(double)info.uordblks + (double)info.hblkhd, resident_bytes()};
}

double check_memory_grown(const struct check_memory *before)
{
    enum { NOISE_BYTES = 1 << 20 };
    const struct check_memory now = check_memory_now();
    const double allocated = now.allocated - before->allocated;
    const double resident = now.resident - before->resident;
    if (resident > allocated + NOISE_BYTES) return resident;
    return allocated > 0 ? allocated : 0;
}

void check_kept(struct check_case_state *state, const char *turn)
{
    enum { MOST_BYTES = 8 };
    if (state->bytes_per_turn > MOST_BYTES)
        check_breach(state, "memory: each %s keeps %.0f bytes", turn, state->bytes_per_turn);
}

double check_rested_bytes(void)
{
    const struct timespec pause = {.tv_nsec = 30000000};
    enum { MOST_PAUSES = 40 };
    double before = 0, bytes = resident_bytes();
    for (int k = 0; k < MOST_PAUSES && (k < 2 || bytes != before); k++) {
        before = bytes;
        nanosleep(&pause, NULL);
        bytes = resident_bytes();
    }
    return bytes;
}

struct check_held check_held_now(void)
{
    return (struct check_held){check_memory_now().allocated, pages_bytes(0), descriptors()};
}

double check_growth_of(const double *amounts, int turns)
{
    double least = amounts[2] - amounts[1];
    for (int w = 2; w < CHECK_WINDOWS; w++) {
        if (amounts[w] - amounts[w - 1] < least) least = amounts[w] - amounts[w - 1];
    }
    return least > 0 ? least / turns : 0;
}

void check_held_judge(struct check_case_state *state, const struct check_held *held, int turns,
                      const char *turn, double most_bytes)
{
    static const char *const units[] = {"bytes of malloc", "mapped bytes", "descriptors"};
    const double most[] = {most_bytes, 64 << 10, 0.4}; /* a descriptor may serve several turns */
    double amounts[3][CHECK_WINDOWS];
    for (int w = 0; w < CHECK_WINDOWS; w++) {
        amounts[0][w] = held[w].allocated;
        amounts[1][w] = held[w].mapped;
        amounts[2][w] = held[w].descriptors;
    }
    for (int k = 0; k < 3; k++) {
        const double growth = check_growth_of(amounts[k], turns);
        if (growth <= most[k]) continue;
        check_breach(state, "memory: %s keeps %.*f %s", turn, k == 2 && growth < 10, growth,
                     units[k]);
    }
}
