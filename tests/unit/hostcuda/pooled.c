/* Memory pools as their users expect them: what is counted and kept, whose memory is whose, what is
 * reused before it is free, and what other processes may do. */
#include "conform.h"

#include <cuda.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static _Atomic int flag;

static void await_flag(void *arg)
{
    while (!atomic_load((_Atomic int *)arg)) {
        sched_yield();
    }
}

static uint64_t number_of(cudaMemPool_t pool, enum cudaMemPoolAttr attr)
{
    uint64_t value = 99;
    WORKS(cudaMemPoolGetAttribute(pool, attr, &value));
    return value;
}

static cudaMemPool_t make_pool(int device, size_t most, enum cudaMemAllocationHandleType type)
{
    struct cudaMemPoolProps props;
    cudaMemPool_t pool = NULL;
    memset(&props, 0, sizeof(props));
    props.allocType = cudaMemAllocationTypePinned;
    props.handleTypes = type;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = device;
    props.maxSize = most;
    WORKS(cudaMemPoolCreate(&pool, &props));
    return pool;
}

/* ---- what is counted ---- */

static void defaults(void)
{
    cudaMemPool_t pool = NULL, same = NULL;
    WORKS(cudaDeviceGetDefaultMemPool(&pool, 1));
    WORKS(cudaDeviceGetMemPool(&same, 1));
    HOLDS(pool == same && pool);
    for (int attr = cudaMemPoolReuseFollowEventDependencies;
         attr <= cudaMemPoolReuseAllowInternalDependencies; attr++) {
        int on = 9;
        WORKS(cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)attr, &on));
        HOLDS(on == 1);
        on = 0;
        WORKS(cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)attr, &on));
        on = 9;
        WORKS(cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)attr, &on));
        HOLDS(on == 0);
    }
    HOLDS(number_of(pool, cudaMemPoolAttrReleaseThreshold) == 0);
    HOLDS(number_of(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
    HOLDS(number_of(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
}

/* Freed memory stays the pool's up to the threshold, until it is trimmed. */
static void kept_up_to(void)
{
    cudaMemPool_t pool = make_pool(0, 0, cudaMemHandleTypeNone);
    uint64_t keep = 4 * MIB, none = 0, some = 5;
    void *ptrs[8];
    for (int i = 0; i < 8; i++) {
        WORKS(cudaMallocFromPoolAsync(&ptrs[i], MIB, pool, NULL));
    }
    HOLDS(number_of(pool, cudaMemPoolAttrUsedMemCurrent) == 8 * MIB);
    HOLDS(number_of(pool, cudaMemPoolAttrReservedMemCurrent) >= 8 * MIB);
    WORKS(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    HOLDS(number_of(pool, cudaMemPoolAttrReleaseThreshold) == keep);
    for (int i = 0; i < 8; i++) {
        WORKS(cudaFreeAsync(ptrs[i], NULL));
    }
    WORKS(cudaDeviceSynchronize());
    HOLDS(number_of(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
    HOLDS(number_of(pool, cudaMemPoolAttrReservedMemCurrent) == keep);
    WORKS(cudaMemPoolTrimTo(pool, 2 * MIB));
    HOLDS(number_of(pool, cudaMemPoolAttrReservedMemCurrent) == 2 * MIB);
    WORKS(cudaMemPoolTrimTo(pool, 3 * MIB)); /* does not grow */
    HOLDS(number_of(pool, cudaMemPoolAttrReservedMemCurrent) == 2 * MIB);
    WORKS(cudaMemPoolTrimTo(pool, 0));
    HOLDS(number_of(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
    HOLDS(number_of(pool, cudaMemPoolAttrUsedMemHigh) == 8 * MIB);
    HOLDS(number_of(pool, cudaMemPoolAttrReservedMemHigh) >= 8 * MIB);
    WORKS(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &none));
    WORKS(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &none));
    HOLDS(number_of(pool, cudaMemPoolAttrUsedMemHigh) == 0);
    HOLDS(number_of(pool, cudaMemPoolAttrReservedMemHigh) == 0);
    const enum cudaMemPoolAttr marks[] = {
        cudaMemPoolAttrUsedMemHigh, cudaMemPoolAttrReservedMemHigh, cudaMemPoolAttrUsedMemCurrent,
        cudaMemPoolAttrReservedMemCurrent};
    for (int i = 0; i < 4; i++) {
        ANSWERS(cudaErrorInvalidValue, cudaMemPoolSetAttribute(pool, marks[i], &some));
    }
    ANSWERS(cudaErrorInvalidValue,
            cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)0x7fff, &some));
    WORKS(cudaMemPoolDestroy(pool));
}

/* ---- handles ---- */

static void handles(void)
{
    cudaMemPool_t pool = make_pool(1, 0, cudaMemHandleTypeNone), now = NULL, own = NULL;
    void *ptr = NULL, *more = NULL;
    WORKS(cudaDeviceGetDefaultMemPool(&own, 1));
    ANSWERS(cudaErrorInvalidValue, cudaDeviceSetMemPool(0, pool));
    ANSWERS(cudaErrorInvalidValue, cudaDeviceSetMemPool(1, NULL));
    ANSWERS(cudaErrorInvalidDevice, cudaDeviceSetMemPool(9, pool));
    WORKS(cudaDeviceSetMemPool(1, pool));
    WORKS(cudaDeviceGetMemPool(&now, 1));
    HOLDS(now == pool);
    WORKS(cudaSetDevice(1));
    WORKS(cudaMallocAsync(&ptr, MIB, NULL));
    HOLDS(number_of(pool, cudaMemPoolAttrUsedMemCurrent) == MIB);
    WORKS(cudaMemPoolDestroy(pool)); /* its memory lives on */
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolDestroy(pool));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolDestroy(own));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolDestroy(NULL));
    WORKS(cudaDeviceGetMemPool(&now, 1));
    HOLDS(now == own);
    ANSWERS(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&more, MIB, pool, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolTrimTo(pool, 0));
    WORKS(cudaMemset(ptr, 1, MIB));
    WORKS(cudaFreeAsync(ptr, NULL));
    WORKS(cudaDeviceSynchronize());
    WORKS(cudaSetDevice(0));
}

static void limited(void)
{
    cudaMemPool_t pool = make_pool(0, 4 * MIB, cudaMemHandleTypeNone);
    void *ptr = NULL, *more = NULL;
    size_t free_bytes = 0, total = 0;
    WORKS(cudaMallocFromPoolAsync(&ptr, 3 * MIB, pool, NULL));
    ANSWERS(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&more, 2 * MIB, pool, NULL));
    WORKS(cudaMallocFromPoolAsync(&more, MIB, pool, NULL));
    WORKS(cudaFreeAsync(ptr, NULL));
    WORKS(cudaFreeAsync(more, NULL));
    WORKS(cudaStreamSynchronize(NULL));
    WORKS(cudaMemPoolDestroy(pool));
    WORKS(cudaMemGetInfo(&free_bytes, &total));
    ANSWERS(cudaErrorMemoryAllocation, cudaMallocAsync(&ptr, total + MIB, NULL));
    WORKS(cudaMallocAsync(&ptr, 60 * MIB, NULL));
    WORKS(cudaFreeAsync(ptr, NULL));
    WORKS(cudaStreamSynchronize(NULL));
}

/* ---- access ---- */

static void access_of_peers(void)
{
    cudaMemPool_t pool = make_pool(0, 0, cudaMemHandleTypeNone);
    struct cudaMemAccessDesc access[2];
    enum cudaMemAccessFlags flags = cudaMemAccessFlagsProtRead;
    memset(access, 0, sizeof(access));
    for (int i = 0; i < 2; i++) {
        access[i].location.type = cudaMemLocationTypeDevice;
        access[i].location.id = i + 1;
        access[i].flags = cudaMemAccessFlagsProtReadWrite;
    }
    WORKS(cudaMemPoolGetAccess(&flags, pool, &access[0].location));
    HOLDS(flags == cudaMemAccessFlagsProtNone);
    access[1].location.id = 50;
    ANSWERS(cudaErrorInvalidDevice, cudaMemPoolSetAccess(pool, access, 2));
    WORKS(cudaMemPoolGetAccess(&flags, pool, &access[0].location));
    HOLDS(flags == cudaMemAccessFlagsProtNone); /* all or nothing */
    access[1].location.id = 2;
    WORKS(cudaMemPoolSetAccess(pool, access, 2));
    WORKS(cudaMemPoolGetAccess(&flags, pool, &access[1].location));
    HOLDS(flags == cudaMemAccessFlagsProtReadWrite);
    access[0].flags = (enum cudaMemAccessFlags)7;
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolSetAccess(pool, access, 1));
    access[0].flags = cudaMemAccessFlagsProtNone;
    access[0].location.id = 0; /* the pool's own device */
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolSetAccess(pool, access, 1));
    WORKS(cudaMemPoolGetAccess(&flags, pool, &access[0].location));
    HOLDS(flags == cudaMemAccessFlagsProtReadWrite);
    WORKS(cudaMemPoolDestroy(pool));
}

/* ---- addresses ---- */

static void addresses(void)
{
    cudaMemPool_t pool = make_pool(0, 0, cudaMemHandleTypeNone), found = NULL;
    struct cudaPointerAttributes facts;
    cudaIpcMemHandle_t handle;
    char *ptr = NULL, *plain = NULL, *pinned = NULL;
    int legacy = -1;
    WORKS(cudaMallocFromPoolAsync((void **)&ptr, MIB, pool, NULL));
    WORKS(cudaMalloc((void **)&plain, MIB));
    WORKS(cudaMallocHost((void **)&pinned, MIB));
    WORKS(cudaPointerGetAttributes(&facts, ptr + 5));
    HOLDS(facts.type == cudaMemoryTypeDevice && facts.device == 0);
    HOLDS(
        !cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, (CUdeviceptr)ptr + 5) &&
        found == pool);
    HOLDS(!cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, (CUdeviceptr)plain) &&
          !found);
    HOLDS(!cuPointerGetAttribute(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                 (CUdeviceptr)ptr) &&
          legacy == 0);
    HOLDS(!cuPointerGetAttribute(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                 (CUdeviceptr)plain) &&
          legacy == 1);
    ANSWERS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&handle, ptr));
    WORKS(cudaIpcGetMemHandle(&handle, plain));
    ANSWERS(cudaErrorInvalidValue, cudaFreeAsync(ptr + 512, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaFreeAsync(pinned, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaFreeAsync(&facts, NULL));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaFreeAsync(ptr, (cudaStream_t)&facts));
    WORKS(cudaFreeAsync(ptr, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaFreeAsync(ptr, NULL));
    WORKS(cudaFreeAsync(plain, NULL)); /* of cudaMalloc() */
    WORKS(cudaStreamSynchronize(NULL));
    ANSWERS(cudaErrorInvalidValue, cudaFree(plain));
    WORKS(cudaMallocFromPoolAsync((void **)&ptr, MIB, pool, NULL));
    WORKS(cudaFree(ptr)); /* at once */
    ANSWERS(cudaErrorInvalidValue, cudaFree(ptr));
    HOLDS(number_of(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
    WORKS(cudaFreeHost(pinned));
    WORKS(cudaMemPoolDestroy(pool));
}

/* ---- reuse ---- */

/* Memory whose free is queued is at hand for what comes behind it, in the same stream and in
 * others, though nothing else is left. */
static void reused_before_free(bool other_stream)
{
    cudaMemPool_t pool = make_pool(0, 64 * MIB, cudaMemHandleTypeNone);
    cudaStream_t first = NULL, second = NULL;
    char *old = NULL, *fresh = NULL;
    WORKS(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    WORKS(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    cudaStream_t then = other_stream ? second : first;
    atomic_store(&flag, 0);
    WORKS(cudaMallocFromPoolAsync((void **)&old, 40 * MIB, pool, first));
    WORKS(cudaLaunchHostFunc(first, await_flag, &flag));
    WORKS(cudaMemsetAsync(old, 1, 40 * MIB, first));
    WORKS(cudaFreeAsync(old, first));
    WORKS(cudaMallocFromPoolAsync((void **)&fresh, 39 * MIB, pool, then));
    if (fresh) WORKS(cudaMemsetAsync(fresh, 2, 39 * MIB, then));
    atomic_store(&flag, 1);
    WORKS(cudaStreamSynchronize(then));
    WORKS(cudaStreamSynchronize(first));
    if (fresh) HOLDS(fresh[0] == 2 && fresh[39 * MIB - 1] == 2);
    HOLDS(number_of(pool, cudaMemPoolAttrUsedMemCurrent) >= 39 * MIB);
    if (fresh) WORKS(cudaFreeAsync(fresh, then));
    WORKS(cudaStreamSynchronize(then));
    HOLDS(number_of(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
    WORKS(cudaMallocFromPoolAsync((void **)&fresh, 60 * MIB, pool, then));
    WORKS(cudaFree(fresh));
    WORKS(cudaStreamDestroy(first));
    WORKS(cudaStreamDestroy(second));
    WORKS(cudaMemPoolDestroy(pool));
}

/* Not when the program has forbidden it. */
static void reuse_forbidden(void)
{
    cudaMemPool_t pool = make_pool(0, 64 * MIB, cudaMemHandleTypeNone);
    cudaStream_t first = NULL;
    void *old = NULL, *fresh = NULL;
    int off = 0;
    WORKS(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &off));
    WORKS(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    atomic_store(&flag, 0);
    WORKS(cudaMallocFromPoolAsync(&old, 40 * MIB, pool, first));
    WORKS(cudaLaunchHostFunc(first, await_flag, &flag));
    WORKS(cudaFreeAsync(old, first));
    ANSWERS(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&fresh, 39 * MIB, pool, NULL));
    atomic_store(&flag, 1);
    WORKS(cudaStreamSynchronize(first));
    WORKS(cudaMallocFromPoolAsync(&fresh, 39 * MIB, pool, NULL));
    WORKS(cudaFree(fresh));
    WORKS(cudaStreamDestroy(first));
    WORKS(cudaMemPoolDestroy(pool));
}

/* ---- other processes ---- */

struct message {
    struct cudaMemPoolPtrExportData first, second;
};

/* The program started again, the pool in descriptor 3. */
static int import_here(void)
{
    cudaMemPool_t pool = NULL;
    struct cudaPointerAttributes facts;
    struct message message;
    char *ptr = NULL, *again = NULL, *second = NULL, *own = NULL;
    void *const fd = (void *)(intptr_t)3;
    if (read(STDIN_FILENO, &message, sizeof(message)) != (ssize_t)sizeof(message)) return 1;
    WORKS(cudaMemPoolImportFromShareableHandle(&pool, fd, cudaMemHandleTypePosixFileDescriptor, 0));
    WORKS(cudaMemPoolImportPointer((void **)&ptr, pool, &message.first));
    WORKS(cudaMemPoolImportPointer((void **)&again, pool, &message.first));
    WORKS(cudaMemPoolImportPointer((void **)&second, pool, &message.second));
    HOLDS(ptr[0] == 5 && again[0] == 5 && second[0] == 6);
    ptr[1] = 7;
    HOLDS(again[1] == 7);
    WORKS(cudaMemset(second, 8, MIB));
    ANSWERS(cudaErrorInvalidValue, cudaMemset(second, 8, MIB + 1));
    WORKS(cudaPointerGetAttributes(&facts, second));
    HOLDS(facts.type == cudaMemoryTypeDevice);
    ANSWERS(cudaErrorInvalidValue, cudaMallocFromPoolAsync((void **)&own, MIB, pool, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaDeviceSetMemPool(0, pool));
    message.first.reserved[0] ^= 0x55;
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolImportPointer((void **)&own, pool, &message.first));
    WORKS(cudaFreeAsync(ptr, NULL));
    WORKS(cudaFree(again));
    WORKS(cudaDeviceSynchronize());
    ANSWERS(cudaErrorInvalidValue, cudaFree(again));
    WORKS(cudaFreeAsync(second, NULL));
    WORKS(cudaDeviceSynchronize());
    WORKS(cudaMemPoolDestroy(pool));
    return finish("pooled, another process");
}

static int start_again(const char *program, int fd, const struct message *message)
{
    int ends[2], status = 1;
    if (pipe(ends)) return 1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[0], STDIN_FILENO);
        dup2(fd, 3);
        close(ends[1]);
        execl(program, program, "import", (char *)NULL);
        _exit(127);
    }
    if (write(ends[1], message, sizeof(*message)) != (ssize_t)sizeof(*message)) failures++;
    close(ends[0]);
    close(ends[1]);
    waitpid(pid, &status, 0);
    return status;
}

static void shared_pool(const char *program)
{
    const enum cudaMemAllocationHandleType type = cudaMemHandleTypePosixFileDescriptor;
    cudaMemPool_t pool = make_pool(0, 0, type), closed = make_pool(0, 0, cudaMemHandleTypeNone);
    struct message message;
    char *first = NULL, *second = NULL, *other = NULL;
    int fd = -1;
    WORKS(cudaMallocFromPoolAsync((void **)&first, MIB, pool, NULL));
    WORKS(cudaMallocFromPoolAsync((void **)&second, MIB, pool, NULL));
    WORKS(cudaMallocFromPoolAsync((void **)&other, MIB, closed, NULL));
    WORKS(cudaMemset(first, 5, MIB));
    WORKS(cudaMemset(second, 6, MIB));
    WORKS(cudaDeviceSynchronize());
    WORKS(cudaMemPoolExportToShareableHandle(&fd, pool, type, 0));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolExportToShareableHandle(&fd, closed, type, 0));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolExportToShareableHandle(&fd, pool, type, 1));
    WORKS(cudaMemPoolExportPointer(&message.first, first));
    WORKS(cudaMemPoolExportPointer(&message.second, second));
    HOLDS(start_again(program, fd, &message) == 0);
    HOLDS(first[1] == 7 && second[0] == 8 && second[MIB - 1] == 8);
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolExportPointer(&message.first, other));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolExportPointer(&message.first, first + 512));
    WORKS(cudaFreeAsync(first, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolExportPointer(&message.first, first));
    WORKS(cudaFreeAsync(second, NULL));
    WORKS(cudaFreeAsync(other, NULL));
    WORKS(cudaDeviceSynchronize());
    close(fd);
    WORKS(cudaMemPoolDestroy(pool));
    WORKS(cudaMemPoolDestroy(closed));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)STDIN_FILENO, type, 0));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)-1, type, 0));
}

/* An importer that has several pools of one process finds the pointer's one by trying. */
static void each_pool_knows_its_pointers(void)
{
    const enum cudaMemAllocationHandleType type = cudaMemHandleTypePosixFileDescriptor;
    cudaMemPool_t pools[2], twins[2];
    struct cudaMemPoolPtrExportData tokens[2];
    char *ptrs[2], *seen = NULL;
    int fds[2] = {-1, -1};
    for (int i = 0; i < 2; i++) {
        pools[i] = make_pool(0, 0, type);
        WORKS(cudaMallocFromPoolAsync((void **)&ptrs[i], 4096, pools[i], NULL));
        WORKS(cudaMemset(ptrs[i], 'a' + i, 4096));
        WORKS(cudaMemPoolExportToShareableHandle(&fds[i], pools[i], type, 0));
        WORKS(cudaMemPoolExportPointer(&tokens[i], ptrs[i]));
    }
    for (int i = 0; i < 2; i++) {
        int passed_on = dup(fds[i]);
        void *handle = (void *)(intptr_t)passed_on;
        WORKS(cudaMemPoolImportFromShareableHandle(&twins[i], handle, type, 0));
        close(passed_on);
        close(fds[i]);
    }
    for (int i = 0; i < 2; i++) {
        ANSWERS(cudaErrorInvalidValue,
                cudaMemPoolImportPointer((void **)&seen, twins[1 - i], &tokens[i]));
        WORKS(cudaMemPoolImportPointer((void **)&seen, twins[i], &tokens[i]));
        HOLDS(seen && seen[4095] == 'a' + i);
        WORKS(cudaFree(seen));
    }
    for (int i = 0; i < 2; i++) {
        WORKS(cudaFree(ptrs[i]));
        WORKS(cudaMemPoolDestroy(twins[i]));
        WORKS(cudaMemPoolDestroy(pools[i]));
    }
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) return import_here();
    defaults();
    kept_up_to();
    handles();
    limited();
    access_of_peers();
    addresses();
    reused_before_free(false);
    reused_before_free(true);
    reuse_forbidden();
    shared_pool(argv[0]);
    each_pool_knows_its_pointers();
    return finish("pooled");
}
