/* Ranks compare a collective before it begins, so none writes a buffer where they differ.
 *
 * It is a dissemination barrier (Hensgen, Finkel, Manber, 1988) that carries the calls: in round k
 * a rank sends its calls to the rank 2^k after it, and waits for those of the rank 2^k before it. A
 * rank begins a round only when all calls of the rounds before were the same, so a rank that has
 * come through ceil(log2 n) rounds knows that all n ranks make that call; where two differ, none
 * comes through. A gathering at one rank would take as long, and an exchange of room bootstrap
 * would meet those of other calls (a split).
 *
 * Calls are numbered and compared one by one, so ranks may group them in different ways. A rank
 * that waits helps with the work of its process's streams, and is seen by room watch: where others
 * wait for it in a message, both are told. A rank that does not come within 10 s is warned of, and
 * nothing is compared with it: a thread that drives several ranks without a group waits for itself.
 */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/wait.h"
#include "bootstrap/bootstrap.h"
#include "device/device.h"
#include "mem/mem.h"
#include "plan/group/group.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_CALLS = 0x43414c4c, ENTRIES = 100 };
#define TIMEOUT_NSEC 10000000000ull
#define SHORT_TIMEOUT_NSEC 100000000ull /* after one that did not come */
#define LOOK_NSEC 2000000ull            /* between two looks whether the other is still there */
#define ANY_PLACE UINT64_MAX            /* the rank does not use that buffer */

struct entry {
    uint64_t call[3]; /* struct tt_call */
    uint64_t in, out; /* places in symmetric windows; 0: none */
};
enum { ENTRY_WORDS = sizeof(struct entry) / sizeof(uint64_t) };

struct message { /* of calls that follow each other; little-endian */
    uint64_t first, count;
    struct entry entries[ENTRIES];
};
#define MESSAGE_BYTES(count) (offsetof(struct message, entries) + (count) * sizeof(struct entry))

struct round {               /* its counts are of the calls of the group that ends */
    int sent, done;          /* given to the partner after this rank; the same as that before it */
    struct message received; /* the latest of that one */
};

struct tt_global_check {
    struct entry *own; /* owned: of the group that ends */
    int nown, capacity;
    uint64_t made; /* calls compared before these */
    uint64_t timeout_nsec;
    bool late;     /* a rank has not come to these */
    bool reported; /* a rank has not come, and that was reported */
    int wait;      /* its place among the waits; -1: none */
    int waits_in;  /* that round */
    uint64_t since_nsec, looked_nsec;
    int nrounds;
    struct round rounds[];
};

/* ---- life ---- */

static int rounds_of(int nranks)
{
    int nrounds = 0;
    while ((int64_t)1 << nrounds < nranks)
        nrounds++;
    return nrounds;
}

static ncclResult_t check_create(struct tt_plan *plan)
{
    if (plan->global_check) return ncclSuccess;
    const int nrounds = rounds_of(plan->comm->member.nranks);
    struct tt_global_check *check =
        tt_calloc(1, sizeof(*check) + (size_t)nrounds * sizeof(struct round));
    if (!check) {
        return tt_fail(ncclSystemError, "rank %d: out of memory for NCCL_CHECK_MODE=DEBUG_GLOBAL",
                       plan->comm->member.rank);
    }
    check->nrounds = nrounds;
    check->timeout_nsec = TIMEOUT_NSEC;
    check->wait = -1;
    plan->global_check = check;
    return ncclSuccess;
}

void tt_global_check_destroy(struct tt_global_check *check)
{
    if (!check) return;
    free(check->own);
    free(check);
}

/* ---- the own calls ---- */

/* Where a buffer lies in its symmetric window. */
static uint64_t place_of(const struct tt_plan *plan, const void *at, size_t bytes)
{
    if (bytes == 0) return ANY_PLACE;
    if (!plan->comm->registry) return 0;
    return tt_registry_symmetric_place(plan->comm->registry, at, bytes);
}

static ncclResult_t note(struct tt_plan *plan, const struct tt_task *task)
{
    struct tt_global_check *check = plan->global_check;
    size_t in_bytes = 0, out_bytes = 0;
    if (check->nown == check->capacity) {
        const int capacity = check->capacity ? 2 * check->capacity : 4;
        struct entry *own = realloc(check->own, (size_t)capacity * sizeof(*own));
        if (!own) return tt_fail(ncclSystemError, "group: out of memory for %d calls", capacity);
        check->own = own;
        check->capacity = capacity;
    }
    struct entry *entry = &check->own[check->nown++];
    const struct tt_call call = tt_call_of(task, &(struct tt_tune_choice){0});
    memcpy(entry->call, &call, sizeof(call));
    if (task->count > 0) tt_buffer_bytes(task, &in_bytes, &out_bytes);
    entry->in = place_of(plan, task->in, in_bytes);
    entry->out = place_of(plan, task->out, out_bytes);
    return ncclSuccess;
}

/* Note the plan's collectives, and leave out those that do nothing. */
static ncclResult_t collect(struct tt_plan *plan)
{
    struct tt_group_call **at = &plan->first;
    ncclResult_t rc = check_create(plan);
    if (rc) return rc;
    plan->global_check->nown = 0;
    plan->last = NULL;
    for (struct tt_group_call *node = plan->first; node && !rc; node = node->next) {
        const bool message = tt_func_is_message(node->task.func);
        if (!message) rc = note(plan, &node->task);
        if (!message && node->task.count == 0) continue;
        *at = plan->last = node;
        at = &node->next;
    }
    *at = NULL;
    return rc;
}

ncclResult_t tt_global_check_collect(struct tt_plan *plans)
{
    ncclResult_t rc = ncclSuccess;
    for (struct tt_plan *plan = plans; plan && !rc; plan = plan->next_in_group) {
        if (tt_global_check_wanted(plan)) rc = collect(plan);
    }
    return rc;
}

/* ---- the wire ---- */

static void turn_words(struct entry *entry)
{
    uint64_t words[ENTRY_WORDS];
    memcpy(words, entry, sizeof(words));
    for (int k = 0; k < ENTRY_WORDS; k++)
        words[k] = htole64(words[k]); /* its own inverse */
    memcpy(entry, words, sizeof(words));
}

/* The rank so far away in a round: +1 after this one, -1 before it. */
static int partner(const struct tt_plan *plan, int round, int side)
{
    const struct tt_member *member = &plan->comm->member;
    const int64_t far = ((int64_t)1 << round) * side;
    return (int)((member->rank + far + member->nranks) % member->nranks);
}

/* The calls that may be sent in a round: those that have come through the one before. */
static int ready(const struct tt_global_check *check, int round)
{
    return round == 0 ? check->nown : check->rounds[round - 1].done;
}

static void send_round(const struct tt_plan *plan, int round)
{
    struct tt_global_check *check = plan->global_check;
    const int to = partner(plan, round, 1), end = ready(check, round);
    struct message message;
    for (int *sent = &check->rounds[round].sent, count; *sent < end; *sent += count) {
        count = end - *sent < ENTRIES ? end - *sent : ENTRIES;
        message.first = htole64(check->made + (uint64_t)*sent);
        message.count = htole64((uint64_t)count);
        memcpy(message.entries, check->own + *sent, (size_t)count * sizeof(struct entry));
        for (int k = 0; k < count; k++)
            turn_words(&message.entries[k]);
        tt_bootstrap_send(plan->comm->bootstrap, to, TAG_CALLS, &message,
                          MESSAGE_BYTES((size_t)count));
    }
}

/* The next message of a round's partner; false: none has come. */
static bool receive(const struct tt_plan *plan, int round)
{
    const int from = partner(plan, round, -1);
    struct message *message = &plan->global_check->rounds[round].received;
    size_t bytes = 0;
    while (!tt_bootstrap_poll(plan->comm->bootstrap, from, TAG_CALLS, message, sizeof(*message),
                              &bytes)) {
        message->first = le64toh(message->first);
        message->count = le64toh(message->count);
        if (bytes < MESSAGE_BYTES(0) || message->count > ENTRIES ||
            bytes != MESSAGE_BYTES((size_t)message->count))
            continue;
        for (uint64_t k = 0; k < message->count; k++)
            turn_words(&message->entries[k]);
        return true;
    }
    message->count = 0;
    return false;
}

/* ---- what differs ---- */

static void report_mismatch(struct tt_plan *plan, int round, const struct entry *theirs)
{
    const struct tt_comm *comm = plan->comm;
    const struct tt_global_check *check = plan->global_check;
    const int at = check->rounds[round].done, peer = partner(plan, round, -1);
    const unsigned long long number = check->made + (uint64_t)at + 1;
    const bool first = comm->member.rank < peer;
    struct tt_call mine, others;
    char calls[2][TT_CALL_BYTES];
    memcpy(&mine, check->own[at].call, sizeof(mine));
    memcpy(&others, theirs->call, sizeof(others));
    tt_call_text(first ? &mine : &others, false, calls[0]);
    tt_call_text(first ? &others : &mine, false, calls[1]);
    if (!tt_call_same(&mine, &others)) {
        tt_transport_mismatch(
            comm->transport,
            "ranks called different operations: rank %d called %s, rank %d called "
            "%s, each as its collective call %llu; all ranks must make the same "
            "calls in the same order",
            first ? comm->member.rank : peer, calls[0], first ? peer : comm->member.rank, calls[1],
            number);
        return;
    }
    char why[TT_WHY_BYTES];
    snprintf(why, sizeof(why),
             "rank %d and rank %d called %s as collective call %llu with buffers that do not lie "
             "at the same places of symmetric windows (NCCL_CHECK_MODE=DEBUG_GLOBAL)",
             first ? comm->member.rank : peer, first ? peer : comm->member.rank, calls[0], number);
    tt_bootstrap_fail_all(comm->bootstrap, ncclInvalidArgument, why);
}

static bool agrees(const struct entry *a, const struct entry *b)
{
    struct tt_call calls[2];
    memcpy(&calls[0], a->call, sizeof(calls[0]));
    memcpy(&calls[1], b->call, sizeof(calls[1]));
    return tt_call_same(&calls[0], &calls[1]) &&
           (a->in == b->in || a->in == ANY_PLACE || b->in == ANY_PLACE) &&
           (a->out == b->out || a->out == ANY_PLACE || b->out == ANY_PLACE);
}

/* What the communicator has failed with. */
static ncclResult_t failed(struct tt_plan *plan)
{
    struct tt_call call = {0};
    if (plan->global_check->nown > 0) memcpy(&call, plan->global_check->own[0].call, sizeof(call));
    char name[64];
    snprintf(name, sizeof(name), "nccl%s", tt_func_name((enum tt_func)call.func));
    ncclResult_t rc = tt_comm_check_state(plan->comm, name);
    if (rc) return rc;
    return tt_fail(ncclInvalidUsage, "%s: rank %d: the communicator was revoked", name,
                   plan->comm->member.rank);
}

/* ---- rounds ---- */

static void stop_waiting(struct tt_global_check *check)
{
    if (check->wait >= 0) tt_wait_leave(check->wait);
    check->wait = -1;
}

static void note_wait(const struct tt_plan *plan, int round)
{
    struct tt_global_check *check = plan->global_check;
    const _Atomic uint64_t *begun = tt_transport_begun(plan->comm->transport);
    struct tt_wait wait = {.owner = &plan->comm->member,
                           .peer = partner(plan, round, -1),
                           .op_seq = atomic_load_explicit(begun, memory_order_relaxed) + 1,
                           .what = TT_WAIT_CALL,
                           .since_nsec = check->since_nsec};
    if (check->wait >= 0 && check->waits_in == round) return;
    stop_waiting(check);
    memcpy(wait.call, check->own[check->rounds[round].done].call, sizeof(wait.call));
    check->wait = tt_wait_enter(&wait);
    check->waits_in = round;
}

/* Compare what has come in a round with the calls that are ready. True when it was all of them. */
static bool compare_round(struct tt_plan *plan, int round)
{
    struct tt_global_check *check = plan->global_check;
    const struct message *received = &check->rounds[round].received;
    int *done = &check->rounds[round].done;
    while (*done < ready(check, round)) {
        const uint64_t number = check->made + (uint64_t)*done;
        if (number >= received->first + received->count || received->count == 0) {
            if (!receive(plan, round)) return false;
            continue;
        }
        const struct entry *theirs =
            number < received->first ? NULL : &received->entries[number - received->first];
        if (theirs && !agrees(&check->own[*done], theirs)) {
            report_mismatch(plan, round, theirs);
            return false; /* for good: the communicator has failed */
        }
        ++*done;
    }
    return true;
}

/* A rank that will never call: it has left, or its process ended. */
static void look_at_partner(struct tt_plan *plan, int round, uint64_t now)
{
    struct tt_global_check *check = plan->global_check;
    const int from = partner(plan, round, -1);
    if (now - check->looked_nsec < LOOK_NSEC) return;
    check->looked_nsec = now;
    if (!tt_bootstrap_rank_ended(plan->comm->bootstrap, from)) return;
    if (compare_round(plan, round)) return; /* what it had said before is here by now */
    struct tt_call call;
    char text[TT_CALL_BYTES], why[TT_WHY_BYTES];
    memcpy(&call, check->own[check->rounds[round].done].call, sizeof(call));
    tt_call_text(&call, false, text);
    snprintf(why, sizeof(why), "rank %d has ended the communicator, or its process, before %s",
             from, text);
    tt_bootstrap_fail_all(plan->comm->bootstrap, ncclRemoteError, why);
}

static void warn(struct tt_plan *plan, int round)
{
    struct tt_global_check *check = plan->global_check;
    const struct tt_member *member = &plan->comm->member;
    const int from = partner(plan, round, -1);
    int pid = 0;
    struct tt_call call;
    char text[TT_CALL_BYTES], name[TT_QUOTED_BYTES];
    check->timeout_nsec = SHORT_TIMEOUT_NSEC;
    if (check->reported) return;
    check->reported = true;
    memcpy(&call, check->own[check->rounds[round].done].call, sizeof(call));
    tt_call_text(&call, false, text);
    const char *host = tt_bootstrap_peer(plan->comm->bootstrap, from, &pid);
    tt_warn("comm 0x%llx%s rank %d of %d: rank %d on host %s (pid %d) has not come to %s within "
            "%llu s; it begins without being compared with that rank "
            "(NCCL_CHECK_MODE=DEBUG_GLOBAL). A thread that calls for several ranks must do so "
            "between ncclGroupStart and ncclGroupEnd",
            (unsigned long long)member->comm_id, tt_member_quoted(member, name, sizeof(name)),
            member->rank, member->nranks, from, host, pid, text, TIMEOUT_NSEC / 1000000000ull);
}

/* Send and compare what can be. Returns the first round in which a rank has not come; nrounds:
 * there is none. */
static int look(struct tt_plan *plan)
{
    struct tt_global_check *check = plan->global_check;
    int first = check->nrounds;
    for (int round = 0; round < check->nrounds; round++) {
        send_round(plan, round);
        if (!compare_round(plan, round) && first == check->nrounds) first = round;
    }
    return first;
}

/* One look. True when the plan's calls were compared with all ranks, or need not be any more. */
static bool advance(struct tt_plan *plan, uint64_t now)
{
    struct tt_global_check *check = plan->global_check;
    int round;
    while ((round = look(plan)) < check->nrounds) {
        if (tt_member_aborted(&plan->comm->member)) return false;
        if (now - check->since_nsec < check->timeout_nsec) {
            note_wait(plan, round);
            look_at_partner(plan, round, now);
            return false;
        }
        warn(plan, round);
        check->late = true;
        check->since_nsec = now;
        check->rounds[round].done = ready(check, round);
    }
    return true;
}

static void begin(struct tt_plan *plan, uint64_t now)
{
    struct tt_global_check *check = plan->global_check;
    for (int round = 0; round < check->nrounds; round++)
        check->rounds[round].sent = check->rounds[round].done = 0;
    check->late = false;
    check->since_nsec = check->looked_nsec = now;
}

static void end(struct tt_plan *plan)
{
    struct tt_global_check *check = plan->global_check;
    stop_waiting(check);
    if (!check->late) check->timeout_nsec = TIMEOUT_NSEC;
    check->made += (uint64_t)check->nown;
    check->nown = 0;
}

/* One look at all plans before `behind`. ncclInProgress: some ranks have not come. */
static ncclResult_t advance_all(struct tt_plan *plans, const struct tt_plan *behind)
{
    const uint64_t now = tt_now_nsec();
    ncclResult_t rc = ncclSuccess;
    for (struct tt_plan *plan = plans; plan != behind; plan = plan->next_in_group) {
        if (!tt_global_check_wanted(plan)) continue;
        if (tt_member_aborted(&plan->comm->member)) return failed(plan);
        if (!advance(plan, now)) rc = ncclInProgress;
    }
    return rc;
}

static ncclResult_t compare(struct tt_plan *plans, const struct tt_plan *behind)
{
    const uint64_t now = tt_now_nsec();
    uint32_t spins = 0;
    for (struct tt_plan *plan = plans; plan != behind; plan = plan->next_in_group) {
        if (tt_global_check_wanted(plan)) begin(plan, now);
    }
    ncclResult_t rc = advance_all(plans, behind);
    for (; rc == ncclInProgress; rc = advance_all(plans, behind)) {
        if (!tuttiHostHelp()) tt_wait_relax(&spins, true);
    }
    for (struct tt_plan *plan = plans; plan != behind; plan = plan->next_in_group) {
        if (tt_global_check_wanted(plan)) end(plan);
    }
    return rc;
}

ncclResult_t tt_global_check_group(struct tt_plan *plans)
{
    for (struct tt_plan *plan = plans; plan; plan = plan->next_in_group) {
        if (tt_global_check_wanted(plan)) return compare(plan, NULL);
    }
    return ncclSuccess;
}

ncclResult_t tt_global_check_call(struct tt_plan *plan, const struct tt_task *task)
{
    if (tt_func_is_message(task->func)) return ncclSuccess;
    ncclResult_t rc = check_create(plan);
    if (rc) return rc;
    plan->global_check->nown = 0;
    rc = note(plan, task);
    return rc ? rc : compare(plan, plan->next_in_group);
}
