/* A launch of a graph with kernels that report nothing, until they have run. Each graph in it is a
 * level of its own: the graph that is launched, and in it child graphs, which count as one node
 * there. */
#include "inside.h"

#include "shadow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN_MOST = 1 << 15, LOOK_BACK = 8 };

/* ---- nodes of one graph ---- */

static bool is_outlived(const struct tt_check_touch *free, const struct tt_check_touch *use,
                        const struct tt_check_paths *paths)
{
    return free->kind == TT_CHECK_TOUCH_END && use->kind <= TT_CHECK_TOUCH_WRITE &&
           tt_check_is_behind(paths, use, free);
}

bool tt_check_clashes(const struct tt_check_touch *one, const struct tt_check_touch *other,
                      const struct tt_check_paths *paths, enum tt_check_kind *kind_out)
{
    if (one->node == other->node) return false;
    *kind_out = TT_CHECK_USE_AFTER_FREE;
    if (is_outlived(one, other, paths) || is_outlived(other, one, paths)) return true;
    *kind_out = TT_CHECK_IN_GRAPH;
    if (one->kind == TT_CHECK_TOUCH_READ && other->kind == TT_CHECK_TOUCH_READ) return false;
    return !tt_check_is_behind(paths, one, other) && !tt_check_is_behind(paths, other, one);
}

void tt_check_report_nodes(struct tt_host_check *check, const struct tt_check_op *sides,
                           const struct tt_check_touch *one, const struct tt_check_touch *other,
                           enum tt_check_kind kind)
{
    bool turned = one->node > other->node;
    const struct tt_check_touch *first = turned ? other : one, *second = turned ? one : other;
    const struct tt_check_finding finding = {.kind = kind,
                                             .first = &sides[turned],
                                             .second = &sides[!turned],
                                             .first_writes = first->kind != TT_CHECK_TOUCH_READ,
                                             .second_writes = second->kind != TT_CHECK_TOUCH_READ,
                                             .ptr = other->ptr,
                                             .bytes = 1};
    tt_check_report(check, &finding);
}

/* ---- a launch ---- */

struct tt_check_inside *tt_check_inside_hold(struct tt_check_inside *inside)
{
    if (inside) inside->refs++;
    return inside;
}

void tt_check_inside_drop(struct tt_check_inside *inside)
{
    if (!inside || --inside->refs) return;
    for (size_t i = 0; i < inside->nlevels; i++) {
        free(inside->levels[i].paths);
        free(inside->levels[i].names);
        free(inside->levels[i].known.at);
    }
    free(inside->levels);
    free(inside->places);
    free(inside);
}

/* ---- what is seen ---- */

static struct tt_check_op side_of(const struct tt_check_inside *inside,
                                  const struct tt_check_level *level,
                                  const struct tt_check_touch *touch)
{
    struct tt_check_op op = {.task = CHECK_GRAPH, .site = inside->site};
    const char *name = level->names ? level->names[touch->node] : "work";
    snprintf(op.name, sizeof(op.name), "%s (node %zu of a graph)", name, touch->node);
    return op;
}

static bool meet(const struct tt_check_touch *one, const struct tt_check_touch *other)
{
    const char *from = one->ptr, *at = other->ptr;
    return at < from + one->bytes && from < at + other->bytes;
}

static void compare(struct tt_host_check *check, const struct tt_check_inside *inside,
                    struct tt_check_level *level, const struct tt_check_touch *seen)
{
    enum tt_check_kind kind;
    for (size_t i = 0; i < level->known.count && !level->reported; i++) {
        const struct tt_check_touch *other = &level->known.at[i];
        if (other->kind > TT_CHECK_TOUCH_END || !meet(seen, other) ||
            !tt_check_clashes(other, seen, level->paths, &kind))
            continue;
        const struct tt_check_op sides[2] = {side_of(inside, level, other),
                                             side_of(inside, level, seen)};
        level->reported = true;
        tt_check_report_nodes(check, sides, other, seen, kind);
    }
}

/* As a part of what the same kernel was seen to do just before, if it is next to it. */
static void remember(struct tt_check_level *level, const struct tt_check_touch *seen)
{
    struct tt_check_touches *known = &level->known;
    const char *from = seen->ptr, *to = from + seen->bytes;
    for (size_t back = 1; back <= LOOK_BACK && back <= known->count; back++) {
        struct tt_check_touch *one = &known->at[known->count - back];
        const char *start = one->ptr, *end = start + one->bytes;
        if (one->node != seen->node || one->kind != seen->kind || from > end || to < start)
            continue;
        if (from < start) one->ptr = from;
        one->bytes = (size_t)((to > end ? to : end) - (const char *)one->ptr);
        return;
    }
    if (known->count == known->room) {
        size_t room = known->room ? 2 * known->room : 16;
        struct tt_check_touch *wider =
            room <= SEEN_MOST ? realloc(known->at, room * sizeof(*wider)) : NULL;
        if (!wider) return;
        known->at = wider;
        known->room = room;
    }
    known->at[known->count++] = *seen;
}

static void see(struct tt_host_check *check, struct tt_check_inside *inside,
                const struct tt_check_touch *touch)
{
    struct tt_check_touch seen = *touch;
    if (!touch->node || touch->node > inside->nplaces) return;
    const struct tt_check_place *place = &inside->places[touch->node];
    size_t index = place->level;
    seen.node = place->node;
    for (bool outermost = false; !outermost;) {
        struct tt_check_level *level = &inside->levels[index];
        if (level->paths && !level->reported) {
            compare(check, inside, level, &seen);
            remember(level, &seen);
        }
        outermost = index == 0;
        seen.node = level->node;
        index = level->outer;
    }
}

void tt_check_launch_see(struct tt_host_check *check, struct tt_check_op *op,
                         const struct tt_check_touch *touch)
{
    struct tt_check_touch seen = *touch;
    size_t at = 0;
    tt_check_touch_seen(check, op, touch->ptr, touch->bytes, touch->kind == TT_CHECK_TOUCH_WRITE);
    while (at < check->nopaque && check->opaque[at].op != op)
        at++;
    if (at == check->nopaque || !check->opaque[at].inside) return;
    seen.node = check->opaque[at].node;
    see(check, check->opaque[at].inside, &seen);
}
