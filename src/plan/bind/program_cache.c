/* Programs of one communicator: made once per (function, algorithm, protocol, root, shape), or
 * turned from a file's to another root, never changed, freed with the plan; works of captured
 * graphs refer to them until then. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "plan/plan_state.h"
#include "program/format/build.h"

#include <stdlib.h>
#include <string.h>

/* A line of the log per line of the program. */
static void report(const struct tt_program *program)
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
    if (algo == TT_ALGO_COLLNET_CHAIN) return channel; /* the head's number on its host */
    return 0;
}

static struct tt_shape shape_of(const struct tt_plan *plan, enum tt_algo algo, int variant)
{
    const struct tt_comm *comm = plan->comm;
    return (struct tt_shape){.nranks = comm->member.nranks,
                             .ring_rank = comm->topo.ring[algo == TT_ALGO_RING ? variant : 0],
                             .tree = comm->topo.tree[algo == TT_ALGO_TREE ? variant : 0],
                             .by_host = comm->topo.by_host,
                             .host_first = comm->topo.host_first,
                             .nhosts = comm->topo.by_host ? comm->topo.nnodes : 0,
                             .head = algo == TT_ALGO_COLLNET_CHAIN ? variant : 0};
}

static bool program_is(const struct tt_program_node *node, const struct tt_tune_choice *choice,
                       enum tt_func func, int root, int variant)
{
    const struct tt_program *program = node->program;
    if (choice->program || node->turned)
        return choice->program && node->turned == choice->program->program && node->root == root;
    return program->func == (int32_t)func && program->algo == (int32_t)choice->algo &&
           program->proto == (int32_t)choice->proto && node->root == root &&
           node->variant == variant;
}

static void node_free(struct tt_program_node *node)
{
    if (!node) return;
    free(node->program);
    free(node->refs);
    free(node);
}

static ncclResult_t node_make(struct tt_plan *plan, const struct tt_tune_choice *choice,
                              enum tt_func func, struct tt_program_node *node)
{
    struct tt_shape shape = shape_of(plan, choice->algo, node->variant);
    ncclResult_t rc = node->turned ? tt_program_turn(node->turned, node->root, &node->program)
                                   : tt_program_make(func, choice->algo, choice->proto, node->root,
                                                     &shape, &node->program);
    if (rc) return rc;
    node->refs = tt_calloc(node->program->ninsns, 1);
    if (!node->refs) return tt_fail(ncclSystemError, "program cache: out of memory");
    tt_program_find_refs(node->program, plan->comm->member.rank, node->refs);
    report(node->program);
    return ncclSuccess;
}

ncclResult_t tt_program_get(struct tt_plan *plan, const struct tt_tune_choice *choice,
                            enum tt_func func, int root, int channel, struct tt_frame *frame)
{
    const struct tt_program *file = choice->program ? choice->program->program : NULL;
    if (file && (file->root < 0 || file->root == root)) {
        frame->program = choice->program->program;
        frame->refs = choice->program->refs;
        frame->rank = plan->comm->member.rank;
        return ncclSuccess;
    }
    int variant = shape_variant(plan, choice->algo, channel);
    uint32_t bucket = ((uint32_t)func * 31u + (uint32_t)choice->algo * 7u + (uint32_t)root +
                       (uint32_t)variant * 13u) %
                      TT_PROGRAM_BUCKETS;
    struct tt_program_node *node = plan->programs[bucket];
    while (node && !program_is(node, choice, func, root, variant))
        node = node->next;
    if (!node) {
        node = tt_calloc(1, sizeof(*node));
        if (!node) return tt_fail(ncclSystemError, "program cache: out of memory");
        node->root = root;
        node->variant = variant;
        node->turned = file;
        ncclResult_t rc = node_make(plan, choice, func, node);
        if (rc) {
            node_free(node);
            return rc;
        }
        node->next = plan->programs[bucket];
        plan->programs[bucket] = node;
    }
    frame->program = node->program;
    frame->refs = node->refs;
    frame->rank = plan->comm->member.rank;
    return ncclSuccess;
}

void tt_program_cache_fini(struct tt_plan *plan)
{
    for (int k = 0; k < TT_PROGRAM_BUCKETS; k++) {
        while (plan->programs[k]) {
            struct tt_program_node *node = plan->programs[k];
            plan->programs[k] = node->next;
            node_free(node);
        }
    }
    free(plan->local);
}

ncclResult_t tt_program_local_make(struct tt_plan *plan)
{
    struct tt_builder builder;
    tt_build_begin(&builder, 1);
    builder.head.func = TT_FUNC_SEND;
    builder.head.algo = TT_ALGO_P2P;
    builder.head.proto = TT_PROTO_SIMPLE;
    tt_build_thread(&builder);
    tt_build_move(&builder, TT_MOVE_REDUCE | TT_MOVE_PRE | TT_MOVE_POST);
    tt_build_src(&builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)));
    tt_build_dst(&builder, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    tt_build_stop(&builder);
    return tt_build_end(&builder, &plan->local);
}
