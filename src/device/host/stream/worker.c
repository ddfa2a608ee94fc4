/* What is done for streams that no thread waits for, by workers, and by threads that wait for
 * something else.
 *
 * A thread that queues sets the stream's bit (runnable.h) and a worker that finds the stream idle
 * twice clears it, so work that is waited for at once costs no more than a look at the bit. While
 * any bit is set a worker is awake: it runs what is runnable and backs off between its rounds,
 * longer when every stream has a waiter of its own. It sleeps for good when no bit is set. */
#include "stream.h"

#include "base/wait.h"
#include "device/host/memory/deferred_free.h"
#include "device/host/memory/ipc.h"
#include "device/host/memory/vmm.h"
#include "device/host/process/runnable.h"

#include <sys/prctl.h>

enum { SLEEP_NSEC = 80000, SLEEP_MOST_NSEC = 3200000 };

struct round {
    const struct CUstream_st *except;
    uint64_t calls_upto;
    bool did;
    int unattended; /* streams that no thread waits for */
};

/* A stream that is used again and again keeps its bit, so that its users need not wake a worker;
 * one at which nothing happened since a worker's last visit loses it. */
static void forget_idle(struct CUstream_st *stream, size_t number)
{
    uint64_t done = atomic_load_explicit(&stream->line.done, memory_order_relaxed);
    bool dying = atomic_load_explicit(&stream->life, memory_order_relaxed) == TT_HOST_LIFE_DYING;
    if (dying || atomic_load_explicit(&stream->seen, memory_order_relaxed) == done)
        tt_host_runnable_remove(number);
    atomic_store_explicit(&stream->seen, done, memory_order_relaxed);
    if (dying) tt_host_stream_retire(stream);
}

/* Remember how far the stream has come. */
static bool note_position(struct CUstream_st *stream)
{
    uint64_t done = atomic_load_explicit(&stream->line.done, memory_order_relaxed);
    bool same = atomic_load_explicit(&stream->passed, memory_order_relaxed) == done;
    atomic_store_explicit(&stream->passed, done, memory_order_relaxed);
    return same;
}

/* Its waiter polls it, a thread is just running it, or it came on since the last look without us,
 * as when every call is waited for: a worker leaves it alone. What others began must not be
 * disturbed every few microseconds: large copies lost a third of their speed. */
static bool is_attended(struct CUstream_st *stream)
{
    return !note_position(stream) || atomic_load_explicit(&stream->waiters, memory_order_relaxed) ||
           atomic_load_explicit(&stream->running, memory_order_relaxed);
}

static void visit(struct CUstream_st *stream, void *arg)
{
    struct round *round = arg;
    struct tt_host_position blocker = {NULL, 0};
    if (stream == round->except || tt_host_share_spent()) return;
    if (tt_host_stream_idle(stream)) {
        if (round->calls_upto) forget_idle(stream, tt_host_stream_number(stream));
        return;
    }
    if (round->calls_upto && is_attended(stream)) return;
    round->unattended++;
    if (tt_host_stream_run(stream, round->calls_upto, &blocker)) round->did = true;
    if (round->calls_upto) note_position(stream);
}

bool tt_host_help(const struct CUstream_st *except)
{
    struct round round = {.except = except};
    struct tt_host_share outer;
    tt_host_share_begin(&outer);
    tt_host_runnable_visit(visit, &round);
    tt_host_share_end(&outer);
    return round.did;
}

bool tuttiHostHelp(void)
{
    return !tt_host_forked() && tt_host_help(NULL);
}

/* ---- workers ---- */

/* What only work kept that is over: no other thread may come by. */
static void reclaim_memory(void)
{
    tt_host_deferred_run();
    tt_host_vmm_reclaim();
    tt_host_ipc_reclaim();
}

static void *worker_main(void *arg)
{
    long sleep_nsec = SLEEP_NSEC;
    uint32_t fruitless = 0; /* sleeps since something that no thread waits for came on */
    (void)arg;
    tt_host_thread.is_worker = true;
    prctl(PR_SET_NAME, "tutti-worker");
    prctl(PR_SET_TIMERSLACK, 1000);
    for (;;) {
        struct round round = {.calls_upto = UINT64_MAX};
        tt_host_runnable_visit(visit, &round);
        if (round.did || !round.unattended) fruitless = 0;
        if (round.did || round.unattended) sleep_nsec = SLEEP_NSEC;
        if (round.unattended > 1) tt_host_worker_share(round.unattended);
        if (round.did) continue;
        if (round.unattended) {
            tt_host_worker_back_off(SLEEP_NSEC / 2 + (long)tt_wait_backoff_nsec(fruitless++));
            continue;
        }
        tt_host_worker_back_off(sleep_nsec);
        if (sleep_nsec < SLEEP_MOST_NSEC) {
            sleep_nsec *= 2;
            continue;
        }
        reclaim_memory();
        if (tt_host_worker_sleep()) sleep_nsec = SLEEP_NSEC;
    }
    return NULL;
}

void tt_host_workers_prepare(void)
{
    atomic_store_explicit(&tt_host.workers.body, worker_main, memory_order_relaxed);
}
