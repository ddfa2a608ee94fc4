/* The threads of the workers: started on first need, woken when something is runnable. What they do
 * is worker.c's. A host function may block; before a worker enters one it sees to it that another
 * is awake. */
#include "stream.h"

#include "device/host/process/runnable.h"

#include <sched.h>
#include <signal.h>
#include <time.h>

enum {
    SHORT_SLEEP_NSEC = 160000, /* not worth to be ended */
    THREADS_MOST = 2048,       /* with those that are stuck in host functions */
};

static bool any_runnable(void)
{
    return atomic_load_explicit(&tt_host.runnable.top, memory_order_seq_cst) != 0;
}

static void make_condition(void)
{
    pthread_cond_init(&tt_host.workers.wake, NULL);
}

bool tt_host_worker_sleep(void)
{
    if (any_runnable()) return false;
    pthread_mutex_lock(&tt_host.workers.lock);
    atomic_fetch_sub(&tt_host.workers.awake, 1);
    while (!any_runnable()) {
        pthread_cond_wait(&tt_host.workers.wake, &tt_host.workers.lock);
    }
    atomic_fetch_add(&tt_host.workers.awake, 1);
    pthread_mutex_unlock(&tt_host.workers.lock);
    return true;
}

void tt_host_worker_back_off(long nsec)
{
    struct timespec until = {.tv_nsec = nsec};
    if (nsec <= SHORT_SLEEP_NSEC) {
        nanosleep(&until, NULL);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += nsec;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&tt_host.workers.lock);
    atomic_fetch_add(&tt_host.workers.backing_off, 1);
    int wakes = tt_host.workers.wakes;
    while (tt_host.workers.wakes == wakes &&
           pthread_cond_clockwait(&tt_host.workers.wake, &tt_host.workers.lock, CLOCK_MONOTONIC,
                                  &until) == 0) {
    }
    atomic_fetch_sub(&tt_host.workers.backing_off, 1);
    pthread_mutex_unlock(&tt_host.workers.lock);
}

/* The lock is held. */
static void start_worker(void)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    void *(*body)(void *) = atomic_load_explicit(&tt_host.workers.body, memory_order_relaxed);
    pthread_attr_t attr;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV); /* a host function may meet a page that the race checker closed */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (!pthread_create(&thread, &attr, body, NULL)) {
        tt_host.workers.started++;
        atomic_fetch_add(&tt_host.workers.awake, 1);
    }
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void tt_host_worker_share(int streams)
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

/* A thread must be awake that is not stuck. */
static void need_worker(void)
{
    if (atomic_load(&tt_host.workers.awake) > atomic_load(&tt_host.workers.inside)) {
        if (atomic_load(&tt_host.workers.backing_off)) tt_host_worker_wake_all();
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

void tt_host_runnable_set(struct CUstream_st *stream)
{
    if (tt_host_runnable_add(tt_host_stream_number(stream))) need_worker();
}

void tt_host_worker_wake_all(void)
{
    if (!atomic_load_explicit(&tt_host.workers.backing_off, memory_order_relaxed)) return;
    pthread_mutex_lock(&tt_host.workers.lock);
    tt_host.workers.wakes++;
    pthread_cond_broadcast(&tt_host.workers.wake);
    pthread_mutex_unlock(&tt_host.workers.lock);
}

static void count_stream(struct CUstream_st *stream, void *arg)
{
    int *count = arg;
    (void)stream;
    ++*count;
}

void tt_host_worker_enter(void)
{
    int streams = 0;
    if (!tt_host_thread.is_worker) return;
    atomic_fetch_add(&tt_host.workers.inside, 1);
    tt_host_runnable_visit(count_stream, &streams);
    if (streams > 1) need_worker();
}

void tt_host_worker_leave(void)
{
    if (tt_host_thread.is_worker) atomic_fetch_sub(&tt_host.workers.inside, 1);
}
