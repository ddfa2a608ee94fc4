/* Makes ranks for tests; forked ranks share one page through which rank 0 hands out the id. */
#include "harness.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void harness_fail(const char *file, int line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "%s:%d: FAILED: ", file, line);
    vfprintf(stderr, fmt, args);
    fprintf(stderr, " (pid %d)\n", (int)getpid());
    va_end(args);
    _exit(1);
}

void harness_skip(const char *why)
{
    printf("SKIP: %s\n", why);
    exit(77);
}

void harness_nccl(ncclResult_t rc, const char *file, int line, const char *call)
{
    if (rc == ncclSuccess) return;
    harness_fail(file, line, "%s: %s (%s)", call, ncclGetErrorString(rc), ncclGetLastError(NULL));
}

void harness_cuda(cudaError_t err, const char *file, int line, const char *call)
{
    if (err == cudaSuccess) return;
    harness_fail(file, line, "%s: %s", call, cudaGetErrorString(err));
}

double harness_now_sec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

ncclResult_t harness_wait(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
        NCCL(ncclCommGetAsyncError(comm, &state));
        usleep(200);
    }
    return state;
}

void *harness_device_alloc(size_t bytes)
{
    void *ptr = NULL;
    CUDA(cudaMalloc(&ptr, bytes));
    return ptr;
}

struct start {
    struct harness_rank rank;
    harness_fn *fn;
    unsigned flags;
};

static void run_rank(struct start *start)
{
    struct harness_rank *r = &start->rank;
    int ndevices = 0;
    CUDA(cudaGetDeviceCount(&ndevices));
    r->device = r->rank % ndevices;
    CUDA(cudaSetDevice(r->device));
    CUDA(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking));
    if (!(start->flags & HARNESS_NO_COMM))
        NCCL(ncclCommInitRank(&r->comm, r->nranks, r->id, r->rank));
    start->fn(r);
    if (r->comm) NCCL(ncclCommDestroy(r->comm));
    CUDA(cudaStreamDestroy(r->stream));
}

static void *rank_thread(void *arg)
{
    run_rank(arg);
    return NULL;
}

void harness_threads(int n, harness_fn *fn, void *arg, unsigned flags)
{
    struct start *starts = calloc((size_t)n, sizeof(*starts));
    pthread_t *threads = calloc((size_t)n, sizeof(*threads));
    ncclUniqueId id;
    CHECK(starts && threads);
    NCCL(ncclGetUniqueId(&id));
    for (int r = 0; r < n; r++) {
        starts[r] = (struct start){{.rank = r, .nranks = n, .id = id, .arg = arg}, fn, flags};
        CHECK(!pthread_create(&threads[r], NULL, rank_thread, &starts[r]));
    }
    for (int r = 0; r < n; r++) {
        pthread_join(threads[r], NULL);
    }
    free(starts);
    free(threads);
}

struct shared_page {
    _Atomic int ready;
    ncclUniqueId id;
};

static void child_main(struct shared_page *page, int rank, int n, const struct start *plan)
{
    struct start start = *plan;
    start.rank.rank = rank;
    start.rank.nranks = n;
    if (rank == 0) {
        NCCL(ncclGetUniqueId(&page->id));
        atomic_store(&page->ready, 1);
    }
    while (!atomic_load(&page->ready)) {
        usleep(200);
    }
    start.rank.id = page->id;
    run_rank(&start);
    exit(0);
}

void harness_processes(int n, harness_fn *fn, void *arg, unsigned flags)
{
    struct start plan = {{.arg = arg}, fn, flags};
    int failed = 0;
    struct shared_page *page =
        mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    for (int r = 0; r < n; r++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) child_main(page, r, n, &plan);
    }
    for (int r = 0; r < n; r++) {
        int status = 0;
        wait(&status);
        if (WIFSIGNALED(status))
            fprintf(stderr, "a rank was ended by signal %d\n", WTERMSIG(status));
        if (status && !failed) failed = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        if (failed)
            break; /* the others would wait for it; they go with this process group's test runner */
    }
    munmap(page, sizeof(*page));
    if (failed) exit(failed);
}
