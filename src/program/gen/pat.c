/* PAT programs (parallel trees): n trees at once, one per block, in one step per power of two.
 *
 * Blocks are named by displacement: t means the block of rank me+t. An AllGather handles the
 * powers from the largest down. In the step of 2^d a rank holds the blocks 0, 2^(d+1), 2*2^(d+1),
 * ...; it sends them to the rank 2^d below, where they are t + 2^d, and gets from 2^d above what it
 * knows as t + 2^d. Afterwards it holds every multiple of 2^d. Far hops carry one block, near
 * hops half of all, each block comes once, and any number of ranks will do: a block beyond the
 * last is not sent.
 *
 * A ReduceScatter is the reverse: from the smallest power up, the sum for displacement t + 2^d goes
 * 2^d up and is reduced into the sum for t there. Sums are kept in scratch, one for each even t,
 * until the own block is complete and goes to OUT. A sum begins with the own input; the order of
 * all reduces depends on the number of ranks alone, so it is the same for any size and channel.
 *
 * All ranks run one text, whose length grows with log2(n). A step sends before it receives, block
 * by block, so as many slots do as a chunk has slices. In place needs no care: an AllGather's own
 * block is in its place already, a ReduceScatter writes OUT in its last move.
 * Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale", 2025. */
#include "gen.h"

/* Blocks of one step: displacements first, first + stride, ... counted by the loop's register. */
struct span {
    int power; /* the step's d */
    int first, stride;
};

typedef void exchange_blocks(struct tt_builder *builder, const struct span *span);

static struct tt_gen_chunk block(const struct span *span, int more)
{
    return (struct tt_gen_chunk){TT_CHUNK_SHIFT, span->first + more, span->stride};
}

static int powers(int n)
{
    int count = 0;
    while (1 << count < n)
        count++;
    return count;
}

/* Blocks that a step moves: those t = k * 2^(power+1) with t + 2^power < n. */
static int blocks_of(int n, int power)
{
    int stride = 2 << power;
    return (n - (1 << power) + stride - 1) / stride;
}

/* The step's blocks from the k-th on, `count` of them; few, far apart ones one by one, as their
 * distance is more than an operand can say. */
static void step(struct tt_builder *builder, int power, int k, int count, exchange_blocks *exchange)
{
    struct span span = {.power = power, .first = k * (2 << power), .stride = 2 << power};
    if (count > 1 && span.stride <= INT16_MAX) {
        tt_build_loop(builder, count);
        exchange(builder, &span);
        tt_build_next(builder);
        return;
    }
    for (; count > 0; count--, span.first += 2 << power) {
        span.stride = 0;
        exchange(builder, &span);
    }
}

static void pass_down(struct tt_builder *builder, const struct span *span)
{
    struct tt_gen_chunk here = block(span, 0), there = block(span, 1 << span->power);
    tt_build_copy(builder, tt_gen_own(TT_SPACE_OUT, here),
                  tt_gen_by(TT_SPACE_SLOT, TT_PEER_DOWN, span->power, here));
    tt_build_copy(builder, tt_gen_by(TT_SPACE_SLOT, TT_PEER_UP, span->power, there),
                  tt_gen_own(TT_SPACE_OUT, there));
}

void tt_gen_pat_allgather(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    int n = builder->head.nranks;
    builder->head.out_blocks = true;
    tt_build_thread(builder);
    tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)),
                  tt_gen_own(TT_SPACE_OUT, (struct tt_gen_chunk){TT_CHUNK_SHIFT, 0, 0}));
    for (int power = powers(n) - 1; power >= 0; power--)
        step(builder, power, 0, blocks_of(n, power), pass_down);
    tt_build_stop(builder);
}

/* The sum for displacement first + more, + stride * i: even ones have scratch. */
static struct tt_operand sum_of(const struct span *span, int more)
{
    struct tt_gen_chunk chunk = {TT_CHUNK_CONST, (span->first + more) / 2, span->stride / 2};
    return tt_gen_own(TT_SPACE_SCRATCH, chunk);
}

/* Nothing was reduced yet into the sum for an odd displacement, nor for the last one. */
static void pass_up(struct tt_builder *builder, const struct span *span)
{
    int n = builder->head.nranks, apart = 1 << span->power;
    struct tt_gen_chunk here = block(span, 0), there = block(span, apart);
    bool complete = span->power == powers(n) - 1;
    bool untouched = span->power == 0 || (span->stride == 0 && span->first + apart == n - 1);
    uint8_t pre = span->power == 0 ? TT_MOVE_PRE : 0;
    tt_build_move(builder, untouched ? TT_MOVE_PRE : 0);
    tt_build_src(builder, untouched ? tt_gen_own(TT_SPACE_IN, there) : sum_of(span, apart));
    tt_build_dst(builder, tt_gen_by(TT_SPACE_SLOT, TT_PEER_UP, span->power, there));
    tt_build_move(builder, (uint8_t)(TT_MOVE_REDUCE | pre | (complete ? TT_MOVE_POST : 0)));
    tt_build_src(builder, pre ? tt_gen_own(TT_SPACE_IN, here) : sum_of(span, 0));
    tt_build_src(builder, tt_gen_by(TT_SPACE_SLOT, TT_PEER_DOWN, span->power, here));
    tt_build_dst(builder, complete ? tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)) : sum_of(span, 0));
}

void tt_gen_pat_reducescatter(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    int n = builder->head.nranks;
    builder->head.in_blocks = true;
    builder->head.scratch = n > 2 ? n / 2 : 0;
    tt_build_thread(builder);
    for (int power = 0; power < powers(n); power++) {
        int count = blocks_of(n, power), last = (count - 1) * (2 << power) + (1 << power);
        bool apart = power > 0 && last == n - 1; /* comes from IN, the others from scratch */
        step(builder, power, 0, count - apart, pass_up);
        if (apart) step(builder, power, count - 1, 1, pass_up);
    }
    tt_build_stop(builder);
}
