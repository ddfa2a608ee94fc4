/* Frames of the all-gather and of messages. Service's lock held. */
#pragma once

#include "bootstrap/tree/tree.h"

/* Handle an UP frame: contributions of the subtree of `branch`. */
void tt_exchange_up(struct tt_bootstrap *bootstrap, struct tt_branch *branch,
                    const unsigned char *bytes, size_t len);
/* Send this rank's contribution again, over a new connection to the parent. */
void tt_exchange_send_again(struct tt_bootstrap *bootstrap);
/* Call it when a rank has left, or a contribution has arrived: fails the exchange at once when it
 * lacks a rank that has left. */
void tt_exchange_miss(struct tt_bootstrap *bootstrap);
/* Report, once, that children wait for this rank. True: look again soon. */
bool tt_exchange_tick(struct tt_bootstrap *bootstrap, uint64_t now_nsec);
/* Handle a DOWN frame: the whole table. */
void tt_exchange_down(struct tt_bootstrap *bootstrap, const unsigned char *bytes, size_t len);
/* Send a message, also in a membership that has failed. */
void tt_exchange_post(struct tt_bootstrap *bootstrap, int peer, uint32_t tag, const void *message,
                      size_t bytes);
/* Handle a MESSAGE frame: keep it, or pass it on. */
void tt_exchange_message(struct tt_bootstrap *bootstrap, const unsigned char *bytes, size_t len);
