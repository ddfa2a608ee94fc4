/* Whoever waits, works; background workers take what nobody waits for.
 *
 * A worker is started on first need. While anything is unfinished it ticks: runs what is runnable,
 * sleeps 100 us when nothing was. Some milliseconds after the last work it sleeps for good, until
 * armed. While a worker is inside a host function another one stands in for it, up to one per core.
 */
#include "stream.h"

#include "base/arch/arch.h"
#include "base/clock.h"

#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum {
    TICK_USEC = 100,
    TICK_MOST_USEC = 3200,
    SPINS_POLL = 100,
    SPINS_PAUSE = 400,
    SPINS_YIELD = 20000
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    _Atomic int ticking; /* awake workers */
    _Atomic int inside;  /* of them: inside an operation */
    int started;
    pid_t pid;
};

static struct workers workers = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                 .wake = PTHREAD_COND_INITIALIZER};

struct help {
    bool calls, did, worker;
    bool unattended; /* seen: unfinished work that nobody waits for */
    const struct CUstream_st *except;
};

static bool help_stream(struct CUstream_st *stream, void *arg)
{
    struct help *help = arg;
    if (stream == help->except || !atomic_load_explicit(&stream->pending, memory_order_relaxed))
        return false;
    /* Its owner polls it: leave it alone, unless it is at a host function that only others may run.
     */
    if (help->worker && atomic_load_explicit(&stream->waiters, memory_order_relaxed)) return false;
    help->unattended = true;
    if (host_stream_run(stream, help->calls) == TT_STEP_PROGRESS) help->did = true;
    return false;
}

static void help_all(struct help *help)
{
    if (atomic_load_explicit(&host_busy_streams, memory_order_acquire))
        host_streams_visit(help_stream, help);
}

bool tuttiHostHelp(void)
{
    struct help help = {.calls = false};
    help_all(&help);
    return help.did;
}

/* ---- workers ---- */

static void sleep_until_armed(void)
{
    pthread_mutex_lock(&workers.lock);
    atomic_fetch_sub(&workers.ticking, 1);
    while (!atomic_load(&host_busy_streams)) {
        pthread_cond_wait(&workers.wake, &workers.lock);
    }
    atomic_fetch_add(&workers.ticking, 1);
    pthread_mutex_unlock(&workers.lock);
}

static void *worker_main(void *arg)
{
    uint64_t nap_usec = TICK_USEC;
    (void)arg;
    for (;;) {
        struct help help = {.calls = true, .worker = true};
        atomic_fetch_add(&workers.inside, 1);
        help_all(&help);
        atomic_fetch_sub(&workers.inside, 1);
        if (help.did || help.unattended) nap_usec = TICK_USEC;
        if (help.did) continue;
        tt_sleep_usec(nap_usec);
        nap_usec *= 2;
        if (nap_usec < TICK_MOST_USEC) continue;
        nap_usec = TICK_MOST_USEC;
        if (!atomic_load(&host_busy_streams)) sleep_until_armed();
    }
    return NULL;
}

static void start_worker(void)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (!pthread_create(&thread, &attr, worker_main, NULL)) {
        workers.started++;
        atomic_fetch_add(&workers.ticking, 1);
    }
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void host_worker_arm(void)
{
    /* Someone is awake and not stuck in a host function: it will see the work at its next tick. */
    if (atomic_load(&workers.ticking) > atomic_load(&workers.inside)) return;
    pthread_mutex_lock(&workers.lock);
    if (workers.pid != getpid()) { /* first use, or a forked child: threads did not come along */
        workers.pid = getpid();
        workers.started = 0;
        atomic_store(&workers.ticking, 0);
        atomic_store(&workers.inside, 0);
    }
    int cores = tuttiHostCores();
    if (workers.started > atomic_load(&workers.ticking)) {
        pthread_cond_signal(&workers.wake);
    } else if (workers.started < (cores > 1 ? cores : 2)) {
        start_worker();
    }
    pthread_mutex_unlock(&workers.lock);
}

/* ---- waiters ---- */

_Atomic int host_crowds;

void tuttiHostCrowd(int local_ranks)
{
    bool crowded = local_ranks > tuttiHostCores();
    if (crowded || local_ranks == 0) atomic_store(&host_crowds, crowded);
}

static void relax(unsigned spins)
{
    if (host_crowded() && spins < SPINS_YIELD) {
        sched_yield();
        return;
    }
    if (spins < SPINS_POLL) return;
    if (spins < SPINS_PAUSE) {
        tt_cpu_pause();
        return;
    }
    if (spins < SPINS_YIELD) {
        sched_yield();
        return;
    }
    tt_sleep_usec(50);
}

void host_wait_until(bool (*done)(void *arg), void *arg, struct CUstream_st *own)
{
    unsigned spins = 0;
    if (own) atomic_fetch_add(&own->waiters, 1);
    while (!done(arg)) {
        bool did = own && host_stream_run(own, true) == TT_STEP_PROGRESS;
        /* Host functions of other streams are left to workers: one that waits for us would never
         * end. */
        if (!did) {
            struct help help = {.except = own};
            help_all(&help);
            did = help.did;
        }
        if (did) {
            spins = 0;
        } else {
            relax(spins++);
        }
    }
    if (own) atomic_fetch_sub(&own->waiters, 1);
}
