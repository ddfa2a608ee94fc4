/* Hints about memory, page by page, kept to be asked for; they go with the allocation. Nothing
 * depends on them: the memory is in the same place for all devices. Pieces are sorted, do not
 * overlap and are not empty; where there is none, nothing was ever said. */
#include "hints.h"

#include "state.h"

#include "device/host/host.h"
#include "device/host/host_face.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

struct tt_host_hint_piece {
    struct tt_host_hint_piece *next; /* owned */
    uintptr_t from, to;
    struct tt_hints hints;
};

static const struct tt_hints none = {
    .preferred = TT_HINT_NOWHERE, .prefetched = TT_HINT_NOWHERE, .read_mostly = false};

struct span {
    uintptr_t from, to;
};

static struct span pages_of(const void *ptr, size_t bytes)
{
    uintptr_t from = (uintptr_t)ptr;
    return (struct span){from / PAGE * PAGE, (from + bytes + PAGE - 1) / PAGE * PAGE};
}

/* ---- the list; lock held ---- */

/* A piece in front of *link. False when out of memory. */
static bool insert(struct tt_host_hint_piece **link, uintptr_t from, uintptr_t to,
                   const struct tt_hints *said)
{
    struct tt_host_hint_piece *piece = calloc(1, sizeof(*piece));
    if (!piece) return false;
    *piece = (struct tt_host_hint_piece){*link, from, to, *said};
    *link = piece;
    atomic_fetch_add(&tt_host.hints.count, 1);
    return true;
}

static void drop(struct tt_host_hint_piece **link)
{
    struct tt_host_hint_piece *piece = *link;
    *link = piece->next;
    free(piece);
    atomic_fetch_sub(&tt_host.hints.count, 1);
}

/* Let no piece reach over `at`. */
static bool cut(uintptr_t at)
{
    struct tt_host_hint_piece **link = &tt_host.hints.pieces;
    while (*link && (*link)->to <= at) {
        link = &(*link)->next;
    }
    struct tt_host_hint_piece *piece = *link;
    if (!piece || piece->from >= at) return true;
    if (!insert(link, piece->from, at, &piece->hints)) return false;
    piece->from = at;
    return true;
}

/* Make pieces where a span has none. */
static bool fill(struct span span)
{
    struct tt_host_hint_piece **link = &tt_host.hints.pieces;
    uintptr_t at = span.from;
    while (at < span.to) {
        while (*link && (*link)->to <= at) {
            link = &(*link)->next;
        }
        const struct tt_host_hint_piece *behind = *link;
        if (!behind || behind->from > at) {
            uintptr_t to = behind && behind->from < span.to ? behind->from : span.to;
            if (!insert(link, at, to, &none)) return false;
        }
        at = (*link)->to;
    }
    return true;
}

static bool same(const struct tt_hints *a, const struct tt_hints *b)
{
    return a->read_mostly == b->read_mostly && a->preferred == b->preferred &&
           a->prefetched == b->prefetched && a->accessed_by_host == b->accessed_by_host &&
           !memcmp(a->accessed_by, b->accessed_by, sizeof(a->accessed_by));
}

/* Neighbours that say the same become one. */
static void join(void)
{
    for (struct tt_host_hint_piece *piece = tt_host.hints.pieces; piece; piece = piece->next) {
        while (piece->next && piece->next->from == piece->to &&
               same(&piece->hints, &piece->next->hints)) {
            piece->to = piece->next->to;
            drop(&piece->next);
        }
    }
}

/* ---- what is said ---- */

static void set_access(struct tt_hints *said, int location, bool on)
{
    if (location == TT_HINT_HOST) {
        said->accessed_by_host = on;
        return;
    }
    uint64_t bit = (uint64_t)1 << location % 64;
    uint64_t *word = &said->accessed_by[location / 64];
    *word = on ? *word | bit : *word & ~bit;
}

static void say(struct tt_hints *said, const struct tt_hint *hint)
{
    switch (hint->kind) {
    case TT_HINT_READ_MOSTLY: said->read_mostly = hint->on; break;
    case TT_HINT_PREFERRED: said->preferred = hint->on ? hint->location : TT_HINT_NOWHERE; break;
    case TT_HINT_PREFETCHED: said->prefetched = hint->location; break;
    case TT_HINT_ACCESSED_BY: set_access(said, hint->location, hint->on); break;
    }
}

int tuttiHostHint(const void *ptr, size_t bytes, const struct tt_hint *hint)
{
    struct span span = pages_of(ptr, bytes);
    pthread_mutex_lock(&tt_host.hints.lock);
    bool good = cut(span.from) && cut(span.to) && fill(span);
    for (struct tt_host_hint_piece *piece = tt_host.hints.pieces; good && piece;
         piece = piece->next) {
        if (piece->from >= span.from && piece->to <= span.to) say(&piece->hints, hint);
    }
    join();
    pthread_mutex_unlock(&tt_host.hints.lock);
    return good ? TT_HOST_OK : TT_HOST_OUT_OF_MEMORY;
}

/* What two pieces both say. */
static void agree(struct tt_hints *all, const struct tt_hints *other)
{
    all->read_mostly = all->read_mostly && other->read_mostly;
    all->accessed_by_host = all->accessed_by_host && other->accessed_by_host;
    if (all->preferred != other->preferred) all->preferred = TT_HINT_NOWHERE;
    if (all->prefetched != other->prefetched) all->prefetched = TT_HINT_NOWHERE;
    for (size_t i = 0; i < sizeof(all->accessed_by) / sizeof(all->accessed_by[0]); i++) {
        all->accessed_by[i] &= other->accessed_by[i];
    }
}

void tuttiHostHints(const void *ptr, size_t bytes, struct tt_hints *hints_out)
{
    struct span span = pages_of(ptr, bytes);
    uintptr_t at = span.from;
    pthread_mutex_lock(&tt_host.hints.lock);
    const struct tt_host_hint_piece *piece = tt_host.hints.pieces;
    while (piece && piece->to <= at) {
        piece = piece->next;
    }
    *hints_out = piece && piece->from <= at ? piece->hints : none;
    for (; piece && piece->from < span.to; piece = piece->next) {
        if (piece->from > at) agree(hints_out, &none);
        agree(hints_out, &piece->hints);
        at = piece->to;
    }
    if (at < span.to) agree(hints_out, &none);
    pthread_mutex_unlock(&tt_host.hints.lock);
}

void tt_host_hints_forget(const void *base, size_t bytes)
{
    if (!atomic_load_explicit(&tt_host.hints.count, memory_order_acquire)) return;
    struct span span = pages_of(base, bytes);
    pthread_mutex_lock(&tt_host.hints.lock);
    bool good = cut(span.from) && cut(span.to);
    for (struct tt_host_hint_piece **link = &tt_host.hints.pieces; *link;) {
        bool inside = (*link)->from >= span.from && (*link)->to <= span.to;
        if (good && inside) {
            drop(link);
        } else {
            link = &(*link)->next;
        }
    }
    pthread_mutex_unlock(&tt_host.hints.lock);
}
