/* Ours through the public interface: one process per rank, cudaMalloc buffers, one stream, every
 * call followed by cudaStreamSynchronize, as a blocking caller would do it. */
#include "bench.h"

#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ours {
    struct bench_peer peer;
    ncclComm_t comm;
    cudaStream_t stream;
};

static void must(int bad, const char *what)
{
    if (!bad) return;
    fprintf(stderr, "peer_tutti: %s: %s\n", what, ncclGetLastError(NULL));
    exit(1);
}

static ncclResult_t ping(const struct ours *o, size_t count)
{
    const struct bench_peer *p = &o->peer;
    ncclResult_t rc = ncclSuccess;
    if (p->rank > 1) return rc;
    for (int half = 0; !rc && half < 2; half++) {
        rc = (p->rank == half) ? ncclSend(p->send, count, ncclFloat32, 1 - half, o->comm, o->stream)
                               : ncclRecv(p->recv, count, ncclFloat32, half, o->comm, o->stream);
    }
    return rc;
}

static int call(const struct bench_peer *peer, const struct bench_point *point)
{
    const struct ours *o = (const struct ours *)peer;
    static const ncclDataType_t types[] = {ncclFloat32, ncclBfloat16, ncclFloat16, ncclFloat8e4m3,
                                           ncclFloat8e5m2};
    static const size_t type_bytes[] = {4, 2, 2, 1, 1};
    ncclDataType_t type = types[point->type];
    size_t count = point->bytes / type_bytes[point->type];
    size_t block = count / (size_t)peer->nranks;
    ncclResult_t rc = ncclSuccess;
    switch (point->op) {
    case BENCH_ALLREDUCE:
        rc = ncclAllReduce(peer->send, peer->recv, count, type, ncclSum, o->comm, o->stream);
        break;
    case BENCH_ALLGATHER:
        rc = ncclAllGather(peer->send, peer->recv, block, type, o->comm, o->stream);
        break;
    case BENCH_REDUCESCATTER:
        rc = ncclReduceScatter(peer->send, peer->recv, block, type, ncclSum, o->comm, o->stream);
        break;
    case BENCH_BROADCAST:
        rc = ncclBroadcast(peer->send, peer->rank ? peer->recv : peer->send, count, type, 0,
                           o->comm, o->stream);
        break;
    case BENCH_REDUCE:
        rc = ncclReduce(peer->send, peer->recv, count, type, ncclSum, 0, o->comm, o->stream);
        break;
    case BENCH_ALLTOALL:
        rc = ncclAlltoAll(peer->send, peer->recv, block, type, o->comm, o->stream);
        break;
    case BENCH_PINGPONG: rc = ping(o, count); break;
    default: return -1;
    }
    must(rc != ncclSuccess, "collective");
    must(cudaStreamSynchronize(o->stream) != cudaSuccess, "cudaStreamSynchronize");
    return 0;
}

int main(void)
{
    struct ours o;
    int version = 0;
    char text[32];
    ncclUniqueId id;
    memset(&o, 0, sizeof(o));
    const char *rank = getenv("BENCH_RANK");
    const char *nranks = getenv("BENCH_NRANKS");
    if (!rank || !nranks) return 2;
    o.peer = (struct bench_peer){
        .name = "tutti", .version = text, .rank = atoi(rank), .nranks = atoi(nranks), .call = call};
    if (!bench_attach(&o.peer)) return 2;
    bench_pin(o.peer.rank);
    ncclGetVersion(&version);
    snprintf(text, sizeof(text), "%d", version);
    if (o.peer.rank == 0) {
        must(ncclGetUniqueId(&id) != ncclSuccess, "ncclGetUniqueId");
        memcpy(bench_blob(), &id, sizeof(id));
    }
    bench_barrier();
    memcpy(&id, bench_blob(), sizeof(id));
    must(cudaSetDevice(o.peer.rank) != cudaSuccess, "cudaSetDevice");
    must(ncclCommInitRank(&o.comm, o.peer.nranks, id, o.peer.rank) != ncclSuccess,
         "ncclCommInitRank");
    must(cudaStreamCreateWithFlags(&o.stream, cudaStreamNonBlocking) != cudaSuccess,
         "cudaStreamCreate");
    must(cudaMalloc((void **)&o.peer.send, bench_max_bytes()) != cudaSuccess, "cudaMalloc");
    must(cudaMalloc((void **)&o.peer.recv, bench_max_bytes()) != cudaSuccess, "cudaMalloc");
    memset(o.peer.recv, 0, bench_max_bytes());
    bench_run(&o.peer);
    cudaFree(o.peer.send);
    cudaFree(o.peer.recv);
    cudaStreamDestroy(o.stream);
    must(ncclCommDestroy(o.comm) != ncclSuccess, "ncclCommDestroy");
    return 0;
}
