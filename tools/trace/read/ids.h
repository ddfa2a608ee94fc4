/* From the numbers of a file (events, threads, communicators) to indexes of the model. Numbers that
 * count up, as our recorder's do, cost four bytes each; any others a place in a hash table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    IDS_RUNS = 256,
    IDS_RUN_SHIFT = 40
}; /* threads of a process that number their events one by one */

struct ids_run {
    uint32_t *values; /* owned; of the numbers from `first` on */
    uint64_t first, count;
};
struct ids_slot {
    uint64_t key;
    uint32_t value; /* plus 1; 0: free */
};
struct ids {
    struct ids_run runs[IDS_RUNS];
    struct ids_slot *slots; /* owned */
    size_t nslots, used;    /* nslots: a power of two, or 0 */
};

/* Remember `value` for `key`; a key that is there gets the new value. False: memory is short. */
bool ids_put(struct ids *ids, uint64_t key, uint32_t value);
uint32_t ids_find(const struct ids *ids, uint64_t key); /* in the table */
/* UINT32_MAX: it is not there. */
static inline uint32_t ids_get(const struct ids *ids, uint64_t key)
{
    uint64_t run = key >> IDS_RUN_SHIFT;
    if (run >= IDS_RUNS) return ids_find(ids, key);
    const struct ids_run *r = &ids->runs[run];
    return key - r->first < r->count ? r->values[key - r->first] : ids_find(ids, key);
}
/* Forget all; the object can be used again. */
void ids_clear(struct ids *ids);
