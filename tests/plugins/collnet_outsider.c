/* A collective network in software for collnet_outsider_tables.c: the first rank of a group takes
 * what the others give over TCP, adds its own, and gives the result to all. A thread per group does
 * so, one sum after the other, as they were asked for. What a host does against the contract is an
 * error with a sentence.
 * COLLNET_FAIL=init|devices|listen|connect|connect-waits|iallreduce|test: that function fails
 * (connect-waits: it never returns), at the rank of COLLNET_FAIL_HOST in its group.
 * COLLNET_MOST_BYTES: maxCollBytes. COLLNET_FAULT=name plants one of the faults that a check of the
 * contract must find. */
#include "collnet_outsider.h"

#include "net_outsider.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUESTS = 8, MOST_RANKS = 16, MOST_MEMORIES = 8, MAGIC = 0x73756d73 };

struct handle {
    uint32_t magic, address;
    uint16_t port;
};

struct memory {
    struct group *group; /* NULL: free */
    char *base;
    size_t bytes;
};

struct wire { /* before each contribution */
    uint64_t number, count;
    int32_t type, op;
    int32_t kind, zero;
};

enum state { FREE, ASKED, DONE, FAILED };

struct request {
    struct group *group;
    struct summer_job job;
    enum state state;
};

struct group {
    int nranks, rank;
    int fds[MOST_RANKS]; /* at the first rank to all others, else fds[0] to it */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ends;
    unsigned refused; /* every third sum is refused once */
    uint64_t asked, made, taken;
    size_t sums, blocks;
    struct request requests[REQUESTS];
    struct memory memories[MOST_MEMORIES];
};

static ncclDebugLogger_t logger;
static bool begun;

static ncclResult_t wrong(const char *what)
{
    logger(NCCL_LOG_WARN, NCCL_ALL, __FILE__, __LINE__, "Summer: the host is wrong: %s", what);
    return ncclInternalError;
}

bool summer_fails(const char *what, int host)
{
    const char *text = getenv("COLLNET_FAIL"), *where = getenv("COLLNET_FAIL_HOST");
    return text && strcmp(text, what) == 0 && (!where || host < 0 || atoi(where) == host);
}

/* Faults of what comes. */
static const char *const wrong_of[] = {[SUMMER_SUM] = "wrong-sum",
                                       [SUMMER_GATHER] = "wrong-gather",
                                       [SUMMER_SCATTER] = "wrong-scatter"};

static bool faulty(const char *what)
{
    const char *text = getenv("COLLNET_FAULT");
    return text && strcmp(text, what) == 0;
}

static void wait_long(void)
{
    usleep(150000);
}

ncclResult_t summer_begin(ncclDebugLogger_t log, bool again)
{
    logger = log;
    if (summer_fails("init", -1)) return ncclSystemError;
    if (begun && !again) return wrong("a second init of the collective network");
    begun = true;
    return ncclSuccess;
}

/* ---- connections ---- */

ncclResult_t summer_listen(int dev, void *opaque, size_t handle_bytes, void **listen_comm)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = outsider_address()};
    socklen_t len = sizeof(addr);
    if (faulty("listen-waits")) wait_long();
    int *fd = summer_fails("listen", -1) || dev ? NULL : malloc(sizeof(*fd));
    if (!fd) return ncclSystemError;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0 || bind(*fd, (struct sockaddr *)&addr, len) || listen(*fd, MOST_RANKS) ||
        getsockname(*fd, (struct sockaddr *)&addr, &len)) {
        if (*fd >= 0) close(*fd);
        free(fd);
        return ncclSystemError;
    }
    const struct handle handle = {MAGIC, addr.sin_addr.s_addr, addr.sin_port};
    memset(opaque, 0, handle_bytes);
    memcpy(opaque, &handle, sizeof(handle));
    *listen_comm = fd;
    return ncclSuccess;
}

ncclResult_t summer_close_listen(void *listen_comm)
{
    int *fd = listen_comm;
    close(*fd);
    free(fd);
    return ncclSuccess;
}

static bool move_bytes(int fd, void *bytes, size_t count, bool sends)
{
    for (char *at = bytes; count > 0;) {
        ssize_t n = sends ? send(fd, at, count, MSG_NOSIGNAL) : recv(fd, at, count, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        count -= (size_t)n;
    }
    return true;
}

static bool gather_group(struct group *group, int listen_fd)
{
    for (int k = 1; k < group->nranks; k++) {
        int32_t rank = 0;
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 || !move_bytes(fd, &rank, sizeof(rank), false)) return false;
        if (rank < 1 || rank >= group->nranks || group->fds[rank]) return false;
        group->fds[rank] = fd;
    }
    return true;
}

static bool join_group(struct group *group, const void *opaque)
{
    struct handle handle;
    int32_t rank = group->rank;
    memcpy(&handle, opaque, sizeof(handle));
    if (handle.magic != MAGIC) return false;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = handle.address};
    addr.sin_port = handle.port;
    group->fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return group->fds[0] >= 0 && !connect(group->fds[0], (struct sockaddr *)&addr, sizeof(addr)) &&
           move_bytes(group->fds[0], &rank, sizeof(rank), true);
}

static void group_free(struct group *group)
{
    for (int k = 0; k < MOST_RANKS; k++) {
        if (group->fds[k] > 0) close(group->fds[k]);
    }
    free(group);
}

static void *group_main(void *arg);

ncclResult_t summer_connect(void *handles[], int nranks, int rank, void *listen_comm,
                            void **coll_comm)
{
    if (nranks < 2 || nranks > MOST_RANKS || rank < 0 || rank >= nranks)
        return wrong("a group of another size");
    if (summer_fails("connect", rank)) return ncclRemoteError;
    while (summer_fails("connect-waits", rank))
        pause();
    struct group *group = calloc(1, sizeof(*group));
    if (!group) return ncclSystemError;
    group->nranks = nranks;
    group->rank = rank;
    int one = 1;
    bool good = rank ? join_group(group, handles[0]) : gather_group(group, *(int *)listen_comm);
    for (int k = 0; good && k < nranks; k++) {
        if (group->fds[k] > 0)
            (void)setsockopt(group->fds[k], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    }
    pthread_mutex_init(&group->lock, NULL);
    pthread_cond_init(&group->changed, NULL);
    if (!good || pthread_create(&group->thread, NULL, group_main, group)) {
        group_free(group);
        return ncclRemoteError;
    }
    *coll_comm = faulty("connect-none") ? NULL : group;
    return ncclSuccess;
}

ncclResult_t summer_close(void *coll_comm)
{
    struct group *group = coll_comm;
    for (int k = 0; k < MOST_MEMORIES; k++) {
        if (group->memories[k].group) (void)wrong("a group is closed with registered memory");
    }
    pthread_mutex_lock(&group->lock);
    group->ends = true;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
    for (int k = 0; k < MOST_RANKS; k++) {
        if (group->fds[k] > 0) shutdown(group->fds[k], SHUT_RDWR);
    }
    pthread_join(group->thread, NULL);
    logger(NCCL_LOG_INFO, NCCL_NET, __FILE__, __LINE__,
           "Summer: rank %d of %d made %zu sums, "
           "%zu of them in blocks",
           group->rank, group->nranks, group->sums, group->blocks);
    group_free(group);
    return ncclSuccess;
}

/* ---- memory ---- */

ncclResult_t summer_reg(void *coll_comm, void *data, size_t bytes, int type, void **mhandle)
{
    struct group *group = coll_comm;
    if (type != NCCL_PTR_HOST) return wrong("memory that is not the host's");
    for (int k = 0; k < MOST_MEMORIES; k++) {
        if (group->memories[k].group) continue;
        group->memories[k] = (struct memory){group, data, bytes};
        *mhandle = &group->memories[k];
        return ncclSuccess;
    }
    return ncclSystemError;
}

ncclResult_t summer_dereg(void *coll_comm, void *mhandle)
{
    struct memory *memory = mhandle;
    if (!memory || memory->group != coll_comm) return wrong("deregMr of another group");
    memory->group = NULL;
    return ncclSuccess;
}

/* ---- sums ---- */

static size_t size_of(ncclDataType_t type)
{
    if (type == ncclInt8) return 1; /* of a gather */
    return type == ncclFloat64 ? 8 : 4;
}

ncclResult_t summer_support(ncclDataType_t type, ncclRedOp_t op, int *supported)
{
    bool types = type == ncclInt32 || type == ncclFloat32 || type == ncclFloat64;
    if (faulty("nothing")) types = false;
    *supported = types && (op == ncclSum || op == ncclMax || op == ncclMin);
    return ncclSuccess;
}

static double two(double a, double b, ncclRedOp_t op)
{
    if (op == ncclSum) return a + b;
    return (op == ncclMax) == (a > b) ? a : b;
}

static void add(void *sum, const void *other, const struct summer_job *job)
{
    for (size_t k = 0; k < job->count; k++) {
        if (job->type == ncclInt32) {
            int32_t *a = sum;
            a[k] = (int32_t)two(a[k], ((const int32_t *)other)[k], job->op);
        } else if (job->type == ncclFloat32) {
            float *a = sum;
            a[k] = (float)two(a[k], ((const float *)other)[k], job->op);
        } else {
            double *a = sum;
            a[k] = two(a[k], ((const double *)other)[k], job->op);
        }
    }
}

static size_t sent_bytes(const struct group *group, const struct summer_job *job)
{
    size_t blocks = job->kind == SUMMER_SCATTER ? (size_t)group->nranks : 1;
    return job->count * size_of(job->type) * blocks;
}

static size_t received_bytes(const struct group *group, const struct summer_job *job)
{
    size_t blocks = job->kind == SUMMER_GATHER ? (size_t)group->nranks : 1;
    return job->count * size_of(job->type) * blocks;
}

/* In `all`, which holds what the others are to get: at once, or a block each. */
static bool sum_here(struct group *group, const struct summer_job *job, const struct wire *own)
{
    size_t sent = sent_bytes(group, job), received = received_bytes(group, job);
    struct summer_job whole = *job;
    whole.count = sent / size_of(job->type);
    char *all = malloc(sent > received ? sent : received), *other = malloc(sent);
    bool good = other && all;
    if (good) memcpy(all, job->send, sent);
    for (int k = 1; good && k < group->nranks; k++) {
        struct wire wire;
        good = move_bytes(group->fds[k], &wire, sizeof(wire), false);
        if (good && memcmp(&wire, own, sizeof(wire)) != 0) {
            (void)wrong("ranks of a group ask for different sums");
            good = false;
        }
        good = good && move_bytes(group->fds[k], other, sent, false);
        if (good && job->kind == SUMMER_GATHER) memcpy(all + (size_t)k * sent, other, sent);
        if (good && job->kind != SUMMER_GATHER) add(all, other, &whole);
    }
    size_t stride = job->kind == SUMMER_SCATTER ? received : 0;
    for (int k = 1; good && k < group->nranks; k++)
        good = move_bytes(group->fds[k], all + (size_t)k * stride, received, true);
    if (good) memcpy(job->recv, all, received);
    free(all);
    free(other);
    return good;
}

static bool sum_there(struct group *group, const struct summer_job *job, struct wire *own)
{
    return move_bytes(group->fds[0], own, sizeof(*own), true) &&
           move_bytes(group->fds[0], (void *)(uintptr_t)job->send, sent_bytes(group, job), true) &&
           move_bytes(group->fds[0], job->recv, received_bytes(group, job), false);
}

static void *group_main(void *arg)
{
    struct group *group = arg;
    pthread_mutex_lock(&group->lock);
    while (!group->ends) {
        struct request *request = &group->requests[group->made % REQUESTS];
        if (group->made == group->asked) {
            pthread_cond_wait(&group->changed, &group->lock);
            continue;
        }
        pthread_mutex_unlock(&group->lock);
        const struct summer_job *job = &request->job;
        struct wire wire = {group->made,      job->count,         (int32_t)job->type,
                            (int32_t)job->op, (int32_t)job->kind, 0};
        bool good = group->rank ? sum_there(group, job, &wire) : sum_here(group, job, &wire);
        pthread_mutex_lock(&group->lock);
        if (faulty(wrong_of[job->kind])) ((char *)job->recv)[0] ^= 1;
        if (faulty("given-written")) ((char *)(uintptr_t)job->send)[0] ^= 1;
        if (faulty("written-around")) ((char *)job->recv)[job->count * size_of(job->type)] = 1;
        request->state = good ? DONE : FAILED;
        group->made++;
        group->sums++;
        group->blocks += job->kind != SUMMER_SUM;
    }
    pthread_mutex_unlock(&group->lock);
    return NULL;
}

static bool inside(const struct group *group, const void *at, size_t bytes, const void *mhandle)
{
    const struct memory *memory = mhandle;
    return memory && memory->group == group && (const char *)at >= memory->base &&
           (const char *)at + bytes <= memory->base + memory->bytes;
}

ncclResult_t summer_start(void *coll_comm, const struct summer_job *job, void **request_out)
{
    struct group *group = coll_comm;
    int supported = 0;
    *request_out = NULL;
    if (summer_fails("iallreduce", group->rank)) return ncclSystemError;
    if (faulty("sum-waits")) wait_long();
    if (faulty("sum-fails")) return ncclInvalidArgument;
    (void)summer_support(job->type, job->op, &supported);
    if (job->kind == SUMMER_GATHER) supported = 1;
    if (!supported || !job->count) return wrong("a sum that is not supported");
    if (!inside(group, job->send, sent_bytes(group, job), job->send_mhandle) ||
        !inside(group, job->recv, received_bytes(group, job), job->recv_mhandle))
        return wrong("memory that is not registered");
    if (++group->refused % 3 == 0) return ncclSuccess;
    pthread_mutex_lock(&group->lock);
    struct request *request = &group->requests[group->asked % REQUESTS];
    bool free_one = request->state == FREE;
    if (free_one) *request = (struct request){group, *job, ASKED};
    if (free_one) group->asked++;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
    if (!free_one) return wrong("more than 8 sums under way");
    *request_out = request;
    return ncclSuccess;
}

ncclResult_t summer_start_blocks(void *coll_comm, struct summer_job *job,
                                 const struct summer_blocks *blocks, void **request)
{
    const struct group *group = coll_comm;
    size_t all = blocks->block_bytes * (size_t)group->nranks;
    if (blocks->nparts != 1 || blocks->offset || blocks->window_bytes != all ||
        blocks->part_bytes != all || blocks->block_bytes % size_of(job->type))
        return wrong("blocks that are not one window of whole elements");
    job->count = blocks->block_bytes / size_of(job->type);
    return summer_start(coll_comm, job, request);
}

ncclResult_t summer_test(void *opaque, int *done, int *size)
{
    struct request *request = opaque;
    struct group *group = request->group;
    if (summer_fails("test", group->rank)) return ncclRemoteError;
    if (faulty("test-waits")) wait_long();
    if (faulty("crashes")) abort();
    pthread_mutex_lock(&group->lock);
    enum state state = request->state;
    *done = state == DONE;
    if (state == DONE) request->state = FREE;
    pthread_mutex_unlock(&group->lock);
    if (state == FREE) return wrong("a request is tested after it was done");
    if (*done && size) *size = (int)received_bytes(group, &request->job);
    return state == FAILED ? ncclRemoteError : ncclSuccess;
}
