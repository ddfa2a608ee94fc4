/* Children through a parent: split (all parent ranks call) and shrink (the survivors call).
 * A child meets by the parent's addresses and a secret derived from the parent's. */
#include "base/error.h"
#include "base/mem.h"
#include "bootstrap/bootstrap.h"
#include "comm/init.h"
#include "device/device.h"

#include <stdlib.h>

enum child_kind { CHILD_SPLIT = 1, CHILD_SHRINK = 2 };

struct split_args { /* what each rank says in a split */
    int32_t color, key, rank;
};

static int compare_args(const void *left, const void *right)
{
    const struct split_args *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->rank - b->rank;
}

/* Same for all members of the child, different for all children of all communicators. */
static uint64_t child_id(const struct tt_comm *parent, const uint64_t salt[3])
{
    uint64_t hash = parent->member.comm_id;
    for (int i = 0; i < 3; i++) {
        hash = (hash ^ salt[i]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return hash;
}

/* init->child.parent_ranks: parent ranks of the child's members in child order. A rank that cannot
 * go to the bootstrap reports it to those that may be there. */
static ncclResult_t child_run(struct tt_comm *parent, struct tt_comm *child, int nranks,
                              struct tt_init *init, bool share)
{
    int rank = 0;
    while (rank < nranks && init->child.parent_ranks[rank] != parent->member.rank)
        rank++;
    child->member.rank = rank;
    child->member.nranks = nranks;
    child->member.comm_id = child_id(parent, init->child.salt);
    if (child->config.maxP2pPeers > nranks) child->config.maxP2pPeers = nranks;
    child->parent = parent;
    init->comm = child;
    init->parent = parent->bootstrap;
    int before = tuttiHostGetDevice();
    /* Operations of all that share resources take one issue queue, and an abort of one ends all. A
     * revoked or failed parent has nothing to share. */
    bool can_share =
        atomic_load(&parent->phase) != TT_COMM_REVOKED && !tt_member_aborted(&parent->member);
    ncclResult_t rc = share && can_share ? tt_sharers_join(parent, child) : ncclSuccess;
    if (!rc) rc = tt_init_run(init);
    tuttiHostSetDevice(before);
    if (rc && !init->joined)
        tt_bootstrap_child_fail(parent->bootstrap, &init->child, nranks, tt_last_error());
    return rc;
}

/* Members of one color in child order; *count_out of them. */
static int choose_members(struct split_args *args, int n, int color)
{
    int count = 0;
    for (int r = 0; r < n; r++) {
        if (args[r].color == color) args[count++] = args[r];
    }
    qsort(args, (size_t)count, sizeof(*args), compare_args);
    return count;
}

uint64_t tt_comm_count_child(struct tt_comm *parent)
{
    return ++parent->child_count;
}

ncclResult_t tt_comm_split(struct tt_comm *parent, const struct tt_comm_color *own,
                           struct tt_comm *child)
{
    int n = parent->member.nranks;
    struct split_args mine = {.color = own->color, .key = own->key, .rank = parent->member.rank};
    struct split_args *args = tt_calloc((size_t)n, sizeof(*args));
    int *ranks = tt_calloc((size_t)n, sizeof(*ranks));
    ncclResult_t rc = ncclSuccess;
    if (!args || !ranks) { /* the others would wait for this one's color */
        rc = tt_fail(ncclSystemError, "rank %d: out of memory", parent->member.rank);
        tt_bootstrap_fail(parent->bootstrap, rc, tt_last_error());
        goto out;
    }
    atomic_store_explicit(&parent->member.meets, "ncclCommSplit", memory_order_relaxed);
    rc = tt_bootstrap_allgather(parent->bootstrap, &mine, sizeof(mine), args);
    atomic_store_explicit(&parent->member.meets, NULL, memory_order_relaxed);
    if (rc || !child) goto out;
    int count = choose_members(args, n, own->color);
    for (int i = 0; i < count; i++)
        ranks[i] = args[i].rank;
    child->color = own->color;
    child->key = own->key;
    struct tt_init init = {
        .child = {.salt = {CHILD_SPLIT, own->number, (uint64_t)(uint32_t)own->color},
                  .parent_ranks = ranks,
                  .whole_parent = true}};
    rc = child_run(parent, child, count, &init, parent->config.splitShare != 0);
out:
    free(args);
    free(ranks);
    return rc;
}

/* ---- shrink ---- */

static ncclResult_t survivors(const struct tt_comm *parent, const int *exclude, int nexclude,
                              int *ranks, int *count_out)
{
    int n = parent->member.nranks, count = 0;
    for (int r = 0; r < n; r++)
        ranks[r] = 1;
    for (int i = 0; i < nexclude; i++) {
        if (exclude[i] < 0 || exclude[i] >= n || !ranks[exclude[i]]) {
            return tt_fail(ncclInvalidArgument,
                           "ncclCommShrink: excluded rank %d is outside 0..%d or listed twice",
                           exclude[i], n - 1);
        }
        ranks[exclude[i]] = 0;
    }
    if (!ranks[parent->member.rank]) {
        return tt_fail(ncclInvalidArgument, "ncclCommShrink: rank %d excludes itself",
                       parent->member.rank);
    }
    for (int r = 0; r < n; r++) {
        if (ranks[r]) ranks[count++] = r;
    }
    *count_out = count;
    return ncclSuccess;
}

/* NCCL_SHRINK_ABORT: what still runs on the parent is given up; the flag goes down again. */
static void stop_parent(struct tt_comm *parent)
{
    bool raised = tt_member_abort(&parent->member, ncclInvalidUsage);
    tt_sharers_drain(parent);
    if (raised) tt_member_resume(&parent->member, atomic_load(&parent->queue_used->issued));
}

struct tt_shrinks {
    struct tt_shrinks *next;
    uint64_t members; /* hash of the survivors' ranks */
    uint64_t count;
};

/* How often these survivors have shrunk the parent, this time included: equal on all of them, and
 * the others need not know. 0 when memory is short. */
static uint64_t shrink_number(struct tt_comm *parent, uint64_t members)
{
    struct tt_shrinks *own = parent->shrinks;
    while (own && own->members != members)
        own = own->next;
    if (!own) {
        own = tt_calloc(1, sizeof(*own));
        if (!own) return 0;
        own->members = members;
        own->next = parent->shrinks;
        parent->shrinks = own;
    }
    return ++own->count;
}

void tt_shrinks_free(struct tt_comm *comm)
{
    while (comm->shrinks) {
        struct tt_shrinks *own = comm->shrinks;
        comm->shrinks = own->next;
        free(own);
    }
}

/* The parent failed, and not because of a member. */
static bool failed_outside(const struct tt_comm *parent, const int *members, int count)
{
    int failed = tt_bootstrap_error_rank(parent->bootstrap);
    for (int i = 0; i < count; i++) {
        if (members[i] == failed) return false;
    }
    return failed >= 0;
}

ncclResult_t tt_comm_shrink(struct tt_comm *parent, const int *exclude, int nexclude,
                            struct tt_comm *child, int flags)
{
    int n = parent->member.nranks, count = 0;
    int *ranks = tt_calloc((size_t)n, sizeof(*ranks));
    if (!ranks) return tt_fail(ncclSystemError, "rank %d: out of memory", parent->member.rank);
    if (flags & NCCL_SHRINK_ABORT) stop_parent(parent);
    ncclResult_t rc = survivors(parent, exclude, nexclude, ranks, &count);
    bool share = parent->config.shrinkShare && !(flags & NCCL_SHRINK_ABORT);
    if (!rc) {
        uint64_t members = tt_hash_bytes(TT_HASH_START, ranks, (size_t)count * sizeof(*ranks));
        uint64_t number = shrink_number(parent, members);
        struct tt_init init = {
            .child = {.salt = {CHILD_SHRINK, number, members},
                      .parent_ranks = ranks,
                      .leaves_parent = (flags & NCCL_SHRINK_ABORT) ||
                                       atomic_load(&parent->phase) == TT_COMM_REVOKED ||
                                       failed_outside(parent, ranks, count)}};
        if (!number) rc = tt_fail(ncclSystemError, "rank %d: out of memory", parent->member.rank);
        if (!rc) rc = child_run(parent, child, count, &init, share);
    }
    free(ranks);
    return rc;
}
