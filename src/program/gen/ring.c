/* Ring programs: every rank receives from the one before it and sends to the one after it.
 * Position independent: chunk numbers count from the own position, so all ranks of a ring differ
 * only in that number and their two neighbours, and a program has the same length for any n.
 *
 * Position i, chunks by position. Reducing: chunk c starts at position c+1, is folded by every rank
 * it passes (what comes first, then the own input) and is complete at position c, after n-1 hops.
 * Gathering: the complete chunk of position i goes round n-1 hops more. The pipelines (Broadcast,
 * Reduce) send the whole buffer once along the ring, chunk after chunk. In place needs no care: a
 * chunk's input is read for the last time before its output is written. */
#include "gen.h"

static struct tt_gen_chunk by_position(int offset, int coef)
{
    return (struct tt_gen_chunk){TT_CHUNK_RING, offset, coef};
}

static struct tt_gen_chunk by_rank(int offset, int coef)
{
    return (struct tt_gen_chunk){TT_CHUNK_RING_RANK, offset, coef};
}

struct links { /* the two slot operands of a ring rank */
    int prev, next;
};

static struct links begin(const struct tt_shape *shape, struct tt_program *program)
{
    int n = shape->nranks;
    program->ring_pos = shape->ring_pos;
    program->ring_rank = shape->ring_rank;
    tt_gen_thread(program);
    return (struct links){.prev = shape->ring_rank[(shape->ring_pos + n - 1) % n],
                          .next = shape->ring_rank[(shape->ring_pos + 1) % n]};
}

static void send(struct tt_program *program, uint8_t flags, struct links links,
                 struct tt_gen_chunk chunk)
{
    struct tt_insn *insn = tt_gen_move(program, flags);
    tt_gen_src(insn, tt_gen_own(TT_SPACE_IN, chunk));
    tt_gen_dst(insn, tt_gen_at(TT_SPACE_SLOT, links.next, chunk));
}

/* Fold what comes with the own input; the caller adds destinations. */
static struct tt_insn *fold(struct tt_program *program, uint8_t flags, struct links links,
                            struct tt_gen_chunk chunk)
{
    struct tt_insn *insn = tt_gen_move(program, TT_MOVE_FOLD | TT_MOVE_PRE | flags);
    tt_gen_src(insn, tt_gen_at(TT_SPACE_SLOT, links.prev, chunk));
    tt_gen_src(insn, tt_gen_own(TT_SPACE_IN, chunk));
    return insn;
}

/* Keep what comes; pass it on unless this is the last hop. */
static void keep(struct tt_program *program, struct links links, struct tt_gen_chunk chunk,
                 bool pass_on)
{
    struct tt_insn *insn = tt_gen_move(program, 0);
    tt_gen_src(insn, tt_gen_at(TT_SPACE_SLOT, links.prev, chunk));
    tt_gen_dst(insn, tt_gen_own(TT_SPACE_OUT, chunk));
    if (pass_on) tt_gen_dst(insn, tt_gen_at(TT_SPACE_SLOT, links.next, chunk));
}

/* The n-1 hops of a reduction but the last: send chunk -1, then fold and pass on -2, -3, ... */
static void reduce_hops(struct tt_program *program, struct links links, enum tt_chunk by)
{
    send(program, TT_MOVE_PRE, links, (struct tt_gen_chunk){by, -1, 0});
    tt_gen_loop(program, program->nranks - 2);
    struct tt_gen_chunk chunk = {by, -2, -1};
    tt_gen_dst(fold(program, 0, links, chunk), tt_gen_at(TT_SPACE_SLOT, links.next, chunk));
    tt_gen_next(program);
}

/* n-1 hops of gathering: keep and pass on -1, -2, ..., keep the last. */
static void gather_hops(struct tt_program *program, struct links links, enum tt_chunk by)
{
    tt_gen_loop(program, program->nranks - 2);
    keep(program, links, (struct tt_gen_chunk){by, -1, -1}, true);
    tt_gen_next(program);
    keep(program, links, (struct tt_gen_chunk){by, 1, 0}, false);
}

void tt_gen_ring_allreduce(const struct tt_shape *shape, struct tt_program *program)
{
    struct links links = begin(shape, program);
    program->geometry = TT_GEOMETRY_SPLIT;
    program->nchunks = program->nranks;
    reduce_hops(program, links, TT_CHUNK_RING);
    struct tt_insn *last = fold(program, TT_MOVE_POST, links, by_position(0, 0));
    tt_gen_dst(last, tt_gen_own(TT_SPACE_OUT, by_position(0, 0)));
    tt_gen_dst(last, tt_gen_at(TT_SPACE_SLOT, links.next, by_position(0, 0)));
    gather_hops(program, links, TT_CHUNK_RING);
    tt_gen_end(program);
}

void tt_gen_ring_reducescatter(const struct tt_shape *shape, struct tt_program *program)
{
    struct links links = begin(shape, program);
    program->geometry = TT_GEOMETRY_BLOCKS;
    program->nchunks = program->nranks;
    program->in_blocks = true;
    reduce_hops(program, links, TT_CHUNK_RING_RANK);
    struct tt_insn *last = fold(program, TT_MOVE_POST, links, by_rank(0, 0));
    tt_gen_dst(last, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    tt_gen_end(program);
}

void tt_gen_ring_allgather(const struct tt_shape *shape, struct tt_program *program)
{
    struct links links = begin(shape, program);
    program->geometry = TT_GEOMETRY_BLOCKS;
    program->nchunks = program->nranks;
    program->out_blocks = true;
    struct tt_insn *first = tt_gen_move(program, 0);
    tt_gen_src(first, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)));
    tt_gen_dst(first, tt_gen_own(TT_SPACE_OUT, by_rank(0, 0)));
    tt_gen_dst(first, tt_gen_at(TT_SPACE_SLOT, links.next, by_rank(0, 0)));
    gather_hops(program, links, TT_CHUNK_RING_RANK);
    tt_gen_end(program);
}

static struct links begin_pipeline(const struct tt_shape *shape, struct tt_program *program)
{
    program->geometry = TT_GEOMETRY_BLOCKS;
    program->nchunks = 1;
    return begin(shape, program);
}

void tt_gen_ring_broadcast(const struct tt_shape *shape, struct tt_program *program)
{
    struct links links = begin_pipeline(shape, program);
    struct tt_gen_chunk all = tt_gen_number(0);
    if (program->rank == program->root) {
        struct tt_insn *first = tt_gen_move(program, 0);
        tt_gen_src(first, tt_gen_own(TT_SPACE_IN, all));
        tt_gen_dst(first, tt_gen_own(TT_SPACE_OUT, all));
        tt_gen_dst(first, tt_gen_at(TT_SPACE_SLOT, links.next, all));
    } else {
        keep(program, links, all, links.next != program->root);
    }
    tt_gen_end(program);
}

void tt_gen_ring_reduce(const struct tt_shape *shape, struct tt_program *program)
{
    struct links links = begin_pipeline(shape, program);
    struct tt_gen_chunk all = tt_gen_number(0);
    if (links.prev == program->root) {
        send(program, TT_MOVE_PRE, links, all);
    } else if (program->rank == program->root) {
        tt_gen_dst(fold(program, TT_MOVE_POST, links, all), tt_gen_own(TT_SPACE_OUT, all));
    } else {
        tt_gen_dst(fold(program, 0, links, all), tt_gen_at(TT_SPACE_SLOT, links.next, all));
    }
    tt_gen_end(program);
}
