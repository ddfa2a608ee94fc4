/* Small questions about a run. */
#include "model.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *timeline_type_name(enum timeline_type type)
{
    static const char *const names[TIMELINE_TYPE_COUNT_] = {
        "Group",    "Coll",      "P2p",      "ProxyOp",    "ProxyStep", "ProxyCtrl",
        "KernelCh", "NetPlugin", "GroupApi", "CollApi",    "P2pApi",    "KernelLaunch",
        "CeColl",   "CeSync",    "CeBatch",  "KernelPhase"};
    return names[type];
}

void timeline_sort(void *array, size_t count, size_t size, int (*order)(const void *, const void *))
{
    const char *at = array;
    size_t k = 1;
    while (k < count && order(at + (k - 1) * size, at + k * size) <= 0)
        k++;
    if (k < count) qsort(array, count, size, order);
}

const char *timeline_word(const struct timeline *run, uint16_t word)
{
    return run->words[word < run->nwords ? word : 0];
}

const char *timeline_type_text(const struct timeline *run, uint16_t datatype)
{
    const char *name = timeline_word(run, datatype);
    static const struct {
        const char *word, *text;
    } names[] = {
        {"ncclInt8", "int8"},
        {"ncclUint8", "uint8"},
        {"ncclInt32", "int32"},
        {"ncclUint32", "uint32"},
        {"ncclInt64", "int64"},
        {"ncclUint64", "uint64"},
        {"ncclFloat16", "half"},
        {"ncclFloat32", "float"},
        {"ncclFloat64", "double"},
        {"ncclBfloat16", "bfloat16"},
        {"ncclFloat8e4m3", "float8e4m3"},
        {"ncclFloat8e5m2", "float8e5m2"},
    };
    for (size_t i = 0; i < TT_LEN(names); i++) {
        if (!strcmp(name, names[i].word)) return names[i].text;
    }
    return name;
}

size_t timeline_type_bytes(const struct timeline *run, uint16_t datatype)
{
    const char *name = timeline_word(run, datatype);
    static const struct {
        const char *part;
        size_t bytes;
    } sizes[] = {{"64", 8}, {"32", 4}, {"16", 2}, {"8", 1}};
    for (size_t i = 0; i < TT_LEN(sizes); i++) {
        if (strstr(name, sizes[i].part)) return sizes[i].bytes;
    }
    return 0;
}

bool timeline_ranks(const struct timeline *run, int *of_member)
{
    int *of_thread = tt_calloc(run->nthreads + (size_t)1, sizeof(*of_thread));
    bool *known = tt_calloc(run->nthreads + (size_t)1, sizeof(*known));
    for (uint32_t m = 0; m < run->nmembers; m++) {
        uint32_t first = run->processes[run->members[m].process].first_member;
        bool own = run->members[m].comm == run->members[first].comm;
        of_member[m] = run->members[own ? m : first].rank;
    }
    for (uint32_t e = 0; of_thread && known && e < run->nevents; e++) {
        const struct timeline_event *event = &run->events[e];
        if (event->type != TIMELINE_COLL_API && event->type != TIMELINE_P2P_API) continue;
        if (event->member == TIMELINE_NONE) continue;
        const struct timeline_member *member = &run->members[event->member];
        uint32_t first = run->processes[member->process].first_member;
        if (member->comm == run->members[first].comm) {
            of_thread[event->thread] = member->rank;
            known[event->thread] = true;
        } else if (known[event->thread]) {
            of_member[event->member] = of_thread[event->thread];
        }
    }
    bool good = of_thread && known;
    free(of_thread);
    free(known);
    return good;
}

void timeline_where(const struct timeline *run, uint32_t event, char *text, size_t bytes)
{
    const struct timeline_event *e = &run->events[event];
    const struct timeline_process *process = &run->processes[run->threads[e->thread].process];
    int rank = e->member == TIMELINE_NONE ? -1 : run->members[e->member].rank;
    if (rank >= 0) {
        (void)snprintf(text, bytes, "rank %d (%s, pid %d)", rank, process->host, process->pid);
    } else {
        (void)snprintf(text, bytes, "%s, pid %d", process->host, process->pid);
    }
}

/* ---- order ---- */

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* One digit of a stable sort of `from` by begin into `to`. */
static void sort_digit(const struct timeline *run, const uint32_t *from, uint32_t *to, int shift)
{
    uint32_t counts[DIGITS + 1] = {0};
    for (uint32_t i = 0; i < run->nevents; i++)
        counts[((uint64_t)run->events[from[i]].start_nsec >> shift & (DIGITS - 1)) + 1]++;
    for (int d = 0; d < DIGITS; d++)
        counts[d + 1] += counts[d];
    for (uint32_t i = 0; i < run->nevents; i++)
        to[counts[(uint64_t)run->events[from[i]].start_nsec >> shift & (DIGITS - 1)]++] = from[i];
}

uint32_t *timeline_by_start(const struct timeline *run)
{
    size_t room = (run->nevents + (size_t)1) * sizeof(uint32_t);
    uint32_t *order = malloc(room), *other = malloc(room);
    uint64_t last = 0; /* no event starts before 0 */
    for (uint32_t e = 0; order && other && e < run->nevents; e++) {
        order[e] = e;
        uint64_t start_nsec = (uint64_t)run->events[e].start_nsec;
        if (start_nsec > last) last = start_nsec;
    }
    for (int shift = 0; order && other && shift < 64 && last >> shift; shift += DIGIT_BITS) {
        uint32_t *sorted = other;
        sort_digit(run, order, sorted, shift);
        other = order;
        order = sorted;
    }
    free(other);
    if (!other) {
        free(order);
        order = NULL;
    }
    if (!order) (void)fprintf(stderr, "tutti trace: out of memory\n");
    return order;
}
