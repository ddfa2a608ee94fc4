/* The handshake of base/secret/proof.h, with these messages; kind and both ranks are inside every
 * MAC:
 *
 *   C -> S  80 B  protocol 4 | version 2 | kind 2 | key name 8 | nonce 32 | own rank 4 |
 *                 wanted rank 4 | ranks 4 | flags 4 (1: sealed, 2: second) | zero 16
 *   S -> C  72 B  nonce 32 | own rank 4 | status 4 | MAC(K, "S" | hello | nonce | rank | status)
 *   C -> S  32 B  MAC(K, "C" | hello | nonce | rank | status)
 */
#include "bootstrap/wire/handshake.h"

#include "base/secret/proof.h"
#include "bootstrap/wire/wire.h"

#include <sodium.h>
#include <string.h>

#define HELLO_PROTO 0x49545554u /* "TUTI" */
#define HELLO_VERSION 1u
#define HELLO_SEALED 1u
#define HELLO_SECOND 2u
#define HELLO_NONCE_AT 16
#define ANSWER_SIGNED_BYTES 40 /* nonce, rank, status */

void tt_key_derive(const unsigned char secret[TT_SECRET_BYTES], enum tt_key_kind kind,
                   struct tt_key *key_out)
{
    crypto_kdf_derive_from_key(key_out->bytes, sizeof(key_out->bytes), (uint64_t)kind, "tutti-id",
                               secret);
    unsigned char name[16];
    crypto_generichash(name, sizeof(name), (const unsigned char *)"name", 4, key_out->bytes,
                       sizeof(key_out->bytes));
    memcpy(key_out->name, name, TT_KEY_NAME_BYTES);
    tt_seal_mix(key_out->bytes); /* the name stays: it is known which one is meant, the one that
                                    comes must prove it */
}

static void put_nonce(struct tt_handshake *shake, struct tt_wire *wire, bool sealed)
{
    tt_proof_nonce(&shake->pair, sealed);
    tt_wire_put(wire, shake->pair.open, sizeof(shake->pair.open));
}

static bool is_sealed(const struct tt_handshake *shake)
{
    return shake->hello[HELLO_NONCE_AT + TT_NONCE_BYTES + 12] & HELLO_SEALED;
}

void tt_handshake_hello(struct tt_handshake *shake, const struct tt_hello *hello,
                        const struct tt_key *key)
{
    struct tt_wire wire;
    tt_wire_init(&wire, shake->hello, sizeof(shake->hello));
    tt_wire_put32(&wire, HELLO_PROTO);
    tt_wire_put32(&wire, HELLO_VERSION | (uint32_t)hello->kind << 16);
    tt_wire_put(&wire, key->name, TT_KEY_NAME_BYTES);
    put_nonce(shake, &wire, hello->sealed);
    tt_wire_put32(&wire, (uint32_t)hello->own_rank);
    tt_wire_put32(&wire, (uint32_t)hello->wanted_rank);
    tt_wire_put32(&wire, hello->nranks);
    tt_wire_put32(&wire, (hello->sealed ? HELLO_SEALED : 0) | (hello->second ? HELLO_SECOND : 0));
    memset(wire.at, 0, wire.left);
}

bool tt_handshake_read(const struct tt_handshake *shake, struct tt_hello *hello_out)
{
    struct tt_wire wire;
    unsigned char nonce[TT_NONCE_BYTES];
    static const unsigned char zero[16];
    tt_wire_read(&wire, shake->hello, sizeof(shake->hello));
    uint32_t proto = tt_wire_get32(&wire);
    uint32_t word = tt_wire_get32(&wire);
    tt_wire_get(&wire, hello_out->key_name, TT_KEY_NAME_BYTES);
    tt_wire_get(&wire, nonce, sizeof(nonce));
    hello_out->kind = (uint16_t)(word >> 16);
    hello_out->own_rank = (int32_t)tt_wire_get32(&wire);
    hello_out->wanted_rank = (int32_t)tt_wire_get32(&wire);
    hello_out->nranks = tt_wire_get32(&wire);
    uint32_t flags = tt_wire_get32(&wire);
    hello_out->sealed = flags & HELLO_SEALED;
    hello_out->second = flags & HELLO_SECOND;
    if (flags > (HELLO_SEALED | HELLO_SECOND)) return false;
    if (proto != HELLO_PROTO || (word & 0xffff) != HELLO_VERSION) return false;
    if (hello_out->own_rank == hello_out->wanted_rank) return false;
    return memcmp(wire.from, zero, sizeof(zero)) == 0;
}

static struct tt_key_proof proof_of(struct tt_handshake *shake, const struct tt_key *key)
{
    return (struct tt_key_proof){.key = key->bytes,
                                 .hello = shake->hello,
                                 .hello_bytes = sizeof(shake->hello),
                                 .nonce_at = HELLO_NONCE_AT,
                                 .answer = shake->answer,
                                 .signed_bytes = ANSWER_SIGNED_BYTES,
                                 .proof = shake->proof};
}

void tt_handshake_answer(struct tt_handshake *shake, const struct tt_key *key, int32_t own_rank)
{
    struct tt_wire wire;
    tt_wire_init(&wire, shake->answer, sizeof(shake->answer));
    put_nonce(shake, &wire, is_sealed(shake));
    tt_wire_put32(&wire, (uint32_t)own_rank);
    tt_wire_put32(&wire, 0);
    const struct tt_key_proof proof = proof_of(shake, key);
    tt_proof_answer(&proof);
}

bool tt_handshake_prove(struct tt_handshake *shake, const struct tt_key *key, int32_t wanted_rank)
{
    const struct tt_key_proof proof = proof_of(shake, key);
    struct tt_wire wire;
    if (!tt_proof_prove(&proof)) return false;
    tt_wire_read(&wire, shake->answer + TT_NONCE_BYTES, 8);
    return (int32_t)tt_wire_get32(&wire) == wanted_rank && tt_wire_get32(&wire) == 0;
}

bool tt_handshake_check(struct tt_handshake *shake, const struct tt_key *key)
{
    const struct tt_key_proof proof = proof_of(shake, key);
    return tt_proof_check(&proof);
}

bool tt_handshake_session(struct tt_handshake *shake, const struct tt_key *key, bool server,
                          struct tt_session *session_out)
{
    unsigned char session[TT_SECRET_BYTES];
    const struct tt_key_proof proof = proof_of(shake, key);
    session_out->sealed = is_sealed(shake);
    if (!tt_proof_session(&proof, "", session_out->sealed ? &shake->pair : NULL, server, session))
        return false;
    unsigned char *to_server = server ? session_out->recv_key : session_out->send_key;
    unsigned char *to_client = server ? session_out->send_key : session_out->recv_key;
    crypto_kdf_derive_from_key(to_server, TT_SECRET_BYTES, 1, "tutti-cs", session);
    crypto_kdf_derive_from_key(to_client, TT_SECRET_BYTES, 2, "tutti-cs", session);
    sodium_memzero(session, sizeof(session));
    return true;
}
