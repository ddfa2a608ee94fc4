/* All-gather and messages: what arrives for them. Service's lock held. */
#pragma once

#include "bootstrap/tree/tree.h"

void tt_exchange_up(struct tt_bootstrap *bootstrap, struct tt_branch *branch,
                    const unsigned char *bytes, size_t len);
/* Send the own share again: the connection to the parent is a new one. */
void tt_exchange_send_again(struct tt_bootstrap *bootstrap);
/* A rank has left, or somebody has come to an exchange: it fails at once where a rank that has left
 * never comes to it. */
void tt_exchange_miss(struct tt_bootstrap *bootstrap);
/* Report, once, that children wait for this rank. True: look again soon. */
bool tt_exchange_tick(struct tt_bootstrap *bootstrap, uint64_t now_nsec);
void tt_exchange_down(struct tt_bootstrap *bootstrap, const unsigned char *bytes, size_t len);
/* Send a message, also in a membership that has failed. */
void tt_exchange_post(struct tt_bootstrap *bootstrap, int peer, uint32_t tag, const void *message,
                      size_t bytes);
void tt_exchange_message(struct tt_bootstrap *bootstrap, const unsigned char *bytes, size_t len);
