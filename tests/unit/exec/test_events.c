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

static struct tt_work_events watched(void *parent)
{
    static const int mask = ncclProfileKernelCh;
    static const struct tt_member member;
    static struct tt_profiler profiler = {
        .table = &table, .context = &seen, .member = &member, .mask = &mask};
    return (struct tt_work_events){
        .profiler = &profiler, .parent = parent, .mask = (uint32_t)mask, .channel_times = true};
}

static void submit(struct world *world, int rank, enum tt_algo algo, void *parent)
{
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
    if (parent) spec.events = watched(parent);
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
    assert_int_equal(seen.started, 1);
    assert_int_equal(seen.stopped, 1);
    assert_int_equal(seen.ended, 1);
    assert_int_equal(seen.end_time, 0); /* it did not come to its end */
    world_destroy(world);
}

static void message(struct world *world, int rank, int peer, bool sending, struct tt_frame *frame)
{
    struct world_call call = {.func = sending ? TT_FUNC_SEND : TT_FUNC_RECV,
                              .algo = TT_ALGO_P2P,
                              .proto = TT_PROTO_SIMPLE,
                              .root = peer,
                              .count = 8,
                              .chunk_limit = SIZE_MAX,
                              .type = ncclInt8,
                              .conn = TT_CONN_P2P};
    char *buffer = world_memory(world, 8, 0);
    if (sending) {
        call.in = buffer;
        call.in_bytes = 8;
    } else {
        call.out = buffer;
        call.out_bytes = 8;
    }
    world_frame(world, rank, &call, frame);
}

static struct tt_work *kept_work(struct world *world, int rank, struct tt_frame *frames, int n,
                                 void *parent)
{
    struct tt_work_spec spec = world_spec(world, rank, frames, n);
    struct tt_work *work = NULL;
    spec.kept = true;
    if (parent) spec.events = watched(parent);
    assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
    return work;
}

/* Rank 0 sends to rank 1, and receives from rank 2, which comes late in the first round. */
static void messages_end_one_by_one(void **state)
{
    int parent;
    (void)state;
    struct world *world = world_create(3, WORLD_MAPPED, 4096);
    struct tt_frame frames[2], to_1, from_2;
    message(world, 0, 1, true, &frames[0]);
    message(world, 0, 2, false, &frames[1]);
    message(world, 1, 0, false, &to_1);
    message(world, 2, 0, true, &from_2);
    struct tt_work *works[] = {kept_work(world, 0, frames, 2, &parent),
                               kept_work(world, 1, &to_1, 1, NULL),
                               kept_work(world, 2, &from_2, 1, NULL)};
    assert_true(tt_work_is_flat(works[0]));
    for (int round = 0; round < 2; round++) {
        int late = round == 0 ? 2 : 0;
        memset(&seen, 0, sizeof(seen));
        for (int rank = 0; rank < 3; rank++) {
            if (rank == late) continue;
            assert_int_equal(tt_exec_submit(works[rank], &world->rank[rank].stream), ncclSuccess);
            for (int k = 0; k < 10; k++)
                fake_stream_step(&world->rank[rank].stream);
        }
        assert_int_equal(seen.started, late == 2 ? 2 : 0);
        assert_int_equal(seen.ended, late == 2 ? 1 : 0);
        assert_int_equal(tt_exec_submit(works[late], &world->rank[late].stream), ncclSuccess);
        world_run(world, 3);
        expect_events(2, &parent);
    }
    for (size_t k = 0; k < TT_LEN(works); k++)
        tt_work_destroy(works[k]);
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_begin_and_end),
        cmocka_unit_test(aborted_frames_end_too),
        cmocka_unit_test(messages_end_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
