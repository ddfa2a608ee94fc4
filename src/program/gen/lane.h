/* The part of the ranks with number `local` on their host, in programs for several hosts. Ranks are
 * in ring order, host after host; the ranks with the same `local` form a rail. When hosts have
 * different numbers of ranks, there are as many rails as the smallest host has ranks; ranks without
 * a rail send their data to ranks of their host that have one, and receive from these. */
#pragma once

#include "gen.h"

struct tt_lane {
    const struct tt_shape *shape; /* borrowed from the generator's caller */
    int host;                     /* whose text this is; of even hosts the first one */
    int hosts, locals, local, rails;
    bool uneven;
    enum tt_chunk by; /* how a chunk is named by a position, where hosts are even */
};

/* Index in shape->by_host at which a host begins; of number `nhosts`: the end of the last one. */
int tt_lane_first(const struct tt_shape *shape, int host);
int tt_lane_rails(const struct tt_shape *shape);

/* Begin the text and first thread of rank `local` of every host of `locals` ranks. False: there is
 * no such host. */
bool tt_lane_begin(const struct tt_shape *shape, struct tt_builder *builder, int locals, int local,
                   struct tt_lane *lane_out);
/* Begin the text and first thread of rank `local` of that host; where hosts are even (the caller
 * names host 0) it is that of all hosts. */
void tt_lane_begin_host(const struct tt_shape *shape, struct tt_builder *builder, int host,
                        int local, struct tt_lane *lane_out);

/* Hosts that follow each other in the ring and are alike, counted from the own one: each that is
 * `first` to `first + count - 1` hosts on has `locals` ranks, each that is as far back `behind`. */
struct tt_lane_run {
    int first, count, locals, behind;
    int at,
        at_behind; /* positions from the own host's first to that of the host `first` on; back */
};
/* The run behind that one; begin with {0}. False: there is none. */
bool tt_lane_next_run(const struct tt_lane *lane, struct tt_lane_run *run);

/* When hosts are uneven: write the tables for its rails. */
void tt_lane_tables(const struct tt_shape *shape, struct tt_builder *builder);

/* The chunk of the position that is `hosts` hosts on, at rank j of that host; a loop goes `coef`
 * hosts on each turn. */
struct tt_gen_chunk tt_lane_chunk(const struct tt_lane *lane, int j, int hosts, int coef);

/* Slots from or to rank j of the host; from or to the rail `hosts` hosts on (1 or -1 where hosts
 * are uneven). */
struct tt_operand tt_lane_beside(const struct tt_lane *lane, int j, struct tt_gen_chunk chunk);
struct tt_operand tt_lane_rail(const struct tt_lane *lane, int hosts, struct tt_gen_chunk chunk);
/* AllReduce, AllGather or ReduceScatter that sends to all hosts at once: at_once.c. */
void tt_gen_at_once(const struct tt_shape *shape, struct tt_builder *builder, bool reduces,
                    bool gathers);

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
