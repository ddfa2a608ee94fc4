/* Measures one line: every thread drives its ranks; warm-up, timed calls, then a checked call with
 * fresh data. All ranks meet before the clock starts. */
#include "perf.h"

#include <cuda_runtime.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct lane { /* what one thread does */
    struct perf_job *job;
    const struct perf_case *pc;
    pthread_barrier_t *barrier;
    int first, count;
    int agg; /* calls per group */
    double usec, cpu_usec;
    int64_t wrong;
    bool failed;
};

static double now_usec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void buffers_at(const struct lane *lane, const struct perf_rank *r, char **send, char **recv)
{
    const struct perf_options *o = &lane->job->options;
    size_t elem = perf_type_bytes(lane->pc->type);
    size_t shift = (size_t)o->unalign * elem;
    *recv = r->recv + shift;
    *send = r->send + shift;
    if (lane->pc->in_place) {
        size_t send_at;
        size_t recv_at;
        perf_in_place(lane->pc, r->rank, lane->job->nranks, &send_at, &recv_at);
        *send = r->recv + shift + send_at * elem;
        *recv = r->recv + shift + recv_at * elem;
    }
}

static bool fill(const struct lane *lane)
{
    const struct perf_case *pc = lane->pc;
    size_t elem = perf_type_bytes(pc->type);
    size_t blocks = perf_send_elems(pc, lane->job->nranks) / (pc->count ? pc->count : 1);
    for (int i = lane->first; i < lane->first + lane->count; i++) {
        struct perf_rank *r = &lane->job->ranks[i];
        char *send;
        char *recv;
        buffers_at(lane, r, &send, &recv);
        cudaSetDevice(r->device);
        if (!pc->in_place) cudaMemset(recv, 0xa5, perf_recv_elems(pc, lane->job->nranks) * elem);
        perf_fill_input(pc, r->rank, lane->job->nranks, blocks, r->check);
        if (perf_cuda_failed(
                cudaMemcpy(send, r->check, blocks * pc->count * elem, cudaMemcpyHostToDevice),
                "cudaMemcpy"))
            return false;
    }
    return true;
}

static ncclRedOp_t op_of(const struct lane *lane, struct perf_rank *r)
{
    if (lane->pc->op < 5) return (ncclRedOp_t)lane->pc->op;
    return r->mulsum;
}

/* agg_iters calls of every rank of the lane, as one group. */
static bool call_once(const struct lane *lane)
{
    const struct perf_case *pc = lane->pc;
    bool group = (lane->count > 1 || lane->agg > 1) && !pc->operation->stepwise;
    ncclResult_t rc = group ? ncclGroupStart() : ncclSuccess;
    for (int m = 0; m < lane->agg; m++) {
        for (int i = lane->first; !rc && i < lane->first + lane->count; i++) {
            struct perf_rank *r = &lane->job->ranks[i];
            char *send;
            char *recv;
            buffers_at(lane, r, &send, &recv);
            if (lane->count > 1) cudaSetDevice(r->device);
            const struct perf_call call = {.send = send,
                                           .recv = recv,
                                           .count = pc->count,
                                           .type = (ncclDataType_t)pc->type,
                                           .op = op_of(lane, r),
                                           .root = pc->root,
                                           .comm = r->comm,
                                           .stream = r->stream};
            rc = pc->operation->run(&call);
        }
    }
    ncclResult_t ended = group ? ncclGroupEnd() : ncclSuccess;
    return !perf_nccl_failed(rc ? rc : ended, pc->operation->title);
}

static bool late(const struct lane *lane, double since_usec)
{
    const struct perf_options *o = &lane->job->options;
    if (!(o->timeout_sec > 0) || now_usec() - since_usec < o->timeout_sec * 1e6) return false;
    fprintf(stderr,
            "tutti perf: rank %d: %s of %zu bytes: the calls did not end within %g s (-T)\n",
            lane->job->ranks[lane->first].rank, lane->pc->operation->title, lane->pc->bytes,
            o->timeout_sec);
    return true;
}

static bool wait_for_timeout(const struct lane *lane, struct perf_rank *r)
{
    double until = now_usec() + lane->job->options.timeout_sec * 1e6;
    cudaError_t err = cudaErrorNotReady;
    while (err == cudaErrorNotReady && now_usec() < until) {
        err = cudaStreamQuery(r->stream);
    }
    if (err == cudaErrorNotReady) {
        fprintf(stderr, "tutti perf: rank %d: %s of %zu bytes did not end within %g s (-T)\n",
                r->rank, lane->pc->operation->title, lane->pc->bytes,
                lane->job->options.timeout_sec);
        ncclCommAbort(r->comm);
        r->comm = NULL;
        return false;
    }
    return !perf_cuda_failed((int)err, "cudaStreamQuery");
}

static bool wait_all(const struct lane *lane)
{
    for (int i = lane->first; i < lane->first + lane->count; i++) {
        struct perf_rank *r = &lane->job->ranks[i];
        ncclResult_t async = ncclSuccess;
        if (lane->count > 1) cudaSetDevice(r->device);
        if (lane->job->options.timeout_sec > 0) {
            if (!wait_for_timeout(lane, r)) return false;
        } else if (perf_cuda_failed(cudaStreamSynchronize(r->stream), "cudaStreamSynchronize")) {
            return false;
        }
        if (perf_nccl_failed(ncclCommGetAsyncError(r->comm, &async), "ncclCommGetAsyncError"))
            return false;
        if (perf_nccl_failed(async, lane->pc->operation->title)) return false;
    }
    return true;
}

static bool calls(const struct lane *lane, int count)
{
    double since = lane->job->options.timeout_sec > 0 ? now_usec() : 0;
    for (int n = 0; n < count; n++) {
        if (!call_once(lane) || late(lane, since)) return false;
        if (lane->job->options.blocking && !wait_all(lane)) return false;
    }
    return true;
}

/* All ranks of all processes: a small AllReduce on every rank of the lane. */
static bool synchronize(const struct lane *lane)
{
    ncclResult_t rc = ncclGroupStart();
    for (int i = lane->first; !rc && i < lane->first + lane->count; i++) {
        struct perf_rank *r = &lane->job->ranks[i];
        rc = ncclAllReduce(lane->job->agree_send + 8 * i, lane->job->agree_recv + 8 * i, 1,
                           ncclFloat64, ncclMax, r->comm, r->stream);
    }
    ncclResult_t ended = ncclGroupEnd();
    return !perf_own_call_failed(rc ? rc : ended, "barrier") && wait_all(lane);
}

static bool capture(const struct lane *lane, int ncalls, cudaGraphExec_t *execs)
{
    bool ok = true;
    for (int i = 0; ok && i < lane->count; i++) {
        cudaSetDevice(lane->job->ranks[lane->first + i].device);
        ok = !perf_cuda_failed(cudaStreamBeginCapture(lane->job->ranks[lane->first + i].stream,
                                                      cudaStreamCaptureModeThreadLocal),
                               "cudaStreamBeginCapture");
    }
    ok = ok && calls(lane, ncalls);
    for (int i = 0; ok && i < lane->count; i++) {
        cudaGraph_t graph = NULL;
        cudaSetDevice(lane->job->ranks[lane->first + i].device);
        ok = !perf_cuda_failed(
                 cudaStreamEndCapture(lane->job->ranks[lane->first + i].stream, &graph),
                 "cudaStreamEndCapture") &&
             !perf_cuda_failed(cudaGraphInstantiate(&execs[i], graph, 0), "cudaGraphInstantiate");
        if (graph) cudaGraphDestroy(graph);
    }
    return ok;
}

static bool launch_graphs(const struct lane *lane, int launches, const cudaGraphExec_t *execs)
{
    for (int g = 0; g < launches; g++) {
        for (int i = 0; i < lane->count; i++) {
            cudaSetDevice(lane->job->ranks[lane->first + i].device);
            if (perf_cuda_failed(
                    cudaGraphLaunch(execs[i], lane->job->ranks[lane->first + i].stream),
                    "cudaGraphLaunch"))
                return false;
        }
    }
    return true;
}

static void destroy_graphs(const struct lane *lane, const cudaGraphExec_t *execs)
{
    for (int i = 0; i < lane->count; i++) {
        if (execs[i]) cudaGraphExecDestroy(execs[i]);
    }
}

static bool timed(struct lane *lane)
{
    const struct perf_options *o = &lane->job->options;
    cudaGraphExec_t execs[PERF_MAX_LOCAL] = {NULL};
    double ncalls = (double)o->iters * o->agg_iters * (o->graph_launches ? o->graph_launches : 1);
    bool ok = calls(lane, o->warmup_iters) && wait_all(lane);
    if (ok && o->graph_launches) ok = capture(lane, o->iters, execs);
    ok = ok && synchronize(lane);
    double start = now_usec();
    ok = ok && (o->graph_launches ? launch_graphs(lane, o->graph_launches, execs)
                                  : calls(lane, o->iters));
    lane->cpu_usec = (now_usec() - start) / ncalls;
    ok = ok && wait_all(lane);
    lane->usec = (now_usec() - start) / ncalls;
    destroy_graphs(lane, execs);
    return ok;
}

/* One group of calls as they were timed: directly or from a graph. */
static bool call_as_timed(const struct lane *lane)
{
    cudaGraphExec_t execs[PERF_MAX_LOCAL] = {NULL};
    if (!lane->job->options.graph_launches) return call_once(lane) && wait_all(lane);
    bool ok = capture(lane, 1, execs) && synchronize(lane) && launch_graphs(lane, 1, execs) &&
              wait_all(lane);
    destroy_graphs(lane, execs);
    return ok;
}

static bool checked(struct lane *lane)
{
    size_t elem = perf_type_bytes(lane->pc->type);
    bool ok = fill(lane) && synchronize(lane);
    if (lane->pc->in_place) lane->agg = 1; /* a second pass would change in-place data */
    ok = ok && call_as_timed(lane);
    lane->agg = lane->job->options.agg_iters;
    for (int i = lane->first; ok && i < lane->first + lane->count; i++) {
        struct perf_rank *r = &lane->job->ranks[i];
        char *send;
        char *recv;
        buffers_at(lane, r, &send, &recv);
        size_t bytes = perf_recv_elems(lane->pc, lane->job->nranks) * elem;
        ok = !perf_cuda_failed(cudaMemcpy(r->check, recv, bytes, cudaMemcpyDeviceToHost),
                               "cudaMemcpy");
        lane->wrong += perf_count_wrong(lane->pc, r->rank, lane->job->nranks, r->check);
    }
    return ok;
}

static bool make_scalars(const struct lane *lane, bool make)
{
    unsigned char two[8] = {0};
    for (int i = lane->first; lane->pc->op == 5 && i < lane->first + lane->count; i++) {
        struct perf_rank *r = &lane->job->ranks[i];
        static const unsigned char halves[] = {
            0x00, 0x40}; /* 2.0 in the high bytes of every float type */
        double d = 2;
        float f = 2;
        two[0] = 2;
        switch (lane->pc->type) {
        case ncclFloat64: memcpy(two, &d, 8); break;
        case ncclFloat32: memcpy(two, &f, 4); break;
        case ncclFloat16:
        case ncclBfloat16: memcpy(two, halves, 2); break;
        case ncclFloat8e4m3:
        case ncclFloat8e5m2: two[0] = 0x40; break;
        default: break;
        }
        ncclResult_t rc =
            make ? ncclRedOpCreatePreMulSum(&r->mulsum, two, (ncclDataType_t)lane->pc->type,
                                            ncclScalarHostImmediate, r->comm)
                 : ncclRedOpDestroy(r->mulsum, r->comm);
        if (perf_nccl_failed(rc, "ncclRedOpCreatePreMulSum")) return false;
    }
    return true;
}

static int checks_of(const struct perf_job *job, const struct perf_case *pc)
{
    return pc->in_place && pc->operation->unchecked ? 0 : job->options.check;
}

static void *run_lane(void *arg)
{
    struct lane *lane = arg;
    bool ok = make_scalars(lane, true) && fill(lane);
    if (lane->barrier) pthread_barrier_wait(lane->barrier);
    ok = ok && timed(lane);
    for (int k = 0; ok && k < checks_of(lane->job, lane->pc); k++) {
        ok = checked(lane);
    }
    ok = ok && make_scalars(lane, false);
    lane->failed = !ok;
    return NULL;
}

static void run_lanes(struct lane *lanes, int nlanes)
{
    pthread_t threads[PERF_MAX_LOCAL];
    if (nlanes == 1) {
        run_lane(&lanes[0]);
        return;
    }
    for (int t = 0; t < nlanes; t++) {
        if (pthread_create(&threads[t], NULL, run_lane, &lanes[t])) {
            fprintf(stderr, "tutti perf: cannot start thread %d\n", t);
            _Exit(1); /* the others would wait at the barrier for ever */
        }
    }
    for (int t = 0; t < nlanes; t++) {
        pthread_join(threads[t], NULL);
    }
}

/* One figure of this process's threads, of the kind that -a asks for. */
static double combine(const struct perf_job *job, const struct lane *lanes, int nlanes)
{
    double figure = 0;
    for (int t = 0; t < nlanes; t++) {
        double own = job->options.cpu_time ? lanes[t].cpu_usec : lanes[t].usec;
        switch (job->options.average) {
        case 0: return job->proc == 0 ? own : 0;
        case 1: figure += own / nlanes; break;
        case 2: figure = t == 0 || own < figure ? own : figure; break;
        default: figure = own > figure ? own : figure; break;
        }
    }
    return figure;
}

bool perf_job_measure(struct perf_job *job, const struct perf_case *pc, struct perf_result *result)
{
    struct lane lanes[PERF_MAX_LOCAL];
    pthread_barrier_t barrier;
    static const ncclRedOp_t averages[] = {ncclMax, ncclSum, ncclMin, ncclMax};
    int nlanes = job->options.nthreads;
    int64_t wrong = 0;
    pthread_barrier_init(&barrier, NULL, (unsigned)nlanes);
    for (int t = 0; t < nlanes; t++) {
        lanes[t] = (struct lane){.job = job,
                                 .pc = pc,
                                 .barrier = nlanes > 1 ? &barrier : NULL,
                                 .first = t * job->options.ngpus,
                                 .count = job->options.ngpus,
                                 .agg = job->options.agg_iters};
    }
    run_lanes(lanes, nlanes);
    pthread_barrier_destroy(&barrier);
    for (int t = 0; t < nlanes; t++) {
        if (lanes[t].failed) return false;
        wrong += lanes[t].wrong;
    }
    double usec = perf_job_agree(job, combine(job, lanes, nlanes), averages[job->options.average]);
    if (job->options.average == 1) usec /= job->nprocs;
    result->usec = usec;
    result->wrong = checks_of(job, pc) ? (int64_t)perf_job_agree(job, (double)wrong, ncclSum) : -1;
    result->algbw = usec > 0 ? (double)pc->bytes / usec * 1e-3 : 0;
    result->busbw = result->algbw * pc->operation->bus_factor(job->nranks);
    return true;
}
