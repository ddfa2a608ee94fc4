/* One-shot programs: everybody sends what it has through slots, receivers fold or place it. One
 * dependent phase, no entry and no exit: a slot is the message, and the sender's buffer is free as
 * soon as the slot is filled.
 *
 * Meant for payloads of one slot. Larger ones walk over the data in passes of at most one slot per
 * edge (chunk limit = slice), send before receive within a pass, so one slot per edge is enough and
 * input of a pass is gone before output of that pass is written: in place is right everywhere, even
 * for AlltoAll. Every rank folds in rank order: the same bits on all ranks, and the same as the
 * direct programs give. */
#include "gen.h"

static void blocks(struct tt_program *program)
{
    program->geometry = TT_GEOMETRY_BLOCKS;
    program->nchunks = program->in_blocks || program->out_blocks ? program->nranks : 1;
    tt_gen_thread(program);
}

static void send_others(struct tt_program *program, uint8_t flags, struct tt_gen_chunk chunk)
{
    struct tt_insn *send = tt_gen_move(program, flags);
    tt_gen_src(send, tt_gen_own(TT_SPACE_IN, chunk));
    tt_gen_dst(send, tt_gen_set(TT_SPACE_SLOT, TT_PEER_OTHERS, chunk));
}

/* Fold the slots of all others and the own IN, in rank order. */
static void fold_slots(struct tt_program *program, struct tt_gen_chunk chunk)
{
    struct tt_insn *fold = tt_gen_move(program, TT_MOVE_FOLD | TT_MOVE_PRE | TT_MOVE_POST);
    tt_gen_src(fold, tt_gen_set(TT_SPACE_SLOT, TT_PEER_EACH, chunk));
    tt_gen_dst(fold, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
}

void tt_gen_oneshot_allreduce(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    blocks(program);
    send_others(program, TT_MOVE_PRE, tt_gen_number(0));
    fold_slots(program, tt_gen_number(0));
    tt_gen_end(program);
}

void tt_gen_oneshot_reducescatter(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    program->in_blocks = true;
    blocks(program);
    send_others(program, TT_MOVE_PRE, tt_gen_peer());
    fold_slots(program, tt_gen_me());
    tt_gen_end(program);
}

void tt_gen_oneshot_reduce(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    blocks(program);
    if (program->rank == program->root) {
        fold_slots(program, tt_gen_number(0));
    } else {
        struct tt_insn *send = tt_gen_move(program, TT_MOVE_PRE);
        tt_gen_src(send, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)));
        tt_gen_dst(send, tt_gen_at(TT_SPACE_SLOT, program->root, tt_gen_number(0)));
    }
    tt_gen_end(program);
}

void tt_gen_oneshot_broadcast(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    blocks(program);
    if (program->rank == program->root) {
        struct tt_insn *send = tt_gen_move(program, 0);
        tt_gen_src(send, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)));
        tt_gen_dst(send, tt_gen_set(TT_SPACE_SLOT, TT_PEER_OTHERS, tt_gen_number(0)));
        tt_gen_dst(send, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    } else {
        tt_gen_copy(program, tt_gen_at(TT_SPACE_SLOT, program->root, tt_gen_number(0)),
                    tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    }
    tt_gen_end(program);
}

/* Own IN (as the own place among the slots) and all slots into the blocks of OUT. */
static void place_slots(struct tt_program *program, struct tt_gen_chunk chunk)
{
    tt_gen_copy(program, tt_gen_set(TT_SPACE_SLOT, TT_PEER_EACH, chunk),
                tt_gen_own(TT_SPACE_OUT, tt_gen_peer()));
}

void tt_gen_oneshot_allgather(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    program->out_blocks = true;
    blocks(program);
    send_others(program, 0, tt_gen_number(0));
    place_slots(program, tt_gen_number(0));
    tt_gen_end(program);
}

void tt_gen_oneshot_alltoall(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    program->in_blocks = true;
    program->out_blocks = true;
    blocks(program);
    send_others(program, 0, tt_gen_peer());
    place_slots(program, tt_gen_peer());
    tt_gen_end(program);
}

void tt_gen_oneshot_gather(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    program->out_blocks = true;
    blocks(program);
    if (program->rank == program->root) {
        place_slots(program, tt_gen_number(0));
    } else {
        tt_gen_copy(program, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)),
                    tt_gen_at(TT_SPACE_SLOT, program->root, tt_gen_number(0)));
    }
    tt_gen_end(program);
}

void tt_gen_oneshot_scatter(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    program->in_blocks = true;
    blocks(program);
    if (program->rank == program->root) {
        send_others(program, 0, tt_gen_peer());
        tt_gen_copy(program, tt_gen_own(TT_SPACE_IN, tt_gen_me()),
                    tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    } else {
        tt_gen_copy(program, tt_gen_at(TT_SPACE_SLOT, program->root, tt_gen_number(0)),
                    tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    }
    tt_gen_end(program);
}
