/* Ring programs: every rank receives from the one before it and sends to the one after it.
 * Neighbours and chunk numbers count from the own position, so that all ranks run one text, which
 * has the same length for any n; in the pipelines the root and its predecessor have their own.
 *
 * Position i, chunks by position. Reducing: chunk c starts at position c+1, is reduced by every
 * rank it passes (what comes first, then the own input) and is complete at position c, after n-1
 * hops. Gathering: the complete chunk of position i goes round n-1 hops more. The pipelines
 * (Broadcast, Reduce) send the whole buffer once along the ring, chunk after chunk. In place needs
 * no care: a chunk's input is read for the last time before its output is written. */
#include "gen.h"

static struct tt_gen_chunk by_position(int offset, int coef)
{
    return (struct tt_gen_chunk){TT_CHUNK_RING, offset, coef};
}

static struct tt_gen_chunk by_rank(int offset, int coef)
{
    return (struct tt_gen_chunk){TT_CHUNK_RING_RANK, offset, coef};
}

static struct tt_operand from_prev(struct tt_gen_chunk chunk)
{
    return tt_gen_by(TT_SPACE_SLOT, TT_PEER_RING, -1, chunk);
}

static struct tt_operand to_next(struct tt_gen_chunk chunk)
{
    return tt_gen_by(TT_SPACE_SLOT, TT_PEER_RING, 1, chunk);
}

static void send(struct tt_builder *builder, uint8_t flags, struct tt_gen_chunk chunk)
{
    tt_build_move(builder, flags);
    tt_build_src(builder, tt_gen_own(TT_SPACE_IN, chunk));
    tt_build_dst(builder, to_next(chunk));
}

/* Reduce what comes with the own input; the caller adds destinations. */
static void reduce(struct tt_builder *builder, uint8_t flags, struct tt_gen_chunk chunk)
{
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE | flags);
    tt_build_src(builder, from_prev(chunk));
    tt_build_src(builder, tt_gen_own(TT_SPACE_IN, chunk));
}

/* Keep what comes. */
static void keep(struct tt_builder *builder, struct tt_gen_chunk chunk)
{
    tt_build_copy(builder, from_prev(chunk), tt_gen_own(TT_SPACE_OUT, chunk));
}

/* The n-1 hops of a reduction but the last: send chunk -1, then reduce and pass on -2, -3, ... */
static void reduce_hops(struct tt_builder *builder, enum tt_chunk by)
{
    send(builder, TT_MOVE_PRE, (struct tt_gen_chunk){by, -1, 0});
    tt_build_loop(builder, builder->head.nranks - 2);
    struct tt_gen_chunk chunk = {by, -2, -1};
    reduce(builder, 0, chunk);
    tt_build_dst(builder, to_next(chunk));
    tt_build_next(builder);
}

/* n-1 hops of gathering: keep and pass on -1, -2, ..., keep the last. */
static void gather_hops(struct tt_builder *builder, enum tt_chunk by)
{
    struct tt_gen_chunk chunk = {by, -1, -1};
    tt_build_loop(builder, builder->head.nranks - 2);
    keep(builder, chunk);
    tt_build_dst(builder, to_next(chunk));
    tt_build_next(builder);
    keep(builder, (struct tt_gen_chunk){by, 1, 0});
}

void tt_gen_ring_allreduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.nparts = builder->head.nranks;
    tt_build_thread(builder);
    reduce_hops(builder, TT_CHUNK_RING);
    reduce(builder, TT_MOVE_POST, by_position(0, 0));
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, by_position(0, 0)));
    tt_build_dst(builder, to_next(by_position(0, 0)));
    gather_hops(builder, TT_CHUNK_RING);
    tt_build_stop(builder);
}

void tt_gen_ring_reducescatter(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.in_blocks = true;
    tt_build_thread(builder);
    reduce_hops(builder, TT_CHUNK_RING_RANK);
    reduce(builder, TT_MOVE_POST, by_rank(0, 0));
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    tt_build_stop(builder);
}

void tt_gen_ring_allgather(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.out_blocks = true;
    tt_build_thread(builder);
    tt_build_move(builder, 0);
    tt_build_src(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)));
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, by_rank(0, 0)));
    tt_build_dst(builder, to_next(by_rank(0, 0)));
    gather_hops(builder, TT_CHUNK_RING_RANK);
    tt_build_stop(builder);
}

/* ---- pipelines ---- */

enum position { AT_ROOT, BETWEEN, BESIDE_ROOT };

/* Begin the text of that place; `last`: the one where the pipeline ends or begins beside the root,
 * that many places on from it. */
static void begin_position(const struct tt_shape *shape, struct tt_builder *builder,
                           enum position position, int last)
{
    int n = shape->nranks;
    if (position != AT_ROOT) tt_build_stop(builder);
    int text = tt_build_text(builder);
    tt_build_thread(builder);
    int root_pos = 0;
    while (shape->ring_rank[root_pos] != builder->head.root)
        root_pos++;
    int first = position == BETWEEN ? 1 : position == AT_ROOT ? 0 : last;
    int end = position == BETWEEN ? n : first + 1;
    for (int k = first; k < end; k++) /* the last place is given its own text after this */
        tt_build_assign(builder, shape->ring_rank[(root_pos + k) % n], text);
}

void tt_gen_ring_broadcast(const struct tt_shape *shape, struct tt_builder *builder)
{
    struct tt_gen_chunk all = tt_gen_number(0);
    int last = shape->nranks - 1;
    begin_position(shape, builder, AT_ROOT, last);
    tt_build_move(builder, 0);
    tt_build_src(builder, tt_gen_own(TT_SPACE_IN, all));
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, all));
    tt_build_dst(builder, to_next(all));
    begin_position(shape, builder, BETWEEN, last);
    keep(builder, all);
    tt_build_dst(builder, to_next(all));
    begin_position(shape, builder, BESIDE_ROOT, last);
    keep(builder, all);
    tt_build_stop(builder);
}

void tt_gen_ring_reduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    struct tt_gen_chunk all = tt_gen_number(0);
    begin_position(shape, builder, AT_ROOT, 1);
    reduce(builder, TT_MOVE_POST, all);
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, all));
    begin_position(shape, builder, BETWEEN, 1);
    reduce(builder, 0, all);
    tt_build_dst(builder, to_next(all));
    begin_position(shape, builder, BESIDE_ROOT, 1);
    send(builder, TT_MOVE_PRE, all);
    tt_build_stop(builder);
}
