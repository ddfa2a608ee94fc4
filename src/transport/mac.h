/* A keyed tag of 64 bits on a message, for two ends that share a secret: who does not know it makes
 * one that fits with a chance of about 2^-61 each try. It hides nothing. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TT_MAC_SEED_BYTES = 32, TT_MAC_BLOCK_BYTES = 8192 };
enum { TT_MAC_CONTEXT_WORDS = 3, TT_MAC_STEP_BYTES = 64 };

/* The sum of 128 bits over `len_bytes`, a multiple of TT_MAC_STEP_BYTES and one block at most. */
typedef void tt_mac_sum_fn(const uint64_t *key, const unsigned char *bytes, size_t len_bytes,
                           uint64_t sum_out[2]);
tt_mac_sum_fn tt_mac_sum; /* on any processor */
/* All ways in which this processor can make it, the best first; NULL ends them. */
tt_mac_sum_fn *const *tt_mac_sums(void);

struct tt_mac_key { /* wipe it with sodium_memzero() */
    struct {
        unsigned char compress[16], last[16];
        uint64_t words[TT_MAC_BLOCK_BYTES / 8];
    } secret;
    tt_mac_sum_fn *sum;
};

/* The same key from the same seed. */
void tt_mac_key_init(struct tt_mac_key *key, const unsigned char seed[TT_MAC_SEED_BYTES]);

/* Of `len_bytes` anywhere in memory, at one place of the traffic (who to whom, the how manieth):
 * the tag of one place fits no other. A place is used once with a key.                        hot
 */
uint64_t tt_mac(const struct tt_mac_key *key, const uint64_t context[TT_MAC_CONTEXT_WORDS],
                const void *bytes, size_t len_bytes);
