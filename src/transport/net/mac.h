/* A message authentication code of 64 bits, for two ends that share a secret. Without the secret a
 * forged tag is accepted with a probability of about 2^-61. The bytes are not encrypted. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TT_MAC_SEED_BYTES = 32, TT_MAC_BLOCK_BYTES = 8192 };
enum { TT_MAC_CONTEXT_WORDS = 3, TT_MAC_STEP_BYTES = 64 };

/* The sum of 128 bits over `len_bytes`, a multiple of TT_MAC_STEP_BYTES and one block at most. */
typedef void tt_mac_sum_fn(const uint64_t *key, const unsigned char *bytes, size_t len_bytes,
                           uint64_t sum_out[2]);
tt_mac_sum_fn tt_mac_sum; /* on any processor */
/* All implementations that this processor can run, the fastest first; NULL ends the list. */
tt_mac_sum_fn *const *tt_mac_sums(void);

struct tt_mac_key { /* wipe it with sodium_memzero() */
    _Alignas(64) tt_mac_sum_fn *sum;
    _Alignas(32) struct {
        unsigned char compress[16], last[16];
        uint64_t words[TT_MAC_BLOCK_BYTES / 8]; /* loads of 64 bytes cross no cache line */
    } secret;
};
_Static_assert(offsetof(struct tt_mac_key, secret.words) % 64 == 0, "on a cache line");

/* Derive the key from a seed; equal seeds give equal keys. */
void tt_mac_key_init(struct tt_mac_key *key, const unsigned char seed[TT_MAC_SEED_BYTES]);

/* Tag of `len_bytes`. `context` names the message (sender and receiver, its number), so that its
 * tag is wrong for any other message. Use a context once per key. hot */
uint64_t tt_mac(const struct tt_mac_key *key, const uint64_t context[TT_MAC_CONTEXT_WORDS],
                const void *bytes, size_t len_bytes);
