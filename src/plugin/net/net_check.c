/* TUTTI_PLUGIN_CHECK=1: does a network keep the contract of the ABI? Each function is called
 * through one of the same name here, which looks at what came back and says each breach once, with
 * the function and the argument. Calls and answers stay as they are. Slow: messages are summed up
 * before and after, and one lock guards the books. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/system/thread_time.h"
#include "plugin/net/net_abi.h"
#include "plugin/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_MSEC = 100, /* for a call that must not wait */
    MOST_BREACHES = 64,
    MOST_DEVICES = 32,
    NAME_BYTES = 64,
    SIZES = TT_NET_GROUP,
    CANARY = 0xa5,
    CANARY_BYTES = 64,
};

struct posted { /* a message of a request under way */
    struct posted *next;
    int number; /* in its request */
    const void *request, *comm;
    char *data;
    size_t bytes;
    uint64_t sum; /* of what is sent */
    char *before; /* owned: what lay where it is received; NULL: sent */
};

struct comm { /* a connection that is open */
    struct comm *next;
    const void *address;
};

struct tt_net_check {
    struct tt_net_ops inner;
    pthread_mutex_t lock;
    struct posted *posted;
    struct comm *comms;
    struct tt_net_breach breaches[MOST_BREACHES];
    int nbreaches, ndevs;
    char names[MOST_DEVICES][NAME_BYTES];
    uint64_t ncalls;
    struct tt_threads_ready ready; /* until the last call that took long */
};

static void lock(struct tt_net_plugin *self)
{
    pthread_mutex_lock(&self->check->lock);
}

static void unlock(struct tt_net_plugin *self)
{
    pthread_mutex_unlock(&self->check->lock);
}

static const char *name_of(const struct tt_net_plugin *self)
{
    const char *name = *(const char *const *)self->object;
    return name ? name : "without a name";
}

/* Each kind of breach is reported once; the lock is held. The texts are literals. */
static void breach(struct tt_net_plugin *self, const char *function, const char *what)
{
    struct tt_net_check *check = self->check;
    for (int i = 0; i < check->nbreaches; i++) {
        if (check->breaches[i].function == function && check->breaches[i].what == what) return;
    }
    if (check->nbreaches == MOST_BREACHES) return;
    check->breaches[check->nbreaches++] = (struct tt_net_breach){function, what};
    tt_warn("NET/%s breaks the contract of network plugins: %s: %s", name_of(self), function, what);
    tt_plugins.nets.broke_contract = true;
}

static void took_long(struct tt_net_plugin *self, const char *function)
{
    breach(self, function, "it took more than 100 ms, and must return at once");
}

/* What every answer must be; the lock is held. */
static void judge(struct tt_net_plugin *self, const char *function,
                  const struct tt_thread_spent *spent, ncclResult_t rc)
{
    self->check->ncalls++;
    if ((int)rc < 0 || rc >= ncclNumResults || rc == ncclInProgress)
        breach(self, function, "result: not a code that it may return");
    if (tt_thread_spent_more(spent, MOST_MSEC * 1000000ull, &self->check->ready))
        took_long(self, function);
}

/* The proxy's thread only asks meanwhile whether it has returned: it is not in the plugin, and what
 * it waits for a processor is no lock that the call slept on. */
void tt_net_check_took(struct tt_net_plugin *self, const char *function,
                       const struct tt_thread_spent *spent)
{
    if (!self->check) return;
    lock(self);
    if (spent->computed_nsec + spent->slept_nsec > MOST_MSEC * 1000000ull)
        took_long(self, function);
    unlock(self);
}

/* ---- the books; the lock is held ---- */

static struct posted **find_posted(struct tt_net_check *check, const void *request)
{
    struct posted **at = &check->posted;
    while (*at && (*at)->request != request)
        at = &(*at)->next;
    return at;
}

static void forget_posted(struct posted **at)
{
    struct posted *posted = *at;
    *at = posted->next;
    free(posted->before);
    free(posted);
}

static void comm_opened(struct tt_net_plugin *self, const char *function, const void *address)
{
    struct tt_net_check *check = self->check;
    for (const struct comm *known = check->comms; known; known = known->next) {
        if (known->address == address) breach(self, function, "the connection is one that is open");
    }
    struct comm *comm = tt_calloc(1, sizeof(*comm));
    if (!comm) return;
    *comm = (struct comm){check->comms, address};
    check->comms = comm;
}

/* True when nothing was under way, so that closing has no reason to fail. */
static bool comm_closed(struct tt_net_check *check, const void *address)
{
    bool idle = true;
    for (struct comm **at = &check->comms; *at; at = &(*at)->next) {
        struct comm *comm = *at;
        if (comm->address != address) continue;
        *at = comm->next;
        free(comm);
        break;
    }
    for (struct posted **at = &check->posted; *at;) {
        bool own = (*at)->comm == address;
        idle &= !own;
        if (own) forget_posted(at);
        if (!own) at = &(*at)->next;
    }
    return idle;
}

/* ---- devices ---- */

static ncclResult_t check_devices(struct tt_net_plugin *self, int *ndev)
{
    struct tt_net_check *check = self->check;
    struct tt_thread_time time;
    tt_thread_time_begin(&time);
    ncclResult_t rc = check->inner.devices(self, ndev);
    const struct tt_thread_spent spent =
        tt_thread_time_spent(&time); /* without what the lock takes */
    lock(self);
    judge(self, "devices", &spent, rc);
    int own = tt_net_virtual_below(self, *ndev);
    if (!rc && check->ndevs && check->ndevs != own)
        breach(self, "devices", "ndev: another number than before");
    if (!rc) check->ndevs = own;
    unlock(self);
    return rc;
}

/* The name is the key of a device among the machine's NICs. */
static void judge_name(struct tt_net_plugin *self, int dev, const char *name)
{
    struct tt_net_check *check = self->check;
    if (dev >= MOST_DEVICES) return;
    snprintf(check->names[dev], NAME_BYTES, "%s", name);
    for (int other = 0; other < MOST_DEVICES; other++) {
        if (other != dev && !strcmp(check->names[other], check->names[dev]))
            breach(self, "getProperties", "name: two devices have the same");
    }
}

static void judge_properties(struct tt_net_plugin *self, int dev,
                             const ncclNetProperties_v12_t *props)
{
    if (!props->name || !*props->name) breach(self, "getProperties", "name: there is none");
    if (props->name && *props->name) judge_name(self, dev, props->name);
    if (!(props->ptrSupport & NCCL_PTR_HOST))
        breach(self, "getProperties", "ptrSupport: not even memory of the host");
    if (props->speed < 0) breach(self, "getProperties", "speed: negative");
    if (props->maxComms < 1) breach(self, "getProperties", "maxComms: less than 1");
    if (props->maxRecvs < 1) breach(self, "getProperties", "maxRecvs: less than 1");
    if (props->vProps.ndevs < 1 || props->vProps.ndevs > NCCL_NET_MAX_DEVS_PER_NIC)
        breach(self, "getProperties", "vProps: not 1 to 8 devices");
    if (!tt_net_size_fits(props->maxP2pBytes))
        breach(self, "getProperties", "maxP2pBytes: not 1 byte to 1 TiB");
    if (!tt_net_size_fits(props->maxCollBytes))
        breach(self, "getProperties", "maxCollBytes: not 1 byte to 1 TiB");
}

static ncclResult_t check_properties(struct tt_net_plugin *self, int dev,
                                     ncclNetProperties_v12_t *props)
{
    struct tt_thread_time time;
    tt_thread_time_begin(&time);
    ncclResult_t rc = self->check->inner.properties(self, dev, props);
    const struct tt_thread_spent spent =
        tt_thread_time_spent(&time); /* without what the lock takes */
    lock(self);
    judge(self, "getProperties", &spent, rc);
    if (!rc) judge_properties(self, dev, props);
    unlock(self);
    return rc;
}

/* ---- connections ---- */

static ncclResult_t check_listen(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                                 void **listen_comm)
{
    _Alignas(16) char room[NCCL_NET_HANDLE_MAXSIZE + CANARY_BYTES];
    struct tt_thread_time time;
    tt_thread_time_begin(&time);
    bool beyond = false;
    memset(room, 0, NCCL_NET_HANDLE_MAXSIZE);
    memset(room + NCCL_NET_HANDLE_MAXSIZE, CANARY, CANARY_BYTES);
    ncclResult_t rc = self->check->inner.listen(self, ctx, dev, room, listen_comm);
    memcpy(handle, room, NCCL_NET_HANDLE_MAXSIZE);
    for (int i = NCCL_NET_HANDLE_MAXSIZE; i < (int)sizeof(room); i++)
        beyond |= (unsigned char)room[i] != CANARY;
    const struct tt_thread_spent spent =
        tt_thread_time_spent(&time); /* without what the lock takes */
    lock(self);
    judge(self, "listen", &spent, rc);
    if (beyond) breach(self, "listen", "handle: more than 128 bytes were written");
    if (!rc && !*listen_comm) breach(self, "listen", "listenComm: success without one");
    unlock(self);
    if (rc || *listen_comm) return rc;
    return tt_fail(ncclInternalError, "NET/%s: listen gave nothing to listen with", name_of(self));
}

static void judge_connection(struct tt_net_plugin *self, const char *function, ncclResult_t rc,
                             const void *comm)
{
    if (rc && comm) breach(self, function, "an error together with a connection");
    if (!rc && comm) comm_opened(self, function, comm);
}

static ncclResult_t check_connect(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                                  void **send_comm)
{
    struct tt_thread_time time;
    tt_thread_time_begin(&time);
    ncclResult_t rc = self->check->inner.connect(self, ctx, dev, handle, send_comm);
    const struct tt_thread_spent spent =
        tt_thread_time_spent(&time); /* without what the lock takes */
    lock(self);
    judge(self, "connect", &spent, rc);
    judge_connection(self, "connect", rc, *send_comm);
    unlock(self);
    return rc;
}

static ncclResult_t check_accept(struct tt_net_plugin *self, void *listen_comm, void **recv_comm)
{
    struct tt_thread_time time;
    tt_thread_time_begin(&time);
    ncclResult_t rc = self->check->inner.accept(self, listen_comm, recv_comm);
    const struct tt_thread_spent spent =
        tt_thread_time_spent(&time); /* without what the lock takes */
    lock(self);
    judge(self, "accept", &spent, rc);
    judge_connection(self, "accept", rc, *recv_comm);
    unlock(self);
    return rc;
}

/* The network forgets the connection while it closes it, and may give its place to another. */
static ncclResult_t judge_close(struct tt_net_plugin *self, const char *function, void *comm,
                                ncclResult_t (*close)(struct tt_net_plugin *, void *))
{
    lock(self);
    bool idle = comm_closed(self->check, comm);
    unlock(self);
    struct tt_thread_time time;
    tt_thread_time_begin(&time);
    ncclResult_t rc = close(self, comm);
    const struct tt_thread_spent spent =
        tt_thread_time_spent(&time); /* without what the lock takes */
    lock(self);
    judge(self, function, &spent, rc);
    if (rc && idle) breach(self, function, "result: an error, though no request was under way");
    unlock(self);
    return rc;
}

static ncclResult_t check_close_send(struct tt_net_plugin *self, void *send_comm)
{
    return judge_close(self, "closeSend", send_comm, self->check->inner.close_send);
}

static ncclResult_t check_close_recv(struct tt_net_plugin *self, void *recv_comm)
{
    return judge_close(self, "closeRecv", recv_comm, self->check->inner.close_recv);
}

static ncclResult_t check_dereg_mr(struct tt_net_plugin *self, void *comm, void *mhandle)
{
    struct tt_thread_time time;
    tt_thread_time_begin(&time);
    ncclResult_t rc = self->check->inner.dereg_mr(self, comm, mhandle);
    const struct tt_thread_spent spent =
        tt_thread_time_spent(&time); /* without what the lock takes */
    lock(self);
    judge(self, "deregMr", &spent, rc);
    if (rc) breach(self, "deregMr", "result: an error for a registration of this connection");
    unlock(self);
    return rc;
}

/* ---- requests ---- */

/* A request that is under way cannot be given out again. */
static void judge_request(struct tt_net_plugin *self, const char *function, const void *request)
{
    struct posted **at = find_posted(self->check, request);
    if (*at) breach(self, function, "request: the same as one under way");
    while (*at) {
        forget_posted(at);
        at = find_posted(self->check, request);
    }
}

/* Keep what completion will be compared with. */
static void remember(struct tt_net_plugin *self, const struct posted *posted)
{
    struct tt_net_check *check = self->check;
    struct posted *kept = tt_calloc(1, sizeof(*kept));
    if (!kept) {
        free(posted->before);
        return;
    }
    *kept = *posted;
    kept->next = check->posted;
    check->posted = kept;
}

static ncclResult_t check_isend(struct tt_net_plugin *self, void *send_comm,
                                const struct tt_net_part *part, void **request)
{
    struct tt_thread_time time;
    tt_thread_time_begin(&time);
    ncclResult_t rc = self->check->inner.isend(self, send_comm, part, request);
    const struct tt_thread_spent spent =
        tt_thread_time_spent(&time); /* without what the lock takes */
    lock(self);
    judge(self, "isend", &spent, rc);
    if (rc && *request) breach(self, "isend", "request: an error together with one");
    if (!rc && *request) {
        judge_request(self, "isend", *request);
        const struct posted posted = {.request = *request,
                                      .comm = send_comm,
                                      .data = part->data,
                                      .bytes = part->bytes,
                                      .sum = tt_hash_bytes(TT_HASH_START, part->data, part->bytes)};
        remember(self, &posted);
    }
    unlock(self);
    return rc;
}

static ncclResult_t check_irecv_group(struct tt_net_plugin *self, void *recv_comm,
                                      const struct tt_net_part *parts, int count, void **request)
{
    char *before[TT_NET_GROUP];
    for (int i = 0; i < count; i++) {
        before[i] = tt_calloc(1, parts[i].bytes + 1);
        if (before[i]) memcpy(before[i], parts[i].data, parts[i].bytes);
    }
    const struct tt_net_ops *inner = &self->check->inner;
    struct tt_thread_time time;
    tt_thread_time_begin(&time);
    ncclResult_t rc = count == 1 ? inner->irecv(self, recv_comm, parts, request)
                                 : inner->irecv_group(self, recv_comm, parts, count, request);
    const struct tt_thread_spent spent =
        tt_thread_time_spent(&time); /* without what the lock takes */
    lock(self);
    judge(self, "irecv", &spent, rc);
    if (rc && *request) breach(self, "irecv", "request: an error together with one");
    bool posts = !rc && *request;
    if (posts) judge_request(self, "irecv", *request);
    for (int i = 0; i < count; i++) {
        const struct posted posted = {.request = *request,
                                      .comm = recv_comm,
                                      .number = i,
                                      .data = parts[i].data,
                                      .bytes = parts[i].bytes,
                                      .before = before[i]};
        if (posts && before[i]) remember(self, &posted);
        if (!posts) free(before[i]);
    }
    unlock(self);
    return rc;
}

static ncclResult_t check_irecv(struct tt_net_plugin *self, void *recv_comm,
                                const struct tt_net_part *part, void **request)
{
    return check_irecv_group(self, recv_comm, part, 1, request);
}

static const char wrong_sent[] = "sizes: another size than was sent";
static const char too_many[] =
    "data: more bytes were written than test told: its size is too small, or they are too many";

static bool is_found(const struct tt_net_check *check, const char *what)
{
    bool found = false;
    for (int i = 0; i < check->nbreaches; i++)
        found = found || check->breaches[i].what == what;
    return found;
}

static void judge_received(struct tt_net_plugin *self, const struct posted *posted, int bytes)
{
    if (bytes < 0) {
        breach(self, "test", "sizes: a receive is done and its size is not set");
    } else if ((size_t)bytes > posted->bytes) {
        breach(self, "test", "sizes: more than the receive has room for");
    } else if (memcmp(posted->before + bytes, posted->data + bytes,
                      posted->bytes - (size_t)bytes) != 0) {
        /* where test told the sender a wrong size, this one is wrong, too */
        if (!is_found(self->check, wrong_sent)) breach(self, "irecv", too_many);
    }
}

static void judge_sent(struct tt_net_plugin *self, const struct posted *posted, int bytes)
{
    if (bytes >= 0 && (size_t)bytes != posted->bytes) breach(self, "test", wrong_sent);
    if (tt_hash_bytes(TT_HASH_START, posted->data, posted->bytes) != posted->sum)
        breach(self, "isend", "data: what was to be sent has been changed");
}

/* The request is done: each of its messages is compared. */
static void judge_done(struct tt_net_plugin *self, const void *request, const int sizes[SIZES])
{
    for (struct posted **at = find_posted(self->check, request); *at;
         at = find_posted(self->check, request)) {
        if ((*at)->before) judge_received(self, *at, sizes[(*at)->number]);
        if (!(*at)->before) judge_sent(self, *at, sizes[0]);
        forget_posted(at);
    }
}

static int messages_of(const struct tt_net_check *check, const void *request)
{
    int count = 0;
    for (const struct posted *posted = check->posted; posted; posted = posted->next)
        count += posted->request == request;
    return count ? count : 1;
}

static ncclResult_t check_test(struct tt_net_plugin *self, void *request, int *done, int *bytes)
{
    int sizes[SIZES];
    memset(sizes, 0xff, sizeof(sizes)); /* -1: not set */
    *done = -1;
    lock(
        self); /* to the end: a request that is done may be the next one that another thread gets */
    int count = messages_of(self->check, request);
    struct tt_thread_time time;
    tt_thread_time_begin(&time);
    ncclResult_t rc = self->check->inner.test(self, request, done, sizes);
    const struct tt_thread_spent spent = tt_thread_time_spent(&time);
    judge(self, "test", &spent, rc);
    if (!rc && *done == -1) breach(self, "test", "done: it is not set");
    if (*done == -1) *done = 0;
    if (!rc && *done != 0 && *done != 1) breach(self, "test", "done: neither 0 nor 1");
    for (int i = count; i < SIZES; i++) {
        if (sizes[i] != -1) breach(self, "test", "sizes: more were set than the request has");
    }
    if (!rc && *done) judge_done(self, request, sizes);
    unlock(self);
    for (int i = 0; bytes && i < count; i++)
        if (sizes[i] != -1) bytes[i] = sizes[i];
    return rc;
}

/* ---- all of it ---- */

ncclResult_t tt_net_check_begin(struct tt_net_plugin *self)
{
    struct tt_net_check *check = tt_calloc(1, sizeof(*check));
    if (!check) return tt_fail(ncclSystemError, "net: out of memory");
    check->inner = self->ops;
    tt_threads_ready_added(&check->ready, 0);
    pthread_mutex_init(&check->lock, NULL);
    self->ops.devices = check_devices;
    self->ops.properties = check_properties;
    self->ops.listen = check_listen;
    self->ops.connect = check_connect;
    self->ops.accept = check_accept;
    self->ops.dereg_mr = check_dereg_mr;
    self->ops.isend = check_isend;
    self->ops.irecv = check_irecv;
    if (self->ops.irecv_group) self->ops.irecv_group = check_irecv_group;
    self->ops.test = check_test;
    self->ops.close_send = check_close_send;
    self->ops.close_recv = check_close_recv;
    self->check = check;
    return ncclSuccess;
}

int tt_net_breaches(const struct tt_net_plugin *self, struct tt_net_breach *breaches, int most)
{
    struct tt_net_check *check = self->check;
    if (!check) return 0;
    pthread_mutex_lock(&check->lock);
    int n = check->nbreaches < most ? check->nbreaches : most;
    memcpy(breaches, check->breaches, (size_t)n * sizeof(*breaches));
    pthread_mutex_unlock(&check->lock);
    return n;
}

void tt_net_check_end(struct tt_net_plugin *self)
{
    struct tt_net_check *check = self->check;
    if (!check) return;
    tt_info(TT_LOG_INIT | TT_LOG_NET,
            "NET/%s: %llu calls were checked, %d breaches of the contract", name_of(self),
            (unsigned long long)check->ncalls, check->nbreaches);
    while (check->posted)
        forget_posted(&check->posted);
    while (check->comms) {
        struct comm *comm = check->comms;
        check->comms = comm->next;
        free(comm);
    }
    pthread_mutex_destroy(&check->lock);
    free(check);
    self->check = NULL;
}
