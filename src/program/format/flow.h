/* Lists the messages of a verified program: follows all ranks for one pass, with an unlimited
 * number of slots. The step of a message is the length of the longest chain of messages that ends
 * with it. Pure. */
#pragma once

#include "program/program.h"

enum { TT_FLOW_MASK_RANKS = 64 }; /* most ranks for which `parts` is known */

struct tt_flow_message {
    int32_t from, to, channel;
    int32_t chunk;  /* of the input that it is made of, wherever it lies now; of the result where
                     * inputs of one block are gathered. With more ranks: the receiver's chunk */
    int32_t step;   /* from 1 */
    uint32_t insn;  /* that receives it, or reads or writes the other rank's memory */
    uint64_t parts; /* ranks whose input is in the result, a bit each; 0: too many ranks */
};

struct tt_flow {
    struct tt_flow_message *messages; /* owned; in the order of steps at each receiver */
    size_t nmessages;
    uint64_t *sent, *received; /* owned; chunks, of each rank */
    uint64_t *touched;         /* owned; chunks that each rank reads and writes, slots included */
    int nsteps;                /* of the longest chain */
};

/* Fill *flow; the caller releases it with tt_flow_fini(). Errors: ncclInvalidUsage (the program
 * does not end, or is too large: text in `fault`), ncclSystemError (out of memory). *flow is zeroed
 * then.
 */
ncclResult_t tt_program_flow(const struct tt_program *program, struct tt_flow *flow, char *fault,
                             size_t fault_bytes);
void tt_flow_fini(struct tt_flow *flow); /* accepts zeroed ones */

/* Lower bounds for any program of the same collective: blocks (buffers of a collective without
 * blocks) that the busiest rank sends, and steps when a rank sends to one other rank at a time. */
double tt_flow_least_sent(const struct tt_program *program);
int tt_flow_least_steps(const struct tt_program *program);
