/* Hints about managed memory, kept for whoever asks: an allocation has one set of them, which goes
 * with it. Nothing depends on them: the memory is in the same place for everybody. */
#include "hints.h"

#include "host.h"
#include "host_face.h"
#include "state.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    struct entry *next;
    const char *base;
    struct tt_hints hints;
};

struct hints {
    pthread_mutex_t lock;
    struct entry *entries; /* owned */
    _Atomic int count;     /* 0 spares frees the lock */
};
static struct hints hints = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Lock held. */
static struct entry **find(const char *base)
{
    struct entry **link = &hints.entries;
    while (*link && (*link)->base != base) {
        link = &(*link)->next;
    }
    return link;
}

static int base_of(const void *ptr, const char **base)
{
    struct tt_pointer where;
    int rc = tuttiHostPointer(ptr, &where);
    if (!rc && (!where.base || where.kind != TT_MEMORY_MANAGED)) rc = HOST_INVALID_VALUE;
    *base = where.base;
    return rc;
}

static const struct tt_hints none = {
    .preferred = TT_HINT_NOWHERE, .prefetched = TT_HINT_NOWHERE, .read_mostly = false};

int tuttiHostHintsGet(const void *ptr, struct tt_hints *hints_out)
{
    const char *base;
    int rc = base_of(ptr, &base);
    if (rc) return rc;
    pthread_mutex_lock(&hints.lock);
    const struct entry *entry = *find(base);
    *hints_out = entry ? entry->hints : none;
    pthread_mutex_unlock(&hints.lock);
    return HOST_OK;
}

int tuttiHostHintsSet(const void *ptr, const struct tt_hints *wanted)
{
    const char *base;
    int rc = base_of(ptr, &base);
    struct entry *fresh = rc ? NULL : calloc(1, sizeof(*fresh));
    if (!fresh) return rc ? rc : HOST_OUT_OF_MEMORY;
    pthread_mutex_lock(&hints.lock);
    struct entry *entry = *find(base);
    if (!entry) {
        entry = fresh;
        entry->base = base;
        entry->next = hints.entries;
        hints.entries = entry;
        atomic_fetch_add(&hints.count, 1);
        fresh = NULL;
    }
    entry->hints = *wanted;
    pthread_mutex_unlock(&hints.lock);
    free(fresh);
    return HOST_OK;
}

void host_hints_forget(const void *base)
{
    if (!atomic_load_explicit(&hints.count, memory_order_acquire)) return;
    pthread_mutex_lock(&hints.lock);
    struct entry **link = find(base);
    struct entry *entry = *link;
    if (entry) {
        *link = entry->next;
        atomic_fetch_sub(&hints.count, 1);
    }
    pthread_mutex_unlock(&hints.lock);
    free(entry);
}
