/* Order that is known later than it is needed: a stream waits for a word that nobody has written
 * yet, a rank receives before the other one sends, or comes to a collective before the others. Such
 * a wait is a gate: what its task does behind it knows whatever the gate is told later. A race of
 * operations that know an open gate is kept until the gate shuts, the host has waited for it, or
 * the program ends. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

enum { GATES_MOST = 4096, KEPT_MOST = 256 };

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

static void drop_gates(struct check_gates *gates, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_clock_drop(gates->at[i].clock);
    }
    gates->count -= count;
    memmove(gates->at, gates->at + count, gates->count * sizeof(gates->at[0]));
}

uint64_t check_gate_open(struct host_check *check, size_t task, uint64_t epoch)
{
    struct check_gates *gates = &check->gates;
    void *at = gates->at;
    if (gates->count == GATES_MOST) drop_gates(gates, GATES_MOST / 4);
    if (!room_for(&at, &gates->room, gates->count, sizeof(gates->at[0]))) return 0;
    gates->at = at;
    gates->at[gates->count++] =
        (struct check_gate){.number = ++gates->last, .task = task, .epoch = epoch, .open = true};
    return gates->last;
}

static struct check_gate *find(struct check_gates *gates, uint64_t number)
{
    for (size_t i = gates->count; i > 0; i--) {
        if (gates->at[i - 1].number == number) return &gates->at[i - 1];
    }
    return NULL;
}

/* Is who knows `clock`, or operation `epoch` of the task, behind the gate? */
static bool is_behind(const struct check_gate *gate, const struct check_op *op,
                      const struct check_clock *clock)
{
    if (op && op->task == gate->task) return op->epoch >= gate->epoch;
    return check_clock_of(clock, gate->task) >= gate->epoch;
}

/* By what gates were told that the second is behind, or that those know, ... */
static bool is_before_late(const struct check_gates *gates, const struct check_op *first,
                           const struct check_op *second)
{
    bool found = false, more = true;
    bool *seen = calloc(gates->count + 1, sizeof(*seen));
    struct check_clock *known = check_clock_hold(second->before);
    while (seen && more && !found) {
        more = false;
        for (size_t i = 0; i < gates->count && !found; i++) {
            const struct check_gate *gate = &gates->at[i];
            if (seen[i] || !gate->clock || !is_behind(gate, second, known)) continue;
            seen[i] = more = true;
            check_clock_merge(&known, gate->clock);
            found = check_clock_of(known, first->task) >= first->epoch;
        }
    }
    check_clock_drop(known);
    free(seen);
    return found;
}

bool check_ordered_late(const struct host_check *check, const struct check_op *one,
                        const struct check_op *other)
{
    return check->gates.count &&
           (is_before_late(&check->gates, one, other) || is_before_late(&check->gates, other, one));
}

static bool may_be_ordered(const struct check_gates *gates, const struct check_op *one,
                           const struct check_op *other)
{
    for (size_t i = 0; i < gates->count; i++) {
        const struct check_gate *gate = &gates->at[i];
        if (gate->open &&
            (is_behind(gate, one, one->before) || is_behind(gate, other, other->before)))
            return true;
    }
    return false;
}

bool check_keep_finding(struct host_check *check, const struct check_finding *finding,
                        struct check_op *one, struct check_op *other)
{
    struct check_gates *gates = &check->gates;
    void *at = gates->kept;
    if (gates->nkept == KEPT_MOST || !may_be_ordered(gates, one, other) ||
        !room_for(&at, &gates->kept_room, gates->nkept, sizeof(gates->kept[0])))
        return false;
    gates->kept = at;
    gates->kept[gates->nkept++] = (struct check_kept){*finding, one, other};
    one->refs++;
    other->refs++;
    return true;
}

void check_flush_findings(struct host_check *check, bool ends)
{
    struct check_gates *gates = &check->gates;
    size_t kept = 0;
    for (size_t i = 0; i < gates->nkept; i++) {
        struct check_kept now = gates->kept[i];
        bool ordered = check_ordered_late(check, now.one, now.other);
        if (!ordered && !ends && may_be_ordered(gates, now.one, now.other)) {
            gates->kept[kept++] = now;
            continue;
        }
        if (!ordered) check_report(check, &now.finding);
        check_op_drop(now.one);
        check_op_drop(now.other);
    }
    gates->nkept = kept;
}

void check_gate_tell(struct host_check *check, uint64_t number, const struct check_clock *clock)
{
    struct check_gate *gate = find(&check->gates, number);
    if (!gate) return;
    check_clock_merge(&gate->clock, clock);
    check_clock_merge(&check->tasks[gate->task].now, clock);
}

void check_gate_shut(struct host_check *check, uint64_t number)
{
    struct check_gate *gate = find(&check->gates, number);
    if (!gate) return;
    gate->open = false;
    if (check->gates.nkept) check_flush_findings(check, false);
}

void check_gates_pass(struct host_check *check)
{
    struct check_gates *gates = &check->gates;
    bool shut = false;
    for (size_t i = 0; i < gates->count; i++) {
        struct check_gate *gate = &gates->at[i];
        if (!gate->open || check_clock_of(check->waited, gate->task) < gate->epoch) continue;
        gate->open = false;
        shut = true;
    }
    if (shut && gates->nkept) check_flush_findings(check, false);
    size_t over = 0;
    while (over < gates->count && !gates->nkept && !gates->at[over].open &&
           check_clock_of(check->waited, gates->at[over].task) >= gates->at[over].epoch)
        over++;
    if (over) drop_gates(gates, over);
}
