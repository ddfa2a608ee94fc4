/* Graphs that the oracle keeps: launched again and again on any stream, and edited while earlier
 * launches may still run. What a launch does is what the executable said at that moment. */
#include "oracle.h"

/* Not memory of pools, which moves. */
static struct buffer *pick_fixed(struct world *world)
{
    struct buffer *buffer = oracle_pick_buffer(world, false);
    while (buffer->kind == KIND_POOL) {
        buffer = oracle_pick_buffer(world, false);
    }
    return buffer;
}

static struct recipe pick_recipe(struct world *world, struct buffer *to)
{
    struct recipe recipe = {.fill = oracle_pick_span(world),
                            .value = (unsigned char)oracle_pick(world, 256),
                            .count = 1 + oracle_pick(world, WORDS / 2)};
    recipe.from = oracle_pick(world, WORDS - recipe.count);
    recipe.to = oracle_pick(world, WORDS - recipe.count);
    recipe.change = oracle_change(world, to);
    return recipe;
}

static struct cudaMemsetParams fill_of(const struct kept *kept, const struct recipe *recipe)
{
    return (struct cudaMemsetParams){.dst = kept->to->at + recipe->fill.first,
                                     .value = recipe->value,
                                     .elementSize = 1,
                                     .width = recipe->fill.count * 4,
                                     .height = 1};
}

/* The three operations as a captured graph, or as one whose nodes are added. Streams that wait for
 * the legacy one are not captured: no thread could use that one meanwhile. */
static cudaGraph_t capture(struct world *world, const struct kept *kept,
                           const struct recipe *recipe)
{
    cudaGraph_t graph;
    cudaStream_t stream = world->streams[oracle_pick(world, NONBLOCKING)];
    OK(world, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    OK(world, cudaMemsetAsync(kept->to->at + recipe->fill.first, recipe->value,
                              recipe->fill.count * 4, stream));
    OK(world, cudaMemcpyAsync(kept->to->at + recipe->to, kept->from->at + recipe->from,
                              recipe->count * 4, cudaMemcpyDefault, stream));
    OK(world, cudaLaunchHostFunc(stream, oracle_change_run, recipe->change));
    OK(world, cudaStreamEndCapture(stream, &graph));
    return graph;
}

static cudaGraph_t build(struct world *world, const struct kept *kept, const struct recipe *recipe)
{
    cudaGraph_t graph;
    cudaGraphNode_t fill, copy, call;
    struct cudaMemsetParams set = fill_of(kept, recipe);
    struct cudaHostNodeParams host = {oracle_change_run, recipe->change};
    OK(world, cudaGraphCreate(&graph, 0));
    OK(world, cudaGraphAddMemsetNode(&fill, graph, NULL, 0, &set));
    OK(world, cudaGraphAddMemcpyNode1D(&copy, graph, &fill, 1, kept->to->at + recipe->to,
                                       kept->from->at + recipe->from, recipe->count * 4,
                                       cudaMemcpyDefault));
    OK(world, cudaGraphAddHostNode(&call, graph, &copy, 1, &host));
    return graph;
}

static void find_nodes(struct world *world, struct kept *kept, cudaGraph_t graph)
{
    cudaGraphNode_t nodes[3];
    size_t count = 3;
    OK(world, cudaGraphGetNodes(graph, nodes, &count));
    for (size_t i = 0; i < count; i++) {
        enum cudaGraphNodeType type;
        OK(world, cudaGraphNodeGetType(nodes[i], &type));
        if (type == cudaGraphNodeTypeMemset) kept->fill = nodes[i];
        if (type == cudaGraphNodeTypeMemcpy) kept->copy = nodes[i];
        if (type == cudaGraphNodeTypeHost) kept->call = nodes[i];
    }
}

static void open_kept(struct world *world, struct kept *kept)
{
    kept->to = pick_fixed(world);
    do {
        kept->from = pick_fixed(world);
    } while (kept->from == kept->to);
    kept->recipe = pick_recipe(world, kept->to);
    kept->graph = oracle_pick(world, 2) ? capture(world, kept, &kept->recipe)
                                        : build(world, kept, &kept->recipe);
    find_nodes(world, kept, kept->graph);
    OK(world, cudaGraphInstantiateWithFlags(&kept->exec, kept->graph, 0));
}

static void close_kept(struct world *world, struct kept *kept)
{
    OK(world, cudaGraphExecDestroy(kept->exec));
    OK(world, cudaGraphDestroy(kept->graph));
}

void oracle_kept_launch(struct world *world)
{
    struct kept *kept = &world->kept[oracle_pick(world, KEPT)];
    struct buffer *two[] = {kept->to, kept->from};
    const struct recipe *recipe = &kept->recipe;
    size_t stream = oracle_pick(world, STREAMS);
    oracle_begin(world, stream, two, 2);
    OK(world, cudaGraphLaunch(kept->exec, world->streams[stream]));
    memset(kept->to->model + recipe->fill.first, recipe->value, recipe->fill.count * 4);
    memmove(kept->to->model + recipe->to, kept->from->model + recipe->from, recipe->count * 4);
    oracle_model_change(kept->to, recipe->change);
    oracle_end(world, stream, two, 2);
    if (oracle_pick(world, 20)) return;
    close_kept(world, kept); /* it may still run */
    open_kept(world, kept);
}

void oracle_kept_edit(struct world *world)
{
    struct kept *kept = &world->kept[oracle_pick(world, KEPT)];
    struct recipe recipe = pick_recipe(world, kept->to);
    struct cudaMemsetParams set = fill_of(kept, &recipe);
    struct cudaHostNodeParams host = {oracle_change_run, recipe.change};
    if (oracle_pick(world, 2)) {
        OK(world, cudaGraphExecMemsetNodeSetParams(kept->exec, kept->fill, &set));
        kept->recipe.fill = recipe.fill;
        kept->recipe.value = recipe.value;
    }
    if (oracle_pick(world, 2)) {
        OK(world, cudaGraphExecMemcpyNodeSetParams1D(
                      kept->exec, kept->copy, kept->to->at + recipe.to,
                      kept->from->at + recipe.from, recipe.count * 4, cudaMemcpyDefault));
        kept->recipe.from = recipe.from;
        kept->recipe.to = recipe.to;
        kept->recipe.count = recipe.count;
    }
    if (oracle_pick(world, 2)) {
        OK(world, cudaGraphExecHostNodeSetParams(kept->exec, kept->call, &host));
        kept->recipe.change = recipe.change;
    }
}

void oracle_kept_update(struct world *world)
{
    struct kept *kept = &world->kept[oracle_pick(world, KEPT)];
    struct recipe recipe = pick_recipe(world, kept->to);
    cudaGraphExecUpdateResultInfo info;
    cudaGraph_t graph =
        oracle_pick(world, 2) ? capture(world, kept, &recipe) : build(world, kept, &recipe);
    OK(world, cudaGraphExecUpdate(kept->exec, graph, &info));
    OK(world, cudaGraphDestroy(graph));
    kept->recipe = recipe;
}

/* ---- a captured collective ---- */

static cudaGraph_t capture_reduce(struct world *world, const struct kept_reduce *kept)
{
    cudaGraph_t graph;
    cudaStream_t first = world->streams[0], second = world->streams[1];
    OK(world, cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
    OK(world, cudaEventRecord(world->done[0], first));
    OK(world, cudaStreamWaitEvent(second, world->done[0], 0));
    OK(world, ncclGroupStart());
    for (size_t d = 0; d < DEVICES; d++) {
        uint32_t *at = kept->two[d]->at + kept->span.first;
        OK(world, ncclAllReduce(at, at, kept->span.count, ncclUint32, ncclSum, world->comms[d],
                                world->streams[d]));
    }
    OK(world, ncclGroupEnd());
    OK(world, cudaEventRecord(world->done[1], second));
    OK(world, cudaStreamWaitEvent(first, world->done[1], 0));
    OK(world, cudaStreamEndCapture(first, &graph));
    return graph;
}

static void open_kept_reduce(struct world *world, struct kept_reduce *kept)
{
    kept->two[0] = pick_fixed(world);
    do {
        kept->two[1] = pick_fixed(world);
    } while (kept->two[1] == kept->two[0]);
    kept->span = oracle_pick_span(world);
    cudaGraph_t graph = capture_reduce(world, kept);
    OK(world, cudaGraphInstantiateWithFlags(&kept->exec, graph, 0));
    OK(world, cudaGraphDestroy(graph));
}

void oracle_kept_reduce(struct world *world)
{
    struct kept_reduce *kept = &world->kept_reduce;
    size_t stream = oracle_pick(world, NONBLOCKING);
    oracle_begin(world, stream, kept->two, DEVICES);
    OK(world, cudaGraphLaunch(kept->exec, world->streams[stream]));
    oracle_model_reduce(kept->two, kept->span);
    oracle_end(world, stream, kept->two, DEVICES);
    if (oracle_pick(world, 4)) return;
    OK(world, cudaGraphExecDestroy(kept->exec));
    open_kept_reduce(world, kept);
}

void oracle_kept_open(struct world *world)
{
    for (size_t i = 0; i < KEPT; i++) {
        open_kept(world, &world->kept[i]);
    }
    open_kept_reduce(world, &world->kept_reduce);
}

void oracle_kept_close(struct world *world)
{
    for (size_t i = 0; i < KEPT; i++) {
        close_kept(world, &world->kept[i]);
    }
    OK(world, cudaGraphExecDestroy(world->kept_reduce.exec));
}
