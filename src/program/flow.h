/* What a program does, message by message: follows all ranks of one that was proved, for one pass
 * with as many slots as it likes. A step is a message that has to come before the next: time counts
 * them. Pure. */
#pragma once

#include "program.h"

enum { TT_FLOW_MASK_RANKS = 64 }; /* it is known whose inputs a message has up to so many ranks */

struct tt_flow_message {
    int32_t from, to, channel;
    int32_t chunk;  /* of the input, wherever it lies now; where inputs are one block that is
                     * gathered,  of the result. As the receiver calls it where ranks are too many */
    int32_t step;   /* when it is taken; from 1 */
    uint32_t insn;  /* that takes it, or reads or writes the other's memory */
    uint64_t parts; /* ranks whose input is in what it becomes; 0 where they are too many */
};

struct tt_flow {
    struct tt_flow_message *messages; /* owned; in the order of steps at each receiver */
    size_t nmessages;
    uint64_t *sent, *received; /* owned; chunks, of each rank */
    uint64_t *touched;         /* owned; chunks that each rank reads and writes, slots included */
    int nsteps;                /* of the longest chain */
};

/* Errors: ncclInvalidUsage (it does not end, or is too large: a sentence in `fault`),
 * ncclSystemError. *flow is zeroed then. */
ncclResult_t tt_program_flow(const struct tt_program *program, struct tt_flow *flow, char *fault,
                             size_t fault_bytes);
void tt_flow_fini(struct tt_flow *flow); /* accepts zeroed ones */

/* The least that any program needs: blocks (buffers of a collective without blocks) that the
 * busiest rank sends, and steps where a rank sends to one other at a time. */
double tt_flow_least_sent(const struct tt_program *program);
int tt_flow_least_steps(const struct tt_program *program);
