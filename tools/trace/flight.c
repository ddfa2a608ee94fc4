/* What the files of the flight recorder say together: operations are counted alike at all ranks of
 * a communicator, so the number shows which rank is behind and whose call is another. */
#include "tool.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define ASKED "asked for"             /* in the reason of a file that a user asked for */
#define LONG_NSEC INT64_C(1000000000) /* ranks that are well wait for less */

/* A collective of a rank. */
struct call {
    uint32_t comm;
    uint64_t number;
    int rank;
    uint32_t event;
};

static int by_number(const void *left, const void *right)
{
    const struct call *a = left, *b = right;
    if (a->comm != b->comm) return a->comm < b->comm ? -1 : 1;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

struct calls {
    struct call *list; /* owned; by number */
    uint32_t count;
};

/* "AllReduce(count 1000, float, sum)" */
static void call_text(const struct timeline *run, uint32_t index, char *text, size_t bytes)
{
    static const char *const operators[] = {"sum", "prod", "max", "min", "avg"};
    const struct timeline_event *event = &run->events[index];
    const char *func = timeline_word(run, event->func);
    char root[24] = "", operator[32] = "";
    if (event->peer >= 0) (void)snprintf(root, sizeof(root), ", root %d", event->peer);
    if (strstr(func, "Reduce")) {
        bool known = event->steps >= 0 && event->steps < (int)TT_LEN(operators);
        (void)snprintf(operator, sizeof(operator), ", %s",
                       known ? operators[event->steps] : "an operator of its own");
    }
    (void)snprintf(text, bytes, "%s(count %llu, %s%s%s)", func, (unsigned long long)event->count,
                   timeline_type_text(run, event->datatype), operator, root);
}

static bool differ(const struct timeline_event *a, const struct timeline_event *b)
{
    return a->func != b->func || a->count != b->count || a->datatype != b->datatype ||
           a->peer != b->peer || a->steps != b->steps;
}

/* calls[0 .. count) have one number. */
static void check_calls(const struct timeline *run, const struct call *calls, uint32_t count,
                        struct trace_findings *findings)
{
    for (uint32_t k = 1; k < count; k++) {
        char first[200], other[200];
        if (!differ(&run->events[calls[0].event], &run->events[calls[k].event])) continue;
        call_text(run, calls[0].event, first, sizeof(first));
        call_text(run, calls[k].event, other, sizeof(other));
        trace_find(findings, "differ",
                   "communicator %016llx: operation %llu differs: rank %d called %s, rank %d %s",
                   (unsigned long long)run->comms[calls[0].comm].id,
                   (unsigned long long)calls[0].number, calls[0].rank, first, calls[k].rank, other);
        return;
    }
}

/* The call of that number at a rank; "": its file has it no more. */
static void name_call(const struct timeline *run, const struct calls *calls,
                      const struct call *wanted, char *text, size_t bytes)
{
    const struct call *found =
        bsearch(wanted, calls->list, calls->count, sizeof(*wanted), by_number);
    *text = '\0';
    if (found) call_text(run, found->event, text, bytes);
}

static void where_text(const struct timeline *run, const struct timeline_flight *flight, char *text,
                       size_t bytes)
{
    if (flight->waits_nsec < 0) {
        bool over = flight->begun == flight->ended;
        (void)snprintf(text, bytes, over ? "ended" : "under way");
    } else if (flight->waits_for < 0) {
        (void)snprintf(text, bytes, "waits for %.1f s: %s", (double)flight->waits_nsec / 1e9,
                       timeline_word(run, flight->waits));
    } else {
        (void)snprintf(text, bytes, "waits for %.1f s: %s rank %d",
                       (double)flight->waits_nsec / 1e9, timeline_word(run, flight->waits),
                       flight->waits_for);
    }
}

bool trace_flight_waits(const struct timeline *run, const struct timeline_flight *flight,
                        char *text, size_t bytes)
{
    const struct timeline_member *member = &run->members[flight->member];
    if (member->comm == TIMELINE_NONE || flight->waits_nsec < LONG_NSEC) return false;
    if (flight->begun != flight->ended || trace_flight_at_work(run, member->comm)) return false;
    int used = snprintf(text, bytes,
                        "rank %d of communicator %016llx has waited %.1f s in a Send or Recv: %s",
                        member->rank, (unsigned long long)run->comms[member->comm].id,
                        (double)flight->waits_nsec / 1e9, timeline_word(run, flight->waits));
    if (used > 0 && (size_t)used < bytes && flight->waits_for >= 0)
        (void)snprintf(text + used, bytes - (size_t)used, " rank %d", flight->waits_for);
    return true;
}

/* A rank whose file is there. */
struct comm_rank {
    uint32_t comm;
    int rank;
    const struct timeline_flight *flight;
};

static int by_comm_rank(const void *left, const void *right)
{
    const struct comm_rank *a = left, *b = right;
    if (a->comm != b->comm) return a->comm < b->comm ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* A rank that waits, or has begun fewer operations than `most`. */
static void check_rank(const struct timeline *run, const struct comm_rank *own, uint64_t most,
                       const struct calls *calls, struct trace_findings *findings)
{
    const struct timeline_flight *flight = own->flight;
    const struct call wanted = {own->comm, flight->begun, own->rank, 0};
    unsigned long long id = run->comms[own->comm].id;
    bool behind = flight->begun < most;
    char call[200], where[120];
    if (!behind && flight->waits_nsec < 0) return;
    if (!flight->begun && !behind) { /* sends and receives have no number */
        where_text(run, flight, where, sizeof(where));
        trace_find(findings, "waits",
                   "communicator %016llx: rank %d, before its first collective, %s; %llu queued",
                   id, own->rank, where, (unsigned long long)flight->queued);
        return;
    }
    if (!flight->begun) {
        trace_find(findings, "behind",
                   "communicator %016llx: rank %d has begun no operation, others have; %llu queued",
                   id, own->rank, (unsigned long long)flight->queued);
        return;
    }
    name_call(run, calls, &wanted, call, sizeof(call));
    where_text(run, flight, where, sizeof(where));
    trace_find(findings, behind ? "behind" : "waits",
               "communicator %016llx: rank %d is %s operation %llu%s%s, %s%s; %llu queued", id,
               own->rank, behind ? "behind, at" : "at", (unsigned long long)flight->begun,
               *call ? " " : "", call, where, behind ? ", and others have begun more" : "",
               (unsigned long long)flight->queued);
}

/* Files that were asked for were not written at the same moment: ranks that are well differ by a
 * few operations. They stand still when one of them waits for long. */
static bool stands_still(const struct timeline *run, const struct timeline_flight *flight)
{
    const struct timeline_process *process = &run->processes[run->members[flight->member].process];
    return !strstr(process->flight, ASKED) || flight->waits_nsec >= LONG_NSEC;
}

static bool at_work(const struct timeline *run, const struct comm_rank *ranks, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        if (stands_still(run, ranks[k].flight)) return false;
    }
    return true;
}

bool trace_flight_at_work(const struct timeline *run, uint32_t comm)
{
    for (uint32_t f = 0; f < run->nflights; f++) {
        const struct timeline_flight *flight = &run->flights[f];
        if (run->members[flight->member].comm == comm && stands_still(run, flight)) return false;
    }
    return true;
}

/* No rank has anything to do: a communicator that the job does not use now. */
static bool is_idle(const struct comm_rank *ranks, uint32_t count)
{
    bool idle = true;
    for (uint32_t k = 0; k < count; k++) {
        const struct timeline_flight *flight = ranks[k].flight;
        idle = idle && flight->waits_nsec < 0 && flight->queued == 0 &&
               flight->begun == flight->ended && flight->begun == ranks->flight->begun;
    }
    return idle;
}

static void note_at_work(const struct timeline *run, const struct comm_rank *ranks, uint32_t count,
                         struct trace_findings *findings)
{
    const struct timeline_comm *comm = &run->comms[ranks->comm];
    uint64_t least = UINT64_MAX, most = 0;
    char others[64] = "";
    for (uint32_t k = 0; k < count; k++) {
        uint64_t begun = ranks[k].flight->begun;
        least = begun < least ? begun : least;
        most = begun > most ? begun : most;
    }
    if ((int64_t)count < comm->nranks) {
        (void)snprintf(others, sizeof(others), "; %d ranks have no file here",
                       comm->nranks - (int)count);
    }
    if (is_idle(ranks, count)) {
        trace_note(findings,
                   "communicator %016llx: idle: its ranks have ended operation %llu, and nobody "
                   "waits%s",
                   (unsigned long long)comm->id, (unsigned long long)most, others);
        return;
    }
    trace_note(findings,
               "communicator %016llx: at work: its ranks are at operation %llu to %llu, and nobody "
               "has waited for %d s%s",
               (unsigned long long)comm->id, (unsigned long long)least, (unsigned long long)most,
               (int)(LONG_NSEC / 1000000000), others);
}

/* The `count` ranks of a communicator: who has begun fewer operations than others,
 * who waits, and whose file is missing. */
static void check_comm(const struct timeline *run, const struct comm_rank *ranks, uint32_t count,
                       const struct calls *calls, struct trace_findings *findings)
{
    const struct timeline_comm *comm = &run->comms[ranks->comm];
    unsigned long long id = comm->id;
    uint64_t most = 0;
    int next = 0;
    if (at_work(run, ranks, count)) {
        note_at_work(run, ranks, count, findings);
        return;
    }
    for (uint32_t k = 0; k <= count; k++) {
        int rank = k < count ? ranks[k].rank : comm->nranks;
        for (; next < rank && findings->count < TRACE_FINDINGS_KEPT; next++) {
            trace_find(
                findings, "missing",
                "communicator %016llx: rank %d has no file: it was killed, is stopped, or is still "
                "well",
                id, next);
        }
        next = rank + 1;
        if (k < count && ranks[k].flight->begun > most) most = ranks[k].flight->begun;
    }
    for (uint32_t k = 0; k < count; k++)
        check_rank(run, &ranks[k], most, calls, findings);
}

/* Messages between two ranks, from one's file. */
struct pair {
    uint32_t comm;
    int rank, peer;
    uint64_t sent, received;
};

static int by_pair(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    if (a->comm != b->comm) return a->comm < b->comm ? -1 : 1;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return (a->peer > b->peer) - (a->peer < b->peer);
}

/* Whether the communicator's ranks are well. */
static bool comm_at_work(const struct timeline *run, const struct comm_rank *ranks, uint32_t nranks,
                         uint32_t comm)
{
    uint32_t first = 0, last;
    while (first < nranks && ranks[first].comm != comm)
        first++;
    for (last = first; last < nranks && ranks[last].comm == comm;)
        last++;
    return at_work(run, &ranks[first], last - first);
}

/* All pairs in their order; the caller frees them. NULL: memory is short. */
static struct pair *list_pairs(const struct timeline *run)
{
    struct pair *pairs = tt_calloc(run->nmessages + (size_t)1, sizeof(*pairs));
    for (uint32_t i = 0; pairs && i < run->nmessages; i++) {
        const struct timeline_messages *of = &run->messages[i];
        const struct timeline_member *member = &run->members[of->member];
        pairs[i] = (struct pair){member->comm, member->rank, of->peer, of->sent, of->received};
    }
    if (pairs) qsort(pairs, run->nmessages, sizeof(*pairs), by_pair);
    return pairs;
}

/* A pair with two lines is looked at from the sender's, one with one from that. */
static void report_pair(const struct timeline *run, const struct pair *own, uint64_t received,
                        struct trace_findings *findings)
{
    unsigned long long id = run->comms[own->comm].id;
    if (received != own->sent) {
        trace_find(findings, "messages",
                   "communicator %016llx: rank %d has begun %llu sends to rank %d, which has "
                   "begun %llu receives of it",
                   id, own->rank, (unsigned long long)own->sent, own->peer,
                   (unsigned long long)received);
    } else {
        trace_find(findings, "messages",
                   "communicator %016llx: rank %d has begun %llu receives of rank %d, which "
                   "has begun no send to it",
                   id, own->rank, (unsigned long long)own->received, own->peer);
    }
}

/* What one rank has sent and the other has not asked for, or the other way round. */
static bool check_messages(const struct timeline *run, const struct comm_rank *ranks,
                           uint32_t nranks, struct trace_findings *findings)
{
    uint32_t npairs = run->nmessages, judged = TIMELINE_NONE;
    bool well = false;
    struct pair *pairs = list_pairs(run);
    if (!pairs) return false;
    for (uint32_t i = 0; i < npairs; i++) {
        const struct pair *own = &pairs[i], turned = {own->comm, own->peer, own->rank, 0, 0};
        const struct comm_rank peer = {own->comm, own->peer, NULL};
        const struct pair *other = bsearch(&turned, pairs, npairs, sizeof(*pairs), by_pair);
        uint64_t received = other ? other->received : 0;
        bool there = bsearch(&peer, ranks, nranks, sizeof(*ranks), by_comm_rank) != NULL;
        if (!there || own->comm == TIMELINE_NONE) continue;
        if (received == own->sent && (other || own->received == 0)) continue;
        if (own->comm != judged) well = comm_at_work(run, ranks, nranks, own->comm);
        judged = own->comm;
        if (well) continue;
        report_pair(run, own, received, findings);
    }
    free(pairs);
    return true;
}

static void check_reasons(const struct timeline *run, struct trace_findings *findings)
{
    for (uint32_t p = 0; p < run->nprocesses; p++) {
        const struct timeline_process *process = &run->processes[p];
        if (!*process->flight || strstr(process->flight, ASKED)) continue;
        trace_find(findings, "written", "process %d on %s wrote its file because: %s", process->pid,
                   process->host, process->flight);
    }
}

static bool gather_calls(const struct timeline *run, struct calls *calls)
{
    calls->list = tt_calloc(run->nevents + (size_t)1, sizeof(calls->list[0]));
    for (uint32_t e = 0; calls->list && e < run->nevents; e++) {
        const struct timeline_event *event = &run->events[e];
        if (event->type != TIMELINE_COLL || event->member == TIMELINE_NONE) continue;
        const struct timeline_member *member = &run->members[event->member];
        if (member->flight == TIMELINE_NONE || member->comm == TIMELINE_NONE) continue;
        calls->list[calls->count++] = (struct call){member->comm, event->seq, member->rank, e};
    }
    if (calls->list) qsort(calls->list, calls->count, sizeof(calls->list[0]), by_number);
    return calls->list != NULL;
}

bool trace_check_flights(const struct timeline *run, struct trace_findings *findings)
{
    struct calls calls = {0};
    uint32_t nranks = 0;
    if (run->nflights == 0) return true;
    struct comm_rank *ranks = tt_calloc(run->nflights, sizeof(*ranks));
    bool good = ranks && gather_calls(run, &calls);
    for (uint32_t f = 0; good && f < run->nflights; f++) {
        const struct timeline_member *member = &run->members[run->flights[f].member];
        if (member->comm == TIMELINE_NONE) continue;
        ranks[nranks++] = (struct comm_rank){member->comm, member->rank, &run->flights[f]};
    }
    if (good) qsort(ranks, nranks, sizeof(*ranks), by_comm_rank);
    for (uint32_t k = 0, first = 0; good && k < calls.count; k++) {
        const struct call *call = &calls.list[k];
        if (k + 1 < calls.count && call[0].comm == call[1].comm && call[0].number == call[1].number)
            continue;
        check_calls(run, &calls.list[first], k + 1 - first, findings);
        first = k + 1;
    }
    for (uint32_t k = 0, first = 0; good && k < nranks; k++) {
        if (k + 1 < nranks && ranks[k].comm == ranks[k + 1].comm) continue;
        check_comm(run, &ranks[first], k + 1 - first, &calls, findings);
        first = k + 1;
    }
    if (good) good = check_messages(run, ranks, nranks, findings);
    if (good) check_reasons(run, findings);
    free(ranks);
    free(calls.list);
    return good;
}
