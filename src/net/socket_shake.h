/* Messages of the handshake of a lane. Pure computation; sockets are in socket_connect.c and
 * socket_port.c. */
#pragma once

#include "base/secret/seal.h"
#include "net/net.h"

#include <stdbool.h>
#include <stdint.h>

#define SOCKET_ID_BYTES 16
#define SHAKE_HELLO_BYTES 84
#define SHAKE_ANSWER_BYTES 64
#define SHAKE_PROOF_BYTES 32
#define SHAKE_REPORT_BYTES 40

struct socket_hello { /* message 1: which connection and lane it is for */
    unsigned char listener[SOCKET_ID_BYTES];
    uint64_t connection; /* random; the same on all lanes of one connection */
    uint32_t lane;
    int32_t own_rank, wanted_rank;
    bool sealed;  /* TUTTI_NET_ENCRYPT */
    bool resumes; /* for an existing connection */
};

struct socket_shake { /* the messages as they went over the wire */
    unsigned char hello[SHAKE_HELLO_BYTES];
    unsigned char answer[SHAKE_ANSWER_BYTES];
    unsigned char proof[SHAKE_PROOF_BYTES];
    struct tt_seal_pair pair; /* its public key is this side's nonce */
};

/* Connector: message 1. */
void tt_shake_hello(struct socket_shake *shake, const struct socket_hello *hello);
/* Acceptor: read message 1. False: wrong magic, kind or version. */
bool tt_shake_read(const struct socket_shake *shake, struct socket_hello *hello_out);
/* Acceptor: message 2. */
void tt_shake_answer(struct socket_shake *shake, const struct tt_net_trust *trust);
/* Connector: check message 2 and make message 3. False: the other end does not have the key. */
bool tt_shake_prove(struct socket_shake *shake, const struct tt_net_trust *trust);
/* Acceptor: check message 3. */
bool tt_shake_check(struct socket_shake *shake, const struct tt_net_trust *trust);
/* Acceptor of a lane that resumes, then: the number of bytes of its stream that have arrived. */
void tt_shake_report(struct socket_shake *shake, const struct tt_net_trust *trust, uint64_t count,
                     unsigned char report_out[SHAKE_REPORT_BYTES]);
/* Connector: check and read it. False: not made with the key. */
bool tt_shake_read_report(struct socket_shake *shake, const struct tt_net_trust *trust,
                          const unsigned char report[SHAKE_REPORT_BYTES], uint64_t *count_out);
/* Both, then, on an encrypted lane: the key for data from the connector to the acceptor. False: the
 * other end sent no public key. */
bool tt_shake_key(struct socket_shake *shake, const struct tt_net_trust *trust, bool server,
                  unsigned char key_out[TT_SEAL_KEY_BYTES]);
