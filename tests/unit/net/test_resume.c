/* A connection with two or three ways, of which the first is cut in the middle: the receiver's
 * socket is made deaf by a filter, so packets vanish without an error, as behind a switch that is
 * off. All bytes come nevertheless. Arguments: data lanes, and 0 or 1 for TUTTI_NET_ENCRYPT. */
#include "../check.h"
#include "pair.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "net/socket.h"
#include "net/socket_setup.h"

#include <linux/filter.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLIGHT = 8, MESSAGES = 48, MOST_BYTES = 1500000, CUT_MSEC = 150 };

enum first_way { WORKS, KNOWN_TO_BE_CUT, SILENT };

/* Where no packet gets an answer. */
static int listen_deaf(union tt_addr *addr)
{
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog program = {1, &nothing};
    int fd = -1;
    addr->v4.sin_port = 0;
    assert_int_equal(tt_socket_listen(addr, &fd), ncclSuccess);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
    return fd;
}

/* 127.0.0.1, 127.0.0.2 and so on; the connection is that of 127.0.0.2. */
static void listen_at(struct pair *pair, int count)
{
    struct tt_netif netifs[4];
    pair_open(pair);
    memset(netifs, 0, sizeof(netifs));
    for (int dev = 0; dev < count; dev++) {
        netifs[dev].addr.v4.sin_family = AF_INET;
        netifs[dev].addr.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)dev);
    }
    tt_net_socket.closeListen(pair->listen_comm);
    assert_int_equal(
        tt_socket_net_listen(pair->to.ctx, 1, netifs, pair->handle, &pair->listen_comm),
        ncclSuccess);
}

static void open_two_paths_of(struct pair *pair, enum first_way first)
{
    struct socket_handle *handle = (void *)pair->handle;
    int deaf = -1;
    listen_at(pair, 2);
    struct socket_context *context = pair->from.ctx;
    if (first == KNOWN_TO_BE_CUT) atomic_store(&context->cut_devices, 1);
    if (first == SILENT) deaf = listen_deaf(&handle->addr);
    pair_join(pair);
    if (deaf >= 0) close(deaf);
}

static void open_two_paths(struct pair *pair)
{
    open_two_paths_of(pair, WORKS);
}

static void cut(const struct pair *pair, int lane)
{
    const struct socket_link *from = pair->send_comm, *to = pair->recv_comm;
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog program = {1, &nothing};
    const unsigned int msec = CUT_MSEC;
    assert_int_equal(
        setsockopt(to->lanes[lane].fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
    assert_int_equal(
        setsockopt(from->lanes[lane].fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &msec, sizeof(msec)), 0);
}

static size_t size_of(int k)
{
    return k % 5 == 4 ? MOST_BYTES - (size_t)(k % MESSAGES) * 1001
                      : (size_t)k * 7919 % 20000 / (k % 2 ? 1 : 100);
}

static void fill(unsigned char *bytes, size_t size, int k)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)((unsigned int)k * 131u + i * 7 + i / 251);
}

struct stream {
    unsigned char *sent[FLIGHT], *got[FLIGHT], *expected;
    void *out[FLIGHT], *in[FLIGHT];
    int nout, nin, out_done, in_done; /* messages: posted, done */
    int nmessages;
};

static void stream_open(struct stream *stream)
{
    memset(stream, 0, sizeof(*stream));
    stream->nmessages = MESSAGES;
    for (int i = 0; i < FLIGHT; i++) {
        stream->sent[i] = malloc(MOST_BYTES);
        stream->got[i] = malloc(MOST_BYTES);
    }
    stream->expected = malloc(MOST_BYTES);
}

static void stream_close(struct stream *stream)
{
    for (int i = 0; i < FLIGHT; i++) {
        free(stream->sent[i]);
        free(stream->got[i]);
    }
    free(stream->expected);
}

/* Memory of a message that is done is used for another one at once. */
static void stream_send(struct stream *stream, struct pair *pair)
{
    int done = 0;
    if (stream->nout < stream->nmessages && stream->nout - stream->out_done < FLIGHT) {
        int i = stream->nout % FLIGHT;
        fill(stream->sent[i], size_of(stream->nout), stream->nout);
        stream->out[i] = pair_send(pair, stream->sent[i], size_of(stream->nout));
        stream->nout++;
    }
    if (stream->out_done == stream->nout) return;
    assert_int_equal(tt_net_socket.test(stream->out[stream->out_done % FLIGHT], &done, NULL),
                     ncclSuccess);
    stream->out_done += done;
}

static void stream_recv(struct stream *stream, struct pair *pair)
{
    int done = 0, size = 0;
    if (stream->nin < stream->nmessages && stream->nin - stream->in_done < FLIGHT) {
        stream->in[stream->nin % FLIGHT] =
            pair_recv(pair, stream->got[stream->nin % FLIGHT], MOST_BYTES);
        stream->nin++;
    }
    int i = stream->in_done % FLIGHT;
    if (stream->in_done == stream->nin) return;
    assert_int_equal(tt_net_socket.test(stream->in[i], &done, &size), ncclSuccess);
    if (!done) return;
    assert_int_equal(size, size_of(stream->in_done));
    fill(stream->expected, (size_t)size, stream->in_done);
    assert_memory_equal(stream->got[i], stream->expected, (size_t)size);
    stream->in_done++;
}

static void nothing_is_lost(void **state)
{
    static const int after[] = {0, 3, 4, 21, 43}; /* messages that were done */
    (void)state;
    for (size_t i = 0; i < TT_LEN(after); i++) {
        struct pair pair;
        struct stream stream;
        bool is_cut = false;
        print_message("cut after %d of %d messages\n", after[i], MESSAGES);
        open_two_paths(&pair);
        stream_open(&stream);
        const struct socket_link *link = pair.send_comm;
        while (stream.out_done < MESSAGES || stream.in_done < MESSAGES) {
            stream_send(&stream, &pair);
            if (!is_cut && stream.in_done >= after[i] && stream.nout > stream.in_done) {
                for (int lane = 0; lane < link->nlanes; lane++)
                    cut(&pair, lane);
                is_cut = true;
            }
            /* the receiver lags behind: what was sent to it waits at its host */
            if (stream.nout > stream.in_done + 3 || stream.nout == MESSAGES)
                stream_recv(&stream, &pair);
        }
        assert_true(is_cut);
        stream_close(&stream);
        pair_close(&pair);
    }
}

/* The lanes on the way to that address, 127.0.0.1 being 0; a bit each. */
static uint32_t lanes_at(const struct socket_link *link, uint32_t number)
{
    uint32_t found = 0;
    for (int lane = 0; lane < link->nlanes; lane++) {
        union tt_addr peer;
        socklen_t len = sizeof(peer);
        if (getpeername(link->lanes[lane].fd, &peer.sa, &len)) continue;
        bool lies = ntohl(peer.v4.sin_addr.s_addr) == INADDR_LOOPBACK + number;
        found |= (uint32_t)lies << lane;
    }
    return found;
}

/* To 127.0.0.1, the spare one, or else to 127.0.0.2. */
static uint32_t lanes_on(const struct socket_link *link, bool spare)
{
    return lanes_at(link, spare ? 0 : 1);
}

/* Messages go on until each lane has been there: one may move on before the last one comes. */
static void stream_until(struct stream *stream, struct pair *pair, bool spare)
{
    const struct socket_link *link = pair->send_comm;
    uint32_t seen = 0;
    stream->nmessages = INT32_MAX;
    while (seen != (1u << link->nlanes) - 1) {
        stream_send(stream, pair);
        stream_recv(stream, pair);
        seen |= lanes_on(link, spare);
    }
}

static void cut_all(const struct pair *pair)
{
    const struct socket_link *link = pair->send_comm;
    for (int lane = 0; lane < link->nlanes; lane++)
        cut(pair, lane);
}

/* The first way works again for who connects anew: lanes move back to it, while messages go on.
 * Then each way is cut once more. */
static void lanes_move_back_and_forth(void **state)
{
    struct pair pair;
    struct stream stream;
    (void)state;
    open_two_paths(&pair);
    stream_open(&stream);
    for (int round = 0; round < 2; round++) {
        cut_all(&pair);
        stream_until(&stream, &pair, true);
        if (round) cut_all(&pair); /* else no end is forced back */
        stream_until(&stream, &pair, false);
    }
    stream.nmessages = stream.nout;
    while (stream.out_done < stream.nmessages || stream.in_done < stream.nmessages) {
        stream_send(&stream, &pair);
        stream_recv(&stream, &pair);
    }
    stream_close(&stream);
    pair_close(&pair);
}

/* So does a connection that was made while the first way was cut. */
static void made_on_the_spare_way_moves_back(void **state)
{
    struct pair pair;
    struct stream stream;
    (void)state;
    open_two_paths_of(&pair, KNOWN_TO_BE_CUT);
    const struct socket_link *link = pair.send_comm;
    assert_int_equal(lanes_on(link, true), (1u << link->nlanes) - 1);
    stream_open(&stream);
    stream_until(&stream, &pair, false);
    cut_all(&pair);
    stream_until(&stream, &pair, true);
    pair_close(&pair); /* ends the threads that move what is under way */
    stream_close(&stream);
}

/* Where the first address gives no answer, the other one is called beside it. */
static void silent_first_way_is_not_taken(void **state)
{
    struct pair pair;
    struct stream stream;
    (void)state;
    open_two_paths_of(&pair, SILENT);
    const struct socket_link *link = pair.send_comm;
    assert_int_equal(lanes_on(link, true), (1u << link->nlanes) - 1);
    stream_open(&stream);
    while (stream.out_done < MESSAGES || stream.in_done < MESSAGES) {
        stream_send(&stream, &pair);
        stream_recv(&stream, &pair);
    }
    stream_close(&stream);
    pair_close(&pair);
}

/* The first way is cut, and the spare one gives no answer: a third one is taken. When that is cut
 * the first one works again. */
static void goes_on_over_the_third_way(void **state)
{
    struct pair pair;
    struct stream stream;
    (void)state;
    listen_at(&pair, 3);
    struct socket_handle *handle = (void *)pair.handle;
    int deaf = listen_deaf(&handle->spare);
    pair_join(&pair);
    const struct socket_link *link = pair.send_comm;
    const uint32_t all = (1u << link->nlanes) - 1;
    stream_open(&stream);
    stream.nmessages = INT32_MAX;
    assert_int_equal(lanes_at(link, 1), all);
    for (int round = 0; round < 2; round++) {
        cut_all(&pair);
        for (uint32_t seen = 0; seen != all; seen |= lanes_at(link, round ? 1 : 2)) {
            stream_send(&stream, &pair);
            stream_recv(&stream, &pair);
        }
    }
    stream.nmessages = stream.nout;
    while (stream.out_done < stream.nmessages || stream.in_done < stream.nmessages) {
        stream_send(&stream, &pair);
        stream_recv(&stream, &pair);
    }
    close(deaf);
    stream_close(&stream);
    pair_close(&pair);
}

/* Until the peer's host has it, memory of a message belongs to the network. */
static void what_did_not_arrive_is_not_done(void **state)
{
    static char sent[1000];
    struct pair pair;
    int done = 0;
    (void)state;
    open_two_paths(&pair);
    const struct socket_link *link = pair.send_comm;
    for (int lane = 0; lane < link->nlanes; lane++)
        cut(&pair, lane);
    void *out = pair_send(&pair, sent, sizeof(sent));
    for (int look = 0; look < 100; look++) {
        assert_int_equal(tt_net_socket.test(out, &done, NULL), ncclSuccess);
        assert_false(done);
    }
    pair_close(&pair);
}

/* A peer that has closed the connection is not waited for. */
static void a_peer_that_left_is_an_error(void **state)
{
    static char sent[100000];
    struct pair pair;
    int size = 0;
    (void)state;
    open_two_paths(&pair);
    tt_net_socket.closeRecv(pair.recv_comm);
    pair.recv_comm = NULL;
    assert_int_equal(pair_wait(pair_send(&pair, sent, sizeof(sent)), &size), ncclRemoteError);
    assert_non_null(strstr(tt_last_error(), "rank 1"));
    pair_close(&pair);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(lanes_move_back_and_forth),
        cmocka_unit_test(made_on_the_spare_way_moves_back),
        cmocka_unit_test(silent_first_way_is_not_taken),
        cmocka_unit_test(goes_on_over_the_third_way),
        cmocka_unit_test(what_did_not_arrive_is_not_done),
        cmocka_unit_test(a_peer_that_left_is_an_error),
    };
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    setenv("NCCL_SOCKET_NTHREADS", argc > 1 ? argv[1] : "0", 1);
    setenv("NCCL_NSOCKS_PERTHREAD", "1", 1);
    setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "1", 1);
    setenv("TUTTI_NET_ENCRYPT", argc > 2 ? argv[2] : "0", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
