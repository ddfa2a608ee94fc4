/* Makes the programs of all ranks the way the planner does. */
#include "program_set.h"

#include "unit/check.h"

#include <stdio.h>
#include <stdlib.h>

static const struct program_case cases[] = {
    {TT_FUNC_ALLREDUCE, TT_ALGO_DIRECT, TT_PROTO_SIMPLE, false},
    {TT_FUNC_REDUCE, TT_ALGO_DIRECT, TT_PROTO_SIMPLE, true},
    {TT_FUNC_BROADCAST, TT_ALGO_DIRECT, TT_PROTO_SIMPLE, true},
    {TT_FUNC_ALLGATHER, TT_ALGO_DIRECT, TT_PROTO_SIMPLE, false},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_DIRECT, TT_PROTO_SIMPLE, false},
    {TT_FUNC_ALLTOALL, TT_ALGO_DIRECT, TT_PROTO_SIMPLE, false},
    {TT_FUNC_GATHER, TT_ALGO_DIRECT, TT_PROTO_SIMPLE, true},
    {TT_FUNC_SCATTER, TT_ALGO_DIRECT, TT_PROTO_SIMPLE, true},
    {TT_FUNC_ALLREDUCE, TT_ALGO_ONESHOT, TT_PROTO_LL, false},
    {TT_FUNC_REDUCE, TT_ALGO_ONESHOT, TT_PROTO_LL, true},
    {TT_FUNC_BROADCAST, TT_ALGO_ONESHOT, TT_PROTO_LL, true},
    {TT_FUNC_ALLGATHER, TT_ALGO_ONESHOT, TT_PROTO_LL, false},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_ONESHOT, TT_PROTO_LL, false},
    {TT_FUNC_ALLTOALL, TT_ALGO_ONESHOT, TT_PROTO_LL, false},
    {TT_FUNC_GATHER, TT_ALGO_ONESHOT, TT_PROTO_LL, true},
    {TT_FUNC_SCATTER, TT_ALGO_ONESHOT, TT_PROTO_LL, true},
    {TT_FUNC_ALLREDUCE, TT_ALGO_RING, TT_PROTO_SIMPLE, false},
    {TT_FUNC_REDUCE, TT_ALGO_RING, TT_PROTO_LL, true},
    {TT_FUNC_BROADCAST, TT_ALGO_RING, TT_PROTO_LL128, true},
    {TT_FUNC_ALLGATHER, TT_ALGO_RING, TT_PROTO_SIMPLE, false},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_RING, TT_PROTO_SIMPLE, false},
    {TT_FUNC_ALLREDUCE, TT_ALGO_TREE, TT_PROTO_LL, false},
    {TT_FUNC_ALLGATHER, TT_ALGO_PAT, TT_PROTO_SIMPLE, false},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_PAT, TT_PROTO_SIMPLE, false},
    {TT_FUNC_BROADCAST, TT_ALGO_TREE, TT_PROTO_SIMPLE, true},
    {TT_FUNC_REDUCE, TT_ALGO_TREE, TT_PROTO_SIMPLE, true},
    {TT_FUNC_ALLREDUCE, TT_ALGO_DOUBLING, TT_PROTO_LL, false},
    {TT_FUNC_ALLREDUCE, TT_ALGO_HALVING, TT_PROTO_SIMPLE, false},
    {TT_FUNC_ALLGATHER, TT_ALGO_BRUCK, TT_PROTO_LL, false},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_BRUCK, TT_PROTO_LL, false},
    {TT_FUNC_ALLTOALL, TT_ALGO_BRUCK, TT_PROTO_LL, false},
    {TT_FUNC_ALLTOALL, TT_ALGO_PAIRWISE, TT_PROTO_SIMPLE, false},
    {TT_FUNC_ALLREDUCE, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE, false},
    {TT_FUNC_ALLREDUCE, TT_ALGO_HIERARCHICAL, TT_PROTO_LL, false},
    {TT_FUNC_REDUCE, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE, true},
    {TT_FUNC_BROADCAST, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE, true},
    {TT_FUNC_ALLGATHER, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE, false},
    {TT_FUNC_ALLGATHER, TT_ALGO_HIERARCHICAL, TT_PROTO_LL, false},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE, false},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_HIERARCHICAL, TT_PROTO_LL, false},
    {TT_FUNC_ALLTOALL, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE, false},
    {TT_FUNC_ALLTOALL, TT_ALGO_HIERARCHICAL, TT_PROTO_LL, false},
    {TT_FUNC_ALLREDUCE, TT_ALGO_COLLNET_DIRECT, TT_PROTO_SIMPLE, false},
    {TT_FUNC_ALLREDUCE, TT_ALGO_COLLNET_CHAIN, TT_PROTO_SIMPLE, false},
    {TT_FUNC_ALLGATHER, TT_ALGO_COLLNET_DIRECT, TT_PROTO_SIMPLE, false},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_COLLNET_DIRECT, TT_PROTO_SIMPLE, false},
    {TT_FUNC_ALLREDUCE, TT_ALGO_NVLS, TT_PROTO_SIMPLE, false},
    {TT_FUNC_ALLGATHER, TT_ALGO_NVLS, TT_PROTO_SIMPLE, false},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_NVLS, TT_PROTO_SIMPLE, false},
    {TT_FUNC_ALLREDUCE, TT_ALGO_NVLS_TREE, TT_PROTO_SIMPLE, false},
};

const struct program_case *program_cases(int *count_out)
{
    *count_out = (int)(sizeof(cases) / sizeof(cases[0]));
    return cases;
}

bool program_needs_hosts(enum tt_algo algo)
{
    return algo == TT_ALGO_HIERARCHICAL || algo == TT_ALGO_NVLS_TREE ||
           algo == TT_ALGO_COLLNET_CHAIN || algo == TT_ALGO_COLLNET_DIRECT;
}

bool program_is_direct(enum tt_algo algo)
{
    return algo == TT_ALGO_DIRECT || algo == TT_ALGO_NVLS;
}

static void plan_hosts(struct program_set *set, int per_host)
{
    int nhosts = (set->nranks + per_host - 1) / per_host;
    struct tt_topo_rank *ranks = calloc((size_t)set->nranks, sizeof(*ranks));
    assert_non_null(ranks);
    for (int r = 0; r < set->nranks; r++) {
        ranks[r].node = r % nhosts;
        ranks[r].local_rank = r / nhosts;
    }
    assert_int_equal(tt_topo_plan_make(ranks, set->nranks, 2, &set->plan), ncclSuccess);
    free(ranks);
}

/* Hosts of as many ranks each, dealt out round robin: as many as the plan has if that is possible,
 * else the smallest number that is, for the other channel the largest. */
static void even_hosts(struct program_set *set, int nhosts, int channel)
{
    int n = set->nranks, least = 2;
    while (n % least != 0)
        least++;
    if (nhosts < 2 || n % nhosts != 0) nhosts = channel && least < n ? n / least : least;
    set->by_host = calloc((size_t)n, sizeof(*set->by_host));
    assert_non_null(set->by_host);
    for (int rank = 0; rank < n; rank++)
        set->by_host[rank % nhosts * (n / nhosts) + rank / nhosts] = rank;
    set->nhosts = nhosts;
}

struct program_set program_set_make(const struct program_case *what, int root, int nranks,
                                    int per_host, int channel)
{
    struct program_set set = {.nranks = nranks};
    plan_hosts(&set, per_host);
    even_hosts(&set, (nranks + per_host - 1) / per_host, channel);
    set.programs = calloc((size_t)nranks, sizeof(*set.programs));
    assert_non_null(set.programs);
    struct tt_shape shape = {.nranks = nranks,
                             .ring_rank = set.plan.ring[channel],
                             .tree = set.plan.tree[channel],
                             .by_host = set.by_host,
                             .nhosts = set.nhosts,
                             .head = channel};
    bool pair = what->func == TT_FUNC_SEND;
    for (int k = 0; k <= (int)pair; k++) {
        enum tt_func func = pair && k == 1 ? TT_FUNC_RECV : what->func;
        int peer = pair ? 1 - k : root;
        assert_int_equal(tt_program_make(func, what->algo, what->proto, what->rooted ? peer : -1,
                                         &shape, &set.blocks[k]),
                         ncclSuccess);
    }
    for (int rank = 0; rank < nranks; rank++)
        set.programs[rank] = set.blocks[pair ? rank : 0];
    return set;
}

static void uneven_hosts(struct program_set *set, const int *sizes, int nhosts)
{
    set->nhosts = nhosts;
    set->by_host = calloc((size_t)set->nranks, sizeof(*set->by_host));
    set->host_first = calloc((size_t)nhosts + 1, sizeof(*set->host_first));
    assert_true(set->by_host && set->host_first);
    for (int host = 0; host < nhosts; host++)
        set->host_first[host + 1] = set->host_first[host] + sizes[host];
    int rank = 0;
    for (int turn = 0; rank < set->nranks; turn++) {
        for (int host = 0; host < nhosts; host++) {
            if (turn < sizes[host]) set->by_host[set->host_first[host] + turn] = rank++;
        }
    }
}

struct program_set program_set_make_uneven(const struct program_case *what, int root,
                                           const int *sizes, int nhosts)
{
    struct program_set set = {.nranks = 0};
    for (int host = 0; host < nhosts; host++)
        set.nranks += sizes[host];
    uneven_hosts(&set, sizes, nhosts);
    set.programs = calloc((size_t)set.nranks, sizeof(*set.programs));
    assert_non_null(set.programs);
    struct tt_shape shape = {.nranks = set.nranks,
                             .by_host = set.by_host,
                             .host_first = set.host_first,
                             .nhosts = nhosts};
    assert_int_equal(tt_program_make(what->func, what->algo, what->proto, what->rooted ? root : -1,
                                     &shape, &set.blocks[0]),
                     ncclSuccess);
    for (int rank = 0; rank < set.nranks; rank++)
        set.programs[rank] = set.blocks[0];
    return set;
}

void program_set_free(struct program_set *set)
{
    free(set->blocks[0]);
    free(set->blocks[1]);
    free(set->programs);
    free(set->by_host);
    free(set->host_first);
    tt_topo_plan_free(&set->plan);
}
