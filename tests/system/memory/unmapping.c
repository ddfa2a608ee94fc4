/* Ranks that are threads use a buffer that is mapped in parts, registered as any other and with
 * checks of pointers, and unmap it between two collectives, as allocators do that grow and shrink:
 * the first rank does when the other one is inside of the next collective already, which cannot end
 * without it. */
#include "../harness/harness.h"

#include <cuda.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { RANKS = 2, GRAIN = 2 << 20, COUNT = GRAIN / sizeof(float), ROUNDS = 20 };

static float *map_part(int device)
{
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp prop;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                              CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr where = 0;
    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = access.location;
    CHECK(cuMemCreate(&handle, GRAIN, &prop, 0) == CUDA_SUCCESS);
    CHECK(cuMemAddressReserve(&where, GRAIN, 0, 0, 0) == CUDA_SUCCESS);
    CHECK(cuMemMap(where, GRAIN, 0, handle, 0) == CUDA_SUCCESS);
    CHECK(cuMemRelease(handle) == CUDA_SUCCESS);
    CHECK(cuMemSetAccess(where, GRAIN, &access, 1) == CUDA_SUCCESS);
    return (float *)where;
}

static void unmap_part(float *part)
{
    CHECK(cuMemUnmap((CUdeviceptr)part, GRAIN) == CUDA_SUCCESS);
    CHECK(cuMemAddressFree((CUdeviceptr)part, GRAIN) == CUDA_SUCCESS);
}

static void sum_of_part(struct harness_rank *rank)
{
    float *part = map_part(rank->device);
    void *handle = NULL;
    ncclWindow_t window = NULL;
    NCCL(ncclCommWindowRegister(rank->comm, part, GRAIN, &window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclCommRegister(rank->comm, part, GRAIN, &handle));
    void *refused = NULL; /* the first is too long, the others end before they begin */
    char *half = (char *)part + GRAIN / 2;
    const size_t wraps = SIZE_MAX - GRAIN / 2 + 1;
    ncclWindow_t none = NULL;
    CHECK(ncclCommRegister(rank->comm, part, GRAIN + 1, &refused) == ncclInvalidArgument);
    CHECK(ncclCommRegister(rank->comm, half, wraps, &refused) == ncclInvalidArgument);
    CHECK(ncclCommWindowRegister(rank->comm, half, wraps, &none, 0) == ncclInvalidArgument);
    for (size_t i = 0; i < COUNT; i++) {
        part[i] = (float)(rank->rank + 1);
    }
    NCCL(ncclAllReduce(part, part, COUNT, ncclFloat32, ncclSum, rank->comm, rank->stream));
    CUDA(cudaStreamSynchronize(rank->stream));
    CHECK(part[0] == 3 && part[COUNT - 1] == 3);
    NCCL(ncclCommDeregister(rank->comm, handle));
    NCCL(ncclCommWindowDeregister(rank->comm, window));
    _Atomic int *entered = rank->arg;
    if (rank->rank == 0) {
        while (atomic_load(entered) == 0) {
            sched_yield();
        }
        unmap_part(part);
    }
    float *one = harness_device_alloc(sizeof(*one));
    NCCL(ncclAllReduce(one, one, 1, ncclFloat32, ncclSum, rank->comm, rank->stream));
    if (rank->rank == 1) atomic_store(entered, 1);
    CUDA(cudaStreamSynchronize(rank->stream));
    if (rank->rank == 1) unmap_part(part);
    if (rank->rank == 0) atomic_store(entered, 0);
    NCCL(ncclAllReduce(one, one, 1, ncclFloat32, ncclSum, rank->comm, rank->stream));
    CUDA(cudaStreamSynchronize(rank->stream));
    CUDA(cudaFree(one));
}

static void body(struct harness_rank *rank)
{
    for (int i = 0; i < ROUNDS; i++) {
        sum_of_part(rank);
    }
}

int main(void)
{
    static _Atomic int entered;
    harness_threads(RANKS, body, &entered, 0);
    printf("unmapping: %d rounds\n", ROUNDS);
    return 0;
}
