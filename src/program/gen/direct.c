/* Direct programs: everybody reads and writes the others' user buffers, nothing is staged.
 * Between a rank's ENTER and LEAVE its buffers belong to all; whoever others touch waits in LEAVE,
 * whoever nobody touches only says that it is done (ONE_WAY) and goes on.
 *
 * A reduction is cut into n slices; rank r folds slice r of all inputs in rank order and stores it
 * where it is wanted: each input is read once, each output written once, which is the least that
 * memory has to carry, and the result does not depend on count, channels or timing. In place needs
 * no care: slice r of every buffer is touched by rank r alone. */
#include "gen.h"

static void split(struct tt_program *program)
{
    program->geometry = TT_GEOMETRY_SPLIT;
    program->nchunks = program->nranks;
    program->whole_window = true;
    tt_gen_thread(program);
}

static void blocks(struct tt_program *program)
{
    program->geometry = TT_GEOMETRY_BLOCKS;
    program->nchunks = program->in_blocks || program->out_blocks ? program->nranks : 1;
    tt_gen_thread(program);
}

/* ENTER; fold chunk ME of every IN into `dst`; LEAVE. */
static void fold_mine(struct tt_program *program, struct tt_operand dst)
{
    tt_gen_enter(program, -1);
    struct tt_insn *fold = tt_gen_move(program, TT_MOVE_FOLD | TT_MOVE_PRE | TT_MOVE_POST);
    tt_gen_src(fold, tt_gen_set(TT_SPACE_IN, TT_PEER_EACH, tt_gen_me()));
    tt_gen_dst(fold, dst);
    tt_gen_leave(program, 0);
    tt_gen_end(program);
}

void tt_gen_direct_allreduce(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    split(program);
    fold_mine(program, tt_gen_set(TT_SPACE_OUT, TT_PEER_EACH, tt_gen_me()));
}

void tt_gen_direct_reduce(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    split(program);
    fold_mine(program, tt_gen_at(TT_SPACE_OUT, program->root, tt_gen_me()));
}

void tt_gen_direct_reducescatter(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    program->in_blocks = true;
    blocks(program);
    fold_mine(program, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
}

/* ENTER; one copy; LEAVE: all ranks touch all ranks' buffers. */
static void exchange(struct tt_program *program, struct tt_operand src, struct tt_operand dst)
{
    tt_gen_enter(program, -1);
    tt_gen_copy(program, src, dst);
    tt_gen_leave(program, 0);
    tt_gen_end(program);
}

/* Push: the own block is read once and stored n times; pulling would read every block n times. */
void tt_gen_direct_allgather(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    program->out_blocks = true;
    blocks(program);
    exchange(program, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)),
             tt_gen_set(TT_SPACE_OUT, TT_PEER_EACH, tt_gen_me()));
}

void tt_gen_direct_alltoall(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    program->in_blocks = true;
    program->out_blocks = true;
    blocks(program);
    exchange(program, tt_gen_set(TT_SPACE_IN, TT_PEER_EACH, tt_gen_me()),
             tt_gen_own(TT_SPACE_OUT, tt_gen_peer()));
}

/* Everybody stores one slice to all: the root's input is read once, and no core is idle. Were each
 * rank to fetch the whole, two ranks would use one core. */
void tt_gen_direct_broadcast(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    split(program);
    exchange(program, tt_gen_at(TT_SPACE_IN, program->root, tt_gen_me()),
             tt_gen_set(TT_SPACE_OUT, TT_PEER_EACH, tt_gen_me()));
}

/* Only the root's buffers are touched by others: it publishes without waiting and waits in LEAVE;
 * the others wait for the root alone and leave at once. */
static void with_root(struct tt_program *program, struct tt_operand src, struct tt_operand dst)
{
    bool is_root = program->rank == program->root;
    tt_gen_enter(program, program->root);
    tt_gen_copy(program, src, dst);
    tt_gen_leave(program, is_root ? 0 : TT_MOVE_ONE_WAY);
    tt_gen_end(program);
}

void tt_gen_direct_gather(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    program->out_blocks = true;
    blocks(program);
    with_root(program, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)),
              tt_gen_at(TT_SPACE_OUT, program->root, tt_gen_me()));
}

void tt_gen_direct_scatter(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    program->in_blocks = true;
    blocks(program);
    with_root(program, tt_gen_at(TT_SPACE_IN, program->root, tt_gen_me()),
              tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
}
