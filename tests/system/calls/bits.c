/* Prints a hash of what each rank gets from reductions of numbers whose sum depends on the order,
 * for deterministic.py to compare. */
#include "../../../examples/check.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { MOST = 70001, MOST_RANKS = 16 };

struct reduction {
    const char *name;
    ncclDataType_t type;
    size_t type_bytes;
    ncclRedOp_t op;
};

static const struct reduction reductions[] = {{"float sum", ncclFloat32, 4, ncclSum},
                                              {"float avg", ncclFloat32, 4, ncclAvg},
                                              {"half sum", ncclFloat16, 2, ncclSum},
                                              {"bfloat16 sum", ncclBfloat16, 2, ncclSum},
                                              {"double prod", ncclFloat64, 8, ncclProd}};

/* Finite numbers of very different sizes: the upper byte of each is that of 1 to 100 or so. */
static void fill(char *bytes, size_t count, const struct reduction *what, int rank)
{
    static const unsigned char upper[] = {0x3c, 0x3f, 0x40, 0x41, 0xbf, 0xc0};
    uint32_t seed = 77u + (uint32_t)rank * 7919u;
    for (size_t i = 0; i < count * what->type_bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        bool last = i % what->type_bytes == what->type_bytes - 1;
        bytes[i] = (char)(last ? upper[(seed >> 8) % sizeof(upper)] : (unsigned char)(seed >> 16));
    }
}

static uint64_t hash_of(const char *bytes, size_t nbytes)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < nbytes; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
    return hash;
}

int main(void)
{
    static const size_t counts[] = {1, 1000, MOST};
    int rank = from_launcher("RANK", 0), nranks = from_launcher("WORLD_SIZE", 1);
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    char *in, *out;
    CUDA(cudaSetDevice(from_launcher("LOCAL_RANK", 0)));
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc((void **)&in, (size_t)MOST * MOST_RANKS * 8));
    CUDA(cudaMalloc((void **)&out, (size_t)MOST * 8));
    for (size_t k = 0; k < 9 * sizeof(reductions) / sizeof(reductions[0]); k++) {
        const struct reduction *what = &reductions[k / 9];
        size_t count = counts[k % 3], bytes = count * what->type_bytes;
        int call = (int)(k % 9 / 3);
        memset(out, 0, bytes);
        fill(in, count * (size_t)nranks, what, rank);
        if (call == 0) NCCL(ncclAllReduce(in, out, count, what->type, what->op, comm, stream));
        if (call == 1) NCCL(ncclReduceScatter(in, out, count, what->type, what->op, comm, stream));
        if (call == 2)
            NCCL(ncclReduce(in, out, count, what->type, what->op, nranks - 1, comm, stream));
        CUDA(cudaStreamSynchronize(stream));
        printf("rank %d call %d of %zu %s: %016llx\n", rank, call, count, what->name,
               (unsigned long long)hash_of(out, bytes));
    }
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    return 0;
}
