/* See socket_threads.h. Threads never report: they leave what went wrong at the lane, and the user
 * of the connection finds it there. */
#include "net/socket_threads.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/system/clock.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINGER_NSEC 50000u /* without a byte, before a thread sleeps */
#define WAKE_BYTES ((size_t)128 << 10)

struct socket_thread {
    struct socket_link *link; /* borrowed */
    int first;                /* of its lanes; the next ones are `count` further each */
    pthread_t thread;
    bool started, refused;
    _Atomic bool asleep;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t wake_up;
    bool woken, ending;
};

struct socket_threads {
    pid_t process;   /* that has them: a child of fork does not */
    cpu_set_t cores; /* of the process; a thread's starter may be bound to one */
    int count;
    struct socket_thread each[];
};

/* ---- who has a lane ---- */

static bool lane_take(struct socket_lane *lane)
{
    if (atomic_load_explicit(&lane->taken, memory_order_relaxed) ||
        atomic_exchange_explicit(&lane->taken, true, memory_order_acquire))
        return false;
    lane->last = atomic_load_explicit(&lane->posted, memory_order_acquire);
    return true;
}

static void lane_give(struct socket_lane *lane)
{
    atomic_store_explicit(&lane->taken, false, memory_order_release);
}

/* ---- a thread ---- */

/* Also where the lane comes anew, or has failed, which its user handles. */
static void lane_help(struct socket_link *link, struct socket_lane *lane)
{
    if (lane->err || lane->fault) return;
    if (link->resume && tt_socket_resume_is_moving(link, lane)) return;
    lane->helped = true;
    if (link->sending) {
        tt_socket_lane_send(link, lane);
    } else {
        tt_socket_lane_recv(link, lane);
    }
    lane->helped = false;
}

/* True: bytes went. complete[i]: as many parts of lane i as were posted are done. */
static bool help(const struct socket_thread *self, uint32_t complete[])
{
    struct socket_link *link = self->link;
    bool moved = false;
    for (int i = self->first; i < link->nlanes; i += link->threads->count) {
        struct socket_lane *lane = &link->lanes[i];
        uint32_t posted = atomic_load_explicit(&lane->posted, memory_order_relaxed);
        if (posted == complete[i] || !lane_take(lane)) continue;
        const uint64_t before = lane->moved;
        lane_help(link, lane);
        moved = moved || lane->moved != before;
        if (lane->first == lane->last) complete[i] = lane->last;
        lane_give(lane);
    }
    return moved;
}

/* False: this is the end. */
static bool sleep_until_woken(struct socket_thread *self)
{
    pthread_mutex_lock(&self->lock);
    atomic_store_explicit(&self->asleep, true, memory_order_relaxed);
    while (!self->woken && !self->ending)
        pthread_cond_wait(&self->wake_up, &self->lock);
    self->woken = false;
    atomic_store_explicit(&self->asleep, false, memory_order_relaxed);
    bool goes_on = !self->ending;
    pthread_mutex_unlock(&self->lock);
    return goes_on;
}

static void *thread_main(void *arg)
{
    struct socket_thread *self = arg;
    uint32_t complete[SOCKET_LANES] = {0};
    uint64_t since_nsec = 0; /* bytes went last; 0: just now */
    pthread_setname_np(pthread_self(), "tutti-socket");
    sched_setaffinity(0, sizeof(self->link->threads->cores), &self->link->threads->cores);
    for (;;) {
        if (help(self, complete)) {
            since_nsec = 0;
            continue;
        }
        const uint64_t now_nsec = tt_now_nsec();
        if (!since_nsec) since_nsec = now_nsec;
        if (now_nsec - since_nsec < LINGER_NSEC) {
            sched_yield();
            continue;
        }
        if (!sleep_until_woken(self)) return NULL;
        since_nsec = 0;
    }
}

/* The user does without one that cannot be started. */
static void start(struct socket_thread *self)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&self->thread, NULL, thread_main, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    self->started = !err;
    self->refused = err;
    if (err) {
        tt_info(TT_LOG_NET, "NET/Socket: a thread of NCCL_SOCKET_NTHREADS does not start: %s",
                strerror(err));
    }
}

static void wake(struct socket_thread *self)
{
    if (!self->started && !self->refused) start(self);
    if (!atomic_load_explicit(&self->asleep, memory_order_relaxed)) return;
    pthread_mutex_lock(&self->lock);
    self->woken = true;
    atomic_store_explicit(&self->asleep, false, memory_order_relaxed);
    pthread_cond_signal(&self->wake_up);
    pthread_mutex_unlock(&self->lock);
}

/* ---- the connection's ---- */

bool tt_socket_threads_create(struct socket_link *link, int wanted)
{
    cpu_set_t cores;
    const int ndata = link->nlanes - 1;
    const int count = wanted < ndata ? wanted : ndata;
    CPU_ZERO(&cores);
    if (sched_getaffinity(getpid(), sizeof(cores), &cores)) return true;
    if (count < 2 || CPU_COUNT(&cores) < 2) return true;
    struct socket_threads *threads =
        tt_calloc(1, sizeof(*threads) + (size_t)count * sizeof(struct socket_thread));
    if (!threads) return false;
    threads->process = getpid();
    threads->cores = cores;
    threads->count = count;
    for (int k = 0; k < count; k++) {
        threads->each[k].link = link;
        threads->each[k].first = 1 + k;
        pthread_mutex_init(&threads->each[k].lock, NULL);
        pthread_cond_init(&threads->each[k].wake_up, NULL);
    }
    for (int i = 0; i < link->nlanes; i++) {
        link->lanes[i].shared = i > 0;
        link->lanes[i].done = SOCKET_DONE_SHARED; /* lane 0 too: pieces are of the same request */
    }
    link->threads = threads;
    return true;
}

static void end_thread(struct socket_thread *self)
{
    pthread_mutex_lock(&self->lock);
    self->ending = true;
    pthread_cond_signal(&self->wake_up);
    pthread_mutex_unlock(&self->lock);
}

void tt_socket_threads_destroy(struct socket_link *link)
{
    struct socket_threads *threads = link->threads;
    if (!threads) return;
    const bool own = threads->process == getpid();
    for (int k = 0; k < threads->count && own; k++)
        end_thread(&threads->each[k]);
    for (int k = 0; k < threads->count && own; k++) {
        if (threads->each[k].started) pthread_join(threads->each[k].thread, NULL);
        pthread_cond_destroy(&threads->each[k].wake_up);
        pthread_mutex_destroy(&threads->each[k].lock);
    }
    free(threads);
    link->threads = NULL;
}

void tt_socket_threads_add(struct socket_link *link, int number, struct socket_part part,
                           bool wakes)
{
    struct socket_lane *lane = &link->lanes[number];
    struct socket_threads *threads = link->threads;
    uint32_t posted = atomic_load_explicit(&lane->posted, memory_order_relaxed);
    part.size = part.left;
    lane->parts[posted % TT_LEN(lane->parts)] = part;
    /* pairs with the acquire load in lane_take() */
    atomic_store_explicit(&lane->posted, posted + 1, memory_order_release);
    if (wakes) wake(&threads->each[(number - 1) % threads->count]);
}

static ncclResult_t lane_move(struct socket_link *link, struct socket_lane *lane)
{
    ncclResult_t rc = ncclSuccess;
    if (link->sending && link->resume) return tt_socket_resume_send(link, lane);
    if (lane->first == lane->last) return ncclSuccess;
    if (link->sending) return tt_socket_lane_send(link, lane);
    if (link->resume) rc = tt_socket_resume_look(link, lane);
    return rc ? rc : tt_socket_lane_recv(link, lane);
}

/* So much came at once that more can be expected at once: its thread is of use again. */
static bool is_flowing(const struct socket_lane *lane, uint64_t before)
{
    return lane->first != lane->last && lane->moved - before >= WAKE_BYTES;
}

ncclResult_t tt_socket_lanes_move(struct socket_link *link)
{
    struct socket_threads *threads = link->threads;
    ncclResult_t rc = ncclSuccess;
    for (int i = 1; i < link->nlanes && !rc; i++) {
        struct socket_lane *lane = &link->lanes[i];
        if (!threads) {
            rc = lane_move(link, lane);
            continue;
        }
        if (!lane_take(lane)) continue; /* its thread moves it */
        const uint64_t before = lane->moved;
        if (lane->fault) rc = tt_socket_lane_fault(link, lane);
        if (!rc) rc = lane_move(link, lane);
        const bool flows = is_flowing(lane, before);
        lane_give(lane);
        if (flows) wake(&threads->each[(i - 1) % threads->count]);
    }
    return rc;
}

void tt_net_socket_stop(void *comm)
{
    struct socket_link *link = comm;
    if (!link->error) link->error = ncclRemoteError; /* not reported: another one was */
    for (int i = 0; i < link->nlanes; i++) {
        struct socket_lane *lane = &link->lanes[i];
        while (lane->shared && !lane_take(lane))
            sched_yield();
        lane->first = lane->held = lane->last;
        if (lane->shared) lane_give(lane);
    }
}

ncclResult_t tt_net_socket_tend(void *comm)
{
    struct socket_link *link = comm;
    ncclResult_t rc = link->error;
    if (!link->resume || link->sending) return rc;
    for (int i = 0; i < link->nlanes && !rc; i++) {
        struct socket_lane *lane = &link->lanes[i];
        if (lane->shared && !lane_take(lane)) continue; /* it is not idle */
        rc = tt_socket_resume_tend(link, lane);
        if (lane->shared) lane_give(lane);
    }
    return rc;
}
