/* Hints for a network about the next operations. */
#pragma once

#include <stdint.h>

struct tt_transport;

struct tt_net_uses {    /* a bit per number, as NCCL numbers them; 0: nothing is known */
    uint16_t functions; /* enum tt_func */
    uint16_t algorithms;
    uint16_t protocols;
};
/* Note that operations of that kind begin. A network that wants hints gets one before their
 * messages when the kind has changed. Any thread. */
void tt_transport_uses(struct tt_transport *transport, struct tt_net_uses uses);
