/* The three messages. The role, both ranks and the listener's id are inside every MAC, so none can
 * be reflected, replayed or led to another listener.
 *
 *   C -> S  84 B  magic 8 | kind 4 | version 2 | flags 2 (1: sealed, 2: resumes) | listener 16 |
 * connection 8 | lane 4 | own rank 4 | wanted rank 4 | nonce 32 S -> C  64 B  nonce 32 | MAC(K, "S"
 * | hello | nonce) C -> S  32 B  MAC(K, "C" | hello | nonce)
 *
 * On a lane that resumes:
 *   S -> C  40 B  count 8 | MAC(K, "R" | hello | nonce | count)
 *
 * On a sealed lane both nonces are public keys of crypto_kx, made for it alone.
 */
#include "net/socket_shake.h"

#include "base/param.h"

#include <endian.h>
#include <sodium.h>
#include <string.h>

enum {
    KIND_NET_SOCKET = 3,
    VERSION = 2,
    FLAG_SEALED = 1,
    FLAG_RESUMES = 2,
    NONCE_BYTES = 32,
    MAC_BYTES = 32
};

struct hello_wire {
    uint64_t magic;
    uint32_t kind;
    uint16_t version, flags;
    unsigned char listener[SOCKET_ID_BYTES];
    uint64_t connection;
    uint32_t lane;
    int32_t own_rank, wanted_rank;
    unsigned char nonce[NONCE_BYTES];
} __attribute__((packed));
_Static_assert(sizeof(struct hello_wire) == SHAKE_HELLO_BYTES, "fixed by the wire");

static uint64_t wire_magic(void)
{
    return (uint64_t)tt_param_int("NCCL_SOCKET_MAGIC");
}

static void make_nonce(struct socket_shake *shake, bool sealed)
{
    if (sealed) {
        tt_seal_pair_make(&shake->pair);
    } else {
        randombytes_buf(shake->pair.open, sizeof(shake->pair.open));
    }
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
    make_nonce(shake, hello->sealed);
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

static void sign(const struct socket_shake *shake, const struct tt_net_trust *trust, char role,
                 unsigned char mac[MAC_BYTES])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, trust->key, sizeof(trust->key), MAC_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)&role, 1);
    crypto_generichash_update(&state, shake->hello, sizeof(shake->hello));
    crypto_generichash_update(&state, shake->answer, NONCE_BYTES);
    crypto_generichash_final(&state, mac, MAC_BYTES);
}

void tt_shake_answer(struct socket_shake *shake, const struct tt_net_trust *trust)
{
    struct hello_wire wire;
    memcpy(&wire, shake->hello, sizeof(wire));
    make_nonce(shake, wire.flags & FLAG_SEALED);
    memcpy(shake->answer, shake->pair.open, NONCE_BYTES);
    sign(shake, trust, 'S', shake->answer + NONCE_BYTES);
}

bool tt_shake_prove(struct socket_shake *shake, const struct tt_net_trust *trust)
{
    unsigned char mac[MAC_BYTES];
    sign(shake, trust, 'S', mac);
    if (sodium_memcmp(mac, shake->answer + NONCE_BYTES, MAC_BYTES) != 0) return false;
    sign(shake, trust, 'C', shake->proof);
    return true;
}

bool tt_shake_check(const struct socket_shake *shake, const struct tt_net_trust *trust)
{
    unsigned char mac[MAC_BYTES];
    sign(shake, trust, 'C', mac);
    return sodium_memcmp(mac, shake->proof, MAC_BYTES) == 0;
}

/* How a report is signed. */
static void sign_report(const struct socket_shake *shake, const struct tt_net_trust *trust,
                        const unsigned char count[8], unsigned char mac[MAC_BYTES])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, trust->key, sizeof(trust->key), MAC_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)"R", 1);
    crypto_generichash_update(&state, shake->hello, sizeof(shake->hello));
    crypto_generichash_update(&state, shake->answer, NONCE_BYTES);
    crypto_generichash_update(&state, count, 8);
    crypto_generichash_final(&state, mac, MAC_BYTES);
}

void tt_shake_report(const struct socket_shake *shake, const struct tt_net_trust *trust,
                     uint64_t count, unsigned char report_out[SHAKE_REPORT_BYTES])
{
    count = htole64(count);
    memcpy(report_out, &count, sizeof(count));
    sign_report(shake, trust, report_out, report_out + sizeof(count));
}

bool tt_shake_read_report(const struct socket_shake *shake, const struct tt_net_trust *trust,
                          const unsigned char report[SHAKE_REPORT_BYTES], uint64_t *count_out)
{
    unsigned char mac[MAC_BYTES];
    uint64_t count;
    memcpy(&count, report, sizeof(count));
    *count_out = le64toh(count);
    sign_report(shake, trust, report, mac);
    return sodium_memcmp(mac, report + sizeof(count), MAC_BYTES) == 0;
}

bool tt_shake_key(const struct socket_shake *shake, const struct tt_net_trust *trust, bool server,
                  unsigned char key_out[TT_SEAL_KEY_BYTES])
{
    unsigned char shared[TT_SEAL_SHARED_BYTES];
    crypto_generichash_state state;
    struct hello_wire wire;
    memcpy(&wire, shake->hello, sizeof(wire));
    const unsigned char *theirs = server ? wire.nonce : shake->answer;
    if (!tt_seal_agree(&shake->pair, theirs, server, shared)) return false;
    crypto_generichash_init(&state, trust->key, sizeof(trust->key), TT_SEAL_KEY_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)"D", 1);
    crypto_generichash_update(&state, shake->hello, sizeof(shake->hello));
    crypto_generichash_update(&state, shake->answer, sizeof(shake->answer));
    crypto_generichash_update(&state, shake->proof, sizeof(shake->proof));
    crypto_generichash_update(&state, shared, sizeof(shared));
    crypto_generichash_final(&state, key_out, TT_SEAL_KEY_BYTES);
    sodium_memzero(shared, sizeof(shared));
    return true;
}
