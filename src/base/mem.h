/* Small helpers for sizes, bytes and memory. tt_calloc() is for set-up paths only. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TT_LEN(array) (sizeof(array) / sizeof((array)[0]))
#define tt_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Cache line; slots and cells that two ranks touch are multiples of it. */
#define TT_LINE_BYTES 64

/* Zeroed array, aligned to a cache line; NULL on overflow or exhaustion. Release with free(). */
void *tt_calloc(size_t count, size_t size);

/* Tests only: `allocation` more calls of tt_calloc succeed, the next one fails; -1: none fails. */
void tt_fault_at(int64_t allocation);

/* Add bytes to a hash and return it; begin with TT_HASH_START. FNV-1a, equal on all machines: for
 * comparing texts and tables between ranks, not against attackers. */
#define TT_HASH_START 0xcbf29ce484222325ull
static inline uint64_t tt_hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * 0x100000001b3ull;
    return hash;
}

/* *product = a * b; false on overflow. */
bool tt_mul_size(size_t a, size_t b, size_t *product);

static inline size_t tt_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}
static inline size_t tt_max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}
static inline size_t tt_round_up(size_t value, size_t grain)
{
    return (value + grain - 1) / grain * grain;
}

/* Bytes of one element; 0 for an unknown type. */
size_t tt_type_bytes(ncclDataType_t type);
