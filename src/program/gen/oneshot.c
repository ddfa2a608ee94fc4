/* One-shot programs: each rank sends what it has through slots, receivers reduce or place it. One
 * dependent phase, no entry and no exit: a slot is the message, and the sender's buffer is free as
 * soon as the slot is filled.
 *
 * Meant for payloads of one slot. Larger ones walk over the data in passes of at most one slot per
 * edge (chunk limit = slice), send before receive within a pass, so one slot per edge is enough (a
 * root's peers only send or only receive, so there it may be several) and input of a pass is gone
 * before output of that pass is written: in place is right everywhere, even for AlltoAll. Every
 * rank reduces in rank order: the same bits on all ranks, and the same as the direct programs give.
 */
#include "gen.h"

static void send_others(struct tt_builder *builder, uint8_t flags, struct tt_gen_chunk chunk)
{
    tt_build_move(builder, flags);
    tt_build_src(builder, tt_gen_own(TT_SPACE_IN, chunk));
    tt_build_dst(builder, tt_gen_set(TT_SPACE_SLOT, TT_PEER_OTHERS, chunk));
}

/* Reduce the slots of all others and the own IN, in rank order. */
static void reduce_slots(struct tt_builder *builder, struct tt_gen_chunk chunk)
{
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE | TT_MOVE_POST);
    tt_build_src(builder, tt_gen_set(TT_SPACE_SLOT, TT_PEER_EACH, chunk));
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
}

/* The root runs the text begun now, all others the next one. */
static void begin_root(struct tt_builder *builder)
{
    tt_build_text(builder);
    tt_build_thread(builder);
    for (int rank = 0; rank < builder->head.nranks; rank++)
        tt_build_assign(builder, rank, rank != builder->head.root);
}

static void begin_others(struct tt_builder *builder)
{
    tt_build_stop(builder);
    tt_build_text(builder);
    tt_build_thread(builder);
}

void tt_gen_oneshot_allreduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    tt_build_thread(builder);
    send_others(builder, TT_MOVE_PRE, tt_gen_number(0));
    reduce_slots(builder, tt_gen_number(0));
    tt_build_stop(builder);
}

void tt_gen_oneshot_reducescatter(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.in_blocks = true;
    tt_build_thread(builder);
    send_others(builder, TT_MOVE_PRE, tt_gen_peer());
    reduce_slots(builder, tt_gen_me());
    tt_build_stop(builder);
}

void tt_gen_oneshot_reduce(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    begin_root(builder);
    reduce_slots(builder, tt_gen_number(0));
    begin_others(builder);
    tt_build_move(builder, TT_MOVE_PRE);
    tt_build_src(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)));
    tt_build_dst(builder, tt_gen_at(TT_SPACE_SLOT, builder->head.root, tt_gen_number(0)));
    tt_build_stop(builder);
}

void tt_gen_oneshot_broadcast(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    begin_root(builder);
    send_others(builder, 0, tt_gen_number(0));
    tt_build_dst(builder, tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    begin_others(builder);
    tt_build_copy(builder, tt_gen_at(TT_SPACE_SLOT, builder->head.root, tt_gen_number(0)),
                  tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    tt_build_stop(builder);
}

/* Own IN (as the own place among the slots) and all slots into the blocks of OUT. */
static void place_slots(struct tt_builder *builder, struct tt_gen_chunk chunk)
{
    tt_build_copy(builder, tt_gen_set(TT_SPACE_SLOT, TT_PEER_EACH, chunk),
                  tt_gen_own(TT_SPACE_OUT, tt_gen_peer()));
}

void tt_gen_oneshot_allgather(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.out_blocks = true;
    tt_build_thread(builder);
    send_others(builder, 0, tt_gen_number(0));
    place_slots(builder, tt_gen_number(0));
    tt_build_stop(builder);
}

void tt_gen_oneshot_alltoall(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.in_blocks = true;
    builder->head.out_blocks = true;
    tt_build_thread(builder);
    send_others(builder, 0, tt_gen_peer());
    place_slots(builder, tt_gen_peer());
    tt_build_stop(builder);
}

void tt_gen_oneshot_gather(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.out_blocks = true;
    begin_root(builder);
    place_slots(builder, tt_gen_number(0));
    begin_others(builder);
    tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)),
                  tt_gen_at(TT_SPACE_SLOT, builder->head.root, tt_gen_number(0)));
    tt_build_stop(builder);
}

void tt_gen_oneshot_scatter(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    builder->head.in_blocks = true;
    begin_root(builder);
    send_others(builder, 0, tt_gen_peer());
    tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, tt_gen_me()),
                  tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    begin_others(builder);
    tt_build_copy(builder, tt_gen_at(TT_SPACE_SLOT, builder->head.root, tt_gen_number(0)),
                  tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
    tt_build_stop(builder);
}
