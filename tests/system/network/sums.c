/* All collectives at sizes from 8 bytes to the one given; a line for each with the hash of what
 * this rank got, so that runs over two networks can be compared bit by bit. One process per rank.
 *   tutti run -n 4 sums BYTES */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, nranks;
static ncclComm_t comm;
static cudaStream_t stream;
static float *out, *in;

static void must(ncclResult_t rc, const char *what)
{
    if (!rc) return;
    fprintf(stderr, "sums: rank %d: %s: %s\n", rank, what, ncclGetLastError(comm));
    exit(1);
}

static ncclResult_t all_reduce(size_t n)
{
    return ncclAllReduce(out, in, n, ncclFloat, ncclSum, comm, stream);
}

static ncclResult_t all_gather(size_t n)
{
    return ncclAllGather(out, in, n / (size_t)nranks, ncclFloat, comm, stream);
}

static ncclResult_t reduce_scatter(size_t n)
{
    return ncclReduceScatter(out, in, n / (size_t)nranks, ncclFloat, ncclSum, comm, stream);
}

static ncclResult_t broadcast(size_t n)
{
    return ncclBroadcast(out, in, n, ncclFloat, nranks - 1, comm, stream);
}

static ncclResult_t reduce(size_t n)
{
    return ncclReduce(out, in, n, ncclFloat, ncclSum, nranks - 1, comm, stream);
}

static ncclResult_t all_to_all(size_t n)
{
    return ncclAlltoAll(out, in, n / (size_t)nranks, ncclFloat, comm, stream);
}

static ncclResult_t gather(size_t n)
{
    return ncclGather(out, in, n / (size_t)nranks, ncclFloat, 0, comm, stream);
}

static ncclResult_t scatter(size_t n)
{
    return ncclScatter(out, in, n / (size_t)nranks, ncclFloat, 0, comm, stream);
}

static ncclResult_t send_recv(size_t n)
{
    must(ncclGroupStart(), "group");
    must(ncclSend(out, n, ncclFloat, (rank + 1) % nranks, comm, stream), "send");
    must(ncclRecv(in, n, ncclFloat, (rank + nranks - 1) % nranks, comm, stream), "receive");
    return ncclGroupEnd();
}

static const struct {
    const char *name;
    ncclResult_t (*run)(size_t n);
} calls[] = {
    {"AllReduce", all_reduce}, {"AllGather", all_gather}, {"ReduceScatter", reduce_scatter},
    {"Broadcast", broadcast},  {"Reduce", reduce},        {"AlltoAll", all_to_all},
    {"Gather", gather},        {"Scatter", scatter},      {"SendRecv", send_recv},
};

static uint64_t hash_of(const void *bytes, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const unsigned char *at = bytes; len--; at++)
        hash = (hash ^ *at) * 0x100000001b3u;
    return hash;
}

static int number(const char *name)
{
    const char *text = getenv(name);
    return text ? (int)strtol(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    size_t most = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
    ncclUniqueId id;
    uint32_t seed = 12345;
    rank = number("RANK");
    nranks = number("WORLD_SIZE");
    if (most < 8 || nranks < 1) return 2;
    if (cudaSetDevice(number("LOCAL_RANK")) || cudaStreamCreate(&stream) ||
        cudaMalloc((void **)&out, most) || cudaMalloc((void **)&in, most))
        return 1;
    must(ncclGetUniqueId(&id), "id");
    must(ncclCommInitRank(&comm, nranks, id, rank), "init");
    seed += (uint32_t)rank;
    for (size_t i = 0; i < most / sizeof(float); i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (float)(seed >> 8) / 1e6f; /* sums are rounded, so their order shows */
    }
    for (size_t bytes = 8; bytes <= most;
         bytes = bytes < most && bytes * 128 > most ? most : bytes * 128) {
        for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
            memset(in, 0, bytes);
            must(calls[i].run(bytes / sizeof(float)), calls[i].name);
            if (cudaStreamSynchronize(stream)) must(ncclSystemError, calls[i].name);
            printf("%s of %zu bytes at rank %d of %d: %016llx\n", calls[i].name, bytes, rank,
                   nranks, (unsigned long long)hash_of(in, bytes));
        }
    }
    must(ncclCommDestroy(comm), "destroy");
    return 0;
}
