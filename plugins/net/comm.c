/* A connection: how far a sender may go ahead of its receiver, how the end of the other side is
 * noticed, and how a connection ends.
 * A sender has up to OFI_WINDOW messages of a tag that it does not know to be received, so what
 * comes before its receive is posted is bounded; the receiver reports every OFI_REPORT messages.
 * The count is per tag because the parts of a grouped receive wait for each other. A provider that
 * keeps all messages of a process in one line, and reads no further than one without a receive,
 * gets a message only for a receive that is posted: the receiver reports each. When a
 * sender is closed, libfabric may hold bytes of messages that are complete (tcp does, when the
 * kernel takes no more), so its endpoint is not closed at once. */
#include "ofi.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOOK_EVERY = 256,   /* tests without a result */
    LAST_MSEC = 3000,   /* for what was sent before the other end ended */
    WITHDRAW_MSEC = 40, /* for what is under way when a connection is closed */
    REPORT_TAGS = 16,   /* a receiver keeps so many in mind */
    LISTEN_NSEC = 500,  /* of a sender that waits */
    LISTEN_MOST_NSEC = 16000,
};

static uint64_t deadline(int msec)
{
    return ofi_now_nsec() + (uint64_t)msec * 1000000u;
}

ncclResult_t ofi_comm_create(struct ofi_domain *domain, bool sending, int fd,
                             struct ofi_comm **comm_out)
{
    struct ofi_comm *comm = calloc(1, sizeof(*comm));
    if (!comm) {
        close(fd);
        return ofi_fail(ncclSystemError, "out of memory");
    }
    ncclResult_t rc = ofi_endpoint_acquire(domain, sending, &comm->endpoint);
    if (rc) {
        free(comm);
        close(fd);
        return rc;
    }
    comm->domain = domain;
    comm->sending = sending;
    comm->control.fd = fd;
    ofi_control_words(fd, comm->peer_words);
    *comm_out = comm;
    return ncclSuccess;
}

ncclResult_t ofi_comm_fail(struct ofi_comm *comm, ncclResult_t rc, const char *what)
{
    if (comm->failed) return comm->failed;
    comm->failed = rc;
    return ofi_fail(rc, "the %s at %s, device %s over %s: %s",
                    comm->sending ? "receiver" : "sender", comm->peer_words,
                    comm->domain->device->name, comm->domain->device->provider, what);
}

/* ---- what is on its way ---- */

static struct ofi_window *window_of(struct ofi_comm *comm, int tag)
{
    for (int i = 0; i < comm->nwindows; i++) {
        if (comm->windows[i].tag == tag) return &comm->windows[i];
    }
    if (comm->nwindows == OFI_TAGS) return NULL;
    comm->windows[comm->nwindows] = (struct ofi_window){.tag = tag};
    return &comm->windows[comm->nwindows++];
}

static void window_forget(struct ofi_comm *comm, struct ofi_window *window)
{
    if (window->open || window->credit) return;
    *window = comm->windows[--comm->nwindows];
}

/* What the other end has written. */
static void listen_to_peer(struct ofi_comm *comm)
{
    struct ofi_record record;
    enum ofi_step step = OFI_STEP_AGAIN;
    while (!comm->lost && (step = ofi_control_read(&comm->control, &record)) == OFI_STEP_DONE) {
        if (record.kind == OFI_RECORD_END) {
            comm->ended = true;
            comm->promised = record.count;
            continue;
        }
        struct ofi_window *window = window_of(comm, record.tag);
        if (!window) continue;
        if (record.kind == OFI_RECORD_POSTED) {
            window->credit += (uint32_t)record.count;
            continue;
        }
        window->open -= window->open < record.count ? window->open : (uint32_t)record.count;
        window_forget(comm, window);
    }
    if (!comm->lost && step == OFI_STEP_LOST) {
        comm->lost = true;
        comm->lost_nsec = ofi_now_nsec();
    }
}

static void report(struct ofi_comm *comm, uint32_t least)
{
    for (int i = comm->nwindows - 1; i >= 0; i--) {
        struct ofi_window *window = &comm->windows[i];
        const struct ofi_record record = {OFI_RECORD_RECEIVED, window->tag, window->open};
        if (window->open < least) continue;
        if (!ofi_control_write(&comm->control, &record)) return; /* with a later one */
        window->open = 0;
        window_forget(comm, window);
    }
}

static void report_posted(struct ofi_comm *comm)
{
    for (int i = comm->nwindows - 1; i >= 0; i--) {
        struct ofi_window *window = &comm->windows[i];
        const struct ofi_record record = {OFI_RECORD_POSTED, window->tag, window->credit};
        if (!window->credit) continue;
        if (!ofi_control_write(&comm->control, &record)) return; /* ofi_comm_look() tries again */
        window->credit = 0;
        window_forget(comm, window);
    }
    comm->unreported = false;
}

void ofi_comm_posted(struct ofi_comm *comm, int tag)
{
    struct ofi_window *window = comm->domain->device->in_line ? window_of(comm, tag) : NULL;
    if (!window) return;
    window->credit++;
    comm->unreported = true;
    report_posted(comm);
}

static bool has_room(struct ofi_comm *comm, int tag)
{
    const struct ofi_window *window = window_of(comm, tag);
    if (!window || window->open >= OFI_WINDOW) return false;
    return !comm->domain->device->in_line || window->credit > 0;
}

/* Who waits asks again at once; the socket is read at growing intervals. */
bool ofi_comm_may_send(struct ofi_comm *comm, int tag)
{
    if (has_room(comm, tag)) return true;
    uint64_t now = ofi_now_nsec();
    if (now < comm->listen_nsec) return false;
    listen_to_peer(comm);
    bool room = has_room(comm, tag);
    comm->pause_nsec = room ? 0 : comm->pause_nsec * 2 + LISTEN_NSEC;
    if (comm->pause_nsec > LISTEN_MOST_NSEC) comm->pause_nsec = LISTEN_MOST_NSEC;
    comm->listen_nsec = now + comm->pause_nsec;
    return room;
}

void ofi_comm_count(struct ofi_comm *comm, int tag)
{
    struct ofi_window *window = window_of(comm, tag);
    comm->moved++;
    comm->lost_nsec = 0; /* there was more */
    if (window) window->open++;
    if (window && comm->sending && window->credit) window->credit--;
    if (comm->sending || !window) return;
    if (window->open >= OFI_REPORT) report(comm, OFI_REPORT);
    if (comm->nwindows >= REPORT_TAGS) report(comm, 1);
}

ncclResult_t ofi_comm_look(struct ofi_comm *comm)
{
    if (comm->failed) return comm->failed;
    if (!comm->endpoint->ep) {
        return ofi_comm_fail(comm, ncclInternalError,
                             "ended with another connection whose messages could not be withdrawn");
    }
    if (comm->unreported) report_posted(comm);
    if (++comm->looks % LOOK_EVERY) return ncclSuccess;
    listen_to_peer(comm);
    if (!comm->lost) return ncclSuccess;
    uint64_t now = ofi_now_nsec();
    if (!comm->lost_nsec) comm->lost_nsec = now;
    bool all = comm->ended && comm->moved >= comm->promised;
    if (!all && now - comm->lost_nsec < LAST_MSEC * (uint64_t)1000000) return ncclSuccess;
    if (comm->ended) {
        return ofi_comm_fail(comm, ncclRemoteError,
                             "it has closed the connection while a message was under way");
    }
    return ofi_comm_fail(comm, ncclRemoteError, "its process has ended, or the connection was cut");
}

ssize_t ofi_comm_post(struct ofi_comm *comm, struct ofi_request *request, int part, void *data,
                      size_t bytes, void *desc)
{
    struct ofi_op *op = &request->ops[part];
    uint64_t tag = (uint64_t)comm->id << 32 | (uint32_t)request->tags[part];
    *op = (struct ofi_op){.request = request, .part = part};
    struct fid_ep *ep = comm->endpoint->ep;
    return comm->sending ? fi_tsend(ep, data, bytes, desc, comm->peer, tag, &op->context)
                         : fi_trecv(ep, data, bytes, desc, FI_ADDR_UNSPEC, tag, 0, &op->context);
}

/* ---- the end ---- */

static void withdraw(struct ofi_comm *comm)
{
    struct ofi_endpoint *endpoint = comm->endpoint;
    uint64_t until = deadline(WITHDRAW_MSEC);
    bool left = false;
    for (struct ofi_request *request = comm->requests; request; request = request->next) {
        for (int i = 0; i < request->parts && request->left && endpoint->ep; i++)
            (void)fi_cancel(&endpoint->ep->fid, &request->ops[i].context);
    }
    do {
        ofi_endpoint_progress(endpoint);
        left = false;
        for (const struct ofi_request *request = comm->requests; request; request = request->next)
            left |= request->left > 0;
    } while (left && endpoint->ep && ofi_now_nsec() < until);
    if (left) ofi_endpoint_break(endpoint); /* the users' memory may not be touched from now on */
    while (comm->requests) {
        struct ofi_request *request = comm->requests;
        comm->requests = request->next;
        ofi_request_give(endpoint, request);
    }
}

static bool is_received(const struct ofi_comm *comm)
{
    uint32_t open = 0;
    for (int i = 0; i < comm->nwindows; i++)
        open += comm->windows[i].open;
    return !open;
}

static void comm_free(struct ofi_comm *comm)
{
    ofi_control_close(&comm->control);
    free(comm);
}

/* Let go of closed senders whose messages were received, or whose receiver is gone; true: of all.
 */
static bool sweep(struct ofi_endpoint *endpoint)
{
    for (struct ofi_comm **at = &endpoint->closing; *at;) {
        struct ofi_comm *comm = *at;
        listen_to_peer(comm);
        bool over = comm->lost || is_received(comm) || !endpoint->ep;
        if (over) {
            *at = comm->next;
            comm_free(comm);
        } else {
            at = &comm->next;
        }
    }
    return !endpoint->closing;
}

void ofi_comm_close(struct ofi_comm *comm)
{
    struct ofi_domain *domain = comm->domain;
    struct ofi_endpoint *endpoint = comm->endpoint;
    bool sending = comm->sending;
    pthread_mutex_lock(&domain->lock);
    if (comm->requests) withdraw(comm);
    const struct ofi_record end = {.kind = OFI_RECORD_END, .count = comm->moved};
    if (!sending) report(comm, 1);
    (void)ofi_control_write(&comm->control, &end);
    listen_to_peer(comm); /* what is left unread would reset the connection */
    if (sending && !is_received(comm) && !comm->lost && !comm->failed) {
        comm->next = endpoint->closing;
        endpoint->closing = comm;
    } else {
        comm_free(comm);
    }
    uint64_t until = deadline(WITHDRAW_MSEC);
    bool last = endpoint->users[0] + endpoint->users[1] == 1;
    while (!sweep(endpoint) && last && ofi_now_nsec() < until)
        ofi_endpoint_progress(endpoint);
    for (struct ofi_comm *late = endpoint->closing; last && late; late = endpoint->closing) {
        endpoint->closing = late->next;
        comm_free(late);
    }
    ofi_endpoint_release(endpoint, sending);
    pthread_mutex_unlock(&domain->lock);
    ofi_domain_release(domain);
}
