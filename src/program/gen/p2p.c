/* One message: the sender fills slots, the receiver empties them, chunk after chunk. An empty
 * message is one empty slot. */
#include "gen.h"

static void whole_buffer(struct tt_builder *builder, struct tt_operand src, struct tt_operand dst)
{
    tt_build_thread(builder);
    tt_build_copy(builder, src, dst);
    tt_build_stop(builder);
}

void tt_gen_p2p_send(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    whole_buffer(builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)),
                 tt_gen_at(TT_SPACE_SLOT, builder->head.root, tt_gen_number(0)));
}

void tt_gen_p2p_recv(const struct tt_shape *shape, struct tt_builder *builder)
{
    (void)shape;
    whole_buffer(builder, tt_gen_at(TT_SPACE_SLOT, builder->head.root, tt_gen_number(0)),
                 tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
}
