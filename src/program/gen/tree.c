/* Tree AllReduce: two threads, sums go up while finished chunks come down.
 * The shape is one tree over all ranks (a chain inside each node, a binary tree between nodes); the
 * planner gives odd channels the second tree, in which inner nodes are leaves, so that both carry
 * half of the data. Each chunk is folded own first, then child by child. The root folds, finishes
 * and sends down in one move and needs no second thread. In place needs no care: a chunk comes down
 * only after this rank's input of it went up. */
#include "gen.h"

static void add_children(struct tt_insn *insn, const struct tt_tree_place *place, bool as_source)
{
    for (int k = 0; k < 3; k++) {
        if (place->child[k] < 0) continue;
        struct tt_operand slot = tt_gen_at(TT_SPACE_SLOT, place->child[k], tt_gen_number(0));
        if (as_source) {
            tt_gen_src(insn, slot);
        } else {
            tt_gen_dst(insn, slot);
        }
    }
}

static bool has_children(const struct tt_tree_place *place)
{
    return place->child[0] >= 0 || place->child[1] >= 0 || place->child[2] >= 0;
}

static void up(const struct tt_tree_place *place, struct tt_program *program)
{
    bool is_root = place->parent < 0;
    tt_gen_thread(program);
    uint8_t fold = has_children(place) ? TT_MOVE_FOLD : 0;
    struct tt_insn *insn =
        tt_gen_move(program, (uint8_t)(fold | TT_MOVE_PRE | (is_root ? TT_MOVE_POST : 0)));
    tt_gen_src(insn, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)));
    add_children(insn, place, true);
    if (is_root) {
        tt_gen_dst(insn, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
        add_children(insn, place, false);
    } else {
        tt_gen_dst(insn, tt_gen_at(TT_SPACE_SLOT, place->parent, tt_gen_number(0)));
    }
    tt_gen_end(program);
}

static void down(const struct tt_tree_place *place, struct tt_program *program)
{
    tt_gen_thread(program);
    struct tt_insn *insn = tt_gen_move(program, 0);
    tt_gen_src(insn, tt_gen_at(TT_SPACE_SLOT, place->parent, tt_gen_number(0)));
    tt_gen_dst(insn, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    add_children(insn, place, false);
    tt_gen_end(program);
}

void tt_gen_tree_allreduce(const struct tt_shape *shape, struct tt_program *program)
{
    program->geometry = TT_GEOMETRY_BLOCKS;
    program->nchunks = 1;
    up(&shape->tree, program);
    if (shape->tree.parent >= 0) down(&shape->tree, program);
}
