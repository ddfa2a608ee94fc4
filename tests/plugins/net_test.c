/* A network plugin for tests: "TestNet", one TCP connection over loopback per comm. It is strict:
 * what a host does against the contract of the ABI is an error with a sentence. It is also awkward,
 * within the contract: its table is empty until init, connections and requests are refused at
 * first, and handles of memory are checked. TESTNET_DEVICES: how many devices (default 1, most 4),
 * each on a rail of its own. TESTNET_CREDITS=1: nothing is taken for sending before the peer has
 * posted a receive for it, as networks are that write into the peer's memory. TESTNET_THREAD=1:
 * every connection has a thread that moves bytes also between calls. TESTNET_PATHS: their
 * directories under /sys, separated by commas. TESTNET_VIRTUAL=1: it makes one
 * device of several, whose members are not opened any more; refuse: it offers that and refuses.
 * TESTNET_FAIL=regmr|connect|listen|isend: that
 * function fails. */
#include "nccl/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUESTS 32
#define HANDLE_MAGIC 0x74657374u

extern ncclNet_v12_t ncclNetPlugin_v12;

struct context {
    ncclDebugLogger_t log;
    ncclProfilerCallback_t profiler;
    atomic_int users; /* listeners and comms */
    atomic_int hints; /* calls of setNetAttr */
    ncclNetAttr_v12_t last_hint;
};

struct handle { /* at most 128 bytes; `state` is the connector's */
    uint32_t magic;
    uint16_t port;
    uint8_t tries, dev;
    int32_t fd; /* + 1; 0 none */
    const void *address;
};

struct listener {
    struct context *context;
    int fd;
};

struct memory { /* a registration */
    struct comm *comm;
    char *base;
    size_t size;
};

struct request {
    struct comm *comm; /* NULL: free */
    char *bytes;
    uint64_t header, moved, room;
    bool done;
    void *event;
};

struct comm {
    struct context *context;
    int fd;
    bool sending;
    unsigned refused; /* every third post is refused once */
    int nmemories, nconsumed, nreceived;
    uint32_t posted, finished;
    uint32_t credits, waits; /* receives that the peer has posted; sends that came before theirs */
    bool waited;             /* the send to come did */
    struct request requests[REQUESTS];
    bool threaded;
    pthread_t thread;
    pthread_mutex_t lock; /* of all the above; also without a thread */
    ncclResult_t error;
    atomic_bool closing;
};

static ncclResult_t wrong(struct context *context, const char *what)
{
    context->log(NCCL_LOG_WARN, NCCL_ALL, __FILE__, __LINE__, "TestNet: the host is wrong: %s",
                 what);
    return ncclInternalError;
}

static bool fails(const char *what)
{
    const char *text = getenv("TESTNET_FAIL");
    return text && strcmp(text, what) == 0;
}

/* ---- set-up ---- */

#define VIRTUALS 4
static struct {
    pthread_mutex_t lock; /* of all that follows */
    int count;
    ncclNetVDeviceProps_v12_t made[VIRTUALS];
    char name[VIRTUALS][64];
} virtuals = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int physical(void)
{
    const char *text = getenv("TESTNET_DEVICES");
    return text ? atoi(text) : 1;
}

static int virtual_count(void)
{
    pthread_mutex_lock(&virtuals.lock);
    int count = virtuals.count;
    pthread_mutex_unlock(&virtuals.lock);
    return count;
}

static ncclResult_t test_devices(int *ndev)
{
    *ndev = physical() + virtual_count();
    return ncclSuccess;
}

static bool is_member(int dev)
{
    bool member = false;
    pthread_mutex_lock(&virtuals.lock);
    for (int v = 0; v < virtuals.count; v++) {
        for (int k = 0; k < virtuals.made[v].ndevs; k++)
            member |= virtuals.made[v].devs[k] == dev;
    }
    pthread_mutex_unlock(&virtuals.lock);
    return member;
}

static ncclResult_t test_make_virtual(int *dev, ncclNetVDeviceProps_v12_t *props)
{
    const char *text = getenv("TESTNET_VIRTUAL");
    if (text && strcmp(text, "refuse") == 0) return ncclInvalidUsage;
    if (props->ndevs < 2 || props->ndevs > 8 || virtual_count() == VIRTUALS)
        return ncclInvalidArgument;
    for (int k = 0; k < props->ndevs; k++) {
        if (props->devs[k] < 0 || props->devs[k] >= physical() || is_member(props->devs[k]))
            return ncclInvalidArgument;
    }
    pthread_mutex_lock(&virtuals.lock);
    char *name = virtuals.name[virtuals.count];
    for (int k = 0; k < props->ndevs; k++)
        (void)snprintf(name + strlen(name), sizeof(virtuals.name[0]) - strlen(name), "%stest%d",
                       k ? "+" : "", props->devs[k]);
    *dev = physical() + virtuals.count;
    virtuals.made[virtuals.count++] = *props;
    pthread_mutex_unlock(&virtuals.lock);
    return ncclSuccess;
}

/* Strings of a plugin stay as they are: written once. */
static char *path_of(int dev)
{
    static char paths[4][256];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const char *text = getenv("TESTNET_PATHS");
    for (int before = 0; text && before < dev; before++) {
        text = strchr(text, ',');
        if (text) text++;
    }
    if (!text || !*text || *text == ',') return NULL;
    pthread_mutex_lock(&lock);
    if (!paths[dev][0])
        (void)snprintf(paths[dev], sizeof(paths[dev]), "%.*s", (int)strcspn(text, ","), text);
    pthread_mutex_unlock(&lock);
    return paths[dev];
}

static ncclResult_t test_properties(int dev, ncclNetProperties_v12_t *props)
{
    static char names[4][8] = {"test0", "test1", "test2", "test3"};
    int v = dev - physical();
    if (dev < 0 || v >= virtual_count() || (v < 0 && dev > 3)) return ncclInvalidArgument;
    memset(props, 0, sizeof(*props));
    props->name = v < 0 ? names[dev] : virtuals.name[v];
    props->pciPath = v < 0 ? path_of(dev) : NULL;
    props->guid = (uint64_t)dev;
    props->ptrSupport = NCCL_PTR_HOST;
    props->speed = v < 0 ? 10000 : 12500 * virtuals.made[v].ndevs;
    props->maxComms = 1024;
    props->maxRecvs = 1;
    props->netDeviceType = NCCL_NET_DEVICE_HOST;
    props->vProps.ndevs = 1;
    props->vProps.devs[0] = dev;
    if (v >= 0) props->vProps = virtuals.made[v];
    props->maxP2pBytes = props->maxCollBytes = 1 << 30;
    props->maxMultiRequestSize = 1;
    props->railId = props->planeId = NCCL_NET_ID_UNDEF;
    return ncclSuccess;
}

static ncclResult_t test_set_attr(void *ctx, ncclNetAttr_v12_t *attr)
{
    struct context *context = ctx;
    const ncclNetCommAttr_v12_t *send = &attr->sendCommAttr;
    bool sound = send->minConcurrentPeers == 1 && send->maxConcurrentPeers >= 1 &&
                 send->minFlowsPerPeer == 1 && send->maxFlowsPerPeer >= 1 &&
                 !memcmp(send, &attr->recvCommAttr, sizeof(*send));
    bool first = !atomic_fetch_add(&context->hints, 1);
    if (!sound || first != (attr->op == UINT32_MAX) || !attr->op || !attr->algo || !attr->proto)
        return wrong(context, "attributes that cannot be");
    if (!memcmp(&context->last_hint, attr, sizeof(*attr)))
        return wrong(context, "the same attributes again");
    context->last_hint = *attr;
    context->log(NCCL_LOG_INFO, NCCL_NET, __FILE__, __LINE__,
                 "TestNet: hint op %x algo %x proto %x", attr->op, attr->algo, attr->proto);
    return ncclSuccess;
}

static ncclResult_t test_listen(void *ctx, int dev, void *opaque, void **listen_comm)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    struct handle handle = {.magic = HANDLE_MAGIC};
    struct context *context = ctx;
    struct listener *listener = calloc(1, sizeof(*listener));
    if (fails("listen")) return ncclSystemError;
    if (!atomic_load(&context->hints)) return wrong(context, "listen before setNetAttr");
    if (is_member(dev)) return wrong(context, "listen on a part of a virtual device");
    if (!listener || dev < 0 || dev >= physical() + virtual_count()) return ncclSystemError;
    handle.dev = (uint8_t)dev;
    listener->context = context;
    listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->fd < 0 || bind(listener->fd, (struct sockaddr *)&addr, len) ||
        listen(listener->fd, 16) || getsockname(listener->fd, (struct sockaddr *)&addr, &len)) {
        if (listener->fd >= 0) close(listener->fd);
        free(listener);
        return ncclSystemError;
    }
    handle.port = addr.sin_port;
    memset(opaque, 0, NCCL_NET_HANDLE_MAXSIZE);
    memcpy(opaque, &handle, sizeof(handle));
    atomic_fetch_add(&context->users, 1);
    *listen_comm = listener;
    return ncclSuccess;
}

static ncclResult_t move(struct request *request);

/* Requests end in their order; the lock is held. */
static void advance(struct comm *comm)
{
    while (!comm->error && comm->finished != comm->posted) {
        struct request *oldest = &comm->requests[comm->finished % REQUESTS];
        comm->error = move(oldest);
        if (!oldest->done) break;
        comm->finished++;
    }
}

static void *advance_always(void *arg)
{
    struct comm *comm = arg;
    while (!atomic_load(&comm->closing)) {
        pthread_mutex_lock(&comm->lock);
        advance(comm);
        pthread_mutex_unlock(&comm->lock);
        usleep(200);
    }
    return NULL;
}

static struct comm *comm_create(struct context *context, int fd, bool sending)
{
    int one = 1;
    struct comm *comm = calloc(1, sizeof(*comm));
    if (!comm) return NULL;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    comm->context = context;
    comm->fd = fd;
    comm->sending = sending;
    pthread_mutex_init(&comm->lock, NULL);
    if (getenv("TESTNET_THREAD"))
        comm->threaded = !pthread_create(&comm->thread, NULL, advance_always, comm);
    atomic_fetch_add(&context->users, 1);
    return comm;
}

/* The first call only notes where the handle lies: the state of a connector is in there. */
static ncclResult_t test_connect(void *ctx, int dev, void *opaque, void **send_comm,
                                 ncclNetDeviceHandle_v12_t **device)
{
    struct handle handle;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)device;
    *send_comm = NULL;
    if (fails("connect")) return ncclRemoteError;
    if (!atomic_load(&((struct context *)ctx)->hints))
        return wrong(ctx, "connect before setNetAttr");
    memcpy(&handle, opaque, sizeof(handle));
    if (handle.magic != HANDLE_MAGIC) return wrong(ctx, "not a handle");
    if (handle.dev != dev) return wrong(ctx, "a connection from one rail to another");
    if (handle.tries++ == 0) handle.address = opaque;
    if (handle.address != opaque) return wrong(ctx, "the handle moved between calls of connect");
    if (handle.tries == 3) {
        handle.fd = 1 + socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (handle.fd <= 0) return ncclSystemError;
    }
    memcpy(opaque, &handle, sizeof(handle));
    if (handle.tries < 3) return ncclSuccess;
    addr.sin_port = handle.port;
    if (connect(handle.fd - 1, (struct sockaddr *)&addr, sizeof(addr)) && errno != EISCONN)
        return errno == EINPROGRESS || errno == EALREADY ? ncclSuccess : ncclRemoteError;
    *send_comm = comm_create(ctx, handle.fd - 1, true);
    return *send_comm ? ncclSuccess : ncclSystemError;
}

static ncclResult_t test_accept(void *listen_comm, void **recv_comm,
                                ncclNetDeviceHandle_v12_t **device)
{
    struct listener *listener = listen_comm;
    (void)device;
    *recv_comm = NULL;
    int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return errno == EAGAIN ? ncclSuccess : ncclSystemError;
    *recv_comm = comm_create(listener->context, fd, false);
    return *recv_comm ? ncclSuccess : ncclSystemError;
}

static ncclResult_t test_close_listen(void *listen_comm)
{
    struct listener *listener = listen_comm;
    atomic_fetch_sub(&listener->context->users, 1);
    close(listener->fd);
    free(listener);
    return ncclSuccess;
}

static ncclResult_t test_reg(void *opaque, void *data, size_t size, int type, void **mhandle)
{
    struct comm *comm = opaque;
    struct memory *memory = fails("regmr") ? NULL : calloc(1, sizeof(*memory));
    if (!memory || type != NCCL_PTR_HOST) return ncclSystemError;
    *memory = (struct memory){comm, data, size};
    comm->nmemories++;
    *mhandle = memory;
    return ncclSuccess;
}

static ncclResult_t test_dereg(void *opaque, void *mhandle)
{
    struct comm *comm = opaque;
    struct memory *memory = mhandle;
    if (!memory || memory->comm != comm) return wrong(comm->context, "deregMr of another comm");
    comm->nmemories--;
    free(memory);
    return ncclSuccess;
}

static ncclResult_t test_close(void *opaque)
{
    struct comm *comm = opaque;
    struct context *context = comm->context;
    ncclResult_t rc = ncclSuccess;
    atomic_store(&comm->closing, true);
    if (comm->threaded) pthread_join(comm->thread, NULL);
    if (comm->nmemories) rc = wrong(context, "closed with registered memory");
    if (comm->nconsumed > comm->nreceived) rc = wrong(context, "consumed more than it received");
    if (comm->posted != comm->finished) rc = wrong(context, "closed with requests under way");
    if (comm->sending && getenv("TESTNET_CREDITS")) {
        context->log(NCCL_LOG_INFO, NCCL_NET, __FILE__, __LINE__,
                     "TestNet: %u sends, %u came before their receives", comm->posted, comm->waits);
    }
    atomic_fetch_sub(&context->users, 1);
    close(comm->fd);
    free(comm);
    return rc;
}

/* ---- requests ---- */

static bool registered(const struct memory *memory, const struct comm *comm, const char *data,
                       size_t size)
{
    return memory && memory->comm == comm && data >= memory->base &&
           data + size <= memory->base + memory->size;
}

static void start_event(struct request *request, void *phandle)
{
    struct context *context = request->comm->context;
    if (phandle) context->profiler(&request->event, 0, phandle, 1, NULL);
}

/* One byte goes back for each receive. */
static bool has_receive(struct comm *comm)
{
    char bytes[REQUESTS];
    if (!getenv("TESTNET_CREDITS")) return true;
    ssize_t n = recv(comm->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n > 0) comm->credits += (uint32_t)n;
    bool waits = comm->credits == comm->posted;
    comm->waits += waits && !comm->waited;
    comm->waited = waits;
    return !waits;
}

static ncclResult_t post_locked(struct comm *comm, const struct memory *memory, void *data,
                                size_t size, void *phandle, void **out)
{
    *out = NULL;
    if (!registered(memory, comm, data, size))
        return wrong(comm->context, "memory that is not registered");
    if (comm->sending && fails("isend")) return ncclSystemError;
    if (++comm->refused % 3 == 0 || (comm->sending && !has_receive(comm))) return ncclSuccess;
    struct request *request = &comm->requests[comm->posted % REQUESTS];
    if (request->comm) return wrong(comm->context, "more than 32 requests in flight");
    *request = (struct request){.comm = comm, .bytes = data, .room = size};
    request->header = comm->sending ? size : 0;
    comm->posted++;
    if (!comm->sending && getenv("TESTNET_CREDITS") && send(comm->fd, "", 1, MSG_NOSIGNAL) < 1)
        return ncclRemoteError;
    start_event(request, phandle);
    *out = request;
    return ncclSuccess;
}

static ncclResult_t post(struct comm *comm, const struct memory *memory, void *data, size_t size,
                         void *phandle, void **out)
{
    pthread_mutex_lock(&comm->lock);
    ncclResult_t rc = post_locked(comm, memory, data, size, phandle, out);
    pthread_mutex_unlock(&comm->lock);
    return rc;
}

static ncclResult_t test_isend(void *opaque, void *data, size_t size, int tag, void *mhandle,
                               void *phandle, void **out)
{
    (void)tag;
    return post(opaque, mhandle, data, size, phandle, out);
}

static ncclResult_t test_irecv(void *opaque, int n, void **data, size_t *sizes, int *tags,
                               void **mhandles, void **phandles, void **out)
{
    struct comm *comm = opaque;
    (void)tags;
    if (n != 1) return wrong(comm->context, "more receives than maxRecvs");
    return post(comm, mhandles[0], data[0], sizes[0], phandles ? phandles[0] : NULL, out);
}

static ncclResult_t move(struct request *request)
{
    struct comm *comm = request->comm;
    for (;;) {
        uint64_t end = request->moved < 8 ? 8 : 8 + request->header;
        bool in_header = request->moved < 8;
        char *at = in_header ? (char *)&request->header + request->moved
                             : request->bytes + (request->moved - 8);
        if (request->moved == 8 + request->header && !in_header) {
            request->done = true;
            return ncclSuccess;
        }
        ssize_t n = comm->sending ? send(comm->fd, at, end - request->moved, MSG_NOSIGNAL)
                                  : recv(comm->fd, at, end - request->moved, 0);
        if (n < 0 && errno == EAGAIN) return ncclSuccess;
        if (n <= 0) return ncclRemoteError;
        request->moved += (uint64_t)n;
        if (request->moved == 8 && request->header > request->room)
            return wrong(comm->context, "a message larger than its receive");
    }
}

static ncclResult_t test_locked(struct request *request, int *done, int *sizes)
{
    struct comm *comm = request->comm;
    advance(comm);
    if (comm->error && !request->done) return comm->error;
    if (!request->done) return ncclSuccess;
    if (request->event) comm->context->profiler(&request->event, 1, NULL, 1, NULL);
    if (sizes) *sizes = (int)request->header;
    if (!comm->sending) comm->nreceived++;
    request->comm = NULL;
    *done = 1;
    return ncclSuccess;
}

static ncclResult_t test_test(void *opaque, int *done, int *sizes)
{
    struct request *request = opaque;
    struct comm *comm = request->comm;
    *done = 0;
    if (!comm) return ncclInternalError;
    pthread_mutex_lock(&comm->lock);
    ncclResult_t rc = test_locked(request, done, sizes);
    pthread_mutex_unlock(&comm->lock);
    return rc;
}

static ncclResult_t test_consumed(void *opaque, int n, void *request)
{
    struct comm *comm = opaque;
    if (n != 1 || !request) return wrong(comm->context, "irecvConsumed without its request");
    comm->nconsumed++;
    return ncclSuccess;
}

static ncclResult_t test_flush(void *opaque, int n, void **data, int *sizes, void **mhandles,
                               void **request)
{
    struct comm *comm = opaque;
    (void)n, (void)data, (void)sizes, (void)mhandles, (void)request;
    return wrong(comm->context, "flush of host memory");
}

static ncclResult_t test_finalize(void *ctx)
{
    struct context *context = ctx;
    if (atomic_load(&context->users)) return wrong(context, "finalize before all is closed");
    context->log(NCCL_LOG_INFO, NCCL_NET, __FILE__, __LINE__, "TestNet: all is closed");
    free(context);
    return ncclSuccess;
}

static pthread_once_t filled = PTHREAD_ONCE_INIT;

/* As plugins that choose their functions at run time: the table is complete after the first init.
 */
static void fill(void)
{
    ncclNetPlugin_v12 =
        (ncclNet_v12_t){.name = "TestNet",
                        .init = ncclNetPlugin_v12.init,
                        .devices = test_devices,
                        .getProperties = test_properties,
                        .listen = test_listen,
                        .connect = test_connect,
                        .accept = test_accept,
                        .regMr = test_reg,
                        .deregMr = test_dereg,
                        .isend = test_isend,
                        .irecv = test_irecv,
                        .iflush = test_flush,
                        .test = test_test,
                        .closeSend = test_close,
                        .closeRecv = test_close,
                        .closeListen = test_close_listen,
                        .irecvConsumed = test_consumed,
                        .makeVDevice = getenv("TESTNET_VIRTUAL") ? test_make_virtual : NULL,
                        .finalize = test_finalize,
                        .setNetAttr = test_set_attr};
}

static ncclResult_t test_init(void **ctx, uint64_t comm_id, ncclNetCommConfig_v12_t *config,
                              ncclDebugLogger_t log, ncclProfilerCallback_t profiler)
{
    struct context *context = calloc(1, sizeof(*context));
    if (!context || !config || !log || !profiler) return ncclSystemError;
    context->log = log;
    context->profiler = profiler;
    log(NCCL_LOG_INFO, NCCL_NET, __FILE__, __LINE__, "TestNet: communicator %lx traffic class %d",
        (unsigned long)comm_id, config->trafficClass);
    pthread_once(&filled, fill);
    *ctx = context;
    return ncclSuccess;
}

__attribute__((visibility("default")))
ncclNet_v12_t ncclNetPlugin_v12 = {.name = "TestNet", .init = test_init};
