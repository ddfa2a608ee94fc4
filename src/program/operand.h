/* What an operand stands for: one place or a set of them, and which chunk. For those who walk over
 * instructions: this room's files, and the interpreter. */
#pragma once

#include "program.h"

/* True when the operand stands for a set of ranks: a place at each of them. */
static inline bool tt_operand_is_set(const struct tt_operand *operand)
{
    return operand->peer == TT_PEER_EACH || operand->peer == TT_PEER_OTHERS;
}

/* Number of the operand's chunk where it stands at `peer`; `i` is the loop register. -1 when
 * chunk_by is unknown, which the verifier refuses. */
int tt_operand_chunk(const struct tt_program *program, const struct tt_operand *operand, int peer,
                     int i);
