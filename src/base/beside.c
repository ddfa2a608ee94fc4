/* `tutti run` hands the hash of the settings on. Other launchers do not, so the first rank of the
 * host is looked for among the launcher's children, and its environment is read. What cannot be
 * read there counts as different. */
#include "base/beside.h"

#include "base/mem.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENVIRONMENT_MOST = 1 << 18, VARIABLES_MOST = 4096 };

static uint64_t setting_hash(const char *entry)
{
    static const char *const ranks[] = {
        "NCCL_COMM_ID=",       "TUTTI_DEVICES=",     "TUTTI_JOB_EXITS=",
        "TUTTI_JOB_SETTINGS=", "TUTTI_SECRET_FILE=", "TUTTI_WARN="};
    if (strncmp(entry, "NCCL_", 5) != 0 && strncmp(entry, "TUTTI_", 6) != 0) return 0;
    for (size_t i = 0; i < TT_LEN(ranks); i++) {
        if (!strncmp(entry, ranks[i], strlen(ranks[i]))) return 0;
    }
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char *at = entry; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    return hash;
}

uint64_t tt_settings_sum(char *const *environment)
{
    uint64_t sum = 0;
    for (char *const *entry = environment; entry && *entry; entry++)
        sum += setting_hash(*entry);
    return sum;
}

static bool is_child_of(const char *pid, long parent)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *behind = strrchr(text, ')'); /* "1 (name) S parent": the name may hold anything */
    return behind && strlen(behind) > 4 && strtol(behind + 4, NULL, 10) == parent;
}

static const char *value_in(char *const *environment, const char *name)
{
    size_t len = strlen(name);
    for (char *const *entry = environment; *entry; entry++) {
        if (!strncmp(*entry, name, len) && (*entry)[len] == '=') return *entry + len + 1;
    }
    return NULL;
}

/* The process is the first of its host, by the launcher's variable, and has our settings. */
static bool is_first(const char *pid, const char *variable, uint64_t sum)
{
    char path[64], *entries[VARIABLES_MOST];
    char *text = malloc(ENVIRONMENT_MOST);
    int count = 0;
    size_t used = 0;
    snprintf(path, sizeof(path), "/proc/%.16s/environ", pid);
    int fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    for (ssize_t n = 1; fd >= 0 && n > 0 && used < ENVIRONMENT_MOST - 1; used += (size_t)n) {
        n = read(fd, text + used, ENVIRONMENT_MOST - 1 - used);
        if (n < 0) break;
    }
    if (fd >= 0) close(fd);
    if (text) text[used] = '\0';
    for (size_t at = 0; at < used && count < VARIABLES_MOST - 1; at += strlen(text + at) + 1)
        entries[count++] = text + at;
    entries[count] = NULL;
    const char *rank = value_in(entries, variable);
    bool first = rank && !strcmp(rank, "0") && tt_settings_sum(entries) == sum;
    free(text);
    return first;
}

static bool has_first_sibling(const char *variable)
{
    const uint64_t sum = tt_settings_sum(environ);
    const long parent = getppid();
    bool found = false;
    DIR *processes = opendir("/proc");
    if (!processes) return false;
    for (const struct dirent *entry; !found && (entry = readdir(processes));) {
        const char *pid = entry->d_name;
        if (isdigit((unsigned char)*pid) && is_child_of(pid, parent))
            found = is_first(pid, variable, sum);
    }
    closedir(processes);
    return found;
}

bool tt_settings_are_reported(void)
{
    static const char *const launchers[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                            "SLURM_LOCALID", "LOCAL_RANK"};
    const char *job = getenv("TUTTI_JOB_SETTINGS"), *rank = NULL;
    if (job) {
        rank = getenv("LOCAL_RANK");
        return rank && strtol(rank, NULL, 10) > 0 &&
               strtoull(job, NULL, 16) == tt_settings_sum(environ);
    }
    for (size_t i = 0; i < TT_LEN(launchers); i++) {
        rank = getenv(launchers[i]);
        if (rank) return strtol(rank, NULL, 10) > 0 && has_first_sibling(launchers[i]);
    }
    return false;
}
