/* `graph-replay`: 1,000 replays with changing contents, interleaved with direct calls and with a
 * second graph of the same communicator. The rooms plan and tune are compiled into this program
 * with a hook at every function, which counts: launches and their runs enter neither. */
#include "../harness/harness.h"

#include <pthread.h>
#include <stdatomic.h>

enum { COUNT = 512, REPLAYS = 1000 };

static _Atomic long entered; /* functions of plan and tune, in this process */

/* What the compiler calls at each of their functions. */
void __cyg_profile_func_enter(void *function, void *site) __attribute__((no_instrument_function));
void __cyg_profile_func_exit(void *function, void *site) __attribute__((no_instrument_function));
void __cyg_profile_func_enter(void *function, void *site)
{
    (void)function;
    (void)site;
    atomic_fetch_add_explicit(&entered, 1, memory_order_relaxed);
}
void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function;
    (void)site;
}

struct replay {
    struct harness_rank *rank;
    pthread_barrier_t *together; /* NULL: alone in the process */
    float *send, *one, *two;
    cudaGraphExec_t first, second;
};

static cudaGraphExec_t capture(struct harness_rank *r, const float *send, float *recv, int calls)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CUDA(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; i++) {
        NCCL(ncclAllReduce(i ? recv : send, recv, COUNT, ncclFloat, ncclSum, r->comm, r->stream));
    }
    CUDA(cudaStreamEndCapture(r->stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    CUDA(cudaGraphDestroy(graph));
    return exec;
}

static void check(const float *got, float want, const char *what, int turn)
{
    for (int i = 0; i < COUNT; i++) {
        if (got[i] != want)
            harness_fail(__FILE__, __LINE__, "%s, turn %d: element %d is %g, not %g", what, turn, i,
                         (double)got[i], (double)want);
    }
}

static void barrier(const struct replay *p)
{
    if (p->together) pthread_barrier_wait(p->together);
}

/* Only launches happen in this process between the two barriers. */
static void replay(const struct replay *p, int turn)
{
    float n = (float)p->rank->nranks;
    float sum = (float)(turn % 100) * n + n * (n - 1) / 2;
    bool both = turn % 3 == 0;
    for (int i = 0; i < COUNT; i++) {
        p->send[i] = (float)(turn % 100 + p->rank->rank);
    }
    barrier(p);
    long before = atomic_load(&entered);
    barrier(p);
    CUDA(cudaGraphLaunch(p->first, p->rank->stream));
    if (both) CUDA(cudaGraphLaunch(p->second, p->rank->stream));
    CUDA(cudaStreamSynchronize(p->rank->stream));
    barrier(p);
    long calls = atomic_load(&entered) - before;
    if (calls)
        harness_fail(__FILE__, __LINE__, "turn %d: a replay made %ld calls in plan or tune", turn,
                     calls);
    barrier(p);
    check(p->one, sum, "first graph", turn);
    if (both) check(p->two, sum * n, "second graph", turn);
}

static void direct(const struct replay *p, int turn)
{
    struct harness_rank *r = p->rank;
    long before = atomic_load(&entered);
    NCCL(ncclAllReduce(p->send, p->send, COUNT, ncclFloat, ncclMax, r->comm, r->stream));
    CUDA(cudaStreamSynchronize(r->stream));
    check(p->send, (float)(turn % 100 + r->nranks - 1), "direct call", turn);
    if (atomic_load(&entered) == before)
        harness_fail(__FILE__, __LINE__, "a direct call was not counted: the hooks are dead");
}

/* Launches and direct calls one behind the other, nothing waited for in between. */
static void mixed(const struct replay *p, int turn)
{
    struct harness_rank *r = p->rank;
    float n = (float)r->nranks;
    for (int i = 0; i < COUNT; i++) {
        p->send[i] = 1;
    }
    CUDA(cudaGraphLaunch(p->first, r->stream));
    NCCL(ncclAllReduce(p->one, p->one, COUNT, ncclFloat, ncclSum, r->comm, r->stream));
    CUDA(cudaGraphLaunch(p->second, r->stream));
    NCCL(ncclAllReduce(p->one, p->one, COUNT, ncclFloat, ncclSum, r->comm, r->stream));
    CUDA(cudaStreamSynchronize(r->stream));
    check(p->one, n * n * n, "direct calls between launches", turn);
    check(p->two, n * n, "second graph between direct calls", turn);
}

static void run(struct harness_rank *r)
{
    struct replay p = {.rank = r, .together = r->arg};
    p.send = harness_device_alloc(COUNT * sizeof(float));
    p.one = harness_device_alloc(COUNT * sizeof(float));
    p.two = harness_device_alloc(COUNT * sizeof(float));
    p.first = capture(r, p.send, p.one, 1);
    p.second = capture(r, p.send, p.two, 2);
    for (int turn = 0; turn < REPLAYS; turn++) {
        replay(&p, turn);
        if (turn % 5 == 0) direct(&p, turn);
        if (turn % 7 == 0) mixed(&p, turn);
    }
    CUDA(cudaGraphExecDestroy(p.first));
    CUDA(cudaGraphExecDestroy(p.second));
    CUDA(cudaFree(p.send));
    CUDA(cudaFree(p.one));
    CUDA(cudaFree(p.two));
}

int main(void)
{
    pthread_barrier_t together;
    harness_processes(2, run, NULL, 0);
    pthread_barrier_init(&together, NULL, 3);
    harness_threads(3, run, &together, 0);
    pthread_barrier_destroy(&together);
    printf("graph-replay: ok\n");
    return 0;
}
