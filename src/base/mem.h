/* Small helpers on sizes and memory used in set-up paths. */
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

/* Tests only: let `allocation` calls of tt_calloc succeed and the next one fail; -1 ends it. */
void tt_fault_at(int64_t allocation);

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
