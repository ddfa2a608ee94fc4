/* Growth: the ranks of a communicator and new ones meet by an id that one of the old ranks made.
 * The parent lives on; nothing is shared with it. */
#include "base/error.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "base/wait.h"
#include "bootstrap/bootstrap.h"
#include "comm/init.h"
#include "device/device.h"

#include <string.h>

ncclResult_t tt_comm_grow_id(struct tt_comm *comm, ncclUniqueId *id_out)
{
    ncclUniqueId id;
    uint64_t number = comm->child_count + 1;
    ncclResult_t rc = tt_id_create_grow(comm->bootstrap, number, &id);
    if (!rc) rc = tt_id_hand_out(comm->bootstrap, number, &id);
    if (rc) return rc;
    comm->grow_id = id;
    comm->grow_id_made = true;
    *id_out = id;
    return ncclSuccess;
}

bool tt_comm_grow_made(struct tt_comm *parent, const ncclUniqueId *given, ncclUniqueId *id_out)
{
    const ncclUniqueId *used = given ? given : &parent->grow_id;
    bool made = parent->grow_id_made;
    parent->grow_id_made = false;
    if (made) *id_out = parent->grow_id;
    if (made || given) tt_id_grow_by(parent->bootstrap, used);
    return made;
}

/* ---- the bootstrap's id ---- */

#define SHOWN_NSEC 1000000000ull /* rank 0 may come later than that: then it compares */
#define OWN_GROWS 64 /* so many numbers back an id is still known to be of this parent */

struct grow { /* of one existing rank */
    struct tt_comm *parent;
    const struct tt_comm *child;
    const struct tt_comm_request *request;
    uint64_t number;
    ncclUniqueId id; /* zeros: none that is right */
};

/* What other ranks handed out or show. The child's abort flag and the parent's errors end the wait;
 * ncclInProgress: time is up. */
static ncclResult_t await_id(const struct grow *grow, bool shown, uint64_t deadline_nsec,
                             struct tt_grow_id *id_out)
{
    struct tt_comm *parent = grow->parent;
    uint32_t spins = 0;
    for (;;) {
        ncclResult_t rc = shown ? tt_id_shown(parent->bootstrap, grow->number, id_out)
                                : tt_id_take(parent->bootstrap, grow->number, id_out);
        if (rc != ncclInProgress) return rc;
        if (tt_member_aborted(&grow->child->member) || tt_member_aborted(&parent->member)) {
            return tt_fail(ncclInternalError, "ncclCommGrow: rank %d: aborted",
                           parent->member.rank);
        }
        if (tt_now_nsec() > deadline_nsec) return ncclInProgress;
        if (!tuttiHostHelp()) tt_wait_relax(&spins, true);
    }
}

static ncclResult_t take_id(struct grow *grow)
{
    int64_t timeout_sec = tt_init_timeout_sec();
    uint64_t deadline_nsec =
        timeout_sec > 0 ? tt_now_nsec() + (uint64_t)timeout_sec * 1000000000ull : UINT64_MAX;
    struct tt_grow_id taken = {.rank = -1};
    ncclResult_t rc = await_id(grow, false, deadline_nsec, &taken);
    grow->id = taken.id;
    if (rc != ncclInProgress) return rc;
    return tt_fail(ncclTimeout,
                   "ncclCommGrow: rank %d: no rank handed out an id within %lld s; one of the %d "
                   "ranks must call ncclCommGetUniqueId",
                   grow->parent->member.rank, (long long)timeout_sec, grow->parent->member.nranks);
}

static bool is_ours(const struct grow *grow, uint64_t number, const ncclUniqueId *id)
{
    return tt_id_is_grow(grow->parent->bootstrap, number, id);
}

/* The right id in grow->id, else ncclInvalidArgument and none there. */
static ncclResult_t choose_id(struct grow *grow, const ncclUniqueId *given)
{
    static const ncclUniqueId none = {{0}};
    ncclResult_t rc = ncclSuccess;
    if (given) {
        grow->id = *given;
        rc = tt_id_check(given);
    } else {
        rc = take_id(grow);
    }
    if (!rc && !is_ours(grow, grow->number, &grow->id)) {
        rc = tt_fail(ncclInvalidArgument,
                     "ncclCommGrow: rank %d: the id that %s was not made by ncclCommGetUniqueId of "
                     "this communicator for its child %llu: make one after the last Split or Grow",
                     grow->parent->member.rank, given ? "it was given" : "another rank was given",
                     (unsigned long long)grow->number);
    }
    if (rc) grow->id = none;
    if (rc && given) (void)tt_id_hand_out(grow->parent->bootstrap, grow->number, &none);
    return rc;
}

/* No rank is to wait at that id's root for this one. */
static void decline(const struct grow *grow, const ncclUniqueId *id, ncclResult_t rc,
                    const char *sentence)
{
    const struct tt_bootstrap_decline words = {.ids = id,
                                               .nids = 1,
                                               .nranks = grow->request->nranks,
                                               .rank = grow->request->rank,
                                               .thread = grow->request->thread,
                                               .for_good = true,
                                               .rc = rc,
                                               .sentence = sentence};
    tt_bootstrap_decline(&words);
}

/* Rank 0 shows all others its id and they show it theirs; the later one finds the other's and
 * compares. *other_out: one that differs, or of a rank that has none. */
static ncclResult_t compare_ids(const struct grow *grow, bool *differs_out,
                                struct tt_grow_id *other_out)
{
    struct tt_bootstrap *bootstrap = grow->parent->bootstrap;
    bool first = grow->parent->member.rank == 0;
    uint64_t until_nsec = first ? 0 : tt_now_nsec() + SHOWN_NSEC;
    ncclResult_t rc = tt_id_show(bootstrap, grow->number, &grow->id);
    *differs_out = false;
    while (!rc && !*differs_out) {
        rc = await_id(grow, true, until_nsec, other_out);
        *differs_out = !rc && memcmp(&other_out->id, &grow->id, sizeof(grow->id)) != 0;
        if (!first) break;
    }
    return rc == ncclInProgress ? ncclSuccess : rc;
}

static ncclResult_t fail_differing(const struct grow *grow, const struct tt_grow_id *other)
{
    int rank = grow->parent->member.rank;
    if (!is_ours(grow, grow->number, &other->id)) {
        return tt_fail(ncclInvalidArgument,
                       "ncclCommGrow: rank %d: rank %d was given an id that is not for this grow",
                       rank, other->rank);
    }
    return tt_fail(ncclInvalidArgument,
                   "ncclCommGrow: ranks %d and %d were given different ids: one rank calls "
                   "ncclCommGetUniqueId, and whoever passes an id passes that one",
                   rank, other->rank);
}

/* Ranks that wait for this one learn that it does not come: those with the same id, if it
 * is of this parent at all, and those who have the right one. */
static void decline_all(const struct grow *grow, ncclResult_t rc, const ncclUniqueId *given,
                        const struct tt_grow_id *other)
{
    char sentence[400];
    uint64_t last = grow->number + 1, k = last > OWN_GROWS ? last - OWN_GROWS : 1;
    tt_error_take(sentence, sizeof(sentence));
    while (given && k <= last && !is_ours(grow, k, given))
        k++;
    if (given && k <= last) decline(grow, given, rc, sentence);
    if (is_ours(grow, grow->number, &other->id)) decline(grow, &other->id, rc, sentence);
    tt_error_keep("%s", sentence);
}

ncclResult_t tt_comm_grow_take(struct tt_comm *parent, struct tt_comm *child, uint64_t number,
                               const ncclUniqueId *given, const struct tt_comm_request *request,
                               ncclUniqueId *id_out)
{
    struct grow grow = {.parent = parent, .child = child, .request = request, .number = number};
    struct tt_grow_id other = {.rank = -1};
    bool differs = false;
    ncclResult_t rc = choose_id(&grow, given);
    tt_id_pass_over(parent->bootstrap, number, rc ? NULL : &grow.id);
    if (rc && rc != ncclInvalidArgument) return rc;
    ncclResult_t compared = compare_ids(&grow, &differs, &other);
    if (!rc) rc = compared;
    if (!rc && differs) rc = fail_differing(&grow, &other);
    if (rc) decline_all(&grow, rc, given ? given : &grow.id, &other);
    if (rc) return rc;
    child->member.comm_id = tt_id_comm(&grow.id, 1);
    *id_out = grow.id;
    return ncclSuccess;
}
