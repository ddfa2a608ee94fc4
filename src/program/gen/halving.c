/* Recursive halving and doubling (Rabenseifner): AllReduce in 2 log2(n) steps that moves as few
 * bytes as a ring. A window has p chunks, p the largest power of two that n holds; rank r < p is to
 * complete chunk r. In the step of 2^l, from the largest down, partners at distance 2^l split what
 * both still have to do: each sends the half that holds the other's chunk and reduces what comes
 * into the half that holds its own. Then the complete chunks go back, from the smallest distance
 * up. Ranks beyond p give all chunks to a partner before and get them back after (doubling.c).
 *
 * Chunks of a half are numbered by xor: own ones me^i, the partner's me^(2^l+i), i < 2^l; at both
 * ends the same chunk comes at the same turn of the loop. A step sends one chunk, then receives
 * one, so as many slots do as a chunk has slices. Every chunk is completed by one rank: all ranks
 * hold the same bits. In place needs no care: the first step reads all of the own input. Thakur,
 * Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005. */
#include "gen.h"

struct step {
    int level;
    enum tt_space from; /* where sums so far are; inputs are scaled when they are read first */
};

static struct tt_gen_chunk own_half(int first)
{
    return (struct tt_gen_chunk){TT_CHUNK_XOR, first, 1};
}

static struct tt_gen_chunk other_half(int level, int first)
{
    return (struct tt_gen_chunk){TT_CHUNK_XOR, (1 << level) + first, 1};
}

static struct tt_operand partner(int level, struct tt_gen_chunk chunk)
{
    return tt_gen_by(TT_SPACE_SLOT, TT_PEER_FLIP, level, chunk);
}

static void send_half(struct tt_builder *builder, const void *exchange, int first)
{
    const struct step *step = exchange;
    struct tt_gen_chunk chunk = other_half(step->level, first);
    tt_build_move(builder, step->from == TT_SPACE_IN ? TT_MOVE_PRE : 0);
    tt_build_src(builder, tt_gen_own(step->from, chunk));
    tt_build_dst(builder, partner(step->level, chunk));
}

static void reduce_half(struct tt_builder *builder, const void *exchange, int first)
{
    const struct step *step = exchange;
    bool inputs = step->from == TT_SPACE_IN, last = step->level == 0;
    tt_build_move(builder, (uint8_t)(TT_MOVE_REDUCE | (inputs ? TT_MOVE_PRE : 0) |
                                     (last ? TT_MOVE_POST : 0)));
    tt_build_src(builder, tt_gen_own(step->from, own_half(first)));
    tt_build_src(builder, partner(step->level, own_half(first)));
    tt_build_dst(builder, tt_gen_own(last ? TT_SPACE_OUT : TT_SPACE_SCRATCH, own_half(first)));
}

static void send_back(struct tt_builder *builder, const void *exchange, int first)
{
    const struct step *step = exchange;
    tt_build_copy(builder, tt_gen_own(TT_SPACE_OUT, own_half(first)),
                  partner(step->level, own_half(first)));
}

static void keep_half(struct tt_builder *builder, const void *exchange, int first)
{
    const struct step *step = exchange;
    struct tt_gen_chunk chunk = other_half(step->level, first);
    tt_build_copy(builder, partner(step->level, chunk), tt_gen_own(TT_SPACE_OUT, chunk));
}

static void halve_and_double(struct tt_builder *builder, int nlevels, bool with_extra)
{
    const int core = 1 << nlevels;
    const struct tt_gen_chunk each = {TT_CHUNK_CONST, 0, 1};
    const struct tt_operand extra = tt_gen_by(TT_SPACE_SLOT, TT_PEER_SHIFT, core, each);
    enum tt_space from = TT_SPACE_IN;
    tt_gen_begin_core(builder, with_extra);
    if (with_extra) {
        tt_build_loop(builder, core);
        tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE);
        tt_build_src(builder, tt_gen_own(TT_SPACE_IN, each));
        tt_build_src(builder, extra);
        tt_build_dst(builder, tt_gen_own(TT_SPACE_SCRATCH, each));
        tt_build_next(builder);
        from = TT_SPACE_SCRATCH;
    }
    struct step step = {.level = nlevels - 1, .from = from};
    for (; step.level >= 0; step.level--, step.from = TT_SPACE_SCRATCH)
        tt_gen_exchange(builder, 1 << step.level, &step, send_half, reduce_half);
    for (step.level = 0; step.level < nlevels; step.level++)
        tt_gen_exchange(builder, 1 << step.level, &step, send_back, keep_half);
    if (with_extra) {
        tt_build_loop(builder, core);
        tt_build_copy(builder, tt_gen_own(TT_SPACE_OUT, each), extra);
        tt_build_next(builder);
    }
    tt_build_stop(builder);
}

void tt_gen_halving_allreduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    int core = tt_gen_largest_power(shape->nranks), nlevels = 0;
    while (1 << nlevels < core)
        nlevels++;
    builder->head.nparts = core;
    builder->head.scratch = core;
    halve_and_double(builder, nlevels, false);
    if (core < shape->nranks) halve_and_double(builder, nlevels, true);
    tt_gen_extra(builder);
}
