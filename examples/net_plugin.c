/* A network plugin to begin from: version 12 of the interface, between processes of one host. A
 * connection is a ring of bytes in memory that both processes map; the receiver makes it in listen,
 * the sender finds it by the handle. NCCL and Tutti load it; nothing is linked.
 *   cc -O2 -shared -fPIC -I"$NCCL_HOME/include" net_plugin.c -o libnccl-net-example.so
 *   tutti plugin check ./libnccl-net-example.so
 * How each function is called, and by whom: docs/net-plugin-guide.md. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <nccl/net.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RING_BYTES = 1 << 20, LOOK_EVERY = 4096 };

struct handle { /* travels to the sender, at most 128 bytes */
    pid_t pid;
    int fd; /* which the sender opens through /proc */
    uint64_t number;
};

struct segment { /* shared by the two ends; bytes come in at head and go out at tail */
    struct handle id;
    _Atomic pid_t sender; /* 0: not yet there */
    _Atomic bool closed;
    _Alignas(64) _Atomic uint64_t head; /* written by the sender, after the bytes */
    _Alignas(64) _Atomic uint64_t tail; /* written by the receiver, after the bytes */
    _Alignas(64) unsigned char ring[RING_BYTES];
};

struct listener {
    struct segment *segment;
    int fd;
};

struct wire { /* in the ring before each message */
    uint64_t bytes;
    int64_t tag;
};

struct request {
    struct comm *comm; /* NULL: free */
    unsigned char *data;
    struct wire wire;
    uint64_t moved, room;
    int tag;
    bool done;
};

struct comm {
    struct segment *segment;
    bool sending;
    uint32_t posted, finished, looks;
    struct request requests[NCCL_NET_MAX_REQUESTS];
};

static ncclDebugLogger_t logger;
static _Atomic uint64_t listeners; /* so far: numbers of handles */

static ncclResult_t fail(ncclResult_t rc, const char *what)
{
    if (logger) logger(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__, "NET/Example: %s", what);
    return rc;
}

static ncclResult_t example_init(void **ctx, uint64_t comm_id, ncclNetCommConfig_t *config,
                                 ncclDebugLogger_t log, ncclProfilerCallback_t profile)
{
    (void)comm_id, (void)config, (void)profile;
    logger = log;
    *ctx = NULL; /* nothing is kept for a communicator */
    return ncclSuccess;
}

static ncclResult_t example_finalize(void *ctx)
{
    return ctx ? ncclInvalidArgument : ncclSuccess;
}

static ncclResult_t example_devices(int *ndev)
{
    *ndev = 1;
    return ncclSuccess;
}

static ncclResult_t example_properties(int dev, ncclNetProperties_t *props)
{
    static char name[] = "example0";
    if (dev != 0) return ncclInvalidArgument;
    *props =
        (ncclNetProperties_t){.name = name, .ptrSupport = NCCL_PTR_HOST, .vProps = {.ndevs = 1}};
    props->speed = 100000; /* Mb/s */
    props->maxComms = 65536;
    props->maxRecvs = 1;                                     /* no grouped receives */
    props->maxP2pBytes = props->maxCollBytes = MAX_NET_SIZE; /* test tells sizes as int */
    props->railId = props->planeId = NCCL_NET_ID_UNDEF;
    return ncclSuccess;
}

static struct segment *map(int fd)
{
    void *memory = mmap(NULL, sizeof(struct segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static ncclResult_t example_close_listen(void *listen_comm)
{
    struct listener *listener = listen_comm;
    if (listener->segment) munmap(listener->segment, sizeof(*listener->segment));
    if (listener->fd >= 0) close(listener->fd);
    free(listener);
    return ncclSuccess;
}

static ncclResult_t example_listen(void *ctx, int dev, void *opaque, void **listen_comm)
{
    struct listener *listener = calloc(1, sizeof(*listener));
    (void)ctx, (void)dev;
    if (!listener) return fail(ncclSystemError, "out of memory");
    listener->fd = memfd_create("nccl-net-example", MFD_CLOEXEC);
    if (listener->fd >= 0 && ftruncate(listener->fd, sizeof(struct segment)) == 0)
        listener->segment = map(listener->fd);
    if (!listener->segment) {
        (void)example_close_listen(listener);
        return fail(ncclSystemError, "no memory to share");
    }
    listener->segment->id = (struct handle){getpid(), listener->fd, ++listeners};
    memcpy(opaque, &listener->segment->id, sizeof(struct handle));
    *listen_comm = listener;
    return ncclSuccess;
}

static struct comm *comm_create(struct segment *segment, bool sending)
{
    struct comm *comm = calloc(1, sizeof(*comm));
    if (comm) *comm = (struct comm){.segment = segment, .sending = sending};
    return comm;
}

/* Never waits: what must wait leaves *send_comm at NULL, and is asked again. This need not. */
static ncclResult_t example_connect(void *ctx, int dev, void *opaque, void **send_comm,
                                    ncclNetDeviceHandle_t **device)
{
    struct handle handle;
    char path[64];
    (void)ctx, (void)dev, (void)device;
    *send_comm = NULL;
    memcpy(&handle, opaque, sizeof(handle));
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)handle.pid, handle.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct segment *segment =
        fd >= 0 && lseek(fd, 0, SEEK_END) == sizeof(*segment) ? map(fd) : NULL;
    if (fd >= 0) close(fd);
    pid_t none = 0;
    if (segment && segment->id.number == handle.number &&
        atomic_compare_exchange_strong(&segment->sender, &none, getpid()))
        *send_comm = comm_create(segment, true);
    if (*send_comm) return ncclSuccess;
    if (segment) munmap(segment, sizeof(*segment));
    return fail(ncclRemoteError, "the receiver is gone, on another host, or has its sender");
}

static ncclResult_t example_accept(void *listen_comm, void **recv_comm,
                                   ncclNetDeviceHandle_t **device)
{
    struct listener *listener = listen_comm;
    (void)device;
    *recv_comm = NULL;
    if (!listener->segment) return fail(ncclInvalidUsage, "one connection per handle");
    if (atomic_load(&listener->segment->sender) == 0) return ncclSuccess; /* ask again */
    *recv_comm = comm_create(listener->segment, false);
    if (!*recv_comm) return fail(ncclSystemError, "out of memory");
    listener->segment = NULL; /* the connection's now */
    return ncclSuccess;
}

static ncclResult_t example_close(void *opaque)
{
    struct comm *comm = opaque;
    atomic_store(&comm->segment->closed, true);
    munmap(comm->segment, sizeof(*comm->segment));
    free(comm);
    return ncclSuccess;
}

/* Any memory will do. */
static ncclResult_t example_reg(void *comm, void *data, size_t bytes, int type, void **mhandle)
{
    (void)data, (void)bytes;
    *mhandle = comm;
    return type == NCCL_PTR_HOST ? ncclSuccess : fail(ncclInvalidUsage, "memory of the host only");
}

static ncclResult_t example_dereg(void *comm, void *mhandle)
{
    return mhandle == comm ? ncclSuccess : ncclInvalidArgument;
}

/* Move what can be moved between `data` and the ring; the number of bytes. */
static uint64_t move(const struct comm *comm, unsigned char *data, uint64_t bytes)
{
    struct segment *segment = comm->segment;
    uint64_t head = atomic_load_explicit(&segment->head, memory_order_acquire);
    uint64_t tail = atomic_load_explicit(&segment->tail, memory_order_acquire);
    uint64_t most = comm->sending ? RING_BYTES - (head - tail) : head - tail;
    uint64_t at = (comm->sending ? head : tail) % RING_BYTES;
    if (most > bytes) most = bytes;
    if (most > RING_BYTES - at) most = RING_BYTES - at; /* the rest is for the next round */
    unsigned char *at_ring = segment->ring + at;
    memcpy(comm->sending ? at_ring : data, comm->sending ? data : at_ring, most);
    atomic_store_explicit(comm->sending ? &segment->head : &segment->tail,
                          (comm->sending ? head : tail) + most, memory_order_release);
    return most;
}

/* Nothing moved: is the other end still there? */
static ncclResult_t look(struct comm *comm)
{
    struct segment *segment = comm->segment;
    bool gone = atomic_load(&segment->closed);
    pid_t other = comm->sending ? segment->id.pid : atomic_load(&segment->sender);
    if (!gone && ++comm->looks % LOOK_EVERY == 0) gone = kill(other, 0) && errno == ESRCH;
    /* what was sent before the end still counts */
    gone &= comm->sending || atomic_load(&segment->head) == atomic_load(&segment->tail);
    return gone ? fail(ncclRemoteError, "the other end is gone") : ncclSuccess;
}

/* Advance one request; done is set when all of it has moved. */
static ncclResult_t advance(struct comm *comm, struct request *request)
{
    const uint64_t header = sizeof(request->wire);
    while (!request->done) {
        bool in_header = request->moved < header;
        uint64_t left = (in_header ? header : header + request->wire.bytes) - request->moved;
        unsigned char *at = in_header ? (unsigned char *)&request->wire + request->moved
                                      : request->data + (request->moved - header);
        uint64_t moved = left ? move(comm, at, left) : 0;
        if (left && !moved) return look(comm);
        request->moved += moved;
        if (request->moved < header) continue;
        if (request->wire.bytes > request->room) return fail(ncclInternalError, "no room");
        if (request->wire.tag != request->tag) return fail(ncclInternalError, "another tag");
        request->done = request->moved == header + request->wire.bytes;
    }
    return ncclSuccess;
}

/* A NULL request: there is no place, ask again. */
static struct request *post(struct comm *comm, void *data, size_t bytes, int tag)
{
    struct request *request = &comm->requests[comm->posted % NCCL_NET_MAX_REQUESTS];
    if (request->comm) return NULL;
    *request = (struct request){.comm = comm, .data = data, .room = bytes, .tag = tag};
    if (comm->sending) request->wire = (struct wire){bytes, tag};
    comm->posted++;
    return request;
}

static ncclResult_t example_isend(void *comm, void *data, size_t bytes, int tag, void *mhandle,
                                  void *phandle, void **request)
{
    (void)mhandle, (void)phandle;
    *request = post(comm, data, bytes, tag);
    return ncclSuccess;
}

static ncclResult_t example_irecv(void *comm, int n, void **data, size_t *bytes, int *tags,
                                  void **mhandles, void **phandles, void **request)
{
    (void)mhandles, (void)phandles;
    if (n != 1) return fail(ncclInvalidArgument, "maxRecvs is 1");
    *request = post(comm, data[0], bytes[0], tags[0]);
    return ncclSuccess;
}

/* Requests end in the order of their posting; each test moves what it can. */
static ncclResult_t example_test(void *opaque, int *done, int *sizes)
{
    struct request *request = opaque;
    struct comm *comm = request->comm;
    *done = 0;
    while (comm->finished != comm->posted && !request->done) {
        struct request *oldest = &comm->requests[comm->finished % NCCL_NET_MAX_REQUESTS];
        ncclResult_t rc = advance(comm, oldest);
        if (rc) return rc;
        if (!oldest->done) return ncclSuccess;
        comm->finished++;
    }
    if (sizes) sizes[0] = (int)request->wire.bytes;
    *done = 1;
    request->comm = NULL;
    return ncclSuccess;
}

/* Not offered: flush, DMA-BUF, virtual devices, attributes. */
__attribute__((visibility("default"))) const ncclNet_v12_t ncclNetPlugin_v12 = {
    .name = "Example",
    .init = example_init,
    .devices = example_devices,
    .getProperties = example_properties,
    .listen = example_listen,
    .connect = example_connect,
    .accept = example_accept,
    .regMr = example_reg,
    .deregMr = example_dereg,
    .isend = example_isend,
    .irecv = example_irecv,
    .test = example_test,
    .closeSend = example_close,
    .closeRecv = example_close,
    .closeListen = example_close_listen,
    .finalize = example_finalize,
};
