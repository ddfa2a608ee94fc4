/* AlltoAll of hosts with several ranks each: blocks are sorted inside a host first, so that a rank
 * sends one message to each other host, and not one to each of its ranks.
 *
 * Positions stand in a ring, host after host. The block of rank i of host a for rank j of host b,
 * which have A and B ranks, goes to rank j of host a (modulo A) and from there to j of b, where it
 * stays: so rank k of a sends to rank k of b what all ranks of a have for it, A blocks one behind
 * the other, of which a network makes one message where they are short. Where A < B rank k does so
 * for k + A, k + 2A, ... as well: `layer` after layer, each for A ranks of b. Each block crosses
 * once, as in any AlltoAll; what is saved are messages, (H-1) a rank for (H-1)A on even hosts, and
 * connections. For short blocks on many hosts.
 *
 * LL sends to all hosts before it receives, and gives the others of its host their blocks for up to
 * TT_GEN_AHEAD hosts in advance: two steps, and one more for each so many hosts. SIMPLE exchanges
 * with one host after the other, so that each link carries the data of one partner at a time. What
 * comes from a rank of the host goes on in the same move: there is no scratch. A rank sends as many
 * blocks to another as an edge has slots before it receives, so a chunk is one slot, and hosts of
 * more than TT_GEN_AHEAD ranks go in rounds of so many senders. In place needs a copy of the input.
 *
 * Where hosts are even all have the same texts; where they are not each rank has its own, in which
 * a loop runs over hosts that are alike (tt_lane_next_run()). */
#include "lane.h"

struct way { /* of the blocks that leave the host */
    const struct tt_lane *lane;
    struct tt_lane_run run;
    int layer;
    int first; /* of a host's ranks those send now that are from this one on, TT_GEN_AHEAD at most
                */
};

static int end_of_round(const struct way *way, int locals)
{
    return way->first + TT_GEN_AHEAD < locals ? way->first + TT_GEN_AHEAD : locals;
}

/* The block for rank j of the run's first host, or of the one that is `hosts` further; in a loop
 * one further each turn. */
static struct tt_gen_chunk block_for(const struct way *way, int j, int hosts)
{
    const struct tt_lane_run *run = &way->run;
    int distance = run->at + hosts * run->locals + j - way->lane->local;
    return (struct tt_gen_chunk){way->lane->by, distance, run->locals};
}

static bool gives(const struct way *way)
{
    const struct tt_lane *lane = way->lane;
    int for_host = way->run.locals - way->layer;
    bool in_round = lane->local >= way->first && lane->local < end_of_round(way, lane->locals);
    if (for_host > lane->locals) for_host = lane->locals;
    return in_round && for_host > (lane->local < for_host);
}

static bool sends(const struct way *way)
{
    return way->first < way->lane->locals && way->layer + way->lane->local < way->run.locals;
}

/* Give the others of the host what they send for this rank to that host. */
static void give_host(struct tt_builder *builder, const void *exchange, int hosts)
{
    const struct way *way = exchange;
    const struct tt_lane *lane = way->lane;
    for (int k = 0; k < lane->locals && way->layer + k < way->run.locals; k++) {
        struct tt_gen_chunk theirs = block_for(way, way->layer + k, hosts);
        if (k == lane->local) continue;
        tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, theirs), tt_lane_beside(lane, k, theirs));
    }
}

/* Send what they have for the rank there, one behind the other. */
static void send_host(struct tt_builder *builder, const void *exchange, int hosts)
{
    const struct way *way = exchange;
    const struct tt_lane *lane = way->lane;
    struct tt_gen_chunk own = block_for(way, way->layer + lane->local, hosts);
    struct tt_operand there = tt_gen_by(TT_SPACE_SLOT, TT_PEER_RING, own.number, own);
    there.peer_coef = (int16_t)own.coef;
    for (int j = way->first; j < end_of_round(way, lane->locals); j++) {
        bool mine = j == lane->local;
        tt_build_copy(builder, mine ? tt_gen_own(TT_SPACE_IN, own) : tt_lane_beside(lane, j, own),
                      there);
    }
}

/* Of the run's first host back, in a loop one further back each turn. */
static void receive_host(struct tt_builder *builder, const struct way *way)
{
    const struct tt_lane *lane = way->lane;
    const struct tt_lane_run *run = &way->run;
    int sender = run->at_behind + lane->local % run->behind - lane->local;
    for (int j = way->first; j < end_of_round(way, run->behind); j++) {
        struct tt_gen_chunk theirs = {lane->by, run->at_behind + j - lane->local, -run->behind};
        struct tt_operand from = tt_gen_by(TT_SPACE_SLOT, TT_PEER_RING, sender, theirs);
        from.peer_coef = (int16_t)-run->behind;
        tt_build_copy(builder, from, tt_gen_own(TT_SPACE_OUT, theirs));
    }
}

static void exchange_inside(struct tt_builder *builder, const struct tt_lane *lane)
{
    for (int j = 0; j < lane->locals; j++) {
        struct tt_gen_chunk theirs = {lane->by, j - lane->local, 0};
        bool own = j == lane->local;
        tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, theirs),
                      own ? tt_gen_own(TT_SPACE_OUT, theirs) : tt_lane_beside(lane, j, theirs));
    }
    for (int j = 0; j < lane->locals; j++) {
        struct tt_gen_chunk theirs = {lane->by, j - lane->local, 0};
        if (j == lane->local) continue;
        tt_build_copy(builder, tt_lane_beside(lane, j, theirs), tt_gen_own(TT_SPACE_OUT, theirs));
    }
}

static int most_locals(const struct tt_lane *lane)
{
    struct tt_lane_run run = {0};
    int most = lane->locals;
    while (tt_lane_next_run(lane, &run))
        most = run.locals > most ? run.locals : most;
    return most;
}

/* To the hosts of the run, ahead of what the others of the host send there. */
static void send_run(struct tt_builder *builder, struct way *way)
{
    int layers = way->lane->locals;
    for (way->layer = 0; way->layer < way->run.locals; way->layer += layers) {
        if (gives(way) && sends(way)) {
            tt_gen_exchange(builder, way->run.count, way, give_host, send_host);
        } else if (gives(way) || sends(way)) {
            tt_build_loop(builder, way->run.count);
            (gives(way) ? give_host : send_host)(builder, way, 0);
            tt_build_next(builder);
        }
    }
}

static void all_hosts(struct tt_builder *builder, const struct tt_lane *lane)
{
    for (int first = 0; first < most_locals(lane); first += TT_GEN_AHEAD) {
        struct way way = {.lane = lane, .first = first};
        while (tt_lane_next_run(lane, &way.run))
            send_run(builder, &way);
        if (!first) exchange_inside(builder, lane); /* while the messages are under way */
        way.run = (struct tt_lane_run){0};
        while (tt_lane_next_run(lane, &way.run)) {
            if (first >= way.run.behind) continue;
            tt_build_loop(builder, way.run.count);
            receive_host(builder, &way);
            tt_build_next(builder);
        }
    }
}

/* With the run's first host, in a loop one further each turn. */
static void exchange_host(struct tt_builder *builder, struct way *way)
{
    for (way->layer = 0; way->layer < way->run.locals; way->layer += way->lane->locals) {
        if (gives(way)) give_host(builder, way, 0);
        if (sends(way)) send_host(builder, way, 0);
    }
    receive_host(builder, way);
}

static void host_by_host(struct tt_builder *builder, const struct tt_lane *lane)
{
    struct way way = {.lane = lane};
    while (tt_lane_next_run(lane, &way.run)) {
        int most = lane->locals > way.run.behind ? lane->locals : way.run.behind;
        tt_build_loop(builder, way.run.count);
        for (way.first = 0; way.first < most; way.first += TT_GEN_AHEAD)
            exchange_host(builder, &way);
        tt_build_next(builder);
    }
    exchange_inside(builder, lane);
}

void tt_gen_hierarchical_alltoall(const struct tt_shape *shape, struct tt_builder *builder)
{
    builder->head.in_blocks = true;
    builder->head.out_blocks = true;
    for (int host = 0; host < (shape->host_first ? shape->nhosts : 1); host++) {
        int locals = tt_lane_first(shape, host + 1) - tt_lane_first(shape, host);
        for (int local = 0; local < locals; local++) {
            struct tt_lane lane;
            tt_lane_begin_host(shape, builder, host, local, &lane);
            lane.by = TT_CHUNK_RING_RANK;
            (builder->head.proto == TT_PROTO_LL ? all_hosts : host_by_host)(builder, &lane);
            tt_build_stop(builder);
        }
    }
}
