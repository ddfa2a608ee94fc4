/* How things end: host functions that wait for other streams' work, destruction of what still runs,
 * memory that is exhausted, handles that are none, forks, and programs that exit in the middle. The
 * program starts itself again for the last ones. Run with TUTTI_DEVICE_MEMORY=64M. */
#include "conform.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int flag;

static void set_flag(void *arg)
{
    atomic_store((_Atomic int *)arg, 1);
}

static void await_flag(void *arg)
{
    while (!atomic_load((_Atomic int *)arg)) {
        sched_yield();
    }
}

static void count_up(void *arg)
{
    atomic_fetch_add((_Atomic int *)arg, 1);
}

/* ---- host functions that block ---- */

enum { MANY = 80 };

static void blocked_functions(void)
{
    cudaStream_t first = NULL, second = NULL, many[MANY];
    _Atomic int count = 0;
    WORKS(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    WORKS(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    atomic_store(&flag, 0);
    WORKS(cudaLaunchHostFunc(first, await_flag, &flag));
    WORKS(cudaLaunchHostFunc(second, set_flag, &flag));
    WORKS(cudaStreamSynchronize(first)); /* who waits sits in the function himself */
    WORKS(cudaStreamSynchronize(second));
    atomic_store(&flag, 0);
    for (int i = 0; i < MANY; i++) { /* far more than there are cores */
        WORKS(cudaStreamCreateWithFlags(&many[i], cudaStreamNonBlocking));
        WORKS(cudaLaunchHostFunc(many[i], await_flag, &flag));
        WORKS(cudaLaunchHostFunc(many[i], count_up, &count));
    }
    WORKS(cudaLaunchHostFunc(second, set_flag, &flag));
    WORKS(cudaDeviceSynchronize());
    HOLDS(count == MANY);
    for (int i = 0; i < MANY; i++) {
        WORKS(cudaStreamDestroy(many[i]));
    }
    WORKS(cudaStreamDestroy(first));
    WORKS(cudaStreamDestroy(second));
}

/* A copy within the devices is put behind the others' work; the caller does not wait for it. */
static void copy_behind_blocked(void)
{
    cudaStream_t stream = NULL;
    int *device = NULL, back = 0, number = 7;
    WORKS(cudaMalloc((void **)&device, 64));
    WORKS(cudaMemcpy(device, &number, sizeof(number), cudaMemcpyHostToDevice));
    WORKS(cudaStreamCreate(&stream));
    atomic_store(&flag, 0);
    WORKS(cudaLaunchHostFunc(stream, await_flag, &flag));
    WORKS(cudaMemcpy(device + 1, device, sizeof(number), cudaMemcpyDeviceToDevice));
    atomic_store(&flag, 1);
    WORKS(cudaMemcpy(&back, device + 1, sizeof(back), cudaMemcpyDeviceToHost));
    HOLDS(back == 7);
    WORKS(cudaStreamDestroy(stream));
    WORKS(cudaFree(device));
}

/* ---- destruction of what still runs ---- */

static void destroyed_in_use(void)
{
    cudaStream_t stream = NULL, other = NULL;
    cudaEvent_t event = NULL;
    _Atomic int count = 0;
    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WORKS(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    WORKS(cudaEventCreate(&event));
    atomic_store(&flag, 0);
    WORKS(cudaLaunchHostFunc(stream, await_flag, &flag));
    WORKS(cudaEventRecord(event, stream));
    WORKS(cudaStreamWaitEvent(other, event, 0));
    WORKS(cudaLaunchHostFunc(other, count_up, &count));
    WORKS(cudaEventDestroy(event)); /* the wait holds */
    WORKS(cudaStreamDestroy(stream));
    HOLDS(cudaStreamQuery(other) == cudaErrorNotReady && count == 0);
    cudaGetLastError();
    ANSWERS(cudaErrorInvalidResourceHandle, cudaLaunchHostFunc(stream, count_up, &count));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaEventSynchronize(event));
    atomic_store(&flag, 1);
    WORKS(cudaStreamSynchronize(other));
    HOLDS(count == 1);
    WORKS(cudaStreamDestroy(other));
}

static void sleep_and_count(void *arg)
{
    usleep(20000);
    count_up(arg);
}

/* The device's work is not done before that of its destroyed streams is. */
static void destroyed_and_awaited(void)
{
    _Atomic int count = 0;
    for (unsigned flags = cudaStreamDefault; flags <= cudaStreamNonBlocking; flags++) {
        cudaStream_t stream = NULL;
        WORKS(cudaStreamCreateWithFlags(&stream, flags));
        WORKS(cudaLaunchHostFunc(stream, sleep_and_count, &count));
        WORKS(cudaLaunchHostFunc(stream, count_up, &count));
        WORKS(cudaStreamDestroy(stream));
        WORKS(cudaDeviceSynchronize());
        HOLDS(count == 2 * (int)(flags + 1));
    }
}

/* ---- memory ---- */

enum memory { MEMORY_PINNED, MEMORY_MANAGED, MEMORY_DEVICE, MEMORY_POOL, MEMORIES };

static cudaError_t allocate(enum memory kind, char **ptr, size_t len)
{
    switch (kind) {
    case MEMORY_PINNED: return cudaMallocHost((void **)ptr, len);
    case MEMORY_MANAGED: return cudaMallocManaged((void **)ptr, len, cudaMemAttachGlobal);
    case MEMORY_POOL: return cudaMallocAsync((void **)ptr, len, NULL);
    default: return cudaMalloc((void **)ptr, len);
    }
}

static cudaError_t release(enum memory kind, char *ptr)
{
    return kind == MEMORY_PINNED ? cudaFreeHost(ptr) : cudaFree(ptr);
}

/* Memory that another device's work still needs: freeing does not wait for that work, which may be
 * waiting for this thread, and takes nothing away from it. */
static void freed_before_use(enum memory kind)
{
    enum { LEN = 64 << 10 };
    cudaStream_t stream = NULL;
    char *source = NULL, *other = NULL, *device = NULL;
    static char seen[LEN];
    atomic_store(&flag, 0);
    WORKS(cudaSetDevice(1));
    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WORKS(cudaMalloc((void **)&device, LEN));
    WORKS(cudaSetDevice(0));
    WORKS(allocate(kind, &source, LEN));
    WORKS(cudaMemset(source, 7, LEN));
    WORKS(cudaDeviceSynchronize());
    WORKS(cudaLaunchHostFunc(stream, await_flag, &flag));
    WORKS(cudaMemcpyAsync(device, source, LEN, cudaMemcpyDefault, stream));
    WORKS(release(kind, source));
    ANSWERS(cudaErrorInvalidValue, release(kind, source));
    WORKS(allocate(kind, &other, LEN));
    HOLDS(other + LEN <= source || source + LEN <= other);
    WORKS(cudaMemset(other, 9, LEN));
    WORKS(cudaDeviceSynchronize());
    atomic_store(&flag, 1);
    WORKS(cudaStreamSynchronize(stream));
    WORKS(cudaMemcpy(seen, device, LEN, cudaMemcpyDefault));
    HOLDS(seen[0] == 7 && seen[LEN - 1] == 7);
    WORKS(release(kind, other));
    WORKS(cudaFree(device));
    WORKS(cudaStreamDestroy(stream));
}

/* What was freed so is had again when that work is done, though it is asked for before. */
static void freed_and_wanted(void)
{
    const size_t most = (size_t)48 << 20;
    cudaStream_t stream = NULL;
    _Atomic int count = 0;
    void *ptr = NULL;
    WORKS(cudaSetDevice(1));
    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WORKS(cudaSetDevice(0));
    WORKS(cudaMalloc(&ptr, most));
    WORKS(cudaLaunchHostFunc(stream, sleep_and_count, &count));
    WORKS(cudaFree(ptr));
    WORKS(cudaMalloc(&ptr, most));
    WORKS(cudaFree(ptr));
    WORKS(cudaStreamSynchronize(stream));
    WORKS(cudaStreamDestroy(stream));
}

static void exhausted(void)
{
    enum { MIB = 1 << 20, MOST = 200 };
    void *blocks[MOST], *more = NULL;
    size_t free_bytes = 0, total = 0;
    int count = 0;
    WORKS(cudaMemGetInfo(&free_bytes, &total));
    HOLDS(total == (size_t)64 * MIB);
    while (count < MOST && cudaMalloc(&blocks[count], MIB) == cudaSuccess) {
        count++;
    }
    HOLDS(count > 56 && count <= 64);
    HOLDS(cudaGetLastError() == cudaErrorMemoryAllocation);
    ANSWERS(cudaErrorMemoryAllocation, cudaMalloc(&more, 8 * MIB));
    ANSWERS(cudaErrorMemoryAllocation, cudaMallocAsync(&more, 8 * MIB, NULL));
    WORKS(cudaMemGetInfo(&free_bytes, &total));
    HOLDS(free_bytes < 8 * MIB);
    for (int i = 0; i < count; i++) {
        WORKS(cudaFree(blocks[i]));
    }
    WORKS(cudaMalloc(&more, (size_t)60 * MIB));
    WORKS(cudaMemset(more, 1, (size_t)60 * MIB));
    WORKS(cudaFree(more));
    ANSWERS(cudaErrorMemoryAllocation, cudaMalloc(&more, SIZE_MAX));
    ANSWERS(cudaErrorMemoryAllocation, cudaMalloc(&more, SIZE_MAX / 2 + 1));
}

/* ---- handles that are none ---- */

static void bad_handles(void)
{
    char bytes[4096];
    char *ptr = NULL;
    cudaStream_t stream = NULL;
    WORKS(cudaStreamCreate(&stream));
    WORKS(cudaMalloc((void **)&ptr, 4096));
    memset(bytes, 0x65, sizeof(bytes));
    const void *const wrong[] = {bytes + 64, (char *)stream + 1, (char *)stream + 8,    ptr,
                                 (void *)3,  (void *)-1,         (void *)0x123456789000};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        void *handle = (void *)(size_t)wrong[i];
        ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize((cudaStream_t)handle));
        ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamDestroy((cudaStream_t)handle));
        ANSWERS(cudaErrorInvalidResourceHandle, cudaEventRecord((cudaEvent_t)handle, NULL));
        ANSWERS(cudaErrorInvalidResourceHandle, cudaEventDestroy((cudaEvent_t)handle));
        ANSWERS(cudaErrorInvalidValue, cudaGraphDestroy((cudaGraph_t)handle));
        ANSWERS(cudaErrorInvalidValue, cudaGraphExecDestroy((cudaGraphExec_t)handle));
        ANSWERS(cudaErrorInvalidValue, cudaGraphDestroyNode((cudaGraphNode_t)handle));
        ANSWERS(cudaErrorInvalidValue, cudaMemPoolDestroy((cudaMemPool_t)handle));
    }
    ANSWERS(cudaErrorInvalidResourceHandle, cudaEventRecord((cudaEvent_t)stream, NULL));
    WORKS(cudaFree(ptr));
    WORKS(cudaStreamDestroy(stream));
}

/* ---- capture modes ---- */

struct elsewhere {
    enum cudaStreamCaptureMode own;
    cudaError_t rc;
    cudaStream_t end; /* not NULL: end this capture instead of allocating */
};

static void *allocate_elsewhere(void *arg)
{
    struct elsewhere *what = (struct elsewhere *)arg;
    enum cudaStreamCaptureMode mode = what->own;
    cudaGraph_t graph = NULL;
    void *ptr = NULL;
    cudaThreadExchangeStreamCaptureMode(&mode);
    what->rc = what->end ? cudaStreamEndCapture(what->end, &graph) : cudaMalloc(&ptr, 64);
    if (ptr) cudaFree(ptr);
    if (graph) cudaGraphDestroy(graph);
    return NULL;
}

static cudaError_t elsewhere(enum cudaStreamCaptureMode own, cudaStream_t end)
{
    struct elsewhere what = {own, cudaSuccess, end};
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate_elsewhere, &what)) return cudaErrorUnknown;
    pthread_join(thread, NULL);
    return what.rc;
}

static void capture_modes(void)
{
    static const enum cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeGlobal,
                                                       cudaStreamCaptureModeThreadLocal,
                                                       cudaStreamCaptureModeRelaxed};
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    void *ptr = NULL;
    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int capture = 0; capture < 3; capture++) {
        for (int own = 0; own < 3; own++) { /* of the other thread */
            bool refused = capture == 0 && own == 0;
            WORKS(cudaStreamBeginCapture(stream, modes[capture]));
            HOLDS(elsewhere(modes[own], NULL) ==
                  (refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess));
            ANSWERS(refused ? cudaErrorStreamCaptureInvalidated : cudaSuccess,
                    cudaStreamEndCapture(stream, &graph));
            if (graph) WORKS(cudaGraphDestroy(graph));
        }
        WORKS(cudaStreamBeginCapture(stream, modes[capture]));
        ANSWERS(capture == 2 ? cudaSuccess : cudaErrorStreamCaptureUnsupported,
                cudaMalloc(&ptr, 64));
        if (capture == 2) WORKS(cudaFree(ptr));
        ANSWERS(capture == 2 ? cudaSuccess : cudaErrorStreamCaptureInvalidated,
                cudaStreamEndCapture(stream, &graph));
        if (graph) WORKS(cudaGraphDestroy(graph));
        WORKS(cudaStreamBeginCapture(stream, modes[capture]));
        HOLDS(elsewhere(cudaStreamCaptureModeGlobal, stream) ==
              (capture == 2 ? cudaSuccess : cudaErrorStreamCaptureWrongThread));
        ANSWERS(capture == 2 ? cudaErrorIllegalState : cudaSuccess,
                cudaStreamEndCapture(stream, &graph));
        if (graph) WORKS(cudaGraphDestroy(graph));
    }
    WORKS(cudaStreamDestroy(stream));
}

/* ---- forks and exits ---- */

static int in_fork(void)
{
    int status = 1;
    void *before = NULL;
    WORKS(cudaMalloc(&before, 8));
    pid_t pid = fork();
    if (pid == 0) {
        void *ptr = NULL;
        bool good = cudaMalloc(&ptr, 8) == cudaErrorInitializationError &&
                    cudaStreamSynchronize(NULL) == cudaErrorInitializationError &&
                    cudaDeviceSynchronize() == cudaErrorInitializationError &&
                    cudaFree(before) == cudaErrorInitializationError;
        _exit(good ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    WORKS(cudaFree(before));
    return status;
}

/* With work under way, and another thread inside of the runtime. */
static void *busy(void *arg)
{
    cudaStream_t stream = NULL;
    cudaStreamCreate(&stream);
    for (;;) {
        cudaMemsetAsync(arg, 1, 4096, stream);
        cudaLaunchHostFunc(stream, count_up, &flag);
        cudaStreamSynchronize(stream);
    }
    return NULL;
}

static int exit_early(void)
{
    cudaStream_t stream = NULL;
    pthread_t thread;
    void *ptr = NULL;
    if (cudaMalloc(&ptr, 4096) || pthread_create(&thread, NULL, busy, ptr)) return 1;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    while (atomic_load(&flag) < 100) {
        sched_yield();
    }
    for (int i = 0; i < 1000; i++) {
        cudaLaunchHostFunc(stream, count_up, &flag);
    }
    exit(0);
}

static int start_again(const char *program, const char *how)
{
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        execl(program, program, how, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return status;
}

int main(int argc, char **argv)
{
    if (argc > 1) return exit_early();
    blocked_functions();
    copy_behind_blocked();
    destroyed_in_use();
    destroyed_and_awaited();
    for (enum memory kind = 0; kind < MEMORIES; kind++) {
        freed_before_use(kind);
    }
    freed_and_wanted();
    exhausted();
    bad_handles();
    capture_modes();
    HOLDS(in_fork() == 0);
    for (int i = 0; i < 5; i++) {
        HOLDS(start_again(argv[0], "exit") == 0);
    }
    return finish("endings");
}
