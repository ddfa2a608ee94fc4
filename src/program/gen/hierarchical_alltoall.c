/* AlltoAll of hosts with as many ranks each: blocks are sorted inside a host first, so that a rank
 * sends one message to each other host, and not one to each of its ranks.
 *
 * Positions stand in a ring, host after host, L on each; ranks with the same `local` are a rail
 * (hierarchical.c). The block of (host a, local i) for (host b, local j) goes to rank j of host a,
 * along rail j, and is there: so rank j of a sends to rank j of b what all ranks of a have for it,
 * L blocks one behind the other, of which a network makes one message where they are short. Each
 * block crosses once, as in any AlltoAll; what is saved are messages, (H-1) a rank for (H-1)L, and
 * connections. For short blocks on many hosts.
 *
 * LL sends to all hosts before it receives, and gives the others of its host their blocks for up to
 * TT_GEN_AHEAD hosts in advance: two steps, and one more for each so many hosts. SIMPLE exchanges
 * with one host after the other, so that each link carries the data of one partner at a time. What
 * comes from a rank of the host goes on in the same move: there is no scratch. A rank sends as many
 * blocks to a rail as an edge has slots before it receives, so a chunk is one slot, and hosts of
 * more than TT_GEN_AHEAD ranks go in rounds of so many senders. In place needs a copy of the input.
 */
#include "lane.h"

struct round { /* of a host's ranks those whose blocks go along the rails now */
    int first, end;
};

static bool is_in(const struct round *round, int local)
{
    return local >= round->first && local < round->end;
}

struct way { /* of the blocks that leave the host */
    const struct tt_lane *lane;
    const struct round *round;
};

/* Give the others of the host what they send for this rank to the host that is 1 + `first` on; in a
 * loop one further each turn. */
static void give_host(struct tt_builder *builder, const void *exchange, int first)
{
    const struct way *way = exchange;
    const struct tt_lane *lane = way->lane;
    for (int j = 0; is_in(way->round, lane->local) && j < lane->locals; j++) {
        struct tt_gen_chunk theirs = tt_lane_chunk(lane, j, 1 + first, 1);
        if (j == lane->local) continue;
        tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, theirs), tt_lane_beside(lane, j, theirs));
    }
}

/* Send what they have for the own rail there, one behind the other. */
static void send_host(struct tt_builder *builder, const void *exchange, int first)
{
    const struct way *way = exchange;
    const struct tt_lane *lane = way->lane;
    struct tt_gen_chunk own = tt_lane_chunk(lane, lane->local, 1 + first, 1);
    struct tt_operand rail = tt_lane_rail(lane, 1 + first, own);
    rail.peer_coef = (int16_t)lane->locals;
    for (int j = way->round->first; j < way->round->end; j++) {
        bool mine = j == lane->local;
        tt_build_copy(builder, mine ? tt_gen_own(TT_SPACE_IN, own) : tt_lane_beside(lane, j, own),
                      rail);
    }
}

/* Of the host that is one back, in a loop one further each turn. */
static void receive_host(struct tt_builder *builder, const struct way *way)
{
    const struct tt_lane *lane = way->lane;
    for (int j = way->round->first; j < way->round->end; j++) {
        struct tt_gen_chunk theirs = tt_lane_chunk(lane, j, -1, -1);
        struct tt_operand from = tt_lane_rail(lane, -1, theirs);
        from.peer_coef = (int16_t)-lane->locals;
        tt_build_copy(builder, from, tt_gen_own(TT_SPACE_OUT, theirs));
    }
}

static void exchange_inside(struct tt_builder *builder, const struct tt_lane *lane)
{
    for (int j = 0; j < lane->locals; j++) {
        struct tt_gen_chunk theirs = tt_lane_chunk(lane, j, 0, 0);
        bool own = j == lane->local;
        tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, theirs),
                      own ? tt_gen_own(TT_SPACE_OUT, theirs) : tt_lane_beside(lane, j, theirs));
    }
    tt_lane_take_outputs(builder, lane, 0, 0);
}

/* The next senders of a host, as many as an edge has slots; false: no more. */
static bool next_round(const struct tt_lane *lane, struct round *round)
{
    round->first = round->end;
    round->end += TT_GEN_AHEAD;
    if (round->end > lane->locals) round->end = lane->locals;
    return round->first < lane->locals;
}

static void all_hosts(struct tt_builder *builder, const struct tt_lane *lane)
{
    struct round round = {0, 0};
    const struct way way = {lane, &round};
    while (next_round(lane, &round)) {
        if (is_in(&round, lane->local) && lane->locals > 1) {
            tt_gen_exchange(builder, lane->hosts - 1, &way, give_host, send_host);
        } else {
            tt_build_loop(builder, lane->hosts - 1);
            send_host(builder, &way, 0);
            tt_build_next(builder);
        }
        if (!round.first) exchange_inside(builder, lane); /* while the messages are under way */
        tt_build_loop(builder, lane->hosts - 1);
        receive_host(builder, &way);
        tt_build_next(builder);
    }
}

static void host_by_host(struct tt_builder *builder, const struct tt_lane *lane)
{
    struct round round = {0, 0};
    const struct way way = {lane, &round};
    tt_build_loop(builder, lane->hosts - 1);
    while (next_round(lane, &round)) {
        give_host(builder, &way, 0);
        send_host(builder, &way, 0);
        receive_host(builder, &way);
    }
    tt_build_next(builder);
    exchange_inside(builder, lane);
}

void tt_gen_hierarchical_alltoall(const struct tt_shape *shape, struct tt_builder *builder)
{
    int locals = shape->nranks / shape->nhosts;
    builder->head.in_blocks = true;
    builder->head.out_blocks = true;
    for (int local = 0; local < locals; local++) {
        struct tt_lane lane;
        if (!tt_lane_begin(shape, builder, locals, local, &lane)) return;
        lane.by = TT_CHUNK_RING_RANK;
        (builder->head.proto == TT_PROTO_LL ? all_hosts : host_by_host)(builder, &lane);
        tt_build_stop(builder);
    }
}
