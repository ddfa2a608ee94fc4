/* Graphs: nodes, copies, and the executable form: operations in an order that respects the edges,
 * of which any whose predecessors are done may advance. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

enum { GRAPH_MAGIC = 0x67726170, NODE_MAGIC = 0x6e6f6465, EXEC_MAGIC = 0x65786563 };

struct exec_op {
    struct host_op op;
    struct host_item_share *share; /* counted */
    size_t *deps;                  /* owned: indices of earlier operations */
    size_t ndeps;
    bool done;
};

struct CUgraphExec_st {
    uint32_t magic;
    _Atomic int refs;      /* the handle, and queued launches */
    void *_Atomic running; /* token of the launch that is under way; one at a time */
    struct exec_op *ops;   /* owned */
    size_t nops, ndone;
    bool has_calls;
};

/* ---- shares ---- */

struct host_item_share *host_share_make(struct tt_item *item)
{
    struct host_item_share *share = calloc(1, sizeof(*share));
    if (!share) return NULL;
    atomic_store(&share->refs, 1);
    share->item = item;
    return share;
}

void host_share_drop(struct host_item_share *share)
{
    if (!share || atomic_fetch_sub(&share->refs, 1) != 1) return;
    share->item->step(share->item, TT_ITEM_RELEASE);
    free(share);
}

/* ---- graphs ---- */

bool host_graph_holds(const struct CUgraph_st *graph)
{
    return graph && graph->magic == GRAPH_MAGIC;
}

struct CUgraph_st *host_graph_make(void)
{
    struct CUgraph_st *graph = calloc(1, sizeof(*graph));
    if (graph) graph->magic = GRAPH_MAGIC;
    return graph;
}

static void free_node(struct CUgraphNode_st *node)
{
    host_share_drop(node->share);
    host_graph_free(node->child);
    node->magic = 0;
    free(node->deps);
    free(node);
}

void host_graph_free(struct CUgraph_st *graph)
{
    if (!graph) return;
    for (size_t i = 0; i < graph->nnodes; i++) {
        free_node(graph->nodes[i]);
    }
    graph->magic = 0;
    free(graph->nodes);
    free(graph);
}

static bool add_dep(struct CUgraphNode_st *node, struct CUgraphNode_st *dep)
{
    struct CUgraphNode_st **deps = realloc(node->deps, (node->ndeps + 1) * sizeof(*deps));
    if (!deps) return false;
    node->deps = deps;
    node->deps[node->ndeps++] = dep;
    return true;
}

struct CUgraphNode_st *host_graph_add(struct CUgraph_st *graph, struct CUgraphNode_st *const *deps,
                                      size_t ndeps, const struct host_op *op,
                                      struct host_item_share *share)
{
    static const enum tt_node_kind kinds[] = {[HOST_OP_ITEM] = TT_NODE_KERNEL,
                                              [HOST_OP_COPY] = TT_NODE_COPY,
                                              [HOST_OP_SET] = TT_NODE_SET,
                                              [HOST_OP_CALL] = TT_NODE_HOST,
                                              [HOST_OP_EMPTY] = TT_NODE_EMPTY};
    if (graph->nnodes == graph->room) {
        size_t room = graph->room ? graph->room * 2 : 16;
        struct CUgraphNode_st **nodes = realloc(graph->nodes, room * sizeof(*nodes));
        if (!nodes) return NULL;
        graph->nodes = nodes;
        graph->room = room;
    }
    struct CUgraphNode_st *node = calloc(1, sizeof(*node));
    bool good = node != NULL;
    for (size_t i = 0; good && i < ndeps; i++) {
        good = add_dep(node, deps[i]);
    }
    if (!good) {
        if (node) free(node->deps);
        free(node);
        return NULL;
    }
    node->magic = NODE_MAGIC;
    node->graph = graph;
    node->op = *op;
    node->op.next = NULL;
    node->kind = kinds[op->kind];
    node->share = share;
    if (share) atomic_fetch_add(&share->refs, 1);
    node->index = graph->nnodes;
    graph->nodes[graph->nnodes++] = node;
    return node;
}

int tuttiHostGraphCreate(struct CUgraph_st **graph_out)
{
    *graph_out = host_graph_make();
    return *graph_out ? HOST_OK : HOST_OUT_OF_MEMORY;
}

int tuttiHostGraphDestroy(struct CUgraph_st *graph)
{
    if (!host_graph_holds(graph) || graph->capturing) return HOST_INVALID_VALUE;
    host_graph_free(graph);
    return HOST_OK;
}

int tuttiHostGraphClone(struct CUgraph_st **graph_out, struct CUgraph_st *graph)
{
    if (!host_graph_holds(graph)) return HOST_INVALID_VALUE;
    struct CUgraph_st *copy = host_graph_make();
    for (size_t i = 0; copy && i < graph->nnodes; i++) {
        const struct CUgraphNode_st *from = graph->nodes[i];
        struct CUgraphNode_st *node = host_graph_add(copy, NULL, 0, &from->op, from->share);
        bool good = node != NULL;
        if (good) node->kind = from->kind;
        if (good && from->child) good = tuttiHostGraphClone(&node->child, from->child) == HOST_OK;
        if (!good) {
            host_graph_free(copy);
            copy = NULL;
        }
    }
    for (size_t i = 0; copy && i < graph->nnodes;
         i++) { /* edges last: a node may depend on a later one */
        for (size_t d = 0; d < graph->nodes[i]->ndeps; d++) {
            add_dep(copy->nodes[i], copy->nodes[graph->nodes[i]->deps[d]->index]);
        }
    }
    *graph_out = copy;
    return copy ? HOST_OK : HOST_OUT_OF_MEMORY;
}

static bool op_of_node(const struct tt_node *node, struct host_op *op)
{
    memset(op, 0, sizeof(*op));
    switch (node->kind) {
    case TT_NODE_COPY:
        op->kind = HOST_OP_COPY;
        op->copy = node->copy;
        return true;
    case TT_NODE_SET:
        op->kind = HOST_OP_SET;
        op->set.ptr = node->set.ptr;
        op->set.value = node->set.value;
        op->set.elem_bytes = node->set.elem_bytes;
        op->set.pitch = node->set.pitch;
        op->set.width = node->set.width;
        op->set.height = node->set.height;
        return true;
    case TT_NODE_HOST:
        op->kind = HOST_OP_CALL;
        op->call.fn = node->host.fn;
        op->call.arg = node->host.arg;
        return true;
    case TT_NODE_KERNEL:
        op->kind = HOST_OP_ITEM;
        op->item = node->item;
        return node->item != NULL;
    default: op->kind = HOST_OP_EMPTY; return true;
    }
}

static bool are_nodes_of(const struct CUgraph_st *graph, struct CUgraphNode_st *const *nodes,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!nodes[i] || nodes[i]->magic != NODE_MAGIC || nodes[i]->graph != graph) return false;
    }
    return true;
}

int tuttiHostGraphAdd(struct CUgraph_st *graph, struct CUgraphNode_st *const *deps, size_t ndeps,
                      const struct tt_node *node, struct CUgraphNode_st **node_out)
{
    struct host_op op;
    struct host_item_share *share = NULL;
    if (!host_graph_holds(graph) || (ndeps && !deps) || !are_nodes_of(graph, deps, ndeps))
        return HOST_INVALID_VALUE;
    if (!op_of_node(node, &op)) return HOST_INVALID_VALUE;
    if (op.kind == HOST_OP_ITEM) share = host_share_make(op.item);
    struct CUgraphNode_st *made = host_graph_add(graph, deps, ndeps, &op, share);
    if (!made) return HOST_OUT_OF_MEMORY;
    if (share) atomic_fetch_sub(&share->refs, 1);
    made->kind = node->kind;
    if (node->kind == TT_NODE_GRAPH && tuttiHostGraphClone(&made->child, node->graph))
        return HOST_INVALID_VALUE;
    *node_out = made;
    return HOST_OK;
}

int tuttiHostGraphAddEdge(struct CUgraph_st *graph, struct CUgraphNode_st *from,
                          struct CUgraphNode_st *to)
{
    struct CUgraphNode_st *both[] = {from, to};
    if (!host_graph_holds(graph) || !are_nodes_of(graph, both, 2) || from == to)
        return HOST_INVALID_VALUE;
    return add_dep(to, from) ? HOST_OK : HOST_OUT_OF_MEMORY;
}

int tuttiHostGraphNodes(struct CUgraph_st *graph, struct CUgraphNode_st **nodes, size_t *count)
{
    if (!host_graph_holds(graph)) return HOST_INVALID_VALUE;
    for (size_t i = 0; nodes && i < *count && i < graph->nnodes; i++) {
        nodes[i] = graph->nodes[i];
    }
    *count = graph->nnodes;
    return HOST_OK;
}

int tuttiHostNodeKind(struct CUgraphNode_st *node, enum tt_node_kind *kind)
{
    if (!node || node->magic != NODE_MAGIC) return HOST_INVALID_VALUE;
    *kind = node->kind;
    return HOST_OK;
}

/* ---- executable graphs ---- */

static void free_exec(struct CUgraphExec_st *exec)
{
    for (size_t i = 0; exec->ops && i < exec->nops; i++) {
        host_share_drop(exec->ops[i].share);
        if (exec->ops[i].op.kind == HOST_OP_GRAPH) host_exec_drop(exec->ops[i].op.launch.exec);
        free(exec->ops[i].deps);
    }
    exec->magic = 0;
    free(exec->ops);
    free(exec);
}

void host_exec_drop(struct CUgraphExec_st *exec)
{
    if (atomic_fetch_sub(&exec->refs, 1) == 1) free_exec(exec);
}

/* Position of every node in an order that respects the edges; false on a cycle. */
static bool sort_nodes(const struct CUgraph_st *graph, size_t *position)
{
    size_t placed = 0;
    bool moved = true;
    for (size_t i = 0; i < graph->nnodes; i++) {
        position[i] = SIZE_MAX;
    }
    while (placed < graph->nnodes && moved) {
        moved = false;
        for (size_t i = 0; i < graph->nnodes; i++) {
            const struct CUgraphNode_st *node = graph->nodes[i];
            bool ready = position[i] == SIZE_MAX;
            for (size_t d = 0; ready && d < node->ndeps; d++) {
                ready = position[node->deps[d]->index] != SIZE_MAX;
            }
            if (!ready) continue;
            position[i] = placed++;
            moved = true;
        }
    }
    return placed == graph->nnodes;
}

static int fill_op(struct CUgraphExec_st *exec, const struct CUgraphNode_st *node,
                   const size_t *position)
{
    struct exec_op *op = &exec->ops[position[node->index]];
    op->op = node->op;
    op->share = node->share;
    if (op->share) atomic_fetch_add(&op->share->refs, 1);
    op->deps = malloc((node->ndeps + 1) * sizeof(*op->deps));
    if (!op->deps) return HOST_OUT_OF_MEMORY;
    for (size_t d = 0; d < node->ndeps; d++) {
        op->deps[op->ndeps++] = position[node->deps[d]->index];
    }
    if (op->op.kind == HOST_OP_CALL) exec->has_calls = true;
    if (!node->child) return HOST_OK;
    struct CUgraphExec_st *child = NULL;
    int rc = tuttiHostGraphInstantiate(node->child, &child);
    if (rc) return rc;
    op->op.kind = HOST_OP_GRAPH;
    op->op.launch.exec = child;
    op->op.launch.token = op;
    exec->has_calls = exec->has_calls || child->has_calls;
    return HOST_OK;
}

int tuttiHostGraphInstantiate(struct CUgraph_st *graph, struct CUgraphExec_st **exec_out)
{
    int rc = HOST_OK;
    if (!host_graph_holds(graph) || graph->capturing) return HOST_INVALID_VALUE;
    struct CUgraphExec_st *exec = calloc(1, sizeof(*exec));
    size_t *position = calloc(graph->nnodes + 1, sizeof(*position));
    if (exec) {
        atomic_store(&exec->refs, 1);
        exec->nops = graph->nnodes;
        exec->ops = calloc(exec->nops + 1, sizeof(*exec->ops));
    }
    if (!exec || !position || !exec->ops) {
        rc = HOST_OUT_OF_MEMORY;
    } else if (!sort_nodes(graph, position)) {
        exec->nops = 0;
        rc = HOST_INVALID_VALUE;
    }
    for (size_t i = 0; !rc && i < graph->nnodes; i++) {
        rc = fill_op(exec, graph->nodes[i], position);
    }
    free(position);
    if (rc && exec) free_exec(exec);
    if (rc) return rc;
    exec->magic = EXEC_MAGIC;
    *exec_out = exec;
    return HOST_OK;
}

static bool deps_done(const struct CUgraphExec_st *exec, const struct exec_op *op)
{
    for (size_t d = 0; d < op->ndeps; d++) {
        if (!exec->ops[op->deps[d]].done) return false;
    }
    return true;
}

static bool start_launch(struct CUgraphExec_st *exec, void *token)
{
    void *idle = NULL;
    if (atomic_load(&exec->running) == token) return true;
    if (!atomic_compare_exchange_strong(&exec->running, &idle, token)) return false;
    for (size_t i = 0; i < exec->nops; i++) {
        exec->ops[i].done = false;
    }
    exec->ndone = 0;
    return true;
}

/* Launches of one exec follow each other: a stream in front holds `running`, so others' launches
 * wait. */
enum tt_step host_exec_step(struct CUgraphExec_st *exec, void *token, bool calls)
{
    bool progress = false;
    if (!start_launch(exec, token)) return TT_STEP_WAIT;
    for (size_t i = 0; i < exec->nops; i++) {
        struct exec_op *op = &exec->ops[i];
        if (op->done || !deps_done(exec, op)) continue;
        enum tt_step step = host_op_step(&op->op, calls);
        if (step != TT_STEP_WAIT) progress = true;
        if (step != TT_STEP_DONE) continue;
        op->done = true;
        exec->ndone++;
    }
    if (exec->ndone < exec->nops) return progress ? TT_STEP_PROGRESS : TT_STEP_WAIT;
    atomic_store(&exec->running, NULL);
    return TT_STEP_DONE;
}

static int launch_inline(struct CUgraphExec_st *exec, struct CUstream_st *stream,
                         const struct host_op *op)
{
    enum tt_step step = TT_STEP_PROGRESS;
    for (int polls = 0; step != TT_STEP_DONE && polls < 100; polls++) {
        step = host_exec_step(exec, stream, false);
    }
    if (step != TT_STEP_DONE) return host_stream_park(stream, op);
    host_stream_release(stream);
    host_exec_drop(exec);
    return HOST_OK;
}

int tuttiHostGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *handle)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!exec || exec->magic != EXEC_MAGIC) return HOST_INVALID_VALUE;
    if (!stream) return HOST_BAD_HANDLE;
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed))
        return HOST_CAPTURE_UNSUPPORTED;
    struct host_op op = {.kind = HOST_OP_GRAPH, .launch = {exec, stream}};
    atomic_fetch_add(&exec->refs, 1);
    if (!exec->has_calls && !atomic_load(&exec->running) && host_stream_claim_idle(stream)) {
        return launch_inline(exec, stream, &op);
    }
    int rc = host_stream_append(stream, &op);
    if (rc) host_exec_drop(exec);
    return rc;
}

int tuttiHostGraphExecDestroy(struct CUgraphExec_st *exec)
{
    if (!exec || exec->magic != EXEC_MAGIC) return HOST_INVALID_VALUE;
    exec->magic = 0;
    host_exec_drop(exec);
    return HOST_OK;
}
