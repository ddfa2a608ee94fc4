/* What rank `local` of each host does in programs for hosts of as many ranks each. Positions stand
 * in a ring, host after host; the ranks with the same `local` are a rail. */
#pragma once

#include "gen.h"

struct tt_lane {
    int hosts, locals, local;
    enum tt_chunk by; /* how a chunk is named by a position */
};

/* Begin the text and first thread of rank `local` of every host. */
struct tt_lane tt_lane_begin(const struct tt_shape *shape, struct tt_builder *builder, int local,
                             enum tt_chunk by);

/* The chunk of the position that is `hosts` hosts on, at rank j of that host; a loop goes `coef`
 * hosts on each turn. */
struct tt_gen_chunk tt_lane_chunk(const struct tt_lane *lane, int j, int hosts, int coef);

/* Slots from or to rank j of the host; from or to the rail `hosts` hosts on. */
struct tt_operand tt_lane_beside(const struct tt_lane *lane, int j, struct tt_gen_chunk chunk);
struct tt_operand tt_lane_rail(const struct tt_lane *lane, int hosts, struct tt_gen_chunk chunk);
/* The same in a loop: one host further on each turn. */
struct tt_operand tt_lane_rail_of_turn(const struct tt_lane *lane, struct tt_gen_chunk chunk);

/* Sources of the move begun last: that chunk of all ranks of the host, in their order; or as
 * destinations, of all others. */
void tt_lane_from_beside(struct tt_builder *builder, const struct tt_lane *lane,
                         struct tt_gen_chunk chunk);
void tt_lane_to_beside(struct tt_builder *builder, const struct tt_lane *lane,
                       struct tt_gen_chunk chunk);
/* Give the others of the host the own input of what they reduce for the host that many on. */
void tt_lane_give_inputs(struct tt_builder *builder, const struct tt_lane *lane, int hosts,
                         int coef);
/* Take from the others of the host what they got of the host that many on. */
void tt_lane_take_outputs(struct tt_builder *builder, const struct tt_lane *lane, int hosts,
                          int coef);
