/* An MPI library under the same loop; built once per MPI that is installed. */
#include "bench.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mpi {
    struct bench_peer peer;
    MPI_Op bf16_sum;
};

/* MPI has no bfloat16: a user operator, reduced in float and rounded to nearest even. */
static void sum_bf16(void *in, void *inout, int *len, MPI_Datatype *type)
{
    const uint16_t *a = in;
    uint16_t *b = inout;
    (void)type;
    for (int i = 0; i < *len; i++) {
        uint32_t x = (uint32_t)a[i] << 16;
        uint32_t y = (uint32_t)b[i] << 16;
        float fx;
        float fy;
        memcpy(&fx, &x, 4);
        memcpy(&fy, &y, 4);
        fx += fy;
        memcpy(&x, &fx, 4);
        b[i] = (uint16_t)((x + 0x7fff + ((x >> 16) & 1)) >> 16);
    }
}

static int ping(const struct bench_peer *p, int count)
{
    if (p->rank == 0) {
        MPI_Send(p->send, count, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(p->recv, count, MPI_FLOAT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (p->rank == 1) {
        MPI_Recv(p->recv, count, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(p->send, count, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
    }
    return 0;
}

static int call(const struct bench_peer *p, const struct bench_point *point)
{
    const struct mpi *m = (const struct mpi *)p;
    bool f32 = point->type == BENCH_FLOAT32;
    if (point->type > BENCH_BFLOAT16) return -1;
    MPI_Datatype type = f32 ? MPI_FLOAT : MPI_UINT16_T;
    MPI_Op sum = f32 ? MPI_SUM : m->bf16_sum;
    int count = (int)(point->bytes / (f32 ? 4 : 2));
    int block = count / p->nranks;
    switch (point->op) {
    case BENCH_ALLREDUCE: return MPI_Allreduce(p->send, p->recv, count, type, sum, MPI_COMM_WORLD);
    case BENCH_ALLGATHER:
        return MPI_Allgather(p->send, block, type, p->recv, block, type, MPI_COMM_WORLD);
    case BENCH_REDUCESCATTER:
        return MPI_Reduce_scatter_block(p->send, p->recv, block, type, sum, MPI_COMM_WORLD);
    case BENCH_BROADCAST:
        return MPI_Bcast(p->rank ? p->recv : p->send, count, type, 0, MPI_COMM_WORLD);
    case BENCH_REDUCE: return MPI_Reduce(p->send, p->recv, count, type, sum, 0, MPI_COMM_WORLD);
    case BENCH_ALLTOALL:
        return MPI_Alltoall(p->send, block, type, p->recv, block, type, MPI_COMM_WORLD);
    case BENCH_PINGPONG: return ping(p, count);
    default: return -1;
    }
}

int main(int argc, char **argv)
{
    struct mpi m;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int len = 0;
    memset(&m, 0, sizeof(m));
    MPI_Init(&argc, &argv);
    m.peer = (struct bench_peer){.name = getenv("BENCH_PEER"), .version = version, .call = call};
    if (!m.peer.name) m.peer.name = "mpi";
    MPI_Comm_rank(MPI_COMM_WORLD, &m.peer.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m.peer.nranks);
    MPI_Get_library_version(version, &len);
    version[strcspn(version, ",\n\t\"")] = 0;
    MPI_Op_create(sum_bf16, 1, &m.bf16_sum);
    if (!bench_attach(&m.peer)) MPI_Abort(MPI_COMM_WORLD, 2);
    bench_pin(m.peer.rank);
    m.peer.send = aligned_alloc(4096, bench_max_bytes());
    m.peer.recv = aligned_alloc(4096, bench_max_bytes());
    memset(m.peer.send, 0, bench_max_bytes());
    memset(m.peer.recv, 0, bench_max_bytes());
    bench_run(&m.peer);
    free(m.peer.send);
    free(m.peer.recv);
    MPI_Finalize();
    return 0;
}
