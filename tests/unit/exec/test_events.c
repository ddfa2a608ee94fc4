/* Channel events of works: one start, one end with a later time, and one stop per frame, whether
 * the program ran as a list, by the interpreter, or was aborted. */
#include "../check.h"
#include "ranks.h"

#include "base/mem.h"
#include "plugin/profiler/profiler.h"

#include <string.h>

static struct {
    int started, ended, stopped;
    uint64_t start_time, end_time;
    void *parent;
} seen;
static int handle;

static ncclResult_t start_event(void *context, void **event, ncclProfilerEventDescr_v7_t *descr)
{
    assert_ptr_equal(context, &seen);
    assert_int_equal(descr->type, ncclProfileKernelCh);
    seen.started++;
    seen.start_time = descr->kernelCh.pTimer;
    seen.parent = descr->parentObj;
    *event = &handle;
    return ncclSuccess;
}

static ncclResult_t stop_event(void *event)
{
    assert_ptr_equal(event, &handle);
    seen.stopped++;
    return ncclSuccess;
}

static ncclResult_t record_state(void *event, ncclProfilerEventState_v7_t state,
                                 ncclProfilerEventStateArgs_v7_t *args)
{
    assert_ptr_equal(event, &handle);
    assert_int_equal(state, ncclProfilerKernelChStop);
    seen.ended++;
    seen.end_time = args->kernelCh.pTimer;
    return ncclSuccess;
}

static const ncclProfiler_v7_t table = {
    .startEvent = start_event, .stopEvent = stop_event, .recordEventState = record_state};

static void submit(struct world *world, int rank, enum tt_algo algo, void *parent)
{
    static const int mask = ncclProfileKernelCh;
    static const struct tt_member member;
    static struct tt_profiler profiler = {
        .table = &table, .context = &seen, .member = &member, .mask = &mask};
    bool small = algo == TT_ALGO_ONESHOT;
    struct world_call call = {.func = TT_FUNC_ALLREDUCE,
                              .algo = algo,
                              .proto = small ? TT_PROTO_LL : TT_PROTO_SIMPLE,
                              .root = -1,
                              .count = small ? 2 : 500,
                              .chunk_limit = world->slice_bytes / 4,
                              .type = ncclInt32,
                              .in_bytes = 2000,
                              .out_bytes = 2000};
    struct tt_frame frame;
    struct tt_work *work;
    call.in = world_memory(world, 2000, 0);
    call.out = world_memory(world, 2000, 0);
    world_frame(world, rank, &call, &frame);
    struct tt_work_spec spec = world_spec(world, rank, &frame, 1);
    if (parent) {
        spec.events = (struct tt_work_events){
            .profiler = &profiler, .parent = parent, .mask = (uint32_t)mask, .channel_times = true};
    }
    assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
    assert_int_equal(tt_exec_submit(work, &world->rank[rank].stream), ncclSuccess);
}

static void expect_events(int frames, void *parent)
{
    assert_int_equal(seen.started, frames);
    assert_int_equal(seen.ended, frames);
    assert_int_equal(seen.stopped, frames);
    assert_ptr_equal(seen.parent, parent);
    assert_true(seen.end_time >= seen.start_time && seen.start_time > 0);
}

static void frames_begin_and_end(void **state)
{
    static const enum tt_algo algos[] = {TT_ALGO_ONESHOT, TT_ALGO_RING, TT_ALGO_DIRECT,
                                         TT_ALGO_TREE};
    int parent;
    (void)state;
    for (size_t k = 0; k < TT_LEN(algos); k++) {
        struct world *world = world_create(2, WORLD_MAPPED, 4096);
        memset(&seen, 0, sizeof(seen));
        for (int round = 0; round < 3; round++) {
            submit(world, 0, algos[k], &parent);
            submit(world, 1, algos[k], NULL);
            world_run(world, (unsigned)round);
        }
        expect_events(3, &parent);
        world_destroy(world);
    }
}

static void aborted_frames_end_too(void **state)
{
    int parent;
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    memset(&seen, 0, sizeof(seen));
    submit(world, 0, TT_ALGO_RING, &parent);
    for (int k = 0; k < 10; k++)
        fake_stream_step(&world->rank[0].stream);
    atomic_store(&world->rank[0].member.abort, ncclRemoteError);
    fake_stream_step(&world->rank[0].stream);
    assert_true(fake_stream_idle(&world->rank[0].stream));
    expect_events(1, &parent);
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_begin_and_end),
        cmocka_unit_test(aborted_frames_end_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
