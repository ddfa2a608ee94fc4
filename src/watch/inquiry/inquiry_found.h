/* The list of what an inquiry has found, for the messages of inquiry.c alone. */
#pragma once

#include "watch/inquiry/inquiry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Add the state of a rank, and its communicator where that is new. Does nothing when the rank is
 * there already, or when memory is short.
 * hops, nhops  by which its process was asked: its communicator's other ranks are asked over the
 * same ones; NULL, 0: it is this process */
void tt_inquiry_add_status(struct tt_inquiry *inquiry, const struct tt_status *status,
                           const struct tt_inquiry_hop *hops, int nhops);
/* Append `bytes` bytes of a process's lines of settings; what follows of them may come later.
 * Characters other than printable ASCII become '?'. More than 256 KiB of a process is left out. */
void tt_inquiry_add_settings(struct tt_inquiry *inquiry, uint64_t key, const char *text,
                             size_t bytes);
/* True when all ranks of all known communicators have answered, but for those that cannot be asked.
 */
bool tt_inquiry_is_complete(const struct tt_inquiry *inquiry);
