/* Hierarchical AllReduce, AllGather and ReduceScatter of short messages (LL): a rank sends to all
 * other hosts at once, in two steps in place of 2(H-1) round the rails (hierarchical.c).
 *
 * A chunk has a home: the rank that completes its sum and has the result first. Where hosts are
 * even, or chunks are blocks, each rank is home of one; in an AllReduce over uneven hosts as many
 * ranks of each host as the smallest has. What goes to a home j of another host, and what comes
 * from there, goes through one rank of this host, its carrier: j modulo the number of ranks that
 * are homes here. So on hosts with as many homes it is j, along its rail; a host of few ranks
 * carries for a larger one in turns, `layer` after layer, each for as many homes as it has
 * carriers.
 *
 * Reduce: all ranks of a host give a carrier their inputs, and what it sums goes to the home, which
 * adds its own host's. Gather: the home sends its result to a carrier on each host, and these give
 * it to the others there. A rank gives a block to each carrier before it carries its own, and waits
 * for theirs in the same order: two slots per edge are enough.
 *
 * Positions stand in a ring, host after host. Where hosts are even all have the same texts; where
 * they are not each rank has its own, in which a loop runs over hosts that are alike
 * (tt_lane_next_run()). */
#include "lane.h"

static int homes_of(const struct tt_lane *lane, int locals)
{
    return lane->by == TT_CHUNK_ROUND ? lane->rails : locals;
}

static bool is_home(const struct tt_lane *lane)
{
    return lane->local < homes_of(lane, lane->locals);
}

/* Of home j, in a loop over the run's hosts. */
static struct tt_gen_chunk chunk_of(const struct tt_lane *lane, const struct tt_lane_run *run,
                                    int j)
{
    if (lane->by == TT_CHUNK_ROUND)
        return (struct tt_gen_chunk){lane->by, j + run->first * lane->rails, lane->rails};
    return (struct tt_gen_chunk){lane->by, run->at + j - lane->local, run->locals};
}

/* Of home j on this host. */
static struct tt_gen_chunk chunk_here(const struct tt_lane *lane, int j)
{
    return (struct tt_gen_chunk){lane->by, lane->by == TT_CHUNK_ROUND ? j : j - lane->local, 0};
}

static struct tt_operand home_of(const struct tt_lane *lane, const struct tt_lane_run *run, int j)
{
    struct tt_operand operand =
        tt_gen_by(TT_SPACE_SLOT, TT_PEER_RING, run->at + j - lane->local, chunk_of(lane, run, j));
    operand.peer_coef = (int16_t)run->locals;
    return operand;
}

/* Slots to or from the ranks on all other hosts that carry the own chunk. */
static void with_carriers(struct tt_builder *builder, const struct tt_lane *lane,
                          void (*add)(struct tt_builder *builder, struct tt_operand operand))
{
    struct tt_lane_run run = {0};
    while (tt_lane_next_run(lane, &run)) {
        int carrier = run.at + lane->local % homes_of(lane, run.locals) - lane->local;
        for (int host = 0; host < run.count; host++) {
            add(builder, tt_gen_by(TT_SPACE_SLOT, TT_PEER_RING, carrier + host * run.locals,
                                   chunk_here(lane, lane->local)));
        }
    }
}

static void give_input(struct tt_builder *builder, const struct tt_lane *lane, int carrier,
                       struct tt_gen_chunk chunk)
{
    tt_build_move(builder, TT_MOVE_PRE);
    tt_build_src(builder, tt_gen_own(TT_SPACE_IN, chunk));
    tt_build_dst(builder, tt_lane_beside(lane, carrier, chunk));
}

static void take_output(struct tt_builder *builder, const struct tt_lane *lane, int carrier,
                        struct tt_gen_chunk chunk)
{
    tt_build_copy(builder, tt_lane_beside(lane, carrier, chunk), tt_gen_own(TT_SPACE_OUT, chunk));
}

/* Sum what this host has for the others. */
static void reduce_layer(struct tt_builder *builder, const struct tt_lane *lane,
                         const struct tt_lane_run *run, int layer)
{
    int carriers = homes_of(lane, lane->locals), mine = layer + lane->local;
    for (int k = 0; k < carriers && layer + k < homes_of(lane, run->locals); k++)
        if (k != lane->local) give_input(builder, lane, k, chunk_of(lane, run, layer + k));
    if (!is_home(lane) || mine >= homes_of(lane, run->locals)) return;
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE);
    tt_lane_from_beside(builder, lane, chunk_of(lane, run, mine));
    tt_build_dst(builder, home_of(lane, run, mine));
}

/* Give this host what came from the others. */
static void gather_layer(struct tt_builder *builder, const struct tt_lane *lane,
                         const struct tt_lane_run *run, int layer)
{
    int carriers = homes_of(lane, lane->locals), mine = layer + lane->local;
    if (is_home(lane) && mine < homes_of(lane, run->locals)) {
        struct tt_gen_chunk chunk = chunk_of(lane, run, mine);
        tt_build_copy(builder, home_of(lane, run, mine), tt_gen_own(TT_SPACE_OUT, chunk));
        tt_lane_to_beside(builder, lane, chunk);
    }
    for (int k = 0; k < carriers && layer + k < homes_of(lane, run->locals); k++)
        if (k != lane->local) take_output(builder, lane, k, chunk_of(lane, run, layer + k));
}

typedef void each_layer(struct tt_builder *builder, const struct tt_lane *lane,
                        const struct tt_lane_run *run, int layer);

static void other_hosts(struct tt_builder *builder, const struct tt_lane *lane, each_layer *write)
{
    struct tt_lane_run run = {0};
    while (tt_lane_next_run(lane, &run)) {
        tt_build_loop(builder, run.count);
        for (int layer = 0; layer < homes_of(lane, run.locals);
             layer += homes_of(lane, lane->locals))
            write(builder, lane, &run, layer);
        tt_build_next(builder);
    }
}

/* Up to the move that completes the own chunk, if there is one; the caller adds destinations. */
static void reduce(struct tt_builder *builder, const struct tt_lane *lane)
{
    other_hosts(builder, lane, reduce_layer);
    for (int k = 0; k < homes_of(lane, lane->locals); k++)
        if (k != lane->local) give_input(builder, lane, k, chunk_here(lane, k));
    if (!is_home(lane)) return;
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE | TT_MOVE_POST);
    with_carriers(builder, lane, tt_build_src);
    tt_lane_from_beside(builder, lane, chunk_here(lane, lane->local));
}

static void gather(struct tt_builder *builder, const struct tt_lane *lane)
{
    if (is_home(lane)) {
        with_carriers(builder, lane, tt_build_dst);
        tt_lane_to_beside(builder, lane, chunk_here(lane, lane->local));
    }
    for (int k = 0; k < homes_of(lane, lane->locals); k++)
        if (k != lane->local) take_output(builder, lane, k, chunk_here(lane, k));
    other_hosts(builder, lane, gather_layer);
}

static void half_text(struct tt_builder *builder, const struct tt_lane *lane, bool reduces,
                      bool gathers)
{
    if (reduces) {
        reduce(builder, lane);
    } else {
        tt_build_move(builder, 0);
        tt_build_src(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)));
    }
    if (is_home(lane)) {
        struct tt_gen_chunk here = chunk_here(lane, lane->local);
        tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, gathers ? here : tt_gen_number(0)));
    }
    if (gathers) gather(builder, lane);
    tt_build_stop(builder);
}

void tt_gen_at_once(const struct tt_shape *shape, struct tt_builder *builder, bool reduces,
                    bool gathers)
{
    enum tt_chunk by = TT_CHUNK_RING_RANK;
    if (reduces && gathers) by = shape->host_first ? TT_CHUNK_ROUND : TT_CHUNK_RING;
    for (int host = 0; host < (shape->host_first ? shape->nhosts : 1); host++) {
        int locals = tt_lane_first(shape, host + 1) - tt_lane_first(shape, host);
        for (int local = 0; local < locals; local++) {
            struct tt_lane lane;
            tt_lane_begin_host(shape, builder, host, local, &lane);
            lane.by = by;
            half_text(builder, &lane, reduces, gathers);
        }
    }
}
