/* Unique ids: a secret, an address, a sum. Layout (bytes):
 *   0 magic 8 | 8 flags 1, addresses 1, zero 2, ranks already there 4 | 16 secret 32 |
 *   48 family 1, port 2, address 16 | 67 the same of a second address | 86 its IPv6 scope 4 |
 *   90 zero 15 | 105 IPv6 scope of the first 4 | 109 maker's pid 3 | 112 sum
 * 16 Any byte may be zero: the checksum finds ids that were copied as text. */
#include "bootstrap/join/id.h"

#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join/root.h"
#include "bootstrap/wire/address.h"
#include "bootstrap/wire/listener.h"
#include "bootstrap/wire/service.h"
#include "bootstrap/wire/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_EXISTING_AT 12
#define ID_SECRET_AT 16
#define ID_ADDR_AT 48
#define ID_SPARE_AT 67
#define ID_SPARE_SCOPE_AT 86
#define ID_SCOPE_AT 105
#define ID_PID_AT 109
#define ID_SUM_AT 112
#define ID_SUM_BYTES 16
#define ID_FLAG_FIXED 1

static const unsigned char id_magic[8] = {'T', 'U', 'T', 'T', 'I', 'I', 'D', 1};

static void id_sum(const unsigned char *bytes, unsigned char sum_out[ID_SUM_BYTES])
{
    crypto_generichash(sum_out, ID_SUM_BYTES, bytes, ID_SUM_AT, NULL, 0);
}

/* Family, zero, port, address, scope: packed tighter here. */
static void pack_addr(unsigned char *at, unsigned char *scope_at, const union tt_addr *addr)
{
    unsigned char bytes[TT_ADDR_WIRE_BYTES];
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, sizeof(bytes));
    tt_addr_put(&wire, addr);
    at[0] = bytes[0];
    memcpy(at + 1, bytes + 2, 2 + 16);
    memcpy(scope_at, bytes + 20, 4);
}

static void unpack_addr(const unsigned char *at, const unsigned char *scope_at, union tt_addr *addr)
{
    unsigned char bytes[TT_ADDR_WIRE_BYTES] = {at[0]};
    struct tt_wire wire;
    memcpy(bytes + 2, at + 1, 2 + 16);
    memcpy(bytes + 20, scope_at, 4);
    tt_wire_read(&wire, bytes, sizeof(bytes));
    tt_addr_get(&wire, addr);
}

void tt_id_pack(ncclUniqueId *id, const struct tt_id_parts *parts, uint32_t existing)
{
    unsigned char *bytes = (unsigned char *)id->internal;
    const bool spare = parts->spare.sa.sa_family != AF_UNSPEC;
    memset(id, 0, sizeof(*id));
    memcpy(bytes, id_magic, sizeof(id_magic));
    bytes[8] = parts->fixed_address ? ID_FLAG_FIXED : 0;
    bytes[9] = spare ? 2 : 1;
    existing = htole32(existing);
    memcpy(bytes + ID_EXISTING_AT, &existing, sizeof(existing));
    memcpy(bytes + ID_SECRET_AT, parts->secret, TT_SECRET_BYTES);
    pack_addr(bytes + ID_ADDR_AT, bytes + ID_SCOPE_AT, &parts->addr);
    if (spare) pack_addr(bytes + ID_SPARE_AT, bytes + ID_SPARE_SCOPE_AT, &parts->spare);
    for (int i = 0; i < 3; i++) /* Linux's numbers have 22 bits */
        bytes[ID_PID_AT + i] = (unsigned char)((uint32_t)parts->pid >> 8 * i);
    id_sum(bytes, bytes + ID_SUM_AT);
}

/* Upstream's ids: a random word, then a socket address, the rest zero. */
static bool looks_foreign(const unsigned char *bytes)
{
    uint16_t family;
    memcpy(&family, bytes + 8, sizeof(family));
    if (family != AF_INET && family != AF_INET6) return false;
    for (size_t i = 48; i < NCCL_UNIQUE_ID_BYTES; i++) {
        if (bytes[i]) return false;
    }
    return true;
}

ncclResult_t tt_id_check(const ncclUniqueId *id)
{
    const unsigned char *bytes = (const unsigned char *)id->internal;
    unsigned char sum[ID_SUM_BYTES];
    if (memcmp(bytes, id_magic, sizeof(id_magic)) != 0) {
        if (looks_foreign(bytes)) {
            return tt_fail(ncclInvalidArgument, "unique id: made by another library");
        }
        return tt_fail(ncclInvalidArgument,
                       "unique id: not an id of this library (damaged, never filled in, or made by "
                       "another library)");
    }
    id_sum(bytes, sum);
    if (sodium_memcmp(sum, bytes + ID_SUM_AT, sizeof(sum)) != 0) {
        return tt_fail(ncclInvalidArgument, "unique id: damaged, or cut at a zero byte");
    }
    unsigned char family = bytes[ID_ADDR_AT];
    if (bytes[9] < 1 || bytes[9] > 3 || (family != 4 && family != 6)) {
        return tt_fail(ncclInvalidArgument, "unique id: holds no address");
    }
    return ncclSuccess;
}

bool tt_id_valid(const ncclUniqueId *id)
{
    const unsigned char *bytes = (const unsigned char *)id->internal;
    unsigned char sum[ID_SUM_BYTES], family = bytes[ID_ADDR_AT];
    id_sum(bytes, sum);
    return memcmp(bytes, id_magic, sizeof(id_magic)) == 0 &&
           sodium_memcmp(sum, bytes + ID_SUM_AT, sizeof(sum)) == 0 && bytes[9] >= 1 &&
           bytes[9] <= 3 && (family == 4 || family == 6);
}

int tt_id_existing(const ncclUniqueId *id)
{
    uint32_t existing;
    memcpy(&existing, id->internal + ID_EXISTING_AT, sizeof(existing));
    return (int)(le32toh(existing) & INT32_MAX);
}

ncclResult_t tt_id_read(const ncclUniqueId *id, struct tt_id_parts *parts_out)
{
    ncclResult_t rc = tt_id_check(id);
    if (rc) return rc;
    const unsigned char *bytes = (const unsigned char *)id->internal;
    unpack_addr(bytes + ID_ADDR_AT, bytes + ID_SCOPE_AT, &parts_out->addr);
    unpack_addr(bytes + ID_SPARE_AT, bytes + ID_SPARE_SCOPE_AT, &parts_out->spare);
    if (bytes[9] < 2) parts_out->spare = (union tt_addr){.sa.sa_family = AF_UNSPEC};
    memcpy(parts_out->secret, bytes + ID_SECRET_AT, TT_SECRET_BYTES);
    parts_out->fixed_address = (bytes[8] & ID_FLAG_FIXED) != 0;
    parts_out->pid = bytes[ID_PID_AT] | bytes[ID_PID_AT + 1] << 8 | bytes[ID_PID_AT + 2] << 16;
    return ncclSuccess;
}

ncclResult_t tt_id_combine(const ncclUniqueId *ids, int nids,
                           unsigned char secret_out[TT_SECRET_BYTES])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, (const unsigned char *)"tutti communicator", 18,
                            TT_SECRET_BYTES);
    for (int i = 0; i < nids; i++) {
        struct tt_id_parts parts;
        ncclResult_t rc = tt_id_read(&ids[i], &parts);
        if (rc) return rc;
        crypto_generichash_update(&state, parts.secret, sizeof(parts.secret));
        sodium_memzero(&parts, sizeof(parts));
    }
    crypto_generichash_final(&state, secret_out, TT_SECRET_BYTES);
    sodium_memzero(&state, sizeof(state));
    return ncclSuccess;
}

uint64_t tt_id_comm(const ncclUniqueId *ids, int nids)
{
    unsigned char secret[TT_SECRET_BYTES];
    unsigned char hash[16];
    uint64_t comm_id;
    if (sodium_init() < 0 || tt_id_combine(ids, nids, secret)) return 0;
    crypto_generichash(hash, sizeof(hash), (const unsigned char *)"commid", 6, secret,
                       sizeof(secret));
    sodium_memzero(secret, sizeof(secret));
    memcpy(&comm_id, hash, sizeof(comm_id));
    return comm_id;
}

/* The text of TUTTI_SECRET_FILE goes into the hash; a file that others can read is refused. Without
 * stdio, whose buffer would keep a copy of the secret. */
static ncclResult_t hash_secret_file(crypto_generichash_state *state, const char *path)
{
    ncclResult_t rc = ncclSuccess;
    unsigned char text[4096];
    struct stat stat;
    ssize_t got = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would wait for a writer */
    if (fd < 0) return tt_fail(ncclSystemError, "TUTTI_SECRET_FILE %s: open: %m", path);
    if (fstat(fd, &stat)) {
        rc = tt_fail(ncclSystemError, "TUTTI_SECRET_FILE %s: fstat: %m", path);
    } else if (!S_ISREG(stat.st_mode)) {
        rc = tt_fail(ncclInvalidUsage, "TUTTI_SECRET_FILE %s: not a regular file", path);
    } else if (stat.st_uid != geteuid() && stat.st_uid != 0) {
        rc = tt_fail(ncclInvalidUsage,
                     "TUTTI_SECRET_FILE %s: belongs to user %u, who knows it, not to user %u", path,
                     (unsigned)stat.st_uid, (unsigned)geteuid());
    } else if ((stat.st_mode & 077) != 0) {
        rc = tt_fail(ncclInvalidUsage,
                     "TUTTI_SECRET_FILE %s: mode is %03o; others may read it, set it to 0600", path,
                     (int)(stat.st_mode & 0777));
    } else if ((got = read(fd, text, sizeof(text))) < 16) {
        rc = tt_fail(ncclInvalidUsage, "TUTTI_SECRET_FILE %s: holds %d bytes, 16 are needed", path,
                     (int)(got < 0 ? 0 : got));
    } else {
        crypto_generichash_update(state, text, (unsigned long long)got);
    }
    sodium_memzero(text, sizeof(text));
    close(fd);
    return rc;
}

/* All processes must make the same id from NCCL_COMM_ID. */
static ncclResult_t id_from_address(const char *text, ncclUniqueId *id_out)
{
    struct tt_id_parts parts = {.fixed_address = true};
    ncclResult_t rc = ncclSuccess;
    const char *fault = tt_addr_fault(text, &parts.addr);
    if (fault) {
        return tt_fail(ncclInvalidArgument,
                       "NCCL_COMM_ID '%.300s': %s; every host needs an address of rank 0's that it "
                       "knows (tutti run: --master)",
                       text, fault);
    }
    const char *path = tt_param_str("TUTTI_SECRET_FILE");
    union tt_addr addr = parts.addr;
    unsigned char wire_bytes[TT_ADDR_WIRE_BYTES];
    struct tt_wire wire;
    if (addr.sa.sa_family == AF_INET6) addr.v6.sin6_scope_id = 0; /* each host has its own */
    tt_wire_init(&wire, wire_bytes, sizeof(wire_bytes));
    tt_addr_put(&wire, &addr);
    crypto_generichash_state state;
    crypto_generichash_init(&state, (const unsigned char *)"tutti fixed address", 19,
                            sizeof(parts.secret));
    crypto_generichash_update(&state, wire_bytes, sizeof(wire_bytes));
    if (path) rc = hash_secret_file(&state, path);
    if (rc) return rc;
    crypto_generichash_final(&state, parts.secret, sizeof(parts.secret));
    if (!path && !tt_addr_is_loopback(&parts.addr)) {
        tt_warn("NCCL_COMM_ID %s carries no secret: whoever reaches the address can join; set "
                "TUTTI_SECRET_FILE",
                text);
    }
    tt_id_pack(id_out, &parts, 0);
    sodium_memzero(&parts, sizeof(parts));
    return ncclSuccess;
}

ncclResult_t tt_id_open_root(struct tt_id_parts *parts)
{
    ncclResult_t rc = tt_root_open(parts->secret, NULL, &parts->addr);
    if (rc) return rc;
    tt_service_lock();
    tt_listener_spare(&parts->spare);
    tt_service_unlock();
    return ncclSuccess;
}

ncclResult_t tt_id_create(ncclUniqueId *id_out)
{
    struct tt_id_parts parts = {.fixed_address = false, .pid = getpid()};
    if (sodium_init() < 0) return tt_fail(ncclSystemError, "libsodium: sodium_init failed");
    const char *fixed = tt_param_str("NCCL_COMM_ID");
    ncclResult_t rc = tt_bootstrap_netif(&parts.addr);
    if (rc) return rc;
    if (fixed) return id_from_address(fixed, id_out);
    randombytes_buf(parts.secret, sizeof(parts.secret));
    rc = tt_id_open_root(&parts);
    if (!rc) tt_id_pack(id_out, &parts, 0);
    sodium_memzero(&parts, sizeof(parts));
    return rc;
}
