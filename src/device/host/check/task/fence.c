/* Order that is known later than it is needed: a stream waits for a word that was not written
 * yet, a rank receives before the other one sends, or comes to a collective before the others. Such
 * a wait is a fence: what its task does behind it knows whatever the fence learns later. A race of
 * operations that know an open fence is kept until the fence closes, the host has waited for it, or
 * the program ends. */
#include "device/host/check/state.h"

#include <stdlib.h>
#include <string.h>

enum { FENCES_MOST = 4096, KEPT_MOST = 256 };

static bool room_for(void **at, size_t *room, size_t count, size_t each)
{
    if (count < *room) return true;
    size_t more = *room ? 2 * *room : 16;
    void *wider = realloc(*at, more * each);
    if (!wider) return false;
    *at = wider;
    *room = more;
    return true;
}

static void drop_fences(struct tt_check_fences *fences, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tt_check_clock_drop(fences->at[i].clock);
    }
    fences->count -= count;
    memmove(fences->at, fences->at + count, fences->count * sizeof(fences->at[0]));
}

uint64_t tt_check_fence_open(struct tt_host_check *check, size_t task, uint64_t epoch)
{
    struct tt_check_fences *fences = &check->fences;
    void *at = fences->at;
    if (fences->count == FENCES_MOST) drop_fences(fences, FENCES_MOST / 4);
    if (!room_for(&at, &fences->room, fences->count, sizeof(fences->at[0]))) return 0;
    fences->at = at;
    fences->at[fences->count++] = (struct tt_check_fence){
        .number = ++fences->last, .task = task, .epoch = epoch, .open = true};
    return fences->last;
}

static struct tt_check_fence *find(struct tt_check_fences *fences, uint64_t number)
{
    for (size_t i = fences->count; i > 0; i--) {
        if (fences->at[i - 1].number == number) return &fences->at[i - 1];
    }
    return NULL;
}

/* Is a task that knows `clock`, or operation `epoch` of the task, behind the fence? */
static bool is_behind(const struct tt_check_fence *fence, const struct tt_check_op *op,
                      const struct tt_check_clock *clock)
{
    if (op && op->task == fence->task) return op->epoch >= fence->epoch;
    return tt_check_clock_of(clock, fence->task) >= fence->epoch;
}

/* By what fences learned that the second is behind, or that those know, ... */
static bool is_before_late(const struct tt_check_fences *fences, const struct tt_check_op *first,
                           const struct tt_check_op *second)
{
    bool found = false, more = true;
    bool *seen = calloc(fences->count + 1, sizeof(*seen));
    struct tt_check_clock *known = tt_check_clock_hold(second->before);
    while (seen && more && !found) {
        more = false;
        for (size_t i = 0; i < fences->count && !found; i++) {
            const struct tt_check_fence *fence = &fences->at[i];
            if (seen[i] || !fence->clock || !is_behind(fence, second, known)) continue;
            seen[i] = more = true;
            tt_check_clock_merge(&known, fence->clock);
            found = tt_check_clock_of(known, first->task) >= first->epoch;
        }
    }
    tt_check_clock_drop(known);
    free(seen);
    return found;
}

bool tt_check_ordered_late(const struct tt_host_check *check, const struct tt_check_op *one,
                           const struct tt_check_op *other)
{
    return check->fences.count && (is_before_late(&check->fences, one, other) ||
                                   is_before_late(&check->fences, other, one));
}

static bool may_be_ordered(const struct tt_check_fences *fences, const struct tt_check_op *one,
                           const struct tt_check_op *other)
{
    for (size_t i = 0; i < fences->count; i++) {
        const struct tt_check_fence *fence = &fences->at[i];
        if (fence->open &&
            (is_behind(fence, one, one->before) || is_behind(fence, other, other->before)))
            return true;
    }
    return false;
}

bool tt_check_keep_finding(struct tt_host_check *check, const struct tt_check_finding *finding,
                           struct tt_check_op *one, struct tt_check_op *other)
{
    struct tt_check_fences *fences = &check->fences;
    void *at = fences->kept;
    if (fences->nkept == KEPT_MOST || !may_be_ordered(fences, one, other) ||
        !room_for(&at, &fences->kept_room, fences->nkept, sizeof(fences->kept[0])))
        return false;
    fences->kept = at;
    fences->kept[fences->nkept++] = (struct tt_check_kept){*finding, one, other};
    one->refs++;
    other->refs++;
    return true;
}

void tt_check_flush_findings(struct tt_host_check *check, bool ends)
{
    struct tt_check_fences *fences = &check->fences;
    size_t kept = 0;
    for (size_t i = 0; i < fences->nkept; i++) {
        struct tt_check_kept now = fences->kept[i];
        bool ordered = tt_check_ordered_late(check, now.one, now.other);
        if (!ordered && !ends && may_be_ordered(fences, now.one, now.other)) {
            fences->kept[kept++] = now;
            continue;
        }
        if (!ordered) tt_check_report(check, &now.finding);
        tt_check_op_drop(now.one);
        tt_check_op_drop(now.other);
    }
    fences->nkept = kept;
}

void tt_check_fence_update(struct tt_host_check *check, uint64_t number,
                           const struct tt_check_clock *clock)
{
    struct tt_check_fence *fence = find(&check->fences, number);
    if (!fence) return;
    tt_check_clock_merge(&fence->clock, clock);
    tt_check_clock_merge(&check->tasks[fence->task].now, clock);
}

void tt_check_fence_close(struct tt_host_check *check, uint64_t number)
{
    struct tt_check_fence *fence = find(&check->fences, number);
    if (!fence) return;
    fence->open = false;
    if (check->fences.nkept) tt_check_flush_findings(check, false);
}

void tt_check_fences_pass(struct tt_host_check *check)
{
    struct tt_check_fences *fences = &check->fences;
    bool shut = false;
    for (size_t i = 0; i < fences->count; i++) {
        struct tt_check_fence *fence = &fences->at[i];
        if (!fence->open || tt_check_clock_of(check->waited, fence->task) < fence->epoch) continue;
        fence->open = false;
        shut = true;
    }
    if (shut && fences->nkept) tt_check_flush_findings(check, false);
    size_t over = 0;
    while (over < fences->count && !fences->nkept && !fences->at[over].open &&
           tt_check_clock_of(check->waited, fences->at[over].task) >= fences->at[over].epoch)
        over++;
    if (over) drop_fences(fences, over);
}
