/* Where the process's key is kept. It is written before any connection and read where something
 * derives the key of a handshake. */
#include "base/secret/encryption.h"

#include "base/param.h"
#include "base/process.h"

#include <string.h>

void tt_encryption_set(const unsigned char *key)
{
    atomic_store_explicit(&tt_base.encryption.on, false, memory_order_relaxed);
    explicit_bzero(tt_base.encryption.key, sizeof(tt_base.encryption.key));
    if (!key) return;
    memcpy(tt_base.encryption.key, key, sizeof(tt_base.encryption.key));
    /* pairs with the acquire load in tt_encryption_key() */
    atomic_store_explicit(&tt_base.encryption.on, true, memory_order_release);
}

const unsigned char *tt_encryption_key(void)
{
    bool on = atomic_load_explicit(&tt_base.encryption.on, memory_order_acquire);
    return on ? tt_base.encryption.key : NULL;
}

bool tt_encryption_wanted(void)
{
    return tt_encryption_key() || tt_param_bool("TUTTI_NET_ENCRYPT");
}
