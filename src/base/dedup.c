/* Numbers sorted by what they stand for, and among the same by themselves: the first of each run is
 * the one that the others of it get. */
#include "base/dedup.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>

struct sorting {
    const void *things; /* borrowed */
    tt_dedup_compare compare;
};

static int compare_numbers(const void *left, const void *right, void *context)
{
    const struct sorting *sorting = context;
    int a = *(const int *)left, b = *(const int *)right;
    int order = sorting->compare(sorting->things, a, b);
    return order ? order : a - b;
}

ncclResult_t tt_dedup_find(const void *things, int count, tt_dedup_compare compare, int *first_out)
{
    struct sorting sorting = {things, compare};
    int *sorted = tt_calloc((size_t)count, sizeof(*sorted));
    if (!sorted) return tt_fail(ncclSystemError, "out of memory for comparing %d things", count);
    for (int i = 0; i < count; i++)
        sorted[i] = i;
    qsort_r(sorted, (size_t)count, sizeof(*sorted), compare_numbers, &sorting);
    for (int i = 0; i < count; i++) {
        int own = sorted[i];
        bool same = i > 0 && compare(things, sorted[i - 1], own) == 0;
        first_out[own] = same ? first_out[sorted[i - 1]] : own;
    }
    free(sorted);
    return ncclSuccess;
}
