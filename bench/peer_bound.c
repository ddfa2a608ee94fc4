/* What the machine allows when every buffer is mapped by every rank: each input read once, each
 * output written once, nothing else but two counters per call. No library: a bound to hold others
 * against. */
#include "bench.h"

#include <fcntl.h>
#include <immintrin.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_RANKS = 16, STREAM_FROM = 16 << 20 };

struct cell {
    _Atomic uint64_t count;
    char pad[56];
};

struct bound {
    struct bench_peer peer;
    struct cell *cells; /* one per rank */
    char *in[MAX_RANKS], *out[MAX_RANKS];
    uint64_t turn;
    bool oversubscribed;
};

static void barrier(struct bound *b)
{
    atomic_store_explicit(&b->cells[b->peer.rank].count, ++b->turn, memory_order_release);
    for (int r = 0; r < b->peer.nranks; r++) {
        while (atomic_load_explicit(&b->cells[r].count, memory_order_acquire) < b->turn) {
            if (b->oversubscribed) sched_yield();
        }
    }
}

/* to[k][first, last) = sum over ranks, streaming past the cache when asked. */
static void reduce(struct bound *b, size_t first, size_t last, bool stream, int only)
{
    int n = b->peer.nranks;
    size_t i = first;
    for (; i + 8 <= last; i += 8) {
        __m256 sum = _mm256_loadu_ps((const float *)(const void *)b->in[0] + i);
        for (int r = 1; r < n; r++) {
            sum = _mm256_add_ps(sum, _mm256_loadu_ps((const float *)(const void *)b->in[r] + i));
        }
        for (int r = 0; r < n; r++) {
            float *to = (float *)(void *)b->out[r] + i;
            if (only >= 0 && r != only) continue;
            if (stream) {
                _mm256_stream_ps(to, sum);
            } else {
                _mm256_storeu_ps(to, sum);
            }
        }
    }
    for (; i < last; i++) {
        float sum = 0;
        for (int r = 0; r < n; r++) {
            sum += ((const float *)(const void *)b->in[r])[i];
        }
        for (int r = 0; r < n; r++) {
            if (only < 0 || r == only) ((float *)(void *)b->out[r])[i] = sum;
        }
    }
    if (stream) _mm_sfence();
}

static void copy(char *to, const char *from, size_t bytes, bool stream)
{
    if (!stream) {
        memcpy(to, from, bytes);
        return;
    }
    for (size_t i = 0; i + 32 <= bytes; i += 32) {
        _mm256_stream_si256((__m256i *)(void *)(to + i),
                            _mm256_loadu_si256((const __m256i *)(const void *)(from + i)));
    }
    _mm_sfence();
}

static int call(const struct bench_peer *peer, const struct bench_point *point)
{
    struct bound *b = (struct bound *)(uintptr_t)peer;
    size_t n = (size_t)peer->nranks;
    size_t me = (size_t)peer->rank;
    size_t count = point->bytes / 4;
    size_t slice = ((count + n - 1) / n + 15) / 16 * 16;
    size_t first = me * slice < count ? me * slice : count;
    size_t last = first + slice < count ? first + slice : count;
    size_t block = point->bytes / n;
    bool stream = point->bytes >= STREAM_FROM;
    if (point->type != BENCH_FLOAT32 || point->op == BENCH_PINGPONG) return -1;
    barrier(b);
    switch (point->op) {
    case BENCH_ALLREDUCE: reduce(b, first, last, stream, -1); break;
    case BENCH_REDUCE: reduce(b, first, last, stream, 0); break;
    case BENCH_BROADCAST: copy(b->out[me], b->in[0], me ? point->bytes : 0, stream); break;
    case BENCH_ALLGATHER:
        for (size_t r = 0; r < n; r++) {
            copy(b->out[me] + r * block, b->in[r], block, stream);
        }
        break;
    case BENCH_ALLTOALL:
        for (size_t r = 0; r < n; r++) {
            copy(b->out[me] + r * block, b->in[r] + me * block, block, stream);
        }
        break;
    case BENCH_REDUCESCATTER:
        reduce(b, me * (count / n), (me + 1) * (count / n), stream, (int)me);
        break;
    default: break;
    }
    barrier(b);
    return 0;
}

int main(void)
{
    static struct bound b;
    const char *rank = getenv("BENCH_RANK");
    const char *nranks = getenv("BENCH_NRANKS");
    const char *name = getenv("BENCH_MEMORY");
    if (!rank || !nranks || !name || atoi(nranks) > MAX_RANKS || !__builtin_cpu_supports("avx2"))
        return 2;
    b.peer = (struct bench_peer){.name = "bound",
                                 .version = "mapped",
                                 .rank = atoi(rank),
                                 .nranks = atoi(nranks),
                                 .call = call};
    if (!bench_attach(&b.peer)) return 2;
    bench_pin(b.peer.rank);
    size_t bytes = (bench_max_bytes() + 4095) / 4096 * 4096;
    size_t total = 4096 + 2 * bytes * (size_t)b.peer.nranks;
    int fd = shm_open(name, O_RDWR, 0600);
    if (fd < 0 || (b.peer.rank == 0 && ftruncate(fd, (off_t)total))) return 2;
    bench_barrier();
    char *map = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) return 2;
    b.cells = (struct cell *)(void *)map;
    const char *ncores = getenv("BENCH_CORES");
    b.oversubscribed = ncores && b.peer.nranks > atoi(ncores);
    for (int r = 0; r < b.peer.nranks; r++) {
        b.in[r] = map + 4096 + 2 * bytes * (size_t)r;
        b.out[r] = b.in[r] + bytes;
    }
    b.peer.send = b.in[b.peer.rank];
    b.peer.recv = b.out[b.peer.rank];
    memset(b.peer.send, 0, bytes);
    memset(b.peer.recv, 0, bytes);
    bench_barrier();
    return bench_run(&b.peer);
}
