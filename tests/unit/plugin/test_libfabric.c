/* Our network plugin over libfabric as a host drives it, both ends in one process where that is
 * enough. usage: test-plugin-libfabric LIBRARY PROVIDER */
#include "../check.h"

#include "nccl/net.h"
#include "plugin/net/net.h"
#include "plugin/net/net_abi.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BIG = 1 << 20, MANY = 70, WINDOW = 32, REQUESTS = 32, MOST_SEC = 100 };

static const char *library_path, *provider;
enum { LOG_BYTES = 1 << 16 };
static struct { /* of both processes, which write at once: each takes its part first */
    _Atomic size_t used;
    char text[LOG_BYTES];
} * log_kept;

static void keep(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static void keep(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
                 const char *fmt, ...)
{
    char line_text[1024];
    va_list args;
    (void)flags, (void)file, (void)line;
    if (level == NCCL_LOG_INFO) return;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    vsnprintf(line_text, sizeof(line_text), fmt, args);
    va_end(args);
    size_t bytes = strlen(line_text), at = atomic_fetch_add(&log_kept->used, bytes);
    if (at + bytes < LOG_BYTES) memcpy(log_kept->text + at, line_text, bytes);
}

static bool logged(const char *what)
{
    if (strstr(log_kept->text, what)) return true;
    print_message("not told: %s\n%s\n", what, log_kept->text);
    return false;
}

static ncclResult_t no_profile(void **event, int type, void *parent, int64_t id, void *more)
{
    (void)event, (void)type, (void)parent, (void)id, (void)more;
    return ncclSuccess;
}

static const void *table_of(int version)
{
    char symbol[32];
    void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    snprintf(symbol, sizeof(symbol), "ncclNetPlugin_v%d", version);
    const void *table = library ? dlsym(library, symbol) : NULL;
    if (!table) print_message("%s\n", dlerror());
    assert_non_null(table);
    return table;
}

static const ncclNet_v12_t *newest(void **ctx)
{
    const ncclNet_v12_t *net = table_of(12);
    ncclNetCommConfig_v12_t config = {.trafficClass = -1};
    int ndev = 0;
    memset(log_kept->text, 0, LOG_BYTES);
    atomic_store(&log_kept->used, 0);
    assert_int_equal(net->init(ctx, 7, &config, keep, no_profile), ncclSuccess);
    assert_int_equal(net->devices(&ndev), ncclSuccess);
    assert_int_equal(ndev, 1);
    return net;
}

struct pair {
    const ncclNet_v12_t *net;
    void *ctx, *sender, *receiver;
    char handle[NCCL_NET_HANDLE_MAXSIZE];
    void *listener;
};

static void pair_connect(struct pair *pair)
{
    while (!pair->sender || !pair->receiver) {
        if (!pair->sender) {
            assert_int_equal(pair->net->connect(pair->ctx, 0, pair->handle, &pair->sender, NULL),
                             ncclSuccess);
        }
        if (!pair->receiver)
            assert_int_equal(pair->net->accept(pair->listener, &pair->receiver, NULL), ncclSuccess);
        sched_yield();
    }
    assert_int_equal(pair->net->closeListen(pair->listener), ncclSuccess);
}

static struct pair pair_open(const ncclNet_v12_t *net, void *ctx)
{
    struct pair pair = {.net = net, .ctx = ctx};
    assert_int_equal(net->listen(ctx, 0, pair.handle, &pair.listener), ncclSuccess);
    pair_connect(&pair);
    return pair;
}

static void pair_close(struct pair *pair, bool sender_first)
{
    if (sender_first) assert_int_equal(pair->net->closeSend(pair->sender), ncclSuccess);
    assert_int_equal(pair->net->closeRecv(pair->receiver), ncclSuccess);
    if (!sender_first) assert_int_equal(pair->net->closeSend(pair->sender), ncclSuccess);
}

static void *send_now(struct pair *pair, void *data, size_t bytes, int tag)
{
    void *request = NULL;
    for (int tries = 0; tries < 1000000 && !request; tries++) {
        assert_int_equal(pair->net->isend(pair->sender, data, bytes, tag, NULL, NULL, &request),
                         ncclSuccess);
    }
    assert_non_null(request);
    return request;
}

static void *receive(struct pair *pair, void *data, size_t bytes, int tag)
{
    void *request = NULL, *mhandle = NULL;
    assert_int_equal(
        pair->net->irecv(pair->receiver, 1, &data, &bytes, &tag, &mhandle, NULL, &request),
        ncclSuccess);
    assert_non_null(request);
    return request;
}

static ncclResult_t finish(const ncclNet_v12_t *net, void *request, int *sizes)
{
    int done = 0;
    while (!done) {
        ncclResult_t rc = net->test(request, &done, sizes);
        if (rc) return rc;
        sched_yield();
    }
    return ncclSuccess;
}

/* ---- cases ---- */

static const size_t sizes_of_messages[] = {0, 8, 4096, 16384, 100001, BIG};

/* One message of each size; [0] is the receiver's. */
static void drive_messages(struct tt_net_plugin *net, void *ends[2], void *mhandles[2], char *out,
                           char *in)
{
    for (size_t i = 0; i < sizeof(sizes_of_messages) / sizeof(*sizes_of_messages); i++) {
        size_t bytes = sizes_of_messages[i];
        void *requests[2] = {NULL, NULL};
        const struct tt_net_part parts[2] = {
            {.data = in, .bytes = BIG, .tag = 3, .mhandle = mhandles[0]},
            {.data = out, .bytes = bytes, .tag = 3, .mhandle = mhandles[1]}};
        int done[2] = {0, 0}, moved[2] = {-1, -1};
        memset(in, 0, BIG);
        while (!done[0] || !done[1]) {
            for (int k = 0; k < 2; k++) {
                ncclResult_t rc = ncclSuccess;
                if (!requests[k]) {
                    rc = (k ? net->ops.isend : net->ops.irecv)(net, ends[k], &parts[k],
                                                               &requests[k]);
                } else if (!done[k]) {
                    rc = net->ops.test(net, requests[k], &done[k], &moved[k]);
                }
                assert_int_equal(rc, ncclSuccess);
            }
        }
        assert_true(moved[0] == (int)bytes && moved[1] == (int)bytes);
        assert_memory_equal(in, out, bytes);
    }
}

static void drive_version(int version, char *out, char *in)
{
    struct tt_net_plugin net;
    void *ctx = NULL, *ends[2] = {NULL, NULL}, *listener = NULL, *mhandles[2] = {NULL, NULL};
    char handle[NCCL_NET_HANDLE_MAXSIZE];
    const struct tt_net_start start = {9, -1, keep, no_profile};
    ncclNetProperties_v12_t props;
    int ndev = 0;
    memset(&net, 0, sizeof(net));
    assert_int_equal(tt_net_adopt(&net, version, table_of(version)), ncclSuccess);
    net.ops.adapt(&net);
    assert_int_equal(net.ops.init(&net, &start, &ctx), ncclSuccess);
    assert_null(tt_net_missing(&net));
    assert_int_equal(net.ops.devices(&net, &ndev), ncclSuccess);
    assert_int_equal(ndev, 1);
    memset(&props, 0, sizeof(props));
    assert_int_equal(net.ops.properties(&net, 0, &props), ncclSuccess);
    assert_string_equal(props.name, strcmp(provider, "shm") ? "lo" : "shm");
    assert_int_equal(props.maxRecvs, 8);
    assert_int_equal(props.vProps.ndevs, 1);
    assert_int_equal(props.ptrSupport, NCCL_PTR_HOST);
    assert_true(props.speed > 0 && props.maxP2pBytes == MAX_NET_SIZE);
    assert_int_not_equal(net.ops.properties(&net, 1, &props), ncclSuccess);
    assert_int_equal(net.ops.listen(&net, ctx, 0, handle, &listener), ncclSuccess);
    while (!ends[0] || !ends[1]) {
        if (!ends[1])
            assert_int_equal(net.ops.connect(&net, ctx, 0, handle, &ends[1]), ncclSuccess);
        if (!ends[0]) assert_int_equal(net.ops.accept(&net, listener, &ends[0]), ncclSuccess);
        sched_yield();
    }
    assert_int_equal(net.ops.close_listen(&net, listener), ncclSuccess);
    assert_int_equal(net.ops.reg_mr(&net, ends[0], in, BIG, &mhandles[0]), ncclSuccess);
    assert_int_equal(net.ops.reg_mr(&net, ends[1], out, BIG, &mhandles[1]), ncclSuccess);
    drive_messages(&net, ends, mhandles, out, in);
    for (int k = 0; k < 2; k++)
        assert_int_equal(net.ops.dereg_mr(&net, ends[k], mhandles[k]), ncclSuccess);
    assert_int_equal(net.ops.close_send(&net, ends[1]), ncclSuccess);
    assert_int_equal(net.ops.close_recv(&net, ends[0]), ncclSuccess);
    net.ops.finalize(&net, ctx);
    (void)tt_net_abandon(&net);
}

static void every_version(void **state)
{
    char *out = malloc(BIG), *in = malloc(BIG);
    (void)state;
    for (int i = 0; i < BIG; i++)
        out[i] = (char)(i * 7 + i / 251);
    for (int version = 12; version >= 6; version--) {
        print_message("version %d\n", version);
        drive_version(version, out, in);
    }
    free(out);
    free(in);
}

/* Such a provider gets no message without a receive. */
static bool in_line(void)
{
    return !strcmp(provider, "net");
}

/* Parts are matched by their tags, whatever the order of the sends. */
static void grouped(void **state)
{
    void *ctx = NULL;
    const ncclNet_v12_t *net = newest(&ctx);
    struct pair pair = pair_open(net, ctx);
    char in[4][64], out[4][16] = {"five", "sixth", "another five", "seventh"};
    void *data[4] = {in[0], in[1], in[2], in[3]}, *mhandles[4] = {NULL}, *request = NULL;
    void *flushed = &pair;
    size_t room[4] = {64, 64, 64, 64};
    int tags[4] = {5, 6, 5, 7}, sizes[64] = {0}, order[4] = {3, 0, 2, 1};
    (void)state;
    void *sends[4];
    const int early = in_line() ? 0 : 2; /* come before they are expected */
    for (int i = 0; i < early; i++)
        sends[i] = send_now(&pair, out[order[i]], strlen(out[order[i]]) + 1, tags[order[i]]);
    assert_int_equal(net->irecv(pair.receiver, 9, data, room, tags, mhandles, NULL, &request),
                     ncclInvalidArgument);
    assert_int_equal(net->irecv(pair.receiver, 4, data, room, tags, mhandles, NULL, &request),
                     ncclSuccess);
    assert_non_null(request);
    for (int i = early; i < 4; i++)
        sends[i] = send_now(&pair, out[order[i]], strlen(out[order[i]]) + 1, tags[order[i]]);
    assert_int_equal(finish(net, request, sizes), ncclSuccess);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(finish(net, sends[i], NULL), ncclSuccess);
        assert_int_equal(sizes[i], strlen(out[i]) + 1);
        assert_string_equal(in[i], out[i]);
    }
    assert_int_equal(net->iflush(pair.receiver, 4, data, sizes, mhandles, &flushed), ncclSuccess);
    assert_null(flushed);
    pair_close(&pair, true);
    assert_int_equal(net->finalize(ctx), ncclSuccess);
}

/* A sender waits for its receiver, but one tag does not wait for another. */
static void far_ahead(void **state)
{
    void *ctx = NULL, *request = NULL;
    const ncclNet_v12_t *net = newest(&ctx);
    struct pair pair = pair_open(net, ctx);
    int number = 0, sizes[64], in[2];
    int out[WINDOW + 8];
    (void)state;
    for (int tries = 0; tries < 20000; tries++) {
        out[number] = number;
        assert_int_equal(
            net->isend(pair.sender, &out[number], sizeof(int), 1, NULL, NULL, &request),
            ncclSuccess);
        if (!request) continue;
        assert_int_equal(finish(net, request, NULL), ncclSuccess);
        number++;
    }
    assert_int_equal(number, in_line() ? 0 : WINDOW);
    int other = 77;
    if (in_line()) {
        request = receive(&pair, &in[0], sizeof(int), 1); /* no other tag than this one */
        void *sent = send_now(&pair, &other, sizeof(other), 1);
        assert_int_equal(finish(net, sent, NULL), ncclSuccess);
        assert_int_equal(finish(net, request, sizes), ncclSuccess);
        assert_int_equal(in[0], 77);
        pair_close(&pair, false);
        assert_int_equal(net->finalize(ctx), ncclSuccess);
        return;
    }
    assert_int_equal(finish(net, send_now(&pair, &other, sizeof(other), 2), NULL), ncclSuccess);
    for (int i = 0; i < WINDOW; i++) {
        if (i == 5) {
            assert_int_equal(finish(net, receive(&pair, &in[1], sizeof(int), 2), sizes),
                             ncclSuccess);
        }
        assert_int_equal(finish(net, receive(&pair, &in[0], sizeof(int), 1), sizes), ncclSuccess);
        assert_int_equal(in[0], i);
    }
    assert_int_equal(in[1], 77);
    assert_int_equal(finish(net, send_now(&pair, &other, sizeof(other), 1), NULL), ncclSuccess);
    pair_close(&pair, false);
    assert_int_equal(net->finalize(ctx), ncclSuccess);
}

static void too_large(void **state)
{
    void *ctx = NULL;
    const ncclNet_v12_t *net = newest(&ctx);
    struct pair pair = pair_open(net, ctx);
    char out[100] = "", in[10];
    int sizes[64];
    (void)state;
    void *receiving = receive(&pair, in, sizeof(in), 0);
    (void)send_now(&pair, out, sizeof(out), 0);
    ncclResult_t rc = finish(net, receiving, sizes);
    print_message("%s\n", log_kept->text);
    assert_int_equal(rc, ncclInvalidUsage);
    assert_true(logged("a message is larger than its receive") && logged(provider));
    pair_close(&pair, true);
    assert_int_equal(net->finalize(ctx), ncclSuccess);
}

/* More connections than an endpoint takes, each with as many messages as it may have. */
static void many_connections(void **state)
{
    static struct pair pairs[MANY];
    static void *requests[MANY][2][REQUESTS];
    static int out[MANY][REQUESTS], in[MANY][REQUESTS];
    void *ctx = NULL, *more = NULL;
    const ncclNet_v12_t *net = newest(&ctx);
    (void)state;
    for (int i = 0; i < MANY; i++)
        pairs[i] = pair_open(net, ctx);
    for (int i = 0; i < MANY; i++) {
        for (int k = 0; k < REQUESTS; k++)
            requests[i][0][k] = receive(&pairs[i], &in[i][k], sizeof(int), 4);
        void *data = &in[i][0], *mhandle = NULL;
        size_t bytes = sizeof(int);
        int tag = 4;
        assert_int_equal(
            net->irecv(pairs[i].receiver, 1, &data, &bytes, &tag, &mhandle, NULL, &more),
            ncclSuccess);
        assert_null(more); /* ask again */
    }
    for (int i = 0; i < MANY; i++) {
        for (int k = 0; k < REQUESTS; k++) {
            out[i][k] = i * REQUESTS + k;
            requests[i][1][k] = send_now(&pairs[i], &out[i][k], sizeof(int), 4);
        }
    }
    for (int i = 0; i < MANY; i++) {
        for (int k = 0; k < REQUESTS; k++) {
            int size = 0;
            assert_int_equal(finish(net, requests[i][0][k], &size), ncclSuccess);
            assert_int_equal(finish(net, requests[i][1][k], NULL), ncclSuccess);
            assert_true(size == sizeof(int) && in[i][k] == out[i][k]);
        }
    }
    for (int i = 0; i < MANY; i++)
        pair_close(&pairs[i], i % 2);
    assert_int_equal(net->finalize(ctx), ncclSuccess);
}

/* Another process that calls at the port of a listener is not let in and keeps no peer out. */
static void strangers(void **state)
{
    void *ctx = NULL;
    const ncclNet_v12_t *net = newest(&ctx);
    struct pair pair = {.net = net, .ctx = ctx};
    struct sockaddr_in addr;
    const struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    int fds[12];
    char garbage[4096];
    (void)state;
    memset(garbage, 'x', sizeof(garbage));
    assert_int_equal(net->listen(ctx, 0, pair.handle, &pair.listener), ncclSuccess);
    const char *found = memmem(pair.handle, sizeof(pair.handle), &loopback, sizeof(loopback));
    assert_non_null(found);
    memcpy(&addr, found - offsetof(struct sockaddr_in, sin_addr), sizeof(addr));
    for (int i = 0; i < 12; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&addr, sizeof(addr)), 0);
        if (i % 2) (void)send(fds[i], garbage, sizeof(garbage), MSG_NOSIGNAL);
    }
    pair_connect(&pair);
    for (int i = 0; i < 12; i++)
        close(fds[i]);
    pair_close(&pair, true);
    assert_int_equal(net->finalize(ctx), ncclSuccess);
}

/* Connectors that are not waited for any more, receives under way, listeners without a caller. */
static void given_up(void **state)
{
    void *ctx = NULL, *unused = NULL;
    const ncclNet_v12_t *net = newest(&ctx);
    struct pair pair = pair_open(net, ctx), half = {.net = net, .ctx = ctx};
    static char in[BIG];
    (void)state;
    assert_int_equal(net->listen(ctx, 0, half.handle, &half.listener), ncclSuccess);
    for (int i = 0; i < 10; i++)
        assert_int_equal(net->connect(ctx, 0, half.handle, &unused, NULL), ncclSuccess);
    assert_null(unused);
    (void)receive(&pair, in, sizeof(in), 1);
    pair_close(&pair, false);
    assert_int_equal(net->closeListen(half.listener), ncclSuccess);
    assert_int_equal(net->finalize(ctx), ncclSuccess);
    assert_string_equal(log_kept->text, "");
}

/* A receive is closed while its message comes: nothing is written there later, whatever else the
 * communicator goes on with. */
static void closed_midway(void **state)
{
    enum { BYTES = 64 * BIG, ROUNDS = 200, SENT = 1, OWN = 2 };
    void *ctxs[2] = {NULL, NULL};
    const ncclNet_v12_t *net = newest(&ctxs[0]);
    char *out = malloc(BYTES), *in = malloc(BYTES);
    struct pair pair = {.net = net};
    int done = 0, sent = 0, size = 0, small = 0;
    (void)state;
    (void)newest(&ctxs[1]);
    pair.ctx = ctxs[1];
    memset(out, SENT, BYTES);
    memset(in, 0, BYTES);
    assert_int_equal(net->listen(ctxs[0], 0, pair.handle, &pair.listener), ncclSuccess);
    pair_connect(&pair);
    void *receiving = receive(&pair, in, BYTES, 0), *sending = send_now(&pair, out, BYTES, 0);
    while (*(volatile char *)in != SENT && !done) {
        assert_int_equal(net->test(receiving, &done, &size), ncclSuccess);
        if (!sent) assert_int_equal(net->test(sending, &sent, NULL), ncclSuccess);
    }
    print_message("the message has %scome before the end\n", done ? "" : "not ");
    assert_int_equal(net->closeRecv(pair.receiver), ncclSuccess);
    memset(in, OWN, BYTES);
    struct pair other = pair_open(net, ctxs[0]);
    for (int k = 0; k < ROUNDS; k++) {
        void *request = receive(&other, &small, sizeof(small), 0);
        if (!sent) (void)net->test(sending, &sent, NULL); /* it may be an error by now */
        assert_int_equal(finish(net, send_now(&other, &k, sizeof(k), 0), NULL), ncclSuccess);
        assert_int_equal(finish(net, request, &size), ncclSuccess);
    }
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(in[i], OWN);
    assert_int_equal(net->closeSend(pair.sender), ncclSuccess);
    pair_close(&other, true);
    for (int k = 0; k < 2; k++)
        assert_int_equal(net->finalize(ctxs[k]), ncclSuccess);
    free(out);
    free(in);
}

/* ---- two processes ---- */

struct connecting {
    _Atomic int step;
    char handle[NCCL_NET_HANDLE_MAXSIZE];
};

static void await(struct connecting *connecting, int step)
{
    while (connecting->step < step)
        sched_yield();
}

static struct connecting *new_rendezvous(void)
{
    struct connecting *connecting =
        mmap(NULL, sizeof(*connecting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(connecting, MAP_FAILED);
    return connecting;
}

/* The other process receives; it sends a message of its own, and ends without a word. */
static void child_ends(struct connecting *connecting, bool receives)
{
    void *ctx = NULL, *comm = NULL;
    alarm(MOST_SEC); /* forks do not inherit it */
    const ncclNet_v12_t *net = newest(&ctx);
    if (receives) {
        void *listener = NULL;
        (void)net->listen(ctx, 0, connecting->handle, &listener);
        connecting->step = 1;
        while (!comm && !net->accept(listener, &comm, NULL))
            sched_yield();
    } else {
        char handle[NCCL_NET_HANDLE_MAXSIZE];
        await(connecting, 1);
        memcpy(handle, connecting->handle, sizeof(handle));
        while (!comm && !net->connect(ctx, 0, handle, &comm, NULL))
            sched_yield();
    }
    await(connecting, 2);
    _exit(comm ? 0 : 1);
}

static void peer_ends(bool child_receives)
{
    static char data[BIG];
    struct connecting *connecting = new_rendezvous();
    struct pair pair = {.net = NULL};
    pid_t child = fork();
    int status = 0, sizes[64];
    if (child == 0) child_ends(connecting, child_receives);
    pair.net = newest(&pair.ctx);
    if (child_receives) {
        await(connecting, 1);
        memcpy(pair.handle, connecting->handle, sizeof(pair.handle));
        while (!pair.sender)
            assert_int_equal(pair.net->connect(pair.ctx, 0, pair.handle, &pair.sender, NULL), 0);
    } else {
        assert_int_equal(pair.net->listen(pair.ctx, 0, connecting->handle, &pair.listener), 0);
        connecting->step = 1;
        while (!pair.receiver)
            assert_int_equal(pair.net->accept(pair.listener, &pair.receiver, NULL), ncclSuccess);
        assert_int_equal(pair.net->closeListen(pair.listener), ncclSuccess);
    }
    bool waits = child_receives && in_line(); /* for a receive, which never comes */
    void *request = NULL;
    if (!child_receives) request = receive(&pair, data, sizeof(data), 0);
    if (child_receives && !waits) request = send_now(&pair, data, sizeof(data), 0);
    connecting->step = 2;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    ncclResult_t rc = ncclSuccess; /* it takes seconds */
    if (!waits) rc = finish(pair.net, request, sizes);
    while (waits && !rc && !request)
        rc = pair.net->isend(pair.sender, data, sizeof(data), 0, NULL, NULL, &request);
    assert_int_equal(rc, ncclRemoteError);
    assert_true(logged(child_receives ? "the receiver at 127.0.0.1:" : "the sender at 127.0.0.1:"));
    assert_true(logged(provider));
    if (!waits) assert_int_equal(pair.net->test(request, &status, sizes), ncclRemoteError);
    assert_int_equal(child_receives ? pair.net->closeSend(pair.sender)
                                    : pair.net->closeRecv(pair.receiver),
                     ncclSuccess);
    assert_int_equal(pair.net->finalize(pair.ctx), ncclSuccess);
    munmap(connecting, sizeof(*connecting));
}

static void receiver_ends(void **state)
{
    (void)state;
    peer_ends(true);
}

static void sender_ends(void **state)
{
    (void)state;
    peer_ends(false);
}

static void other_provider(void **state)
{
    struct connecting *connecting = new_rendezvous();
    const char *other = strcmp(provider, "shm") ? "shm" : "tcp";
    void *ctx = NULL, *comm = NULL, *listener = NULL;
    pid_t child = fork();
    int status = 0;
    (void)state;
    if (child == 0) {
        setenv("TUTTI_OFI_PROVIDER", other, 1);
        child_ends(connecting, false);
    }
    const ncclNet_v12_t *net = newest(&ctx);
    assert_int_equal(net->listen(ctx, 0, connecting->handle, &listener), ncclSuccess);
    connecting->step = 2;
    ncclResult_t rc = ncclSuccess;
    while (!rc)
        rc = net->accept(listener, &comm, NULL);
    assert_int_equal(rc, ncclInvalidUsage);
    assert_int_equal(net->accept(listener, &comm, NULL), ncclInvalidUsage); /* asked again */
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_not_equal(status, 0);
    assert_true(logged("the sender at 127.0.0.1:") && logged("the receiver at 127.0.0.1:"));
    assert_true(logged(in_line() ? "shm, this rank net" : "shm, this rank tcp"));
    assert_true(logged(in_line() ? "uses provider net" : "uses provider tcp"));
    assert_int_equal(net->closeListen(listener), ncclSuccess);
    assert_int_equal(net->finalize(ctx), ncclSuccess);
    munmap(connecting, sizeof(*connecting));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest processes[] = {
        cmocka_unit_test(receiver_ends),
        cmocka_unit_test(sender_ends),
        cmocka_unit_test(other_provider),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version),    cmocka_unit_test(grouped),
        cmocka_unit_test(far_ahead),        cmocka_unit_test(too_large),
        cmocka_unit_test(strangers),        cmocka_unit_test(given_up),
        cmocka_unit_test(many_connections), cmocka_unit_test(closed_midway),
    };
    if (argc != 3) return 2;
    library_path = argv[1];
    provider = argv[2];
    setenv("TUTTI_OFI_PROVIDER", provider, 1);
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    log_kept =
        mmap(NULL, sizeof(*log_kept), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int wrong = 0;
    if (log_kept == MAP_FAILED) return 1;
    alarm(MOST_SEC); /* a hang is a failure */
    for (size_t i = 0; i < sizeof(processes) / sizeof(*processes); i++) {
        pid_t child = fork(); /* libfabric is loaded in children only, which fork no more then */
        const struct CMUnitTest one[] = {processes[i]};
        if (child == 0) alarm(MOST_SEC);
        if (child == 0) _exit(cmocka_run_group_tests(one, NULL, NULL));
        int status = 1;
        (void)waitpid(child, &status, 0);
        wrong += status != 0;
    }
    return wrong + cmocka_run_group_tests(tests, NULL, NULL);
}
