/* Oversubscription is judged by what ranks may use, not by what the machine has: bound to one core,
 * or in a control group with a quota, two ranks have to share. Ranks with the same affinity mask
 * share its cores, those in one control group its quota; masks that differ and overlap are taken as
 * apart. All ranks come to the same result, from their records. */
#include "comm/records/cores.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FNV_START 0x811c9dc5u
#define ROOT "/sys/fs/cgroup"

static uint32_t hash_bytes(uint32_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * 0x01000193u; /* FNV-1a */
    return hash;
}

void tt_cores_mask(int cores, struct tt_core_limit *limit_out)
{
    cpu_set_t mask;
    CPU_ZERO(&mask);
    sched_getaffinity(getpid(), sizeof(mask), &mask);
    *limit_out = (struct tt_core_limit){.set = hash_bytes(FNV_START, &mask, sizeof(mask)),
                                        .cores = cores > 0 ? cores : 1};
}

/* ---- quotas ---- */

/* Two numbers of a file; false for "max", -1 and what is none. */
static bool read_numbers(const char *folder, const char *name, long long *first, long long *second)
{
    char path[PATH_MAX];
    int found = 0;
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path)) return false;
    FILE *file = fopen(path, "re");
    if (!file) return false;
    char text[64] = "";
    if (fgets(text, sizeof(text), file)) {
        char *end = NULL;
        *first = strtoll(text, &end, 10);
        found = end != text;
        char *rest = end;
        *second = strtoll(rest, &end, 10);
        found += end != rest;
    }
    fclose(file);
    return found > 0 && *first > 0;
}

int32_t tt_cores_quota_at(const char *folder)
{
    long long quota = 0, period = 0, none = 0;
    bool limited = read_numbers(folder, "cpu.max", &quota, &period);
    if (!limited) {
        limited = read_numbers(folder, "cpu.cfs_quota_us", &quota, &none) &&
                  read_numbers(folder, "cpu.cfs_period_us", &period, &none);
    }
    if (!limited || period <= 0 || quota / period >= INT32_MAX) return INT32_MAX;
    return quota < period ? 1 : (int32_t)(quota / period);
}

/* The tightest quota from the folder ROOT/base/path up to ROOT/base. */
static void climb(const char *base, const char *path, struct tt_core_limit *limit)
{
    char folder[PATH_MAX];
    size_t least = sizeof(ROOT) - 1 + strlen(base);
    int length = snprintf(folder, sizeof(folder), ROOT "%s%s", base, path);
    if (length < 0 || (size_t)length >= sizeof(folder)) return;
    for (;;) {
        int32_t cores = tt_cores_quota_at(folder);
        if (cores < limit->cores) {
            limit->cores = cores;
            limit->set = hash_bytes(limit->set, folder, strlen(folder));
        }
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < least) return;
        *slash = 0;
    }
}

/* Is it one of these words with commas between them? Their order is the machine's. */
static bool names_cpu(const char *controllers)
{
    for (const char *at = controllers; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!strncmp(at, "cpu", 3) && (at[3] == ',' || !at[3])) return true;
    }
    return false;
}

/* A line of /proc/self/cgroup is "number:controllers:path"; version 2 names no controllers. */
void tt_cores_quota(struct tt_core_limit *limit_out)
{
    struct stat space;
    char line[PATH_MAX];
    *limit_out = (struct tt_core_limit){.set = FNV_START, .cores = INT32_MAX};
    if (!stat("/proc/self/ns/cgroup", &space))
        limit_out->set = hash_bytes(FNV_START, &space.st_ino, sizeof(space.st_ino));
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *controllers++ = 0;
        *path++ = 0;
        if (!strcmp(path, "/")) path++;
        if (!*controllers) climb("", path, limit_out);
        if (!names_cpu(controllers)) continue;
        climb("/cpu", path, limit_out);
        *--controllers = '/'; /* mounted by all their names, and /cpu leads there at most places */
        climb(controllers, path, limit_out);
    }
    if (file) fclose(file);
}

/* ---- together ---- */

static int compare_users(const void *left, const void *right)
{
    const struct tt_core_user *a = left, *b = right;
    if (a->node != b->node) return a->node < b->node ? -1 : 1;
    return (a->limit.set > b->limit.set) - (a->limit.set < b->limit.set);
}

void tt_cores_together(struct tt_core_user *users, size_t nusers, int *cores, int nnodes)
{
    if (nusers) qsort(users, nusers, sizeof(*users), compare_users);
    size_t at = 0;
    for (int node = 0; node < nnodes; node++) {
        int64_t sum = 0;
        while (at < nusers && users[at].node == node) {
            const struct tt_core_limit set = users[at].limit;
            int64_t ranks = 0;
            for (; at < nusers && !compare_users(&users[at], &(struct tt_core_user){node, set});
                 at++)
                ranks++;
            sum += ranks < set.cores ? ranks : set.cores;
        }
        if (sum < cores[node]) cores[node] = (int)sum;
    }
}
