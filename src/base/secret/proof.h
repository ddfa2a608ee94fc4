/* The handshake of all connections: three messages of fixed sizes by which both ends prove that
 * they hold a key, before any other byte of the connection is interpreted. The further contents of
 * hello and answer belong to the callers (bootstrap/wire/handshake.c, net/socket_shake.c).
 *
 *   C -> S  hello: what the client says, and its nonce
 *   S -> C  answer: nonce | what the server says | MAC(K, "S" | hello | answer up to here)
 *   C -> S  proof: MAC(K, "C" | the same)
 *
 * MACs are keyed BLAKE2b. Each covers the role and all that names the ends, so no message can be
 * reflected, replayed or redirected. On an encrypted ("sealed") connection both nonces are public
 * keys of crypto_kx, made for this connection alone. Pure computation: no I/O, any thread. */
#pragma once

#include "base/secret/seal.h"

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct tt_key_proof { /* the messages as they went over the wire; borrowed */
    const unsigned char *key;
    const unsigned char *hello;
    size_t hello_bytes, nonce_at; /* of the client, in the hello */
    unsigned char *answer;
    size_t signed_bytes; /* of the answer: the nonce and what the server says */
    unsigned char *proof;
};

/* This side's nonce: pair->open. */
static inline void tt_proof_nonce(struct tt_seal_pair *pair, bool sealed)
{
    if (sealed) {
        tt_seal_pair_make(pair);
    } else {
        randombytes_buf(pair->open, sizeof(pair->open));
    }
}

/* Make the MAC of one role; it also covers `more`, bytes that are sent after the handshake. */
static inline void tt_proof_sign(const struct tt_key_proof *proof, char role, const void *more,
                                 size_t more_bytes, unsigned char mac_out[TT_PROOF_BYTES])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, proof->key, TT_PROOF_KEY_BYTES, TT_PROOF_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)&role, 1);
    crypto_generichash_update(&state, proof->hello, proof->hello_bytes);
    crypto_generichash_update(&state, proof->answer, proof->signed_bytes);
    if (more_bytes) crypto_generichash_update(&state, more, more_bytes);
    crypto_generichash_final(&state, mac_out, TT_PROOF_BYTES);
}

/* Server: write the MAC that ends message 2. */
static inline void tt_proof_answer(const struct tt_key_proof *proof)
{
    tt_proof_sign(proof, 'S', NULL, 0, proof->answer + proof->signed_bytes);
}

/* Client: check message 2 and make message 3. False: the server does not hold the key. */
static inline bool tt_proof_prove(const struct tt_key_proof *proof)
{
    unsigned char mac[TT_PROOF_BYTES];
    tt_proof_sign(proof, 'S', NULL, 0, mac);
    if (sodium_memcmp(mac, proof->answer + proof->signed_bytes, sizeof(mac)) != 0) return false;
    tt_proof_sign(proof, 'C', NULL, 0, proof->proof);
    return true;
}

/* Server: check message 3. False: the client does not hold the key. */
static inline bool tt_proof_check(const struct tt_key_proof *proof)
{
    unsigned char mac[TT_PROOF_BYTES];
    tt_proof_sign(proof, 'C', NULL, 0, mac);
    return sodium_memcmp(mac, proof->proof, sizeof(mac)) == 0;
}

/* Both ends, after the handshake: derive a key of this connection for `purpose`.
 * pair  of an encrypted connection, so that this key stays secret even if the handshake's key leaks
 *       later; NULL: the connection is not encrypted
 * False: the other side's public key is invalid. */
static inline bool tt_proof_session(const struct tt_key_proof *proof, const char *purpose,
                                    const struct tt_seal_pair *pair, bool server,
                                    unsigned char key_out[TT_PROOF_KEY_BYTES])
{
    unsigned char shared[TT_SEAL_SHARED_BYTES];
    const unsigned char *theirs = server ? proof->hello + proof->nonce_at : proof->answer;
    crypto_generichash_state state;
    if (pair && !tt_seal_agree(pair, theirs, server, shared)) return false;
    crypto_generichash_init(&state, proof->key, TT_PROOF_KEY_BYTES, TT_PROOF_KEY_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)purpose, strlen(purpose));
    crypto_generichash_update(&state, proof->hello, proof->hello_bytes);
    crypto_generichash_update(&state, proof->answer, proof->signed_bytes + TT_PROOF_BYTES);
    crypto_generichash_update(&state, proof->proof, TT_PROOF_BYTES);
    if (pair) crypto_generichash_update(&state, shared, sizeof(shared));
    crypto_generichash_final(&state, key_out, TT_PROOF_KEY_BYTES);
    sodium_memzero(shared, sizeof(shared));
    return true;
}
