/* Recursive doubling: AllReduce of short messages in log2(n) steps. In the step of 2^s partners at
 * distance 2^s exchange all that they have and both reduce it, so that after the last step
 * each rank has the whole sum. Beyond the largest power of two p that n holds, rank p+j gives its
 * input to rank j before and gets the result from it after.
 *
 * The two partners of a step reduce the same two sums, each its own first: equal for everything
 * that adds up, but the minimum of +0 and -0 or of two NaNs may be one on one rank and the other on
 * the next. So tune/ does not choose this for minima and maxima of floats.
 *
 * A step sends before it receives, so as many slots do as a chunk has slices. In place needs no
 * care: OUT is written by the last move that reads anything of the own rank. */
#include "gen.h"

enum kind { ALONE, WITH_EXTRA, EXTRA };

int tt_gen_largest_power(int n)
{
    int power = 1;
    while (power <= n / 2)
        power *= 2;
    return power;
}

void tt_gen_begin_core(struct tt_builder *builder, bool with_extra)
{
    int n = builder->head.nranks, core = tt_gen_largest_power(n);
    int first = with_extra ? 0 : n - core, end = with_extra ? n - core : core;
    int text = tt_build_text(builder);
    for (int rank = first; rank < end; rank++)
        tt_build_assign(builder, rank, text);
    tt_build_thread(builder);
}

void tt_gen_extra(struct tt_builder *builder)
{
    int n = builder->head.nranks, core = tt_gen_largest_power(n);
    struct tt_gen_chunk chunk = {TT_CHUNK_CONST, 0, 1};
    struct tt_operand partner = tt_gen_by(TT_SPACE_SLOT, TT_PEER_SHIFT, -core, chunk);
    if (n == core) return;
    int text = tt_build_text(builder);
    for (int rank = core; rank < n; rank++)
        tt_build_assign(builder, rank, text);
    tt_build_thread(builder);
    tt_build_loop(builder, builder->head.nparts);
    tt_build_move(builder, TT_MOVE_PRE);
    tt_build_src(builder, tt_gen_own(TT_SPACE_IN, chunk));
    tt_build_dst(builder, partner);
    tt_build_next(builder);
    tt_build_loop(builder, builder->head.nparts);
    tt_build_copy(builder, partner, tt_gen_own(TT_SPACE_OUT, chunk));
    tt_build_next(builder);
    tt_build_stop(builder);
}

void tt_gen_exchange(struct tt_builder *builder, int count, const void *exchange,
                     tt_gen_block *send, tt_gen_block *receive)
{
    int ahead = count < TT_GEN_AHEAD ? count : TT_GEN_AHEAD;
    if (count <= 0) return;
    tt_build_loop(builder, ahead);
    send(builder, exchange, 0);
    tt_build_next(builder);
    if (count > ahead) {
        tt_build_loop(builder, count - ahead);
        receive(builder, exchange, 0);
        send(builder, exchange, ahead);
        tt_build_next(builder);
    }
    tt_build_loop(builder, ahead);
    receive(builder, exchange, count - ahead);
    tt_build_next(builder);
}

static void double_up(struct tt_builder *builder, bool with_extra)
{
    const int core = tt_gen_largest_power(builder->head.nranks);
    const struct tt_gen_chunk all = tt_gen_number(0);
    const struct tt_operand extra = tt_gen_by(TT_SPACE_SLOT, TT_PEER_SHIFT, core, all);
    struct tt_operand sum = tt_gen_own(TT_SPACE_IN, all);
    uint8_t pre = TT_MOVE_PRE;
    tt_gen_begin_core(builder, with_extra);
    if (with_extra) {
        tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE);
        tt_build_src(builder, sum);
        tt_build_src(builder, extra);
        sum = tt_gen_own(TT_SPACE_SCRATCH, all);
        tt_build_dst(builder, sum);
        pre = 0;
    }
    for (int step = 0; 1 << step < core; step++) {
        struct tt_operand partner = tt_gen_by(TT_SPACE_SLOT, TT_PEER_FLIP, step, all);
        bool last = 2 << step == core;
        tt_build_move(builder, pre);
        tt_build_src(builder, sum);
        tt_build_dst(builder, partner);
        tt_build_move(builder, (uint8_t)(TT_MOVE_REDUCE | pre | (last ? TT_MOVE_POST : 0)));
        tt_build_src(builder, sum);
        tt_build_src(builder, partner);
        sum = tt_gen_own(last ? TT_SPACE_OUT : TT_SPACE_SCRATCH, all);
        tt_build_dst(builder, sum);
        if (last && with_extra) tt_build_dst(builder, extra);
        pre = 0;
    }
    tt_build_stop(builder);
}

void tt_gen_doubling_allreduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    bool even = tt_gen_largest_power(shape->nranks) == shape->nranks;
    builder->head.scratch = 1;
    double_up(builder, false);
    if (!even) double_up(builder, true);
    tt_gen_extra(builder);
}
