/* Scenarios of programs that train: buckets of gradients, loaders that run ahead, buffers that take
 * turns, graphs that are replayed, pipelines of stages, memory of pools, threads per device. */
#include "racy.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { HALF = COUNT / 2, STEPS = 4 };

/* ---- kernels: (int *to, const int *from, int n) ---- */

static void run_axpy(const struct tuttiBlock *b, void **args, void *context)
{
    int *to = *(int **)args[0], n = *(int *)args[2];
    const int *from = *(const int **)args[1];
    (void)context;
    for (int t = 0; t < (int)b->block.x; t++) {
        int i = (int)(b->index.x * b->block.x) + t;
        if (i < n) to[i] += from[i];
    }
}

static void axpy_stub(void) {}

static void axpy(void *to, const void *from, cudaStream_t stream)
{
    static const size_t sizes[] = {sizeof(void *), sizeof(void *), sizeof(int)};
    const struct tuttiKernel one = {.size = sizeof(one),
                                    .function = (const void *)axpy_stub,
                                    .run = run_axpy,
                                    .nargs = 3,
                                    .arg_bytes = sizes};
    static bool given;
    int n = COUNT;
    void *args[] = {&to, &from, &n};
    if (!given) OK(tuttiRegisterKernel(&one));
    given = true;
    OK(cudaLaunchKernel((const void *)axpy_stub, (dim3){COUNT / 256, 1, 1}, (dim3){256, 1, 1}, args,
                        0, stream));
}

/* ---- gradients ---- */

static void one_event_for_buckets(bool sound) /* racy: it is recorded before the second is full */
{
    float *at[RANKS];
    racy_start_ranks();
    for (int bucket = 0; bucket < 2; bucket++) {
        for (int r = 0; r < RANKS; r++) {
            OK(cudaSetDevice(r));
            at[r] = ranks.in[r] + (ptrdiff_t)bucket * HALF;
            cudaEvent_t ready = make_event();
            if (!sound) OK(cudaEventRecord(ready, ranks.other[r]));
            OK(cudaMemsetAsync(at[r], 1, BYTES / 2, ranks.other[r]));
            if (sound) OK(cudaEventRecord(ready, ranks.other[r]));
            OK(cudaStreamWaitEvent(ranks.stream[r], ready, 0));
        }
        all_reduce(at, at, HALF, ranks.stream);
    }
    racy_finish_ranks();
}

static void norm_of_gradients(bool sound) /* racy: the last bucket is not waited for */
{
    float *at[RANKS];
    racy_start_ranks();
    for (int bucket = 0; bucket < 2; bucket++) {
        for (int r = 0; r < RANKS; r++)
            at[r] = ranks.in[r] + (ptrdiff_t)bucket * HALF;
        all_reduce(at, at, HALF, ranks.stream);
        for (int r = 0; r < RANKS; r++) {
            OK(cudaSetDevice(r));
            if (sound || !bucket) join(ranks.other[r], ranks.stream[r]);
        }
    }
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        axpy(ranks.out[r], ranks.in[r], ranks.other[r]);
    }
    racy_finish_ranks();
}

static void micro_batches(bool sound) /* racy: reduced while the second one is added */
{
    racy_start_ranks();
    for (int batch = 0; batch < 2; batch++) {
        for (int r = 0; r < RANKS; r++) {
            OK(cudaSetDevice(r));
            axpy(ranks.in[r], ranks.out[r], ranks.other[r]);
            if (sound || !batch) join(ranks.stream[r], ranks.other[r]);
        }
    }
    all_reduce(ranks.in, ranks.in, COUNT, ranks.stream);
    racy_finish_ranks();
}

static void zeroed_gradients(bool sound) /* racy: the next step's zeroes come into the reduction */
{
    racy_start_ranks();
    all_reduce(ranks.in, ranks.in, COUNT, ranks.stream);
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        if (sound) join(ranks.other[r], ranks.stream[r]);
        OK(cudaMemsetAsync(ranks.in[r], 0, BYTES, ranks.other[r]));
    }
    racy_finish_ranks();
}

static void overflow_flag(bool sound) /* of all ranks; racy: one's own is read before the others' */
{
    float *flag[RANKS];
    racy_start_ranks();
    for (int r = 0; r < RANKS; r++)
        flag[r] = ranks.in[r] + COUNT - 1;
    all_reduce(flag, flag, 1, ranks.stream);
    OK(cudaSetDevice(0));
    if (sound) join(ranks.other[0], ranks.stream[0]);
    OK(cudaMemcpyAsync(my.pinned, flag[0], sizeof(float), cudaMemcpyDefault, ranks.other[0]));
    racy_finish_ranks();
}

static void shard_and_gather(bool sound) /* on two streams; racy: gathered before it is reduced */
{
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        OK(ncclReduceScatter(ranks.in[r], ranks.out[r] + (ptrdiff_t)r * HALF, HALF, ncclFloat,
                             ncclSum, ranks.comm[r], ranks.stream[r]));
    OK(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        if (sound) join(ranks.other[r], ranks.stream[r]);
        axpy(ranks.in[r], ranks.out[r], ranks.other[r]);
    }
    racy_finish_ranks();
}

static void broadcast_buffers(bool sound) /* before the forward pass reads them */
{
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        OK(ncclBroadcast(ranks.in[r], ranks.in[r], COUNT, ncclFloat, 0, ranks.comm[r],
                         ranks.stream[r]));
    OK(ncclGroupEnd());
    OK(cudaSetDevice(1));
    if (sound) join(ranks.other[1], ranks.stream[1]);
    axpy(ranks.out[1], ranks.in[1], ranks.other[1]);
    racy_finish_ranks();
}

/* ---- loaders ---- */

static void loader_of_three(bool sound) /* racy: told to be free before it has been used */
{
    char *batch[3];
    cudaEvent_t full[3], used[3];
    for (int k = 0; k < 3; k++) {
        batch[k] = make_buffer();
        full[k] = make_event();
        used[k] = make_event();
    }
    for (int i = 0; i < 2 * 3; i++) {
        int k = i % 3;
        OK(cudaStreamWaitEvent(my.a, used[k], 0));
        copy(batch[k], my.z, my.a);
        OK(cudaEventRecord(full[k], my.a));
        OK(cudaStreamWaitEvent(my.b, full[k], 0));
        if (!sound) OK(cudaEventRecord(used[k], my.b));
        axpy(my.x, batch[k], my.b);
        if (sound) OK(cudaEventRecord(used[k], my.b));
    }
}

struct loader {
    char *pinned[2];
    cudaEvent_t copied[2];
    atomic_int loaded, taken;
    bool sound;
};

static void *load_batches(void *arg)
{
    struct loader *loader = arg;
    for (int i = 0; i < STEPS; i++) {
        while (atomic_load(&loader->taken) < i - 1)
            sched_yield();
        if (loader->sound && i >= 2) OK(cudaEventSynchronize(loader->copied[i % 2]));
        tuttiCheckWrite(loader->pinned[i % 2], BYTES);
        atomic_store(&loader->loaded, i + 1);
    }
    return NULL;
}

static void loader_thread(bool sound) /* racy: the copy was called, which is not its end */
{
    struct loader loader = {.copied = {make_event(), make_event()}, .sound = sound};
    pthread_t thread;
    OK(cudaMallocHost((void **)&loader.pinned[0], BYTES));
    OK(cudaMallocHost((void **)&loader.pinned[1], BYTES));
    OK(pthread_create(&thread, NULL, load_batches, &loader));
    for (int i = 0; i < STEPS; i++) {
        while (atomic_load(&loader.loaded) <= i)
            sched_yield();
        copy(my.x, loader.pinned[i % 2], my.a);
        OK(cudaEventRecord(loader.copied[i % 2], my.a));
        atomic_store(&loader.taken, i + 1);
    }
    OK(pthread_join(thread, NULL));
    OK(cudaStreamSynchronize(my.a));
}

static void loss_of_last_step(bool sound) /* racy: this step's is looked at */
{
    float *loss;
    cudaEvent_t there[2] = {make_event(), make_event()};
    OK(cudaMallocHost((void **)&loss, 2 * sizeof(*loss)));
    for (int i = 0; i < STEPS; i++) {
        OK(cudaMemcpyAsync(&loss[i % 2], my.x, sizeof(*loss), cudaMemcpyDefault, my.a));
        OK(cudaEventRecord(there[i % 2], my.a));
        if (i) {
            OK(cudaEventSynchronize(there[(i - 1) % 2]));
            tuttiCheckRead(&loss[(sound ? i - 1 : i) % 2], sizeof(*loss));
        }
    }
    OK(cudaStreamSynchronize(my.a));
    OK(cudaFreeHost(loss));
}

static void managed_batch(bool sound) /* written for the next step while this one reads it */
{
    char *batch;
    OK(cudaMallocManaged((void **)&batch, BYTES, cudaMemAttachGlobal));
    tuttiCheckWrite(batch, BYTES);
    for (int i = 0; i < STEPS; i++) {
        copy(my.x, batch, my.a);
        if (sound || i % 2) OK(cudaStreamSynchronize(my.a));
        tuttiCheckWrite(batch, BYTES);
    }
    OK(cudaStreamSynchronize(my.a));
    OK(cudaFree(batch));
}

/* ---- graphs ---- */

static cudaGraphExec_t make_step(char *to, const char *from)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaStreamBeginCapture(my.a, cudaStreamCaptureModeThreadLocal));
    copy(my.z, from, my.a);
    copy(to, my.z, my.a);
    OK(cudaStreamEndCapture(my.a, &graph));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    return exec;
}

static void static_input(bool sound) /* racy: replaced while the graph reads it */
{
    cudaGraphExec_t step = make_step(my.y, my.x);
    for (int i = 0; i < STEPS; i++) {
        if (sound) join(my.b, my.a);
        copy(my.x, my.pinned, my.b);
        join(my.a, my.b);
        OK(cudaGraphLaunch(step, my.a));
    }
    OK(cudaStreamSynchronize(my.a));
    OK(cudaGraphExecDestroy(step));
}

static void static_output(bool sound) /* racy: the next replay comes before it was read */
{
    cudaGraphExec_t step = make_step(my.y, my.x);
    for (int i = 0; i < STEPS; i++) {
        OK(cudaGraphLaunch(step, my.a));
        join(my.b, my.a);
        copy(my.pinned, my.y, my.b);
        if (sound) join(my.a, my.b);
    }
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(step));
}

static void shared_scratch(bool sound) /* two graphs with one scratch buffer, on two streams */
{
    char *other = make_buffer();
    cudaGraphExec_t one = make_step(my.y, my.x), two = make_step(other, my.x);
    OK(cudaGraphLaunch(one, my.a));
    if (sound) join(my.b, my.a);
    OK(cudaGraphLaunch(two, my.b));
    OK(cudaDeviceSynchronize());
    OK(cudaGraphExecDestroy(one));
    OK(cudaGraphExecDestroy(two));
}

static void input_by_node(bool sound) /* a node of the graph, changed each turn */
{
    char *other = make_buffer();
    cudaGraph_t graph;
    cudaGraphNode_t in, through;
    cudaGraphExec_t exec;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemcpyNode1D(&in, graph, NULL, 0, my.x, my.y, BYTES, cudaMemcpyDefault));
    OK(cudaGraphAddMemcpyNode1D(&through, graph, sound ? &in : NULL, sound ? 1 : 0, my.z, my.x,
                                BYTES, cudaMemcpyDefault));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < STEPS; i++) {
        OK(cudaGraphExecMemcpyNodeSetParams1D(exec, in, my.x, i % 2 ? my.y : other, BYTES,
                                              cudaMemcpyDefault));
        OK(cudaGraphLaunch(exec, my.a));
    }
    OK(cudaStreamSynchronize(my.a));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

/* ---- stages of a pipeline ---- */

static void sent_activation(bool sound) /* racy: the next micro-batch overwrites it */
{
    racy_start_ranks();
    for (int batch = 0; batch < 2; batch++) {
        OK(cudaSetDevice(0));
        if (sound && batch) join(ranks.other[0], ranks.stream[0]);
        OK(cudaMemsetAsync(ranks.in[0], batch, BYTES, ranks.other[0]));
        join(ranks.stream[0], ranks.other[0]);
        OK(ncclGroupStart());
        OK(ncclSend(ranks.in[0], COUNT, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
        OK(ncclRecv(ranks.in[1], COUNT, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
        OK(ncclGroupEnd());
    }
    racy_finish_ranks();
}

static void received_gradient(bool sound) /* racy: the next one is received while it is used */
{
    racy_start_ranks();
    for (int batch = 0; batch < 2; batch++) {
        OK(ncclGroupStart());
        OK(ncclSend(ranks.in[0], COUNT, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
        OK(ncclRecv(ranks.in[1], COUNT, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
        OK(ncclGroupEnd());
        OK(cudaSetDevice(1));
        join(ranks.other[1], ranks.stream[1]);
        axpy(ranks.out[1], ranks.in[1], ranks.other[1]);
        if (sound) join(ranks.stream[1], ranks.other[1]);
    }
    racy_finish_ranks();
}

static void stages_by_peer_copies(bool sound)
{
    char *near = my.x, *far;
    cudaStream_t there;
    cudaEvent_t arrived, used;
    OK(cudaSetDevice(1));
    far = make_buffer();
    there = make_stream();
    used = make_event();
    OK(cudaSetDevice(0));
    arrived = make_event();
    for (int i = 0; i < STEPS; i++) {
        if (sound) OK(cudaStreamWaitEvent(my.a, used, 0));
        OK(cudaMemcpyPeerAsync(far, 1, near, 0, BYTES, my.a));
        OK(cudaEventRecord(arrived, my.a));
        OK(cudaSetDevice(1));
        OK(cudaStreamWaitEvent(there, arrived, 0));
        OK(cudaMemsetAsync(far, i, BYTES / 2, there));
        OK(cudaEventRecord(used, there));
        OK(cudaSetDevice(0));
    }
}

static void halo_rows(bool sound) /* racy: the inner part is a row too large */
{
    const size_t row = BYTES / 8, count = row / sizeof(float);
    racy_start_ranks();
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        OK(ncclSend((char *)ranks.in[r] + row, count, ncclFloat, 1 - r, ranks.comm[r],
                    ranks.stream[r]));
        OK(ncclRecv(ranks.in[r], count, ncclFloat, 1 - r, ranks.comm[r], ranks.stream[r]));
    }
    OK(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        char *inner = (char *)ranks.in[r] + (sound ? 2 : 1) * row;
        OK(cudaMemset2DAsync(inner, row, 1, row, 4, ranks.other[r]));
    }
    racy_finish_ranks();
}

/* ---- optimizers, checkpoints ---- */

static void snapshot(bool sound) /* racy: the next step changes what is being saved */
{
    char *saved;
    OK(cudaMallocHost((void **)&saved, BYTES));
    for (int i = 0; i < 2; i++) {
        axpy(my.x, my.y, my.a);
        join(my.b, my.a);
        copy(saved, my.x, my.b);
        if (sound) join(my.a, my.b);
    }
    axpy(my.x, my.y, my.a);
    OK(cudaDeviceSynchronize());
    OK(cudaFreeHost(saved));
}

static void moving_average(bool sound) /* of the weights, on a stream of its own */
{
    for (int i = 0; i < 2; i++) {
        axpy(my.x, my.y, my.a);
        if (sound || i) join(my.b, my.a);
        axpy(my.z, my.x, my.b);
        join(my.a, my.b);
    }
}

static void two_backward_streams(bool sound) /* an activation is freed when both are behind it */
{
    char *activation;
    OK(cudaMallocAsync((void **)&activation, BYTES, my.a));
    fill(activation, my.a);
    join(my.b, my.a);
    axpy(my.y, activation, my.a);
    axpy(my.z, activation, my.b);
    if (sound) join(my.a, my.b);
    OK(cudaFreeAsync(activation, my.a));
}

static void workspace_in_turns(bool sound) /* of a pool; racy: used behind its free, elsewhere */
{
    for (int i = 0; i < STEPS; i++) {
        char *space;
        OK(cudaMallocAsync((void **)&space, BYTES, my.a));
        if (sound || i < 2) join(my.b, my.a);
        fill(space, my.b);
        copy(my.x, space, my.b);
        join(my.a, my.b);
        OK(cudaFreeAsync(space, my.a));
    }
}

static void tree_of_streams(bool sound) /* partial sums of four; racy: one is not joined */
{
    cudaStream_t stream[4];
    char *part[4];
    for (int i = 0; i < 4; i++) {
        stream[i] = make_stream();
        part[i] = make_buffer();
    }
    for (int i = 0; i < 4; i++)
        fill(part[i], stream[i]);
    for (int i = 0; i < 4; i += 2) {
        if (sound || i) join(stream[i], stream[i + 1]);
        axpy(part[i], part[i + 1], stream[i]);
    }
    join(stream[0], stream[2]);
    axpy(part[0], part[2], stream[0]);
}

/* ---- threads, one per device ---- */

struct member {
    int rank;
    bool sound;
    char *at, *of_peer;
    cudaStream_t stream;
    pthread_barrier_t *barrier;
};

static void *exchange(void *arg)
{
    struct member *own = arg;
    OK(cudaSetDevice(own->rank));
    OK(cudaMemsetAsync(own->at, own->rank, BYTES, own->stream));
    if (own->sound) OK(cudaStreamSynchronize(own->stream));
    pthread_barrier_wait(own->barrier);
    OK(cudaMemcpyPeerAsync(own->at + BYTES, own->rank, own->of_peer, 1 - own->rank, BYTES,
                           own->stream));
    OK(cudaStreamSynchronize(own->stream));
    pthread_barrier_wait(own->barrier);
    return NULL;
}

static void barrier_of_threads(bool sound) /* is none of streams */
{
    pthread_barrier_t barrier;
    pthread_t threads[RANKS];
    struct member members[RANKS];
    OK(pthread_barrier_init(&barrier, NULL, RANKS));
    for (int r = 0; r < RANKS; r++) {
        OK(cudaSetDevice(r));
        members[r] = (struct member){r, sound, NULL, NULL, make_stream(), &barrier};
        OK(cudaMalloc((void **)&members[r].at, 2 * (size_t)BYTES));
    }
    for (int r = 0; r < RANKS; r++) {
        members[r].of_peer = members[1 - r].at;
        OK(pthread_create(&threads[r], NULL, exchange, &members[r]));
    }
    for (int r = 0; r < RANKS; r++)
        OK(pthread_join(threads[r], NULL));
    pthread_barrier_destroy(&barrier);
}

static void say_done(void *arg)
{
    atomic_store((atomic_bool *)arg, true);
}

static void said_by_function(bool sound) /* racy: it runs before the copy */
{
    atomic_bool done = false;
    if (!sound) OK(cudaLaunchHostFunc(my.a, say_done, &done));
    copy(my.pinned, my.x, my.a);
    if (sound) OK(cudaLaunchHostFunc(my.a, say_done, &done));
    while (!atomic_load(&done))
        sched_yield();
    tuttiCheckRead(my.pinned, BYTES);
    OK(cudaStreamSynchronize(my.a));
}

const struct racy_scenario racy_training[] = {
    {"training-one-event-for-buckets", one_event_for_buckets, "race"},
    {"training-norm-of-gradients", norm_of_gradients, "race"},
    {"training-micro-batches", micro_batches, "race"},
    {"training-zeroed-gradients", zeroed_gradients, "race"},
    {"training-overflow-flag", overflow_flag, "race"},
    {"training-shard-and-gather", shard_and_gather, "race"},
    {"training-broadcast-buffers", broadcast_buffers, "race"},
    {"training-loader-of-three", loader_of_three, "race"},
    {"training-loader-thread", loader_thread, "race"},
    {"training-loss-of-last-step", loss_of_last_step, "race"},
    {"training-managed-batch", managed_batch, "race"},
    {"training-static-input", static_input, "race"},
    {"training-static-output", static_output, "race"},
    {"training-shared-scratch", shared_scratch, "race"},
    {"training-input-by-node", input_by_node, "race"},
    {"training-sent-activation", sent_activation, "race"},
    {"training-received-gradient", received_gradient, "race"},
    {"training-stages-by-peer-copies", stages_by_peer_copies, "race"},
    {"training-halo-rows", halo_rows, "race"},
    {"training-snapshot", snapshot, "race"},
    {"training-moving-average", moving_average, "race"},
    {"training-two-backward-streams", two_backward_streams, "race"},
    {"training-workspace-in-turns", workspace_in_turns, "race"},
    {"training-tree-of-streams", tree_of_streams, "race"},
    {"training-barrier-of-threads", barrier_of_threads, "race"},
    {"training-said-by-function", said_by_function, "race"},
};
const size_t racy_ntraining = sizeof(racy_training) / sizeof(racy_training[0]);
