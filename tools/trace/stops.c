/* Where a run stopped: operations that never came to their end, who waits in them, and for whom.
 *
 * A rank waits in an operation when it is the last thing that it began, and another never began
 * it or it has no end. One that waits may keep ranks of other communicators waiting: a cause is a
 * stop whose absent ranks wait for no other. What only a file that breaks off leaves open, while
 * the other ranks went on, is no stop: the end of it was not written. */
#include "tool.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED_MOST = 6, REASONS_MOST = 3 };

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

static bool breaks_off(const struct timeline *run, uint32_t member)
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

/* Append those that never began it: without what lies before a later one of the same function,
 * which is a hole in the file. */
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
        bool hole = !operation->message && *most_of(search, m, operation->func) > operation->seq;
        if (hole) continue;
        if (!append_absent(stops, m)) return false;
        stop->count++;
    }
    return true;
}

/* Whether a rank is missing or inside of it that did not just stop to write its file. */
static bool is_stop(const struct timeline *run, const struct search *search,
                    const struct timeline_operation *operation, const struct trace_stops *stops,
                    const struct trace_stop *stop)
{
    bool went_on = false, known = false, any = stop->count > 0;
    for (uint32_t k = 0; k < stop->count; k++)
        known |= !breaks_off(run, stops->absent[stop->first + k]);
    for (uint32_t k = 0; k < operation->count; k++) {
        const struct timeline_part *part = &run->parts[operation->first + k];
        uint32_t member = run->events[part->event].member;
        bool open = part->end_nsec == TIMELINE_OPEN;
        any |= open;
        known |= open && !breaks_off(run, member);
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
    for (uint32_t m = 0; m < run->nmembers; m++)
        stops->ranks[m] = run->members[m].rank;
}

bool trace_stops_find(const struct timeline *run, struct trace_stops *stops)
{
    struct search search = {0};
    uint32_t broken = 0;
    *stops = (struct trace_stops){0};
    for (uint32_t o = 0; o < run->noperations; o++)
        broken += !run->operations[o].whole && !run->comms[run->operations[o].comm].flies;
    if (broken == 0) return true;
    stops->list = tt_calloc(broken, sizeof(stops->list[0]));
    bool good = stops->list && search_init(run, &search, stops);
    for (uint32_t o = 0; good && o < run->noperations && stops->count < TRACE_STOPS_MOST; o++) {
        const struct timeline_operation *operation = &run->operations[o];
        if (operation->whole || run->comms[operation->comm].flies) continue;
        good = look_at(run, &search, o, stops);
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

/* ---- in words ---- */

struct words {
    char *text;
    size_t bytes, used;
};
static void say(struct words *words, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct words *words, const char *fmt, ...)
{
    va_list args;
    if (words->used >= words->bytes) return;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    int more = vsnprintf(words->text + words->used, words->bytes - words->used, fmt, args);
    va_end(args);
    if (more > 0) words->used += (size_t)more;
}

static void say_time(struct words *words, int64_t nsec)
{
    if (nsec >= 1000000000) {
        say(words, "%.2f s", (double)nsec / 1e9);
    } else {
        say(words, nsec >= 1000000 ? "%.2f ms" : "%.3f ms", (double)nsec / 1e6);
    }
}

static int by_number(const void *left, const void *right)
{
    const int *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* "rank 2", "ranks 0 to 3 and 7"; sorts them. */
static void say_ranks(struct words *words, int *ranks, uint32_t count)
{
    uint32_t said = 0;
    qsort(ranks, count, sizeof(ranks[0]), by_number);
    say(words, count == 1 ? "rank" : "ranks");
    for (uint32_t k = 0; k < count;) {
        uint32_t run = 1;
        while (k + run < count && ranks[k + run] == ranks[k] + (int)run)
            run++;
        if (run == 2) run = 1;
        if (said == LISTED_MOST) {
            say(words, " and %u more", count - k);
            return;
        }
        say(words, said == 0 ? " %d" : k + run == count ? " and %d" : ", %d", ranks[k]);
        if (run > 1) say(words, " to %d", ranks[k + run - 1]);
        k += run;
        said++;
    }
}

static void say_operation(const struct timeline *run, struct words *words, uint32_t operation,
                          uint32_t comm)
{
    const struct timeline_operation *op = &run->operations[operation];
    say(words, "%s #%llu", timeline_word(run, op->func), (unsigned long long)op->seq);
    if (op->comm != comm)
        say(words, " of communicator %016llx", (unsigned long long)run->comms[op->comm].id);
}

/* What an absent rank does instead: "has begun nothing". */
static void say_reason(const struct timeline *run, const struct trace_stops *stops, uint32_t member,
                       uint32_t comm, struct words *words)
{
    uint32_t waits = stops->waits_in[member], last = stops->last[member];
    if (waits != TIMELINE_NONE) {
        say(words, "waits in ");
        say_operation(run, words, waits, comm);
    } else if (last == TIMELINE_NONE) {
        say(words, "has begun nothing");
    } else {
        const struct timeline_part *part = &run->parts[last];
        bool open = part->end_nsec == TIMELINE_OPEN;
        say(words, open ? "began " : "ended ");
        say_operation(run, words, part->operation, comm);
        say(words, " at ");
        say_time(words, open ? part->begin_nsec : part->end_nsec);
        say(words, " and nothing after it");
    }
    if (breaks_off(run, member)) say(words, ", and its file breaks off: it died or was killed");
}

static void say_reasons(const struct timeline *run, const struct trace_stops *stops,
                        const struct trace_stop *stop, struct words *words)
{
    const uint32_t *absent = &stops->absent[stop->first];
    uint32_t comm = run->operations[stop->operation].comm;
    if (stop->count == 1) {
        say(words, "it ");
        say_reason(run, stops, absent[0], comm, words);
        return;
    }
    for (uint32_t k = 0; k < stop->count && k < REASONS_MOST; k++) {
        say(words, "%srank %d ", k ? "; " : "", stops->ranks[absent[k]]);
        say_reason(run, stops, absent[k], comm, words);
    }
    if (stop->count > REASONS_MOST) say(words, "; and so on");
}

/* No rank is absent: who did not end it. */
static void say_open(const struct timeline *run, const struct trace_stops *stops,
                     const struct timeline_operation *op, int *ranks, struct words *words)
{
    uint32_t open = 0, cut = 0;
    for (uint32_t k = 0; k < op->count; k++) {
        const struct timeline_part *part = &run->parts[op->first + k];
        if (part->end_nsec == TIMELINE_OPEN)
            ranks[open++] = stops->ranks[run->events[part->event].member];
    }
    say(words, "all its ranks whose files are here began it; ");
    say_ranks(words, ranks, open);
    say(words, " did not end it");
    for (uint32_t k = 0; k < op->count; k++) {
        uint32_t member = run->events[run->parts[op->first + k].event].member;
        bool open_here = run->parts[op->first + k].end_nsec == TIMELINE_OPEN;
        if (open_here && breaks_off(run, member)) ranks[cut++] = stops->ranks[member];
    }
    if (cut == 0) return;
    say(words, cut == 1 ? "; the file of " : "; the files of ");
    say_ranks(words, ranks, cut);
    say(words, cut == 1 ? " breaks off in it: it died or was killed"
                        : " break off in it: they died or were killed");
}

/* Who waits, and for how long. */
static void say_waiting(const struct timeline *run, const struct trace_stops *stops,
                        const struct trace_stop *stop, int *ranks, struct words *words)
{
    const struct timeline_operation *op = &run->operations[stop->operation];
    uint32_t waiting = 0;
    for (uint32_t k = 0; k < op->count; k++) {
        const struct timeline_part *part = &run->parts[op->first + k];
        if (trace_part_waits(run, stops, part))
            ranks[waiting++] = stops->ranks[run->events[part->event].member];
    }
    if (waiting == 0) {
        ranks[0] = stops->ranks[run->events[run->parts[op->first].event].member];
        say_ranks(words, ranks, 1);
        say(words, " ended it without ");
        return;
    }
    say_ranks(words, ranks, waiting);
    if (stop->open) {
        say(words, waiting == 1 ? " has waited since " : " have waited since ");
        say_time(words, stop->since_nsec);
    } else {
        say(words, " waited ");
        say_time(words, stop->until_nsec - op->first_begin_nsec);
    }
    say(words, " for ");
}

void trace_stop_text(const struct timeline *run, const struct trace_stops *stops,
                     const struct trace_stop *stop, char *text, size_t bytes)
{
    const struct timeline_operation *op = &run->operations[stop->operation];
    struct words words = {.text = text, .bytes = bytes};
    uint32_t most = op->count > stop->count ? op->count : stop->count;
    int *ranks = tt_calloc((size_t)most + 1, sizeof(*ranks));
    *text = '\0';
    if (!ranks) return;
    if (stop->behind != TIMELINE_NONE) {
        say(&words, "queued behind ");
        say_operation(run, &words, stop->behind, op->comm);
        say(&words, ", which came to no end");
    } else if (stop->count == 0) {
        say_open(run, stops, op, ranks, &words);
    } else {
        bool sends = !strcmp(timeline_word(run, op->func), "Send");
        say_waiting(run, stops, stop, ranks, &words);
        for (uint32_t k = 0; k < stop->count; k++)
            ranks[k] = stops->ranks[stops->absent[stop->first + k]];
        say_ranks(&words, ranks, stop->count);
        say(&words, ", which never began %s: ",
            !op->message ? "it"
            : sends      ? "its Recv"
                         : "its Send");
        say_reasons(run, stops, stop, &words);
    }
    free(ranks);
}

/* "AllReduce #0 of communicator 20134175b21be4fa", "Send #0 of rank 0 to rank 1 of ...". */
static void name_stop(const struct timeline *run, const struct trace_stops *stops,
                      const struct trace_stop *stop, char *text, size_t bytes)
{
    const struct timeline_operation *op = &run->operations[stop->operation];
    const struct timeline_event *event = &run->events[run->parts[op->first].event];
    struct words words = {.text = text, .bytes = bytes};
    *text = '\0';
    say_operation(run, &words, stop->operation, op->comm);
    if (op->message) {
        say(&words, " of rank %d %s rank %d", stops->ranks[event->member],
            strcmp(timeline_word(run, op->func), "Recv") != 0 ? "to" : "from", event->peer);
    }
    say(&words, " of communicator %016llx", (unsigned long long)run->comms[op->comm].id);
}

void trace_stops_print(const struct timeline *run, const struct trace_stops *stops,
                       const char *head)
{
    enum { PRINTED_MOST = 8 };
    if (stops->count > 0 && !stops->has_cause)
        printf("%sranks wait for each other in a circle:\n", head);
    for (uint32_t s = 0; s < stops->count && s < PRINTED_MOST; s++) {
        const struct trace_stop *stop = &stops->list[s];
        char name[200], text[TRACE_STOP_BYTES];
        name_stop(run, stops, stop, name, sizeof(name));
        trace_stop_text(run, stops, stop, text, sizeof(text));
        printf("%s%s%s: %s\n", head, stop->cause && stop->waiting ? "stopped in " : "", name, text);
    }
    if (stops->count > PRINTED_MOST)
        printf("%sand %u more operations without an end\n", head, stops->count - PRINTED_MOST);
}

static json_t *stop_json(const struct timeline *run, const struct trace_stops *stops,
                         const struct trace_stop *stop)
{
    const struct timeline_operation *op = &run->operations[stop->operation];
    char id[24], text[TRACE_STOP_BYTES];
    json_t *waiting = json_array(), *absent = json_array(), *open = json_array();
    for (uint32_t k = 0; k < op->count; k++) {
        const struct timeline_part *part = &run->parts[op->first + k];
        int rank = stops->ranks[run->events[part->event].member];
        if (trace_part_waits(run, stops, part)) json_array_append_new(waiting, json_integer(rank));
        if (part->end_nsec == TIMELINE_OPEN) json_array_append_new(open, json_integer(rank));
    }
    for (uint32_t k = 0; k < stop->count; k++) {
        int rank = stops->ranks[stops->absent[stop->first + k]];
        json_array_append_new(absent, json_integer(rank));
    }
    (void)snprintf(id, sizeof(id), "%016llx", (unsigned long long)run->comms[op->comm].id);
    trace_stop_text(run, stops, stop, text, sizeof(text));
    return json_pack("{s:s, s:I, s:s, s:b, s:o, s:o, s:o, s:s}", "function",
                     timeline_word(run, op->func), "number", (json_int_t)op->seq, "communicator",
                     id, "cause", (int)stop->cause, "waiting", waiting, "absent", absent, "open",
                     open, "text", text);
}

json_t *trace_stops_json(const struct timeline *run, const struct trace_stops *stops)
{
    json_t *list = json_array();
    for (uint32_t s = 0; s < stops->count; s++)
        json_array_append_new(list, stop_json(run, stops, &stops->list[s]));
    return list;
}
