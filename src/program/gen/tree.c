/* Tree programs. AllReduce has two threads: sums go up while finished chunks come down. Broadcast
 * and Reduce are one half of it, over the same edges: the tree is turned so that the root of the
 * call is on top, which changes the links on the way to the old top alone (the new one may have
 * four children). The shape is one tree over all ranks (a chain inside each node, a binary tree
 * between nodes); the planner gives odd channels the second tree, in which inner nodes are leaves,
 * so that both carry half of the data. Links are tables, so there are two texts: the root's, and
 * one for all others, where what a leaf lacks stands for nothing. Each chunk is reduced own first,
 * then child by child. The root reduces, finishes and sends down in one move and needs no second
 * thread. In place needs no care: a chunk comes down only after this rank's input of it went up. */
#include "gen.h"

#include "base/mem.h"

#include <stdlib.h>

static struct tt_operand link_to(enum tt_table link)
{
    return tt_gen_by(TT_SPACE_SLOT, TT_PEER_TABLE, (int)link, tt_gen_number(0));
}

#define TABLE_CHILD3 TT_TABLE_OTHER /* of a turned tree's top */

static const enum tt_table children[] = {TT_TABLE_CHILD0, TT_TABLE_CHILD1, TT_TABLE_CHILD2,
                                         TABLE_CHILD3};
enum { NCHILDREN = 3, NCHILDREN_TURNED = 4 };

static void reduce_children(struct tt_builder *builder, uint8_t flags, int nchildren)
{
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE | flags);
    tt_build_src(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)));
    for (int k = 0; k < nchildren; k++)
        tt_build_src(builder, link_to(children[k]));
}

static void to_children(struct tt_builder *builder, int nchildren)
{
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    for (int k = 0; k < nchildren; k++)
        tt_build_dst(builder, link_to(children[k]));
}

/* Links of every rank, with `top` above all (-1: as the shape has it, three children). False: out
 * of memory. */
static bool add_tables(const struct tt_shape *shape, struct tt_builder *builder, int top)
{
    size_t n = (size_t)shape->nranks;
    int32_t *links = tt_calloc((1 + NCHILDREN_TURNED) * n, sizeof(*links));
    if (!links) {
        builder->rc = ncclSystemError;
        return false;
    }
    int32_t *parent = links, *child = links + n;
    for (size_t rank = 0; rank < n; rank++) {
        parent[rank] = shape->tree[rank].parent;
        for (size_t k = 0; k < NCHILDREN; k++)
            child[k * n + rank] = shape->tree[rank].child[k];
        child[NCHILDREN * n + rank] = -1;
    }
    /* From the new top to the old one: what was above is below, in the place of what is above now.
     */
    for (int32_t rank = top, above = -1; rank >= 0;) {
        int32_t next = shape->tree[rank].parent;
        size_t k = above < 0 ? NCHILDREN : 0;
        while (k < NCHILDREN && child[k * n + (size_t)rank] != above)
            k++;
        child[k * n + (size_t)rank] = next;
        parent[rank] = above;
        above = rank;
        rank = next;
    }
    tt_build_table(builder, TT_TABLE_PARENT, parent);
    for (size_t k = 0; k < (top < 0 ? NCHILDREN : NCHILDREN_TURNED); k++)
        tt_build_table(builder, children[k], child + k * n);
    free(links);
    return true;
}

void tt_gen_tree_allreduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    if (!add_tables(shape, builder, -1)) return;
    int root = tt_build_text(builder);
    tt_build_thread(builder);
    reduce_children(builder, TT_MOVE_POST, NCHILDREN);
    to_children(builder, NCHILDREN);
    tt_build_stop(builder);
    int others = tt_build_text(builder);
    tt_build_thread(builder); /* up */
    reduce_children(builder, 0, NCHILDREN);
    tt_build_dst(builder, link_to(TT_TABLE_PARENT));
    tt_build_stop(builder);
    tt_build_thread(builder); /* down */
    tt_build_move(builder, 0);
    tt_build_src(builder, link_to(TT_TABLE_PARENT));
    to_children(builder, NCHILDREN);
    tt_build_stop(builder);
    for (int rank = 0; rank < shape->nranks; rank++)
        tt_build_assign(builder, rank, shape->tree[rank].parent < 0 ? root : others);
}

/* The text of the top, or of all others; the first of them is the top's. */
static void begin_turned(struct tt_builder *builder, bool top)
{
    int text = tt_build_text(builder);
    tt_build_thread(builder);
    for (int rank = 0; rank < builder->head.nranks; rank++) {
        if ((rank == builder->head.root) == top) tt_build_assign(builder, rank, text);
    }
}

void tt_gen_tree_broadcast(const struct tt_shape *shape, struct tt_builder *builder)
{
    if (!add_tables(shape, builder, builder->head.root)) return;
    begin_turned(builder, true);
    tt_build_move(builder, 0);
    tt_build_src(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)));
    to_children(builder, NCHILDREN_TURNED);
    tt_build_stop(builder);
    begin_turned(builder, false);
    tt_build_move(builder, 0);
    tt_build_src(builder, link_to(TT_TABLE_PARENT));
    to_children(builder, NCHILDREN);
    tt_build_stop(builder);
}

void tt_gen_tree_reduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    if (!add_tables(shape, builder, builder->head.root)) return;
    begin_turned(builder, true);
    reduce_children(builder, TT_MOVE_POST, NCHILDREN_TURNED);
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    tt_build_stop(builder);
    begin_turned(builder, false);
    reduce_children(builder, 0, NCHILDREN);
    tt_build_dst(builder, link_to(TT_TABLE_PARENT));
    tt_build_stop(builder);
}
