/* Programs on multicast memory: one address stands for the buffers of all ranks. A load from it
 * reduces what all have there, a store to it goes to all; the host device does both rank by rank.
 *
 * NVLS, on one host: rank r is the head of slice r. AllReduce is one load-reduce and one multicast
 * store by each head, ReduceScatter the first of them, AllGather the second.
 *
 * NVLSTree, an AllReduce over hosts of as many ranks each: rank l of each host is the head of part
 * l. It reduces the part of all ranks of its host, sums go up and results come down a binary tree
 * of the hosts, and it stores the result to all of its host; where the group is one host's ranks,
 * loads and stores go through the slots of each. Odd parts use a second tree, in which inner hosts
 * of the first are leaves, so hosts carry alike. A pass ends before the next one begins: channels
 * overlap, passes do not. There is a text for each l and one for its top. Every part is completed
 * by one rank and copied; the order of a reduction depends on the positions alone. In place needs
 * no care: a result comes down after all inputs of it went up. */
#include "lane.h"

#include "base/mem.h"

#include <stdlib.h>

/* ---- one host ---- */

static struct tt_operand all(enum tt_space space)
{
    return tt_gen_set(space, TT_PEER_MULTICAST, tt_gen_me());
}

static void one_move(struct tt_builder *builder, uint8_t flags, struct tt_operand src,
                     struct tt_operand dst)
{
    tt_build_thread(builder);
    tt_build_enter(builder, -1);
    tt_build_move(builder, flags);
    tt_build_src(builder, src);
    tt_build_dst(builder, dst);
    tt_build_leave(builder, 0);
    tt_build_stop(builder);
}

enum { LOAD_REDUCE = TT_MOVE_REDUCE | TT_MOVE_PRE | TT_MOVE_POST };

void tt_gen_nvls_allreduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    builder->head.nparts = shape->nranks;
    builder->head.whole_window = true;
    one_move(builder, LOAD_REDUCE, all(TT_SPACE_IN), all(TT_SPACE_OUT));
}

void tt_gen_nvls_reducescatter(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.in_blocks = true;
    one_move(builder, LOAD_REDUCE, all(TT_SPACE_IN), tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
}

void tt_gen_nvls_allgather(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.out_blocks = true;
    one_move(builder, 0, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)), all(TT_SPACE_OUT));
}

/* ---- a tree of hosts ---- */

/* Host above `host` in NCCL's binary tree of n hosts (spec: trees between nodes); -1: none. */
static int above(int host, int n)
{
    int bit = host & -host;
    if (host == 0) return -1;
    int up = (host ^ bit) | bit * 2;
    return up < n ? up : host ^ bit;
}

/* The second tree: the first one mirrored, or for an odd number of hosts moved on by one. */
static int above_in(int second, int host, int n)
{
    if (!second) return above(host, n);
    if (n % 2 == 0) {
        int up = above(n - 1 - host, n);
        return up < 0 ? -1 : n - 1 - up;
    }
    int up = above((host + n - 1) % n, n);
    return up < 0 ? -1 : (up + 1) % n;
}

enum { PARENT, CHILD0, CHILD1, NLINKS };
static const enum tt_table links[NLINKS] = {TT_TABLE_PARENT, TT_TABLE_CHILD0, TT_TABLE_CHILD1};

static void link_rail(const struct tt_shape *shape, int local, int32_t *table[NLINKS])
{
    int locals = shape->nranks / shape->nhosts;
    for (int host = 0; host < shape->nhosts; host++) {
        int up = above_in(local % 2, host, shape->nhosts);
        int rank = shape->by_host[host * locals + local];
        if (up < 0) continue;
        int parent = shape->by_host[up * locals + local];
        table[PARENT][rank] = parent;
        table[table[CHILD0][parent] < 0 ? CHILD0 : CHILD1][parent] = rank;
    }
}

/* False: out of memory. */
static bool add_links(const struct tt_shape *shape, struct tt_builder *builder)
{
    size_t n = (size_t)shape->nranks;
    int32_t *numbers = tt_calloc(NLINKS * n, sizeof(*numbers));
    if (!numbers) {
        builder->rc = ncclSystemError;
        return false;
    }
    for (size_t k = 0; k < NLINKS * n; k++)
        numbers[k] = -1;
    int32_t *table[NLINKS] = {numbers, numbers + n, numbers + 2 * n};
    for (int local = 0; local < shape->nranks / shape->nhosts; local++)
        link_rail(shape, local, table);
    for (int k = 0; k < NLINKS; k++)
        tt_build_table(builder, links[k], table[k]);
    free(numbers);
    return true;
}

static struct tt_operand link_to(int link, int part)
{
    return tt_gen_by(TT_SPACE_SLOT, TT_PEER_TABLE, (int)links[link], tt_gen_number(part));
}

/* The multicast store of the own part, and on to the hosts below. */
static void store_down(struct tt_builder *builder, const struct tt_lane *lane)
{
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, tt_gen_number(lane->local)));
    tt_build_dst(builder, link_to(CHILD0, lane->local));
    tt_build_dst(builder, link_to(CHILD1, lane->local));
    tt_lane_to_beside(builder, lane, tt_gen_number(lane->local));
}

static void take_results(struct tt_builder *builder, const struct tt_lane *lane)
{
    for (int part = 0; part < lane->locals; part++) {
        struct tt_gen_chunk chunk = tt_gen_number(part);
        if (part == lane->local) continue;
        tt_build_copy(builder, tt_lane_beside(lane, part, chunk), tt_gen_own(TT_SPACE_OUT, chunk));
    }
    tt_build_stop(builder);
}

/* The load-reduce of the own part, with what comes from the hosts below. */
static void reduce_up(struct tt_builder *builder, const struct tt_lane *lane, uint8_t post)
{
    struct tt_gen_chunk own = tt_gen_number(lane->local);
    for (int j = 0; j < lane->locals; j++) {
        if (j == lane->local) continue;
        tt_build_move(builder, TT_MOVE_PRE);
        tt_build_src(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(j)));
        tt_build_dst(builder, tt_lane_beside(lane, j, tt_gen_number(j)));
    }
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE | post);
    tt_lane_from_beside(builder, lane, own);
    tt_build_src(builder, link_to(CHILD0, lane->local));
    tt_build_src(builder, link_to(CHILD1, lane->local));
}

static void inner_text(struct tt_builder *builder, const struct tt_lane *lane)
{
    reduce_up(builder, lane, 0);
    tt_build_dst(builder, link_to(PARENT, lane->local));
    tt_build_move(builder, 0);
    tt_build_src(builder, link_to(PARENT, lane->local));
    store_down(builder, lane);
    take_results(builder, lane);
}

/* The top reduces, stores and sends down in one move. */
static void top_text(struct tt_builder *builder, const struct tt_lane *lane)
{
    reduce_up(builder, lane, TT_MOVE_POST);
    store_down(builder, lane);
    take_results(builder, lane);
}

void tt_gen_nvls_tree(const struct tt_shape *shape, struct tt_builder *builder)
{
    int locals = shape->nranks / shape->nhosts;
    if (!add_links(shape, builder)) return;
    builder->head.nparts = locals;
    for (int local = 0; local < locals; local++) {
        struct tt_lane lane;
        if (!tt_lane_begin(shape, builder, locals, local, &lane)) return;
        inner_text(builder, &lane);
        int text = tt_build_text(builder);
        tt_build_thread(builder);
        top_text(builder, &lane);
        for (int host = 0; host < shape->nhosts; host++) {
            if (above_in(local % 2, host, shape->nhosts) < 0)
                tt_build_assign(builder, shape->by_host[host * locals + local], text);
        }
    }
}
