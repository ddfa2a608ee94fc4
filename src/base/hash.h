/* FNV-1a over bytes: for comparing texts and tables between ranks, not against anybody who means
 * harm. The same on all machines. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TT_HASH_START 0xcbf29ce484222325ull

/* The hash of what was hashed so far (TT_HASH_START: nothing) and these bytes. Any thread. */
static inline uint64_t tt_hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * 0x100000001b3ull;
    return hash;
}
