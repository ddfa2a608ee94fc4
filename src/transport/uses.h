/* What a network may be told of the operations whose messages come next. */
#pragma once

#include <stdint.h>

struct tt_transport;

struct tt_net_uses {    /* a bit per number, as NCCL numbers them; 0: nothing is known */
    uint16_t functions; /* enum tt_func */
    uint16_t algorithms;
    uint16_t protocols;
};
/* Operations of that kind begin: a network that wants hints gets one before their messages, if they
 * are not of the kind of those before. Any thread. */
void tt_transport_uses(struct tt_transport *transport, struct tt_net_uses uses);
