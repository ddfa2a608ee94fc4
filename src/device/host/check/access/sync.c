/* What operations learn from each other: ranks that meet in a collective, words that streams write
 * and await, events amid a graph. */
#include "device/host/check/access.h"
#include "device/host/host.h"

#include <stdlib.h>

/* Those that wait there know what those that come know, before and after. */
static void gather_at(struct tt_host_check *check, struct tt_check_mark *mark, size_t task,
                      const struct tt_check_touch *touch)
{
    uint64_t *fences = realloc(mark->fences, (mark->nfences + 1) * sizeof(*fences));
    if (!fences) return;
    mark->fences = fences;
    if (touch->role != TT_SYNC_SOURCE)
        fences[mark->nfences++] = tt_check_fence_open(check, task, check->tasks[task].epoch + 1);
    if (touch->role != TT_SYNC_SINK) tt_check_task_report(check, task, &mark->clock);
    for (size_t i = 0; i < mark->nfences; i++) {
        tt_check_fence_update(check, mark->fences[i], mark->clock);
    }
    if (++mark->came < touch->nranks) return;
    for (size_t i = 0; i < mark->nfences; i++) {
        tt_check_fence_close(check, mark->fences[i]);
    }
}

/* Ranks of one process that are in a collective wait for those whose data they need: what these did
 * before it is over when it ends. One that comes later informs those that are there already. */
void tt_check_collective(struct tt_host_check *check, size_t task,
                         const struct tt_check_touch *touch)
{
    struct tt_check_mark *count = tt_check_mark(&check->counts, touch->ptr, 0);
    uint64_t turn = count ? ++count->turn : 0;
    uint64_t number = touch->group * 0x9e3779b97f4a7c15ull + turn;
    struct tt_check_mark *mark = &check->collectives[number % TT_CHECK_COLLECTIVES];
    if (mark->number != number) {
        tt_check_clock_drop(mark->clock);
        mark->clock = NULL;
        mark->nfences = 0;
        mark->came = 0;
        mark->number = number;
    }
    gather_at(check, mark, task, touch);
}

/* ---- messages ---- */

enum { AHEAD_MOST = 4096 };

struct tt_check_lane { /* messages from one rank to another: either side may be ahead */
    struct tt_peer_message key;
    bool sends, elsewhere;         /* which side; elsewhere: the other is in another process */
    struct tt_check_clock **clock; /* owned; ring; counted: what each sender knew, ... */
    uint64_t *fence;               /* owned; ring; ... or of the receiver */
    size_t first, count, room;
};

static size_t lane_slot(const struct tt_check_lane *lanes, size_t room,
                        const struct tt_peer_message *key)
{
    uint64_t hash = key->group * 0x9e3779b97f4a7c15ull ^ (uint64_t)(unsigned)key->from << 32 ^
                    (uint64_t)(unsigned)key->to;
    size_t at = (size_t)((hash * 0x9e3779b97f4a7c15ull) >> 24) & (room - 1);
    while (lanes[at].room && (lanes[at].key.group != key->group || lanes[at].key.to != key->to ||
                              lanes[at].key.from != key->from)) {
        at = (at + 1) & (room - 1);
    }
    return at;
}

static bool grow_lanes(struct tt_host_check *check)
{
    size_t room = check->lane_room ? 2 * check->lane_room : 64;
    struct tt_check_lane *lanes = calloc(room, sizeof(*lanes));
    if (!lanes) return false;
    for (size_t i = 0; i < check->lane_room; i++) {
        if (check->lanes[i].room)
            lanes[lane_slot(lanes, room, &check->lanes[i].key)] = check->lanes[i];
    }
    free(check->lanes);
    check->lanes = lanes;
    check->lane_room = room;
    return true;
}

/* Room for one more in the rings; false: out of memory, or no rank comes for them. */
static bool widen(struct tt_check_lane *lane)
{
    size_t room = lane->room ? 2 * lane->room : 4;
    if (lane->count < lane->room) return true;
    struct tt_check_clock **clock = calloc(room, sizeof(struct tt_check_clock *));
    uint64_t *fence = calloc(room, sizeof(*fence));
    if (!clock || !fence || room > AHEAD_MOST) {
        free(clock);
        free(fence);
        lane->elsewhere = lane->room > 0;
        return false;
    }
    for (size_t i = 0; i < lane->count; i++) {
        clock[i] = lane->clock[(lane->first + i) % lane->room];
        fence[i] = lane->fence[(lane->first + i) % lane->room];
    }
    free(lane->clock);
    free(lane->fence);
    lane->clock = clock;
    lane->fence = fence;
    lane->first = 0;
    lane->room = room;
    return true;
}

static struct tt_check_lane *lane_of(struct tt_host_check *check, const struct tt_peer_message *key)
{
    if (2 * check->nlanes >= check->lane_room && !grow_lanes(check)) return NULL;
    struct tt_check_lane *lane = &check->lanes[lane_slot(check->lanes, check->lane_room, key)];
    if (lane->room) return lane;
    lane->key = *key;
    if (!widen(lane)) return NULL;
    check->nlanes++;
    return lane;
}

/* Messages from rank to rank keep their order, so the k-th that is sent is the k-th received. What
 * its sender knew, its receiver knows behind it; the sender may be over before any rank
 * receives. Whichever side comes later passes it on. */
void tt_check_pass_message(struct tt_host_check *check, size_t task,
                           const struct tt_check_touch *touch)
{
    bool sends = touch->kind == TT_CHECK_TOUCH_SEND;
    struct tt_check_lane *lane = lane_of(check, &touch->message);
    if (!lane || lane->elsewhere) return;
    size_t other = lane->first;
    if (!lane->count || lane->sends == sends) {
        if (!widen(lane)) return;
        size_t at = (lane->first + lane->count++) % lane->room;
        lane->sends = sends;
        lane->fence[at] =
            sends ? 0 : tt_check_fence_open(check, task, check->tasks[task].epoch + 1);
        lane->clock[at] = NULL;
        if (sends) tt_check_task_report(check, task, &lane->clock[at]);
        return;
    }
    lane->first = (lane->first + 1) % lane->room;
    lane->count--;
    struct tt_check_clock *learned = lane->clock[other];
    if (sends) {
        tt_check_task_report(check, task, &learned);
        tt_check_fence_update(check, lane->fence[other], learned);
        tt_check_fence_close(check, lane->fence[other]);
    } else {
        tt_check_clock_merge(&check->tasks[task].now, learned);
    }
    tt_check_clock_drop(learned);
}

uint64_t tt_check_messages_ahead(struct tt_host_check *check, const struct tt_peer_message *key,
                                 bool sends)
{
    const struct tt_check_lane *lane = lane_of(check, key);
    return lane && lane->sends == sends ? lane->count : 0;
}

/* ---- events, and ends ---- */

/* A task that waits for the event from now on knows what the task did, and nothing else. */
void tt_check_report_event(struct tt_host_check *check, size_t task,
                           const struct tt_check_touch *touch)
{
    struct tt_check_mark *mark = tt_check_mark(&check->events, touch->ptr, 0);
    if (!mark) return;
    tt_check_clock_drop(mark->clock);
    mark->clock = NULL;
    tt_check_task_report(check, task, &mark->clock);
}

/* A task that waits for all work of the member knows what the task did. */
void tt_check_report_member(struct tt_host_check *check, size_t task, const void *member)
{
    struct tt_check_mark *mark = tt_check_mark(&check->counts, member, 0);
    if (mark) tt_check_task_report(check, task, &mark->clock);
}

/* Another member may come to its address, and counts anew. */
void tuttiHostMemberOver(const void *member)
{
    struct tt_host_check *check = tt_host_checks() ? tt_host_check_lock() : NULL;
    struct tt_check_mark *mark = check ? tt_check_mark(&check->counts, member, 0) : NULL;
    if (mark && check->ntasks) {
        tt_check_clock_merge(&check->tasks[TT_CHECK_HOST].now, mark->clock);
        tt_check_clock_drop(mark->clock);
        mark->clock = NULL;
        mark->turn = 0;
    }
    tt_host_check_unlock(check);
}
