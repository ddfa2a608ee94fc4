/* Text for messages about an init that waits or fails because a program was started wrongly; ""
 * when there is no guess. */
#pragma once

#include "bootstrap/join/id.h"

#include <stdbool.h>
#include <stddef.h>

/* True when `id` names another address than NCCL_COMM_ID does here: it is of another run. Fills
 * text with the words that follow the rank. */
bool tt_mistake_id(const struct tt_id_parts *id, char *text, size_t text_bytes);

/* True when a TCP connection leads to another host: one within a host has the same address at both
 * ends. */
bool tt_mistake_far(int fd, const union tt_addr *peer);

/* Why this process offers a loopback address although it talks to another host. */
void tt_mistake_netif(char *text, size_t text_bytes);

/* Fill text when a launcher says that this process is another rank than it took; the text follows
 * a question mark. */
void tt_mistake_rank(int rank, char *text, size_t text_bytes);
