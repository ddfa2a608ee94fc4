/* Why an init waits or fails when a program was started wrongly: words for the message, "" without
 * a guess. */
#pragma once

#include "bootstrap/join/id.h"

#include <stdbool.h>
#include <stddef.h>

/* True when `id` names another address than NCCL_COMM_ID does here: it is of another run. Fills
 * text with the words that follow the rank. */
bool tt_mistake_id(const struct tt_id_parts *id, char *text, size_t text_bytes);

/* Does a TCP connection lead to another host? A host's own have one address at both ends. */
bool tt_mistake_far(int fd, const union tt_addr *peer);

/* Why this process offers a loopback address although it talks to another host. */
void tt_mistake_netif(char *text, size_t text_bytes);

/* Fill text when a launcher says that this process is another rank than it took; the text follows
 * a question mark. */
void tt_mistake_rank(int rank, char *text, size_t text_bytes);
