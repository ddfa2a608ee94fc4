/* Paths between the nodes of one graph. A rank that waits in a collective, or for a message, comes
 * behind what precedes those it waits for, so a graph with calls of several ranks has paths that
 * are not edges. They may lead on to others: rows grow until nothing changes. */
#include "device/host/check/paths.h"

#include "device/host/graph/exec.h"

#include <stdlib.h>
#include <string.h>

enum { NODES_MOST = 4096, NO_RANK = -1 };

struct sync_point {             /* a node's part in a collective or a message */
    struct tt_peer_message key; /* of a collective: from and to are NO_RANK */
    const void *member;         /* of a collective */
    uint64_t number;            /* which of the group's collectives, or of the pair's messages */
    bool gives, waits;
    size_t node;
};

struct sync_points {
    struct sync_point *at; /* owned */
    size_t count;
};

/* ---- which nodes meet ---- */

static int by_size(uint64_t one, uint64_t other)
{
    return (one > other) - (one < other);
}

static int by_key(const struct sync_point *one, const struct sync_point *other)
{
    int order = by_size(one->key.group, other->key.group);
    if (!order) order = (one->key.from > other->key.from) - (one->key.from < other->key.from);
    return order ? order : (one->key.to > other->key.to) - (one->key.to < other->key.to);
}

/* Of one member, or of one end of the messages: in the order in which it comes to them. */
static int by_member(const void *a, const void *b)
{
    const struct sync_point *one = a, *other = b;
    int order = by_key(one, other);
    if (!order) order = by_size((uintptr_t)one->member, (uintptr_t)other->member);
    if (!order && !one->member) order = one->gives - other->gives; /* the two ends */
    return order ? order : by_size(one->number, other->number);
}

static int by_number(const void *a, const void *b)
{
    int order = by_key(a, b);
    const struct sync_point *one = a, *other = b;
    return order ? order : by_size(one->number, other->number);
}

/* Until they are counted their number is their place in the graph. */
static bool syncs(const struct tt_check_touch *touch, size_t place, struct sync_point *point_out)
{
    bool sends = touch->kind == TT_CHECK_TOUCH_SEND;
    if (touch->kind == TT_CHECK_TOUCH_COLLECTIVE && touch->role != TT_SYNC_NONE) {
        *point_out = (struct sync_point){.key = {touch->group, NO_RANK, NO_RANK},
                                         .member = touch->ptr,
                                         .gives = touch->role != TT_SYNC_SINK,
                                         .waits = touch->role != TT_SYNC_SOURCE};
    } else if (sends || touch->kind == TT_CHECK_TOUCH_RECEIVE) {
        *point_out = (struct sync_point){.key = touch->message, .gives = sends, .waits = !sends};
    } else {
        return false;
    }
    point_out->node = touch->node;
    point_out->number = place;
    return true;
}

/* How many of its kind the member has come to before this launch. */
static uint64_t come_before(struct tt_host_check *check, const struct sync_point *point)
{
    if (point->key.from != NO_RANK)
        return tt_check_messages_ahead(check, &point->key, point->gives);
    const struct tt_check_mark *mark = tt_check_mark(&check->counts, point->member, 0);
    return mark ? mark->turn : 0;
}

static void number_all(struct tt_host_check *check, struct sync_points *all)
{
    qsort(all->at, all->count, sizeof(*all->at), by_member);
    for (size_t i = 0; i < all->count; i++) {
        struct sync_point *one = &all->at[i];
        bool first = i == 0 || by_key(one, one - 1) || one->member != one[-1].member ||
                     (!one->member && one->gives != one[-1].gives);
        one->number = first ? come_before(check, one) : one[-1].number + 1;
    }
    qsort(all->at, all->count, sizeof(*all->at), by_number);
}

static struct sync_points sync_points_of(struct tt_host_check *check,
                                         const struct tt_check_touches *touches)
{
    struct sync_points all = {0};
    struct sync_point one;
    size_t count = 0;
    for (size_t i = 0; i < touches->count; i++)
        count += syncs(&touches->at[i], i, &one);
    all.at = count > 1 ? malloc(count * sizeof(*all.at)) : NULL;
    for (size_t i = 0; all.at && i < touches->count; i++) {
        if (syncs(&touches->at[i], i, &one)) all.at[all.count++] = one;
    }
    if (all.at) number_all(check, &all);
    return all;
}

/* ---- rows ---- */

static uint64_t *row_of(struct tt_check_paths *paths, size_t index)
{
    return &paths->behind[index * paths->words];
}

/* Row `index` comes behind `first`, and behind all that this comes behind. True: it is new. */
static bool put_behind(struct tt_check_paths *paths, size_t index, size_t first)
{
    uint64_t *into = row_of(paths, index), more = 0;
    const uint64_t *from = row_of(paths, first);
    for (size_t w = 0; w < paths->words; w++) {
        uint64_t add = from[w] | (w == first / 64 ? 1ull << first % 64 : 0);
        more |= add & ~into[w];
        into[w] |= add;
    }
    return more != 0;
}

static bool follow_edges(struct tt_check_paths *paths, const struct tt_host_exec *exec)
{
    bool changed = false;
    for (size_t i = 0; i < exec->nops; i++) {
        for (size_t d = 0; d < exec->ops[i].ndeps; d++)
            changed |= put_behind(paths, i, exec->ops[i].deps[d] + paths->writes);
        if (paths->writes) changed |= put_behind(paths, i + paths->writes, i);
    }
    return changed;
}

/* What nodes that wait write comes behind what nodes that give have read. A graph that is a node
 * counts as a whole: what in it is before the point and what behind is not known here. */
static bool follow_sync(struct tt_check_paths *paths, const struct tt_host_exec *exec,
                        const struct sync_point *at, size_t count)
{
    bool changed = false;
    for (size_t i = 0; i < count; i++) {
        size_t node = at[i].node;
        for (size_t k = 0; k < count && at[i].waits; k++) {
            size_t first = at[k].node;
            if (!at[k].gives || first == node) continue;
            if (exec->ops[first].op.kind == TT_HOST_OP_GRAPH) first += paths->writes;
            changed |= put_behind(paths, node + paths->writes, first);
            if (exec->ops[node].op.kind == TT_HOST_OP_GRAPH)
                changed |= put_behind(paths, node, first);
        }
    }
    return changed;
}

static bool follow_syncs(struct tt_check_paths *paths, const struct tt_host_exec *exec,
                         const struct sync_points *all)
{
    bool changed = false;
    for (size_t from = 0, to = 0; from < all->count; from = to) {
        while (to < all->count && !by_number(&all->at[from], &all->at[to]))
            to++;
        changed |= follow_sync(paths, exec, &all->at[from], to - from);
    }
    return changed;
}

struct tt_check_paths *tt_check_paths(struct tt_host_check *check, const struct tt_host_exec *exec,
                                      const struct tt_check_touches *touches)
{
    if (!exec->nops || exec->nops > NODES_MOST) return NULL;
    struct sync_points all = sync_points_of(check, touches);
    size_t rows = all.count ? 2 * exec->nops : exec->nops, words = (rows + 63) / 64;
    struct tt_check_paths *paths = calloc(1, sizeof(*paths) + rows * words * sizeof(uint64_t));
    if (paths) {
        paths->words = words;
        paths->writes = all.count ? exec->nops : 0;
        bool changed = follow_edges(paths, exec);
        while (changed && follow_syncs(paths, exec, &all))
            changed = follow_edges(paths, exec);
    }
    free(all.at);
    return paths;
}
