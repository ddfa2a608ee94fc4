/* TCP, over loopback, for net_outsider_tables.c. What a host does against the contract is an error
 * with a sentence; connections and requests are refused at first, handles of memory and tags are
 * compared. OUTSIDER_DEVICES: how many (default 1, most 4). OUTSIDER_FAIL=init|devices|listen|
 * connect|regmr|isend: that function fails. OUTSIDER_NEVER=1: no connection is ever accepted.
 * OUTSIDER_OUTWARD=1: over the host's first interface instead of loopback.
 * OUTSIDER_FAULT=name plants one of the faults that a check of the contract must find. */
#include "net_outsider.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { REQUESTS = 8, MOST_DEVICES = 4, HANDLE_MAGIC = 0x6f757473, FILL = 0x5a };

struct handle { /* the rest of its bytes is FILL */
    uint32_t magic;
    uint16_t port;
    uint8_t tries, dev;
    uint32_t address;
    int32_t fd; /* + 1; 0 none */
};

struct listener {
    int fd, dev;
};

struct memory { /* a registration */
    struct comm *comm;
    char *base;
    size_t bytes;
    bool global;
};

struct wire { /* before each message */
    uint64_t bytes;
    int64_t tag;
};

struct part { /* a message of a request */
    char *bytes;
    uint64_t room, got;
    int tag;
    bool filled;
};

struct request {
    struct comm *comm; /* NULL: free */
    struct part parts[OUTSIDER_PARTS];
    int nparts, nfilled;
    struct part *at; /* of the message that is being moved */
    struct wire wire;
    uint64_t moved;
    bool asked, done;
};

struct comm {
    int fd;
    bool sending;
    unsigned refused; /* every third post is refused once */
    int nmemories, ngroups;
    uint32_t posted, finished, taken; /* taken: its end was told */
    struct request requests[REQUESTS];
};

static ncclDebugLogger_t logger;
static bool begun;

static bool named(const char *variable, const char *what)
{
    const char *text = getenv(variable);
    return text && strcmp(text, what) == 0;
}

bool outsider_fails(const char *what)
{
    return named("OUTSIDER_FAIL", what);
}

bool outsider_fault(const char *what)
{
    return named("OUTSIDER_FAULT", what);
}

void outsider_say(const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    logger(NCCL_LOG_INFO, NCCL_NET, __FILE__, __LINE__, "Outsider: %s", text);
}

ncclResult_t outsider_wrong(const char *what)
{
    logger(NCCL_LOG_WARN, NCCL_ALL, __FILE__, __LINE__, "Outsider: the host is wrong: %s", what);
    return ncclInternalError;
}

/* Longer than a call that must return at once may take. */
static void outsider_wait(void)
{
    const struct timespec span = {.tv_nsec = 150000000};
    nanosleep(&span, NULL);
}

static void outsider_compute(void)
{
    struct timespec start, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 150000000);
}

ncclResult_t outsider_begin(ncclDebugLogger_t log)
{
    logger = log;
    if (outsider_fails("init")) return ncclSystemError;
    if (begun) return outsider_wrong("a second init");
    begun = true;
    outsider_say("init");
    return ncclSuccess;
}

static int nvirtual;

static int physical(void)
{
    const char *text = getenv("OUTSIDER_DEVICES");
    return text ? atoi(text) : 1;
}

ncclResult_t outsider_make_virtual(int *dev, const int *members, int count)
{
    for (int k = 0; k < count; k++)
        if (members[k] < 0 || members[k] >= physical()) return ncclInvalidArgument;
    *dev = physical() + nvirtual++;
    outsider_say("virtual device %d", *dev);
    return ncclSuccess;
}

ncclResult_t outsider_devices(int *ndev)
{
    static int asked;
    *ndev = physical() + nvirtual;
    if (outsider_fault("devices-change") && asked++) ++*ndev;
    return outsider_fails("devices") ? ncclSystemError : ncclSuccess;
}

ncclResult_t outsider_device(int dev, struct outsider_device *device)
{
    static char names[MOST_DEVICES][8] = {"out0", "out1", "out2", "out3"};
    if (dev < 0 || dev >= MOST_DEVICES) return ncclInvalidArgument;
    *device = (struct outsider_device){
        .name = names[dev],
        .guid = 0x1000u + (uint64_t)dev,
        .types = NCCL_PTR_HOST,
        .mbps = 25000,
        .port = 3,
        .most_comms = 77,
        .most_recvs = getenv("OUTSIDER_GROUPS") ? OUTSIDER_PARTS : 1,
        .latency = 1.5f,
    };
    if (outsider_fault("name-none")) device->name = NULL;
    if (outsider_fault("name-twice")) device->name = names[0];
    if (outsider_fault("no-host-memory")) device->types = NCCL_PTR_CUDA;
    if (outsider_fault("no-connections")) device->most_comms = 0;
    if (outsider_fault("speed-negative")) device->mbps = -5;
    if (outsider_fault("no-receives")) device->most_recvs = 0;
    return ncclSuccess;
}

/* ---- connections ---- */

uint32_t outsider_address(void)
{
    struct ifaddrs *all = NULL;
    uint32_t address = htonl(INADDR_LOOPBACK);
    if (!getenv("OUTSIDER_OUTWARD") || getifaddrs(&all)) return address;
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        struct sockaddr_in addr;
        if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET) continue;
        if (!(at->ifa_flags & IFF_UP) || (at->ifa_flags & IFF_LOOPBACK)) continue;
        memcpy(&addr, at->ifa_addr, sizeof(addr));
        address = addr.sin_addr.s_addr;
        break;
    }
    freeifaddrs(all);
    return address;
}

ncclResult_t outsider_listen(int dev, void *opaque, size_t handle_bytes, void **listen_comm)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = outsider_address()};
    socklen_t len = sizeof(addr);
    struct handle handle = {.magic = HANDLE_MAGIC, .dev = (uint8_t)dev};
    if ((uintptr_t)opaque % 16) return outsider_wrong("listen: a handle that no struct can be in");
    struct listener *listener = outsider_fails("listen") ? NULL : calloc(1, sizeof(*listener));
    if (!listener || dev < 0 || dev >= MOST_DEVICES) {
        free(listener);
        return ncclSystemError;
    }
    listener->dev = dev;
    listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->fd < 0 || bind(listener->fd, (struct sockaddr *)&addr, len) ||
        listen(listener->fd, 16) || getsockname(listener->fd, (struct sockaddr *)&addr, &len)) {
        if (listener->fd >= 0) close(listener->fd);
        free(listener);
        return ncclSystemError;
    }
    handle.port = addr.sin_port;
    handle.address = addr.sin_addr.s_addr;
    memset(opaque, FILL, handle_bytes);
    memcpy(opaque, &handle, sizeof(handle));
    if (outsider_fault("handle-long")) memset((char *)opaque + handle_bytes, FILL, 8);
    *listen_comm = listener;
    return ncclSuccess;
}

static struct comm *comm_create(int fd, bool sending)
{
    int one = 1;
    struct comm *comm = calloc(1, sizeof(*comm));
    if (!comm) return NULL;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    comm->fd = fd;
    comm->sending = sending;
    return comm;
}

/* A handle must arrive as it was written, and lie where it lay: it has the state of connecting. */
static ncclResult_t read_handle(const char *opaque, size_t handle_bytes, int dev,
                                struct handle *handle)
{
    memcpy(handle, opaque, sizeof(*handle));
    if (handle->magic != HANDLE_MAGIC) return outsider_wrong("not a handle");
    if (handle->dev != dev) return outsider_wrong("a connection from one rail to another");
    for (size_t i = sizeof(*handle); i < handle_bytes; i++) {
        if (opaque[i] != FILL) return outsider_wrong("a handle that was cut");
    }
    return ncclSuccess;
}

ncclResult_t outsider_connect(int dev, void *opaque, size_t handle_bytes, bool wait,
                              void **send_comm)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    struct handle handle;
    *send_comm = NULL;
    if (outsider_fault("connect-waits")) outsider_wait();
    if (outsider_fails("connect")) return ncclRemoteError;
    if ((uintptr_t)opaque % 16) return outsider_wrong("connect: a handle that no struct can be in");
    ncclResult_t rc = read_handle(opaque, handle_bytes, dev, &handle);
    if (rc) return rc;
    if (!handle.fd) {
        handle.fd = 1 + socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (wait ? 0 : SOCK_NONBLOCK), 0);
        if (handle.fd <= 0) return ncclSystemError;
    }
    handle.tries++;
    memcpy(opaque, &handle, sizeof(handle));
    if (!wait && handle.tries < 3) return ncclSuccess;
    addr.sin_port = handle.port;
    addr.sin_addr.s_addr = handle.address;
    if (connect(handle.fd - 1, (struct sockaddr *)&addr, sizeof(addr)) && errno != EISCONN)
        return errno == EINPROGRESS || errno == EALREADY ? ncclSuccess : ncclRemoteError;
    if (wait) (void)fcntl(handle.fd - 1, F_SETFL, O_NONBLOCK);
    *send_comm = comm_create(handle.fd - 1, true);
    return *send_comm ? ncclSuccess : ncclSystemError;
}

ncclResult_t outsider_accept(void *listen_comm, bool wait, void **recv_comm)
{
    struct listener *listener = listen_comm;
    struct pollfd pollfd = {.fd = listener->fd, .events = POLLIN};
    *recv_comm = NULL;
    if (outsider_fault("accept-waits")) outsider_wait();
    if (outsider_fault("accept-blocks")) poll(&pollfd, 1, -1);
    if (wait && (poll(&pollfd, 1, -1) < 0 || getenv("OUTSIDER_NEVER"))) pause();
    int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return errno == EAGAIN ? ncclSuccess : ncclSystemError;
    *recv_comm = comm_create(fd, false);
    return *recv_comm ? ncclSuccess : ncclSystemError;
}

ncclResult_t outsider_close_listen(void *listen_comm)
{
    struct listener *listener = listen_comm;
    close(listener->fd);
    free(listener);
    return ncclSuccess;
}

ncclResult_t outsider_close(void *opaque)
{
    struct comm *comm = opaque;
    ncclResult_t rc =
        comm->nmemories ? outsider_wrong("closed with registered memory") : ncclSuccess;
    if (outsider_fault(comm->sending ? "close-send-fails" : "close-recv-fails"))
        rc = ncclSystemError;
    if (comm->ngroups) outsider_say("%d receives of several messages", comm->ngroups);
    if (outsider_fault("exits")) exit(0);
    if (outsider_fault("keeps")) return rc; /* its descriptor and memory */
    if (outsider_fault("keeps-pages"))
        (void)mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    close(comm->fd);
    free(comm);
    return rc;
}

/* ---- memory ---- */

ncclResult_t outsider_reg(void *opaque, void *data, size_t bytes, int type, void **mhandle)
{
    struct comm *comm = opaque;
    struct memory *memory = outsider_fails("regmr") ? NULL : calloc(1, sizeof(*memory));
    if (!memory) return ncclSystemError;
    if (type != NCCL_PTR_HOST) {
        free(memory);
        return outsider_wrong("memory that is not the host's");
    }
    *memory = (struct memory){comm, data, bytes, false};
    comm->nmemories++;
    *mhandle = memory;
    return ncclSuccess;
}

ncclResult_t outsider_reg_global(void *opaque, void *data, size_t bytes, int type, void **mhandle)
{
    ncclResult_t rc = outsider_reg(opaque, data, bytes, type, mhandle);
    if (!rc) ((struct memory *)*mhandle)->global = true;
    return rc;
}

ncclResult_t outsider_dereg(void *opaque, void *mhandle)
{
    struct comm *comm = opaque;
    struct memory *memory = mhandle;
    if (!memory || memory->comm != comm) return outsider_wrong("deregMr of another comm");
    comm->nmemories--;
    free(memory);
    return outsider_fault("deregister-fails") ? ncclSystemError : ncclSuccess;
}

/* ---- requests ---- */

/* What the host must keep, for each message of a request. */
static ncclResult_t judge(const struct comm *comm, const struct outsider_post *posts, int count)
{
    if (count < 1 || count > (getenv("OUTSIDER_GROUPS") ? OUTSIDER_PARTS : 1))
        return outsider_wrong("more than maxRecvs");
    for (int i = 0; i < count; i++) {
        const struct outsider_post *post = &posts[i];
        const struct memory *memory = post->mhandle;
        if (!memory || (memory->comm != comm && !memory->global) ||
            (char *)post->data < memory->base ||
            (char *)post->data + post->bytes > memory->base + memory->bytes)
            return outsider_wrong("memory that is not registered");
        for (int k = 0; k < i; k++)
            if (posts[k].tag == post->tag) return outsider_wrong("one tag for two receives");
    }
    return ncclSuccess;
}

ncclResult_t outsider_post(void *opaque, const struct outsider_post *posts, int count,
                           void **request_out)
{
    struct comm *comm = opaque;
    *request_out = NULL;
    if (outsider_fault(comm->sending ? "isend-waits" : "irecv-waits")) outsider_wait();
    if (outsider_fault("isend-computes") && comm->sending) outsider_compute();
    if (outsider_fault("keeps-messages")) memset(malloc(100), FILL, 100);
    if (outsider_fault("in-progress")) return ncclInProgress;
    if (outsider_fault("blames-host") && comm->sending) return outsider_wrong("another tag");
    if (outsider_fault("crashes") && comm->sending) abort();
    ncclResult_t rc = judge(comm, posts, count);
    if (rc) return rc;
    if (comm->sending && outsider_fails("isend")) return ncclSystemError;
    if (++comm->refused % 3 == 0) return ncclSuccess;
    struct request *request = &comm->requests[comm->posted % REQUESTS];
    if (request->comm) return outsider_wrong("more than 8 requests in flight");
    *request = (struct request){.comm = comm, .nparts = count};
    for (int i = 0; i < count; i++) {
        request->parts[i] =
            (struct part){.bytes = posts[i].data, .room = posts[i].bytes, .tag = posts[i].tag};
    }
    if (comm->sending) {
        request->at = &request->parts[0];
        request->wire = (struct wire){posts->bytes, posts->tag};
    }
    if (outsider_fault("request-twice") && comm->posted) request = &comm->requests[0];
    if (outsider_fault("error-with-request") && comm->sending) {
        *request_out = request;
        return ncclSystemError;
    }
    comm->ngroups += count > 1;
    comm->posted++;
    *request_out = request;
    return ncclSuccess;
}

/* The head of a message is here: its tag says which receive it is for. */
static ncclResult_t find_part(struct request *request)
{
    struct part *at = NULL;
    for (int i = 0; i < request->nparts && !at; i++) {
        struct part *part = &request->parts[i];
        bool its = part->tag == request->wire.tag || outsider_fault("tags-ignored");
        if (!part->filled && its) at = part;
    }
    if (!at) return outsider_wrong("another tag than was sent");
    if (request->wire.bytes > at->room) return outsider_wrong("a message larger than its receive");
    request->at = at;
    return ncclSuccess;
}

static void finish_part(struct request *request)
{
    request->at->filled = true;
    request->at->got = request->wire.bytes;
    request->done = ++request->nfilled == request->nparts;
    request->moved = 0;
}

/* Bytes of the message under way that follow in one piece of memory; 0: it is whole. */
static uint64_t next_bytes(const struct request *request, char **at_out)
{
    const uint64_t head = sizeof(request->wire);
    if (request->moved < head) {
        *at_out = (char *)(uintptr_t)&request->wire + request->moved;
        return head - request->moved;
    }
    *at_out = request->at->bytes + (request->moved - head);
    return head + request->wire.bytes - request->moved;
}

static ncclResult_t move(struct request *request)
{
    struct comm *comm = request->comm;
    while (!request->done) {
        char *at;
        uint64_t left = next_bytes(request, &at);
        if (!left) {
            finish_part(request);
            continue;
        }
        ssize_t n =
            comm->sending ? send(comm->fd, at, left, MSG_NOSIGNAL) : recv(comm->fd, at, left, 0);
        if (n < 0 && errno == EAGAIN) return ncclSuccess;
        if (n <= 0) return outsider_fault("closed-plain") ? ncclSystemError : ncclRemoteError;
        request->moved += (uint64_t)n;
        if (request->moved != sizeof(request->wire) || comm->sending) continue;
        ncclResult_t rc = find_part(request);
        if (rc) return rc;
    }
    return ncclSuccess;
}

/* What is wrong with a request that is done. */
static void plant(struct request *request, int *done, int *sizes)
{
    bool sending = request->comm->sending;
    struct part *part = &request->parts[0];
    *done = outsider_fault("done-other") ? 2 : 1;
    if (!sizes) return;
    if (outsider_fault("size-none") && !sending) *sizes = -1;
    if (outsider_fault("size-large") && !sending) *sizes = (int)part->room + 1;
    if (outsider_fault("size-half")) *sizes /= 2;
    for (int i = 0; outsider_fault("size-room") && !sending && i < request->nparts; i++)
        sizes[i] = (int)request->parts[i].room;
    if (outsider_fault("size-of-send") && sending) *sizes += 1;
    if (outsider_fault("sizes-many")) sizes[request->nparts] = 0;
    if (outsider_fault("sizes-one") && request->nparts > 1) sizes[1] = -1;
    if (outsider_fault("writes-beyond") && !sending && part->got < part->room)
        part->bytes[part->room - 1] ^= 1;
    if (outsider_fault("wrong-data") && !sending && part->got) part->bytes[0] ^= 1;
    if (outsider_fault("changes-data") && sending && part->got) part->bytes[0] ^= 1;
}

ncclResult_t outsider_test(void *opaque, int *done, int *sizes)
{
    struct request *request = opaque;
    struct comm *comm = request->comm;
    if (!outsider_fault("done-unset")) *done = 0;
    if (outsider_fault("never-done")) return ncclSuccess;
    if (outsider_fault("test-waits")) outsider_wait();
    if (!comm) return outsider_wrong("test of a request that is done");
    if (getenv("OUTSIDER_IN_ORDER") && request != &comm->requests[comm->taken % REQUESTS])
        return outsider_wrong("test of a request before an older one is done");
    bool first = !request->asked;
    request->asked = true;
    if (outsider_fault("done-unset") && first) return ncclSuccess;
    while (comm->finished != comm->posted) {
        struct request *oldest = &comm->requests[comm->finished % REQUESTS];
        ncclResult_t rc = oldest->done ? ncclSuccess : move(oldest);
        if (rc) return rc;
        if (!oldest->done) break;
        comm->finished++;
    }
    if (!request->done) return ncclSuccess;
    for (int i = 0; sizes && i < request->nparts; i++)
        sizes[i] = (int)request->parts[i].got;
    plant(request, done, sizes);
    comm->taken++;
    request->comm = NULL;
    return ncclSuccess;
}

ncclResult_t outsider_consumed(void *comm, int n, void *request)
{
    const struct request *own = request;
    if (!comm || !own || n != own->nparts)
        return outsider_wrong("irecvConsumed without its request");
    return ncclSuccess;
}
