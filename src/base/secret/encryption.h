/* The process's own key for its sockets (ncclSetEncryption), and whether they are encrypted at all.
 * A process with a key talks to processes with the same key only: it is mixed into the key of every
 * handshake, so a peer with another one, or with none, cannot prove itself. */
#pragma once

#include <stdbool.h>

#define TT_ENCRYPTION_KEY_BYTES 32

/* Set the key (copied), or with NULL: none. No thread may be in a handshake. */
void tt_encryption_set(const unsigned char *key);
/* The key; NULL: none. Valid until the next tt_encryption_set(). */
const unsigned char *tt_encryption_key(void);
/* Are sockets to be encrypted: by a key, or by TUTTI_NET_ENCRYPT? */
bool tt_encryption_wanted(void);
