/* Every generated program over every kind of edge, interleaved at random, checked element by
 * element against what the operation means. */
#include "../check.h"
#include "ranks.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct combination {
    enum tt_func func;
    enum tt_algo algo;
    enum tt_proto proto;
};

static const struct combination combinations[] = {
    {TT_FUNC_ALLREDUCE, TT_ALGO_ONESHOT, TT_PROTO_LL},
    {TT_FUNC_ALLREDUCE, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLREDUCE, TT_ALGO_RING, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLREDUCE, TT_ALGO_TREE, TT_PROTO_SIMPLE},
    {TT_FUNC_BROADCAST, TT_ALGO_ONESHOT, TT_PROTO_LL},
    {TT_FUNC_BROADCAST, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
    {TT_FUNC_BROADCAST, TT_ALGO_RING, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCE, TT_ALGO_ONESHOT, TT_PROTO_LL},
    {TT_FUNC_REDUCE, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCE, TT_ALGO_RING, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLGATHER, TT_ALGO_ONESHOT, TT_PROTO_LL},
    {TT_FUNC_ALLGATHER, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLGATHER, TT_ALGO_RING, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_ONESHOT, TT_PROTO_LL},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_RING, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLGATHER, TT_ALGO_PAT, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_PAT, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLTOALL, TT_ALGO_ONESHOT, TT_PROTO_LL},
    {TT_FUNC_ALLTOALL, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
    {TT_FUNC_GATHER, TT_ALGO_ONESHOT, TT_PROTO_LL},
    {TT_FUNC_GATHER, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
    {TT_FUNC_SCATTER, TT_ALGO_ONESHOT, TT_PROTO_LL},
    {TT_FUNC_SCATTER, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
    {TT_FUNC_BROADCAST, TT_ALGO_TREE, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCE, TT_ALGO_TREE, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLREDUCE, TT_ALGO_DOUBLING, TT_PROTO_LL},
    {TT_FUNC_ALLREDUCE, TT_ALGO_HALVING, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLGATHER, TT_ALGO_BRUCK, TT_PROTO_LL},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_BRUCK, TT_PROTO_LL},
    {TT_FUNC_ALLTOALL, TT_ALGO_BRUCK, TT_PROTO_LL},
    {TT_FUNC_ALLTOALL, TT_ALGO_PAIRWISE, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLREDUCE, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLREDUCE, TT_ALGO_HIERARCHICAL, TT_PROTO_LL},
    {TT_FUNC_REDUCE, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE},
    {TT_FUNC_BROADCAST, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLGATHER, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLGATHER, TT_ALGO_HIERARCHICAL, TT_PROTO_LL},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_HIERARCHICAL, TT_PROTO_LL},
    {TT_FUNC_ALLTOALL, TT_ALGO_HIERARCHICAL, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLTOALL, TT_ALGO_HIERARCHICAL, TT_PROTO_LL},
    {TT_FUNC_ALLREDUCE, TT_ALGO_NVLS, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLGATHER, TT_ALGO_NVLS, TT_PROTO_SIMPLE},
    {TT_FUNC_REDUCESCATTER, TT_ALGO_NVLS, TT_PROTO_SIMPLE},
    {TT_FUNC_ALLREDUCE, TT_ALGO_NVLS_TREE, TT_PROTO_SIMPLE},
};

struct trial {
    struct combination what;
    struct world *world;
    size_t count;
    int root;
    bool in_place, foreign;
    enum tt_casts casts; /* every second rank steps through it then */
    int32_t *in[WORLD_MAX], *out[WORLD_MAX];
};

/* Blocks of IN and OUT at a rank; 0: it has none. */
static void blocks_of(const struct trial *trial, int rank, size_t *in, size_t *out)
{
    size_t n = (size_t)trial->world->n;
    bool is_root = rank == trial->root;
    *in = *out = 1;
    switch (trial->what.func) {
    case TT_FUNC_ALLGATHER: *out = n; break;
    case TT_FUNC_REDUCESCATTER: *in = n; break;
    case TT_FUNC_ALLTOALL: *in = *out = n; break;
    case TT_FUNC_REDUCE: *out = is_root ? 1 : 0; break;
    case TT_FUNC_BROADCAST: *in = is_root ? 1 : 0; break;
    case TT_FUNC_GATHER: *out = is_root ? n : 0; break;
    case TT_FUNC_SCATTER: *in = is_root ? n : 0; break;
    default: break;
    }
}

static bool has_in_place(const struct trial *trial)
{
    if (trial->what.func == TT_FUNC_ALLTOALL) return trial->what.algo == TT_ALGO_ONESHOT;
    return true;
}

static int32_t input(int rank, size_t i)
{
    return (int32_t)((size_t)(rank + 1) * 1000003 + i * 7);
}

static void *some_memory(struct trial *trial, size_t bytes)
{
    if (!trial->foreign) return world_memory(trial->world, bytes, 4);
    char *memory = malloc(bytes + 1);
    assert_non_null(memory);
    memset(memory, 0, bytes + 1);
    return memory;
}

/* In place: the smaller buffer lies in the larger at the place of the own block. */
static void set_buffers(struct trial *trial, int r, size_t in, size_t out)
{
    size_t block = trial->count, own = (size_t)r * block;
    size_t most = tt_max_size(in, out) * block;
    int32_t *memory = some_memory(trial, most * 4);
    trial->in[r] = trial->out[r] = memory;
    if (in > 1 && out == 1) trial->out[r] = memory + own;
    if (out > 1 && in == 1) trial->in[r] = memory + own;
}

static void allocate(struct trial *trial, int r)
{
    size_t in, out;
    blocks_of(trial, r, &in, &out);
    if (trial->in_place && in && out) {
        set_buffers(trial, r, in, out);
    } else {
        trial->in[r] = some_memory(trial, in * trial->count * 4);
        trial->out[r] = some_memory(trial, out * trial->count * 4);
    }
    for (size_t i = 0; i < in * trial->count; i++)
        trial->in[r][i] = input(r, i);
}

static void release(struct trial *trial, int r)
{
    if (!trial->foreign) return;
    bool joined = trial->in_place;
    size_t in, out;
    blocks_of(trial, r, &in, &out);
    joined = joined && in && out;
    free(joined && trial->out[r] < trial->in[r] ? trial->out[r] : trial->in[r]);
    if (!joined) free(trial->out[r]);
}

/* The sum over all ranks of element `i` of their inputs; a wrapped product is a wrapped sum. */
static int32_t sum_at(const struct trial *trial, size_t i)
{
    uint32_t n = (uint32_t)trial->world->n;
    return (int32_t)(n * (n + 1) / 2 * 1000003u + n * (uint32_t)i * 7u);
}

static int32_t expected(const struct trial *trial, int rank, size_t block, size_t at)
{
    size_t i = block * trial->count + at, own = (size_t)rank * trial->count;
    switch (trial->what.func) {
    case TT_FUNC_ALLREDUCE:
    case TT_FUNC_REDUCE: return sum_at(trial, i);
    case TT_FUNC_BROADCAST: return input(trial->root, i);
    case TT_FUNC_ALLGATHER:
    case TT_FUNC_GATHER: return input((int)block, at);
    case TT_FUNC_REDUCESCATTER: return sum_at(trial, own + i);
    case TT_FUNC_ALLTOALL: return input((int)block, own + at);
    default: return input(trial->root, own + i); /* Scatter */
    }
}

static void check(const struct trial *trial, int r)
{
    size_t in, out;
    blocks_of(trial, r, &in, &out);
    for (size_t block = 0; block < out; block++) {
        const int32_t *got = trial->out[r] + block * trial->count;
        for (size_t at = 0; at < trial->count; at++) {
            int32_t wanted = expected(trial, r, block, at);
            if (got[at] == wanted) continue;
            fail_msg("%s %s n %d count %zu root %d kind %d %s%s: rank %d block %zu element %zu is "
                     "%d, not %d",
                     tt_func_name(trial->what.func), tt_algo_name(trial->what.algo),
                     trial->world->n, trial->count, trial->root, (int)trial->world->kind,
                     trial->in_place ? "in place " : "", trial->foreign ? "foreign" : "", r, block,
                     at, got[at], wanted);
        }
    }
    if (trial->in_place) return;
    for (size_t i = 0; i < in * trial->count; i++) {
        if (trial->in[r][i] != input(r, i)) fail_msg("rank %d: input %zu was changed", r, i);
    }
}

static void run(struct trial *trial, unsigned seed)
{
    struct world *world = trial->world;
    world_reset(world);
    for (int r = 0; r < world->n; r++)
        allocate(trial, r);
    for (int r = 0; r < world->n; r++) {
        size_t in, out;
        blocks_of(trial, r, &in, &out);
        enum tt_algo algo = trial->what.algo;
        bool one_slot = algo == TT_ALGO_ONESHOT || algo == TT_ALGO_HALVING ||
                        algo == TT_ALGO_BRUCK ||
                        (algo == TT_ALGO_HIERARCHICAL && trial->what.func == TT_FUNC_ALLTOALL);
        struct world_call call = {
            .func = trial->what.func,
            .algo = trial->what.algo,
            .proto = trial->what.proto,
            .root = trial->root,
            .count = trial->count,
            .chunk_limit = (one_slot ? 1 : 3) * world->slice_bytes / 4,
            .type = ncclInt32,
            .op = ncclSum,
            .in = (const char *)trial->in[r],
            .out = (char *)trial->out[r],
            .in_bytes = in * trial->count * 4,
            .out_bytes = out * trial->count * 4,
            .fingerprint = 0xabcd,
            .casts = trial->casts,
            .stepwise = trial->casts && r % 2,
        };
        world_submit(world, r, &call);
    }
    world_run(world, seed);
    for (int r = 0; r < world->n; r++) {
        assert_int_equal(atomic_load(&world->rank[r].member.abort), 0);
        check(trial, r);
    }
    for (int r = 0; r < world->n; r++)
        release(trial, r);
}

static void run_sizes(struct world *world, const struct combination *what)
{
    static const size_t counts[] = {0, 1, 7, 8, 33, 1000, 4099, 20001};
    static unsigned seed = 1;
    struct trial trial = {.what = *what, .world = world};
    for (size_t c = 0; c < TT_LEN(counts); c++) {
        for (int variant = 0; variant < 4; variant++) {
            trial.count = counts[c];
            trial.in_place = variant & 1;
            trial.foreign = variant & 2;
            trial.root = (int)c % world->n;
            if (trial.in_place && !has_in_place(&trial)) continue;
            run(&trial, seed++);
        }
    }
}

static bool has_barrier(const struct combination *what)
{
    return what->algo == TT_ALGO_DIRECT || what->algo == TT_ALGO_NVLS;
}

static void run_world(int n, enum world_kind kind)
{
    struct world *world = world_create(n, kind, 4096);
    for (size_t c = 0; c < TT_LEN(combinations); c++) {
        bool barrier = has_barrier(&combinations[c]);
        if (barrier && kind > WORLD_MAPPED) continue; /* ranks cannot address each other's memory */
        run_sizes(world, &combinations[c]);
    }
    world_destroy(world);
}

static void in_one_process(void **state)
{
    (void)state;
    for (int n = 2; n <= 8; n++)
        run_world(n, WORLD_PROCESS);
}

static void over_mappings(void **state)
{
    (void)state;
    for (int n = 2; n <= 8; n++)
        run_world(n, WORLD_MAPPED);
}

static void through_slots_alone(void **state)
{
    (void)state;
    for (int n = 2; n <= 8; n++)
        run_world(n, WORLD_SHM);
}

/* Slots large enough for references, several operations queued per rank. */
static void large_slices_back_to_back(void **state)
{
    (void)state;
    struct world *world = world_create(3, WORLD_MAPPED, 65536);
    for (size_t c = 0; c < TT_LEN(combinations); c++) {
        struct trial trial = {.what = combinations[c], .world = world, .count = 150001, .root = 1};
        run(&trial, (unsigned)c);
        trial.in_place = has_in_place(&trial);
        run(&trial, (unsigned)c + 100);
    }
    world_destroy(world);
}

/* Sockets take what is sent from where it lies: in place that is written again as soon as the
 * messages of all ranks let it be. */
static void large_slices_over_sockets(void **state)
{
    (void)state;
    for (int n = 2; n <= 5; n++) {
        struct world *world = world_create(n, WORLD_NET, 16384);
        for (size_t c = 0; c < TT_LEN(combinations); c++) {
            struct trial trial = {.what = combinations[c], .world = world, .count = 40003};
            trial.in_place = has_in_place(&trial);
            if (!has_barrier(&combinations[c])) run(&trial, (unsigned)c);
        }
        world_destroy(world);
    }
}

/* Short messages that each rank writes once for all others: the same, or its whole input, of which
 * each takes its block. */
static void written_once(void **state)
{
    static const struct {
        struct combination what;
        enum tt_casts casts;
    } cases[] = {
        {{TT_FUNC_ALLREDUCE, TT_ALGO_ONESHOT, TT_PROTO_LL}, TT_CASTS_SAME},
        {{TT_FUNC_ALLGATHER, TT_ALGO_ONESHOT, TT_PROTO_LL}, TT_CASTS_SAME},
        {{TT_FUNC_REDUCESCATTER, TT_ALGO_ONESHOT, TT_PROTO_LL}, TT_CASTS_PARTS},
        {{TT_FUNC_ALLTOALL, TT_ALGO_ONESHOT, TT_PROTO_LL}, TT_CASTS_PARTS},
    };
    (void)state;
    for (int kind = WORLD_PROCESS; kind <= WORLD_SHM; kind++) {
        for (int n = 3; n <= 8; n++) {
            struct world *world = world_create(n, (enum world_kind)kind, 4096);
            for (int k = 0; k < 4 * 3 * (int)TT_LEN(cases); k++) { /* mixed: one ring for all */
                static const size_t counts[] = {1, 7, 128};
                const size_t c = (size_t)k % TT_LEN(cases);
                struct trial trial = {.what = cases[c].what, .world = world, .root = -1};
                trial.casts = cases[c].casts;
                trial.count = counts[(size_t)k / 4 % 3];
                trial.in_place = k / 12 & 1;
                trial.foreign = k / 24;
                run(&trial, (unsigned)k);
            }
            world_destroy(world);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_one_process),
        cmocka_unit_test(over_mappings),
        cmocka_unit_test(through_slots_alone),
        cmocka_unit_test(written_once),
        cmocka_unit_test(large_slices_back_to_back),
        cmocka_unit_test(large_slices_over_sockets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
