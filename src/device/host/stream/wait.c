/* Waiting is working: a waiter runs what it waits for, what that waits for, and then anything else
 * that can run. When nothing can, it polls, pauses, yields and at last sleeps for short times; at
 * once when ranks or waiting threads outnumber the cores. */
#include "base/wait.h"

#include "stream.h"

#include "base/arch/arch.h"
#include "device/host/memory/ipc.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SPINS_ALONE = 16,  /* before others see the wait and it sees their work */
    SPINS_ANSWER = 40, /* a peer that runs on another core answers within them */
    PAYS_MOST = 60,
    MISS_COSTS = 3,        /* hits: polls must be answered in three of four waits */
    TRIAL_TICKS_LOG2 = 18, /* a window is some 100 us, */
    TRIAL_EVERY = 16,      /* one in 1.6 ms */
    SPINS_POLL = 100,
    SPINS_PAUSE = 300, /* of about 25 ns */
    SPINS_YIELD = 4000,
    DEPTH_MOST = 8,
};

void tuttiHostOversubscribe(void)
{
    atomic_store(&tt_host.waits.oversubscribed, 1);
}

bool tuttiHostOversubscribed(void)
{
    return atomic_load_explicit(&tt_host.waits.oversubscribed, memory_order_relaxed) > 0;
}

static void sleep_at(struct CUstream_st *stream, const struct tt_host_position *position, long nsec)
{
    const struct timespec timeout = {.tv_nsec = nsec};
    if (!stream) {
        nanosleep(&timeout, NULL);
        return;
    }
    atomic_fetch_add(&stream->sleepers, 1);
    uint32_t wake_count = atomic_load_explicit(&stream->wake_count, memory_order_acquire);
    /* A finish that saw no sleeper yet wakes no thread: the timeout is what bounds that. */
    if (!tt_host_position_reached(position))
        syscall(SYS_futex, &stream->wake_count, FUTEX_WAIT_PRIVATE, wake_count, &timeout, NULL, 0);
    atomic_fetch_sub(&stream->sleepers, 1);
}

/* How often to poll before the first yield where ranks outnumber the cores. Two ranks that exchange
 * messages while the others sleep answer at once if neither yields, and a yield takes many times as
 * long as the answer; otherwise the peer mostly waits for this very core. So a thread polls while
 * its last waits were answered so. To find out, both must try it at the same time: all processes of
 * the machine do in the same windows of time. */
static uint32_t polls_worth(const struct CUstream_st *stream)
{
    if (!stream || !atomic_load_explicit(&stream->asks_one, memory_order_relaxed)) return 0;
    bool tries = !(tt_cpu_ticks() >> TRIAL_TICKS_LOG2 & (TRIAL_EVERY - 1));
    return tries || tt_host_thread.polls_pay > 0 ? SPINS_ANSWER : 0;
}

static void learn_polls(bool answered)
{
    int pay = tt_host_thread.polls_pay + (answered ? 1 : -MISS_COSTS);
    tt_host_thread.polls_pay = (int8_t)(pay < 0 ? 0 : pay > PAYS_MOST ? PAYS_MOST : pay);
}

/* Give the core away the way a wait of this length needs it. */
static void relax(uint32_t spins, uint32_t polls, const struct tt_host_position *position)
{
    bool oversubscribed =
        tuttiHostOversubscribed() ||
        atomic_load_explicit(&tt_host.waits.threads, memory_order_relaxed) > tuttiHostCores();
    if (spins >= SPINS_YIELD) {
        sleep_at(position->stream, position, (long)tt_wait_backoff_nsec(spins - SPINS_YIELD));
    } else if ((oversubscribed && spins >= polls) || spins >= SPINS_PAUSE) {
        sched_yield();
    } else if (spins >= SPINS_POLL) {
        tt_cpu_pause();
    }
}

/* Run the stream of a position, or what keeps it from going on; calls: host functions may run. */
static bool run_for(const struct tt_host_position *position, bool calls)
{
    struct tt_host_position at = *position;
    for (int depth = 0; depth < DEPTH_MOST && at.stream; depth++) {
        struct tt_host_position blocker = {NULL, 0};
        if (tt_host_stream_run(at.stream, calls ? at.seq : 0, &blocker)) return true;
        at = blocker;
    }
    return false;
}

bool tt_host_ask_position(const struct tt_host_position *position)
{
    struct tt_host_share outer;
    tt_host_share_begin(&outer);
    if (!tt_host_position_reached(position)) run_for(position, false);
    if (!position->stream || !tt_host_position_reached(position)) tt_host_help(position->stream);
    tt_host_share_end(&outer);
    return tt_host_position_reached(position);
}

struct attendance { /* a wait that is known to workers and other waiters */
    struct CUstream_st *stream;
    bool entered;
};

static void attend(struct attendance *attendance)
{
    attendance->entered = true;
    atomic_fetch_add_explicit(&tt_host.waits.threads, 1, memory_order_relaxed);
    if (attendance->stream)
        atomic_fetch_add_explicit(&attendance->stream->waiters, 1, memory_order_relaxed);
}

static void leave(const struct attendance *attendance)
{
    struct CUstream_st *stream = attendance->stream;
    if (!attendance->entered) return;
    atomic_fetch_sub_explicit(&tt_host.waits.threads, 1, memory_order_relaxed);
    if (!stream) return;
    atomic_fetch_sub_explicit(&stream->waiters, 1, memory_order_relaxed);
    if (!tt_host_stream_idle(stream)) tt_host_worker_wake_all(); /* no thread attends to it now */
}

void tt_host_wait_position(const struct tt_host_position *position)
{
    struct attendance attendance = {position->stream, false};
    const bool oversubscribed = tuttiHostOversubscribed();
    const uint32_t alone = oversubscribed ? 0 : SPINS_ALONE; /* a yield there takes long */
    const uint32_t polls = oversubscribed ? polls_worth(position->stream) : 0;
    uint32_t most = 0;
    for (uint32_t spins = 0; !tt_host_position_reached(position); spins++) {
        bool did = run_for(position, true);
        if (did) spins = 0;
        if (did || spins < alone) continue;
        if (!attendance.entered) attend(&attendance);
        if (tt_host_help(position->stream)) {
            spins = alone;
        } else {
            relax(spins, polls, position);
            if (spins > most) most = spins;
        }
    }
    if (polls && most) learn_polls(most < polls);
    leave(&attendance);
}

void tt_host_wait_cell(const struct tt_host_cell *cell, uint64_t number)
{
    struct attendance attendance = {NULL, false};
    const struct tt_host_position nowhere = {NULL, 0};
    attend(&attendance);
    for (uint32_t spins = 0; !tt_host_cell_reached(cell, number); spins++) {
        if (tt_host_help(NULL)) {
            spins = 0;
        } else {
            relax(spins, 0, &nowhere);
        }
    }
    leave(&attendance);
}
