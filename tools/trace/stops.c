/* Where a run stopped: operations that never came to their end, who waits in them, and for whom.
 * What it is called is in stop_text.c.
 *
 * A rank waits in an operation when it is the last thing that it began, and another never began
 * it or it has no end. One that waits may keep ranks of other communicators waiting: a cause is a
 * stop whose absent ranks wait for no other. What only a file that breaks off leaves open, while
 * the other ranks went on, is no stop: the end of it was not written.
 *
 * Files of a flight recorder say how far a rank is, whatever is in them: numbers of a communicator
 * count all its collectives. An end that they lack may have come since the last look, so what they
 * leave open is a stop where a rank is not there yet or a rank waits. */
#include "tool.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* What is known while stops are sought. A self is a rank of a process, whose communicators are
 * several members. All owned. */
struct search {
    uint32_t *self;       /* by member */
    uint64_t *keys;       /* by self, while it is numbered */
    int64_t *last_nsec;   /* by self: when it began its last operation; -1: none */
    uint32_t *stamp;      /* by member: the operation that it was last seen in, plus 1 */
    uint64_t *most;       /* by member and function: sequence number of its last, plus 1 */
    uint32_t *place;      /* by function: its place in `most`, plus 1 */
    uint32_t *waits_self; /* by self: the operation it waits in, or TIMELINE_NONE */
    bool *cut;            /* by part: it ended before its time; NULL: none did */
    uint32_t nselves, nfuncs;
};

static void search_fini(struct search *search)
{
    free(search->self);
    free(search->keys);
    free(search->last_nsec);
    free(search->stamp);
    free(search->most);
    free(search->place);
    free(search->waits_self);
}

static int by_key(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static uint64_t self_key(const struct timeline *run, const int *ranks, uint32_t m)
{
    return (uint64_t)run->members[m].process << 32 | (uint32_t)ranks[m];
}

static void number_selves(const struct timeline *run, const int *ranks, struct search *search)
{
    for (uint32_t m = 0; m < run->nmembers; m++)
        search->keys[m] = self_key(run, ranks, m);
    qsort(search->keys, run->nmembers, sizeof(search->keys[0]), by_key);
    for (uint32_t m = 0; m < run->nmembers; m++) {
        if (m && search->keys[m] == search->keys[m - 1]) continue;
        search->keys[search->nselves++] = search->keys[m];
    }
    for (uint32_t m = 0; m < run->nmembers; m++) {
        uint64_t key = self_key(run, ranks, m);
        const uint64_t *found = bsearch(&key, search->keys, search->nselves, sizeof(key), by_key);
        search->self[m] = found ? (uint32_t)(found - search->keys) : 0;
    }
}

static uint64_t *most_of(const struct search *search, uint32_t member, uint16_t func)
{
    return &search->most[(size_t)member * search->nfuncs + search->place[func] - 1];
}

static bool look_at_parts(const struct timeline *run, struct search *search,
                          struct trace_stops *stops)
{
    memset(search->last_nsec, 0xff, run->nmembers * sizeof(search->last_nsec[0]));
    memset(search->waits_self, 0xff, run->nmembers * sizeof(search->waits_self[0]));
    memset(stops->last, 0xff, run->nmembers * sizeof(stops->last[0]));
    for (uint32_t k = 0; k < run->nparts; k++) {
        const struct timeline_event *event = &run->events[run->parts[k].event];
        int64_t *last_nsec = &search->last_nsec[search->self[event->member]];
        uint32_t *last = &stops->last[event->member];
        if (run->parts[k].begin_nsec > *last_nsec) *last_nsec = run->parts[k].begin_nsec;
        if (*last == TIMELINE_NONE ||
            run->events[run->parts[*last].event].start_nsec <= event->start_nsec)
            *last = k;
        if (!search->place[event->func]) search->place[event->func] = ++search->nfuncs;
    }
    search->most = tt_calloc((size_t)run->nmembers * search->nfuncs + 1, sizeof(uint64_t));
    for (uint32_t k = 0; search->most && k < run->nparts; k++) {
        const struct timeline_event *event = &run->events[run->parts[k].event];
        uint64_t *most = most_of(search, event->member, event->func);
        if (event->seq + 1 > *most) *most = event->seq + 1;
    }
    return search->most != NULL;
}

static bool search_init(const struct timeline *run, struct search *search,
                        struct trace_stops *stops)
{
    const size_t most = (size_t)run->nmembers + 1;
    search->self = tt_calloc(most, sizeof(search->self[0]));
    search->keys = tt_calloc(most, sizeof(search->keys[0]));
    search->last_nsec = tt_calloc(most, sizeof(search->last_nsec[0]));
    search->stamp = tt_calloc(most, sizeof(search->stamp[0]));
    search->place = tt_calloc((size_t)run->nwords + 1, sizeof(search->place[0]));
    search->waits_self = tt_calloc(most, sizeof(search->waits_self[0]));
    stops->last = tt_calloc(most, sizeof(stops->last[0]));
    stops->waits_in = tt_calloc(most, sizeof(stops->waits_in[0]));
    stops->ranks = tt_calloc(most, sizeof(stops->ranks[0]));
    bool good = search->self && search->keys && search->last_nsec && search->stamp &&
                search->place && search->waits_self && stops->last && stops->waits_in &&
                stops->ranks && timeline_ranks(run, stops->ranks);
    if (!good) return false;
    number_selves(run, stops->ranks, search);
    return look_at_parts(run, search, stops);
}

/* ---- one operation ---- */

bool trace_breaks_off(const struct timeline *run, uint32_t member)
{
    const struct timeline_process *process = &run->processes[run->members[member].process];
    return !process->ended && !process->runs;
}

bool trace_part_waits(const struct timeline *run, const struct trace_stops *stops,
                      const struct timeline_part *part)
{
    return stops->waits_in[run->events[part->event].member] == part->operation;
}

/* The partner of a message that has but one side, or TIMELINE_NONE. */
static uint32_t find_partner(const struct timeline *run, const struct timeline_operation *operation)
{
    const struct timeline_event *event = &run->events[run->parts[operation->first].event];
    for (uint32_t m = 0; operation->count == 1 && m < run->nmembers; m++) {
        const struct timeline_member *member = &run->members[m];
        if (member->comm == operation->comm && member->rank == event->peer && !member->is_twin)
            return m;
    }
    return TIMELINE_NONE;
}

static bool append_absent(struct trace_stops *stops, uint32_t member)
{
    if ((stops->nabsent & (stops->nabsent - 1)) == 0) {
        size_t room = stops->nabsent ? stops->nabsent * (size_t)2 : 1;
        uint32_t *absent = realloc(stops->absent, room * sizeof(*absent));
        if (!absent) return false;
        stops->absent = absent;
    }
    stops->absent[stops->nabsent++] = member;
    return true;
}

/* By the member's own counter, where its file has one. */
static const struct timeline_flight *flight_of(const struct timeline *run, uint32_t member)
{
    uint32_t flight = run->members[member].flight;
    return flight == TIMELINE_NONE ? NULL : &run->flights[flight];
}

/* One that has no part in it: what lies before a later one of the same function is a hole in the
 * file, and of a flight recorder what is older than its oldest. */
static bool never_began(const struct timeline *run, const struct search *search, uint32_t member,
                        const struct timeline_operation *operation)
{
    const struct timeline_flight *flight = flight_of(run, member);
    if (flight) return flight->begun <= operation->seq; /* equal: it called another one */
    return operation->message || *most_of(search, member, operation->func) <= operation->seq;
}

/* Append those that never began it. */
static bool add_absent(const struct timeline *run, const struct search *search,
                       const struct timeline_operation *operation, struct trace_stops *stops,
                       struct trace_stop *stop)
{
    uint32_t partner = operation->message ? find_partner(run, operation) : TIMELINE_NONE;
    for (uint32_t m = 0; m < run->nmembers; m++) {
        const struct timeline_member *member = &run->members[m];
        if (operation->message && m != partner) continue;
        if (member->comm != operation->comm || member->is_twin) continue;
        if (search->stamp[m] == stop->operation + 1) continue;
        if (!never_began(run, search, m, operation)) continue;
        if (!append_absent(stops, m)) return false;
        stop->count++;
    }
    return true;
}

/* Of a flight recorder: a rank has waited in it. */
static bool waits_inside(const struct timeline *run, const struct timeline_operation *operation)
{
    for (uint32_t k = 0; k < operation->count; k++) {
        const struct timeline_part *part = &run->parts[operation->first + k];
        const struct timeline_flight *flight = flight_of(run, run->events[part->event].member);
        if (part->end_nsec == TIMELINE_OPEN && flight && flight->waits_nsec >= 0) return true;
    }
    return false;
}

/* Whether a rank is missing or inside of it that did not just stop to write its file. */
static bool is_stop(const struct timeline *run, const struct search *search,
                    const struct timeline_operation *operation, const struct trace_stops *stops,
                    const struct trace_stop *stop)
{
    bool went_on = false, known = false, any = stop->count > 0;
    if (run->comms[operation->comm].flies) return any || waits_inside(run, operation);
    for (uint32_t k = 0; k < stop->count; k++)
        known |= !trace_breaks_off(run, stops->absent[stop->first + k]);
    for (uint32_t k = 0; k < operation->count; k++) {
        const struct timeline_part *part = &run->parts[operation->first + k];
        uint32_t member = run->events[part->event].member;
        bool open = part->end_nsec == TIMELINE_OPEN;
        any |= open || part->cut;
        known |= part->cut;
        known |= open && !trace_breaks_off(run, member);
        went_on |= !open && search->last_nsec[search->self[member]] > part->end_nsec;
    }
    return any && (known || !went_on);
}

static void find_waiting(const struct timeline *run, const struct search *search,
                         const struct timeline_operation *operation, struct trace_stop *stop)
{
    stop->since_nsec = operation->last_begin_nsec;
    stop->until_nsec = 0;
    for (uint32_t k = 0; k < operation->count; k++) {
        const struct timeline_part *part = &run->parts[operation->first + k];
        uint32_t self = search->self[run->events[part->event].member];
        bool open = part->end_nsec == TIMELINE_OPEN;
        if (!open && search->last_nsec[self] > part->end_nsec) continue;
        stop->open |= open;
        stop->cut += part->cut;
        if (search->waits_self[self] != TIMELINE_NONE) { /* it cannot begin what is queued */
            stop->behind = search->waits_self[self];
            continue;
        }
        search->waits_self[self] = stop->operation;
        stop->waiting++;
        if (!open && part->end_nsec > stop->until_nsec) stop->until_nsec = part->end_nsec;
    }
    if (stop->waiting) stop->behind = TIMELINE_NONE;
}

static bool look_at(const struct timeline *run, const struct search *search, uint32_t index,
                    struct trace_stops *stops)
{
    const struct timeline_operation *operation = &run->operations[index];
    struct trace_stop stop = {.operation = index, .first = stops->nabsent, .behind = TIMELINE_NONE};
    for (uint32_t k = 0; k < operation->count; k++)
        search->stamp[run->events[run->parts[operation->first + k].event].member] = index + 1;
    if (!add_absent(run, search, operation, stops, &stop)) return false;
    if (!is_stop(run, search, operation, stops, &stop)) {
        stops->nabsent = stop.first;
        return true;
    }
    find_waiting(run, search, operation, &stop);
    stops->list[stops->count++] = stop;
    return true;
}

/* ---- all of them ---- */

static int by_cause(const void *left, const void *right)
{
    const struct trace_stop *a = left, *b = right;
    if (a->cause != b->cause) return a->cause ? -1 : 1;
    if (!a->waiting != !b->waiting) return a->waiting ? -1 : 1;
    return (a->operation > b->operation) - (a->operation < b->operation);
}

/* Ranks of one communicator wait in collectives, each of which the ranks of the others lack. */
static bool called_others(const struct timeline *run, const struct trace_stops *stops)
{
    uint32_t nheld = 0;
    for (uint32_t s = 0; s < stops->count; s++) {
        const struct timeline_operation *op = &run->operations[stops->list[s].operation];
        bool same = op->comm == run->operations[stops->list[0].operation].comm;
        if (stops->list[s].behind != TIMELINE_NONE) continue;
        if (op->message || !same || !stops->list[s].waiting) return false;
        nheld++;
    }
    return nheld > 1;
}

static void find_causes(const struct timeline *run, const struct search *search,
                        struct trace_stops *stops)
{
    for (uint32_t m = 0; m < run->nmembers; m++)
        stops->waits_in[m] = search->waits_self[search->self[m]];
    for (uint32_t s = 0; s < stops->count; s++) {
        struct trace_stop *stop = &stops->list[s];
        if (stop->behind != TIMELINE_NONE) continue;
        stop->cause = stop->count == 0;
        for (uint32_t k = 0; k < stop->count; k++)
            stop->cause |= stops->waits_in[stops->absent[stop->first + k]] == TIMELINE_NONE;
        stops->has_cause |= stop->cause;
    }
    qsort(stops->list, stops->count, sizeof(stops->list[0]), by_cause);
    if (stops->count > 0 && !stops->has_cause) {
        stops->circle = called_others(run, stops)
                            ? "ranks called different operations, and wait for each other"
                            : "ranks wait for each other in a circle";
    }
    for (uint32_t m = 0; m < run->nmembers; m++)
        stops->ranks[m] = run->members[m].rank;
}

/* Whether the operation may be one: it is not whole, and its communicator's files are of one kind
 * and not of ranks that are at work. */
static bool may_stop(const struct timeline *run, const struct timeline_operation *operation)
{
    if (operation->whole) return false;
    if (!run->comms[operation->comm].flies) return true;
    for (uint32_t m = 0; m < run->nmembers; m++) {
        const struct timeline_member *member = &run->members[m];
        if (member->comm == operation->comm && member->flight == TIMELINE_NONE) return false;
    }
    return !trace_flight_at_work(run, operation->comm);
}

bool trace_stops_find(const struct timeline *run, struct trace_stops *stops)
{
    struct search search = {0};
    uint32_t broken = 0;
    *stops = (struct trace_stops){.circle = ""};
    for (uint32_t o = 0; o < run->noperations; o++)
        broken += !run->operations[o].whole;
    if (broken == 0) return true;
    stops->list = tt_calloc(broken, sizeof(stops->list[0]));
    bool good = stops->list && search_init(run, &search, stops);
    for (uint32_t o = 0; good && o < run->noperations && stops->count < TRACE_STOPS_MOST; o++) {
        const struct timeline_operation *operation = &run->operations[o];
        if (may_stop(run, operation)) good = look_at(run, &search, o, stops);
    }
    if (good) find_causes(run, &search, stops);
    if (!good) (void)fprintf(stderr, "tutti trace: out of memory\n");
    search_fini(&search);
    return good;
}

void trace_stops_fini(struct trace_stops *stops)
{
    free(stops->list);
    free(stops->absent);
    free(stops->ranks);
    free(stops->last);
    free(stops->waits_in);
    *stops = (struct trace_stops){0};
}
