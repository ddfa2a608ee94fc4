/* Pairwise AlltoAll: n-1 steps; in step k each rank sends to the rank k places on and receives from
 * the one k places before, so that each link carries one block at a time. A block is sent before
 * one is received: as many slots do as a chunk has slices. In place needs a copy of the input. */
#include "gen.h"

void tt_gen_pairwise_alltoall(const struct tt_shape *shape, struct tt_builder *builder)
{
    const struct tt_gen_chunk on = {TT_CHUNK_SHIFT, 1, 1}, back = {TT_CHUNK_SHIFT, -1, -1};
    struct tt_operand to = tt_gen_by(TT_SPACE_SLOT, TT_PEER_SHIFT, 1, on);
    struct tt_operand from = tt_gen_by(TT_SPACE_SLOT, TT_PEER_SHIFT, -1, back);
    to.peer_coef = 1;
    from.peer_coef = -1;
    builder->head.in_blocks = true;
    builder->head.out_blocks = true;
    tt_build_thread(builder);
    tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, tt_gen_me()),
                  tt_gen_own(TT_SPACE_OUT, tt_gen_me()));
    tt_build_loop(builder, shape->nranks - 1);
    tt_build_copy(builder, tt_gen_own(TT_SPACE_IN, on), to);
    tt_build_copy(builder, from, tt_gen_own(TT_SPACE_OUT, back));
    tt_build_next(builder);
    tt_build_stop(builder);
}
