/* Where a run stopped, in words and as JSON. */
#include "tool.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED_MOST = 6, REASONS_MOST = 3 };

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
    if (trace_breaks_off(run, member))
        say(words, ", and its file breaks off: it died or was killed");
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

/* Whose file is not here. `ranks` has room for those who are. */
static void say_missing(const struct timeline *run, const struct timeline_operation *op, int *ranks,
                        struct words *words)
{
    const struct timeline_comm *comm = &run->comms[op->comm];
    uint32_t here = 0, missing = 0;
    int next = 0;
    if (op->message || comm->nmembers != op->count || (int64_t)comm->nmembers >= comm->nranks)
        return;
    for (uint32_t k = 0; k < op->count; k++)
        ranks[here++] = run->members[run->events[run->parts[op->first + k].event].member].rank;
    qsort(ranks, here, sizeof(ranks[0]), by_number);
    say(words, ", and there is no file of rank");
    for (uint32_t k = 0; k <= here; k++) {
        const int end = k < here ? ranks[k] : comm->nranks;
        for (; next < end && missing <= LISTED_MOST; next++) {
            say(words, missing == LISTED_MOST ? " and more" : missing ? ", %d" : " %d", next);
            missing++;
        }
        next = end + 1;
    }
}

/* For whom those wait of whom a flight recorder says it: "; rank 1 waits: data of rank 0". */
static void say_flights(const struct timeline *run, const struct trace_stops *stops,
                        const struct timeline_operation *op, struct words *words)
{
    uint32_t said = 0;
    for (uint32_t k = 0; k < op->count && said < REASONS_MOST; k++) {
        uint32_t member = run->events[run->parts[op->first + k].event].member;
        uint32_t number = run->members[member].flight;
        const struct timeline_flight *flight =
            number == TIMELINE_NONE ? NULL : &run->flights[number];
        if (!flight || flight->waits_nsec < 0 || !flight->waits) continue;
        say(words, "; rank %d has waited %.1f s: %s", stops->ranks[member],
            (double)flight->waits_nsec / 1e9, timeline_word(run, flight->waits));
        if (flight->waits_for >= 0) say(words, " rank %d", flight->waits_for);
        said++;
    }
}

/* All have ended it, but not by themselves. */
static void say_cut(const struct trace_stop *stop, const struct timeline_operation *op,
                    struct words *words)
{
    if (stop->cut < op->count) say(words, "at %u of %u ranks ", stop->cut, op->count);
    say(words,
        "it did not come to its end by itself: an error, a time-out or an abort cut it off ");
    say_time(words, op->last_end_nsec - op->last_begin_nsec);
    say(words, " after the last one had begun it");
}

/* No rank is absent: who did not end it. */
static void say_open(const struct timeline *run, const struct trace_stops *stops,
                     const struct trace_stop *stop, int *ranks, struct words *words)
{
    const struct timeline_operation *op = &run->operations[stop->operation];
    uint32_t open = 0, cut = 0;
    for (uint32_t k = 0; k < op->count; k++) {
        const struct timeline_part *part = &run->parts[op->first + k];
        if (part->end_nsec == TIMELINE_OPEN)
            ranks[open++] = stops->ranks[run->events[part->event].member];
    }
    say(words, "all its ranks whose files are here began it; ");
    if (open == 0) {
        say_cut(stop, op, words);
        return;
    }
    say_ranks(words, ranks, open);
    say(words, " did not end it");
    say_missing(run, op, ranks, words);
    say_flights(run, stops, op, words);
    for (uint32_t k = 0; k < op->count; k++) {
        uint32_t member = run->events[run->parts[op->first + k].event].member;
        bool open_here = run->parts[op->first + k].end_nsec == TIMELINE_OPEN;
        if (open_here && trace_breaks_off(run, member)) ranks[cut++] = stops->ranks[member];
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
        say_open(run, stops, stop, ranks, &words);
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

/* Those that wait behind the same one, from `first` on, are one line. */
static uint32_t count_queued(const struct trace_stops *stops, uint32_t first)
{
    uint32_t count = 1;
    while (stops->list[first].behind != TIMELINE_NONE && first + count < stops->count &&
           stops->list[first + count].behind == stops->list[first].behind)
        count++;
    return count;
}

void trace_stops_print(const struct timeline *run, const struct trace_stops *stops,
                       const char *head)
{
    enum { PRINTED_MOST = 8 };
    uint32_t next = 0;
    if (*stops->circle) printf("%s%s:\n", head, stops->circle);
    for (int lines = 0; lines < PRINTED_MOST && next < stops->count; lines++) {
        const struct trace_stop *stop = &stops->list[next];
        char name[200], text[TRACE_STOP_BYTES], more[40] = "";
        uint32_t count = count_queued(stops, next);
        name_stop(run, stops, stop, name, sizeof(name));
        trace_stop_text(run, stops, stop, text, sizeof(text));
        if (count > 1) (void)snprintf(more, sizeof(more), " and %u more", count - 1);
        printf("%s%s%s%s: %s\n", head, stop->cause && stop->waiting ? "stopped in " : "", name,
               more, text);
        next += count;
    }
    if (next < stops->count)
        printf("%sand %u more operations without an end\n", head, stops->count - next);
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
    return json_pack("{s:s, s:I, s:s, s:b, s:o, s:o, s:o, s:i, s:s}", "function",
                     timeline_word(run, op->func), "number", (json_int_t)op->seq, "communicator",
                     id, "cause", (int)stop->cause, "waiting", waiting, "absent", absent, "open",
                     open, "cut", (int)stop->cut, "text", text);
}

json_t *trace_stops_json(const struct timeline *run, const struct trace_stops *stops)
{
    json_t *list = json_array();
    for (uint32_t s = 0; s < stops->count; s++)
        json_array_append_new(list, stop_json(run, stops, &stops->list[s]));
    return list;
}
