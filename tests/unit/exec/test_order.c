/* Sequence numbers, captured and kept works, refusal, abort in the middle, mismatched operations,
 * messages that follow each other, and works dropped by their stream. */
#include "../check.h"
#include "ranks.h"

#include "base/mem.h"
#include "base/system/clock.h"
#include "base/wait.h"

#include <stdlib.h>
#include <string.h>

static struct world_call allreduce(struct world *world, enum tt_algo algo, size_t count)
{
    bool small = algo == TT_ALGO_ONESHOT;
    struct world_call call = {
        .func = TT_FUNC_ALLREDUCE,
        .algo = algo,
        .proto = small ? TT_PROTO_LL : TT_PROTO_SIMPLE,
        .root = -1,
        .count = count,
        .chunk_limit = world->slice_bytes / 4,
        .type = ncclInt32,
        .op = ncclSum,
        .in_bytes = count * 4,
        .out_bytes = count * 4,
        .fingerprint = 77,
    };
    call.in = world_memory(world, count * 4, 0);
    call.out = world_memory(world, count * 4, 0);
    for (size_t i = 0; i < count; i++)
        ((int32_t *)(void *)(uintptr_t)call.in)[i] = (int32_t)i;
    return call;
}

static void check_sum(const struct world *world, const struct world_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        assert_int_equal(((int32_t *)(void *)call->out)[i], (int32_t)i * world->n);
    }
}

static uint32_t abort_of(const struct world *world, int rank)
{
    return atomic_load(&world->rank[rank].member.abort);
}

/* A second stream of rank 0 must wait for the first, in the order of their sequence numbers. */
static void turns_follow_sequence_numbers(void **state)
{
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    struct world_call a[2], b[2];
    struct CUstream_st second = {.head = 0};
    for (int r = 0; r < 2; r++) {
        a[r] = allreduce(world, TT_ALGO_ONESHOT, 8);
        b[r] = allreduce(world, TT_ALGO_DIRECT, 100);
    }
    struct tt_frame frame;
    struct tt_work *work;
    world_submit(world, 0, &a[0]);
    world_frame(world, 0, &b[0], &frame);
    struct tt_work_spec spec = world_spec(world, 0, &frame, 1);
    assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
    assert_int_equal(tt_exec_submit(work, &second), ncclSuccess);
    for (int k = 0; k < 10; k++)
        assert_false(fake_stream_step(&second));
    world_submit(world, 1, &a[1]);
    world_run(world, 3);
    world_submit(world, 1, &b[1]);
    for (int k = 0; k < 1000 && !fake_stream_idle(&second); k++) {
        fake_stream_step(&second);
        fake_stream_step(&world->rank[1].stream);
    }
    world_run(world, 4);
    for (int r = 0; r < 2; r++) {
        check_sum(world, &a[r]);
        check_sum(world, &b[r]);
        assert_int_equal(tt_exec_drain(&world->rank[r].member, &world->rank[r].queue), 0);
    }
    world_destroy(world);
}

/* Where each step takes long, as on busy cores, a wait is in the registry after few of them. */
static void slow_steps_enter_their_wait_soon(void **state)
{
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    struct world_call call[2];
    struct tt_wait waits[2];
    for (int r = 0; r < 2; r++)
        call[r] = allreduce(world, TT_ALGO_RING, 2000);
    world_submit(world, 0, &call[0]);
    for (int k = 0; k < 40; k++) {
        fake_stream_step(&world->rank[0].stream);
        tt_sleep_usec(1000);
    }
    assert_int_equal(tt_wait_list(&world->rank[0].member, waits, 2), 1);
    assert_int_equal(waits[0].peer, 1);
    world_submit(world, 1, &call[1]);
    world_run(world, 1);
    assert_int_equal(tt_wait_list(&world->rank[0].member, waits, 2), 0);
    for (int r = 0; r < 2; r++)
        check_sum(world, &call[r]);
    world_destroy(world);
}

/* One work per rank, made once, submitted many times with changing buffers. */
static void kept_works_run_again(void **state)
{
    static const enum tt_algo algos[] = {TT_ALGO_ONESHOT, TT_ALGO_DIRECT, TT_ALGO_RING};
    (void)state;
    for (size_t k = 0; k < TT_LEN(algos); k++) {
        struct world *world = world_create(3, WORLD_PROCESS, 4096);
        struct tt_work *work[3];
        for (int r = 0; r < 3; r++) {
            struct world_call call = allreduce(world, algos[k], 5);
            struct tt_frame frame;
            world_frame(world, r, &call, &frame);
            struct tt_work_spec spec = world_spec(world, r, &frame, 1);
            spec.kept = true;
            assert_int_equal(tt_work_create(&spec, &work[r]), ncclSuccess);
        }
        for (unsigned round = 0; round < 50; round++) {
            struct world_call call[3];
            for (int r = 0; r < 3; r++) {
                call[r] = allreduce(world, algos[k], 5);
                assert_true(tt_work_idle(work[r]));
                tt_work_rebind(work[r], call[r].in, call[r].out);
                assert_int_equal(tt_exec_submit(work[r], &world->rank[r].stream), 0);
                assert_false(tt_work_idle(work[r]));
            }
            world_run(world, round);
            for (int r = 0; r < 3; r++)
                check_sum(world, &call[r]);
        }
        for (int r = 0; r < 3; r++)
            tt_work_destroy(work[r]);
        world_destroy(world);
    }
}

static void issue(struct tt_work *const work[2], int times)
{
    for (int k = 0; k < 2 * times; k++) {
        struct tt_item *item = (struct tt_item *)(void *)work[k % 2];
        assert_true(item->wants_issue);
        assert_int_equal(item->step(item, TT_ITEM_HOLD), TT_STEP_DONE);
        assert_int_equal(item->step(item, TT_ITEM_ISSUE), TT_STEP_DONE);
    }
}

static void replay_once(struct tt_work *const work[2])
{
    enum tt_step step[2] = {TT_STEP_WAIT, TT_STEP_WAIT};
    for (int k = 0; step[0] != TT_STEP_DONE || step[1] != TT_STEP_DONE; k++) {
        struct tt_item *item = (struct tt_item *)(void *)work[k % 2];
        if (step[k % 2] != TT_STEP_DONE) step[k % 2] = item->step(item, TT_ITEM_STEP);
        assert_true(k < 10000);
    }
}

/* A graph runs its item again and again. Each launch takes its sequence number when it is issued,
 * which may be long before its turn; a step without a sequence number waits. */
static void captured_works_are_replayed(void **state)
{
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    _Atomic uint32_t refs[2] = {0, 0};
    struct tt_work *work[2];
    struct world_call call[2];
    for (int r = 0; r < 2; r++) {
        struct tt_frame frame;
        call[r] = allreduce(world, TT_ALGO_ONESHOT, 300);
        world_frame(world, r, &call[r], &frame);
        struct tt_work_spec spec = world_spec(world, r, &frame, 1);
        spec.captured = true;
        spec.graph_refs = &refs[r];
        assert_int_equal(tt_work_create(&spec, &work[r]), ncclSuccess);
        assert_int_equal(atomic_load(&refs[r]), 1);
    }
    for (int replay = 0; replay < 100; replay++) {
        int launches = 1 + replay % 7;
        struct tt_item *first = (struct tt_item *)(void *)work[0];
        assert_int_equal(first->step(first, TT_ITEM_STEP), TT_STEP_WAIT);
        issue(work, launches);
        for (int k = 0; k < launches; k++) {
            memset(call[0].out, 0, 1200);
            replay_once(work);
            check_sum(world, &call[0]);
        }
    }
    for (int r = 0; r < 2; r++) {
        struct tt_item *item = (struct tt_item *)(void *)work[r];
        assert_int_equal(tt_exec_drain(&world->rank[r].member, &world->rank[r].queue), 0);
        item->step(item, TT_ITEM_RELEASE);
        assert_int_equal(atomic_load(&refs[r]), 0);
    }
    world_destroy(world);
}

static void a_refused_work_gives_its_sequence_number_back(void **state)
{
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    struct world_call call[2] = {allreduce(world, TT_ALGO_ONESHOT, 9),
                                 allreduce(world, TT_ALGO_ONESHOT, 9)};
    struct tt_frame frame;
    struct tt_work *work;
    world_frame(world, 0, &call[0], &frame);
    struct tt_work_spec spec = world_spec(world, 0, &frame, 1);
    assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
    world->rank[0].stream.refuse = 400;
    assert_int_equal(tt_exec_submit(work, &world->rank[0].stream), ncclUnhandledCudaError);
    world->rank[0].stream.refuse = 0;
    for (int r = 0; r < 2; r++)
        world_submit(world, r, &call[r]);
    world_run(world, 1);
    for (int r = 0; r < 2; r++)
        check_sum(world, &call[r]);
    world_destroy(world);
}

/* Rank 1 never comes; an abort ends rank 0's works one after the other. */
static void abort_ends_all_works(void **state)
{
    static const enum tt_algo algos[] = {TT_ALGO_ONESHOT, TT_ALGO_DIRECT, TT_ALGO_RING,
                                         TT_ALGO_TREE};
    (void)state;
    for (size_t k = 0; k < TT_LEN(algos); k++) {
        struct world *world = world_create(2, WORLD_MAPPED, 4096);
        for (int i = 0; i < 3; i++) {
            struct world_call call = allreduce(world, algos[k], 50000);
            world_submit(world, 0, &call);
        }
        for (int i = 0; i < 1000; i++)
            fake_stream_step(&world->rank[0].stream);
        assert_false(fake_stream_idle(&world->rank[0].stream));
        atomic_store(&world->rank[0].member.abort, ncclRemoteError);
        fake_host_help(&world->rank[0].stream);
        assert_int_equal(tt_exec_drain(&world->rank[0].member, &world->rank[0].queue),
                         ncclRemoteError);
        assert_true(fake_stream_idle(&world->rank[0].stream));
        fake_host_help(NULL);
        world_destroy(world);
    }
}

static void mismatch(enum tt_algo one, enum tt_algo other)
{
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    struct world_call a = allreduce(world, one, 1000), b = allreduce(world, other, 1000);
    b.fingerprint = 78;
    world_submit(world, 0, &a);
    world_submit(world, 1, &b);
    bool reported[2] = {false, false};
    for (int i = 0; i < 200000 && !(reported[0] && reported[1]); i++) {
        for (int r = 0; r < 2; r++) {
            fake_stream_step(&world->rank[r].stream);
            reported[r] = abort_of(world, r) == ncclInvalidUsage;
        }
        if (reported[0]) atomic_store(&world->rank[1].member.abort, ncclInvalidUsage);
        if (reported[1]) atomic_store(&world->rank[0].member.abort, ncclInvalidUsage);
    }
    assert_true(reported[0] && reported[1]);
    for (int i = 0; i < 4; i++) {
        for (int r = 0; r < 2; r++)
            fake_stream_step(&world->rank[r].stream);
    }
    for (int r = 0; r < 2; r++)
        assert_true(fake_stream_idle(&world->rank[r].stream));
    world_destroy(world);
}

static void different_operations_are_reported(void **state)
{
    (void)state;
    mismatch(TT_ALGO_ONESHOT, TT_ALGO_ONESHOT);
    mismatch(TT_ALGO_DIRECT, TT_ALGO_DIRECT);
    mismatch(TT_ALGO_RING, TT_ALGO_RING);
    mismatch(TT_ALGO_DIRECT, TT_ALGO_RING); /* ends that do not meet */
}

/* ---- messages ---- */

struct part {
    bool sending;
    char *buffer;
    size_t bytes, limit; /* of a chunk */
};

/* What the k-th message of a rank holds. */
static char message_byte(int rank, int k, size_t i)
{
    return (char)(16 * rank + k + 1 + (int)(i / 61));
}

/* The frame of a message between the two ranks of a world. */
static void message(struct world *world, int rank, struct part part, struct tt_frame *frame)
{
    bool sending = part.sending;
    char *buffer = part.buffer;
    size_t bytes = part.bytes;
    int peer = !rank;
    struct world_call call = {.func = sending ? TT_FUNC_SEND : TT_FUNC_RECV,
                              .algo = TT_ALGO_P2P,
                              .proto = TT_PROTO_SIMPLE,
                              .root = peer,
                              .count = bytes,
                              .chunk_limit = part.limit,
                              .type = ncclInt8,
                              .in = sending ? buffer : NULL,
                              .out = sending ? NULL : buffer,
                              .in_bytes = sending ? bytes : 0,
                              .out_bytes = sending ? 0 : bytes,
                              .conn = 1};
    world_frame(world, rank, &call, frame);
}

/* Two messages each way between two ranks in one work; the second follows the first. */
static void messages_keep_their_order(void **state)
{
    static const size_t sizes[] = {5, 20000, 0, 70000};
    (void)state;
    for (unsigned seed = 0; seed < 16; seed++) {
        enum world_kind kind = seed % 4 == 3 ? WORLD_SHM : WORLD_MAPPED;
        size_t limit = seed % 2 ? SIZE_MAX : 16384; /* in one piece where that can be referred to */
        struct world *world = world_create(2, kind, 16384);
        char *buffer[2][4];
        for (int r = 0; r < 2; r++) {
            struct tt_frame frames[4];
            for (int k = 0; k < 4; k++) {
                bool sending = k < 2;
                size_t bytes = sizes[(k % 2 + (int)seed) % 4];
                buffer[r][k] = world_memory(world, bytes, 1);
                for (size_t i = 0; sending && i < bytes; i++)
                    buffer[r][k][i] = message_byte(r, k, i);
                message(world, r, (struct part){sending, buffer[r][k], bytes, limit}, &frames[k]);
                frames[k].after = k % 2 ? k : 0;
            }
            struct tt_work_spec spec = world_spec(world, r, frames, 4);
            struct tt_work *work;
            assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
            assert_int_equal(tt_exec_submit(work, &world->rank[r].stream), ncclSuccess);
        }
        world_run(world, seed);
        for (int r = 0; r < 2; r++) {
            assert_int_equal(abort_of(world, r), 0);
            for (int k = 2; k < 4; k++) {
                size_t bytes = sizes[(k % 2 + (int)seed) % 4];
                for (size_t i = 0; i < bytes; i++) {
                    assert_int_equal(buffer[r][k][i], message_byte(!r, k - 2, i));
                }
            }
        }
        world_destroy(world);
    }
}

static void wrong_sizes_are_reported(void **state)
{
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    for (int r = 0; r < 2; r++) {
        struct tt_frame frame;
        struct tt_work *work;
        size_t bytes = r ? 100 : 96;
        message(world, r,
                (struct part){r == 0, world_memory(world, bytes, 0), bytes, world->slice_bytes},
                &frame);
        struct tt_work_spec spec = world_spec(world, r, &frame, 1);
        assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
        assert_int_equal(tt_exec_submit(work, &world->rank[r].stream), ncclSuccess);
    }
    world_run(world, 9);
    assert_int_equal(abort_of(world, 1), ncclInvalidUsage);
    world_destroy(world);
}

/* A stream that is torn down releases works that never ran: no thread may wait for them. */
static void dropped_works_do_not_block(void **state)
{
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    for (int i = 0; i < 2; i++) {
        struct world_call call = allreduce(world, TT_ALGO_DIRECT, 10);
        world_submit(world, 0, &call);
    }
    fake_stream_step(&world->rank[0].stream);
    fake_stream_drop(&world->rank[0].stream);
    assert_int_equal(tt_exec_drain(&world->rank[0].member, &world->rank[0].queue),
                     ncclInternalError);
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_follow_sequence_numbers),
        cmocka_unit_test(slow_steps_enter_their_wait_soon),
        cmocka_unit_test(kept_works_run_again),
        cmocka_unit_test(captured_works_are_replayed),
        cmocka_unit_test(a_refused_work_gives_its_sequence_number_back),
        cmocka_unit_test(abort_ends_all_works),
        cmocka_unit_test(different_operations_are_reported),
        cmocka_unit_test(messages_keep_their_order),
        cmocka_unit_test(wrong_sizes_are_reported),
        cmocka_unit_test(dropped_works_do_not_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
