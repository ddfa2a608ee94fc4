/* Files that a flight recorder kept: one process may have written several, NAME.jsonl and
 * NAME.jsonl.1 and so on, and a communicator that outlived another one stands in each of them. The
 * newest shows how far it is. */
#include "reader.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *name, size_t bytes, const char *ending)
{
    size_t most = strlen(ending);
    return bytes > most && memcmp(name + bytes - most, ending, most) == 0;
}

/* Bytes up to the end of ".jsonl" or ".records", and the number behind it. 0: it is no such name.
 */
static size_t split(const char *name, unsigned long *number)
{
    size_t bytes = strlen(name);
    *number = 0;
    while (bytes > 0 && isdigit((unsigned char)name[bytes - 1]))
        bytes--;
    if (name[bytes]) {
        if (bytes < 1 || name[bytes - 1] != '.') return 0;
        *number = strtoul(name + bytes, NULL, 10);
        bytes--;
    }
    return ends_with(name, bytes, ".jsonl") || ends_with(name, bytes, ".records") ? bytes : 0;
}

bool timeline_is_trace(const char *name)
{
    unsigned long number;
    return split(name, &number) > 0;
}

int timeline_by_dump(const struct dirent **left, const struct dirent **right)
{
    const char *a = (*left)->d_name, *b = (*right)->d_name;
    unsigned long of_a, of_b;
    size_t bytes_a = split(a, &of_a), bytes_b = split(b, &of_b);
    size_t both = bytes_a < bytes_b ? bytes_a : bytes_b;
    int order = memcmp(a, b, both);
    if (order != 0) return order;
    if (bytes_a != bytes_b) return bytes_a < bytes_b ? -1 : 1;
    /* the one without a number was written last, before it the one with the highest */
    if (of_a == of_b) return strcmp(a, b);
    if (of_a == 0 || of_b == 0) return of_a == 0 ? -1 : 1;
    return of_a > of_b ? -1 : 1;
}

bool timeline_is_older_dump(struct timeline *run, uint64_t comm, int rank)
{
    struct timeline_reader *reader = run->reader;
    const struct timeline_process *process = &run->processes[reader->process];
    uint64_t key = comm * 0x9e3779b97f4a7c15u;
    if (!process->flight[0]) return false;
    for (const char *c = process->host; *c; c++)
        key = (key ^ (unsigned char)*c) * 0x100000001b3u;
    key = (key ^ (uint32_t)process->pid) * 0x9e3779b97f4a7c15u;
    key = (key ^ (uint32_t)rank) * 0x9e3779b97f4a7c15u;
    uint32_t before = ids_get(&reader->dumped, key);
    if (before != UINT32_MAX) return before != reader->file;
    if (!ids_put(&reader->dumped, key, reader->file)) reader->short_of_memory = true;
    return false;
}
