/* What rank `local` of each host does in programs for several hosts. Positions stand in a ring,
 * host after host; the ranks with the same `local` are a rail. Where hosts have different numbers
 * of ranks there are as many rails as the smallest host has ranks; ranks beyond them give what they
 * have to those on a rail, and take from them. */
#pragma once

#include "gen.h"

struct tt_lane {
    int hosts, locals, local, rails;
    bool uneven;
    enum tt_chunk by; /* how a chunk is named by a position, where hosts are even */
};

/* Where the host begins in shape->by_host; that of number `nhosts`: where the last one ends. */
int tt_lane_first(const struct tt_shape *shape, int host);
int tt_lane_rails(const struct tt_shape *shape);

/* Begin the text and first thread of rank `local` of every host of `locals` ranks. False: there is
 * no such host. */
bool tt_lane_begin(const struct tt_shape *shape, struct tt_builder *builder, int locals, int local,
                   struct tt_lane *lane_out);
/* Where hosts are uneven: the tables that its rails go by. */
void tt_lane_tables(const struct tt_shape *shape, struct tt_builder *builder);

/* The chunk of the position that is `hosts` hosts on, at rank j of that host; a loop goes `coef`
 * hosts on each turn. */
struct tt_gen_chunk tt_lane_chunk(const struct tt_lane *lane, int j, int hosts, int coef);

/* Slots from or to rank j of the host; from or to the rail `hosts` hosts on (1 or -1 where hosts
 * are uneven). */
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
/* Give the others on rails the own input of what they reduce for the host that many on. */
void tt_lane_give_inputs(struct tt_builder *builder, const struct tt_lane *lane, int hosts,
                         int coef);
/* Take from the others on rails what they got of the host that many on. */
void tt_lane_take_outputs(struct tt_builder *builder, const struct tt_lane *lane, int hosts,
                          int coef);
