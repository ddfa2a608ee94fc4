/* Scenarios of graphs that hold calls of several ranks: what meets in a collective, or sends a
 * message to the other, is ordered without an edge between them. */
#include "racy.h"

#include <stdint.h>

/* Both ranks' streams are captured into one graph, and what `calls` puts there is launched. */
static void together(void (*calls)(bool sound), bool sound, int launches)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OK(cudaSetDevice(0));
    OK(cudaStreamBeginCapture(ranks.stream[0], cudaStreamCaptureModeRelaxed));
    racy_join(ranks.other[0], ranks.stream[0]);
    racy_join(ranks.stream[1], ranks.stream[0]);
    racy_join(ranks.other[1], ranks.stream[0]);
    calls(sound);
    racy_join(ranks.stream[0], ranks.other[0]);
    racy_join(ranks.stream[0], ranks.stream[1]);
    racy_join(ranks.stream[0], ranks.other[1]);
    OK(cudaStreamEndCapture(ranks.stream[0], &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < launches; i++)
        OK(cudaGraphLaunch(exec, ranks.stream[0]));
    OK(cudaStreamSynchronize(ranks.stream[0]));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

static void run(void (*calls)(bool sound), bool sound)
{
    racy_start_ranks();
    together(calls, sound, 2);
    racy_finish_ranks();
}

static void broadcast(int root)
{
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        OK(ncclBroadcast(ranks.in[root], ranks.out[r], COUNT, ncclFloat, root, ranks.comm[r],
                         ranks.stream[r]));
    OK(ncclGroupEnd());
}

static void reduce_to(int root)
{
    OK(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        OK(ncclReduce(ranks.in[r], ranks.out[r], COUNT, ncclFloat, ncclSum, root, ranks.comm[r],
                      ranks.stream[r]));
    OK(ncclGroupEnd());
}

static void message(int from, int to)
{
    OK(ncclGroupStart());
    OK(ncclSend(ranks.in[from], COUNT, ncclFloat, to, ranks.comm[from], ranks.stream[from]));
    OK(ncclRecv(ranks.out[to], COUNT, ncclFloat, from, ranks.comm[to], ranks.stream[to]));
    OK(ncclGroupEnd());
}

static void all_reduce_calls(bool sound) /* racy: read beside the collective */
{
    fill(my.x, ranks.stream[0]);
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    copy(my.y, my.x, sound ? ranks.stream[1] : ranks.other[1]);
}

static void number_calls(bool sound) /* racy: the second collective is the one to wait for */
{
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    fill(my.x, ranks.stream[0]);
    if (!sound) copy(my.y, my.x, ranks.stream[1]);
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    if (sound) copy(my.y, my.x, ranks.stream[1]);
}

static void reused_calls(bool sound) /* racy: the giver waits for no rank, so it may write early */
{
    broadcast(0);
    if (sound) {
        fill((char *)ranks.in[0], ranks.stream[1]);
    } else {
        fill((char *)ranks.out[1], ranks.stream[0]);
    }
}

static void result_calls(bool sound) /* racy: the other's result may be written later than ours */
{
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    copy(my.y, (char *)ranks.out[sound ? 0 : 1], ranks.stream[0]);
}

static void reduced_calls(bool sound) /* racy: who gives does not know that the others came */
{
    fill(my.x, ranks.stream[sound ? 1 : 0]);
    reduce_to(0);
    copy(my.y, my.x, ranks.stream[sound ? 0 : 1]);
}

static void message_calls(bool sound) /* racy: who sends does not wait for who receives */
{
    fill(my.x, ranks.stream[sound ? 0 : 1]);
    message(0, 1);
    copy(my.y, my.x, ranks.stream[sound ? 1 : 0]);
}

static void chain_calls(bool sound) /* three meetings lead from one branch to another */
{
    fill(my.x, ranks.other[0]);
    if (sound) racy_join(ranks.stream[0], ranks.other[0]);
    message(0, 1);
    fill(my.z, ranks.stream[1]);
    message(1, 0);
    racy_join(ranks.other[0], ranks.stream[0]);
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    copy(my.z, my.x, ranks.stream[1]);
    if (sound) copy(my.y, my.z, ranks.stream[1]);
}

static void ahead_calls(bool sound) /* a message was sent before the graph */
{
    fill(my.x, ranks.stream[0]);
    OK(ncclSend(ranks.in[0], COUNT, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
    OK(ncclRecv(ranks.out[1], COUNT, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
    if (!sound) copy(my.y, my.x, ranks.stream[1]);
    OK(ncclRecv(ranks.out[1], COUNT, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
    if (sound) copy(my.y, my.x, ranks.stream[1]);
}

/* ---- kernels that report nothing ---- */

static void run_set(const struct tuttiBlock *b, void **args, void *context)
{
    int *to = *(int **)args[0];
    (void)b, (void)context;
    for (int i = 0; i < COUNT; i++)
        to[i] = i;
}

static void set_stub(void) {}

static void set_by_kernel(int device, void *to, cudaStream_t stream)
{
    void *args[] = {&to};
    OK(cudaSetDevice(device));
    OK(cudaLaunchKernel((const void *)set_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, stream));
}

static void kernel_calls(bool sound) /* racy: the second one runs beside the collective */
{
    set_by_kernel(0, my.x, ranks.stream[0]);
    all_reduce(ranks.in, ranks.out, COUNT, ranks.stream);
    set_by_kernel(1, my.x, sound ? ranks.stream[1] : ranks.other[1]);
}

static void together_kernels(bool sound)
{
    static const size_t sizes[] = {sizeof(void *)};
    const struct tuttiKernel one = {.size = sizeof(one),
                                    .function = (const void *)set_stub,
                                    .run = run_set,
                                    .nargs = 1,
                                    .arg_bytes = sizes};
    OK(tuttiRegisterKernel(&one));
    run(kernel_calls, sound);
}

/* ---- what is launched ---- */

static void together_all_reduce(bool sound)
{
    run(all_reduce_calls, sound);
}
static void together_number(bool sound)
{
    run(number_calls, sound);
}
static void together_reused(bool sound)
{
    run(reused_calls, sound);
}
static void together_result(bool sound)
{
    run(result_calls, sound);
}
static void together_reduced(bool sound)
{
    run(reduced_calls, sound);
}
static void together_message(bool sound)
{
    run(message_calls, sound);
}
static void together_chain(bool sound)
{
    run(chain_calls, sound);
}

static cudaGraph_t part_of(int r, bool sound)
{
    cudaGraph_t graph;
    OK(cudaSetDevice(r));
    OK(cudaStreamBeginCapture(ranks.stream[r], cudaStreamCaptureModeRelaxed));
    if (r == 0) fill(my.x, ranks.stream[0]);
    if (sound && r == 0)
        OK(ncclSend(ranks.in[0], COUNT, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
    if (sound && r == 1)
        OK(ncclRecv(ranks.out[1], COUNT, ncclFloat, 0, ranks.comm[1], ranks.stream[1]));
    if (r == 1) copy(my.y, my.x, ranks.stream[1]);
    OK(cudaStreamEndCapture(ranks.stream[r], &graph));
    return graph;
}

/* Each rank's part is a graph of its own, and both are nodes of one. Racy: no message. */
static void together_children(bool sound)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    racy_start_ranks();
    OK(cudaGraphCreate(&graph, 0));
    for (int r = 0; r < RANKS; r++) {
        cudaGraph_t part = part_of(r, sound);
        cudaGraphNode_t node;
        OK(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, part));
        OK(cudaGraphDestroy(part));
    }
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, ranks.stream[0]));
    OK(cudaStreamSynchronize(ranks.stream[0]));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    racy_finish_ranks();
}

static void together_ahead(bool sound)
{
    racy_start_ranks();
    OK(ncclSend(ranks.in[0], COUNT, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
    together(ahead_calls, sound, 1);
    racy_finish_ranks();
}

const struct racy_scenario racy_together[] = {
    {"together-all-reduce", together_all_reduce, "race"},
    {"together-number", together_number, "race"},
    {"together-reused", together_reused, "race"},
    {"together-result", together_result, "race"},
    {"together-reduced", together_reduced, "race"},
    {"together-message", together_message, "race"},
    {"together-chain", together_chain, "race"},
    {"together-kernels", together_kernels, "race"},
    {"together-children", together_children, "race"},
    {"together-ahead", together_ahead, "race"},
};
const size_t racy_ntogether = sizeof(racy_together) / sizeof(racy_together[0]);
