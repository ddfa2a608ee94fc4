/* A set of small numbers that answers "the largest member not above n" without a lock: one bit per
 * number and, above every 64 words, a word that says which of them are not empty. Writers hold a
 * lock of their own. Readers need none, and see every member that is not removed meanwhile. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TT_HOST_BITSET_LEVELS = 6 }; /* 64^6 numbers */

struct tt_host_bitset {
    _Atomic uint64_t *words[TT_HOST_BITSET_LEVELS]; /* borrowed: in the caller's zeroed memory */
    int levels;
};

/* Bytes of zeroed memory that a set of numbers below `limit` needs; init lays it out there. */
size_t tt_host_bitset_bytes(size_t limit);
void tt_host_bitset_init(struct tt_host_bitset *set, void *zeroed, size_t limit);

void tt_host_bitset_add(struct tt_host_bitset *set, size_t n);
void tt_host_bitset_remove(struct tt_host_bitset *set, size_t n);

/* Largest member <= n; SIZE_MAX when there is none. n below the limit. */
size_t tt_host_bitset_floor(const struct tt_host_bitset *set, size_t n);
