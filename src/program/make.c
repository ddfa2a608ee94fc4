/* Which generator makes which program: one row per function and algorithm. A new algorithm is one
 * file in gen/ and its rows here. */
#include "gen/gen.h"

#include "base/error.h"
#include "base/mem.h"
#include "program.h"

#include <stdlib.h>
#include <string.h>

enum needs {
    NEEDS_ROOT = 1,
    NEEDS_RING = 2,
    NEEDS_PEER = 4,
    NEEDS_TREE = 8,
    NEEDS_HOSTS = 16,
    TAKES_UNEVEN = 32, /* hosts with different numbers of ranks */
    NEEDS_COUNTS = 64,
};

enum { LL = 1 << TT_PROTO_LL, SIMPLE = 1 << TT_PROTO_SIMPLE, ALL = LL | 2 | SIMPLE };

struct row {
    enum tt_func func;
    enum tt_algo algo;
    int protos; /* bit per enum tt_proto */
    int needs;
    tt_generate *generate;
};

static const struct row rows[] = {
    {TT_FUNC_ALLREDUCE, TT_ALGO_DIRECT, SIMPLE, 0, tt_gen_direct_allreduce},
    {TT_FUNC_REDUCE, TT_ALGO_DIRECT, SIMPLE, NEEDS_ROOT, tt_gen_direct_reduce},
    {TT_FUNC_BROADCAST, TT_ALGO_DIRECT, SIMPLE, NEEDS_ROOT, tt_gen_direct_broadcast},
    {TT_FUNC_ALLGATHER, TT_ALGO_DIRECT, SIMPLE, 0, tt_gen_direct_allgather},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_DIRECT, SIMPLE, 0, tt_gen_direct_reducescatter},
    {TT_FUNC_ALLTOALL, TT_ALGO_DIRECT, SIMPLE, 0, tt_gen_direct_alltoall},
    {TT_FUNC_GATHER, TT_ALGO_DIRECT, SIMPLE, NEEDS_ROOT, tt_gen_direct_gather},
    {TT_FUNC_SCATTER, TT_ALGO_DIRECT, SIMPLE, NEEDS_ROOT, tt_gen_direct_scatter},
    {TT_FUNC_ALLREDUCE, TT_ALGO_ONESHOT, LL, 0, tt_gen_oneshot_allreduce},
    {TT_FUNC_REDUCE, TT_ALGO_ONESHOT, LL, NEEDS_ROOT, tt_gen_oneshot_reduce},
    {TT_FUNC_BROADCAST, TT_ALGO_ONESHOT, LL, NEEDS_ROOT, tt_gen_oneshot_broadcast},
    {TT_FUNC_ALLGATHER, TT_ALGO_ONESHOT, LL, 0, tt_gen_oneshot_allgather},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_ONESHOT, LL, 0, tt_gen_oneshot_reducescatter},
    {TT_FUNC_ALLTOALL, TT_ALGO_ONESHOT, LL, 0, tt_gen_oneshot_alltoall},
    {TT_FUNC_GATHER, TT_ALGO_ONESHOT, LL, NEEDS_ROOT, tt_gen_oneshot_gather},
    {TT_FUNC_SCATTER, TT_ALGO_ONESHOT, LL, NEEDS_ROOT, tt_gen_oneshot_scatter},
    {TT_FUNC_ALLREDUCE, TT_ALGO_RING, ALL, NEEDS_RING, tt_gen_ring_allreduce},
    {TT_FUNC_REDUCE, TT_ALGO_RING, ALL, NEEDS_RING | NEEDS_ROOT, tt_gen_ring_reduce},
    {TT_FUNC_BROADCAST, TT_ALGO_RING, ALL, NEEDS_RING | NEEDS_ROOT, tt_gen_ring_broadcast},
    {TT_FUNC_ALLGATHER, TT_ALGO_RING, ALL, NEEDS_RING, tt_gen_ring_allgather},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_RING, ALL, NEEDS_RING, tt_gen_ring_reducescatter},
    {TT_FUNC_ALLREDUCE, TT_ALGO_TREE, ALL, NEEDS_TREE, tt_gen_tree_allreduce},
    {TT_FUNC_BROADCAST, TT_ALGO_TREE, ALL, NEEDS_TREE | NEEDS_ROOT, tt_gen_tree_broadcast},
    {TT_FUNC_REDUCE, TT_ALGO_TREE, ALL, NEEDS_TREE | NEEDS_ROOT, tt_gen_tree_reduce},
    {TT_FUNC_ALLGATHER, TT_ALGO_PAT, SIMPLE, 0, tt_gen_pat_allgather},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_PAT, SIMPLE, 0, tt_gen_pat_reducescatter},
    {TT_FUNC_ALLREDUCE, TT_ALGO_DOUBLING, LL, 0, tt_gen_doubling_allreduce},
    {TT_FUNC_ALLREDUCE, TT_ALGO_HALVING, SIMPLE, 0, tt_gen_halving_allreduce},
    {TT_FUNC_ALLGATHER, TT_ALGO_BRUCK, LL, 0, tt_gen_bruck_allgather},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_BRUCK, LL, 0, tt_gen_bruck_reducescatter},
    {TT_FUNC_ALLTOALL, TT_ALGO_BRUCK, LL, 0, tt_gen_bruck_alltoall},
    {TT_FUNC_ALLTOALL, TT_ALGO_PAIRWISE, SIMPLE, 0, tt_gen_pairwise_alltoall},
    {TT_FUNC_ALLTOALLV, TT_ALGO_PAIRWISE, SIMPLE, NEEDS_COUNTS, tt_gen_pairwise_alltoallv},
    {TT_FUNC_ALLTOALLV, TT_ALGO_BRUCK, LL, NEEDS_COUNTS, tt_gen_bruck_alltoallv},
    {TT_FUNC_ALLREDUCE, TT_ALGO_HIERARCHICAL, LL | SIMPLE, NEEDS_HOSTS | TAKES_UNEVEN,
     tt_gen_hierarchical_allreduce},
    {TT_FUNC_REDUCE, TT_ALGO_HIERARCHICAL, SIMPLE, NEEDS_HOSTS | NEEDS_ROOT | TAKES_UNEVEN,
     tt_gen_hierarchical_reduce},
    {TT_FUNC_BROADCAST, TT_ALGO_HIERARCHICAL, SIMPLE, NEEDS_HOSTS | NEEDS_ROOT | TAKES_UNEVEN,
     tt_gen_hierarchical_broadcast},
    {TT_FUNC_ALLGATHER, TT_ALGO_HIERARCHICAL, LL | SIMPLE, NEEDS_HOSTS | TAKES_UNEVEN,
     tt_gen_hierarchical_allgather},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_HIERARCHICAL, LL | SIMPLE, NEEDS_HOSTS | TAKES_UNEVEN,
     tt_gen_hierarchical_reducescatter},
    {TT_FUNC_ALLTOALL, TT_ALGO_HIERARCHICAL, LL | SIMPLE, NEEDS_HOSTS | TAKES_UNEVEN,
     tt_gen_hierarchical_alltoall},
    {TT_FUNC_ALLREDUCE, TT_ALGO_COLLNET_DIRECT, SIMPLE, NEEDS_HOSTS,
     tt_gen_collnet_direct_allreduce},
    {TT_FUNC_ALLREDUCE, TT_ALGO_COLLNET_CHAIN, SIMPLE, NEEDS_HOSTS, tt_gen_collnet_chain_allreduce},
    {TT_FUNC_ALLGATHER, TT_ALGO_COLLNET_DIRECT, SIMPLE, NEEDS_HOSTS,
     tt_gen_collnet_direct_allgather},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_COLLNET_DIRECT, SIMPLE, NEEDS_HOSTS,
     tt_gen_collnet_direct_reducescatter},
    {TT_FUNC_ALLREDUCE, TT_ALGO_NVLS, SIMPLE, 0, tt_gen_nvls_allreduce},
    {TT_FUNC_ALLGATHER, TT_ALGO_NVLS, SIMPLE, 0, tt_gen_nvls_allgather},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_NVLS, SIMPLE, 0, tt_gen_nvls_reducescatter},
    {TT_FUNC_ALLREDUCE, TT_ALGO_NVLS_TREE, SIMPLE, NEEDS_HOSTS, tt_gen_nvls_tree},
    {TT_FUNC_SEND, TT_ALGO_P2P, LL | SIMPLE, NEEDS_PEER, tt_gen_p2p_send},
    {TT_FUNC_RECV, TT_ALGO_P2P, LL | SIMPLE, NEEDS_PEER, tt_gen_p2p_recv},
};

static const struct row *find(enum tt_func func, enum tt_algo algo, enum tt_proto proto)
{
    if ((unsigned int)proto >= TT_PROTO_COUNT_) return NULL;
    for (size_t i = 0; i < TT_LEN(rows); i++) {
        bool same = rows[i].func == func && rows[i].algo == algo;
        if (same && (rows[i].protos & (1 << proto))) return &rows[i];
    }
    return NULL;
}

bool tt_program_exists(enum tt_func func, enum tt_algo algo, enum tt_proto proto)
{
    return find(func, algo, proto) != NULL;
}

static bool hosts_fit(const struct tt_shape *shape, bool uneven)
{
    if (!shape->by_host || shape->nhosts < 2) return false;
    return shape->host_first ? uneven : shape->nranks % shape->nhosts == 0;
}

static ncclResult_t check_shape(const struct row *row, int root, const struct tt_shape *shape)
{
    const char *name = tt_func_name(row->func);
    int n = shape->nranks;
    if (n < 2) {
        return tt_fail(ncclInvalidArgument, "program %s: there is none for %d ranks", name, n);
    }
    if ((row->needs & (NEEDS_ROOT | NEEDS_PEER)) && (root < 0 || root >= n)) {
        return tt_fail(ncclInvalidArgument, "program %s: root or peer %d is not one of %d ranks",
                       name, root, n);
    }
    const char *lacks = NULL;
    if ((row->needs & NEEDS_RING) && !shape->ring_rank) lacks = "ring";
    if ((row->needs & NEEDS_TREE) && !shape->tree) lacks = "tree";
    if ((row->needs & NEEDS_COUNTS) && !shape->counts) lacks = "counts";
    if ((row->needs & NEEDS_HOSTS) && !hosts_fit(shape, row->needs & TAKES_UNEVEN))
        lacks = "two or more hosts with as many ranks each";
    if (lacks)
        return tt_fail(ncclInvalidArgument, "program %s: %d ranks have no %s", name, n, lacks);
    return ncclSuccess;
}

static ncclResult_t add_ring(const int *ring_rank, struct tt_builder *builder)
{
    int n = builder->head.nranks;
    int32_t *position = tt_calloc((size_t)n, sizeof(*position));
    if (!position) return tt_fail(ncclSystemError, "program: out of memory for a ring");
    memset(position, -1, (size_t)n * sizeof(*position));
    int covered = 0;
    for (int k = 0; k < n; k++) {
        int rank = ring_rank[k];
        bool fresh = rank >= 0 && rank < n && position[rank] < 0;
        if (fresh) position[rank] = k;
        covered += fresh;
    }
    if (covered == n) {
        tt_build_table(builder, TT_TABLE_RING, ring_rank);
        tt_build_table(builder, TT_TABLE_POSITION, position);
    }
    free(position);
    if (covered == n) return ncclSuccess;
    return tt_fail(ncclInvalidArgument, "program %s: a ring of %d ranks holds %d of them",
                   tt_func_name((enum tt_func)builder->head.func), n, covered);
}

/* Blocks of as many parts as the longest has, at least one. */
static void add_counts(const struct tt_shape *shape, struct tt_builder *builder)
{
    size_t n = (size_t)shape->nranks;
    for (size_t k = 0; k < n * n; k++)
        if (shape->counts[k] > builder->head.nparts) builder->head.nparts = shape->counts[k];
    builder->head.in_blocks = true;
    builder->head.out_blocks = true;
    tt_build_counts(builder, shape->counts);
}

ncclResult_t tt_program_make(enum tt_func func, enum tt_algo algo, enum tt_proto proto, int root,
                             const struct tt_shape *shape, struct tt_program **program_out)
{
    const struct row *row = find(func, algo, proto);
    if (!row) {
        return tt_fail(ncclInvalidArgument, "no program for %s with algorithm %s and protocol %s",
                       tt_func_name(func), tt_algo_name(algo), tt_proto_name(proto));
    }
    ncclResult_t rc = check_shape(row, root, shape);
    if (rc) return rc;
    struct tt_builder builder;
    tt_build_begin(&builder, shape->nranks);
    builder.head.func = (int32_t)func;
    builder.head.algo = (int32_t)algo;
    builder.head.proto = (int32_t)proto;
    if (row->needs & (NEEDS_ROOT | NEEDS_PEER)) builder.head.root = root;
    if (row->needs & NEEDS_RING) rc = add_ring(shape->ring_rank, &builder);
    if (row->needs & NEEDS_HOSTS) rc = add_ring(shape->by_host, &builder);
    if (rc) return rc; /* nothing was added */
    if (row->needs & NEEDS_COUNTS) add_counts(shape, &builder);
    row->generate(shape, &builder);
    return tt_build_end(&builder, program_out);
}
