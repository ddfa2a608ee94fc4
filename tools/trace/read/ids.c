/* Runs of numbers that count up, by their upper 24 bits; and a table with open addressing. */
#include "ids.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_SLOTS = 64, LEAST_VALUES = 256 };

static size_t slot_of(const struct ids *ids, uint64_t key)
{
    key ^= key >> 29;
    return (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (ids->nslots - 1);
}

static bool widen(struct ids *ids)
{
    struct ids_slot *old = ids->slots;
    size_t old_count = ids->nslots;
    size_t count = old_count ? old_count * 2 : LEAST_SLOTS;
    struct ids_slot *slots = calloc(count, sizeof(*slots));
    if (!slots) return false;
    ids->slots = slots;
    ids->nslots = count;
    for (size_t i = 0; i < old_count; i++) {
        size_t at = slot_of(ids, old[i].key);
        if (!old[i].value) continue;
        while (slots[at].value)
            at = (at + 1) & (count - 1);
        slots[at] = old[i];
    }
    free(old);
    return true;
}

static bool put_slot(struct ids *ids, uint64_t key, uint32_t value)
{
    if (ids->used * 2 >= ids->nslots && !widen(ids)) return false;
    size_t at = slot_of(ids, key);
    while (ids->slots[at].value && ids->slots[at].key != key)
        at = (at + 1) & (ids->nslots - 1);
    if (!ids->slots[at].value) ids->used++;
    ids->slots[at] = (struct ids_slot){.key = key, .value = value + 1};
    return true;
}

bool ids_put(struct ids *ids, uint64_t key, uint32_t value)
{
    uint64_t run = key >> IDS_RUN_SHIFT;
    if (run >= IDS_RUNS) return put_slot(ids, key, value);
    struct ids_run *r = &ids->runs[run];
    if (r->count == 0) r->first = key;
    uint64_t at = key - r->first;
    if (at < r->count) {
        r->values[at] = value;
        return true;
    }
    if (at != r->count) return put_slot(ids, key, value);
    bool full = r->count == 0 || (r->count >= LEAST_VALUES && (r->count & (r->count - 1)) == 0);
    if (full) {
        size_t room = r->count ? r->count * 2 : LEAST_VALUES;
        uint32_t *values = realloc(r->values, room * sizeof(*values));
        if (!values) return false;
        r->values = values;
    }
    r->values[r->count++] = value;
    return true;
}

uint32_t ids_find(const struct ids *ids, uint64_t key)
{
    if (!ids->nslots) return UINT32_MAX;
    for (size_t at = slot_of(ids, key); ids->slots[at].value; at = (at + 1) & (ids->nslots - 1)) {
        if (ids->slots[at].key == key) return ids->slots[at].value - 1;
    }
    return UINT32_MAX;
}

void ids_clear(struct ids *ids)
{
    for (int i = 0; i < IDS_RUNS; i++)
        free(ids->runs[i].values);
    free(ids->slots);
    memset(ids, 0, sizeof(*ids));
}
