/* Versions 2 to 4 wait inside connect and accept until the other end has come. The proxy's thread
 * must not: it serves both ends of other connections. So each call runs in a thread of its own and
 * is asked for, by the handle or the listener that it is about, until it has returned.
 *
 * accept of versions 5 and 6 must not wait, but plugins that offer older tables beside them often
 * have one function for all, so it is called like that as well. It begins with listen: the other
 * end may wait for it in the first test of a message.
 *
 * A call that is given up stays: nothing can end it. Its thread then closes what it was given, and
 * the library stays loaded while there is such a thread. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "plugin/net/net_abi.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AGAIN_USEC = 200, AGAIN_MOST_USEC = 2000, ACCEPT_MAY_NOT_WAIT = 5 };

struct tt_net_pending {
    struct tt_net_pending *next;
    struct tt_net_plugin *plugin; /* borrowed: of the process */
    const void *key;              /* the handle or the listener; never read through */
    void *listen_comm;            /* NULL: connects */
    int dev;
    _Alignas(16) char handle[NCCL_NET_HANDLE_MAXSIZE];
    bool done, given_up;         /* these under the lock of struct tt_net_old */
    struct tt_thread_time since; /* the call that must not wait; zeroed: none */
    ncclResult_t rc;
    void *comm;
};

static const ncclNet_v6_t *own(const struct tt_net_plugin *self)
{
    return self->table;
}

/* The lock is held: for a call that never returns the holder looks when it releases the lock. */
static void judge_time(struct tt_net_pending *pending)
{
    if (pending->since.thread) {
        const struct tt_thread_spent spent = tt_thread_time_spent(&pending->since);
        tt_net_check_took(pending->plugin, "accept", &spent);
    }
    pending->since.thread = 0;
}

static bool is_judged(const struct tt_net_pending *pending)
{
    return pending->listen_comm && pending->plugin->check &&
           pending->plugin->ops.version >= ACCEPT_MAY_NOT_WAIT;
}

static void call_once(struct tt_net_pending *pending)
{
    const ncclNet_v6_t *table = own(pending->plugin);
    pthread_mutex_t *lock = &pending->plugin->old->lock;
    bool judged = is_judged(pending);
    if (judged) {
        pthread_mutex_lock(lock);
        tt_thread_time_begin(&pending->since);
        pthread_mutex_unlock(lock);
    }
    pending->rc = pending->listen_comm
                      ? table->accept(pending->listen_comm, &pending->comm)
                      : table->connect(pending->dev, pending->handle, &pending->comm);
    if (judged) {
        pthread_mutex_lock(lock);
        judge_time(pending);
        pthread_mutex_unlock(lock);
    }
}

/* Success without a connection means: ask again. */
static void call(struct tt_net_pending *pending)
{
    uint64_t again_usec = AGAIN_USEC;
    while (!pending->rc && !pending->comm) {
        call_once(pending);
        if (pending->rc || pending->comm) return;
        pthread_mutex_lock(&pending->plugin->old->lock);
        bool given_up = pending->given_up;
        pthread_mutex_unlock(&pending->plugin->old->lock);
        if (given_up) return;
        tt_sleep_usec(again_usec);
        if (again_usec < AGAIN_MOST_USEC) again_usec *= 2;
    }
}

static void close_all(struct tt_net_pending *pending)
{
    const ncclNet_v6_t *table = own(pending->plugin);
    if (pending->comm && pending->listen_comm) table->closeRecv(pending->comm);
    if (pending->comm && !pending->listen_comm) table->closeSend(pending->comm);
    if (pending->listen_comm) table->closeListen(pending->listen_comm);
}

static void *pending_main(void *arg)
{
    struct tt_net_pending *pending = arg;
    struct tt_net_plugin *plugin = pending->plugin;
    call(pending);
    pthread_mutex_lock(&plugin->old->lock);
    bool given_up = pending->given_up;
    pending->done = true;
    if (!given_up) plugin->old->nblocked--;
    pthread_mutex_unlock(&plugin->old->lock);
    if (!given_up) return NULL; /* the next caller takes it from the list */
    close_all(pending);
    free(pending);
    pthread_mutex_lock(&plugin->old->lock);
    plugin->old->nblocked--;
    pthread_mutex_unlock(&plugin->old->lock);
    return NULL;
}

static ncclResult_t start(struct tt_net_pending *pending)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the user's threads' */
    int err = pthread_create(&thread, &attr, pending_main, pending);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    errno = err;
    if (!err) return ncclSuccess;
    return tt_fail(ncclSystemError, "NET/%s: a thread to connect with: %m",
                   own(pending->plugin)->name);
}

/* The call about `key`, taken from the list; NULL: none. The lock is held. */
static struct tt_net_pending **find(struct tt_net_plugin *self, const void *key)
{
    struct tt_net_pending **at = &self->old->pending;
    while (*at && (*at)->key != key)
        at = &(*at)->next;
    return at;
}

static ncclResult_t begin(struct tt_net_plugin *self, const struct tt_net_pending *what)
{
    struct tt_net_pending *pending = tt_calloc(1, sizeof(*pending));
    if (!pending) return tt_fail(ncclSystemError, "net: out of memory");
    *pending = *what;
    pending->plugin = self;
    pthread_mutex_lock(&self->old->lock);
    ncclResult_t rc = start(pending);
    if (!rc) {
        pending->next = self->old->pending;
        self->old->pending = pending;
        self->old->nblocked++;
    }
    pthread_mutex_unlock(&self->old->lock);
    if (rc) free(pending);
    return rc;
}

/* Ask for the call that `what` describes; the first time it is made. */
static ncclResult_t ask(struct tt_net_plugin *self, const struct tt_net_pending *what, void **comm)
{
    *comm = NULL;
    pthread_mutex_lock(&self->old->lock);
    struct tt_net_pending **at = find(self, what->key);
    struct tt_net_pending *pending = *at;
    bool done = pending && pending->done;
    if (done) *at = pending->next;
    pthread_mutex_unlock(&self->old->lock);
    if (!pending) return begin(self, what);
    if (!done) return ncclSuccess;
    ncclResult_t rc = pending->rc;
    *comm = pending->comm;
    free(pending);
    return rc;
}

ncclResult_t tt_net_blocking_connect(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                                     void **send_comm)
{
    struct tt_net_pending what = {.key = handle, .dev = dev};
    (void)ctx;
    memcpy(what.handle, handle, sizeof(what.handle));
    return ask(self, &what, send_comm);
}

ncclResult_t tt_net_blocking_accept(struct tt_net_plugin *self, void *listen_comm, void **recv_comm)
{
    const struct tt_net_pending what = {.key = listen_comm, .listen_comm = listen_comm};
    return ask(self, &what, recv_comm);
}

/* True when there was a call about `key`: it closes what it has, now or when it returns. */
static bool give_up(struct tt_net_plugin *self, const void *key)
{
    pthread_mutex_lock(&self->old->lock);
    struct tt_net_pending **at = find(self, key);
    struct tt_net_pending *pending = *at;
    bool done = pending && pending->done;
    if (pending) {
        *at = pending->next;
        pending->given_up = true;
        judge_time(pending);
    }
    pthread_mutex_unlock(&self->old->lock);
    if (!pending) return false;
    if (done) {
        close_all(pending);
        free(pending);
        return true;
    }
    tt_info(TT_LOG_NET, "NET/%s: a call that waits for its peer is left behind", own(self)->name);
    return true;
}

ncclResult_t tt_net_blocking_listen(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                                    void **listen_comm)
{
    void *comm = NULL;
    (void)ctx;
    ncclResult_t rc = own(self)->listen(dev, handle, listen_comm);
    if (rc || !*listen_comm) return rc;
    rc = tt_net_blocking_accept(self, *listen_comm, &comm);
    if (!rc) return ncclSuccess;
    own(self)->closeListen(*listen_comm);
    *listen_comm = NULL;
    return rc;
}

void tt_net_blocking_give_up(struct tt_net_plugin *self, const void *handle)
{
    give_up(self, handle);
}

ncclResult_t tt_net_blocking_close_listen(struct tt_net_plugin *self, void *listen_comm)
{
    if (give_up(self, listen_comm)) return ncclSuccess;
    return own(self)->closeListen(listen_comm);
}
