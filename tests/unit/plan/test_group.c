/* Groups: depth, order, errors. What a group launches is read from the fakes. */
#include "../check.h"
#include "fakes.h"

#include "base/mem.h"
#include "plan/group/group.h"
#include "plan/plan.h"

#include <pthread.h>

static char buffer[4][4096];

static struct tt_task task_of(struct tt_comm *comm, enum tt_func func, int root)
{
    return (struct tt_task){.func = func,
                            .in = buffer[0],
                            .out = buffer[1],
                            .count = 16,
                            .type = ncclFloat32,
                            .op = ncclSum,
                            .root = root,
                            .comm = comm,
                            .stream = fake_stream(0)};
}

static void add(struct tt_comm *comm, enum tt_func func, int root)
{
    struct tt_task task = task_of(comm, func, root);
    assert_int_equal(tt_plan_add(&task, "call"), ncclSuccess);
}

static void end_without_start(void **state)
{
    (void)state;
    assert_int_equal(tt_group_end(), ncclInvalidUsage);
    assert_int_equal(tt_group_simulate(NULL), ncclInvalidUsage);
    assert_int_equal(tt_group_depth(), 0);
}

static void nothing_before_the_end(void **state)
{
    struct tt_comm *comm = fake_comm(4, 1, true);
    (void)state;
    fake_reset();
    tt_group_start();
    tt_group_start();
    add(comm, TT_FUNC_ALLREDUCE, -1);
    assert_int_equal(tt_group_end(), ncclSuccess);
    assert_int_equal(fake.nworks, 0);
    assert_int_equal(tt_group_end(), ncclSuccess);
    assert_int_equal(fake.nworks, 1);
    assert_int_equal(tt_group_depth(), 0);
    fake_comm_free(comm);
}

static void messages_come_last_and_together(void **state)
{
    struct tt_comm *comm = fake_comm(4, 1, true);
    (void)state;
    fake_reset();
    tt_group_start();
    add(comm, TT_FUNC_SEND, 2);
    add(comm, TT_FUNC_ALLREDUCE, -1);
    add(comm, TT_FUNC_RECV, 0);
    add(comm, TT_FUNC_SEND, 2);
    add(comm, TT_FUNC_BROADCAST, 0);
    assert_int_equal(tt_group_end(), ncclSuccess);
    assert_int_equal(fake.nworks, 2);
    assert_int_equal(fake.works[0].frames[0].program->func, TT_FUNC_ALLREDUCE);
    assert_int_equal(fake.works[0].frames[1].program->func, TT_FUNC_BROADCAST);
    assert_int_equal(fake.works[1].spec.nframes, 3);
    const struct tt_frame *frames = fake.works[1].frames;
    assert_int_equal(frames[0].after, 0);
    assert_int_equal(frames[1].after, 0); /* another peer: goes on by itself */
    assert_int_equal(frames[2].after, 1); /* the second message to rank 2 follows the first */
    assert_int_equal(frames[0].conn, 1);
    fake_comm_free(comm);
}

/* Where all ranks share memory, what a short call sends to all others goes over one edge, and what
 * it sends to one rank over edges of its own. */
static void short_calls_are_written_once(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        struct tt_comm *comm = fake_comm(4, 1, true);
        comm->all_memory = shared;
        fake_reset();
        tt_group_start();
        add(comm, TT_FUNC_ALLREDUCE, -1);
        assert_int_equal(tt_group_end(), ncclSuccess);
        const struct tt_frame *frame = &fake.works[0].frames[0];
        struct tt_edge **send = frame->send_edges, **recv = frame->recv_edges;
        assert_int_equal(frame->call.algo, TT_ALGO_ONESHOT);
        assert_int_equal(frame->casts, shared);
        assert_int_equal(send[2] == send[3], shared);
        assert_ptr_not_equal(recv[2], recv[3]);
        assert_false(frame->ahead);
        tt_group_start();
        add(comm, TT_FUNC_REDUCE, 0);
        assert_int_equal(tt_group_end(), ncclSuccess);
        frame = &fake.works[1].frames[0];
        assert_int_equal(frame->call.algo, TT_ALGO_ONESHOT);
        assert_int_equal(frame->ahead, shared);
        assert_int_equal(frame->send_edges[0] != send[0], shared);
        fake_comm_free(comm);
    }
}

/* What it sends of its own to each of them is, if it is short in all, written once as a whole. */
static void short_exchanges_are_written_once(void **state)
{
    static const struct {
        enum tt_func func;
        size_t count; /* of a block of four */
        size_t slice_bytes;
        enum tt_casts casts;
    } cases[] = {
        {TT_FUNC_ALLTOALL, 1, 65536, TT_CASTS_PARTS},
        {TT_FUNC_ALLTOALL, 32, 65536, TT_CASTS_PARTS},
        {TT_FUNC_ALLTOALL, 33, 65536, TT_CASTS_NONE},
        {TT_FUNC_ALLTOALL, 32, 256, TT_CASTS_NONE},
        {TT_FUNC_REDUCESCATTER, 31, 65536, TT_CASTS_PARTS},
        {TT_FUNC_REDUCESCATTER, 300, 65536, TT_CASTS_NONE},
    };
    (void)state;
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        struct tt_comm *comm = fake_comm(4, 1, true);
        struct tt_task task = task_of(comm, cases[k].func, -1);
        print_message("case: %zu\n", k);
        comm->all_memory = true;
        comm->tune.slice_bytes = cases[k].slice_bytes;
        task.count = cases[k].count;
        fake_reset();
        assert_int_equal(tt_plan_add(&task, "call"), ncclSuccess);
        const struct tt_frame *frame = &fake.works[0].frames[0];
        assert_int_equal(frame->call.algo, TT_ALGO_ONESHOT);
        assert_int_equal(frame->casts, cases[k].casts);
        assert_int_equal(frame->send_edges[2] == frame->send_edges[3], cases[k].casts != 0);
        fake_comm_free(comm);
    }
}

static void more_calls_than_the_slab(void **state)
{
    struct tt_comm *comm = fake_comm(4, 1, true);
    (void)state;
    fake_reset();
    tt_group_start();
    for (int k = 0; k < 3 * TT_GROUP_NODES; k++)
        add(comm, TT_FUNC_SEND, 2);
    assert_int_equal(tt_group_end(), ncclSuccess);
    assert_int_equal(fake.nworks, 1);
    assert_int_equal(fake.works[0].spec.nframes, 3 * TT_GROUP_NODES);
    assert_int_equal(fake.works[0].frames[47].after, 47);
    fake_comm_free(comm);
}

/* Where slots are shared the two ends of a message come to it at about the same time, whatever the
 * order of the calls; messages to one peer keep theirs. */
static void many_messages_take_turns(void **state)
{
    enum { RANKS = 16, RANK = 5 };
    struct tt_comm *comm = fake_comm(RANKS, RANK, true);
    (void)state;
    fake_reset();
    fake.expects = true;
    tt_group_start();
    add(comm, TT_FUNC_RECV, RANK + 1);
    for (int peer = 0; peer < RANKS; peer++) {
        if (peer == RANK) continue;
        add(comm, TT_FUNC_SEND, peer);
        add(comm, TT_FUNC_RECV, peer);
    }
    add(comm, TT_FUNC_SEND, RANK + 1);
    assert_int_equal(tt_group_end(), ncclSuccess);
    assert_int_equal(fake.works[0].spec.nframes, 2 * RANKS);
    const struct tt_frame *frames = fake.works[0].frames;
    for (int f = 0, latest = 0; f < 2 * RANKS; f++) {
        bool sends = frames[f].program->func == TT_FUNC_SEND;
        int way = sends ? frames[f].program->root - RANK : RANK - frames[f].program->root;
        int turn = (way + RANKS) % RANKS;
        assert_true(turn >= latest);
        latest = turn;
    }
    assert_int_equal(frames[0].program->func, TT_FUNC_RECV); /* from the previous rank */
    assert_int_equal(frames[1].program->func, TT_FUNC_SEND); /* two to the next one */
    assert_int_equal(frames[2].after, 2);
    fake_comm_free(comm);
}

static void open_and_close(void)
{
    assert_int_equal(tt_group_start(), ncclSuccess);
    assert_int_equal(tt_group_end(), ncclSuccess);
}

static void open_only(void)
{
    fake.on_submit = NULL;
    assert_int_equal(tt_group_start(), ncclSuccess);
}

/* A callback's own group does not touch the one that runs, whose calls lie on the heap. */
static void callback_opens_a_group(void **state)
{
    struct tt_comm *comm = fake_comm(4, 1, true);
    (void)state;
    for (int leaves_open = 0; leaves_open < 2; leaves_open++) {
        fake_reset();
        fake.on_submit = leaves_open ? open_only : open_and_close;
        tt_group_start();
        for (int k = 0; k < 3 * TT_GROUP_NODES; k++)
            add(comm, TT_FUNC_ALLREDUCE, -1);
        assert_int_equal(tt_group_end(), ncclSuccess);
        assert_int_equal(fake.nworks, 1);
        assert_int_equal(tt_group_depth(), leaves_open);
    }
    assert_int_equal(tt_group_end(), ncclSuccess);
    fake_comm_free(comm);
}

static void *leave_open(void *arg)
{
    tt_group_start();
    add(arg, TT_FUNC_ALLREDUCE, -1);
    return NULL;
}

/* The next thread's group gets its calls, though its memory may be that of the one before. */
static void thread_ends_inside(void **state)
{
    struct tt_comm *comm = fake_comm(4, 1, true);
    pthread_t thread;
    (void)state;
    fake_reset();
    assert_int_equal(pthread_create(&thread, NULL, leave_open, comm), 0);
    pthread_join(thread, NULL);
    tt_group_start();
    add(comm, TT_FUNC_ALLREDUCE, -1);
    assert_int_equal(tt_group_end(), ncclSuccess);
    assert_int_equal(fake.nworks, 1);
    fake_comm_free(comm);
}

static void error_drops_everything(void **state)
{
    struct tt_comm *comm = fake_comm(4, 1, true);
    (void)state;
    fake_reset();
    tt_group_start();
    add(comm, TT_FUNC_ALLREDUCE, -1);
    tt_group_error(ncclInvalidArgument);
    tt_group_error(ncclInvalidUsage); /* the latest wins */
    assert_int_equal(tt_group_end(), ncclInvalidUsage);
    assert_int_equal(fake.nworks, 0);
    tt_group_start(); /* the thread is clean */
    add(comm, TT_FUNC_ALLREDUCE, -1);
    assert_int_equal(tt_group_end(), ncclSuccess);
    assert_int_equal(fake.nworks, 1);
    fake_comm_free(comm);
}

static void own_messages(void **state)
{
    static const struct {
        const char *name;
        int sends, recvs;
        ncclResult_t rc;
        int frames;
    } cases[] = {
        {"matched", 1, 1, ncclSuccess, 1},
        {"send alone", 1, 0, ncclInvalidUsage, 0},
        {"receive alone", 0, 1, ncclInvalidUsage, 0},
        {"two and one", 2, 1, ncclInvalidUsage, 0},
        {"two and two", 2, 2, ncclSuccess, 2},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        struct tt_comm *comm = fake_comm(2, 1, true);
        print_message("case: %s\n", cases[i].name);
        fake_reset();
        tt_group_start();
        for (int k = 0; k < cases[i].sends; k++)
            add(comm, TT_FUNC_SEND, 1);
        for (int k = 0; k < cases[i].recvs; k++)
            add(comm, TT_FUNC_RECV, 1);
        assert_int_equal(tt_group_end(), cases[i].rc);
        assert_int_equal(fake.nworks, cases[i].frames ? 1 : 0);
        if (cases[i].frames) assert_int_equal(fake.works[0].spec.nframes, cases[i].frames);
        fake_comm_free(comm);
    }
}

/* A refused call anywhere in the group: nothing of it is launched, on no communicator. */
static void refused_group_launches_nothing(void **state)
{
    struct tt_comm *a = fake_comm(2, 1, true), *b = fake_comm(2, 1, true);
    (void)state;
    a->member.comm_id = 1;
    b->member.comm_id = 2;
    for (int short_buffer = 0; short_buffer < 2; short_buffer++) {
        fake_reset();
        fake.short_buffer = short_buffer ? buffer[3] : NULL;
        tt_group_start();
        add(a, TT_FUNC_ALLREDUCE, -1);
        add(b, TT_FUNC_ALLREDUCE, -1);
        struct tt_task task = task_of(b, short_buffer ? TT_FUNC_BROADCAST : TT_FUNC_SEND, 1);
        task.in = buffer[3];
        assert_int_equal(tt_plan_add(&task, "call"), ncclSuccess);
        assert_int_equal(tt_group_end(), short_buffer ? ncclInvalidArgument : ncclInvalidUsage);
        assert_int_equal(fake.nworks, 0);
    }
    fake_comm_free(a);
    fake_comm_free(b);
}

static void own_receive_too_small(void **state)
{
    struct tt_comm *comm = fake_comm(2, 1, true);
    (void)state;
    struct tt_task recv = task_of(comm, TT_FUNC_RECV, 1);
    recv.count = 8;
    fake_reset();
    tt_group_start();
    add(comm, TT_FUNC_SEND, 1);
    assert_int_equal(tt_plan_add(&recv, "call"), ncclSuccess);
    assert_int_equal(tt_group_end(), ncclInvalidUsage);
    fake_comm_free(comm);
}

/* Frames of the work that an exchange of `count` elements becomes. */
static int frames_of(struct tt_comm *comm, enum tt_func func, int root, size_t count)
{
    struct tt_task task = task_of(comm, func, root);
    task.count = count;
    fake_reset();
    assert_int_equal(tt_plan_add(&task, "call"), ncclSuccess);
    assert_int_equal(fake.nworks, 1);
    return fake.works[0].spec.nframes;
}

/* Long ones are made of messages, short ones are programs, whichever came before. */
static void exchange_without_mapping(void **state)
{
    enum { SHORT = 4, LONG = 1 << 20 };
    struct tt_comm *comm = fake_comm(4, 1, false);
    (void)state;
    for (int round = 0; round < 2; round++) {
        /* own copy, 3 sends, 3 receives */
        assert_int_equal(frames_of(comm, TT_FUNC_ALLTOALL, -1, LONG), 7);
        assert_int_equal(frames_of(comm, TT_FUNC_ALLTOALL, -1, SHORT + round), 1);
        /* root: own copy, 3 receives */
        assert_int_equal(frames_of(comm, TT_FUNC_GATHER, 1, LONG), 4);
        assert_int_equal(frames_of(comm, TT_FUNC_GATHER, 0, LONG), 1);
        assert_int_equal(frames_of(comm, TT_FUNC_SCATTER, 2, LONG), 1); /* one receive */
        assert_ptr_equal(fake.works[0].frames[0].out, buffer[1]);
        assert_int_equal(frames_of(comm, TT_FUNC_SCATTER, 1, LONG), 4);
    }
    fake_comm_free(comm);
}

static void the_cache_skips_the_choice(void **state)
{
    struct tt_comm *comm = fake_comm(4, 1, true);
    (void)state;
    fake_reset();
    for (int k = 0; k < 5; k++)
        add(comm, TT_FUNC_ALLREDUCE, -1);
    assert_int_equal(fake.nworks, 5);
    assert_int_equal(comm->plan->misses, 1);
    assert_true(fake.works[4].allow_inline);
    struct tt_task other = task_of(comm, TT_FUNC_ALLREDUCE, -1);
    other.count++;
    tt_plan_add(&other, "call");
    assert_int_equal(comm->plan->misses, 2);
    assert_int_equal(comm->func_seq[TT_FUNC_ALLREDUCE], 6);
    fake_comm_free(comm);
}

static void one_rank_executes_now(void **state)
{
    struct tt_comm *comm = fake_comm(1, 0, true);
    (void)state;
    fake_reset();
    tt_group_start();
    add(comm, TT_FUNC_ALLREDUCE, -1);
    assert_int_equal(fake.nworks, 1);
    struct tt_task in_place = task_of(comm, TT_FUNC_ALLGATHER, -1);
    in_place.out = buffer[0];
    tt_plan_add(&in_place, "call");
    assert_int_equal(fake.nworks, 1); /* nothing to do */
    assert_int_equal(tt_group_end(), ncclSuccess);
    assert_int_equal(fake.nworks, 1);
    fake_comm_free(comm);
}

static void streams_of_a_group_meet(void **state)
{
    struct tt_comm *comm = fake_comm(2, 0, true);
    (void)state;
    struct tt_task first = task_of(comm, TT_FUNC_ALLREDUCE, -1);
    struct tt_task second = first;
    second.stream = fake_stream(1);
    fake_reset();
    tt_group_start();
    tt_plan_add(&first, "call");
    tt_plan_add(&second, "call");
    assert_int_equal(tt_group_end(), ncclSuccess);
    assert_int_equal(fake.njoins, 2);
    assert_ptr_equal(fake.joins[0].after, fake_stream(1));
    assert_ptr_equal(fake.joins[0].before, fake_stream(0));
    assert_ptr_equal(fake.joins[1].after, fake_stream(0));
    assert_int_equal(fake.nworks, 1);
    assert_ptr_equal(fake.works[0].stream, fake_stream(1));
    fake_comm_free(comm);
}

static void capture_all_or_none(void **state)
{
    struct tt_comm *comm = fake_comm(2, 0, true);
    struct tt_comm *other = fake_comm(2, 1, true);
    (void)state;
    struct tt_task first = task_of(comm, TT_FUNC_ALLREDUCE, -1);
    struct tt_task second = first;
    second.stream = fake_stream(1);
    fake_reset();
    fake.capture[1] = 7;
    tt_group_start();
    tt_plan_add(&first, "call");
    tt_plan_add(&second, "call");
    assert_int_equal(tt_group_end(), ncclInvalidUsage);
    second.comm = other;
    tt_group_start();
    tt_plan_add(&first, "call");
    tt_plan_add(&second, "call");
    assert_int_equal(tt_group_end(), ncclInvalidUsage);
    assert_int_equal(fake.nworks, 0);
    fake.capture[0] = 7;
    tt_group_start();
    tt_plan_add(&first, "call");
    tt_plan_add(&second, "call");
    assert_int_equal(tt_group_end(), ncclSuccess);
    assert_true(fake.works[0].spec.captured);
    assert_ptr_equal(fake.works[0].spec.graph_refs, &comm->graph_refs);
    fake_comm_free(comm);
    fake_comm_free(other);
}

static void simulate_launches_nothing(void **state)
{
    struct tt_comm *comm = fake_comm(4, 1, true);
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    (void)state;
    fake_reset();
    tt_group_start();
    add(comm, TT_FUNC_ALLREDUCE, -1);
    assert_int_equal(tt_group_simulate(&info), ncclSuccess);
    assert_int_equal(fake.nworks, 0);
    assert_true(info.estimatedTime > 0);
    info.magic = 1;
    tt_group_start();
    add(comm, TT_FUNC_ALLREDUCE, -1);
    assert_int_equal(tt_group_simulate(&info), ncclInvalidArgument);
    assert_int_equal(tt_group_depth(), 0);
    fake_comm_free(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(end_without_start),
        cmocka_unit_test(nothing_before_the_end),
        cmocka_unit_test(messages_come_last_and_together),
        cmocka_unit_test(short_calls_are_written_once),
        cmocka_unit_test(short_exchanges_are_written_once),
        cmocka_unit_test(more_calls_than_the_slab),
        cmocka_unit_test(many_messages_take_turns),
        cmocka_unit_test(callback_opens_a_group),
        cmocka_unit_test(thread_ends_inside),
        cmocka_unit_test(error_drops_everything),
        cmocka_unit_test(own_messages),
        cmocka_unit_test(refused_group_launches_nothing),
        cmocka_unit_test(own_receive_too_small),
        cmocka_unit_test(exchange_without_mapping),
        cmocka_unit_test(the_cache_skips_the_choice),
        cmocka_unit_test(one_rank_executes_now),
        cmocka_unit_test(streams_of_a_group_meet),
        cmocka_unit_test(capture_all_or_none),
        cmocka_unit_test(simulate_launches_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
