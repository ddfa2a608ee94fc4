/* Mappings that end while work is under way: who ends them does not wait for other devices' work,
 * which may be waiting for it, and that work finds the bytes that it was queued for. The last part
 * is done by the program started again: memory of another process is closed there. */
#include "conform.h"

#include <cuda.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRAIN = 2 << 20 };

static _Atomic int flag;

static void await_flag(void *arg)
{
    while (!atomic_load((_Atomic int *)arg)) {
        sched_yield();
    }
}

/* A stream of device 1 that is busy until the flag is set; device 0 is current. */
static cudaStream_t busy_stream(void)
{
    cudaStream_t stream = NULL;
    atomic_store(&flag, 0);
    WORKS(cudaSetDevice(1));
    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WORKS(cudaLaunchHostFunc(stream, await_flag, &flag));
    WORKS(cudaSetDevice(0));
    return stream;
}

static void end_work(cudaStream_t stream)
{
    atomic_store(&flag, 1);
    WORKS(cudaStreamSynchronize(stream));
    WORKS(cudaStreamDestroy(stream));
}

/* ---- mapped parts ---- */

static void allow(CUdeviceptr where, CUmemAccess_flags flags)
{
    CUmemAccessDesc access[2];
    memset(access, 0, sizeof(access));
    for (int i = 0; i < 2; i++) {
        access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        access[i].location.id = i;
        access[i].flags = flags;
    }
    HOLDS(cuMemSetAccess(where, GRAIN, access, 2) == CUDA_SUCCESS);
}

static CUmemGenericAllocationHandle make_block(void)
{
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    HOLDS(cuMemCreate(&handle, GRAIN, &prop, 0) == CUDA_SUCCESS);
    return handle;
}

/* One part, filled with 7, at an address of its own. */
static CUdeviceptr make_part(void)
{
    CUmemGenericAllocationHandle handle = make_block();
    CUdeviceptr where = 0;
    HOLDS(cuMemAddressReserve(&where, GRAIN, 0, 0, 0) == CUDA_SUCCESS);
    HOLDS(cuMemMap(where, GRAIN, 0, handle, 0) == CUDA_SUCCESS);
    HOLDS(cuMemRelease(handle) == CUDA_SUCCESS);
    allow(where, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    HOLDS(cuMemsetD8(where, 7, GRAIN) == CUDA_SUCCESS);
    WORKS(cudaDeviceSynchronize());
    return where;
}

static size_t free_bytes(void)
{
    size_t free_now = 0, total = 0;
    WORKS(cudaMemGetInfo(&free_now, &total));
    return free_now;
}

static void all_sevens(const char *device)
{
    static char seen[GRAIN];
    WORKS(cudaMemcpy(seen, device, GRAIN, cudaMemcpyDefault));
    HOLDS(seen[0] == 7 && !memcmp(seen, seen + 1, GRAIN - 1));
}

/* Queued copies read what was unmapped, and the books know nothing of it any more. */
static void unmapped_in_use(void)
{
    char *copy = NULL;
    size_t before = free_bytes();
    CUdeviceptr where = make_part();
    WORKS(cudaMalloc((void **)&copy, GRAIN));
    cudaStream_t stream = busy_stream();
    WORKS(cudaMemcpyAsync(copy, (void *)where, GRAIN, cudaMemcpyDefault, stream));
    HOLDS(cuMemUnmap(where, GRAIN) == CUDA_SUCCESS);
    HOLDS(cuMemUnmap(where, GRAIN) == CUDA_ERROR_INVALID_VALUE);
    HOLDS(cuMemsetD8(where, 1, 1) != CUDA_SUCCESS);
    HOLDS(cuMemAddressFree(where, GRAIN) == CUDA_SUCCESS);
    HOLDS(cuMemAddressFree(where, GRAIN) == CUDA_ERROR_INVALID_VALUE);
    HOLDS(free_bytes() == before - GRAIN);
    end_work(stream);
    all_sevens(copy);
    WORKS(cudaFree(copy));
}

/* The same address gets another block while work with the old one is queued. */
static void mapped_again_in_use(void)
{
    char *copy = NULL;
    CUdeviceptr where = make_part();
    CUmemGenericAllocationHandle handle = make_block();
    WORKS(cudaMalloc((void **)&copy, GRAIN));
    cudaStream_t stream = busy_stream();
    WORKS(cudaMemcpyAsync(copy, (void *)where, GRAIN, cudaMemcpyDefault, stream));
    HOLDS(cuMemUnmap(where, GRAIN) == CUDA_SUCCESS);
    HOLDS(cuMemMap(where, GRAIN, 0, handle, 0) == CUDA_SUCCESS); /* no access yet */
    end_work(stream);
    allow(where, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    HOLDS(cuMemsetD8(where, 9, GRAIN) == CUDA_SUCCESS);
    WORKS(cudaDeviceSynchronize());
    HOLDS(cuMemUnmap(where, GRAIN) == CUDA_SUCCESS);
    HOLDS(cuMemMap(where, GRAIN, 0, handle, 0) == CUDA_SUCCESS);
    HOLDS(cuMemsetD8(where, 9, GRAIN) != CUDA_SUCCESS);
    HOLDS(cuMemUnmap(where, GRAIN) == CUDA_SUCCESS);
    HOLDS(cuMemAddressFree(where, GRAIN) == CUDA_SUCCESS);
    HOLDS(cuMemRelease(handle) == CUDA_SUCCESS);
    WORKS(cudaFree(copy));
}

static void narrowed_in_use(void)
{
    char *copy = NULL;
    CUdeviceptr where = make_part();
    WORKS(cudaMalloc((void **)&copy, GRAIN));
    cudaStream_t stream = busy_stream();
    WORKS(cudaMemcpyAsync(copy, (void *)where, GRAIN, cudaMemcpyDefault, stream));
    WORKS(cudaMemsetAsync((void *)where, 8, GRAIN, stream));
    allow(where, CU_MEM_ACCESS_FLAGS_PROT_READ);
    HOLDS(cuMemsetD8(where, 1, 1) != CUDA_SUCCESS);
    allow(where, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    HOLDS(cuMemcpyDtoD((CUdeviceptr)copy, where, 1) != CUDA_SUCCESS);
    end_work(stream);
    all_sevens(copy);
    allow(where, CU_MEM_ACCESS_FLAGS_PROT_READ);
    WORKS(cudaMemcpy(copy, (void *)where, GRAIN, cudaMemcpyDefault));
    HOLDS(copy[0] == 8 && copy[GRAIN - 1] == 8);
    HOLDS(cuMemUnmap(where, GRAIN) == CUDA_SUCCESS);
    HOLDS(cuMemAddressFree(where, GRAIN) == CUDA_SUCCESS);
    WORKS(cudaFree(copy));
}

/* Whether the kernel can read a byte there. The call is the kernel's own: a sanitizer that looks at
 * write() takes it for a read of this thread. */
static bool is_there(CUdeviceptr where)
{
    int ends[2];
    if (pipe(ends)) return false;
    bool good = syscall(SYS_write, ends[1], (const void *)where, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return good;
}

/* Once the work is over, no device can touch what was unmapped, though no call asks for it. */
static void gone_in_the_end(void)
{
    CUdeviceptr where = make_part();
    CUdeviceptr other = make_part();
    cudaStream_t stream = busy_stream();
    HOLDS(cuMemUnmap(where, GRAIN) == CUDA_SUCCESS);
    HOLDS(is_there(where));
    end_work(stream);
    while (is_there(where)) {
        sched_yield();
    }
    HOLDS(cuMemUnmap(other, GRAIN) == CUDA_SUCCESS);
    HOLDS(!is_there(other));
    HOLDS(cuMemAddressFree(where, GRAIN) == CUDA_SUCCESS);
    HOLDS(cuMemAddressFree(other, GRAIN) == CUDA_SUCCESS);
}

/* ---- threads that need each other ---- */

struct pair {
    _Atomic int entered; /* the peer waits for this thread */
    _Atomic int unmapped;
    cudaError_t rc; /* of the other thread */
};

/* Device 1's part of something for which both are needed, as a collective is. */
static void *enter_first(void *arg)
{
    struct pair *pair = (struct pair *)arg;
    cudaStream_t stream = NULL;
    cudaError_t rc = cudaSetDevice(1);
    if (!rc) rc = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (!rc) rc = cudaLaunchHostFunc(stream, await_flag, &pair->unmapped);
    atomic_store(&pair->entered, 1);
    if (!rc) rc = cudaStreamSynchronize(stream);
    if (!rc) rc = cudaStreamDestroy(stream);
    pair->rc = rc;
    return NULL;
}

static void two_threads(bool narrow)
{
    struct pair pair = {0, 0, cudaErrorUnknown};
    pthread_t thread;
    CUdeviceptr where = make_part();
    HOLDS(pthread_create(&thread, NULL, enter_first, &pair) == 0);
    while (!atomic_load(&pair.entered)) {
        sched_yield();
    }
    if (narrow) allow(where, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    if (!narrow) HOLDS(cuMemUnmap(where, GRAIN) == CUDA_SUCCESS);
    atomic_store(&pair.unmapped, 1); /* this thread's part */
    pthread_join(thread, NULL);
    HOLDS(pair.rc == cudaSuccess);
    if (narrow) HOLDS(cuMemUnmap(where, GRAIN) == CUDA_SUCCESS);
    HOLDS(cuMemAddressFree(where, GRAIN) == CUDA_SUCCESS);
}

/* ---- memory of another process ---- */

/* The same for what was closed. */
static void closed_in_the_end(char *ptr)
{
    cudaStream_t stream = busy_stream();
    WORKS(cudaIpcCloseMemHandle(ptr));
    HOLDS(is_there((CUdeviceptr)ptr));
    end_work(stream);
    while (is_there((CUdeviceptr)ptr)) {
        sched_yield();
    }
}

static int close_in_use(void)
{
    cudaIpcMemHandle_t handle;
    char *ptr = NULL, *copy = NULL;
    if (read(STDIN_FILENO, &handle, sizeof(handle)) != (ssize_t)sizeof(handle)) return 1;
    WORKS(cudaIpcOpenMemHandle((void **)&ptr, handle, cudaIpcMemLazyEnablePeerAccess));
    WORKS(cudaMalloc((void **)&copy, GRAIN));
    cudaStream_t stream = busy_stream();
    WORKS(cudaMemcpyAsync(copy, ptr, GRAIN, cudaMemcpyDefault, stream));
    WORKS(cudaIpcCloseMemHandle(ptr));
    ANSWERS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(ptr));
    WORKS(cudaIpcOpenMemHandle((void **)&ptr, handle, cudaIpcMemLazyEnablePeerAccess));
    end_work(stream);
    all_sevens(copy);
    all_sevens(ptr);
    closed_in_the_end(ptr);
    WORKS(cudaFree(copy));
    return finish("unmapping, another process");
}

static int start_again(const char *program, const cudaIpcMemHandle_t *handle)
{
    int ends[2], status = 1;
    if (pipe(ends)) return 1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(program, program, "close", (char *)NULL);
        _exit(127);
    }
    close(ends[0]);
    if (write(ends[1], handle, sizeof(*handle)) != (ssize_t)sizeof(*handle)) failures++;
    close(ends[1]);
    waitpid(pid, &status, 0);
    return status;
}

int main(int argc, char **argv)
{
    cudaIpcMemHandle_t handle;
    char *ptr = NULL;
    if (argc > 1) return close_in_use();
    unmapped_in_use();
    mapped_again_in_use();
    narrowed_in_use();
    gone_in_the_end();
    two_threads(false);
    two_threads(true);
    WORKS(cudaMalloc((void **)&ptr, GRAIN));
    WORKS(cudaMemset(ptr, 7, GRAIN));
    WORKS(cudaDeviceSynchronize());
    WORKS(cudaIpcGetMemHandle(&handle, ptr));
    HOLDS(start_again(argv[0], &handle) == 0);
    WORKS(cudaFree(ptr));
    return finish("unmapping");
}
