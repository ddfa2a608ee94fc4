/* TUTTI_PROFILER_TIMERS=1: how long the calls of a profiler take. A table of functions before the
 * plugin's own measures each call; without the variable it is not there. The numbers are those of
 * the process, as the plugin is, and are written when its last communicator with a profiler ends.
 * A handle does not show its type, so ends and states are one row each. */
#include "base/mem.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "plugin/profiler/profiler.h"
#include "plugin/profiler/profiler_abi.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { /* rows; the types of startEvent lie between, in the order of their bits */
       ROW_INIT,
       ROW_START,
       ROW_STOP = ROW_START + 16,
       ROW_STATE,
       ROW_FINALIZE,
       ROW_COUNT_,
};
enum { SUB_BITS = 3, BUCKETS = (64 - SUB_BITS + 1) << SUB_BITS }; /* within an eighth of the time */

struct timer {
    _Atomic uint64_t count, sum_nsec, most_nsec;
    _Atomic uint64_t buckets[BUCKETS];
};

struct tt_profiler_timers {
    int users; /* communicators with a profiler; under init_lock */
    struct timer rows[ROW_COUNT_];
};

static unsigned int bucket_of(uint64_t nsec)
{
    if (nsec < 1u << SUB_BITS) return (unsigned int)nsec;
    unsigned int shift = 63u - (unsigned int)__builtin_clzll(nsec) - SUB_BITS;
    return ((shift + 1) << SUB_BITS) + (unsigned int)(nsec >> shift & ((1u << SUB_BITS) - 1));
}

/* The longest time that falls into the bucket. */
static uint64_t bucket_end(unsigned int bucket)
{
    if (bucket < 1u << SUB_BITS) return bucket;
    unsigned int shift = (bucket >> SUB_BITS) - 1;
    uint64_t first = (1u << SUB_BITS) + (bucket & ((1u << SUB_BITS) - 1));
    return (first << shift) + ((uint64_t)1 << shift) - 1;
}

static void add(int row, uint64_t begin)
{
    struct timer *timer = &tt_plugins.profiler.timers->rows[row];
    uint64_t nsec = tt_now_nsec() - begin;
    uint64_t most = atomic_load_explicit(&timer->most_nsec, memory_order_relaxed);
    atomic_fetch_add_explicit(&timer->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&timer->sum_nsec, nsec, memory_order_relaxed);
    atomic_fetch_add_explicit(&timer->buckets[bucket_of(nsec)], 1, memory_order_relaxed);
    while (nsec > most &&
           !atomic_compare_exchange_weak_explicit(&timer->most_nsec, &most, nsec,
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
}

/* ---- the table ---- */

static const ncclProfiler_v7_t *below(void)
{
    return tt_profiler_below(7, &tt_profiler_v6);
}

static ncclResult_t timed_init(void **context, uint64_t comm, int *mask, const char *name,
                               int nnodes, int nranks, int rank, ncclDebugLogger_t log)
{
    uint64_t begin = tt_now_nsec();
    ncclResult_t rc = below()->init(context, comm, mask, name, nnodes, nranks, rank, log);
    add(ROW_INIT, begin);
    return rc;
}

static ncclResult_t timed_start(void *context, void **handle, ncclProfilerEventDescr_v7_t *descr)
{
    if (!(tt_profiler_known() & descr->type)) return below()->startEvent(context, handle, descr);
    int row = ROW_START + (__builtin_ctzll(descr->type) & 15);
    uint64_t begin = tt_now_nsec();
    ncclResult_t rc = below()->startEvent(context, handle, descr);
    add(row, begin);
    return rc;
}

static ncclResult_t timed_stop(void *handle)
{
    uint64_t begin = tt_now_nsec();
    ncclResult_t rc = below()->stopEvent(handle);
    add(ROW_STOP, begin);
    return rc;
}

static ncclResult_t timed_state(void *handle, ncclProfilerEventState_v7_t state,
                                ncclProfilerEventStateArgs_v7_t *args)
{
    uint64_t begin = tt_now_nsec();
    ncclResult_t rc = below()->recordEventState(handle, state, args);
    add(ROW_STATE, begin);
    return rc;
}

static ncclResult_t timed_finalize(void *context)
{
    uint64_t begin = tt_now_nsec();
    ncclResult_t rc = below()->finalize(context);
    add(ROW_FINALIZE, begin);
    return rc;
}

const ncclProfiler_v7_t tt_profiler_timed = {.name = "timed",
                                             .init = timed_init,
                                             .startEvent = timed_start,
                                             .stopEvent = timed_stop,
                                             .recordEventState = timed_state,
                                             .finalize = timed_finalize};

/* ---- the report ---- */

struct report {
    char text[4096];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void say(struct report *report, const char *fmt, ...)
{
    size_t room = sizeof(report->text) - report->used;
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(report->text + report->used, room, fmt, args);
    va_end(args);
    if (len > 0 && (size_t)len < room) report->used += (size_t)len;
}

static uint64_t p99_nsec(const struct timer *timer, uint64_t count)
{
    uint64_t seen = 0;
    for (unsigned int k = 0; k < BUCKETS; k++) {
        seen += atomic_load_explicit(&timer->buckets[k], memory_order_relaxed);
        if (seen * 100 < count * 99) continue;
        uint64_t most = atomic_load_explicit(&timer->most_nsec, memory_order_relaxed);
        return bucket_end(k) < most ? bucket_end(k) : most;
    }
    return 0;
}

static void say_row(struct report *report, int row, const struct timer *timer)
{
    static const char *const calls[] = {[ROW_INIT] = "init",
                                        [ROW_STOP] = "stopEvent",
                                        [ROW_STATE] = "recordEventState",
                                        [ROW_FINALIZE] = "finalize"};
    uint64_t count = atomic_load_explicit(&timer->count, memory_order_relaxed);
    double sum = (double)atomic_load_explicit(&timer->sum_nsec, memory_order_relaxed);
    if (count == 0) return;
    char name[32];
    snprintf(name, sizeof(name), "%s%s", calls[row] ? calls[row] : "startEvent ",
             calls[row] ? "" : tt_profiler_event_name((uint64_t)1 << (row - ROW_START)));
    say(report, "%-24s %10llu %12.3f %10.3f %10.3f %10.3f\n", name, (unsigned long long)count,
        sum * 1e-6, sum * 1e-3 / (double)count, (double)p99_nsec(timer, count) * 1e-3,
        (double)atomic_load_explicit(&timer->most_nsec, memory_order_relaxed) * 1e-3);
}

/* What a call that takes no time is measured to take. */
static uint64_t clock_nsec(void)
{
    uint64_t least = UINT64_MAX;
    for (int k = 0; k < 100; k++) {
        uint64_t begin = tt_now_nsec();
        uint64_t nsec = tt_now_nsec() - begin;
        if (nsec < least) least = nsec;
    }
    return least;
}

static void write_report(struct tt_profiler_timers *timers)
{
    struct report report = {.used = 0};
    say(&report,
        "PROFILER/Timers: calls of the profiler in process %d; each time has %llu ns of the clock\n"
        "%-24s %10s %12s %10s %10s %10s\n",
        (int)getpid(), (unsigned long long)clock_nsec(), "call", "count", "total ms", "mean us",
        "p99 us", "max us");
    for (int row = 0; row < ROW_COUNT_; row++)
        say_row(&report, row, &timers->rows[row]);
    memset(timers->rows, 0, sizeof(timers->rows)); /* no thread is left that adds */
    if (write(STDERR_FILENO, report.text, report.used) < 0) return; /* standard error is closed */
}

void tt_profiler_timers_begin(void)
{
    pthread_mutex_lock(&tt_plugins.profiler.init_lock);
    struct tt_profiler_timers *timers = tt_plugins.profiler.timers;
    if (!timers && tt_param_bool("TUTTI_PROFILER_TIMERS"))
        timers = tt_plugins.profiler.timers = tt_calloc(1, sizeof(*timers)); /* kept for good */
    if (timers) timers->users++;
    pthread_mutex_unlock(&tt_plugins.profiler.init_lock);
}

void tt_profiler_timers_end(void)
{
    pthread_mutex_lock(&tt_plugins.profiler.init_lock);
    struct tt_profiler_timers *timers = tt_plugins.profiler.timers;
    if (timers && --timers->users == 0) write_report(timers);
    pthread_mutex_unlock(&tt_plugins.profiler.init_lock);
}
