/* The library's own programs as random sets: their instructions, rank by rank, for change(). */
#include "../check.h"
#include "random_writer.h"

static const struct {
    enum tt_func func;
    enum tt_algo algo;
    enum tt_proto proto;
} rows[] = {
    {TT_FUNC_ALLREDUCE, TT_ALGO_RING, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLREDUCE, TT_ALGO_TREE, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLREDUCE, TT_ALGO_ONESHOT, TT_PROTO_LL},
    {TT_FUNC_ALLREDUCE, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLGATHER, TT_ALGO_RING, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLGATHER, TT_ALGO_ONESHOT, TT_PROTO_LL},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_RING, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_ONESHOT, TT_PROTO_LL},
    {TT_FUNC_ALLGATHER, TT_ALGO_PAT, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_PAT, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLTOALL, TT_ALGO_ONESHOT, TT_PROTO_LL},
    {TT_FUNC_ALLTOALL, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLREDUCE, TT_ALGO_DOUBLING, TT_PROTO_LL},
    {TT_FUNC_ALLREDUCE, TT_ALGO_HALVING, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_BRUCK, TT_PROTO_LL},
    {TT_FUNC_ALLTOALL, TT_ALGO_BRUCK, TT_PROTO_LL},
    {TT_FUNC_ALLREDUCE, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLREDUCE, TT_ALGO_HIERARCHICAL, TT_PROTO_LL},
    {TT_FUNC_ALLREDUCE, TT_ALGO_NVLS, TT_PROTO_SIMPLE}, /* from here on wide sets alone */
    {TT_FUNC_ALLGATHER, TT_ALGO_NVLS, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_NVLS, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLREDUCE, TT_ALGO_NVLS_TREE, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLTOALL, TT_ALGO_PAIRWISE, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLGATHER, TT_ALGO_BRUCK, TT_PROTO_LL},
    {TT_FUNC_ALLGATHER, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLGATHER, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLTOALL, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLTOALL, TT_ALGO_HIERARCHICAL, TT_PROTO_LL},
};
enum { NARROW_ROWS = 18 };

static void copy_insn(struct writer *writer, int rank, int thread, const struct tt_insn *insn)
{
    const struct tt_operand *operands = tt_program_operands(writer->own);
    struct edit_insn *copy = random_append(writer, rank, thread, (enum tt_op)insn->op);
    copy->flags = insn->flags;
    copy->arg = insn->arg;
    copy->thread = insn->thread;
    copy->nchunks = insn->nchunks ? insn->nchunks : 1;
    for (uint32_t j = 0; j < insn->nsrcs; j++)
        random_add_src(copy, operands[insn->first_src + j]);
    for (uint32_t j = 0; j < insn->ndsts; j++)
        random_add_dst(copy, operands[insn->first_dst + j]);
}

static void spread_out(struct writer *writer, int rank)
{
    const struct tt_text *text = tt_program_text(writer->own, rank);
    int nthreads = (int)(text->end - text->first);
    if (nthreads > writer->nthreads) writer->nthreads = nthreads;
    for (int t = 0; t < nthreads; t++) {
        const struct tt_thread *thread =
            &tt_program_threads(writer->own)[text->first + (uint32_t)t];
        for (uint32_t k = thread->first; k + 1 < thread->end; k++)
            copy_insn(writer, rank, t, &tt_program_insns(writer->own)[k]);
    }
}

/* One of the library's own, its instructions spread out for change(). */
void random_write_own(struct writer *writer)
{
    struct random_set *set = writer->set;
    size_t nrows = writer->wide ? sizeof(rows) / sizeof(rows[0]) : NARROW_ROWS;
    uint32_t row = random_draw(writer, (uint32_t)nrows);
    struct tt_tree_links tree[RANDOM_RANKS];
    int nhosts = 2;
    while (set->nranks % nhosts != 0)
        nhosts++;
    struct tt_shape shape = {.nranks = set->nranks,
                             .ring_rank = set->ring,
                             .tree = tree,
                             .by_host = set->ring,
                             .nhosts = nhosts};
    struct tt_program *own = NULL;
    for (int rank = 0; rank < set->nranks; rank++) {
        tree[rank] =
            (struct tt_tree_links){.parent = rank ? (rank - 1) / 2 : -1, .child = {-1, -1, -1}};
        for (int k = 1; k <= 2; k++)
            if (2 * rank + k < set->nranks) tree[rank].child[k - 1] = 2 * rank + k;
    }
    assert_int_equal(
        tt_program_make(rows[row].func, rows[row].algo, rows[row].proto, -1, &shape, &own), 0);
    writer->own = own;
    writer->head = *own;
    writer->nthreads = 1;
    for (int rank = 0; rank < set->nranks; rank++)
        spread_out(writer, rank);
}
