/* Groups by rank; lanes by what an event is, and further rows where events lie across each other.
 */
#include "lanes.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 32, STEPS_DEEPEST = 8 };

/* The events of one lane that have not ended yet, the innermost last. */
struct row {
    int64_t ends[LANE_DEEPEST];
    int depth;
};
/* A lane while events are placed. */
struct lane_row {
    struct lane lane;
    struct row row;
    uint32_t next;  /* row of the same lane, plus 1 */
    uint32_t after; /* place in the same slot of the table, plus 1 */
};
struct lane_rows {
    struct lane_row *rows; /* owned */
    uint32_t *slots;       /* owned; first place plus 1 */
    uint32_t nrows;
    uint32_t nslots; /* a power of two, and no less than nrows */
};
enum { SLOTS_LEAST = 1024 };

int64_t lanes_end(const struct lanes *lanes, const struct timeline_event *event)
{
    return event->stop_nsec == TIMELINE_OPEN ? lanes->end_nsec : event->stop_nsec;
}

/* ---- groups ---- */

static int by_rank(const void *left, const void *right)
{
    const struct lane_group *a = left, *b = right;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return (a->process > b->process) - (a->process < b->process);
}

uint32_t lanes_group(const struct lanes *lanes, uint32_t process, int rank)
{
    const struct lane_group wanted = {process, rank};
    const struct lane_group *found =
        bsearch(&wanted, lanes->groups, lanes->ngroups, sizeof(wanted), by_rank);
    return found ? (uint32_t)(found - lanes->groups) : 0;
}

/* The ranks of a process in its first communicator are its groups. */
static void make_groups(const struct timeline *run, struct lanes *lanes)
{
    for (uint32_t p = 0; p < run->nprocesses; p++) {
        const struct timeline_process *process = &run->processes[p];
        uint32_t first = process->first_member, last = first + process->nmembers;
        int ranks = 0;
        for (uint32_t m = first; m < last; m++) {
            if (run->members[m].comm != run->members[first].comm) continue;
            lanes->groups[lanes->ngroups++] = (struct lane_group){p, run->members[m].rank};
            ranks++;
        }
        if (ranks == 0) lanes->groups[lanes->ngroups++] = (struct lane_group){p, -1};
    }
    qsort(lanes->groups, lanes->ngroups, sizeof(lanes->groups[0]), by_rank);
}

/* ---- lanes ---- */

static enum lane_kind kind_of(enum timeline_type type)
{
    static const enum lane_kind kinds[TIMELINE_TYPE_COUNT_] = {
        [TIMELINE_GROUP] = LANE_LAUNCH,     [TIMELINE_COLL] = LANE_LAUNCH,
        [TIMELINE_P2P] = LANE_LAUNCH,       [TIMELINE_PROXY_OP] = LANE_OP,
        [TIMELINE_PROXY_STEP] = LANE_STEP,  [TIMELINE_PROXY_CTRL] = LANE_CONTROL,
        [TIMELINE_KERNEL_CH] = LANE_KERNEL, [TIMELINE_NET_PLUGIN] = LANE_NET,
        [TIMELINE_GROUP_API] = LANE_API,    [TIMELINE_COLL_API] = LANE_API,
        [TIMELINE_P2P_API] = LANE_API,      [TIMELINE_KERNEL_LAUNCH] = LANE_LAUNCH,
        [TIMELINE_CE_COLL] = LANE_COPY,     [TIMELINE_CE_SYNC] = LANE_COPY,
        [TIMELINE_CE_BATCH] = LANE_COPY,    [TIMELINE_KERNEL_PHASE] = LANE_KERNEL};
    return kinds[type];
}

static struct lane lane_of(const struct timeline *run, uint32_t index, uint32_t group)
{
    const struct timeline_event *event = &run->events[index];
    struct lane lane = {.group = group, .kind = (uint8_t)kind_of((enum timeline_type)event->type)};
    if (lane.kind == LANE_API || lane.kind == LANE_LAUNCH || lane.kind == LANE_CONTROL)
        lane.thread = event->thread;
    if (lane.kind == LANE_KERNEL) lane.channel = event->channel;
    if (lane.kind >= LANE_OP) {
        /* a step and what is below it belong to the operation above; a chain that a file was made
         * of would be walked again for each of its events */
        for (int k = 0; k < STEPS_DEEPEST && event->type != TIMELINE_PROXY_OP; k++) {
            if (event->parent != TIMELINE_NONE) event = &run->events[event->parent];
        }
        lane.channel = event->channel;
        lane.send = event->flag;
    }
    return lane;
}

static bool same_lane(const struct lane *a, const struct lane *b)
{
    return a->group == b->group && a->thread == b->thread && a->channel == b->channel &&
           a->kind == b->kind && a->send == b->send;
}

/* Put an event into the row when it lies inside or behind what is there. */
static bool put(struct row *row, int64_t start_nsec, int64_t end_nsec)
{
    while (row->depth > 0 && row->ends[row->depth - 1] <= start_nsec)
        row->depth--;
    if (row->depth == LANE_DEEPEST) return false;
    if (row->depth > 0 && row->ends[row->depth - 1] < end_nsec) return false;
    row->ends[row->depth++] = end_nsec;
    return true;
}

static uint32_t add_row(struct lane_rows *all, const struct lane *lane, uint8_t row)
{
    if ((all->nrows & (all->nrows - 1)) == 0) {
        size_t room = all->nrows ? (size_t)all->nrows * 2 : 2;
        struct lane_row *rows = realloc(all->rows, room * sizeof(*rows));
        if (!rows) return TIMELINE_NONE;
        all->rows = rows;
    }
    all->rows[all->nrows] = (struct lane_row){.lane = *lane};
    all->rows[all->nrows].lane.row = row;
    return all->nrows++;
}

static uint32_t *slot_of(const struct lane_rows *all, const struct lane *lane)
{
    uint64_t key = (uint64_t)lane->group << 32 | lane->thread;
    key = (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
    key ^= (uint64_t)lane->channel << 8 | (uint64_t)lane->kind << 1 | lane->send;
    return &all->slots[key * 0x9e3779b97f4a7c15u >> 32 & (all->nslots - 1)];
}

static void link_row(struct lane_rows *all, uint32_t row)
{
    uint32_t *slot = slot_of(all, &all->rows[row].lane);
    all->rows[row].after = *slot;
    *slot = row + 1;
}

/* As many slots as there are rows, so that a slot has few of them. */
static bool widen(struct lane_rows *all)
{
    uint32_t nslots = all->nslots ? all->nslots * 2 : SLOTS_LEAST;
    uint32_t *slots = tt_calloc(nslots, sizeof(*slots));
    if (!slots) return false;
    free(all->slots);
    all->slots = slots;
    all->nslots = nslots;
    for (uint32_t row = 0; row < all->nrows; row++) {
        if (all->rows[row].lane.row == 0) link_row(all, row);
    }
    return true;
}

/* TIMELINE_NONE: memory is short. */
static uint32_t assign_row(struct lane_rows *all, const struct lane *lane, int64_t start_nsec,
                           int64_t end_nsec)
{
    if (all->nrows >= all->nslots && !widen(all)) return TIMELINE_NONE;
    uint32_t at = all->rows ? *slot_of(all, lane) : 0;
    while (at && !same_lane(&all->rows[at - 1].lane, lane))
        at = all->rows[at - 1].after;
    if (!at) {
        at = add_row(all, lane, 0) + 1;
        if (!at) return TIMELINE_NONE;
        link_row(all, at - 1);
    }
    uint32_t row = at - 1;
    for (uint8_t k = 1; !put(&all->rows[row].row, start_nsec, end_nsec) && k < ROWS; k++) {
        uint32_t next = all->rows[row].next;
        if (!next) {
            next = add_row(all, lane, k) + 1;
            if (!next) return TIMELINE_NONE;
            all->rows[row].next = next;
        }
        row = next - 1;
    }
    return row;
}

static int by_lane(const void *left, const void *right)
{
    const struct lane_row *a = left, *b = right;
    const struct lane *l = &a->lane, *r = &b->lane;
    if (l->group != r->group) return l->group < r->group ? -1 : 1;
    if (l->kind != r->kind) return l->kind < r->kind ? -1 : 1;
    if (l->thread != r->thread) return l->thread < r->thread ? -1 : 1;
    if (l->channel != r->channel) return l->channel < r->channel ? -1 : 1;
    if (l->send != r->send) return l->send ? -1 : 1;
    return (l->row > r->row) - (l->row < r->row);
}

/* Places in their order; the events follow. */
static bool sort_rows(const struct timeline *run, struct lanes *lanes, struct lane_rows *all)
{
    uint32_t *moved = tt_calloc(all->nrows + (size_t)1, sizeof(*moved));
    lanes->lanes = tt_calloc(all->nrows + (size_t)1, sizeof(lanes->lanes[0]));
    if (!moved || !lanes->lanes) {
        free(moved);
        return false;
    }
    for (uint32_t k = 0; k < all->nrows; k++)
        all->rows[k].next = k;
    if (all->nrows) qsort(all->rows, all->nrows, sizeof(all->rows[0]), by_lane);
    for (uint32_t k = 0; k < all->nrows; k++) {
        moved[all->rows[k].next] = k;
        lanes->lanes[k] = all->rows[k].lane;
    }
    lanes->nlanes = all->nrows;
    for (uint32_t e = 0; e < run->nevents; e++)
        lanes->of_event[e] = moved[lanes->of_event[e]];
    free(moved);
    return true;
}

static bool assign_all(const struct timeline *run, struct lanes *lanes, const int *of_member)
{
    struct lane_rows all = {0};
    bool good = true;
    for (uint32_t e = 0; e < run->nevents; e++) {
        const struct timeline_event *event = &run->events[e];
        int64_t at = event->stop_nsec == TIMELINE_OPEN ? event->start_nsec : event->stop_nsec;
        if (at > lanes->end_nsec) lanes->end_nsec = at;
    }
    for (uint32_t i = 0; good && i < run->nevents; i++) {
        uint32_t e = lanes->order[i];
        const struct timeline_event *event = &run->events[e];
        uint32_t process = run->threads[event->thread].process;
        uint32_t first = run->processes[process].first_member;
        int rank = run->processes[process].nmembers ? of_member[first] : -1;
        if (event->member != TIMELINE_NONE) rank = of_member[event->member];
        struct lane lane = lane_of(run, e, lanes_group(lanes, process, rank));
        lanes->of_event[e] = assign_row(&all, &lane, event->start_nsec, lanes_end(lanes, event));
        good = lanes->of_event[e] != TIMELINE_NONE;
    }
    if (good) good = sort_rows(run, lanes, &all);
    free(all.rows);
    free(all.slots);
    return good;
}

bool lanes_make(const struct timeline *run, struct lanes *lanes)
{
    memset(lanes, 0, sizeof(*lanes));
    int *of_member = tt_calloc(run->nmembers + (size_t)1, sizeof(*of_member));
    lanes->groups =
        tt_calloc((size_t)run->nmembers + run->nprocesses + 1, sizeof(lanes->groups[0]));
    lanes->of_event = tt_calloc(run->nevents + (size_t)1, sizeof(lanes->of_event[0]));
    lanes->order = timeline_by_start(run);
    bool good = of_member && lanes->groups && lanes->of_event && lanes->order;
    if (good) {
        make_groups(run, lanes);
        good = timeline_ranks(run, of_member) && assign_all(run, lanes, of_member);
    }
    if (!good) (void)fprintf(stderr, "tutti trace: out of memory\n");
    free(of_member);
    return good;
}

void lanes_fini(struct lanes *lanes)
{
    free(lanes->groups);
    free(lanes->lanes);
    free(lanes->of_event);
    free(lanes->order);
    memset(lanes, 0, sizeof(*lanes));
}

/* ---- names ---- */

void lanes_group_name(const struct timeline *run, const struct lanes *lanes, uint32_t group,
                      char *text, size_t bytes)
{
    const struct timeline_process *process = &run->processes[lanes->groups[group].process];
    if (lanes->groups[group].rank >= 0) {
        (void)snprintf(text, bytes, "rank %d, %s, pid %d", lanes->groups[group].rank, process->host,
                       process->pid);
    } else {
        (void)snprintf(text, bytes, "%s, pid %d", process->host, process->pid);
    }
}

void lanes_name(const struct timeline *run, const struct lane *lane, char *text, size_t bytes)
{
    static const char *const names[LANE_KIND_COUNT_] = {
        "API", "launch", "kernel", "copy engines", "proxy", "operations", "steps", "network"};
    const char *name = names[lane->kind], *direction = lane->send ? "sends" : "receives";
    char row[16] = "";
    if (lane->row) (void)snprintf(row, sizeof(row), " (%d)", lane->row + 1);
    if (lane->kind >= LANE_OP) {
        (void)snprintf(text, bytes, "%s: channel %d %s%s", name, lane->channel, direction, row);
    } else if (lane->kind == LANE_KERNEL) {
        (void)snprintf(text, bytes, "%s: channel %d%s", name, lane->channel, row);
    } else if (lane->kind == LANE_COPY) {
        (void)snprintf(text, bytes, "%s%s", name, row);
    } else {
        const struct timeline_thread *thread = &run->threads[lane->thread];
        (void)snprintf(text, bytes, "%s: thread %d %s%s", name, thread->tid, thread->name, row);
    }
}
