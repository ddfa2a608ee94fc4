/* AlltoAllv: programs of counts by pair run, and every part comes where it belongs and no other is
 * written, over pointers, mappings, slots alone and sockets. */
#include "../check.h"
#include "ranks.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { SLICE_BYTES = 1024, CHUNK = SLICE_BYTES / 4, MOST_PARTS = 13 };

struct trial {
    struct world *world;
    enum tt_algo algo;
    int counts[WORLD_MAX * WORLD_MAX];
    size_t count; /* elements of a whole block */
    int32_t *in[WORLD_MAX], *out[WORLD_MAX];
    struct tt_geometry geometry;
};

static int32_t input(int rank, size_t i)
{
    return (int32_t)((size_t)(rank + 1) * 1000003 + i * 7);
}

/* Sparse, with long and with equal ones; of turn 0 none at all. */
static void draw_counts(struct trial *trial, unsigned turn)
{
    uint32_t state = turn * 2654435761u + 1;
    for (int k = 0; k < trial->world->n * trial->world->n; k++) {
        state = state * 1664525u + 1013904223u;
        uint32_t drawn = state >> 16;
        trial->counts[k] = turn == 0 || drawn % 3 == 0 ? 0 : (int)(drawn / 3 % (MOST_PARTS + 1));
    }
}

static void submit(struct trial *trial, int r)
{
    struct world *world = trial->world;
    size_t n = (size_t)world->n, bytes = trial->count * n * 4;
    struct tt_shape shape = {.nranks = world->n, .counts = trial->counts};
    enum tt_proto proto = trial->algo == TT_ALGO_BRUCK ? TT_PROTO_LL : TT_PROTO_SIMPLE;
    struct tt_program *program;
    struct tt_frame frame;
    struct tt_work *work;
    assert_int_equal(tt_program_make(TT_FUNC_ALLTOALLV, trial->algo, proto, -1, &shape, &program),
                     ncclSuccess);
    world_program(world, r, program);
    const struct world_call call = {.count = trial->count,
                                    .chunk_limit = CHUNK,
                                    .type = ncclInt32,
                                    .in = (const char *)trial->in[r],
                                    .out = (char *)trial->out[r],
                                    .in_bytes = bytes,
                                    .out_bytes = bytes,
                                    .fingerprint = 7};
    world_bind(world, r, &call, &frame);
    trial->geometry = frame.geometry;
    struct tt_work_spec spec = world_spec(world, r, &frame, 1);
    assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
    assert_int_equal(tt_exec_submit(work, &world->rank[r].stream), ncclSuccess);
}

static int most_parts(const struct trial *trial)
{
    int most = 1;
    for (int k = 0; k < trial->world->n * trial->world->n; k++)
        most = trial->counts[k] > most ? trial->counts[k] : most;
    return most;
}

static void check(const struct trial *trial, int r)
{
    int n = trial->world->n, nparts = most_parts(trial);
    for (int chunk = 0; chunk < n * nparts; chunk++) {
        int from = chunk / nparts, part = chunk % nparts;
        bool there = part < trial->counts[from * n + r];
        struct tt_extent got = tt_geometry_extent(&trial->geometry, 0, chunk);
        struct tt_extent sent = tt_geometry_extent(&trial->geometry, 0, r * nparts + part);
        for (size_t k = 0; k < got.count; k++) {
            int32_t wanted = there ? input(from, sent.first + k) : 0;
            if (trial->out[r][got.first + k] == wanted) continue;
            fail_msg("%s n %d count %zu kind %d: rank %d has %d at element %zu of part %d from "
                     "rank %d, not %d",
                     tt_algo_name(trial->algo), n, trial->count, (int)trial->world->kind, r,
                     trial->out[r][got.first + k], k, part, from, wanted);
        }
    }
}

static void run(struct trial *trial, unsigned seed)
{
    struct world *world = trial->world;
    size_t n = (size_t)world->n;
    world_reset(world);
    for (int r = 0; r < world->n; r++) {
        trial->in[r] = (void *)world_memory(world, trial->count * n * 4, 4);
        trial->out[r] = (void *)world_memory(world, trial->count * n * 4, 4);
        for (size_t i = 0; i < trial->count * n; i++)
            trial->in[r][i] = input(r, i);
    }
    for (int r = 0; r < world->n; r++)
        submit(trial, r);
    world_run(world, seed);
    for (int r = 0; r < world->n; r++) {
        assert_int_equal(atomic_load(&world->rank[r].member.abort), 0);
        check(trial, r);
    }
}

static void every_part_comes(void **state)
{
    (void)state;
    static const enum tt_algo algos[] = {TT_ALGO_PAIRWISE, TT_ALGO_BRUCK};
    for (int n = 2; n <= 8; n++) {
        for (int kind = WORLD_PROCESS; kind <= (n % 3 ? WORLD_SHM : WORLD_NET); kind++) {
            struct trial trial = {.world = world_create(n, (enum world_kind)kind, SLICE_BYTES)};
            for (unsigned turn = 0; turn < 8; turn++) {
                draw_counts(&trial, turn);
                size_t window = (size_t)most_parts(&trial) * CHUNK;
                trial.algo = algos[turn % 2];
                trial.count = turn % 4 == 3 ? window / 2 + 5 : window;
                run(&trial, turn + (unsigned)n);
            }
            world_destroy(trial.world);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_part_comes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
