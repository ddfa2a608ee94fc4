/* Tree AllReduce: two threads, sums go up while finished chunks come down.
 * The shape is one tree over all ranks (a chain inside each node, a binary tree between nodes); the
 * planner gives odd channels the second tree, in which inner nodes are leaves, so that both carry
 * half of the data. Links are tables, so there are two texts: the root's, and one for all others,
 * where what a leaf lacks stands for nothing. Each chunk is reduced own first, then child by child.
 * The root reduces, finishes and sends down in one move and needs no second thread. In place needs
 * no care: a chunk comes down only after this rank's input of it went up. */
#include "gen.h"

#include "base/mem.h"

#include <stdlib.h>

static struct tt_operand link_to(enum tt_table link)
{
    return tt_gen_by(TT_SPACE_SLOT, TT_PEER_TABLE, (int)link, tt_gen_number(0));
}

static void reduce_children(struct tt_builder *builder, uint8_t flags)
{
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE | flags);
    tt_build_src(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)));
    for (int k = 0; k < 3; k++)
        tt_build_src(builder, link_to(TT_TABLE_CHILD0 + (unsigned int)k));
}

static void to_children(struct tt_builder *builder)
{
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    for (int k = 0; k < 3; k++)
        tt_build_dst(builder, link_to(TT_TABLE_CHILD0 + (unsigned int)k));
}

static void add_tables(const struct tt_shape *shape, struct tt_builder *builder, int32_t *values)
{
    for (int link = 0; link < 4; link++) {
        for (int rank = 0; rank < shape->nranks; rank++) {
            const struct tt_tree_place *place = &shape->tree[rank];
            values[rank] = link ? place->child[link - 1] : place->parent;
        }
        tt_build_table(builder, TT_TABLE_PARENT + (unsigned int)link, values);
    }
}

void tt_gen_tree_allreduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    int32_t *values = tt_calloc((size_t)shape->nranks, sizeof(*values));
    if (!values) {
        builder->rc = ncclSystemError;
        return;
    }
    add_tables(shape, builder, values);
    free(values);
    int root = tt_build_text(builder);
    tt_build_thread(builder);
    reduce_children(builder, TT_MOVE_POST);
    to_children(builder);
    tt_build_stop(builder);
    int others = tt_build_text(builder);
    tt_build_thread(builder); /* up */
    reduce_children(builder, 0);
    tt_build_dst(builder, link_to(TT_TABLE_PARENT));
    tt_build_stop(builder);
    tt_build_thread(builder); /* down */
    tt_build_move(builder, 0);
    tt_build_src(builder, link_to(TT_TABLE_PARENT));
    to_children(builder);
    tt_build_stop(builder);
    for (int rank = 0; rank < shape->nranks; rank++)
        tt_build_assign(builder, rank, shape->tree[rank].parent < 0 ? root : others);
}
