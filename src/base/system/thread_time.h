/* What a call cost the thread that made it: it computed, or slept of its own accord. The time in
 * which it was ready and got no processor is the machine's, and so is the time in which it slept
 * because another thread of the process got none. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct tt_thread_time {
    pid_t thread;
    clockid_t cpu_clock;
    uint64_t start_nsec, cpu_nsec, ready_nsec;
    uint64_t sleeps, page_reads; /* voluntary switches; pages that came from a disk */
};

struct tt_thread_spent {
    pid_t thread;
    uint64_t computed_nsec, slept_nsec;
};

/* What the threads of the process have waited for a processor, as last seen; zeroed: nothing was
 * seen. More threads than fit are not looked at. */
enum { TT_THREADS_SEEN = 64 };
struct tt_threads_ready {
    int count;
    struct {
        pid_t thread;
        uint64_t nsec;
    } seen[TT_THREADS_SEEN];
};

/* A call begins, in the calling thread. */
void tt_thread_time_begin(struct tt_thread_time *time);
/* What its thread has spent since then. Any thread of the process may ask, also while the call is
 * under way. Reading of pages from a disk is no sleep. */
struct tt_thread_spent tt_thread_time_spent(const struct tt_thread_time *time);

/* True when that is more than `most_nsec`, less what the other threads of the process have waited
 * for a processor since `ready` was brought up to date. Looks at them, and brings it up to date,
 * only where it depends on them. */
bool tt_thread_spent_more(const struct tt_thread_spent *spent, uint64_t most_nsec,
                          struct tt_threads_ready *ready);
/* Bring it up to date, and return what was added by other threads than `thread`. */
uint64_t tt_threads_ready_added(struct tt_threads_ready *ready, pid_t thread);
