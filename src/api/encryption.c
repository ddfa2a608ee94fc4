/* The process's key for its own sockets, as ncclSetEncryption() takes it. */
#include "api/calls.h"
#include "base/error.h"

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

ncclResult_t pncclSetEncryption(const ncclEncryptionConfig_t *config)
{
    const char *key = NULL;
    ncclResult_t rc = config ? read_key(config, &key) : ncclSuccess;
    if (rc || !key) return rc;
    return tt_fail(ncclInvalidUsage, "ncclSetEncryption: keys are not supported by this build; set "
                                     "TUTTI_NET_ENCRYPT=1 on all ranks instead");
}

/* ---- the weak twin ---- */

__typeof__(pncclSetEncryption) ncclSetEncryption __attribute__((weak, alias("pncclSetEncryption")));
