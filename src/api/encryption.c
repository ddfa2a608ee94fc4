/* The process's key for its own sockets, as ncclSetEncryption() takes it. */
#include "base/secret/encryption.h"

#include "api/calls.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"

#include <sodium.h>
#include <stddef.h>
#include <string.h>

enum { PSK_LEAST = 32 }; /* characters */

/* Only the bytes that the caller's struct has are read. */
static ncclResult_t read_key(const ncclEncryptionConfig_t *config, const char **key_out)
{
    size_t size = config->size;
    const size_t head = offsetof(ncclEncryptionConfig_t, mode);
    *key_out = NULL;
    if (size < head || config->magic != NCCL_API_MAGIC) {
        return tt_fail(ncclInvalidArgument,
                       "ncclSetEncryption: config with size %zu, magic %#x: not started from "
                       "NCCL_ENCRYPTION_CONFIG_INITIALIZER (magic %#x)",
                       size, size < head ? 0 : config->magic, NCCL_API_MAGIC);
    }
    bool whole = size >= offsetof(ncclEncryptionConfig_t, psk) + sizeof(config->psk);
    if (!whole || config->mode == NCCL_ENCRYPTION_MODE_NONE) return ncclSuccess;
    if (config->mode != NCCL_ENCRYPTION_MODE_PSK) {
        return tt_fail(ncclInvalidArgument,
                       "ncclSetEncryption: mode %d is not known; use "
                       "NCCL_ENCRYPTION_MODE_NONE (0) or NCCL_ENCRYPTION_MODE_PSK (1)",
                       config->mode);
    }
    size_t length = config->psk ? strlen(config->psk) : 0;
    if (length < PSK_LEAST) {
        return tt_fail(ncclInvalidArgument,
                       "ncclSetEncryption: psk has %zu characters; at least %d are needed", length,
                       PSK_LEAST);
    }
    *key_out = config->psk;
    return ncclSuccess;
}

static bool is_same(const unsigned char *key)
{
    const unsigned char *own = tt_encryption_key();
    if (!own || !key) return own == key;
    return sodium_memcmp(own, key, TT_ENCRYPTION_KEY_BYTES) == 0;
}

ncclResult_t pncclSetEncryption(const ncclEncryptionConfig_t *config)
{
    static const char label[] = "tutti encryption";
    unsigned char key[TT_ENCRYPTION_KEY_BYTES] = {0};
    const char *psk = NULL;
    ncclResult_t rc = config ? read_key(config, &psk) : ncclSuccess;
    if (rc) return rc;
    if (psk && sodium_init() < 0)
        return tt_fail(ncclSystemError, "ncclSetEncryption: libsodium does not start");
    if (psk) {
        crypto_generichash(key, sizeof(key), (const unsigned char *)psk, strlen(psk),
                           (const unsigned char *)label, sizeof(label) - 1);
    }
    if (is_same(psk ? key : NULL)) goto out;
    if (tt_bootstrap_talks()) {
        rc = tt_fail(ncclInvalidUsage,
                     "ncclSetEncryption: this process has an id or a communicator already; set the "
                     "key before the first one, or after the last has ended");
        goto out;
    }
    tt_encryption_set(psk ? key : NULL);
out:
    sodium_memzero(key, sizeof(key));
    return rc;
}

/* ---- the weak alias ---- */

__typeof__(pncclSetEncryption) ncclSetEncryption __attribute__((weak, alias("pncclSetEncryption")));
