/* Appends instructions to a program under construction. Room for them is a property of the
 * generators, so overflow is our own mistake and asserted. */
#include "gen.h"

#include <assert.h>

static struct tt_insn *append(struct tt_program *program, enum tt_op op, uint8_t flags, int arg)
{
    assert(program->ninsns < TT_MAX_INSNS);
    struct tt_insn *insn = &program->insns[program->ninsns++];
    *insn = (struct tt_insn){.op = (uint8_t)op, .flags = flags, .arg = arg};
    return insn;
}

void tt_gen_thread(struct tt_program *program)
{
    assert(program->nthreads < TT_MAX_THREADS);
    program->thread_first[program->nthreads++] = program->ninsns;
}

void tt_gen_end(struct tt_program *program)
{
    append(program, TT_OP_END, 0, 0);
    program->thread_first[program->nthreads] = program->ninsns;
}

void tt_gen_enter(struct tt_program *program, int rank)
{
    program->needs_board = true;
    append(program, TT_OP_ENTER, 0, rank);
}

void tt_gen_leave(struct tt_program *program, uint8_t flags)
{
    append(program, TT_OP_LEAVE, flags, -1);
}

void tt_gen_loop(struct tt_program *program, int times)
{
    append(program, TT_OP_LOOP, 0, times > 0 ? times : 0);
}

void tt_gen_next(struct tt_program *program)
{
    append(program, TT_OP_NEXT, 0, 0);
}

struct tt_insn *tt_gen_move(struct tt_program *program, uint8_t flags)
{
    return append(program, TT_OP_MOVE, flags, 0);
}

void tt_gen_src(struct tt_insn *insn, struct tt_operand operand)
{
    assert(insn->nsrcs < TT_MAX_OPERANDS);
    insn->src[insn->nsrcs++] = operand;
}

void tt_gen_dst(struct tt_insn *insn, struct tt_operand operand)
{
    assert(insn->ndsts < TT_MAX_OPERANDS);
    insn->dst[insn->ndsts++] = operand;
}

void tt_gen_copy(struct tt_program *program, struct tt_operand src, struct tt_operand dst)
{
    struct tt_insn *insn = tt_gen_move(program, 0);
    tt_gen_src(insn, src);
    tt_gen_dst(insn, dst);
}
