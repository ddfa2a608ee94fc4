/* Collectives with options of their own: every one with and without, right results whatever is
 * selected, refusals that leave the communicator in order, the launch-completion event.
 * usage: coll_config MODE      MODE: threads, processes */
#include "../harness/harness.h"

#include <string.h>

enum { N = 4, COUNT = 3000, BLOCK = COUNT / N };

struct job {
    struct harness_rank *rank;
    int32_t *in, *out; /* COUNT elements each */
    const ncclCollConfig_t *config;
    bool alone; /* the only rank of its process: no other's sentence is the last one */
};

static ncclResult_t run(const struct job *job, int func)
{
    const struct harness_rank *r = job->rank;
    const ncclCollConfig_t *config = job->config;
    const int32_t *in = job->in;
    switch (func) {
    case 0:
        return ncclAllReduceConfig(in, job->out, COUNT, ncclInt32, ncclSum, r->comm, r->stream,
                                   config);
    case 1:
        return ncclReduceConfig(in, job->out, COUNT, ncclInt32, ncclSum, 1, r->comm, r->stream,
                                config);
    case 2:
        return ncclBroadcastConfig(in, job->out, COUNT, ncclInt32, 1, r->comm, r->stream, config);
    case 3: return ncclAllGatherConfig(in, job->out, BLOCK, ncclInt32, r->comm, r->stream, config);
    case 4:
        return ncclReduceScatterConfig(in, job->out, BLOCK, ncclInt32, ncclSum, r->comm, r->stream,
                                       config);
    case 5: return ncclAlltoAllConfig(in, job->out, BLOCK, ncclInt32, r->comm, r->stream, config);
    case 6: return ncclGatherConfig(in, job->out, BLOCK, ncclInt32, 1, r->comm, r->stream, config);
    default:
        return ncclScatterConfig(in, job->out, BLOCK, ncclInt32, 1, r->comm, r->stream, config);
    }
}

static int32_t element(int rank, int index)
{
    return rank * 100000 + index;
}

static int32_t sum(int index)
{
    int32_t all = 0;
    for (int r = 0; r < N; r++)
        all += element(r, index);
    return all;
}

/* Element `index` of out after operation `func`; -1: not written. */
static int32_t wanted(int func, int rank, int index)
{
    int block = index / BLOCK, within = index % BLOCK;
    switch (func) {
    case 0: return sum(index);
    case 1: return rank == 1 ? sum(index) : -1;
    case 2: return element(1, index);
    case 3: return element(block, within);
    case 4: return block ? -1 : sum(rank * BLOCK + within);
    case 5: return element(block, rank * BLOCK + within);
    case 6: return rank == 1 ? element(block, within) : -1;
    default: return block ? -1 : element(1, rank * BLOCK + within);
    }
}

static void check_all(struct job *job, const char *selection)
{
    for (int func = 0; func < 8; func++) {
        for (int i = 0; i < COUNT; i++) {
            job->in[i] = element(job->rank->rank, i);
            job->out[i] = -1;
        }
        NCCL(run(job, func));
        CUDA(cudaStreamSynchronize(job->rank->stream));
        for (int i = 0; i < COUNT; i++) {
            int32_t want = wanted(func, job->rank->rank, i);
            if (job->out[i] == want) continue;
            harness_fail(__FILE__, __LINE__, "selection %s, function %d, rank %d, [%d]: %d, not %d",
                         selection, func, job->rank->rank, i, job->out[i], want);
        }
    }
}

static void check_selections(struct job *job)
{
    static const char *const selections[] = {
        NULL, "", "RING", "tree", "ring_simple+^tree", "NVLS,ONESHOT", "DIRECT", "^DIRECT"};
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    job->config = NULL;
    check_all(job, "none");
    job->config = &config;
    config.forceAlgSelection = 0; /* not every function has a tree */
    for (size_t i = 0; i < sizeof(selections) / sizeof(selections[0]); i++) {
        config.algSelection = selections[i];
        config.minCTAs = i % 3 ? 2 : NCCL_CONFIG_UNDEF_INT;
        config.maxCTAs = i % 2 ? 1 : 1000; /* the latter is ignored */
        config.userProfilerTag = i;
        check_all(job, selections[i] ? selections[i] : "NULL");
    }
    config.size = 64; /* as of 2.31: what follows is not looked at */
    config.version = 23102;
    memset(&config.launchCompletionEvent, 0x5a, sizeof(config.launchCompletionEvent));
    config.algSelection = NULL;
    check_all(job, "2.31");
}

static void check_refusals(struct job *job)
{
    const ncclCollConfig_t fresh = NCCL_COLLCONFIG_INITIALIZER;
    ncclCollConfig_t config = fresh;
    cudaEvent_t timed;
    CUDA(cudaEventCreate(&timed));
    job->config = &config;
    config.magic = 0;
    CHECK(run(job, 0) == ncclInvalidArgument);
    config = fresh;
    config.size = 8;
    CHECK(run(job, 0) == ncclInvalidArgument);
    config = fresh;
    config.algSelection = "RING++";
    CHECK(run(job, 0) == ncclInvalidArgument);
    if (job->alone) CHECK(strstr(ncclGetLastError(NULL), "RING++"));
    config = fresh;
    config.forceAlgSelection = 2;
    CHECK(run(job, 0) == ncclInvalidArgument);
    config = fresh;
    config.launchCompletionEvent = timed;
    CHECK(run(job, 0) == ncclInvalidArgument);
    config = fresh;
    config.algSelection = "COLLNET";
    CHECK(run(job, 0) == ncclInvalidUsage);
    CHECK(run(job, 5) == ncclInvalidUsage);
    CHECK(ncclAllReduceConfig(NULL, NULL, 1, ncclInt32, ncclSum, NULL, job->rank->stream,
                              &config) == ncclInvalidArgument);
    CUDA(cudaEventDestroy(timed));
    job->config = NULL;
    check_all(job, "after refusals");
}

static void wait_for_gate(void *gate)
{
    while (!__atomic_load_n((int *)gate, __ATOMIC_ACQUIRE))
        ;
}

/* Not reached while the operation cannot begin; reached when it can; once per group. */
static void check_event(struct job *job)
{
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    cudaStream_t stream = job->rank->stream;
    int gate = 0;
    CUDA(cudaEventCreateWithFlags(&config.launchCompletionEvent, cudaEventDisableTiming));
    job->config = &config;
    CUDA(cudaLaunchHostFunc(stream, wait_for_gate, &gate));
    NCCL(run(job, 0));
    CHECK(cudaEventQuery(config.launchCompletionEvent) == cudaErrorNotReady);
    __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
    CUDA(cudaEventSynchronize(config.launchCompletionEvent));
    CUDA(cudaStreamSynchronize(stream));
    NCCL(ncclGroupStart());
    NCCL(run(job, 0));
    NCCL(run(job, 2));
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
    check_all(job, "event");
    CUDA(cudaEventDestroy(config.launchCompletionEvent));
}

static void body(struct harness_rank *rank)
{
    struct job job = {.rank = rank, .alone = rank->arg};
    job.in = harness_device_alloc(COUNT * sizeof(int32_t));
    job.out = harness_device_alloc(COUNT * sizeof(int32_t));
    check_selections(&job);
    check_refusals(&job);
    check_event(&job);
    CUDA(cudaFree(job.in));
    CUDA(cudaFree(job.out));
}

int main(int argc, char **argv)
{
    bool alone = true;
    if (argc > 1 && !strcmp(argv[1], "processes")) {
        harness_processes(N, body, &alone, 0);
    } else {
        harness_threads(N, body, NULL, 0);
    }
    return 0;
}
