/* AlltoAll, Gather and Scatter where the ranks cannot address each other: what they are as sends
 * and receives. Private to the room. */
#pragma once

#include "program/program.h"

#include <stdbool.h>
#include <stddef.h>

struct tt_plan;
struct tt_task;

/* The part of one rank in an exchange: blocks of `bytes` each, for all or for the root, from all or
 * from the root. */
struct tt_block_exchange {
    const char *in;
    char *out;
    size_t bytes;
    bool to_all;
    bool from_all;
    int to_root;   /* the root when this rank sends to it alone, else -1 */
    int from_root; /* likewise */
};

/* True when the call is executed as sends and receives. */
bool tt_messages_expand(struct tt_plan *plan, const struct tt_task *task);
struct tt_block_exchange tt_exchange_of(const struct tt_plan *plan, const struct tt_task *task);

/* Where the block for (from) that rank lies. */
static inline const char *tt_exchange_in(const struct tt_block_exchange *exchange, int peer)
{
    return exchange->in + (exchange->to_all ? (size_t)peer * exchange->bytes : 0);
}
static inline char *tt_exchange_out(const struct tt_block_exchange *exchange, int peer)
{
    return exchange->out + (exchange->from_all ? (size_t)peer * exchange->bytes : 0);
}
/* True when this rank sends to (receives from) `peer`, which may be itself. */
static inline bool tt_exchange_has(const struct tt_block_exchange *exchange, int peer, bool sending)
{
    return sending ? exchange->to_all || peer == exchange->to_root
                   : exchange->from_all || peer == exchange->from_root;
}
