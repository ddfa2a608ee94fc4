/* What belongs together at all ranks: collectives by communicator, function and sequence number,
 * and the n-th Send from one rank to another with the n-th Recv there. */
#include "reader.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By what parts are sorted: equal but for `rank` are one operation. */
struct part_key {
    uint32_t comm;
    uint16_t func; /* of a message 0 */
    bool message;
    uint64_t number;          /* sequence number; of a message its sender and receiver */
    uint32_t nth;             /* of equal ones at one rank */
    int rank;                 /* of a message 0 the sender, 1 the receiver */
    bool has_kernel, has_end; /* part's times are of events below it */
    uint32_t member;
    int64_t at_nsec; /* the event's begin: order within a rank */
    struct timeline_part part;
};

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_operation(const struct part_key *a, const struct part_key *b)
{
    int order = compare(a->comm, b->comm);
    if (!order) order = compare(a->message, b->message);
    if (!order) order = compare(a->func, b->func);
    return order ? order : compare(a->number, b->number);
}

static int by_rank(const void *left, const void *right)
{
    const struct part_key *a = left, *b = right;
    int order = compare_operation(a, b);
    if (!order) order = (a->rank > b->rank) - (a->rank < b->rank);
    if (!order) order = compare(a->member, b->member);
    if (!order) order = (a->at_nsec > b->at_nsec) - (a->at_nsec < b->at_nsec);
    return order ? order : compare(a->part.event, b->part.event);
}

static int by_operation(const void *left, const void *right)
{
    const struct part_key *a = left, *b = right;
    int order = compare_operation(a, b);
    if (!order) order = compare(a->nth, b->nth);
    return order ? order : by_rank(left, right);
}

static int by_begin(const void *left, const void *right)
{
    const struct timeline_operation *a = left, *b = right;
    return (a->first_begin_nsec > b->first_begin_nsec) -
           (a->first_begin_nsec < b->first_begin_nsec);
}

/* ---- parts ---- */

static bool is_part(const struct timeline *run, const struct timeline_event *event)
{
    bool type = event->type == TIMELINE_COLL || event->type == TIMELINE_P2P;
    if (!type || event->member == TIMELINE_NONE) return false;
    const struct timeline_member *member = &run->members[event->member];
    return member->comm != TIMELINE_NONE && !member->is_twin;
}

static struct part_key key_of(const struct timeline *run, uint32_t index)
{
    const struct timeline_event *event = &run->events[index];
    const struct timeline_member *member = &run->members[event->member];
    struct part_key key = {
        .comm = member->comm,
        .func = event->func,
        .number = event->seq,
        .rank = member->rank,
        .member = event->member,
        .at_nsec = event->start_nsec,
        .part = {index, TIMELINE_NONE, event->start_nsec, event->stop_nsec, false},
    };
    if (event->type == TIMELINE_P2P) {
        bool receives = !strcmp(timeline_word(run, event->func), "Recv");
        uint32_t from = (uint32_t)(receives ? event->peer : member->rank);
        uint32_t to = (uint32_t)(receives ? member->rank : event->peer);
        key.message = true;
        key.func = 0;
        key.rank = receives;
        key.number = (uint64_t)from << 32 | to;
    }
    return key;
}

/* The state of a kernel's end has no time where an abort ended it. */
static bool is_cut(const struct timeline *run, const struct timeline_event *event)
{
    if (event->states == TIMELINE_NONE) return false;
    const struct timeline_state *state = &run->states[event->states];
    return state->value == 0 && !strcmp(timeline_word(run, state->name), "KernelChStop");
}

/* Begin and end of a part by an event below its own. */
static void set_time(const struct timeline *run, struct part_key *key,
                     const struct timeline_event *event)
{
    struct timeline_part *part = &key->part;
    bool kernel = event->type == TIMELINE_KERNEL_CH;
    part->cut |= kernel && is_cut(run, event);
    if (kernel && (!key->has_kernel || event->start_nsec < part->begin_nsec))
        part->begin_nsec = event->start_nsec;
    bool open = event->stop_nsec == TIMELINE_OPEN;
    bool later = part->end_nsec != TIMELINE_OPEN && event->stop_nsec > part->end_nsec;
    if (!key->has_end || open || later) part->end_nsec = event->stop_nsec;
    key->has_kernel |= kernel;
    key->has_end = true;
}

/* All parts, and their times, in one pass over the events: these are many times the processor's
 * cache. Another one where events stand before what is above them. */
static uint32_t find_parts(const struct timeline *run, struct part_key *keys,
                           uint32_t *key_of_event)
{
    uint32_t nkeys = 0;
    bool again = false;
    memset(key_of_event, 0xff, run->nevents * sizeof(*key_of_event));
    for (uint32_t e = 0; e < run->nevents; e++) {
        const struct timeline_event *event = &run->events[e];
        bool below = event->type == TIMELINE_KERNEL_CH || event->type == TIMELINE_PROXY_OP;
        if (is_part(run, event)) {
            key_of_event[e] = nkeys;
            keys[nkeys++] = key_of(run, e);
        }
        if (!below || event->parent == TIMELINE_NONE) continue;
        again |= event->parent > e;
        uint32_t k = event->parent < e ? key_of_event[event->parent] : TIMELINE_NONE;
        if (k != TIMELINE_NONE) set_time(run, &keys[k], event);
    }
    for (uint32_t e = 0; again && e < run->nevents; e++) {
        const struct timeline_event *event = &run->events[e];
        bool below = event->type == TIMELINE_KERNEL_CH || event->type == TIMELINE_PROXY_OP;
        if (!below || event->parent == TIMELINE_NONE || event->parent < e) continue;
        if (key_of_event[event->parent] != TIMELINE_NONE)
            set_time(run, &keys[key_of_event[event->parent]], event);
    }
    return nkeys;
}

/* What was queued behind a kernel that never came to its end: such a part never began, whatever
 * its Coll says, which ends when it is posted. */
static bool open_queued(const struct timeline *run, struct part_key *keys, uint32_t nkeys)
{
    int64_t *last_nsec = tt_calloc(run->nmembers + (size_t)1, sizeof(*last_nsec));
    bool *held = tt_calloc(run->nmembers + (size_t)1, sizeof(*held));
    for (uint32_t k = 0; last_nsec && held && k < nkeys; k++) {
        const struct part_key *key = &keys[k];
        if (!key->has_kernel || key->at_nsec < last_nsec[key->member]) continue;
        last_nsec[key->member] = key->at_nsec;
        held[key->member] = key->part.cut || key->part.end_nsec == TIMELINE_OPEN;
    }
    for (uint32_t k = 0; last_nsec && held && k < nkeys; k++) {
        struct part_key *key = &keys[k];
        bool expects = run->events[key->part.event].channel > 0 && !key->has_kernel;
        if (expects && held[key->member] && key->at_nsec > last_nsec[key->member])
            key->part.end_nsec = TIMELINE_OPEN;
    }
    bool good = last_nsec && held;
    free(last_nsec);
    free(held);
    return good;
}

/* ---- operations ---- */

/* How many ranks whose files are here take part. */
static uint32_t expected_parts(const struct timeline *run, const struct part_key *key)
{
    const struct timeline_comm *comm = &run->comms[key->comm];
    if (key->message) return comm->nmembers == (uint32_t)comm->nranks ? 2 : 1;
    return comm->nmembers;
}

/* keys[first .. first + count) are one operation. */
static void add_operation(struct timeline *run, const struct part_key *keys, uint32_t first,
                          uint32_t count)
{
    const struct part_key *key = &keys[first];
    struct timeline_operation *operation = &run->operations[run->noperations];
    *operation = (struct timeline_operation){
        .comm = key->comm,
        .first = first,
        .count = count,
        .seq = key->message ? key->nth : key->number,
        .func = run->events[key->part.event].func,
        .message = key->message,
        .whole = count == expected_parts(run, key),
    };
    for (uint32_t k = first; k < first + count; k++) {
        run->parts[k] = keys[k].part;
        run->parts[k].operation = run->noperations;
        if (keys[k].part.end_nsec == TIMELINE_OPEN || keys[k].part.cut) operation->whole = false;
    }
    run->noperations++;
}

/* A rank that is there already: of another run, or from a copy of its file. */
static void report_twin(struct timeline *run, const struct timeline_member *twin,
                        const struct timeline_member *first)
{
    const struct timeline_process *here = &run->processes[twin->process];
    const struct timeline_process *there = &run->processes[first->process];
    bool same = here->pid == there->pid && !strcmp(here->host, there->host);
    const char *path = run->paths[here->file], *other = run->paths[there->file];
    unsigned long long comm = run->comms[twin->comm].id;
    run->complaints++;
    if (same) {
        (void)fprintf(stderr,
                      "%s: rank %d of communicator %016llx is in %s as well, of the same process "
                      "(%d on %s): operations are taken from the latter\n",
                      path, twin->rank, comm, other, here->pid, here->host);
    } else {
        (void)fprintf(stderr,
                      "%s: rank %d of communicator %016llx (process %d on %s) is in %s as well "
                      "(process %d on %s): are they of several runs? Operations are taken from the "
                      "latter\n",
                      path, twin->rank, comm, here->pid, here->host, other, there->pid,
                      there->host);
    }
}

/* Which ranks of each communicator are there, and no rank twice. */
static bool count_members(struct timeline *run)
{
    enum { REPORTED_MOST = 3 };
    struct ids ranks = {0};
    uint32_t ntwins = 0;
    bool good = true;
    for (uint32_t m = 0; good && m < run->nmembers; m++) {
        struct timeline_member *member = &run->members[m];
        if (member->comm == TIMELINE_NONE) continue;
        bool flies = member->flight != TIMELINE_NONE;
        uint64_t key =
            (uint64_t)member->comm << 32 | (uint32_t)flies << 31 | (uint32_t)member->rank;
        uint32_t first = member->rank < 0 ? UINT32_MAX : ids_get(&ranks, key);
        member->is_twin = first != UINT32_MAX && run->members[first].process != member->process;
        if (first == UINT32_MAX && member->rank >= 0) good = ids_put(&ranks, key, m);
        if (!member->is_twin) run->comms[member->comm].nmembers++;
        if (member->is_twin && ++ntwins <= REPORTED_MOST)
            report_twin(run, member, &run->members[first]);
    }
    ids_clear(&ranks);
    if (ntwins > REPORTED_MOST)
        (void)fprintf(stderr, "%u more ranks are in two files\n", ntwins - REPORTED_MOST);
    return good;
}

/* Sorted keys into operations; those of one rank that are equal are numbered first. */
static void join(struct timeline *run, struct part_key *keys, uint32_t nkeys)
{
    timeline_sort(keys, nkeys, sizeof(*keys), by_rank);
    for (uint32_t k = 0; k < nkeys; k++) {
        bool again = k && keys[k].member == keys[k - 1].member &&
                     keys[k].rank == keys[k - 1].rank &&
                     compare_operation(&keys[k], &keys[k - 1]) == 0;
        keys[k].nth = again ? keys[k - 1].nth + 1 : 0;
    }
    timeline_sort(keys, nkeys, sizeof(*keys), by_operation);
    run->nparts = nkeys;
    for (uint32_t k = 0, first = 0; k < nkeys; k++) {
        bool last = k + 1 == nkeys || compare_operation(&keys[k], &keys[k + 1]) != 0 ||
                    keys[k].nth != keys[k + 1].nth;
        if (!last) continue;
        add_operation(run, keys, first, k + 1 - first);
        first = k + 1;
    }
}

bool timeline_match(struct timeline *run)
{
    const size_t most = (size_t)run->reader->nparts + 1;
    struct part_key *keys = tt_calloc(most, sizeof(*keys));
    uint32_t *key_of_event = malloc((run->nevents + (size_t)1) * sizeof(*key_of_event));
    run->parts = tt_calloc(most, sizeof(*run->parts));
    run->operations = tt_calloc(most, sizeof(*run->operations));
    bool good = count_members(run) && keys && key_of_event && run->parts && run->operations;
    const uint32_t nkeys = good ? find_parts(run, keys, key_of_event) : 0;
    if (good) good = open_queued(run, keys, nkeys);
    if (good) join(run, keys, nkeys);
    if (!good) (void)fprintf(stderr, "tutti trace: out of memory\n");
    free(key_of_event);
    free(keys);
    return good;
}

void timeline_time_operations(struct timeline *run)
{
    for (uint32_t o = 0; o < run->noperations; o++) {
        struct timeline_operation *operation = &run->operations[o];
        const struct timeline_part *parts = &run->parts[operation->first];
        operation->first_begin_nsec = operation->last_begin_nsec = parts[0].begin_nsec;
        operation->last_end_nsec = TIMELINE_OPEN;
        for (uint32_t k = 0; k < operation->count; k++) {
            int64_t begin = parts[k].begin_nsec, end = parts[k].end_nsec;
            if (begin < operation->first_begin_nsec) operation->first_begin_nsec = begin;
            if (begin > operation->last_begin_nsec) operation->last_begin_nsec = begin;
            if (end > operation->last_end_nsec) operation->last_end_nsec = end;
        }
    }
    timeline_sort(run->operations, run->noperations, sizeof(run->operations[0]), by_begin);
    for (uint32_t o = 0; o < run->noperations; o++) {
        for (uint32_t k = 0; k < run->operations[o].count; k++)
            run->parts[run->operations[o].first + k].operation = o;
    }
}
