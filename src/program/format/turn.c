/* A program of one root turned to another: each rank does what the rank that many numbers before it
 * did. What is proved of a program holds for a turned one, since only names change. */
#include "base/error.h"
#include "base/mem.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>

static bool operand_turns(const struct tt_operand *operand)
{
    const bool own = operand->peer == TT_PEER_SELF;
    const bool other = operand->peer == TT_PEER_RANK && operand->peer_coef == 0;
    return (own || other) && operand->chunk_by == TT_CHUNK_CONST;
}

bool tt_program_turns(const struct tt_program *program)
{
    const struct tt_operand *operands = tt_program_operands(program);
    bool turns = program->root >= 0 && !program->in_blocks && !program->out_blocks &&
                 !program->needs_barrier && program->text_of_at;
    for (int k = 0; turns && k < TT_MAX_TABLES; k++)
        turns = program->table_at[k] == 0;
    for (uint32_t k = 0; turns && k < program->noperands; k++)
        turns = operand_turns(&operands[k]);
    return turns;
}

ncclResult_t tt_program_turn(const struct tt_program *program, int root,
                             struct tt_program **turned_out)
{
    const int n = program->nranks, more = (root - program->root + n) % n;
    char *const block = malloc(program->bytes);
    if (!block) return tt_fail(ncclSystemError, "program of root %d: out of memory", root);
    memcpy(block, program, program->bytes);
    struct tt_program *const turned = (void *)block;
    struct tt_operand *const operands = (void *)(block + program->operands_at);
    uint16_t *const text_of = (void *)(block + program->text_of_at);
    const uint16_t *const was = (const void *)((const char *)program + program->text_of_at);
    turned->root = root;
    for (int rank = 0; rank < n; rank++)
        text_of[(rank + more) % n] = was[rank];
    for (uint32_t k = 0; k < program->noperands; k++) {
        if (operands[k].peer == TT_PEER_RANK)
            operands[k].peer_number = (operands[k].peer_number + more) % n;
    }
    *turned_out = turned;
    return ncclSuccess;
}
