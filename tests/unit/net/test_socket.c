/* The socket network end to end over loopback: sizes, order, lanes, bad ends. One argument: how
 * many data lanes. */
#include "../check.h"
#include "pair.h"

#include "base/error.h"
#include "base/mem.h"
#include "net/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void fill(unsigned char *bytes, size_t size, unsigned int seed)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(seed * 131 + i * 7 + i / 251);
}

static void every_size_arrives(void **state)
{
    static const size_t sizes[] = {0,    1,    3,    8,     127,   128,    129,    1000,
                                   4091, 4092, 4096, 65535, 65536, 200000, 262147, 3000001};
    struct pair pair;
    (void)state;
    pair_open(&pair);
    pair_join(&pair);
    for (size_t i = 0; i < TT_LEN(sizes); i++) {
        unsigned char *sent = malloc(sizes[i] + 1);
        unsigned char *got = calloc(1, sizes[i] + 8);
        int size = -1;
        print_message("size %zu\n", sizes[i]);
        fill(sent, sizes[i], (unsigned int)i);
        void *out = pair_send(&pair, sent, sizes[i]);
        void *in = pair_recv(&pair, got, sizes[i] + 7);
        int sent_done = 0;
        int got_done = 0;
        while (!sent_done || !got_done) { /* one thread at both ends: in turn */
            if (!sent_done)
                assert_int_equal(tt_net_socket.test(out, &sent_done, NULL), ncclSuccess);
            if (!got_done) assert_int_equal(tt_net_socket.test(in, &got_done, &size), ncclSuccess);
        }
        assert_int_equal(size, sizes[i]);
        assert_memory_equal(sent, got, sizes[i]);
        assert_int_equal(got[sizes[i]], 0);
        free(sent);
        free(got);
    }
    pair_close(&pair);
}

/* Whatever the host's congestion control is. */
static void within_a_host_nothing_is_paced(void **state)
{
    struct pair pair;
    (void)state;
    pair_open(&pair);
    pair_join(&pair);
    const struct socket_link *ends[] = {pair.send_comm, pair.recv_comm};
    for (int end = 0; end < 2; end++) {
        for (int lane = 0; lane < ends[end]->nlanes; lane++) {
            char name[16] = "";
            socklen_t len = sizeof(name);
            assert_int_equal(
                getsockopt(ends[end]->lanes[lane].fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
            assert_string_equal(name, "reno");
        }
    }
    pair_close(&pair);
}

static void pass(struct pair *pair, unsigned int seed)
{
    static unsigned char sent[200000], got[200000];
    int size = 0, sent_done = 0, got_done = 0;
    fill(sent, sizeof(sent), seed);
    memset(got, 0, sizeof(got));
    void *out = pair_send(pair, sent, sizeof(sent)), *in = pair_recv(pair, got, sizeof(got));
    while (!sent_done || !got_done) {
        if (!sent_done) assert_int_equal(tt_net_socket.test(out, &sent_done, NULL), ncclSuccess);
        if (!got_done) assert_int_equal(tt_net_socket.test(in, &got_done, &size), ncclSuccess);
    }
    assert_int_equal(size, sizeof(sent));
    assert_memory_equal(sent, got, sizeof(sent));
}

/* The other direction of a connection; each ends by itself. */
static void a_connection_serves_both_directions(void **state)
{
    struct pair pair, back = {.listen_comm = NULL};
    char byte;
    int size = 0;
    (void)state;
    pair_open(&pair);
    pair_join(&pair);
    assert_true(tt_net_socket_is_two_way(pair.from.ctx));
    assert_int_equal(tt_net_socket_reverse(pair.send_comm, &back.recv_comm), ncclSuccess);
    assert_int_equal(tt_net_socket_reverse(pair.recv_comm, &back.send_comm), ncclSuccess);
    pass(&back, 1);
    pass(&pair, 2);
    tt_net_socket.closeSend(back.send_comm);
    assert_int_equal(pair_wait(pair_recv(&back, &byte, 1), &size), ncclRemoteError);
    pass(&pair, 3);
    tt_net_socket.closeRecv(back.recv_comm);
    pass(&pair, 4);
    pair_close(&pair);
}

enum { MANY = 300, MANY_MOST = 70000 };

static size_t many_size(int k)
{
    return (size_t)k * 7919 % MANY_MOST / (k % 3 ? 1 : 500);
}

static void *send_many(void *arg)
{
    struct pair *pair = arg;
    static unsigned char bytes[16][MANY_MOST];
    void *requests[16];
    for (int k = 0; k < MANY + 16; k++) {
        if (k >= 16) {
            int size;
            if (pair_wait(requests[k % 16], &size)) return NULL;
        }
        if (k >= MANY) continue;
        fill(bytes[k % 16], many_size(k), (unsigned int)k);
        requests[k % 16] = pair_send(pair, bytes[k % 16], many_size(k));
    }
    return pair;
}

/* Two threads, 16 requests in flight at each end, sizes of all kinds in a row. */
static void requests_stay_in_order(void **state)
{
    static unsigned char bytes[16][MANY_MOST];
    static unsigned char expected[MANY_MOST];
    struct pair pair;
    void *requests[16];
    pthread_t sender;
    void *sender_result = NULL;
    (void)state;
    pair_open(&pair);
    pair_join(&pair);
    assert_int_equal(pthread_create(&sender, NULL, send_many, &pair), 0);
    for (int k = 0; k < MANY + 16; k++) {
        if (k >= 16) {
            int size = -1;
            assert_int_equal(pair_wait(requests[k % 16], &size), ncclSuccess);
            assert_int_equal(size, many_size(k - 16));
            fill(expected, many_size(k - 16), (unsigned int)(k - 16));
            assert_memory_equal(expected, bytes[k % 16], many_size(k - 16));
        }
        if (k < MANY) requests[k % 16] = pair_recv(&pair, bytes[k % 16], MANY_MOST);
    }
    assert_int_equal(pthread_join(sender, &sender_result), 0);
    assert_non_null(sender_result);
    pair_close(&pair);
}

static void more_than_32_are_put_off(void **state)
{
    struct pair pair;
    char byte = 0;
    void *request = NULL;
    (void)state;
    pair_open(&pair);
    pair_join(&pair);
    for (int k = 0; k < NCCL_NET_MAX_REQUESTS; k++)
        pair_recv(&pair, &byte, 1);
    size_t room = 1;
    void *data = &byte;
    assert_int_equal(
        tt_net_socket.irecv(pair.recv_comm, 1, &data, &room, NULL, NULL, NULL, &request),
        ncclSuccess);
    assert_null(request);
    pair_close(&pair);
}

static void longer_than_asked_for_is_an_error(void **state)
{
    struct pair pair;
    char sent[300] = "", got[10];
    int size = 0;
    (void)state;
    pair_open(&pair);
    pair_join(&pair);
    void *out = pair_send(&pair, sent, sizeof(sent));
    void *in = pair_recv(&pair, got, sizeof(got));
    assert_int_equal(pair_wait(out, &size), ncclSuccess);
    assert_int_equal(pair_wait(in, &size), ncclInvalidUsage);
    assert_non_null(strstr(tt_last_error(), "truncated"));
    assert_non_null(strstr(tt_last_error(), "rank 0"));
    pair_close(&pair);
}

static void a_dead_sender_is_named(void **state)
{
    struct pair pair;
    char got[10];
    int size = 0;
    (void)state;
    pair_open(&pair);
    pair_join(&pair);
    void *in = pair_recv(&pair, got, sizeof(got));
    tt_net_socket.closeSend(pair.send_comm);
    pair.send_comm = NULL;
    assert_int_equal(pair_wait(in, &size), ncclRemoteError);
    assert_non_null(strstr(tt_last_error(), "rank 0"));
    pair_close(&pair);
}

static void a_dead_receiver_is_named(void **state)
{
    struct pair pair;
    static char sent[1 << 20];
    ncclResult_t rc = ncclSuccess;
    int size = 0;
    (void)state;
    pair_open(&pair);
    pair_join(&pair);
    tt_net_socket.closeRecv(pair.recv_comm);
    pair.recv_comm = NULL;
    for (int k = 0; k < 100 && !rc; k++) {
        void *request = NULL;
        rc = tt_net_socket.isend(pair.send_comm, sent, sizeof(sent), 0, NULL, NULL, &request);
        if (!rc) rc = pair_wait(request, &size);
    }
    assert_int_equal(rc, ncclRemoteError);
    assert_non_null(strstr(tt_last_error(), "rank 1"));
    pair_close(&pair);
}

static void only_host_memory_is_registered(void **state)
{
    struct pair pair;
    char byte = 0;
    void *mhandle = &byte;
    (void)state;
    pair_open(&pair);
    pair_join(&pair);
    assert_int_equal(tt_net_socket.regMr(pair.send_comm, &byte, 1, NCCL_PTR_HOST, &mhandle),
                     ncclSuccess);
    assert_int_equal(tt_net_socket.deregMr(pair.send_comm, mhandle), ncclSuccess);
    assert_int_equal(tt_net_socket.regMr(pair.send_comm, &byte, 1, NCCL_PTR_CUDA, &mhandle),
                     ncclInternalError);
    pair_close(&pair);
}

static void devices_are_described(void **state)
{
    int ndevs = 0;
    ncclNetProperties_v12_t props;
    struct pair pair;
    (void)state;
    pair_open(&pair);
    assert_int_equal(tt_net_socket.devices(&ndevs), ncclSuccess);
    assert_true(ndevs >= 1);
    assert_int_equal(tt_net_socket.getProperties(0, &props), ncclSuccess);
    assert_string_equal(props.name, "lo");
    assert_int_equal(props.netDeviceType, NCCL_NET_DEVICE_HOST);
    assert_true(props.maxP2pBytes > 0 && props.maxP2pBytes <= NCCL_MAX_NET_SIZE_BYTES);
    assert_int_equal(tt_net_socket.getProperties(ndevs, &props), ncclInvalidArgument);
    assert_int_equal(tt_net_socket.getProperties(-1, &props), ncclInvalidArgument);
    pair_close(&pair);
}

/* ---- messages of expected length ---- */

static bool data_lanes;
static _Atomic int reads; /* this stands before libc's for the network as well */

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t n = syscall(SYS_recvmsg, fd, message, flags);
    reads += n > 0;
    return n;
}

ssize_t recv(int fd, void *bytes, size_t len_bytes, int flags)
{
    ssize_t n = syscall(SYS_recvfrom, fd, bytes, len_bytes, flags, NULL, NULL);
    reads += n > 0;
    return n;
}

enum { PAYLOAD = 20000, ROOM = 40000 };

struct expected { /* one message, and what its receiver expects */
    size_t bytes, expected;
    uint64_t key;
    bool lands; /* its receive names memory for messages with key 1 */
};

static void send_expected(struct pair *pair, const struct expected *message, int k)
{
    uint64_t head = message->key;
    unsigned char *bytes = malloc(ROOM);
    void *request = NULL;
    int done = 0;
    fill(bytes, ROOM, (unsigned int)k);
    const struct tt_net_message out = {
        .head = &head, .head_bytes = sizeof(head), .data = bytes, .bytes = message->bytes};
    assert_int_equal(tt_net_socket_post(pair->send_comm, &out, &request), ncclSuccess);
    while (!done)
        assert_int_equal(tt_net_socket.test(request, &done, NULL), ncclSuccess);
    free(bytes);
}

/* Receives it at `landing`, or in a buffer of its own, and compares. */
static void recv_expected(struct pair *pair, const struct expected *message, int k, char *landing)
{
    uint64_t head = 0;
    unsigned char *wanted = malloc(ROOM);
    char *bytes = calloc(1, ROOM);
    const bool landed = message->lands && message->key == 1;
    void *request = NULL;
    int done = 0, size = 0;
    struct tt_net_message in = {
        .head = &head, .head_bytes = sizeof(head), .data = bytes, .bytes = ROOM};
    in.landing.expected = message->expected;
    if (message->lands) in.landing = (struct tt_net_landing){1, landing, ROOM, message->expected};
    assert_int_equal(tt_net_socket_post(pair->recv_comm, &in, &request), ncclSuccess);
    while (!done)
        assert_int_equal(tt_net_socket.test(request, &done, &size), ncclSuccess);
    fill(wanted, ROOM, (unsigned int)k);
    assert_int_equal(head, message->key);
    assert_int_equal(size, sizeof(head) + message->bytes);
    assert_memory_equal(landed ? landing : bytes, wanted, message->bytes);
    free(wanted);
    free(bytes);
}

/* All were sent before the first is received. */
static int reads_of(const struct expected *messages, int count)
{
    char *landing = calloc((size_t)count + 1, ROOM), *at = landing;
    struct pair pair;
    pair_open(&pair);
    pair_join(&pair);
    for (int k = 0; k < count; k++)
        send_expected(&pair, &messages[k], k);
    reads = 0;
    for (int k = 0; k < count; k++) {
        recv_expected(&pair, &messages[k], k, at);
        if (messages[k].lands) at += messages[k].bytes;
    }
    const int taken = reads;
    pair_close(&pair);
    free(landing);
    return taken;
}

/* Head and payload in one call where the length is known; the first that lands is not relied on. */
static void expected_messages_take_one_call(void **state)
{
    static const struct expected slots[3] = {
        {PAYLOAD, PAYLOAD, 1, false}, {PAYLOAD, PAYLOAD, 2, false}, {PAYLOAD, PAYLOAD, 3, false}};
    static const struct expected landing[3] = {
        {PAYLOAD, PAYLOAD, 1, true}, {PAYLOAD, PAYLOAD, 1, true}, {PAYLOAD, PAYLOAD, 1, true}};
    static const struct expected unknown[1] = {{PAYLOAD, 0, 1, false}};
    (void)state;
    if (data_lanes) skip();
    assert_int_equal(reads_of(slots, 1), 1);
    assert_in_range(reads_of(slots, 3), 1, 3);
    assert_in_range(reads_of(landing, 3), 2, 4);
    assert_int_equal(reads_of(unknown, 1), 2);
}

static void wrong_expectations_lose_nothing(void **state)
{
    static const struct expected messages[] = {
        {PAYLOAD, ROOM, 1, false}, /* the next ones come with it */
        {3, PAYLOAD, 2, false},        {0, PAYLOAD, 3, false},  {PAYLOAD, 3000, 4, false},
        {PAYLOAD, PAYLOAD, 1, true},   {100, PAYLOAD, 1, true}, {PAYLOAD, PAYLOAD, 9, true},
        {PAYLOAD, ROOM + 1, 5, false}, {1, ROOM, 1, true},      {ROOM, PAYLOAD, 1, true},
    };
    struct expected many[200];
    (void)state;
    reads_of(messages, TT_LEN(messages));
    for (int first = 0; first < (int)TT_LEN(messages); first++)
        reads_of(messages + first, (int)TT_LEN(messages) - first);
    for (int k = 0; k < (int)TT_LEN(many); k++) { /* until sizes are predicted again */
        many[k] = (struct expected){(size_t)k * 7919 % 3001, k % 45 ? 2100 : ROOM, 1, k % 3 == 0};
    }
    reads_of(many, TT_LEN(many));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_arrives),
        cmocka_unit_test(within_a_host_nothing_is_paced),
        cmocka_unit_test(a_connection_serves_both_directions),
        cmocka_unit_test(requests_stay_in_order),
        cmocka_unit_test(more_than_32_are_put_off),
        cmocka_unit_test(longer_than_asked_for_is_an_error),
        cmocka_unit_test(a_dead_sender_is_named),
        cmocka_unit_test(a_dead_receiver_is_named),
        cmocka_unit_test(only_host_memory_is_registered),
        cmocka_unit_test(devices_are_described),
        cmocka_unit_test(expected_messages_take_one_call),
        cmocka_unit_test(wrong_expectations_lose_nothing),
    };
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    data_lanes = argc > 1 && strcmp(argv[1], "0") != 0;
    setenv("NCCL_SOCKET_NTHREADS", argc > 1 ? argv[1] : "0", 1);
    setenv("NCCL_NSOCKS_PERTHREAD", "2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
