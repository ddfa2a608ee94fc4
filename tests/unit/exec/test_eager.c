/* Groups of small calls as one flat list: collectives that overlap, messages of which a blocked one
 * stops only its own peer's. */
#include "../check.h"
#include "ranks.h"

#include "base/mem.h"
#include "exec/host/cursor.h"

#include <string.h>

enum { CALLS = 20, COUNT = 5, LARGE = 50, MESSAGES = 40, SAME = 7 };

static void fill(struct world_call *call, int rank, int round)
{
    for (size_t i = 0; i < call->count; i++)
        ((int32_t *)(void *)(uintptr_t)call->in)[i] = (int32_t)i + 100 * rank + 7 * round;
}

static struct world_call allreduce(struct world *world)
{
    struct world_call call = {.func = TT_FUNC_ALLREDUCE,
                              .algo = TT_ALGO_ONESHOT,
                              .proto = TT_PROTO_LL,
                              .root = -1,
                              .count = COUNT,
                              .chunk_limit = world->slice_bytes / 4,
                              .type = ncclInt32,
                              .op = ncclSum,
                              .in_bytes = COUNT * sizeof(int32_t),
                              .out_bytes = COUNT * sizeof(int32_t),
                              .fingerprint = 77};
    call.in = world_memory(world, call.in_bytes, 0);
    call.out = world_memory(world, call.out_bytes, 0);
    return call;
}

static void check_sums(const struct world *world, const struct world_call *calls, int round)
{
    for (int k = 0; k < CALLS; k++) {
        for (size_t i = 0; i < COUNT; i++) {
            int32_t want = 0;
            for (int r = 0; r < world->n; r++)
                want += (int32_t)i + 100 * r + 7 * (round + k);
            assert_int_equal(((int32_t *)(void *)calls[k].out)[i], want);
        }
    }
}

/* One work for all calls of a rank; so many that follow each other are alike. */
static struct tt_work *group_work(struct world *world, int rank, struct world_call *calls,
                                  int nsame)
{
    struct tt_frame frames[CALLS];
    for (int k = 0; k < CALLS; k++) {
        calls[k] = allreduce(world);
        calls[k].fingerprint = 77 + (uint32_t)(k / nsame);
        (k ? world_bind : world_frame)(world, rank, &calls[k], &frames[k]);
        frames[k].begins = k > 0;
    }
    struct tt_work_spec spec = world_spec(world, rank, frames, CALLS);
    struct tt_work *work = NULL;
    spec.kept = true;
    assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
    assert_true(tt_work_is_flat(work));
    return work;
}

static void submit_group(struct world *world, int rank, struct tt_work *work,
                         struct world_call *calls, int round)
{
    struct tt_buffers buffers[CALLS];
    for (int k = 0; k < CALLS; k++) {
        fill(&calls[k], rank, round + k);
        buffers[k] = (struct tt_buffers){calls[k].in, calls[k].out};
    }
    tt_work_rebind_each(work, buffers);
    assert_int_equal(tt_exec_submit(work, &world->rank[rank].stream), ncclSuccess);
}

/* Rank 0 makes its calls one by one: the others need not know. */
static void run_ranks(int n, enum world_kind kind, int nsame, int before)
{
    struct world *world = world_create(n, kind, 4096);
    struct world_call calls[3][CALLS];
    struct tt_work *work[3] = {NULL};
    for (int r = 0; r < n; r++)
        work[r] = group_work(world, r, calls[r], nsame);
    for (int round = 0; round < before + 10; round++) {
        bool grouped = round < before || round % 2;
        for (int r = grouped ? 0 : 1; r < n; r++)
            submit_group(world, r, work[r], calls[r], round);
        for (int k = 0; !grouped && k < CALLS; k++) {
            fill(&calls[0][k], 0, round + k);
            world_submit(world, 0, &calls[0][k]);
        }
        world_run(world, (unsigned)round);
        for (int r = 0; r < n; r++)
            check_sums(world, calls[r], round);
    }
    for (int r = 0; r < n; r++)
        tt_work_destroy(work[r]);
    world_destroy(world);
}

static void a_group_meets_single_calls(void **state)
{
    (void)state;
    run_ranks(3, WORLD_MAPPED, 1, 0);
}

/* Calls that are alike share slots; who makes them one by one takes each message for itself, and
 * sends them so. */
static void same_calls_meet_single_calls(void **state)
{
    (void)state;
    for (int n = 2; n <= 3; n++) {
        for (int kind = WORLD_PROCESS; kind <= WORLD_SHM; kind++) {
            run_ranks(n, (enum world_kind)kind, SAME, 0);
            run_ranks(n, (enum world_kind)kind, SAME, 3);
        }
    }
}

/* Two ranks whose groups are cut otherwise: slots hold other calls at each of them. */
static void groups_cut_otherwise_meet(void **state)
{
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    struct world_call calls[2][CALLS], first = allreduce(world), last = allreduce(world);
    struct tt_work *work[2];
    for (int r = 0; r < 2; r++)
        work[r] = group_work(world, r, calls[r], CALLS);
    for (int round = 0; round < 6; round++) {
        fill(&first, 0, round);
        world_submit(world, 0, &first);
        submit_group(world, 0, work[0], calls[0], round + 1);
        submit_group(world, 1, work[1], calls[1], round);
        fill(&last, 1, round + CALLS);
        world_submit(world, 1, &last);
        world_run(world, (unsigned)round);
        check_sums(world, calls[0], round + 1);
        check_sums(world, calls[1], round);
    }
    for (int r = 0; r < 2; r++)
        tt_work_destroy(work[r]);
    world_destroy(world);
}

/* What a rank sends for all calls is there before it received anything: its peer ends without it.
 */
static void collectives_overlap(void **state)
{
    (void)state;
    struct world *world = world_create(2, WORLD_PROCESS, 4096);
    struct world_call calls[2][CALLS];
    struct tt_work *work[2];
    for (int r = 0; r < 2; r++) {
        work[r] = group_work(world, r, calls[r], 1);
        submit_group(world, r, work[r], calls[r], 0);
    }
    while (fake_stream_step(&world->rank[0].stream))
        continue;
    assert_false(fake_stream_idle(&world->rank[0].stream));
    for (int k = 0; k < 1000 && !fake_stream_idle(&world->rank[1].stream); k++)
        fake_stream_step(&world->rank[1].stream);
    assert_true(fake_stream_idle(&world->rank[1].stream));
    check_sums(world, calls[1], 0);
    world_run(world, 1);
    check_sums(world, calls[0], 0);
    for (int r = 0; r < 2; r++)
        tt_work_destroy(work[r]);
    world_destroy(world);
}

static struct world_call rooted(const struct world *world, enum tt_func func, int root,
                                const char *in, char *out)
{
    const size_t bytes = LARGE * sizeof(int32_t);
    return (struct world_call){.func = func,
                               .algo = TT_ALGO_ONESHOT,
                               .proto = TT_PROTO_LL,
                               .root = root,
                               .count = LARGE,
                               .chunk_limit = world->slice_bytes / 4,
                               .type = ncclInt32,
                               .op = ncclSum,
                               .in = in,
                               .out = out,
                               .in_bytes = bytes,
                               .out_bytes = bytes};
}

/* Rank 0 comes late, so rank 2 has no free slot to it when it is to send its part of the sum. What
 * rank 2 then gets of rank 1 goes to the memory that this part is in, and has to wait. */
static void a_result_waits_for_what_is_sent(void **state)
{
    (void)state;
    enum { FIRST = 8, ALL = FIRST + 2 }; /* slots of an edge */
    struct world *world = world_create(3, WORLD_MAPPED, 4096);
    struct tt_frame frames[ALL];
    struct tt_work *work[3];
    char *x[3], *sum = world_memory(world, LARGE * sizeof(int32_t), 0);
    for (int r = 0; r < 3; r++) {
        char *other = world_memory(world, LARGE * sizeof(int32_t), 0);
        x[r] = world_memory(world, LARGE * sizeof(int32_t), 0);
        for (int i = 0; i < LARGE; i++)
            ((int32_t *)(void *)x[r])[i] = 1000 * r + i;
        for (int k = 0; k < ALL; k++) {
            struct world_call call = rooted(world, TT_FUNC_BROADCAST, 2, other, other);
            if (k == FIRST) call = rooted(world, TT_FUNC_REDUCE, 0, x[r], r ? NULL : sum);
            if (k > FIRST) call = rooted(world, TT_FUNC_BROADCAST, 1, x[r], x[r]);
            world_frame(world, r, &call, &frames[k]);
            frames[k].begins = k > 0;
        }
        struct tt_work_spec spec = world_spec(world, r, frames, ALL);
        spec.kept = true;
        assert_int_equal(tt_work_create(&spec, &work[r]), ncclSuccess);
        assert_true(tt_work_is_flat(work[r]));
    }
    for (int r = 1; r < 3; r++)
        assert_int_equal(tt_exec_submit(work[r], &world->rank[r].stream), ncclSuccess);
    for (int k = 0; k < 1000; k++)
        fake_stream_step(&world->rank[1 + k % 2].stream);
    assert_int_equal(tt_exec_submit(work[0], &world->rank[0].stream), ncclSuccess);
    world_run(world, 3);
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < LARGE; i++) {
            assert_int_equal(((int32_t *)(void *)sum)[i], 3000 + 3 * i);
            assert_int_equal(((int32_t *)(void *)x[r])[i], 1000 + i);
        }
        tt_work_destroy(work[r]);
    }
    world_destroy(world);
}

/* A rank that takes nothing in a collective sends as one that runs ahead. */
static void who_only_gives_runs_ahead(void **state)
{
    static const struct {
        enum tt_func func;
        int root;
        bool ahead;
    } cases[] = {
        {TT_FUNC_ALLREDUCE, -1, false}, {TT_FUNC_BROADCAST, 0, true}, {TT_FUNC_REDUCE, 1, true}};
    (void)state;
    struct world *world = world_create(2, WORLD_MAPPED, 4096);
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        struct world_call call = allreduce(world);
        struct tt_frame frame;
        struct tt_work *work = NULL;
        call.func = cases[k].func;
        call.root = cases[k].root;
        world_frame(world, 0, &call, &frame);
        struct tt_work_spec spec = world_spec(world, 0, &frame, 1);
        spec.kept = true;
        assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
        const struct tt_eager_op *op = &work->eager->ops[0];
        print_message("case: %s\n", tt_func_name(cases[k].func));
        assert_int_equal(op->kind, TT_EAGER_SEND);
        assert_ptr_equal(op->send, cases[k].ahead ? op->small->send_ahead : op->small->send);
        assert_ptr_not_equal(op->small->send_ahead, op->small->send);
        tt_work_destroy(work);
    }
    world_destroy(world);
}

/* Exchanges whose whole input is written once: a send for all, also of calls that share a slot. */
static void exchanges_share_slots(void **state)
{
    enum { RANKS = 3, EXCHANGES = 4, BYTES = RANKS * COUNT * (int)sizeof(int32_t) };
    (void)state;
    for (int sums = 0; sums < 2; sums++) {
        struct world *world = world_create(RANKS, WORLD_MAPPED, 4096);
        struct world_call calls[RANKS][EXCHANGES];
        struct tt_work *work[RANKS];
        for (int r = 0; r < RANKS; r++) {
            struct tt_frame frames[EXCHANGES];
            for (int k = 0; k < EXCHANGES; k++) {
                struct world_call *call = &calls[r][k];
                *call = allreduce(world);
                call->func = sums ? TT_FUNC_REDUCESCATTER : TT_FUNC_ALLTOALL;
                call->casts = TT_CASTS_PARTS;
                call->in_bytes = BYTES;
                call->out_bytes = sums ? BYTES / RANKS : BYTES;
                call->in = world_memory(world, BYTES, 0);
                call->out = world_memory(world, BYTES, 0);
                (k ? world_bind : world_frame)(world, r, call, &frames[k]);
                frames[k].begins = k > 0;
                for (int i = 0; i < RANKS * COUNT; i++)
                    ((int32_t *)(void *)(uintptr_t)call->in)[i] = 1000 * k + 100 * r + i;
            }
            struct tt_work_spec spec = world_spec(world, r, frames, EXCHANGES);
            spec.kept = true;
            assert_int_equal(tt_work_create(&spec, &work[r]), ncclSuccess);
            assert_true(tt_work_is_flat(work[r]));
            const struct tt_eager_op *ops = work[r]->eager->ops;
            assert_int_equal(ops[0].kind, TT_EAGER_SEND);
            assert_int_equal(ops[0].bytes, BYTES);
            assert_int_not_equal(ops[1].kind, TT_EAGER_SEND);
            assert_int_equal(tt_exec_submit(work[r], &world->rank[r].stream), ncclSuccess);
        }
        world_run(world, 5);
        for (int at = 0; at < RANKS * EXCHANGES * COUNT; at++) {
            const int r = at % RANKS, k = at / RANKS % EXCHANGES, i = at / RANKS / EXCHANGES;
            const int32_t *out = (const int32_t *)(void *)calls[r][k].out;
            const int32_t least = 1000 * k + COUNT * r + i;
            for (int from = 0; from < RANKS && !sums; from++)
                assert_int_equal(out[from * COUNT + i], least + 100 * from);
            if (sums) assert_int_equal(out[i], 3 * least + 300);
        }
        for (int r = 0; r < RANKS; r++)
            tt_work_destroy(work[r]);
        world_destroy(world);
    }
}

/* ---- messages ---- */

static void message(struct world *world, int rank, int peer, bool sending, char *buffer,
                    struct tt_frame *frame)
{
    const size_t bytes = 200; /* beyond what rides with a header: eight may be under way */
    struct world_call call = {.func = sending ? TT_FUNC_SEND : TT_FUNC_RECV,
                              .algo = TT_ALGO_P2P,
                              .proto = TT_PROTO_SIMPLE,
                              .root = peer,
                              .count = bytes,
                              .chunk_limit = SIZE_MAX,
                              .type = ncclInt8,
                              .in = sending ? buffer : NULL,
                              .out = sending ? NULL : buffer,
                              .in_bytes = sending ? bytes : 0,
                              .out_bytes = sending ? 0 : bytes,
                              .conn = 1};
    world_frame(world, rank, &call, frame);
}

static struct tt_work *submit_frames(struct world *world, int rank, struct tt_frame *frames, int n)
{
    struct tt_work_spec spec = world_spec(world, rank, frames, n);
    struct tt_work *work = NULL;
    spec.kept = true;
    assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
    assert_true(tt_work_is_flat(work));
    assert_int_equal(tt_exec_submit(work, &world->rank[rank].stream), ncclSuccess);
    return work;
}

/* Rank 0 sends more to rank 1 than is taken before rank 1 has heard of rank 2, who waits for the
 * last message of that group. */
static void a_blocked_message_stops_its_peers_only(void **state)
{
    (void)state;
    struct world *world = world_create(3, WORLD_MAPPED, 4096);
    struct tt_frame frames[MESSAGES + 1], one;
    struct tt_work *works[5];
    char *sent = world_memory(world, MESSAGES * 200, 0), *got = world_memory(world, 200 * 50, 0);
    memset(sent, 3, MESSAGES * 200);
    for (int k = 0; k < MESSAGES; k++) {
        message(world, 0, 1, true, sent + 200 * (size_t)k, &frames[k]);
        frames[k].after = k;
    }
    message(world, 0, 2, true, sent, &frames[MESSAGES]);
    works[0] = submit_frames(world, 0, frames, MESSAGES + 1);
    message(world, 1, 2, false, world_memory(world, 200, 0), &one);
    works[1] = submit_frames(world, 1, &one, 1);
    for (int k = 0; k < MESSAGES; k++) {
        message(world, 1, 0, false, got + 200 * (size_t)k, &frames[k]);
        frames[k].after = k;
    }
    works[2] = submit_frames(world, 1, frames, MESSAGES);
    message(world, 2, 0, false, world_memory(world, 200, 0), &one);
    works[3] = submit_frames(world, 2, &one, 1);
    message(world, 2, 1, true, sent, &one);
    works[4] = submit_frames(world, 2, &one, 1);
    world_run(world, 5);
    assert_memory_equal(got, sent, MESSAGES * 200);
    for (size_t k = 0; k < TT_LEN(works); k++)
        tt_work_destroy(works[k]);
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_meets_single_calls),
        cmocka_unit_test(same_calls_meet_single_calls),
        cmocka_unit_test(groups_cut_otherwise_meet),
        cmocka_unit_test(collectives_overlap),
        cmocka_unit_test(a_result_waits_for_what_is_sent),
        cmocka_unit_test(who_only_gives_runs_ahead),
        cmocka_unit_test(exchanges_share_slots),
        cmocka_unit_test(a_blocked_message_stops_its_peers_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
