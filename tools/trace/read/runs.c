/* Files of two runs in one folder: processes that no communicator joins, of which some had ended
 * before the others began. They are read as one run, as they cannot be told from a job whose parts
 * ran one after the other; but it is said. */
#include "reader.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

/* Processes that communicators join; of the first one of them. */
struct part {
    uint32_t process;
    int64_t begin_nsec, end_nsec; /* on the wall clock */
};

static uint32_t root_of(uint32_t *above, uint32_t process)
{
    while (above[process] != process)
        process = above[process] = above[above[process]];
    return process;
}

/* When the last event of a process began or ended. */
static int64_t last_of(const struct timeline *run, const struct timeline_process *process)
{
    int64_t last_nsec = (int64_t)process->mono_nsec;
    for (uint32_t e = process->first_event; e < process->last_event; e++) {
        const struct timeline_event *event = &run->events[e];
        if (event->start_nsec > last_nsec) last_nsec = event->start_nsec;
        if (event->stop_nsec > last_nsec) last_nsec = event->stop_nsec;
    }
    return last_nsec + (int64_t)(process->wall_nsec - process->mono_nsec);
}

static int by_begin(const void *left, const void *right)
{
    const struct part *a = left, *b = right;
    return (a->begin_nsec > b->begin_nsec) - (a->begin_nsec < b->begin_nsec);
}

static void join_processes(const struct timeline *run, uint32_t *above, uint32_t *first)
{
    for (uint32_t c = 0; c < run->ncomms; c++)
        first[c] = TIMELINE_NONE;
    for (uint32_t m = 0; m < run->nmembers; m++) {
        const struct timeline_member *member = &run->members[m];
        if (member->comm == TIMELINE_NONE) continue;
        if (first[member->comm] == TIMELINE_NONE) first[member->comm] = member->process;
        above[root_of(above, member->process)] = root_of(above, first[member->comm]);
    }
}

/* `slots`: room for as many numbers as there are processes. */
static uint32_t find_parts(const struct timeline *run, uint32_t *above, uint32_t *slots,
                           struct part *parts)
{
    uint32_t nparts = 0;
    for (uint32_t p = 0; p < run->nprocesses; p++)
        slots[p] = TIMELINE_NONE;
    for (uint32_t p = 0; p < run->nprocesses; p++) {
        const struct timeline_process *process = &run->processes[p];
        uint32_t *slot = &slots[root_of(above, p)];
        if (process->flight[0]) continue; /* a process may have several such files */
        if (*slot == TIMELINE_NONE) {
            *slot = nparts;
            parts[nparts++] = (struct part){p, INT64_MAX, INT64_MIN};
        }
        struct part *part = &parts[*slot];
        int64_t begin_nsec = (int64_t)process->wall_nsec, end_nsec = last_of(run, process);
        if (begin_nsec < part->begin_nsec) part->begin_nsec = begin_nsec;
        if (end_nsec > part->end_nsec) part->end_nsec = end_nsec;
    }
    return nparts;
}

static void report(const struct timeline *run, struct part *parts, uint32_t nparts)
{
    enum { REPORTED_MOST = 3 };
    uint32_t nruns = 1;
    if (nparts < 2) return;
    qsort(parts, nparts, sizeof(*parts), by_begin);
    int64_t end_nsec = parts[0].end_nsec;
    for (uint32_t k = 1; k < nparts; k++) {
        const struct timeline_process *process = &run->processes[parts[k].process];
        const char *path = run->paths[process->file];
        int64_t later_nsec = parts[k].begin_nsec - end_nsec;
        if (parts[k].end_nsec > end_nsec) end_nsec = parts[k].end_nsec;
        if (later_nsec <= 0 || ++nruns > REPORTED_MOST + 1) continue;
        (void)fprintf(stderr,
                      "%s: process %d on %s began %.1f s after all that were before it had done "
                      "their last, and has no communicator with them: are these files of several "
                      "runs? They are read as one\n",
                      path, process->pid, process->host, (double)later_nsec / 1e9);
    }
    if (nruns > REPORTED_MOST + 1)
        (void)fprintf(stderr, "%u more such runs\n", nruns - 1 - REPORTED_MOST);
}

bool timeline_report_runs(const struct timeline *run)
{
    uint32_t *above = tt_calloc(run->nprocesses + (size_t)1, sizeof(*above));
    uint32_t *first = tt_calloc(run->ncomms + (size_t)1, sizeof(*first));
    uint32_t *slots = tt_calloc(run->nprocesses + (size_t)1, sizeof(*slots));
    struct part *parts = tt_calloc(run->nprocesses + (size_t)1, sizeof(*parts));
    bool good = above && first && slots && parts;
    for (uint32_t p = 0; good && p < run->nprocesses; p++)
        above[p] = p;
    if (good && run->nprocesses > 1) {
        join_processes(run, above, first);
        report(run, parts, find_parts(run, above, slots, parts));
    }
    free(above);
    free(first);
    free(slots);
    free(parts);
    return good;
}
