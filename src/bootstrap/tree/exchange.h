/* All-gather and messages: what arrives for them. Service's lock held. */
#pragma once

#include "bootstrap/tree/tree.h"

void tt_exchange_up(struct tt_bootstrap *bootstrap, struct tt_branch *branch,
                    const unsigned char *bytes, size_t len);
/* Report, once, that children wait for this rank. True: look again soon. */
bool tt_exchange_tick(struct tt_bootstrap *bootstrap, uint64_t now_nsec);
void tt_exchange_down(struct tt_bootstrap *bootstrap, const unsigned char *bytes, size_t len);
/* Send a message, also in a membership that has failed. */
void tt_exchange_post(struct tt_bootstrap *bootstrap, int peer, uint32_t tag, const void *message,
                      size_t bytes);
void tt_exchange_message(struct tt_bootstrap *bootstrap, const unsigned char *bytes, size_t len);
