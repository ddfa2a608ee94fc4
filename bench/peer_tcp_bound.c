/* What TCP over loopback allows between two processes: one connection, the fewest bytes and calls
 * that each operation needs, no library, no MACs. Both ends poll their socket, as a core of its own
 * is there for each. A message is sent in one call as far as there is room, and the connection has
 * Reno, which does not pace; long messages are received in parts that stay in the cache until they
 * were added up. A bound to hold others against. */
#include "bench.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PART_BYTES = 512 << 10, SHORT_BYTES = 32 << 10 };

struct wire {
    struct bench_peer peer;
    int fd;
    float *scratch; /* PART_BYTES */
};

struct way { /* one direction of a transfer */
    char *at;
    size_t left;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Moves what can be moved now; 0: nothing. */
static size_t move(int fd, struct way *way, bool sends)
{
    size_t len = way->left < PART_BYTES || sends ? way->left : PART_BYTES;
    if (!len) return 0;
    ssize_t n = sends ? send(fd, way->at, len, MSG_DONTWAIT | MSG_NOSIGNAL)
                      : recv(fd, way->at, len, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) fail("peer_tcp_bound");
    if (n < 0) return 0;
    way->at += n;
    way->left -= (size_t)n;
    return (size_t)n;
}

static void exchange(const struct wire *w, const void *out, size_t nout, void *in, size_t nin)
{
    struct way sent = {(char *)(uintptr_t)out, nout}, got = {in, nin};
    while (sent.left || got.left) {
        move(w->fd, &sent, true);
        move(w->fd, &got, false);
    }
}

static void add(float *restrict sum, const float *restrict a, const float *restrict b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] = a[i] + b[i];
}

/* Sends `nout` bytes while `sum` becomes `own` and what comes, part by part. */
static void exchange_add(const struct wire *w, const void *out, size_t nout, const float *own,
                         float *sum, size_t count)
{
    struct way sent = {(char *)(uintptr_t)out, nout};
    for (size_t done = 0; done < count || sent.left;) {
        size_t part = (count - done) * 4 < PART_BYTES ? (count - done) * 4 : PART_BYTES;
        struct way got = {(char *)w->scratch, part};
        while (got.left || (done + part / 4 == count && sent.left)) {
            move(w->fd, &sent, true);
            move(w->fd, &got, false);
        }
        add(sum + done, own + done, w->scratch, part / 4);
        done += part / 4;
    }
}

static void allreduce(const struct wire *w, const float *in, float *out, size_t count)
{
    if (count * 4 <= SHORT_BYTES) { /* one message: both add all */
        exchange_add(w, in, count * 4, in, out, count);
        return;
    }
    size_t half = count / 2, mine = w->peer.rank ? half : 0, theirs = half - mine;
    size_t nmine = w->peer.rank ? count - half : half, ntheirs = count - nmine;
    exchange_add(w, in + theirs, ntheirs * 4, in + mine, out + mine, nmine);
    exchange(w, out + mine, nmine * 4, out + theirs, ntheirs * 4);
}

static int call(const struct bench_peer *peer, const struct bench_point *point)
{
    const struct wire *w = (const struct wire *)(const void *)peer;
    const bool first = peer->rank == 0;
    const size_t bytes = point->bytes, block = bytes / 2, me = (size_t)peer->rank;
    char *in = peer->send, *out = peer->recv;
    float *sum = (float *)(void *)out;
    const float *terms = (const float *)(const void *)in;
    if (point->type != BENCH_FLOAT32 || peer->nranks != 2) return -1;
    switch (point->op) {
    case BENCH_ALLREDUCE: allreduce(w, terms, sum, bytes / 4); break;
    case BENCH_ALLGATHER:
        exchange(w, in, block, out + (1 - me) * block, block);
        memcpy(out + me * block, in, block);
        break;
    case BENCH_ALLTOALL:
        exchange(w, in + (1 - me) * block, block, out + (1 - me) * block, block);
        memcpy(out + me * block, in + me * block, block);
        break;
    case BENCH_REDUCESCATTER:
        exchange_add(w, in + (1 - me) * block, block, terms + me * block / 4, sum, block / 4);
        break;
    case BENCH_BROADCAST: exchange(w, in, first ? bytes : 0, out, first ? 0 : bytes); break;
    case BENCH_REDUCE:
        first ? exchange_add(w, NULL, 0, terms, sum, bytes / 4) : exchange(w, in, bytes, NULL, 0);
        break;
    case BENCH_PINGPONG:
        if (first) exchange(w, in, bytes, NULL, 0);
        exchange(w, NULL, 0, out, bytes);
        if (!first) exchange(w, in, bytes, NULL, 0);
        break;
    default: return -1;
    }
    return 0;
}

/* Rank 0's port goes over bench_blob(). */
static int join(const struct bench_peer *peer)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (peer->rank == 0) {
        if (bind(fd, (struct sockaddr *)&addr, len) || listen(fd, 1) ||
            getsockname(fd, (struct sockaddr *)&addr, &len))
            fail("listen");
        memcpy(bench_blob(), &addr.sin_port, sizeof(addr.sin_port));
    }
    bench_barrier();
    memcpy(&addr.sin_port, bench_blob(), sizeof(addr.sin_port));
    int joined = peer->rank ? fd : accept(fd, NULL, NULL);
    if (joined < 0 || (peer->rank && connect(fd, (struct sockaddr *)&addr, len))) fail("connect");
    if (peer->rank == 0) close(fd);
    setsockopt(joined, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(joined, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    return joined;
}

int main(void)
{
    struct wire w;
    const char *rank = getenv("BENCH_RANK"), *nranks = getenv("BENCH_NRANKS");
    if (!rank || !nranks || atoi(nranks) != 2) return 2;
    w.peer = (struct bench_peer){
        .name = "bound", .version = "sockets", .rank = atoi(rank), .nranks = 2, .call = call};
    if (!bench_attach(&w.peer)) return 2;
    bench_pin(w.peer.rank);
    w.fd = join(&w.peer);
    size_t bytes = (bench_max_bytes() + 4095) / 4096 * 4096;
    w.peer.send = aligned_alloc(4096, bytes);
    w.peer.recv = aligned_alloc(4096, bytes);
    w.scratch = aligned_alloc(4096, PART_BYTES);
    if (!w.peer.send || !w.peer.recv || !w.scratch) return 2;
    memset(w.peer.send, 0, bytes);
    memset(w.peer.recv, 0, bytes);
    int status = bench_run(&w.peer);
    free(w.scratch);
    free(w.peer.recv);
    free(w.peer.send);
    close(w.fd);
    return status;
}
