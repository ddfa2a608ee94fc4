/* Proof of a shared secret before any byte is interpreted: sub-keys, the three messages, session
 * keys. Pure computation on fixed-size messages; sockets are elsewhere (conn.c, descriptor.c). */
#pragma once

#include "base/secret/seal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TT_SECRET_BYTES 32
#define TT_KEY_NAME_BYTES 8
#define TT_HELLO_BYTES 80
#define TT_ANSWER_BYTES 72
#define TT_FRAME_MAC_BYTES 16

/* A proof for one kind of connection does not pass for another. */
enum tt_key_kind {
    TT_KEY_ROOT = 1,
    TT_KEY_TREE = 2,
    TT_KEY_LOCAL = 3,
};

struct tt_key {
    unsigned char bytes[TT_SECRET_BYTES];
    unsigned char name[TT_KEY_NAME_BYTES]; /* public: names the key that a hello means */
};
void tt_key_derive(const unsigned char secret[TT_SECRET_BYTES], enum tt_key_kind kind,
                   struct tt_key *key_out);

struct tt_hello { /* the fields of a hello */
    uint16_t kind;
    unsigned char key_name[TT_KEY_NAME_BYTES];
    int32_t own_rank, wanted_rank;
    uint32_t nranks;
    bool sealed; /* asks for encryption */
    bool second; /* beside a connection that is there, over another interface */
};

struct tt_session { /* keys of the two directions */
    unsigned char send_key[TT_SECRET_BYTES];
    unsigned char recv_key[TT_SECRET_BYTES];
    bool sealed; /* frames are encrypted, not only authenticated */
};
_Static_assert(TT_SECRET_BYTES == TT_SEAL_KEY_BYTES && TT_FRAME_MAC_BYTES == TT_SEAL_TAG_BYTES,
               "frames are as long with encryption as without");

struct tt_handshake { /* the messages as they went over the wire */
    unsigned char hello[TT_HELLO_BYTES];
    unsigned char answer[TT_ANSWER_BYTES];
    unsigned char proof[TT_PROOF_BYTES];
    struct tt_seal_pair pair; /* sealed: its public key is this side's nonce */
};

/* Client: message 1. The name of `key` is put into it. */
void tt_handshake_hello(struct tt_handshake *shake, const struct tt_hello *hello,
                        const struct tt_key *key);
/* Server: read message 1. False when it is not ours (protocol word, version, zero bytes). */
bool tt_handshake_read(const struct tt_handshake *shake, struct tt_hello *hello_out);
/* Server: message 2. */
void tt_handshake_answer(struct tt_handshake *shake, const struct tt_key *key, int32_t own_rank);
/* Client: check message 2 and make message 3. False: the peer does not know the key, or is not the
 * wanted rank. */
bool tt_handshake_prove(struct tt_handshake *shake, const struct tt_key *key, int32_t wanted_rank);
/* Server: check message 3. */
bool tt_handshake_check(struct tt_handshake *shake, const struct tt_key *key);
/* Both, after the proofs. A connection is sealed when its client asked for it. False: the other
 * side sent no public key. */
bool tt_handshake_session(struct tt_handshake *shake, const struct tt_key *key, bool server,
                          struct tt_session *session_out);
