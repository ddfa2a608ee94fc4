/* Find equal elements among many in O(n log n) comparisons. */
#pragma once

#include "nccl.h"

/* Order of two of the caller's `things` by their numbers, as qsort() wants it; 0: equal. */
typedef int (*tt_dedup_compare)(const void *things, int a, int b);

/* For each of `count` things the number of the first that equals it: its own when none is before
 * it. Compares about count * log2(count) times. Errors: ncclSystemError (out of memory); first_out
 * is as it was. */
ncclResult_t tt_dedup_find(const void *things, int count, tt_dedup_compare compare, int *first_out);
