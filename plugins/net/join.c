/* How connections are made. The receiver listens at a TCP port, whose address travels in the handle
 * with a number that cannot be guessed. The sender calls there; both say who they are in libfabric;
 * then an empty message goes over the provider, so that its own connection is there before the
 * first message and a path that does not work is reported now. No call waits. */
#include "ofi.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    HANDLE_MAGIC = 0x7469666f,
    VERSION = 1,
    NONCE_BYTES = 16,
    CALLERS = 8,         /* at a listener, that have not said who they are */
    ANSWER_MSEC = 30000, /* for the connection and for the answer */
};
#define GREETING UINT64_C(0x8000000000000000) /* in the tag; numbers of connections are smaller */

struct handle { /* travels to the sender */
    uint32_t magic;
    unsigned char nonce[NONCE_BYTES];
    struct ofi_address address;
    struct connector *connector; /* the sender's own: NULL as it comes */
};
_Static_assert(sizeof(struct handle) <= NCCL_NET_HANDLE_MAXSIZE, "the host gives 128 bytes");

struct hello { /* from either end */
    uint32_t magic, version;
    unsigned char nonce[NONCE_BYTES];
    char provider[OFI_NAME_BYTES];
    char address[OFI_ADDRESS_BYTES];
    uint32_t id, zero; /* id: of the connection at its receiver */
};

struct caller {
    int fd; /* -1: none */
    size_t moved;
    struct hello hello;
};

struct listener {
    struct ofi_domain *domain;
    int fd;
    unsigned char nonce[NONCE_BYTES];
    struct caller callers[CALLERS];
    int next;              /* the oldest caller */
    struct ofi_comm *comm; /* owned: being made */
};

struct connector {
    struct ofi_pending pending; /* first: how the net knows it */
    struct ofi_domain *domain;
    int fd; /* -1: the connection's */
    size_t sent, received;
    struct hello hello, answer;
    uint64_t until_nsec;
    struct ofi_comm *comm; /* owned: its greeting is under way */
    char words[OFI_PEER_BYTES];
};

/* ---- what both do ---- */

static void introduce(const struct ofi_domain *domain, const unsigned char *nonce,
                      const struct ofi_comm *comm, struct hello *hello)
{
    memset(hello, 0, sizeof(*hello));
    hello->magic = HANDLE_MAGIC;
    hello->version = VERSION;
    memcpy(hello->nonce, nonce, NONCE_BYTES);
    memcpy(hello->provider, domain->device->provider, OFI_NAME_BYTES);
    if (comm) memcpy(hello->address, comm->endpoint->address, OFI_ADDRESS_BYTES);
    if (comm) hello->id = comm->id;
}

static bool is_known(const struct hello *hello, const unsigned char *nonce)
{
    return hello->magic == HANDLE_MAGIC && hello->version == VERSION &&
           !memcmp(hello->nonce, nonce, NONCE_BYTES) && !hello->provider[OFI_NAME_BYTES - 1];
}

/* Begin an empty message, with a tag that no message has. 0, -FI_EAGAIN, or libfabric's error. */
static ssize_t greet(struct ofi_comm *comm)
{
    struct fid_ep *ep = comm->endpoint->ep;
    struct ofi_request *greeting = ofi_request_take(comm->endpoint);
    if (!greeting || !ep) return -FI_ENOMEM;
    struct ofi_op *op = &greeting->ops[0];
    uint64_t tag = GREETING | comm->id;
    *op = (struct ofi_op){.request = greeting};
    greeting->comm = comm;
    greeting->next = NULL;
    greeting->parts = greeting->left = 1;
    greeting->error = 0;
    ssize_t rc = comm->sending ? fi_tsend(ep, NULL, 0, NULL, comm->peer, tag, &op->context)
                               : fi_trecv(ep, NULL, 0, NULL, FI_ADDR_UNSPEC, tag, 0, &op->context);
    if (rc) {
        ofi_request_give(comm->endpoint, greeting);
    } else {
        comm->requests = greeting; /* to be withdrawn when the connection is given up */
    }
    return rc;
}

/* True when the greeting has come over; *rc when it never will, however often it is asked. */
static bool is_greeted(struct ofi_comm *comm, ncclResult_t *rc)
{
    struct ofi_request *greeting = comm->requests;
    if (!greeting) *rc = comm->failed;
    if (!greeting) return false;
    ofi_endpoint_progress(comm->endpoint);
    if (greeting->left) {
        *rc = ofi_comm_look(comm);
        return false;
    }
    comm->requests = NULL;
    if (greeting->error) *rc = ofi_comm_fail(comm, ncclRemoteError, fi_strerror(greeting->error));
    ofi_request_give(comm->endpoint, greeting);
    return !*rc;
}

/* ---- the receiver ---- */

ncclResult_t ofi_close_listen(void *listen_comm)
{
    struct listener *listener = listen_comm;
    if (listener->comm) ofi_comm_close(listener->comm); /* with its share of the domain */
    for (int i = 0; i < CALLERS; i++) {
        if (listener->callers[i].fd >= 0) close(listener->callers[i].fd);
    }
    if (listener->fd >= 0) close(listener->fd);
    ofi_domain_release(listener->domain);
    free(listener);
    return ncclSuccess;
}

ncclResult_t ofi_listen(void *ctx, int dev, void *opaque, void **listen_comm)
{
    struct handle handle = {.magic = HANDLE_MAGIC};
    struct listener *listener = calloc(1, sizeof(*listener));
    if (!listener) return ofi_fail(ncclSystemError, "out of memory");
    ncclResult_t rc = ofi_domain_acquire(ctx, dev, &listener->domain);
    if (rc) {
        free(listener);
        return rc;
    }
    for (int i = 0; i < CALLERS; i++)
        listener->callers[i].fd = -1;
    handle.address = listener->domain->device->control;
    listener->fd = ofi_control_listen(&handle.address);
    if (listener->fd < 0 || getrandom(listener->nonce, NONCE_BYTES, 0) != NONCE_BYTES) {
        rc = ofi_fail(ncclSystemError, "no port to be called at, device %s: %s",
                      listener->domain->device->name, strerror(errno));
        (void)ofi_close_listen(listener);
        return rc;
    }
    memcpy(handle.nonce, listener->nonce, NONCE_BYTES);
    memset(opaque, 0, NCCL_NET_HANDLE_MAXSIZE);
    memcpy(opaque, &handle, sizeof(handle));
    *listen_comm = listener;
    return ncclSuccess;
}

/* The sender that the handle went to: make its connection. Others are not answered. */
static ncclResult_t answer(struct listener *listener, struct caller *caller)
{
    struct ofi_domain *domain = listener->domain;
    struct hello hello;
    size_t sent = 0;
    int fd = caller->fd;
    caller->fd = -1;
    if (!is_known(&caller->hello, listener->nonce)) {
        close(fd);
        return ncclSuccess;
    }
    ofi_domain_share(domain);
    ncclResult_t rc = ofi_comm_create(domain, false, fd, &listener->comm);
    if (rc) {
        ofi_domain_release(domain);
        return rc;
    }
    struct ofi_comm *comm = listener->comm;
    comm->id = ++comm->endpoint->next_id & INT32_MAX;
    introduce(domain, listener->nonce, comm, &hello);
    if (ofi_control_move(fd, true, &hello, sizeof(hello), &sent) != OFI_STEP_DONE)
        return ofi_comm_fail(comm, ncclRemoteError, "it does not take the answer to its call");
    if (strcmp(caller->hello.provider, hello.provider) != 0) {
        comm->failed = ncclInvalidUsage;
        return ofi_fail(comm->failed, "the sender at %s uses provider %s, this rank %s",
                        comm->peer_words, caller->hello.provider, hello.provider);
    }
    ssize_t posted = greet(comm);
    return posted ? ofi_comm_fail(comm, ncclSystemError, fi_strerror((int)-posted)) : ncclSuccess;
}

static ncclResult_t receive_callers(struct listener *listener)
{
    int fd = ofi_control_accept(listener->fd);
    if (fd >= 0) {
        struct caller *caller = &listener->callers[listener->next];
        listener->next = (listener->next + 1) % CALLERS;
        if (caller->fd >= 0) close(caller->fd); /* it has had its time */
        *caller = (struct caller){.fd = fd};
    }
    for (int i = 0; i < CALLERS && !listener->comm; i++) {
        struct caller *caller = &listener->callers[i];
        enum ofi_step step = OFI_STEP_AGAIN;
        if (caller->fd >= 0) {
            step = ofi_control_move(caller->fd, false, &caller->hello, sizeof(caller->hello),
                                    &caller->moved);
        }
        if (step == OFI_STEP_LOST) {
            close(caller->fd);
            caller->fd = -1;
        }
        ncclResult_t rc = step == OFI_STEP_DONE ? answer(listener, caller) : ncclSuccess;
        if (rc) return rc;
    }
    return ncclSuccess;
}

ncclResult_t ofi_accept(void *listen_comm, void **recv_comm)
{
    struct listener *listener = listen_comm;
    struct ofi_domain *domain = listener->domain;
    ncclResult_t rc = ncclSuccess;
    *recv_comm = NULL;
    pthread_mutex_lock(&domain->lock);
    if (!listener->comm) rc = receive_callers(listener);
    if (!rc && listener->comm && is_greeted(listener->comm, &rc)) {
        *recv_comm = listener->comm;
        listener->comm = NULL;
    }
    pthread_mutex_unlock(&domain->lock);
    return rc;
}

/* ---- the sender ---- */

static void connector_destroy(struct connector *connector)
{
    ofi_pending_remove(&connector->pending);
    if (connector->comm) {
        ofi_comm_close(connector->comm); /* with its share of the domain */
    } else {
        ofi_domain_release(connector->domain);
    }
    if (connector->fd >= 0) close(connector->fd);
    free(connector);
}

static ncclResult_t begin(struct ofi_net *net, int dev, const struct handle *handle,
                          struct connector **connector_out)
{
    struct connector *connector = calloc(1, sizeof(*connector));
    if (!connector) return ofi_fail(ncclSystemError, "out of memory");
    ncclResult_t rc = ofi_domain_acquire(net, dev, &connector->domain);
    if (rc) {
        free(connector);
        return rc;
    }
    ofi_address_words(&handle->address, connector->words);
    connector->until_nsec = ofi_now_nsec() + ANSWER_MSEC * UINT64_C(1000000);
    introduce(connector->domain, handle->nonce, NULL, &connector->hello);
    connector->fd = ofi_control_connect(&handle->address);
    if (connector->fd < 0) {
        rc = ofi_fail(ncclRemoteError, "the receiver at %s cannot be called: %s", connector->words,
                      strerror(errno));
        connector_destroy(connector);
        return rc;
    }
    ofi_pending_add(net, &connector->pending);
    *connector_out = connector;
    return ncclSuccess;
}

/* The receiver has answered: its address is known. */
static ncclResult_t call_over_fabric(struct connector *connector)
{
    const struct hello *answer = &connector->answer;
    struct ofi_domain *domain = connector->domain;
    int fd = connector->fd;
    if (!is_known(answer, connector->hello.nonce))
        return ofi_fail(ncclRemoteError, "at %s answers somebody else", connector->words);
    if (strcmp(answer->provider, domain->device->provider) != 0) {
        return ofi_fail(ncclInvalidUsage, "the receiver at %s uses provider %s, this rank %s",
                        connector->words, answer->provider, domain->device->provider);
    }
    connector->fd = -1;
    ncclResult_t rc = ofi_comm_create(domain, true, fd, &connector->comm);
    if (rc) return rc;
    connector->comm->id = answer->id;
    return ofi_endpoint_peer(connector->comm->endpoint, answer->address, &connector->comm->peer);
}

/* Over TCP: until the receiver has answered. */
static ncclResult_t shake_hands(struct connector *connector)
{
    enum ofi_step step = ofi_control_move(connector->fd, true, &connector->hello,
                                          sizeof(connector->hello), &connector->sent);
    if (step == OFI_STEP_DONE) {
        step = ofi_control_move(connector->fd, false, &connector->answer, sizeof(connector->answer),
                                &connector->received);
    }
    if (step == OFI_STEP_LOST) {
        return ofi_fail(ncclRemoteError, "the receiver at %s hangs up: %s", connector->words,
                        errno ? strerror(errno) : "its process has ended");
    }
    if (step == OFI_STEP_DONE) {
        connector->until_nsec = ofi_now_nsec() + ANSWER_MSEC * UINT64_C(1000000);
        return call_over_fabric(connector);
    }
    if (connector->sent || ofi_now_nsec() < connector->until_nsec) return ncclSuccess;
    return ofi_fail(ncclRemoteError, "the receiver at %s cannot be reached within 30 s",
                    connector->words);
}

/* Over the provider: until the greeting has arrived. */
static ncclResult_t call(struct connector *connector, bool *done)
{
    struct ofi_comm *comm = connector->comm;
    ncclResult_t rc = ncclSuccess;
    if (!comm->requests) {
        ssize_t posted = greet(comm);
        if (posted == -FI_EAGAIN) {
            ofi_endpoint_progress(comm->endpoint);
        } else if (posted) {
            return ofi_comm_fail(comm, ncclRemoteError, fi_strerror((int)-posted));
        }
    }
    if (comm->requests && is_greeted(comm, &rc)) *done = true;
    if (!rc && !*done && ofi_now_nsec() > connector->until_nsec)
        rc = ofi_comm_fail(comm, ncclRemoteError, "nothing reaches it over the provider in 30 s");
    return rc;
}

ncclResult_t ofi_connect(void *ctx, int dev, void *opaque, void **send_comm)
{
    struct handle handle;
    ncclResult_t rc = ncclSuccess;
    bool done = false;
    *send_comm = NULL;
    memcpy(&handle, opaque, sizeof(handle));
    if (handle.magic != HANDLE_MAGIC)
        return ofi_fail(ncclInvalidArgument, "what connect was given is no handle of this network");
    if (!handle.connector) rc = begin(ctx, dev, &handle, &handle.connector);
    if (rc || !handle.connector) return rc;
    struct connector *connector = handle.connector;
    struct ofi_domain *domain = connector->domain;
    pthread_mutex_lock(&domain->lock);
    rc = connector->comm ? call(connector, &done) : shake_hands(connector);
    pthread_mutex_unlock(&domain->lock);
    if (done) {
        *send_comm = connector->comm;
        ofi_pending_remove(&connector->pending);
        free(connector);
    } else if (rc) {
        connector_destroy(connector);
    }
    if (done || rc) handle.connector = NULL;
    memcpy(opaque, &handle, sizeof(handle));
    return rc;
}

void ofi_give_up(struct ofi_net *net)
{
    for (struct ofi_pending *pending = ofi_pending_pop(net); pending;
         pending = ofi_pending_pop(net))
        connector_destroy((struct connector *)pending);
}
