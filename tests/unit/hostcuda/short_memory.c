/* When memory is short: freed memory that work of another device may still use comes back when that
 * work ends. Who waits for it must not stop those who need no memory of that device. */
#include "conform.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { MIB = 1 << 20, MOST = 48 * MIB, ATTEMPTS = 20, CALLS = 100 };

static void await_gate(void *arg)
{
    while (!atomic_load((_Atomic int *)arg)) {
        sched_yield();
    }
}

struct wait { /* for memory that is on its way back */
    int begun;
    cudaError_t got;
    void *ptr;
    cudaStream_t stream;
};

static void *allocate_freed(void *arg)
{
    struct wait *wait = arg;
    cudaSetDevice(0);
    __atomic_store_n(&wait->begun, 1, __ATOMIC_RELEASE);
    wait->got = cudaMallocAsync(&wait->ptr, MOST, wait->stream);
    return NULL;
}

static void use_other_pools(void)
{
    cudaMemPool_t pool = NULL;
    uint64_t used = 0;
    void *ptr = NULL;
    WORKS(cudaDeviceGetDefaultMemPool(&pool, 2));
    for (int i = 0; i < CALLS; i++) {
        WORKS(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
        WORKS(cudaMallocAsync(&ptr, MIB, NULL));
        WORKS(cudaFreeAsync(ptr, NULL));
        sched_yield();
    }
}

/* The freed memory waits for the gate of another device's stream. The one who needs it waits for
 * two seconds at most; a machine under load may need another attempt. */
static cudaError_t attempt(void)
{
    struct wait wait = {.got = cudaErrorUnknown};
    _Atomic int gate = 0;
    pthread_t thread;
    cudaStream_t other;
    void *freed = NULL;
    WORKS(cudaSetDevice(1));
    WORKS(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    WORKS(cudaSetDevice(0));
    WORKS(cudaStreamCreateWithFlags(&wait.stream, cudaStreamNonBlocking));
    WORKS(cudaMalloc(&freed, MOST));
    WORKS(cudaLaunchHostFunc(other, await_gate, &gate));
    WORKS(cudaFree(freed));
    WORKS(cudaSetDevice(2));
    pthread_create(&thread, NULL, allocate_freed, &wait);
    conform_await(&wait.begun, 1);
    use_other_pools();
    atomic_store(&gate, 1);
    pthread_join(thread, NULL);
    if (!wait.got) WORKS(cudaFreeAsync(wait.ptr, wait.stream));
    WORKS(cudaStreamSynchronize(wait.stream));
    WORKS(cudaStreamSynchronize(other));
    WORKS(cudaStreamDestroy(wait.stream));
    WORKS(cudaStreamDestroy(other));
    return wait.got;
}

/* A pool with a limit counts what is under way. */
static void limit_of_many(void)
{
    struct cudaMemPoolProps props;
    cudaMemPool_t pool = NULL;
    void *ptrs[3] = {NULL, NULL, NULL};
    uint64_t high = 0;
    memset(&props, 0, sizeof(props));
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.maxSize = 2 * MIB;
    WORKS(cudaSetDevice(0));
    WORKS(cudaMemPoolCreate(&pool, &props));
    WORKS(cudaMallocFromPoolAsync(&ptrs[0], MIB, pool, NULL));
    WORKS(cudaMallocFromPoolAsync(&ptrs[1], MIB, pool, NULL));
    ANSWERS(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&ptrs[2], MIB, pool, NULL));
    WORKS(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
    HOLDS(high == 2 * MIB);
    WORKS(cudaMemPoolDestroy(pool));
    WORKS(cudaFreeAsync(ptrs[0], NULL));
    WORKS(cudaFreeAsync(ptrs[1], NULL));
    WORKS(cudaStreamSynchronize(NULL));
    ANSWERS(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&ptrs[2], MIB, pool, NULL));
}

int main(void)
{
    cudaError_t got = cudaErrorMemoryAllocation;
    for (int i = 0; i < ATTEMPTS && got == cudaErrorMemoryAllocation; i++) {
        got = attempt();
    }
    HOLDS(got == cudaSuccess);
    limit_of_many();
    return finish("short_memory");
}
