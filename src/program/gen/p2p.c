/* One message: the sender fills slots, the receiver empties them, chunk after chunk. An empty
 * message is one empty slot. */
#include "gen.h"

static void whole_buffer(struct tt_program *program, struct tt_operand src, struct tt_operand dst)
{
    program->geometry = TT_GEOMETRY_BLOCKS;
    program->nchunks = 1;
    tt_gen_thread(program);
    tt_gen_copy(program, src, dst);
    tt_gen_end(program);
}

void tt_gen_p2p_send(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    whole_buffer(program, tt_gen_own(TT_SPACE_IN, tt_gen_number(0)),
                 tt_gen_at(TT_SPACE_SLOT, program->root, tt_gen_number(0)));
}

void tt_gen_p2p_recv(const struct tt_shape *shape, struct tt_program *program)
{
    (void)shape;
    whole_buffer(program, tt_gen_at(TT_SPACE_SLOT, program->root, tt_gen_number(0)),
                 tt_gen_own(TT_SPACE_OUT, tt_gen_number(0)));
}
