/* Ranks as threads: every shared line of slots, barrier and order is also seen by the thread
 * sanitizer. Many operations in a row, so that rings and cells wrap. */
#include "../check.h"
#include "ranks.h"

#include "base/mem.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define RANKS 3
#define ROUNDS 60
#define COUNT 3000

struct lane {
    struct world *world;
    int rank;
    enum tt_algo algo;
    size_t count;
    int wrong;
    pthread_t thread;
};

static void bind_lane(const struct lane *lane, struct world_call *call)
{
    bool small = lane->algo == TT_ALGO_ONESHOT;
    *call = (struct world_call){.func = TT_FUNC_ALLREDUCE,
                                .algo = lane->algo,
                                .proto = small ? TT_PROTO_LL : TT_PROTO_SIMPLE,
                                .root = -1,
                                .count = lane->count,
                                .chunk_limit = lane->world->slice_bytes / 4,
                                .type = ncclInt32,
                                .op = ncclSum,
                                .in_bytes = lane->count * 4,
                                .out_bytes = lane->count * 4,
                                .fingerprint = 5};
}

static void *run_lane(void *arg)
{
    struct lane *lane = arg;
    struct world_call call;
    struct CUstream_st *stream = &lane->world->rank[lane->rank].stream;
    bind_lane(lane, &call);
    int32_t *in = calloc(lane->count, 4), *out = calloc(lane->count, 4);
    call.in = (const char *)in;
    call.out = (char *)out;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < lane->count; i++)
            in[i] = (int32_t)i + round * (lane->rank + 1);
        world_submit(lane->world, lane->rank, &call);
        while (!fake_stream_idle(stream)) {
            if (!fake_stream_step(stream)) sched_yield();
        }
        int32_t extra = round * RANKS * (RANKS + 1) / 2;
        for (size_t i = 0; i < lane->count; i++) {
            if (out[i] != (int32_t)i * RANKS + extra) lane->wrong++;
        }
    }
    free(in);
    free(out);
    return NULL;
}

static void run_world(enum world_kind kind, enum tt_algo algo, size_t count)
{
    struct world *world = world_create(RANKS, kind, 4096);
    struct lane lanes[RANKS];
    for (int r = 0; r < RANKS; r++) {
        lanes[r] = (struct lane){.world = world, .rank = r, .algo = algo, .count = count};
        assert_int_equal(pthread_create(&lanes[r].thread, NULL, run_lane, &lanes[r]), 0);
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(lanes[r].thread, NULL);
        assert_int_equal(lanes[r].wrong, 0);
        assert_int_equal(atomic_load(&world->rank[r].member.abort), 0);
    }
    world_destroy(world);
}

static void threads_agree(void **state)
{
    static const enum tt_algo algos[] = {TT_ALGO_ONESHOT, TT_ALGO_DIRECT, TT_ALGO_RING,
                                         TT_ALGO_TREE};
    (void)state;
    for (size_t k = 0; k < TT_LEN(algos); k++) {
        run_world(WORLD_PROCESS, algos[k], COUNT);
        run_world(WORLD_PROCESS, algos[k], 2);
        if (algos[k] != TT_ALGO_DIRECT) run_world(WORLD_SHM, algos[k], COUNT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
