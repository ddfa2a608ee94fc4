/* `tutti trace check`: is the trace sound, and did all ranks do the same? */
#include "tool.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { PRINTED_MOST = 20 };

void trace_find(struct trace_findings *findings, const char *kind, const char *fmt, ...)
{
    char text[512];
    va_list args;
    if (findings->count++ >= TRACE_FINDINGS_KEPT) return;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    json_array_append_new(findings->list, json_pack("{s:s, s:s}", "kind", kind, "text", text));
}

void trace_note(struct trace_findings *findings, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    json_array_append_new(findings->notes, json_string(text));
}

/* Its file was read while it wrote it. */
static bool is_running(const struct timeline_process *process)
{
    return process->runs && !process->ended;
}

static void check_files(const struct timeline *run, struct trace_findings *findings)
{
    for (uint32_t p = 0; p < run->nprocesses; p++) {
        const struct timeline_process *process = &run->processes[p];
        const char *path = run->paths[process->file];
        if (is_running(process)) {
            trace_note(findings, "%s: process %d still writes it: it is checked as far as it goes",
                       path, process->pid);
        } else if (!process->ended) {
            trace_find(findings, "cut",
                       "%s: no line `end`: process %d on %s was killed or still runs", path,
                       process->pid, process->host);
        }
        if (process->lost) {
            trace_find(findings, "lost", "%s: %llu records were lost while recording", path,
                       (unsigned long long)process->lost);
        }
    }
    if (run->complaints) {
        trace_find(findings, "lines", "%llu lines are not sound (see above)",
                   (unsigned long long)run->complaints);
    }
    if (run->left_out) {
        trace_find(findings, "memory", "%llu records were left out for want of memory",
                   (unsigned long long)run->left_out);
    }
}

static void check_events(const struct timeline *run, struct trace_findings *findings)
{
    for (uint32_t e = 0; e < run->nevents; e++) {
        const struct timeline_event *event = &run->events[e];
        char where[160];
        const struct timeline_process *process =
            &run->processes[run->threads[event->thread].process];
        if (event->stop_nsec != TIMELINE_OPEN || *process->flight || is_running(process)) continue;
        timeline_where(run, e, where, sizeof(where));
        trace_find(findings, "open", "%s: %s %s begins at %.6f s and does not end", where,
                   timeline_type_name((enum timeline_type)event->type),
                   timeline_word(run, event->func), (double)event->start_nsec / 1e9);
    }
}

/* What is known of members and communicators; all owned. */
struct progress {
    uint32_t *last;  /* by member: its last Coll or P2p */
    uint32_t *begun; /* by member: how many of them it has begun */
    bool *runs;      /* by communicator: one of its ranks still works */
};

static void clear_progress(struct progress *progress)
{
    free(progress->last);
    free(progress->begun);
    free(progress->runs);
}

static bool find_progress(const struct timeline *run, struct progress *progress)
{
    progress->last = tt_calloc(run->nmembers + (size_t)1, sizeof(progress->last[0]));
    progress->begun = tt_calloc(run->nmembers + (size_t)1, sizeof(progress->begun[0]));
    progress->runs = tt_calloc(run->ncomms + (size_t)1, sizeof(progress->runs[0]));
    if (!progress->last || !progress->begun || !progress->runs) return false;
    memset(progress->last, 0xff, run->nmembers * sizeof(progress->last[0]));
    for (uint32_t k = 0; k < run->nparts; k++) {
        uint32_t event = run->parts[k].event, member = run->events[event].member;
        uint32_t *of_member = &progress->last[member];
        progress->begun[member]++;
        if (*of_member == TIMELINE_NONE ||
            run->events[*of_member].start_nsec < run->events[event].start_nsec)
            *of_member = event;
    }
    for (uint32_t m = 0; m < run->nmembers; m++) {
        const struct timeline_member *member = &run->members[m];
        if (member->comm != TIMELINE_NONE && is_running(&run->processes[member->process]))
            progress->runs[member->comm] = true;
    }
    return true;
}

/* How far the ranks of a communicator are whose job still runs. */
static void note_progress(const struct timeline *run, uint32_t comm,
                          const struct progress *progress, struct trace_findings *findings)
{
    uint32_t least = TIMELINE_NONE, most = TIMELINE_NONE;
    const uint32_t *begun = progress->begun;
    for (uint32_t m = 0; m < run->nmembers; m++) {
        if (run->members[m].comm != comm) continue;
        if (least == TIMELINE_NONE || begun[m] < begun[least]) least = m;
        if (most == TIMELINE_NONE || begun[m] > begun[most]) most = m;
    }
    trace_note(findings,
               "communicator %016llx: its job still runs: of %d ranks, rank %d is known to have "
               "begun the fewest operations (%u), rank %d the most (%u)",
               (unsigned long long)run->comms[comm].id, run->comms[comm].nranks,
               run->members[least].rank, begun[least], run->members[most].rank, begun[most]);
}

static void name_operation(const struct timeline *run, const struct timeline_operation *operation,
                           char *text, size_t bytes)
{
    const struct timeline_part *part = &run->parts[operation->first];
    const struct timeline_event *event = &run->events[part->event];
    const char *func = timeline_word(run, operation->func);
    unsigned long long comm = run->comms[operation->comm].id, seq = operation->seq;
    if (operation->message) {
        int rank = run->members[event->member].rank;
        bool receives = !strcmp(timeline_word(run, event->func), "Recv");
        (void)snprintf(text, bytes, "message #%llu from rank %d to %d of communicator %016llx", seq,
                       receives ? event->peer : rank, receives ? rank : event->peer, comm);
    } else {
        (void)snprintf(text, bytes, "%s #%llu of communicator %016llx", func, seq, comm);
    }
}

/* Which ranks are not there. */
static void find_absent(const struct timeline *run, const struct timeline_operation *operation,
                        const uint32_t *last, struct trace_findings *findings)
{
    char name[200];
    name_operation(run, operation, name, sizeof(name));
    if (operation->message) {
        const struct timeline_event *event = &run->events[run->parts[operation->first].event];
        if (operation->count < 2)
            trace_find(findings, "absent", "%s: rank %d does not take part", name, event->peer);
        return;
    }
    for (uint32_t m = 0; m < run->nmembers; m++) {
        const struct timeline_member *member = &run->members[m];
        bool there = member->comm != operation->comm;
        for (uint32_t k = 0; !there && k < operation->count; k++)
            there = run->events[run->parts[operation->first + k].event].member == m;
        if (there) continue;
        const struct timeline_event *event =
            last[m] == TIMELINE_NONE ? NULL : &run->events[last[m]];
        if (event) {
            trace_find(findings, "absent", "%s: rank %d has not begun it; its last is %s #%llu",
                       name, member->rank, timeline_word(run, event->func),
                       (unsigned long long)event->seq);
        } else {
            trace_find(findings, "absent", "%s: rank %d has begun nothing", name, member->rank);
        }
    }
}

/* Ranks that call the same with other arguments. */
static void check_arguments(const struct timeline *run, const struct timeline_operation *operation,
                            struct trace_findings *findings)
{
    const struct timeline_part *parts = &run->parts[operation->first];
    const struct timeline_event *first = &run->events[parts[0].event];
    for (uint32_t k = 1; k < operation->count; k++) {
        const struct timeline_event *event = &run->events[parts[k].event];
        bool same = event->count == first->count && event->datatype == first->datatype &&
                    (operation->message || event->peer == first->peer);
        char name[200];
        if (same) continue;
        name_operation(run, operation, name, sizeof(name));
        trace_find(findings, "differ",
                   "%s: rank %d has count %llu, %s, root %d; rank %d count %llu, %s, root %d", name,
                   run->members[first->member].rank, (unsigned long long)first->count,
                   timeline_type_text(run, first->datatype), first->peer,
                   run->members[event->member].rank, (unsigned long long)event->count,
                   timeline_type_text(run, event->datatype), event->peer);
        return;
    }
}

static bool check_operations(const struct timeline *run, struct trace_findings *findings)
{
    struct progress progress = {0};
    bool good = find_progress(run, &progress);
    for (uint32_t c = 0; good && c < run->ncomms; c++) {
        const struct timeline_comm *comm = &run->comms[c];
        if (progress.runs[c]) {
            note_progress(run, c, &progress, findings);
        } else if (comm->nranks > 0 && comm->nmembers < (uint32_t)comm->nranks && !comm->flies) {
            trace_find(findings, "ranks",
                       "communicator %016llx: the files of %u of its %d ranks are here",
                       (unsigned long long)comm->id, comm->nmembers, comm->nranks);
        }
    }
    for (uint32_t o = 0; good && o < run->noperations; o++) {
        const struct timeline_operation *operation = &run->operations[o];
        if (findings->count >= TRACE_FINDINGS_KEPT) break;
        if (run->comms[operation->comm].flies) continue;
        if (!operation->whole && !progress.runs[operation->comm])
            find_absent(run, operation, progress.last, findings);
        check_arguments(run, operation, findings);
    }
    clear_progress(&progress);
    return good;
}

static void report(const struct trace_options *options, const struct timeline *run,
                   const struct trace_findings *findings)
{
    size_t index;
    json_t *found;
    if (options->json) {
        trace_print_json(json_pack(
            "{s:b, s:I, s:I, s:I, s:I, s:O, s:O}", "sound", findings->count == 0, "processes",
            (json_int_t)run->nprocesses, "events", (json_int_t)run->nevents, "operations",
            (json_int_t)run->noperations, "found", (json_int_t)findings->count, "findings",
            findings->list, "notes", findings->notes));
        return;
    }
    json_array_foreach(findings->list, index, found)
    {
        if (index == PRINTED_MOST) break;
        printf("%s\n", json_string_value(json_object_get(found, "text")));
    }
    if (findings->count > PRINTED_MOST)
        printf("and %llu more\n", (unsigned long long)(findings->count - PRINTED_MOST));
    json_array_foreach(findings->notes, index, found) printf("%s\n", json_string_value(found));
    printf("%s: %u events of %u processes, %u operations\n",
           findings->count ? "not sound" : "sound", run->nevents, run->nprocesses,
           run->noperations);
}

int trace_check(const struct trace_options *options)
{
    struct timeline run;
    struct trace_findings findings = {.list = json_array(), .notes = json_array()};
    int status = trace_load(options, 0, options->npaths, &run);
    if (status == 0) {
        check_files(&run, &findings);
        check_events(&run, &findings);
        bool good = check_operations(&run, &findings) && trace_check_flights(&run, &findings);
        status = good ? findings.count > 0 : 1;
        report(options, &run, &findings);
    }
    json_decref(findings.list);
    json_decref(findings.notes);
    timeline_close(&run);
    return status;
}
