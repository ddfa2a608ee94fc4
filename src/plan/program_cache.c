/* Programs of one communicator: made once per (function, algorithm, protocol, root, shape), never
 * changed, freed with the plan; works of captured graphs refer to them until then. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "plan/plan_state.h"

#include <stdlib.h>
#include <string.h>

/* A line of the log per line of the program. */
static void tell(const struct tt_program *program)
{
    if (!tt_log_on(TT_LOG_TRACE, TT_LOG_COLL)) return;
    int length = tt_program_print(program, NULL, 0);
    char *text = malloc((size_t)length + 1);
    if (!text) return;
    tt_program_print(program, text, (size_t)length + 1);
    char *rest = text;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        tt_trace(TT_LOG_COLL, "program: %s", line);
    free(text);
}

/* Channels share rings and trees; the rest does not depend on the channel. */
static int shape_variant(const struct tt_plan *plan, enum tt_algo algo, int channel)
{
    if (algo == TT_ALGO_RING) return plan->comm->topo.ring_of[channel];
    if (algo == TT_ALGO_TREE) return plan->comm->topo.tree_of[channel];
    return 0;
}

static void shape_fill(const struct tt_plan *plan, enum tt_algo algo, int variant,
                       struct tt_shape *shape)
{
    const struct tt_comm *comm = plan->comm;
    *shape = (struct tt_shape){.nranks = comm->member.nranks,
                               .rank = comm->member.rank,
                               .tree = {.parent = -1, .child = {-1, -1, -1}}};
    int ring = algo == TT_ALGO_RING ? variant : 0;
    shape->ring_rank = comm->topo.ring[ring];
    for (int k = 0; shape->ring_rank && k < shape->nranks; k++) {
        if (shape->ring_rank[k] == shape->rank) shape->ring_pos = k;
    }
    const struct tt_tree_place *tree = comm->topo.tree[algo == TT_ALGO_TREE ? variant : 0];
    if (tree) shape->tree = tree[shape->rank];
}

static bool program_is(const struct tt_program_node *node, const struct tt_tune_choice *choice,
                       enum tt_func func, int root, int variant)
{
    const struct tt_program *program = &node->program;
    return program->func == func && program->algo == choice->algo &&
           program->proto == choice->proto && program->root == root && node->variant == variant;
}

ncclResult_t tt_program_get(struct tt_plan *plan, const struct tt_tune_choice *choice,
                            enum tt_func func, int root, int channel,
                            const struct tt_program **program_out)
{
    int variant = shape_variant(plan, choice->algo, channel);
    uint32_t bucket = ((uint32_t)func * 31u + (uint32_t)choice->algo * 7u + (uint32_t)root +
                       (uint32_t)variant * 13u) %
                      TT_PROGRAM_BUCKETS;
    for (struct tt_program_node *node = plan->programs[bucket]; node; node = node->next) {
        if (!program_is(node, choice, func, root, variant)) continue;
        *program_out = &node->program;
        return ncclSuccess;
    }
    struct tt_program_node *node = tt_calloc(1, sizeof(*node));
    if (!node) return tt_fail(ncclSystemError, "program cache: out of memory");
    struct tt_shape shape;
    shape_fill(plan, choice->algo, variant, &shape);
    ncclResult_t rc =
        tt_program_make(func, choice->algo, choice->proto, root, &shape, &node->program);
    if (rc) {
        free(node);
        return rc;
    }
    node->program.root = root;
    node->variant = variant;
    node->next = plan->programs[bucket];
    plan->programs[bucket] = node;
    tell(&node->program);
    *program_out = &node->program;
    return ncclSuccess;
}

void tt_program_cache_fini(struct tt_plan *plan)
{
    for (int k = 0; k < TT_PROGRAM_BUCKETS; k++) {
        while (plan->programs[k]) {
            struct tt_program_node *node = plan->programs[k];
            plan->programs[k] = node->next;
            free(node);
        }
    }
}

void tt_program_local_init(struct tt_program *program)
{
    *program = (struct tt_program){.func = TT_FUNC_SEND,
                                   .algo = TT_ALGO_P2P,
                                   .proto = TT_PROTO_SIMPLE,
                                   .geometry = TT_GEOMETRY_BLOCKS,
                                   .nranks = 1,
                                   .root = -1,
                                   .nchunks = 1,
                                   .nthreads = 1,
                                   .thread_first = {0, 2, 2, 2, 2},
                                   .ninsns = 2};
    program->insns[0] = (struct tt_insn){
        .op = TT_OP_MOVE,
        .flags = TT_MOVE_FOLD | TT_MOVE_PRE | TT_MOVE_POST,
        .nsrcs = 1,
        .ndsts = 1,
        .src = {{.space = TT_SPACE_IN, .peer = TT_PEER_SELF, .chunk_by = TT_CHUNK_CONST}},
        .dst = {{.space = TT_SPACE_OUT, .peer = TT_PEER_SELF, .chunk_by = TT_CHUNK_CONST}}};
    program->insns[1] = (struct tt_insn){.op = TT_OP_END};
}
