/* The operations that can be measured: one row each; bus factors as nccl-tests defines them. */
#include "perf.h"

#include <cuda_runtime.h>
#include <string.h>

static double bus_allreduce(int n)
{
    return 2.0 * (n - 1) / n;
}
static double bus_blocks(int n)
{
    return (double)(n - 1) / n;
}
static double bus_one(int n)
{
    (void)n;
    return 1.0;
}

static ncclResult_t run_allreduce(const struct perf_call *c)
{
    return ncclAllReduce(c->send, c->recv, c->count, c->type, c->op, c->comm, c->stream);
}

static ncclResult_t run_reducescatter(const struct perf_call *c)
{
    return ncclReduceScatter(c->send, c->recv, c->count, c->type, c->op, c->comm, c->stream);
}

static ncclResult_t run_allgather(const struct perf_call *c)
{
    return ncclAllGather(c->send, c->recv, c->count, c->type, c->comm, c->stream);
}

static ncclResult_t run_broadcast(const struct perf_call *c)
{
    return ncclBroadcast(c->send, c->recv, c->count, c->type, c->root, c->comm, c->stream);
}

static ncclResult_t run_reduce(const struct perf_call *c)
{
    return ncclReduce(c->send, c->recv, c->count, c->type, c->op, c->root, c->comm, c->stream);
}

static ncclResult_t run_alltoall(const struct perf_call *c)
{
    return ncclAlltoAll(c->send, c->recv, c->count, c->type, c->comm, c->stream);
}

static ncclResult_t run_gather(const struct perf_call *c)
{
    return ncclGather(c->send, c->recv, c->count, c->type, c->root, c->comm, c->stream);
}

static ncclResult_t run_scatter(const struct perf_call *c)
{
    return ncclScatter(c->send, c->recv, c->count, c->type, c->root, c->comm, c->stream);
}

/* Each rank sends to the next and receives from the one before. */
static ncclResult_t run_sendrecv(const struct perf_call *c)
{
    int rank = 0;
    int nranks = 1;
    ncclResult_t rc = ncclCommUserRank(c->comm, &rank);
    if (!rc) rc = ncclCommCount(c->comm, &nranks);
    if (!rc) rc = ncclGroupStart();
    if (rc) return rc;
    ncclResult_t sent =
        ncclSend(c->send, c->count, c->type, (rank + 1) % nranks, c->comm, c->stream);
    ncclResult_t received =
        ncclRecv(c->recv, c->count, c->type, (rank + nranks - 1) % nranks, c->comm, c->stream);
    rc = ncclGroupEnd();
    if (sent) return sent;
    return received ? received : rc;
}

/* AllGather by doubling: in step k a rank exchanges all it has with the rank that differs in bit k.
 */
static ncclResult_t run_hypercube(const struct perf_call *c)
{
    int rank = 0;
    int nranks = 1;
    ncclResult_t rc = ncclCommUserRank(c->comm, &rank);
    if (!rc) rc = ncclCommCount(c->comm, &nranks);
    size_t block = c->count * perf_type_bytes((int)c->type);
    char *own = (char *)c->recv + (size_t)rank * block;
    if (!rc && c->send != own &&
        cudaMemcpyAsync(own, c->send, block, cudaMemcpyDeviceToDevice, c->stream))
        return ncclUnhandledCudaError;
    for (int bit = 1; !rc && bit < nranks; bit <<= 1) {
        size_t have = (size_t)(rank & ~(bit - 1)) * block;
        size_t lack = (size_t)((rank ^ bit) & ~(bit - 1)) * block;
        size_t count = c->count * (size_t)bit;
        rc = ncclGroupStart();
        if (rc) return rc;
        ncclResult_t sent =
            ncclSend((char *)c->recv + have, count, c->type, rank ^ bit, c->comm, c->stream);
        ncclResult_t received =
            ncclRecv((char *)c->recv + lack, count, c->type, rank ^ bit, c->comm, c->stream);
        rc = ncclGroupEnd();
        if (sent || received) return sent ? sent : received;
    }
    return rc;
}

static const struct perf_operation operations[] = {
    {"allreduce", "AllReduce", true, false, 1, 1, false, bus_allreduce, run_allreduce, false,
     false},
    {"allgather", "AllGather", false, false, 1, -1, true, bus_blocks, run_allgather, false, false},
    {"reducescatter", "ReduceScatter", true, false, -1, 1, true, bus_blocks, run_reducescatter,
     false, false},
    {"broadcast", "Broadcast", false, true, 1, 1, false, bus_one, run_broadcast, false, false},
    {"reduce", "Reduce", true, true, 1, 1, false, bus_one, run_reduce, false, false},
    {"alltoall", "AlltoAll", false, false, -1, -1, true, bus_blocks, run_alltoall, false, true},
    {"gather", "Gather", false, true, 1, -1, true, bus_blocks, run_gather, false, false},
    {"scatter", "Scatter", false, true, -1, 1, true, bus_blocks, run_scatter, false, false},
    {"sendrecv", "SendRecv", false, false, 1, 1, false, bus_one, run_sendrecv, false, true},
    {"hypercube", "HyperCube", false, false, 1, -1, true, bus_blocks, run_hypercube, true, false},
};

const struct perf_operation *perf_operation_at(int index)
{
    return index >= 0 && (size_t)index < sizeof(operations) / sizeof(operations[0])
               ? &operations[index]
               : NULL;
}

/* "AllReduce", "all_reduce", "all_reduce_perf", "reduce-scatter": one name. */
static void plain_name(const char *name, char *plain, size_t plain_bytes)
{
    size_t n = 0;
    for (; *name && n + 1 < plain_bytes; name++) {
        if (*name == '_' || *name == '-') continue;
        plain[n] = *name;
        if (*name >= 'A' && *name <= 'Z') plain[n] = (char)(*name - 'A' + 'a');
        n++;
    }
    plain[n] = 0;
    if (n > 4 && !strcmp(plain + n - 4, "perf")) plain[n - 4] = 0;
}

const struct perf_operation *perf_operation_find(const char *name)
{
    char plain[64];
    plain_name(name, plain, sizeof(plain));
    if (!strcmp(plain, "bcast")) return perf_operation_find("broadcast");
    for (int i = 0; perf_operation_at(i); i++) {
        if (!strcmp(operations[i].name, plain)) return &operations[i];
    }
    return NULL;
}
