/* One clock for all hosts. A rank cannot end an AllReduce before all have begun it: each collective
 * says of two hosts' clocks that their difference is at most so much, and the smallest of these
 * bounds in either direction leave an interval. Its middle is taken, half its width is the error.
 * Bounds over a third host count, too. Where no collective joins two hosts their wall clocks do.
 *
 * x[a] + begin[a] <= x[b] + end[b]  for all a that give and b that get
 * bound[a][b] = least end[b] - begin[a],  so that x[a] - x[b] <= bound[a][b] */
#include "reader.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CLOCKS = 256 };
static const int64_t no_bound = INT64_MAX / 4;
static const int64_t same_wall_nsec = 10000000000; /* clocks of one host agree at least so much */

static const double most_drift = 1e-2; /* a clock that is worse is none */

/* The moments of one clock in an operation. */
struct moment {
    int64_t begin_nsec, end_nsec; /* the last of those that give, the first of those that get */
};

struct window {
    int64_t from_nsec, to_nsec; /* on the wall clock */
    int64_t *bounds;            /* owned; nclocks by nclocks */
};

static int64_t wall_offset(const struct timeline_process *process)
{
    return (int64_t)(process->wall_nsec - process->mono_nsec);
}

static bool find_clocks(struct timeline *run)
{
    for (uint32_t p = 0; p < run->nprocesses; p++) {
        struct timeline_process *process = &run->processes[p];
        uint32_t c = 0;
        for (; c < run->nclocks; c++) {
            int64_t apart = wall_offset(process) - run->clocks[c].offset_nsec;
            bool near = apart < same_wall_nsec && apart > -same_wall_nsec;
            if (!strcmp(run->clocks[c].host, process->host) && near) break;
        }
        process->clock = c;
        if (c < run->nclocks) continue;
        if (!timeline_grow(run, &run->clocks, c, sizeof(run->clocks[0]))) return false;
        run->clocks[c] = (struct timeline_clock){.offset_nsec = wall_offset(process)};
        memcpy(run->clocks[c].host, process->host, sizeof(process->host));
        run->nclocks++;
    }
    for (uint32_t c = run->nclocks; c-- > 0;) {
        run->clocks[c].offset_nsec -= run->clocks[0].offset_nsec;
        run->clocks[c].error_nsec = c ? -1 : 0;
    }
    return true;
}

static uint32_t clock_of(const struct timeline *run, const struct timeline_event *event)
{
    return run->processes[run->members[event->member].process].clock;
}

/* Who must have begun before whom can end, by the function; a message's Recv waits for its Send. */
static void who_waits(const struct timeline *run, const struct timeline_operation *operation,
                      const struct timeline_event *event, bool *gives, bool *gets)
{
    const char *func = timeline_word(run, operation->func);
    bool is_root = run->members[event->member].rank == event->peer;
    *gives = *gets = true;
    if (!strcmp(func, "Broadcast") || !strcmp(func, "Scatter")) *gives = is_root;
    if (!strcmp(func, "Reduce") || !strcmp(func, "Gather")) *gets = is_root;
    if (operation->message) {
        *gets = !strcmp(timeline_word(run, event->func), "Recv");
        *gives = !*gets;
    }
}

/* By what one operation says of each pair of clocks. */
static void lower_bounds(const struct window *window, const struct moment *moments,
                         uint32_t nclocks)
{
    for (uint32_t a = 0; a < nclocks; a++) {
        int64_t *bounds = &window->bounds[(size_t)a * nclocks];
        for (uint32_t b = 0; b < nclocks; b++) {
            if (moments[a].begin_nsec == -no_bound || moments[b].end_nsec == no_bound) continue;
            int64_t found = moments[b].end_nsec - moments[a].begin_nsec;
            if (found < bounds[b]) bounds[b] = found;
        }
    }
}

/* Bounds of one operation. moments has room for all clocks. */
static void bound_operation(const struct timeline *run, uint32_t index, const struct window *window,
                            struct moment *moments)
{
    const struct timeline_operation *operation = &run->operations[index];
    for (uint32_t c = 0; c < run->nclocks; c++)
        moments[c] = (struct moment){-no_bound, no_bound};
    for (uint32_t k = 0; k < operation->count; k++) {
        const struct timeline_part *part = &run->parts[operation->first + k];
        const struct timeline_event *event = &run->events[part->event];
        uint32_t clock = clock_of(run, event);
        int64_t at_nsec = part->begin_nsec + run->clocks[clock].offset_nsec;
        bool gives = true, gets = true;
        if (at_nsec < window->from_nsec || at_nsec >= window->to_nsec) return;
        who_waits(run, operation, event, &gives, &gets);
        if (gives && part->begin_nsec > moments[clock].begin_nsec)
            moments[clock].begin_nsec = part->begin_nsec;
        if (gets && part->end_nsec < moments[clock].end_nsec)
            moments[clock].end_nsec = part->end_nsec;
    }
    lower_bounds(window, moments, run->nclocks);
}

/* All bounds within the window, those over other hosts as well. False: they contradict each other
 * (the clocks run at different speeds), or memory is short (bounds NULL). */
static bool find_bounds(const struct timeline *run, struct window *window)
{
    uint32_t n = run->nclocks;
    int64_t *bounds = tt_calloc((size_t)n * n, sizeof(*bounds));
    struct moment *moments = tt_calloc(n, sizeof(*moments));
    bool agree = true;
    window->bounds = bounds;
    if (!bounds || !moments) goto out;
    for (uint32_t i = 0; i < n * n; i++)
        bounds[i] = no_bound;
    for (uint32_t o = 0; o < run->noperations; o++) {
        if (run->operations[o].whole) bound_operation(run, o, window, moments);
    }
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t pair = 0; pair < n * n; pair++) {
            uint32_t a = pair / n, b = pair % n;
            int64_t over = bounds[a * n + k] + bounds[k * n + b];
            if (a != b && over < bounds[pair]) bounds[pair] = over;
        }
    }
    for (uint32_t c = 1; c < n; c++) {
        bool both = bounds[c] < no_bound / 2 && bounds[c * n] < no_bound / 2;
        if (both && bounds[c] + bounds[c * n] < 0) agree = false;
    }
out:
    free(moments);
    return agree;
}

/* The offset in the middle of the interval. False: nothing bounds it from both sides. */
static bool middle(const struct timeline *run, const struct window *window, uint32_t clock,
                   int64_t *offset_nsec, int64_t *error_nsec)
{
    int64_t high = window->bounds[clock * run->nclocks], low = -window->bounds[clock];
    if (high >= no_bound / 2 || low <= -no_bound / 2) return false;
    *offset_nsec = low + (high - low) / 2;
    *error_nsec = high > low ? (high - low + 1) / 2 : (low - high + 1) / 2;
    return true;
}

/* First and last begin of an operation on the wall clock; from > to: there is none. */
static struct window whole_run(const struct timeline *run)
{
    struct window all = {.from_nsec = INT64_MAX, .to_nsec = INT64_MIN};
    for (uint32_t k = 0; k < run->nparts; k++) {
        const struct timeline_part *part = &run->parts[k];
        int64_t at_nsec =
            part->begin_nsec + run->clocks[clock_of(run, &run->events[part->event])].offset_nsec;
        if (at_nsec < all.from_nsec) all.from_nsec = at_nsec;
        if (at_nsec >= all.to_nsec) all.to_nsec = at_nsec + 1;
    }
    return all;
}

/* Two halves of the run, each with an offset of its own: the line through both is the clock's. */
static void set_drift(struct timeline *run, const struct window *first, const struct window *second)
{
    double length = (double)(second->to_nsec - first->from_nsec) / 2;
    for (uint32_t c = 1; c < run->nclocks; c++) {
        struct timeline_clock *clock = &run->clocks[c];
        int64_t at[2], error[2];
        if (!middle(run, first, c, &at[0], &error[0])) continue;
        if (!middle(run, second, c, &at[1], &error[1])) continue;
        int64_t quarter_nsec = first->from_nsec + (first->to_nsec - first->from_nsec) / 2;
        /* the wall clock's offset is in from_nsec, the clock's own time is without it */
        double since = (double)(run->origin_nsec - (quarter_nsec - clock->offset_nsec));
        clock->drift = (double)(at[1] - at[0]) / length;
        if (clock->drift > most_drift || clock->drift < -most_drift) clock->drift = 0;
        clock->offset_nsec = at[0] + (int64_t)(clock->drift * since);
        clock->error_nsec = error[0] > error[1] ? error[0] : error[1];
        clock->by_operations = true;
    }
}

static bool measure(struct timeline *run)
{
    if (run->nparts == 0) return true; /* no operation, no window */
    struct window all = whole_run(run), first, second;
    bool agree = find_bounds(run, &all);
    if (!all.bounds) return false;
    first = second = all;
    first.to_nsec = second.from_nsec = all.from_nsec + (all.to_nsec - all.from_nsec) / 2;
    if (!agree) {
        (void)find_bounds(run, &first);
        (void)find_bounds(run, &second);
        if (first.bounds && second.bounds) set_drift(run, &first, &second);
        agree = first.bounds && second.bounds;
        free(first.bounds);
        free(second.bounds);
    } else {
        for (uint32_t c = 1; c < run->nclocks; c++) {
            struct timeline_clock *clock = &run->clocks[c];
            if (middle(run, &all, c, &clock->offset_nsec, &clock->error_nsec))
                clock->by_operations = true;
        }
    }
    free(all.bounds);
    return agree;
}

static int64_t on_run_clock(const struct timeline *run, const struct timeline_clock *clock,
                            int64_t at_nsec)
{
    if (at_nsec == TIMELINE_OPEN) return at_nsec;
    int64_t drifted = (int64_t)(clock->drift * (double)(at_nsec - run->origin_nsec));
    return at_nsec + clock->offset_nsec + drifted;
}

/* All times on the run's clock, which is that of the first host; origin_nsec as well. */
static void bring_together(struct timeline *run)
{
    int64_t origin_nsec = INT64_MAX;
    for (uint32_t k = 0; k < run->nparts; k++) {
        struct timeline_part *part = &run->parts[k];
        const struct timeline_clock *clock = &run->clocks[clock_of(run, &run->events[part->event])];
        part->begin_nsec = on_run_clock(run, clock, part->begin_nsec);
        part->end_nsec = on_run_clock(run, clock, part->end_nsec);
    }
    for (uint32_t e = 0; e < run->nevents; e++) {
        struct timeline_event *event = &run->events[e];
        const struct timeline_clock *clock =
            &run->clocks[run->processes[run->threads[event->thread].process].clock];
        event->start_nsec = on_run_clock(run, clock, event->start_nsec);
        event->stop_nsec = on_run_clock(run, clock, event->stop_nsec);
        if (event->start_nsec < origin_nsec) origin_nsec = event->start_nsec;
        for (uint32_t s = event->states; s != TIMELINE_NONE; s = run->states[s].next)
            run->states[s].at_nsec = on_run_clock(run, clock, run->states[s].at_nsec);
    }
    run->origin_nsec = run->nevents ? origin_nsec : 0;
}

static void shift(struct timeline *run)
{
    for (uint32_t k = 0; k < run->nparts; k++) {
        run->parts[k].begin_nsec -= run->origin_nsec;
        if (run->parts[k].end_nsec != TIMELINE_OPEN) run->parts[k].end_nsec -= run->origin_nsec;
    }
    for (uint32_t e = 0; e < run->nevents; e++) {
        run->events[e].start_nsec -= run->origin_nsec;
        if (run->events[e].stop_nsec != TIMELINE_OPEN) run->events[e].stop_nsec -= run->origin_nsec;
    }
    for (uint32_t s = 0; s < run->nstates; s++)
        run->states[s].at_nsec -= run->origin_nsec;
}

bool timeline_set_clocks(struct timeline *run)
{
    bool good = find_clocks(run);
    run->origin_nsec = run->nevents ? INT64_MAX : 0;
    for (uint32_t p = 0; good && p < run->nprocesses; p++) {
        const struct timeline_process *process = &run->processes[p];
        if (process->clock == 0 && process->starts && process->first_nsec < run->origin_nsec)
            run->origin_nsec = process->first_nsec;
    }
    if (good && run->nclocks > 1 && run->nclocks <= MOST_CLOCKS) good = measure(run);
    if (good && run->nclocks > 1) bring_together(run);
    if (good) shift(run);
    return good;
}
