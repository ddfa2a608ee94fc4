/* Encryption of a connection: ephemeral keys for forward secrecy, then ChaCha20-Poly1305 with one
 * key per direction. The nonce is the number of the message, so a key must never be used for two
 * connections. A message that was changed, left out, doubled or moved fails to open. */
#pragma once

#include "base/secret/encryption.h"

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TT_SEAL_KEY_BYTES crypto_aead_chacha20poly1305_IETF_KEYBYTES
#define TT_SEAL_TAG_BYTES crypto_aead_chacha20poly1305_IETF_ABYTES
#define TT_SEAL_SHARED_BYTES (2 * crypto_kx_SESSIONKEYBYTES)

#define TT_PROOF_KEY_BYTES 32 /* of a handshake: base/secret/proof.h */
#define TT_PROOF_BYTES 32
#define TT_NONCE_BYTES 32

/* The key pair of one handshake; the public key takes the place of the nonce there. */
struct tt_seal_pair {
    unsigned char open[crypto_kx_PUBLICKEYBYTES];
    unsigned char secret[crypto_kx_SECRETKEYBYTES];
};

static inline void tt_seal_pair_make(struct tt_seal_pair *pair)
{
    crypto_kx_keypair(pair->open, pair->secret);
}

/* Compute the shared secret: the same bytes at both ends, to be mixed into the keys. False when the
 * other side's public key is invalid. */
static inline bool tt_seal_agree(const struct tt_seal_pair *own, const unsigned char *theirs,
                                 bool server, unsigned char shared_out[TT_SEAL_SHARED_BYTES])
{
    unsigned char *to_server = shared_out;
    unsigned char *to_client = shared_out + crypto_kx_SESSIONKEYBYTES;
    if (server)
        return !crypto_kx_server_session_keys(to_server, to_client, own->open, own->secret, theirs);
    return !crypto_kx_client_session_keys(to_client, to_server, own->open, own->secret, theirs);
}

/* Mix the key of ncclSetEncryption, if the process has one, into the key of a handshake. */
static inline void tt_seal_mix(unsigned char key[TT_SEAL_KEY_BYTES])
{
    const unsigned char *own = tt_encryption_key();
    unsigned char mixed[TT_SEAL_KEY_BYTES];
    if (!own) return;
    crypto_generichash(mixed, sizeof(mixed), key, TT_SEAL_KEY_BYTES, own, TT_ENCRYPTION_KEY_BYTES);
    memcpy(key, mixed, sizeof(mixed));
    sodium_memzero(mixed, sizeof(mixed));
}

struct tt_seal_text { /* a message: the head is authenticated, the body is encrypted as well */
    const unsigned char *head;
    size_t head_bytes;
    const unsigned char *body;
    size_t body_bytes;
};

static inline void tt_seal_nonce(unsigned char *nonce, uint64_t number)
{
    memset(nonce, 0, crypto_aead_chacha20poly1305_IETF_NPUBBYTES);
    for (int i = 0; i < 8; i++)
        nonce[i] = (unsigned char)(number >> (8 * i));
}

/* Encrypt. `out` gets the encrypted body and the tag; it may be the body itself. */
static inline void tt_seal_shut(const unsigned char *key, uint64_t number,
                                const struct tt_seal_text *text, unsigned char *out)
{
    unsigned char nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES];
    tt_seal_nonce(nonce, number);
    crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, text->body, text->body_bytes, text->head,
                                              text->head_bytes, NULL, nonce, key);
}

/* Decrypt and check. The body includes the tag; `out` may be the body itself. False: not genuine.
 */
static inline bool tt_seal_open(const unsigned char *key, uint64_t number,
                                const struct tt_seal_text *text, unsigned char *out)
{
    unsigned char nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES];
    tt_seal_nonce(nonce, number);
    return !crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, text->body, text->body_bytes,
                                                      text->head, text->head_bytes, nonce, key);
}
