/* Direct programs: each rank reads and writes the others' user buffers, nothing is staged.
 * Between a rank's ENTER and LEAVE its buffers belong to all; a rank whose buffers others touch
 * waits in LEAVE, any other only says that it is done (ONE_WAY) and goes on.
 *
 * A reduction is cut into n slices; rank r reduces slice r of all inputs in rank order and stores
 * it where it is wanted: each input is read once, each output written once, which is the least that
 * memory has to carry, and the result does not depend on count, channels or timing. In place needs
 * no care: slice r of every buffer is touched by rank r alone. */
#include "gen.h"

static void split(struct tt_builder *builder)
{
    builder->head.nparts = builder->head.nranks;
    builder->head.whole_window = true;
}

/* ENTER; reduce chunk ME of every IN into `dst`; LEAVE. */
static void reduce_mine(struct tt_builder *builder, struct tt_operand dst)
{
    tt_build_thread(builder);
    tt_build_enter(builder, -1);
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE | TT_MOVE_POST);
    tt_build_src(builder, tt_gen_set(TT_SPACE_IN, TT_PEER_EACH, tt_gen_me()));
    tt_build_dst(builder, dst);
    tt_build_leave(builder, 0);
    tt_build_stop(builder);
}

void tt_gen_direct_allreduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    split(builder);
    reduce_mine(builder, tt_gen_set(TT_SPACE_OUT, TT_PEER_EACH, tt_gen_me()));
}

void tt_gen_direct_reduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    split(builder);
    reduce_mine(builder, tt_gen_at(TT_SPACE_OUT, builder->head.root, tt_gen_me()));
}

void tt_gen_direct_reducescatter(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.in_blocks = true;
    reduce_mine(builder, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
}

/* ENTER; one copy; LEAVE: all ranks touch all ranks' buffers. */
static void exchange(struct tt_builder *builder, struct tt_operand src, struct tt_operand dst)
{
    tt_build_thread(builder);
    tt_build_enter(builder, -1);
    tt_build_copy(builder, src, dst);
    tt_build_leave(builder, 0);
    tt_build_stop(builder);
}

/* Push: the own block is read once and stored n times; pulling would read every block n times. */
void tt_gen_direct_allgather(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.out_blocks = true;
    exchange(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)),
             tt_gen_set(TT_SPACE_OUT, TT_PEER_EACH, tt_gen_me()));
}

void tt_gen_direct_alltoall(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.in_blocks = true;
    builder->head.out_blocks = true;
    exchange(builder, tt_gen_set(TT_SPACE_IN, TT_PEER_EACH, tt_gen_me()),
             tt_gen_own(TT_SPACE_OUT, tt_gen_peer()));
}

/* Each rank stores one slice to all: the root's input is read once, and no core is idle. Were each
 * rank to fetch the whole, two ranks would use one core. */
void tt_gen_direct_broadcast(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    split(builder);
    exchange(builder, tt_gen_at(TT_SPACE_IN, builder->head.root, tt_gen_me()),
             tt_gen_set(TT_SPACE_OUT, TT_PEER_EACH, tt_gen_me()));
}

/* Only the root's buffers are touched by others: it publishes without waiting and waits in LEAVE;
 * the others wait for the root alone and leave at once. */
static void with_root(struct tt_builder *builder, struct tt_operand src, struct tt_operand dst)
{
    for (int others = 0; others < 2; others++) {
        tt_build_text(builder);
        tt_build_thread(builder);
        tt_build_enter(builder, builder->head.root);
        tt_build_copy(builder, src, dst);
        tt_build_leave(builder, others ? TT_MOVE_NO_WAIT : 0);
        tt_build_stop(builder);
    }
    for (int rank = 0; rank < builder->head.nranks; rank++)
        tt_build_assign(builder, rank, rank != builder->head.root);
}

void tt_gen_direct_gather(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.out_blocks = true;
    with_root(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)),
              tt_gen_at(TT_SPACE_OUT, builder->head.root, tt_gen_me()));
}

void tt_gen_direct_scatter(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.in_blocks = true;
    with_root(builder, tt_gen_at(TT_SPACE_IN, builder->head.root, tt_gen_me()),
              tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
}
