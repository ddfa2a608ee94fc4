/* The verbs network over a verbs library without adapters, both ends in one process. One scenario
 * per run, because devices and variables are read once. usage: test_ib SCENARIO LIBRARY */
#include "../check.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "net/ib/device.h"
#include "net/net.h"

#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NET tt_net_verbs.table
#define TIMEOUT_NSEC 60000000000ull

enum { MOST_PARTS = 8 };

static struct {
    char folder[64], log[80];
    unsigned pause_usec; /* between two steps */
} at = {"", "", 0};

/* ---- two ends ---- */

struct ends {
    void *from, *to; /* contexts of ranks 0 and 1 */
    void *listen, *send, *recv;
    char handle[NCCL_NET_HANDLE_MAXSIZE];
};

static ncclResult_t no_event(void **handle, int type, void *parent, int64_t id, void *extra)
{
    (void)handle, (void)type, (void)parent, (void)id, (void)extra;
    return ncclSuccess;
}

static void *context_of(int rank)
{
    ncclNetCommConfig_v12_t config = {.trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF};
    struct tt_net_trust trust = {.rank = rank};
    void *ctx = NULL;
    memset(trust.key, 'k', sizeof(trust.key));
    assert_int_equal(NET->init(&ctx, 7, &config, NULL, no_event), ncclSuccess);
    tt_net_verbs.set_trust(ctx, &trust);
    return ctx;
}

/* The first error of either end, or success when both are there. */
static ncclResult_t devices_join(struct ends *ends, int from_dev, int to_dev)
{
    ncclResult_t rc = ncclSuccess;
    memset(ends, 0, sizeof(*ends));
    ends->from = context_of(0);
    ends->to = context_of(1);
    assert_int_equal(NET->listen(ends->to, to_dev, ends->handle, &ends->listen), ncclSuccess);
    while (!rc && (!ends->send || !ends->recv)) {
        if (!ends->send) rc = NET->connect(ends->from, from_dev, ends->handle, &ends->send, NULL);
        if (!rc && !ends->recv) rc = NET->accept(ends->listen, &ends->recv, NULL);
        sched_yield();
    }
    return rc;
}

static ncclResult_t ends_join(struct ends *ends)
{
    return devices_join(ends, 0, 0);
}

static void ends_close(struct ends *ends)
{
    NET->closeListen(ends->listen);
    NET->closeSend(ends->send);
    NET->closeRecv(ends->recv);
    NET->finalize(ends->from);
    NET->finalize(ends->to);
}

/* ---- messages ---- */

struct message { /* one grouped receive and what is sent for it */
    int nparts;
    size_t sizes[MOST_PARTS];
    unsigned char *sent[MOST_PARTS], *got[MOST_PARTS];
    void *sent_handles[MOST_PARTS], *got_handles[MOST_PARTS];
    void *outs[MOST_PARTS], *in;
    int sizes_got[MOST_PARTS];
};

static void message_make(const struct ends *ends, struct message *message, unsigned seed)
{
    for (int i = 0; i < message->nparts; i++) {
        size_t size = message->sizes[i];
        message->sent[i] = malloc(size + 1);
        message->got[i] = calloc(1, size + 8);
        for (size_t k = 0; k < size; k++)
            message->sent[i][k] = (unsigned char)((seed + (unsigned)i) * 131 + k * 7 + k / 251);
        assert_int_equal(NET->regMr(ends->send, message->sent[i], size + 1, NCCL_PTR_HOST,
                                    &message->sent_handles[i]),
                         ncclSuccess);
        assert_int_equal(NET->regMr(ends->recv, message->got[i], size + 8, NCCL_PTR_HOST,
                                    &message->got_handles[i]),
                         ncclSuccess);
    }
}

static void message_free(const struct ends *ends, struct message *message)
{
    for (int i = 0; i < message->nparts; i++) {
        NET->deregMr(ends->send, message->sent_handles[i]);
        NET->deregMr(ends->recv, message->got_handles[i]);
        free(message->sent[i]);
        free(message->got[i]);
    }
}

static void message_post(const struct ends *ends, struct message *message)
{
    void *data[MOST_PARTS];
    size_t rooms[MOST_PARTS];
    int tags[MOST_PARTS];
    for (int i = 0; i < message->nparts; i++) {
        data[i] = message->got[i];
        rooms[i] = message->sizes[i] + 7;
        tags[i] = 40 + i;
    }
    assert_int_equal(NET->irecv(ends->recv, message->nparts, data, rooms, tags,
                                message->got_handles, NULL, &message->in),
                     ncclSuccess);
    assert_non_null(message->in);
}

/* One step of both ends; the first error. The parts are sent in falling order. */
static ncclResult_t message_step(const struct ends *ends, struct message *message, bool *done)
{
    ncclResult_t rc = ncclSuccess;
    int over = 0;
    *done = !message->in;
    for (int i = message->nparts - 1; !rc && i >= 0; i--) {
        if (message->sent[i] && !message->outs[i])
            rc = NET->isend(ends->send, message->sent[i], message->sizes[i], 40 + i,
                            message->sent_handles[i], NULL, &message->outs[i]);
        if (!message->outs[i]) *done = false;
    }
    for (int i = 0; !rc && i < message->nparts; i++) {
        if (!message->outs[i] || message->outs[i] == message) continue;
        rc = NET->test(message->outs[i], &over, NULL);
        if (over) message->outs[i] = message; /* no request: the mark of what is over */
        if (!over) *done = false;
    }
    if (!rc && message->in) {
        rc = NET->test(message->in, &over, message->sizes_got);
        if (over) message->in = NULL;
        if (!over) *done = false;
    }
    return rc;
}

static ncclResult_t message_run(const struct ends *ends, struct message *message)
{
    bool done = false;
    ncclResult_t rc = ncclSuccess;
    uint64_t until = tt_now_nsec() + TIMEOUT_NSEC;
    while (!rc && !done) {
        rc = message_step(ends, message, &done);
        assert_true(tt_now_nsec() < until);
        if (at.pause_usec) usleep(at.pause_usec);
        sched_yield();
    }
    return rc;
}

static void message_check(const struct message *message)
{
    for (int i = 0; i < message->nparts; i++) {
        assert_int_equal(message->sizes_got[i], message->sizes[i]);
        assert_memory_equal(message->sent[i], message->got[i], message->sizes[i]);
        assert_int_equal(message->got[i][message->sizes[i]], 0);
    }
}

static ncclResult_t exchange(const struct ends *ends, int nparts, const size_t *sizes)
{
    struct message message = {.nparts = nparts};
    memcpy(message.sizes, sizes, (size_t)nparts * sizeof(*sizes));
    message_make(ends, &message, (unsigned)sizes[0]);
    message_post(ends, &message);
    ncclResult_t rc = message_run(ends, &message);
    if (!rc) message_check(&message);
    message_free(ends, &message);
    return rc;
}

static void every_size_arrives(const struct ends *ends)
{
    static const size_t sizes[] = {0,     1,     127,    128,     129,     4096,
                                   65535, 65536, 200000, 2097150, 2097151, 3000001};
    for (size_t i = 0; i < TT_LEN(sizes); i++) {
        print_message("size %zu\n", sizes[i]);
        assert_int_equal(exchange(ends, 1, &sizes[i]), ncclSuccess);
    }
}

/* ---- the verbs library's log ---- */

static int lines_of(const char *wanted)
{
    char line[256];
    int count = 0;
    FILE *file = fopen(at.log, "re");
    while (file && fgets(line, sizeof(line), file))
        count += !strcmp(line, wanted);
    if (file) fclose(file);
    return count;
}

/* ---- scenarios ---- */

static void devices_are_listed(void)
{
    int count = 0;
    ncclNetProperties_v12_t props;
    assert_int_equal(NET->devices(&count), ncclSuccess);
    assert_int_equal(count, 3); /* by PCI place; two functions of one card are one device */
    assert_int_equal(NET->getProperties(0, &props), ncclSuccess);
    assert_string_equal(props.name, "near");
    assert_int_equal(props.speed, 100000); /* 4 lanes of 25 */
    assert_int_equal(props.maxRecvs, 8);
    assert_int_equal(props.ptrSupport, NCCL_PTR_HOST);
    assert_non_null(strstr(props.pciPath, "/0000:17:00.0"));
    assert_int_equal(NET->getProperties(1, &props), ncclSuccess);
    assert_string_equal(props.name, "twin_0+twin_1");
    assert_int_equal(props.speed, 200000);
    assert_int_equal(NET->getProperties(2, &props), ncclSuccess);
    assert_string_equal(props.name, "far");
    assert_int_equal(props.railId, NCCL_NET_ID_UNDEF);
    assert_int_equal(NET->getProperties(3, &props), ncclInvalidArgument);
}

static void filters_choose(void)
{
    static const struct {
        const char *list, *name;
        int port;
        bool taken;
    } cases[] = {
        {NULL, "mlx5_0", 1, true},
        {"", "mlx5_0", 1, true},
        {"mlx5", "mlx5_12", 1, true},
        {"=mlx5", "mlx5_1", 1, false},
        {"=mlx5_1", "mlx5_1", 1, true},
        {"=mlx5_1", "mlx5_10", 1, false},
        {"mlx5_1", "mlx5_10", 1, true},
        {"mlx5_1:2", "mlx5_1", 1, false},
        {"mlx5_1:2", "mlx5_1", 2, true},
        {"^mlx5_1", "mlx5_1", 1, false},
        {"^mlx5_1", "bnxt", 1, true},
        {"^=mlx5_1", "mlx5_10", 1, true},
        {"^=mlx5_1,mlx5_2", "mlx5_2", 1, false},
        {"a,,mlx5_2:1", "mlx5_2", 1, true},
        {",", "mlx5_2", 1, false},
        {"^=a:1", "a", 2, true},
    };
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        struct ib_port port = {.number = (uint8_t)cases[i].port, .rail = -1, .plane = -1};
        print_message("case: %s\n", cases[i].list ? cases[i].list : "none");
        snprintf(port.name, sizeof(port.name), "%s", cases[i].name);
        assert_int_equal(tt_ib_port_taken(cases[i].list, &port), cases[i].taken);
    }
    struct ib_port port = {.name = "mlx5_3", .number = 1, .rail = -1, .plane = -1};
    assert_true(tt_ib_port_taken("=mlx5_2:1:5,mlx5_3:1:6:2", &port));
    assert_int_equal(port.rail, 6);
    assert_int_equal(port.plane, 2);
}

static void messages_arrive(void)
{
    struct ends ends;
    assert_int_equal(ends_join(&ends), ncclSuccess);
    every_size_arrives(&ends);
    for (size_t i = 0; i < 200; i++) { /* slots are used again and again */
        size_t size = i * 977 % 9000;
        assert_int_equal(exchange(&ends, 1, &size), ncclSuccess);
    }
    ends_close(&ends);
}

/* 32 receives are ahead of the sends; a 33rd waits. Ends are served out of order. */
static void many_are_in_flight(void)
{
    static struct message messages[32];
    struct ends ends;
    bool done = false;
    assert_int_equal(ends_join(&ends), ncclSuccess);
    for (int i = 0; i < 32; i++) {
        messages[i].nparts = 1;
        messages[i].sizes[0] = (size_t)i * 5003;
        message_make(&ends, &messages[i], (unsigned)i);
        message_post(&ends, &messages[i]);
    }
    void *data = messages[0].got[0], *more = NULL;
    size_t room = 8;
    int tag = 40;
    assert_int_equal(
        NET->irecv(ends.recv, 1, &data, &room, &tag, messages[0].got_handles, NULL, &more),
        ncclSuccess);
    assert_null(more);
    for (int i = 0; i < 32; i++) {
        while (!messages[i].outs[0])
            assert_int_equal(message_step(&ends, &messages[i], &done), ncclSuccess);
    }
    for (int i = 31; i >= 0; i--) {
        assert_int_equal(message_run(&ends, &messages[i]), ncclSuccess);
        message_check(&messages[i]);
        message_free(&ends, &messages[i]);
    }
    ends_close(&ends);
}

static void groups_arrive(void)
{
    static const size_t sizes[][MOST_PARTS] = {{10, 0, 300000, 1, 128, 4096, 77, 5},
                                               {0, 0, 0, 0, 0, 0, 0, 0},
                                               {2500000, 1, 2, 3, 4, 5, 6, 7}};
    struct ends ends;
    assert_int_equal(ends_join(&ends), ncclSuccess);
    for (size_t i = 0; i < TT_LEN(sizes); i++) {
        for (int nparts = 1; nparts <= MOST_PARTS; nparts++)
            assert_int_equal(exchange(&ends, nparts, sizes[i]), ncclSuccess);
    }
    ends_close(&ends);
    many_are_in_flight();
}

/* One port here and two there, both ways: a queue pair for each of the two. */
static void unlike_ends_agree(void)
{
    for (int from = 0; from < 2; from++) {
        struct ends ends;
        assert_int_equal(devices_join(&ends, from, 1 - from), ncclSuccess);
        every_size_arrives(&ends);
        ends_close(&ends);
    }
    assert_int_equal(lines_of("INIT single port 1 pkey 0\n"), 4);
    assert_int_equal(lines_of("INIT twin_0 port 1 pkey 0\n"), 2);
    assert_int_equal(lines_of("INIT twin_1 port 1 pkey 0\n"), 2);
}

/* Attributes come from ports and variables, in the order that adapters demand. */
static void states_are_right(void)
{
    struct ends ends;
    size_t size = 100000;
    assert_int_equal(ends_join(&ends), ncclSuccess);
    assert_int_equal(exchange(&ends, 1, &size), ncclSuccess);
    ends_close(&ends);
    assert_int_equal(lines_of("INIT fake_0 port 1 pkey 3\n"), 4); /* two of each end */
    assert_int_equal(lines_of("RTR fake_0 mtu 4096 global 0 gid 0 lid 101 sl 5 tc 0\n"), 4);
    assert_int_equal(lines_of("RTS fake_0 timeout 17 retries 4\n"), 4);
    assert_true(lines_of("relaxed 1\n") >= 2);
}

/* The IPv4 address in its second version is the fourth one; MTU of the smaller. */
static void roce_has_an_address(void)
{
    struct ends ends;
    size_t size = 100000;
    assert_int_equal(ends_join(&ends), ncclSuccess);
    assert_int_equal(exchange(&ends, 1, &size), ncclSuccess);
    ends_close(&ends);
    assert_int_equal(lines_of("RTR fake_0 mtu 4096 global 1 gid 3 lid 0 sl 0 tc 106\n"), 2);
}

/* The cable of one of two ports is cut in the middle; all arrives over the other. */
static void a_cut_is_survived(void)
{
    struct ends ends;
    assert_int_equal(ends_join(&ends), ncclSuccess);
    for (size_t i = 0; i < 60; i++) {
        size_t size = i * 20011 % 300000;
        assert_int_equal(exchange(&ends, 1, &size), ncclSuccess);
    }
    ends_close(&ends);
}

/* Between two calls of a waiting rank a probe completes: it hears what the receiver says all the
 * same. */
static void a_cut_is_survived_by_who_calls_seldom(void)
{
    static const size_t size = 300000;
    struct ends ends;
    assert_int_equal(ends_join(&ends), ncclSuccess);
    at.pause_usec = 2000;
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(exchange(&ends, 1, &size), ncclSuccess);
    ends_close(&ends);
}

/* The receiver has all, makes no call any more, and its adapter's answers are lost on the way: the
 * sender finds out for itself. */
static void a_lost_answer_is_survived(void)
{
    struct ends ends;
    assert_int_equal(ends_join(&ends), ncclSuccess);
    for (size_t i = 0; i < 30; i++) {
        struct message message = {.nparts = 1, .sizes = {i * 20011 % 300000}};
        uint64_t until = tt_now_nsec() + TIMEOUT_NSEC;
        bool done = false;
        message_make(&ends, &message, (unsigned)i);
        message_post(&ends, &message);
        while (message.in) /* until the receiver has it */
            assert_int_equal(message_step(&ends, &message, &done), ncclSuccess);
        while (!done) { /* and the sender alone */
            assert_int_equal(message_step(&ends, &message, &done), ncclSuccess);
            assert_true(tt_now_nsec() < until);
        }
        message_check(&message);
        message_free(&ends, &message);
    }
    ends_close(&ends);
}

static void expect_failure(ncclResult_t wanted, const char *const *words, size_t nwords)
{
    struct ends ends;
    ncclResult_t rc = ends_join(&ends);
    for (size_t i = 0; !rc && i < 60; i++) {
        size_t size = i * 20011 % 300000;
        rc = exchange(&ends, 1, &size);
    }
    print_message("%s\n", tt_last_error());
    assert_int_equal(rc, wanted);
    for (size_t i = 0; i < nwords; i++)
        assert_non_null(strstr(tt_last_error(), words[i]));
    ends_close(&ends);
}

static void a_cut_is_reported(void)
{
    static const char *const words[] = {"rank 0", "rank 1", "fake_0", "retries exceeded",
                                        "NCCL_IB_TIMEOUT"};
    expect_failure(ncclSystemError, words, TT_LEN(words));
}

static void a_fatal_event_is_reported(void)
{
    static const char *const words[] = {"fake_0 told of a fatal event"};
    struct ends ends;
    ncclResult_t rc = ends_join(&ends);
    uint64_t until = tt_now_nsec() + TIMEOUT_NSEC;
    while (!rc && tt_now_nsec() < until) {
        size_t size = 1000;
        rc = exchange(&ends, 1, &size);
    }
    assert_int_equal(rc, ncclSystemError);
    assert_non_null(strstr(tt_last_error(), words[0]));
    ends_close(&ends);
}

/* Without an address a port cannot be reached: another network is asked then. */
static void no_address_is_no_device(void)
{
    int count = -1;
    assert_int_equal(NET->devices(&count), ncclSuccess);
    assert_int_equal(count, 0);
}

static void no_memory_is_reported(void)
{
    static const char *const words[] = {"fake_0", "ulimit -l"};
    struct ends ends;
    void *mhandle = NULL, *bytes = calloc(1, 200000);
    assert_int_equal(ends_join(&ends), ncclSuccess);
    assert_int_equal(NET->regMr(ends.send, bytes, 200000, NCCL_PTR_HOST, &mhandle),
                     ncclSystemError);
    for (size_t i = 0; i < TT_LEN(words); i++)
        assert_non_null(strstr(tt_last_error(), words[i]));
    assert_int_equal(NET->regMr(ends.send, bytes, 1000, NCCL_PTR_HOST, &mhandle), ncclSuccess);
    assert_int_equal(NET->deregMr(ends.send, mhandle), ncclSuccess);
    free(bytes);
    ends_close(&ends);
}

/* A receiver that waits hears that its sender is gone; too large a message is refused. */
static void a_gone_peer_is_reported(void)
{
    struct ends ends;
    struct message message = {.nparts = 1, .sizes = {100}};
    ncclResult_t rc = ncclSuccess;
    uint64_t until = tt_now_nsec() + TIMEOUT_NSEC;
    int done = 0;
    assert_int_equal(ends_join(&ends), ncclSuccess);
    message_make(&ends, &message, 1);
    message_post(&ends, &message);
    while (!rc && !message.outs[0])
        rc = NET->isend(ends.send, message.sent[0], 108, 40, message.sent_handles[0], NULL,
                        &message.outs[0]);
    assert_int_equal(rc, ncclInvalidUsage);
    assert_non_null(strstr(tt_last_error(), "message truncated"));
    NET->deregMr(ends.send, message.sent_handles[0]);
    message.sent_handles[0] = NULL;
    NET->closeSend(ends.send);
    rc = ncclSuccess;
    while (!rc && tt_now_nsec() < until)
        rc = NET->test(message.in, &done, message.sizes_got);
    assert_int_equal(rc, ncclRemoteError);
    assert_non_null(strstr(tt_last_error(), "has gone"));
    NET->deregMr(ends.recv, message.got_handles[0]);
    NET->closeListen(ends.listen);
    NET->closeRecv(ends.recv);
    NET->finalize(ends.from);
    NET->finalize(ends.to);
    free(message.sent[0]);
    free(message.got[0]);
}

#define ONE "fake_0/ib/0000:3b:00.0"
#define TWO "fake_0/ib/0000:3b:00.0,fake_1/ib/0000:3b:00.1"

static const struct scenario {
    const char *name;
    void (*run)(void);
    const char *variables[10]; /* name, value, ... */
} scenarios[] = {
    {"devices",
     devices_are_listed,
     {"FAKE_IB_DEVICES",
      "far/ib/0000:e1:00.0,twin_1/ib/0000:5e:00.1,near/eth/0000:17:00.0,dark/ib/0000:16:00.0,"
      "twin_0/ib/0000:5e:00.0",
      "FAKE_IB_FAULTS", "port-down=dark"}},
    {"filter", filters_choose, {NULL}},
    {"messages", messages_arrive, {"FAKE_IB_DEVICES", ONE, "NCCL_IB_ADAPTIVE_ROUTING", "0"}},
    {"groups", groups_arrive, {"FAKE_IB_DEVICES", ONE}},
    {"split",
     groups_arrive,
     {"FAKE_IB_DEVICES", TWO, "NCCL_IB_QPS_PER_CONNECTION", "3", "NCCL_IB_SPLIT_DATA_ON_QPS", "1"}},
    {"unlike",
     unlike_ends_agree,
     {"FAKE_IB_DEVICES", "single/ib/0000:17:00.0,twin_0/ib/0000:5e:00.0,twin_1/ib/0000:5e:00.1"}},
    {"roce",
     roce_has_an_address,
     {"FAKE_IB_DEVICES", "fake_0/eth/0000:3b:00.0", "NCCL_IB_TC", "106"}},
    {"states",
     states_are_right,
     {"NCCL_IB_PKEY", "3", "NCCL_IB_SL", "5", "NCCL_IB_TIMEOUT", "17", "NCCL_IB_RETRY_CNT", "4",
      "NCCL_IB_QPS_PER_CONNECTION", "2"}},
    {"cut",
     a_cut_is_survived,
     {"FAKE_IB_DEVICES", TWO, "FAKE_IB_FAULTS", "cut=fake_1:30", "NCCL_IB_RESILIENCY_PORT_FAILOVER",
      "1", "NCCL_IB_QPS_PER_CONNECTION", "2"}},
    {"cut-first",
     a_cut_is_survived,
     {"FAKE_IB_DEVICES", TWO, "FAKE_IB_FAULTS", "cut=fake_0:42,late-usec=300",
      "NCCL_IB_RESILIENCY_PORT_FAILOVER", "1"}},
    {"cut-seldom",
     a_cut_is_survived_by_who_calls_seldom,
     {"FAKE_IB_DEVICES", TWO, "FAKE_IB_FAULTS", "cut=fake_1:4", "NCCL_IB_RESILIENCY_PORT_FAILOVER",
      "1", "NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY", "1"}},
    {"deaf",
     a_lost_answer_is_survived,
     {"FAKE_IB_DEVICES", TWO, "FAKE_IB_FAULTS", "deaf=fake_1:20",
      "NCCL_IB_RESILIENCY_PORT_FAILOVER", "1"}},
    {"alone", a_cut_is_reported, {"FAKE_IB_DEVICES", ONE, "FAKE_IB_FAULTS", "cut=fake_0:41"}},
    {"fatal",
     a_fatal_event_is_reported,
     {"FAKE_IB_DEVICES", ONE, "FAKE_IB_FAULTS", "fatal=fake_0:9"}},
    {"flap", messages_arrive, {"FAKE_IB_DEVICES", ONE, "FAKE_IB_FAULTS", "flap=fake_0:9"}},
    {"no-gid",
     no_address_is_no_device,
     {"FAKE_IB_DEVICES", "fake_0/eth/0000:3b:00.0", "FAKE_IB_FAULTS", "no-gid=fake_0"}},
    {"no-memory",
     no_memory_is_reported,
     {"FAKE_IB_DEVICES", ONE, "FAKE_IB_FAULTS", "no-memory=100000"}},
    {"late", messages_arrive, {"FAKE_IB_DEVICES", ONE, "FAKE_IB_FAULTS", "late-usec=200"}},
    {"gone", a_gone_peer_is_reported, {"FAKE_IB_DEVICES", ONE}},
};

static const struct scenario *chosen;

static void scenario_runs(void **state)
{
    (void)state;
    chosen->run();
}

static int forget(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scenario_runs)};
    for (size_t i = 0; argc == 3 && i < TT_LEN(scenarios); i++) {
        if (!strcmp(scenarios[i].name, argv[1])) chosen = &scenarios[i];
    }
    snprintf(at.folder, sizeof(at.folder), "/tmp/test-ib-XXXXXX");
    if (!chosen || !mkdtemp(at.folder)) return 2;
    snprintf(at.log, sizeof(at.log), "%s/log", at.folder);
    setenv("FAKE_IB_DIR", at.folder, 1);
    setenv("FAKE_IB_LOG", at.log, 1);
    setenv("NCCL_IBVERBS_LIB", argv[2], 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    for (size_t i = 0; i + 1 < TT_LEN(chosen->variables) && chosen->variables[i]; i += 2)
        setenv(chosen->variables[i], chosen->variables[i + 1], 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    nftw(at.folder, forget, 8, FTW_DEPTH | FTW_PHYS);
    return failed;
}
