/* See lane.h. */
#include "lane.h"

struct tt_gen_chunk tt_lane_chunk(const struct tt_lane *lane, int j, int hosts, int coef)
{
    return (struct tt_gen_chunk){lane->by, j - lane->local + hosts * lane->locals,
                                 coef * lane->locals};
}

struct tt_operand tt_lane_beside(const struct tt_lane *lane, int j, struct tt_gen_chunk chunk)
{
    return tt_gen_by(TT_SPACE_SLOT, TT_PEER_RING, j - lane->local, chunk);
}

struct tt_operand tt_lane_rail(const struct tt_lane *lane, int hosts, struct tt_gen_chunk chunk)
{
    return tt_gen_by(TT_SPACE_SLOT, TT_PEER_RING, hosts * lane->locals, chunk);
}

struct tt_operand tt_lane_rail_of_turn(const struct tt_lane *lane, struct tt_gen_chunk chunk)
{
    struct tt_operand operand = tt_lane_rail(lane, 1, chunk);
    operand.peer_coef = (int16_t)lane->locals;
    return operand;
}

void tt_lane_from_beside(struct tt_builder *builder, const struct tt_lane *lane,
                         struct tt_gen_chunk chunk)
{
    for (int j = 0; j < lane->locals; j++) {
        tt_build_src(builder, j == lane->local ? tt_gen_own(TT_SPACE_IN, chunk)
                                               : tt_lane_beside(lane, j, chunk));
    }
}

void tt_lane_to_beside(struct tt_builder *builder, const struct tt_lane *lane,
                       struct tt_gen_chunk chunk)
{
    for (int j = 0; j < lane->locals; j++) {
        if (j != lane->local) tt_build_dst(builder, tt_lane_beside(lane, j, chunk));
    }
}

void tt_lane_give_inputs(struct tt_builder *builder, const struct tt_lane *lane, int hosts,
                         int coef)
{
    for (int j = 0; j < lane->locals; j++) {
        struct tt_gen_chunk theirs = tt_lane_chunk(lane, j, hosts, coef);
        if (j == lane->local) continue;
        tt_build_move(builder, TT_MOVE_PRE);
        tt_build_src(builder, tt_gen_own(TT_SPACE_IN, theirs));
        tt_build_dst(builder, tt_lane_beside(lane, j, theirs));
    }
}

void tt_lane_take_outputs(struct tt_builder *builder, const struct tt_lane *lane, int hosts,
                          int coef)
{
    for (int j = 0; j < lane->locals; j++) {
        struct tt_gen_chunk theirs = tt_lane_chunk(lane, j, hosts, coef);
        if (j != lane->local) {
            tt_build_copy(builder, tt_lane_beside(lane, j, theirs),
                          tt_gen_own(TT_SPACE_OUT, theirs));
        }
    }
}

struct tt_lane tt_lane_begin(const struct tt_shape *shape, struct tt_builder *builder, int local,
                             enum tt_chunk by)
{
    int text = tt_build_text(builder), locals = shape->nranks / shape->nhosts;
    tt_build_thread(builder);
    for (int host = 0; host < shape->nhosts; host++)
        tt_build_assign(builder, shape->by_host[host * locals + local], text);
    return (struct tt_lane){.hosts = shape->nhosts, .locals = locals, .local = local, .by = by};
}
