/* The background threads that take what nobody waits for.
 *
 * Whoever queues sets the stream's bit (runnable.h) and a worker that finds the stream idle twice
 * clears it, so work that is waited for at once costs no more than a look at the bit. While any bit
 * is set a worker is awake: it runs what is runnable and naps
 * between its rounds, longer when every stream has a waiter of its own. It sleeps for good when no
 * bit is set. A host function may block; before a worker enters one it sees to it that another is
 * awake. */
#include "stream.h"

#include "base/clock.h"
#include "base/wait.h"
#include "device/host/memory/ipc.h"
#include "device/host/memory/leaving.h"
#include "device/host/memory/runnable.h"
#include "device/host/memory/vmm.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

enum {
    NAP_NSEC = 80000,
    NAP_MOST_NSEC = 3200000,
    THREADS_MOST = 2048, /* with those that are stuck in host functions */
    SHARE_NSEC = 200000,
};

static bool any_runnable(void)
{
    return atomic_load_explicit(&tt_host.runnable.top, memory_order_seq_cst) != 0;
}

/* ---- how much a thread does for others ---- */

void host_share_begin(struct host_share *outer_out)
{
    *outer_out = host_thread.share;
    if (!outer_out->until_nsec)
        host_thread.share = (struct host_share){tt_now_nsec() + SHARE_NSEC, HOST_INLINE_BYTES};
}

void host_share_end(const struct host_share *outer)
{
    if (!outer->until_nsec) host_thread.share = *outer;
}

bool host_share_spent(void)
{
    const struct host_share *share = &host_thread.share;
    return share->until_nsec && (share->bytes == 0 || tt_now_nsec() >= share->until_nsec);
}

struct round {
    const struct CUstream_st *except;
    uint64_t calls_upto;
    bool did;
    int unattended; /* streams that nobody waits for */
};

/* A stream that is used again and again keeps its bit, so that its users need not wake anybody; one
 * at which nothing happened since a worker's last visit loses it. */
static void forget_idle(struct CUstream_st *stream, size_t number)
{
    uint64_t done = atomic_load_explicit(&stream->line.done, memory_order_relaxed);
    bool dying = atomic_load_explicit(&stream->life, memory_order_relaxed) == HOST_LIFE_DYING;
    if (dying || atomic_load_explicit(&stream->seen, memory_order_relaxed) == done)
        host_runnable_remove(number);
    atomic_store_explicit(&stream->seen, done, memory_order_relaxed);
    if (dying) host_stream_bury(stream);
}

/* Remember how far the stream has come. */
static bool note_place(struct CUstream_st *stream)
{
    uint64_t done = atomic_load_explicit(&stream->line.done, memory_order_relaxed);
    bool same = atomic_load_explicit(&stream->passed, memory_order_relaxed) == done;
    atomic_store_explicit(&stream->passed, done, memory_order_relaxed);
    return same;
}

/* Its waiter polls it, somebody is just running it, or it came on since the last look without us,
 * as when every call is waited for: a worker leaves it alone. What others began must not be
 * disturbed every few microseconds: large copies lost a third of their speed. */
static bool is_attended(struct CUstream_st *stream)
{
    return !note_place(stream) || atomic_load_explicit(&stream->waiters, memory_order_relaxed) ||
           atomic_load_explicit(&stream->running, memory_order_relaxed);
}

static void visit(struct CUstream_st *stream, void *arg)
{
    struct round *round = arg;
    struct host_place blocker = {NULL, 0};
    if (stream == round->except || host_share_spent()) return;
    if (host_stream_idle(stream)) {
        if (round->calls_upto) forget_idle(stream, host_stream_number(stream));
        return;
    }
    if (round->calls_upto && is_attended(stream)) return;
    round->unattended++;
    if (host_stream_run(stream, round->calls_upto, &blocker)) round->did = true;
    if (round->calls_upto) note_place(stream);
}

bool host_help(const struct CUstream_st *except)
{
    struct round round = {.except = except};
    struct host_share outer;
    host_share_begin(&outer);
    host_runnable_visit(visit, &round);
    host_share_end(&outer);
    return round.did;
}

bool tuttiHostHelp(void)
{
    return !host_forked() && host_help(NULL);
}

/* ---- workers ---- */

static void make_condition(void)
{
    pthread_cond_init(&tt_host.workers.wake, NULL);
}

static void sleep_until_armed(void)
{
    pthread_mutex_lock(&tt_host.workers.lock);
    atomic_fetch_sub(&tt_host.workers.awake, 1);
    while (!any_runnable()) {
        pthread_cond_wait(&tt_host.workers.wake, &tt_host.workers.lock);
    }
    atomic_fetch_add(&tt_host.workers.awake, 1);
    pthread_mutex_unlock(&tt_host.workers.lock);
}

static void nap(long nsec)
{
    struct timespec until = {.tv_nsec = nsec};
    if (nsec <= 2L * NAP_NSEC) {
        nanosleep(&until, NULL);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += nsec;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&tt_host.workers.lock);
    atomic_fetch_add(&tt_host.workers.dozing, 1);
    int rung = tt_host.workers.rung;
    while (tt_host.workers.rung == rung &&
           pthread_cond_clockwait(&tt_host.workers.wake, &tt_host.workers.lock, CLOCK_MONOTONIC,
                                  &until) == 0) {
    }
    atomic_fetch_sub(&tt_host.workers.dozing, 1);
    pthread_mutex_unlock(&tt_host.workers.lock);
}

static void *worker_main(void *arg);

/* The lock is held. */
static void start_worker(void)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    pthread_attr_t attr;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV); /* a host function may meet a page that the race checker closed */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (!pthread_create(&thread, &attr, worker_main, NULL)) {
        tt_host.workers.started++;
        atomic_fetch_add(&tt_host.workers.awake, 1);
    }
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* More streams than free workers: one more may run, up to one per core. */
static void share_work(int streams)
{
    int cores = tuttiHostCores();
    int most = streams < cores ? streams : cores;
    if (atomic_load(&tt_host.workers.awake) - atomic_load(&tt_host.workers.inside) >= most) return;
    pthread_mutex_lock(&tt_host.workers.lock);
    int stuck = atomic_load(&tt_host.workers.inside);
    if (tt_host.workers.started > atomic_load(&tt_host.workers.awake)) {
        pthread_cond_signal(&tt_host.workers.wake);
    } else if (tt_host.workers.started < THREADS_MOST && tt_host.workers.started - stuck < most) {
        start_worker();
    }
    pthread_mutex_unlock(&tt_host.workers.lock);
}

/* What only work kept that is over: nobody else may come by. */
static void settle_memory(void)
{
    host_leavers_go();
    host_vmm_settle();
    host_ipc_settle();
}

static void *worker_main(void *arg)
{
    long nap_nsec = NAP_NSEC;
    uint32_t fruitless = 0; /* naps since something that nobody waits for came on */
    (void)arg;
    host_thread.is_worker = true;
    prctl(PR_SET_NAME, "tutti-worker");
    prctl(PR_SET_TIMERSLACK, 1000);
    for (;;) {
        struct round round = {.calls_upto = UINT64_MAX};
        host_runnable_visit(visit, &round);
        if (round.did || !round.unattended) fruitless = 0;
        if (round.did || round.unattended) nap_nsec = NAP_NSEC;
        if (round.unattended > 1) share_work(round.unattended);
        if (round.did) continue;
        if (round.unattended) {
            nap(NAP_NSEC / 2 + (long)tt_wait_nap_nsec(fruitless++));
            continue;
        }
        nap(nap_nsec);
        if (nap_nsec < NAP_MOST_NSEC) {
            nap_nsec *= 2;
            continue;
        }
        settle_memory();
        if (any_runnable()) continue;
        sleep_until_armed();
        nap_nsec = NAP_NSEC;
    }
    return NULL;
}

/* Somebody must be awake who is not stuck. */
static void need_worker(void)
{
    if (atomic_load(&tt_host.workers.awake) > atomic_load(&tt_host.workers.inside)) {
        if (atomic_load(&tt_host.workers.dozing)) host_worker_ring();
        return;
    }
    pthread_once(&tt_host.workers.once, make_condition);
    pthread_mutex_lock(&tt_host.workers.lock);
    int stuck = atomic_load(&tt_host.workers.inside);
    if (tt_host.workers.started > atomic_load(&tt_host.workers.awake)) {
        pthread_cond_broadcast(&tt_host.workers.wake);
    } else if (tt_host.workers.started < THREADS_MOST && tt_host.workers.started <= stuck) {
        start_worker();
    }
    pthread_mutex_unlock(&tt_host.workers.lock);
}

void host_runnable_set(struct CUstream_st *stream)
{
    if (host_runnable_add(host_stream_number(stream))) need_worker();
}

void host_worker_ring(void)
{
    if (!atomic_load_explicit(&tt_host.workers.dozing, memory_order_relaxed)) return;
    pthread_mutex_lock(&tt_host.workers.lock);
    tt_host.workers.rung++;
    pthread_cond_broadcast(&tt_host.workers.wake);
    pthread_mutex_unlock(&tt_host.workers.lock);
}

static void count_stream(struct CUstream_st *stream, void *arg)
{
    int *count = arg;
    (void)stream;
    ++*count;
}

void host_worker_enter(void)
{
    int streams = 0;
    if (!host_thread.is_worker) return;
    atomic_fetch_add(&tt_host.workers.inside, 1);
    host_runnable_visit(count_stream, &streams);
    if (streams > 1) need_worker();
}

void host_worker_leave(void)
{
    if (host_thread.is_worker) atomic_fetch_sub(&tt_host.workers.inside, 1);
}
