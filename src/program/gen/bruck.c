/* Bruck's programs: log2(n) steps for any number of ranks, in which ranks at distance 2^s exchange
 * blocks. Blocks are named by displacement: t means the block of rank me+t.
 *
 * AllGather: after the steps below s a rank holds the displacements 0 .. 2^s-1. It sends all of
 * them 2^s down and gets those from 2^s on from 2^s up; the last step brings what is still missing.
 * ReduceScatter is the reverse, from the largest distance down: the sum for displacement 2^s + j
 * goes 2^s up and is reduced there into the sum for j. AlltoAll: the block for rank me+t travels by
 * the bits of t, 2^s up in step s where t has that bit; what is under way is in scratch, the first
 * hop takes it from IN, the last one puts it into OUT. Blocks travel log2(n)/2 times in the mean:
 * for short messages.
 *
 * A step sends as many blocks as an edge has slots before it receives, so a chunk is one slot (an
 * AlltoAll of more ranks than 2 * TT_GEN_AHEAD sends them in pieces). In place is right for
 * AllGather and ReduceScatter; an AlltoAll needs a copy of its input. Bruck et al., "Efficient
 * algorithms for all-to-all communications in multiport message-passing systems", 1997. */
#include "gen.h"

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static struct tt_gen_chunk displaced(int first, int stride)
{
    return (struct tt_gen_chunk){TT_CHUNK_SHIFT, first, stride};
}

static void send_blocks(struct tt_builder *builder, const void *exchange, int first)
{
    const int *step = exchange;
    tt_build_copy(builder, tt_gen_own(TT_SPACE_OUT, displaced(first, 1)),
                  tt_gen_by(TT_SPACE_SLOT, TT_PEER_DOWN, *step, displaced(first, 1)));
}

static void keep_blocks(struct tt_builder *builder, const void *exchange, int first)
{
    const int *step = exchange;
    struct tt_gen_chunk theirs = displaced((1 << *step) + first, 1);
    tt_build_copy(builder, tt_gen_by(TT_SPACE_SLOT, TT_PEER_UP, *step, theirs),
                  tt_gen_own(TT_SPACE_OUT, theirs));
}

void tt_gen_bruck_allgather(const struct tt_shape *shape, struct tt_builder *builder)
{
    int n = shape->nranks;
    builder->head.out_blocks = true;
    tt_build_thread(builder);
    tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)),
                  tt_gen_own(TT_SPACE_OUT, displaced(0, 0)));
    for (int step = 0; 1 << step < n; step++) {
        tt_gen_exchange(builder, smaller(1 << step, n - (1 << step)), &step, send_blocks,
                        keep_blocks);
    }
    tt_build_stop(builder);
}

/* ---- ReduceScatter ---- */

struct sums { /* a piece of a step: displacements from `first` on are all in scratch, or none is */
    int step, first;
    bool gives_reduced, keeps_reduced;
};

static struct tt_operand sum_of(int first, bool reduced)
{
    return reduced ? tt_gen_own(TT_SPACE_SCRATCH, (struct tt_gen_chunk){TT_CHUNK_CONST, first, 1})
                   : tt_gen_own(TT_SPACE_IN, displaced(first, 1));
}

static void send_sums(struct tt_builder *builder, const void *exchange, int first)
{
    const struct sums *sums = exchange;
    int at = (1 << sums->step) + sums->first + first;
    tt_build_move(builder, sums->gives_reduced ? 0 : TT_MOVE_PRE);
    tt_build_src(builder, sum_of(at, sums->gives_reduced));
    tt_build_dst(builder, tt_gen_by(TT_SPACE_SLOT, TT_PEER_UP, sums->step, displaced(at, 1)));
}

static void reduce_sums(struct tt_builder *builder, const void *exchange, int first)
{
    const struct sums *sums = exchange;
    int at = sums->first + first;
    bool last = sums->step == 0;
    tt_build_move(builder, (uint8_t)(TT_MOVE_REDUCE | (sums->keeps_reduced ? 0 : TT_MOVE_PRE) |
                                     (last ? TT_MOVE_POST : 0)));
    tt_build_src(builder, sum_of(at, sums->keeps_reduced));
    tt_build_src(builder, tt_gen_by(TT_SPACE_SLOT, TT_PEER_DOWN, sums->step, displaced(at, 1)));
    tt_build_dst(builder, last ? tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)) : sum_of(at, true));
}

void tt_gen_bruck_reducescatter(const struct tt_shape *shape, struct tt_builder *builder)
{
    int n = shape->nranks, nsteps = 0, nreduced = 0; /* displacements below it are in scratch */
    while (1 << nsteps < n)
        nsteps++;
    builder->head.in_blocks = true;
    tt_build_thread(builder);
    for (int step = nsteps - 1; step >= 0; step--) {
        int have = 1 << step, count = smaller(have, n - have);
        for (int first = 0, end; first < count; first = end) {
            struct sums sums = {step, first, have + first < nreduced, first < nreduced};
            end = count;
            if (sums.keeps_reduced) end = smaller(end, nreduced);
            if (sums.gives_reduced) end = smaller(end, nreduced - have);
            tt_gen_exchange(builder, end - first, &sums, send_sums, reduce_sums);
        }
        if (step > 0 && count > nreduced) nreduced = count;
    }
    tt_build_stop(builder);
    builder->head.scratch = nreduced;
}

/* ---- AlltoAll ---- */

struct blocks { /* displacements first, first + stride, ..., `count` of them */
    int step, first, stride, count;
    bool starts, ends; /* at the own rank comes from IN; at the next one goes to OUT */
};

static struct tt_gen_chunk kept(const struct blocks *blocks, int first)
{
    return (struct tt_gen_chunk){TT_CHUNK_CONST, blocks->first + first * blocks->stride,
                                 blocks->stride};
}

static struct tt_operand hop(const struct blocks *blocks, enum tt_peer peer, int first)
{
    int at = blocks->first + first * blocks->stride;
    return tt_gen_by(TT_SPACE_SLOT, peer, blocks->step, displaced(at, blocks->stride));
}

static void send_hop(struct tt_builder *builder, const void *exchange, int first)
{
    const struct blocks *blocks = exchange;
    int at = blocks->first + first * blocks->stride;
    tt_build_copy(builder,
                  blocks->starts ? tt_gen_own(TT_SPACE_IN, displaced(at, blocks->stride))
                                 : tt_gen_own(TT_SPACE_SCRATCH, kept(blocks, first)),
                  hop(blocks, TT_PEER_UP, first));
}

static void keep_hop(struct tt_builder *builder, const void *exchange, int first)
{
    const struct blocks *blocks = exchange;
    int at = blocks->first + first * blocks->stride;
    tt_build_copy(builder, hop(blocks, TT_PEER_DOWN, first),
                  blocks->ends ? tt_gen_own(TT_SPACE_OUT, displaced(-at, -blocks->stride))
                               : tt_gen_own(TT_SPACE_SCRATCH, kept(blocks, first)));
}

/* One half of an exchange. */
static void repeat(struct tt_builder *builder, const struct blocks *blocks, tt_gen_block *move)
{
    if (blocks->count <= 0) return;
    tt_build_loop(builder, blocks->count);
    move(builder, blocks, 0);
    tt_build_next(builder);
}

static void exchange_piece(struct tt_builder *builder, const struct blocks *blocks,
                           tt_gen_block *half)
{
    if (half) {
        repeat(builder, blocks, half);
    } else {
        tt_gen_exchange(builder, blocks->count, blocks, send_hop, keep_hop);
    }
}

/* The displacements with bit `step`: runs of 2^step, one every 2^(step+1). Along the shorter of the
 * two ways there is a piece for each; the first of a run starts here, those of the first run end.
 */
static void hop_all(struct tt_builder *builder, int n, int step, tt_gen_block *half)
{
    int bit = 1 << step, nruns = (n - 1 - bit) / (2 * bit) + 1;
    for (int k = 0; bit <= nruns && k < bit; k++) {
        int first = bit + k, count = (n - 1 - first) / (2 * bit) + (first < n);
        struct blocks one = {step, first, 0, first < n, k == 0, true};
        struct blocks more = {step, first + 2 * bit, 2 * bit, count - 1, k == 0, false};
        exchange_piece(builder, &one, half);
        exchange_piece(builder, &more, half);
    }
    for (int run = 0; bit > nruns && run < nruns; run++) {
        int first = bit + run * 2 * bit, count = smaller(bit, n - first);
        struct blocks one = {step, first, 0, 1, true, run == 0};
        struct blocks more = {step, first + 1, 1, count - 1, false, run == 0};
        exchange_piece(builder, &one, half);
        exchange_piece(builder, &more, half);
    }
}

void tt_gen_bruck_alltoall(const struct tt_shape *shape, struct tt_builder *builder)
{
    int n = shape->nranks;
    bool whole_steps = n <= 2 * TT_GEN_AHEAD; /* the blocks of a step have slots */
    builder->head.in_blocks = true;
    builder->head.out_blocks = true;
    builder->head.scratch = n > 3 ? n : 0;
    tt_build_thread(builder);
    tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, tt_gen_me()),
                  tt_gen_own(TT_SPACE_OUT, tt_gen_me()));
    for (int step = 0; 1 << step < n; step++) {
        hop_all(builder, n, step, whole_steps ? send_hop : NULL);
        if (whole_steps) hop_all(builder, n, step, keep_hop);
    }
    tt_build_stop(builder);
}
