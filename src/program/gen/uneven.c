/* Hierarchical AllGather and ReduceScatter where hosts have different numbers of ranks (the others:
 * hierarchical.c). There are as many rails as the smallest host has ranks, a block has as many
 * parts, and rail l carries part l of every block. Positions stand in a ring, host after host, and
 * a rail takes blocks in the order of positions downwards, so that what a host gets, and what it
 * sends on, is one run of positions; only how long these are depends on the host and its neighbour.
 *
 * AllGather: the ranks of a host give each other their blocks. Then a rail sends those of the host,
 * last rank first, and behind them what came, all from OUT: what comes waits there for its turn.
 * What comes goes to the others of the host as well, which take it in a thread of their own.
 *
 * ReduceScatter goes the same way round: a host begins the sums of the host before it and passes on
 * what it gets of all others but its own. What comes is reduced with the inputs of the host's ranks
 * into scratch, where it waits for its turn; the last of it is the host's own and goes to its
 * ranks.
 *
 * A step receives before it sends, and the first send has no receive before it: the rank that did
 * the fewest steps has what it waits for. So each link of a host carries the blocks of the other
 * hosts once. Scratch holds 1 / rails of the input.
 *
 * There is a text for each pair of numbers of ranks that a host and its neighbour have, and rank of
 * the host. */
#include "lane.h"

static int size_of(const struct tt_shape *shape, int host)
{
    int number = (host + shape->nhosts) % shape->nhosts;
    return tt_lane_first(shape, number + 1) - tt_lane_first(shape, number);
}

/* Begin the text of rank `local` of every host of that size and that of its neighbour (`side`: the
 * next one, 1, or the last one, -1), where this host is the first such. False: another one is. */
static bool begin_text(const struct tt_shape *shape, struct tt_builder *builder, int host, int side,
                       int local)
{
    int size = size_of(shape, host), beside = size_of(shape, host + side), text = -1;
    for (int other = 0; other < shape->nhosts; other++) {
        if (size_of(shape, other) != size || size_of(shape, other + side) != beside) continue;
        if (other < host) return false;
        if (text < 0) text = tt_build_text(builder);
        tt_build_assign(builder, shape->by_host[tt_lane_first(shape, other) + local], text);
    }
    tt_build_thread(builder);
    return true;
}

static struct tt_lane lane_of(const struct tt_shape *shape, int host, int local)
{
    return (struct tt_lane){.hosts = shape->nhosts,
                            .locals = size_of(shape, host),
                            .local = local,
                            .rails = tt_lane_rails(shape),
                            .uneven = true};
}

static bool on_rail(const struct tt_lane *lane)
{
    return lane->local < lane->rails;
}

/* A part of the block of the rank that many positions on from the first of the host; in a loop one
 * less each turn. */
static struct tt_operand at_block(const struct tt_lane *lane, struct tt_operand operand, int on,
                                  int part)
{
    operand.chunk_by = TT_CHUNK_RING_RANK;
    operand.chunk = on - lane->local;
    operand.chunk_coef = -1;
    operand.stride = (uint16_t)lane->rails;
    operand.offset = part;
    return operand;
}

static struct tt_operand own(enum tt_space space)
{
    return tt_gen_own(space, tt_gen_number(0));
}

static struct tt_operand beside(const struct tt_lane *lane, int j)
{
    return tt_lane_beside(lane, j, tt_gen_number(0));
}

static struct tt_operand rail(const struct tt_lane *lane, int hosts)
{
    return tt_lane_rail(lane, hosts, tt_gen_number(0));
}

/* ---- AllGather ---- */

/* The own block goes to OUT and to all others of the host. */
static void give_block(struct tt_builder *builder, const struct tt_lane *lane)
{
    int me = lane->local;
    tt_build_move(builder, 0);
    tt_build_range(builder, lane->rails);
    tt_build_src(builder, own(TT_SPACE_IN));
    tt_build_dst(builder, at_block(lane, own(TT_SPACE_OUT), me, 0));
    for (int j = 0; j < lane->locals; j++)
        if (j != me) tt_build_dst(builder, at_block(lane, beside(lane, j), me, 0));
}

/* Steps [from, to) of the rail, which are alike: take what comes, send the next one. */
static void gather_steps(struct tt_builder *builder, const struct tt_lane *lane, const int range[2],
                         bool takes, bool sends)
{
    int part = lane->local, came = -1 - range[0], next = lane->locals - 1 - (range[0] + 1);
    if (range[1] <= range[0]) return;
    tt_build_loop(builder, range[1] - range[0]);
    if (takes) {
        tt_build_copy(builder, at_block(lane, rail(lane, -1), came, part),
                      at_block(lane, own(TT_SPACE_OUT), came, part));
        for (int j = 0; j < lane->locals; j++)
            if (j != part) tt_build_dst(builder, at_block(lane, beside(lane, j), came, part));
    }
    if (sends) {
        tt_build_copy(builder, at_block(lane, own(TT_SPACE_OUT), next, part),
                      at_block(lane, rail(lane, 1), next, part));
    }
    tt_build_next(builder);
}

static void gather_rail(struct tt_builder *builder, const struct tt_lane *lane, int taken, int sent)
{
    int first = lane->locals - 1, both = sent - 1 < taken ? sent - 1 : taken;
    if (lane->locals > 1) tt_build_await(builder, 1, lane->locals - 2); /* blocks of the host */
    tt_build_copy(builder, at_block(lane, own(TT_SPACE_OUT), first, lane->local),
                  at_block(lane, rail(lane, 1), first, lane->local));
    gather_steps(builder, lane, (int[]){0, both}, true, true);
    gather_steps(builder, lane, (int[]){both, taken}, true, false);
    gather_steps(builder, lane, (int[]){both, sent - 1}, false, true);
}

/* The thread that takes what the others of the host have: their blocks, then what came to them. */
static void gather_beside(struct tt_builder *builder, const struct tt_lane *lane, int taken)
{
    tt_build_thread(builder);
    for (int j = 0; j < lane->locals; j++) {
        if (j == lane->local) continue;
        tt_build_copy(builder, at_block(lane, beside(lane, j), j, 0),
                      at_block(lane, own(TT_SPACE_OUT), j, 0));
        tt_build_range(builder, lane->rails);
    }
    if (lane->rails > 1 || !on_rail(lane)) {
        tt_build_loop(builder, taken);
        for (int j = 0; j < lane->rails; j++) {
            if (j == lane->local) continue;
            tt_build_copy(builder, at_block(lane, beside(lane, j), -1, j),
                          at_block(lane, own(TT_SPACE_OUT), -1, j));
        }
        tt_build_next(builder);
    }
    tt_build_stop(builder);
}

void tt_gen_uneven_allgather(const struct tt_shape *shape, struct tt_builder *builder)
{
    tt_lane_tables(shape, builder);
    builder->head.nparts = tt_lane_rails(shape);
    builder->head.out_blocks = true;
    for (int host = 0; host < shape->nhosts; host++) {
        int taken = shape->nranks - size_of(shape, host);
        int sent = shape->nranks - size_of(shape, host + 1);
        for (int local = 0; local < size_of(shape, host); local++) {
            struct tt_lane lane = lane_of(shape, host, local);
            if (!begin_text(shape, builder, host, 1, local)) break;
            give_block(builder, &lane);
            if (on_rail(&lane)) gather_rail(builder, &lane, taken, sent);
            tt_build_stop(builder);
            if (lane.locals > 1) gather_beside(builder, &lane, taken);
        }
    }
}

/* ---- ReduceScatter ---- */

struct run { /* of a host's sums, in blocks; the first `begun` of what it sends begin here */
    int begun, passed, taken, sent; /* taken: those passed on and the host's own */
};

/* Reduce what the ranks of the host have of the `number`-th block before it, and what came of it
 * (`comes`); the caller adds the destination. False: the rank is on no rail, and gave its input. */
static bool reduce_block(struct tt_builder *builder, const struct tt_lane *lane, int number,
                         bool comes, uint8_t flags)
{
    int on = -1 - number, me = lane->local;
    for (int j = 0; j < lane->rails; j++) {
        if (j == me) continue;
        tt_build_move(builder, TT_MOVE_PRE);
        tt_build_src(builder, at_block(lane, own(TT_SPACE_IN), on, j));
        tt_build_dst(builder, at_block(lane, beside(lane, j), on, j));
    }
    if (!on_rail(lane)) return false;
    tt_build_move(builder, flags | TT_MOVE_REDUCE | TT_MOVE_PRE);
    if (comes) tt_build_src(builder, at_block(lane, rail(lane, -1), on, me));
    for (int j = 0; j < lane->locals; j++) {
        struct tt_operand input = j == me ? own(TT_SPACE_IN) : beside(lane, j);
        tt_build_src(builder, at_block(lane, input, on, me));
    }
    return true;
}

static void begin_sum(struct tt_builder *builder, const struct tt_lane *lane, int number)
{
    if (!reduce_block(builder, lane, number, false, 0)) return;
    tt_build_dst(builder, at_block(lane, rail(lane, 1), -1 - number, lane->local));
}

static struct tt_operand in_scratch(int number, int coef)
{
    return tt_gen_own(TT_SPACE_SCRATCH, (struct tt_gen_chunk){TT_CHUNK_CONST, number, coef});
}

/* Steps [from, to) of the host, which are alike: reduce what comes, send the next sum. */
static void reduce_steps(struct tt_builder *builder, const struct tt_lane *lane,
                         const struct run *run, int from, int to)
{
    int next = from + 1;
    bool takes = from < run->taken, begins = next < run->begun;
    bool forwards = !begins && next < run->sent && on_rail(lane);
    if (to <= from || !(takes || begins || forwards)) return;
    tt_build_loop(builder, to - from);
    uint8_t flags = from < run->passed ? 0 : TT_MOVE_POST;
    if (takes && reduce_block(builder, lane, run->begun + from, true, flags))
        tt_build_dst(builder, in_scratch(from, 1));
    if (begins) begin_sum(builder, lane, next);
    if (forwards) {
        tt_build_copy(builder, in_scratch(next - run->begun, 1),
                      at_block(lane, rail(lane, 1), -1 - next, lane->local));
    }
    tt_build_next(builder);
}

static void reduce_rail(struct tt_builder *builder, const struct tt_lane *lane,
                        const struct run *run)
{
    int end = run->taken > run->sent - 1 ? run->taken : run->sent - 1;
    begin_sum(builder, lane, 0);
    for (int from = 0, to; from < end; from = to) { /* where the next step is of another kind */
        const int bounds[] = {run->begun - 1, run->passed, run->taken, run->sent - 1};
        to = end;
        for (int k = 0; k < 4; k++)
            if (bounds[k] > from && bounds[k] < to) to = bounds[k];
        reduce_steps(builder, lane, run, from, to);
    }
}

/* The host's own sums go to its ranks. */
static void scatter_beside(struct tt_builder *builder, const struct tt_lane *lane,
                           const struct run *run)
{
    int me = lane->local;
    for (int j = 0; on_rail(lane) && j < lane->locals; j++) {
        struct tt_gen_chunk part = tt_gen_number(me);
        tt_build_copy(builder, in_scratch(run->taken - 1 - j, 0),
                      j == me ? tt_gen_own(TT_SPACE_OUT, part) : tt_lane_beside(lane, j, part));
    }
    for (int part = 0; part < lane->rails; part++) {
        if (part == me) continue;
        tt_build_copy(builder, tt_lane_beside(lane, part, tt_gen_number(part)),
                      tt_gen_own(TT_SPACE_OUT, tt_gen_number(part)));
    }
}

void tt_gen_uneven_reducescatter(const struct tt_shape *shape, struct tt_builder *builder)
{
    tt_lane_tables(shape, builder);
    builder->head.nparts = tt_lane_rails(shape);
    builder->head.in_blocks = true;
    builder->head.scratch = shape->nranks - tt_lane_rails(shape);
    for (int host = 0; host < shape->nhosts; host++) {
        int n = shape->nranks, size = size_of(shape, host), last = size_of(shape, host - 1);
        const struct run run = {last, n - size - last, n - last, n - size};
        for (int local = 0; local < size; local++) {
            struct tt_lane lane = lane_of(shape, host, local);
            if (!begin_text(shape, builder, host, -1, local)) break;
            reduce_rail(builder, &lane, &run);
            scatter_beside(builder, &lane, &run);
            tt_build_stop(builder);
        }
    }
}
