/* The handshake of base/secret/proof.h, with these messages; both ranks and the listener's id are
 * inside every MAC:
 *
 *   C -> S  84 B  magic 8 | kind 4 | version 2 | flags 2 (1: sealed, 2: resumes) | listener 16 |
 *                 connection 8 | lane 4 | own rank 4 | wanted rank 4 | nonce 32
 *   S -> C  64 B  nonce 32 | MAC(K, "S" | hello | nonce)
 *   C -> S  32 B  MAC(K, "C" | hello | nonce)
 *
 * On a lane that resumes:
 *   S -> C  40 B  count 8 | MAC(K, "R" | hello | nonce | count)
 */
#include "net/socket_shake.h"

#include "base/param.h"
#include "base/secret/proof.h"

#include <endian.h>
#include <stddef.h>
#include <string.h>

enum { KIND_NET_SOCKET = 3, VERSION = 2, FLAG_SEALED = 1, FLAG_RESUMES = 2 };

struct hello_wire {
    uint64_t magic;
    uint32_t kind;
    uint16_t version, flags;
    unsigned char listener[SOCKET_ID_BYTES];
    uint64_t connection;
    uint32_t lane;
    int32_t own_rank, wanted_rank;
    unsigned char nonce[TT_NONCE_BYTES];
} __attribute__((packed));
_Static_assert(sizeof(struct hello_wire) == SHAKE_HELLO_BYTES, "fixed by the wire");

static uint64_t wire_magic(void)
{
    return (uint64_t)tt_param_int("NCCL_SOCKET_MAGIC");
}

void tt_shake_hello(struct socket_shake *shake, const struct socket_hello *hello)
{
    struct hello_wire wire = {.magic = wire_magic(),
                              .kind = KIND_NET_SOCKET,
                              .version = VERSION,
                              .flags = (uint16_t)((hello->sealed ? FLAG_SEALED : 0) |
                                                  (hello->resumes ? FLAG_RESUMES : 0)),
                              .connection = hello->connection,
                              .lane = hello->lane,
                              .own_rank = hello->own_rank,
                              .wanted_rank = hello->wanted_rank};
    memcpy(wire.listener, hello->listener, sizeof(wire.listener));
    tt_proof_nonce(&shake->pair, hello->sealed);
    memcpy(wire.nonce, shake->pair.open, sizeof(wire.nonce));
    memcpy(shake->hello, &wire, sizeof(wire));
}

bool tt_shake_read(const struct socket_shake *shake, struct socket_hello *hello_out)
{
    struct hello_wire wire;
    memcpy(&wire, shake->hello, sizeof(wire));
    if (wire.magic != wire_magic() || wire.kind != KIND_NET_SOCKET || wire.version != VERSION ||
        wire.flags > (FLAG_SEALED | FLAG_RESUMES))
        return false;
    *hello_out = (struct socket_hello){.connection = wire.connection,
                                       .lane = wire.lane,
                                       .own_rank = wire.own_rank,
                                       .wanted_rank = wire.wanted_rank,
                                       .sealed = wire.flags & FLAG_SEALED,
                                       .resumes = wire.flags & FLAG_RESUMES};
    memcpy(hello_out->listener, wire.listener, sizeof(wire.listener));
    return true;
}

static struct tt_key_proof proof_of(struct socket_shake *shake, const struct tt_net_trust *trust)
{
    return (struct tt_key_proof){.key = trust->key,
                                 .hello = shake->hello,
                                 .hello_bytes = sizeof(shake->hello),
                                 .nonce_at = offsetof(struct hello_wire, nonce),
                                 .answer = shake->answer,
                                 .signed_bytes = TT_NONCE_BYTES,
                                 .proof = shake->proof};
}

void tt_shake_answer(struct socket_shake *shake, const struct tt_net_trust *trust)
{
    struct hello_wire wire;
    memcpy(&wire, shake->hello, sizeof(wire));
    tt_proof_nonce(&shake->pair, wire.flags & FLAG_SEALED);
    memcpy(shake->answer, shake->pair.open, TT_NONCE_BYTES);
    const struct tt_key_proof proof = proof_of(shake, trust);
    tt_proof_answer(&proof);
}

bool tt_shake_prove(struct socket_shake *shake, const struct tt_net_trust *trust)
{
    const struct tt_key_proof proof = proof_of(shake, trust);
    return tt_proof_prove(&proof);
}

bool tt_shake_check(struct socket_shake *shake, const struct tt_net_trust *trust)
{
    const struct tt_key_proof proof = proof_of(shake, trust);
    return tt_proof_check(&proof);
}

void tt_shake_report(struct socket_shake *shake, const struct tt_net_trust *trust, uint64_t count,
                     unsigned char report_out[SHAKE_REPORT_BYTES])
{
    const struct tt_key_proof proof = proof_of(shake, trust);
    count = htole64(count);
    memcpy(report_out, &count, sizeof(count));
    tt_proof_sign(&proof, 'R', report_out, sizeof(count), report_out + sizeof(count));
}

bool tt_shake_read_report(struct socket_shake *shake, const struct tt_net_trust *trust,
                          const unsigned char report[SHAKE_REPORT_BYTES], uint64_t *count_out)
{
    const struct tt_key_proof proof = proof_of(shake, trust);
    unsigned char mac[TT_PROOF_BYTES];
    uint64_t count;
    memcpy(&count, report, sizeof(count));
    *count_out = le64toh(count);
    tt_proof_sign(&proof, 'R', report, sizeof(count), mac);
    return sodium_memcmp(mac, report + sizeof(count), sizeof(mac)) == 0;
}

bool tt_shake_key(struct socket_shake *shake, const struct tt_net_trust *trust, bool server,
                  unsigned char key_out[TT_SEAL_KEY_BYTES])
{
    const struct tt_key_proof proof = proof_of(shake, trust);
    return tt_proof_session(&proof, "D", &shake->pair, server, key_out);
}
