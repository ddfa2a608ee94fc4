/* What is bound once and launched again: which calls take the cached work, and which plugins may
 * look without costing it. */
#include "../check.h"
#include "fakes.h"

#include "plan/plan.h"
#include "plan/plan_state.h"
#include "plugin/profiler/profiler.h"
#include "plugin/tuner/tuner.h"

#include <stdio.h>
#include <stdlib.h>

static char buffer[2][4096];

static void add(struct tt_comm *comm, size_t count)
{
    const struct tt_task task = {.func = TT_FUNC_ALLREDUCE,
                                 .in = buffer[0],
                                 .out = buffer[1],
                                 .count = count,
                                 .type = ncclFloat32,
                                 .op = ncclSum,
                                 .root = -1,
                                 .comm = comm,
                                 .stream = fake_stream(0)};
    assert_int_equal(tt_plan_add(&task, "call"), ncclSuccess);
}

static int events_started;

static ncclResult_t start_event(void *context, void **handle, ncclProfilerEventDescr_v7_t *descr)
{
    (void)context, (void)descr;
    events_started++;
    *handle = &events_started;
    return ncclSuccess;
}

static ncclResult_t stop_event(void *handle)
{
    (void)handle;
    return ncclSuccess;
}

static ncclResult_t record_state(void *handle, ncclProfilerEventState_v7_t state,
                                 ncclProfilerEventStateArgs_v7_t *args)
{
    (void)handle, (void)state, (void)args;
    return ncclSuccess;
}

/* With mask 0 a profiler costs a look; with another one the call is bound once all the same, and
 * has a work of its own that is kept as well and hears of each call's events. */
static void a_profiler_keeps_the_cache(void **state)
{
    static const ncclProfiler_v7_t table = {
        .startEvent = start_event, .stopEvent = stop_event, .recordEventState = record_state};
    struct tt_comm *comm = fake_comm(4, 1, true);
    int mask = 0;
    struct tt_profiler profiler = {.table = &table, .member = &comm->member, .mask = &mask};
    (void)state;
    fake_reset();
    comm->profiler = &profiler;
    for (int k = 0; k < 3; k++)
        add(comm, 16);
    assert_int_equal(comm->plan->misses, 1);
    assert_int_equal(events_started, 0);
    for (int k = 0; k < 3; k++) {
        assert_true(fake.works[k].spec.kept);
        assert_true(fake.works[k].allow_inline);
    }
    mask = ncclProfileColl;
    int created = fake.created, started = 0;
    for (int k = 3; k < 6; k++) {
        add(comm, 16);
        assert_true(events_started > started);
        started = events_started;
        assert_true(fake.works[k].spec.kept);
        assert_ptr_equal(fake.works[k].spec.events.profiler, &profiler);
    }
    assert_int_equal(fake.created, created + 1);
    assert_int_equal(comm->plan->misses, 1);
    mask = 0;
    add(comm, 16);
    assert_true(fake.works[6].spec.kept);
    assert_null(fake.works[6].spec.events.profiler);
    assert_int_equal(fake.created, created + 1);
    assert_int_equal(comm->func_seq[TT_FUNC_ALLREDUCE], 7);
    fake_comm_free(comm);
}

/* The tuner is asked each time; only another answer binds anew. */
static void a_tuner_keeps_what_it_chose_before(void **state)
{
    struct tt_comm *comm = fake_comm(4, 1, true);
    char path[512];
    struct tt_tuner_stats stats;
    (void)state;
    fake_reset();
    snprintf(path, sizeof(path), "%s/libnccl-tuner_force.so", getenv("TUTTI_TEST_PLUGINS"));
    setenv("NCCL_TUNER_PLUGIN", path, 1);
    setenv("TUNER_FORCE", "1,2,2", 1); /* ring, Simple, two channels */
    tt_tuner_open(&(struct tt_tuner_config){.nranks = 4, .nnodes = 1}, &comm->tuner);
    assert_non_null(comm->tuner);
    for (int k = 0; k < 3; k++)
        add(comm, 256);
    assert_int_equal(comm->plan->misses, 1);
    assert_true(fake.works[2].spec.kept);
    assert_int_equal(fake.works[2].spec.nframes, 2);
    setenv("TUNER_FORCE", "1,2,1", 1);
    add(comm, 256);
    assert_int_equal(comm->plan->misses, 2);
    assert_int_equal(fake.works[3].spec.nframes, 1);
    tt_tuner_stats(comm->tuner, &stats);
    assert_int_equal(stats.asked, 8); /* for the choice and for the chunk */
    tt_tuner_close(comm->tuner);
    fake_comm_free(comm);
}

static void add_message(struct tt_comm *comm, enum tt_func func, int peer, char *at, size_t bytes)
{
    const struct tt_task task = {.func = func,
                                 .in = func == TT_FUNC_SEND ? at : NULL,
                                 .out = func == TT_FUNC_RECV ? at : NULL,
                                 .count = bytes,
                                 .type = ncclInt8,
                                 .op = ncclSum,
                                 .root = peer,
                                 .comm = comm,
                                 .stream = fake_stream(0)};
    assert_int_equal(tt_plan_add(&task, "call"), ncclSuccess);
}

/* To and from two ranks and within this one; the group's buffers lie from `from` on. */
static void exchange(struct tt_comm *comm, size_t from, size_t bytes)
{
    tt_group_start();
    for (int peer = 0; peer < 2; peer++) {
        add_message(comm, TT_FUNC_SEND, peer, buffer[0] + from + peer * 8, bytes);
        add_message(comm, TT_FUNC_RECV, peer, buffer[1] + from + peer * 8, bytes);
    }
    assert_int_equal(tt_group_end(), ncclSuccess);
}

/* Two AllReduces in one group. Returns the works that this took. */
static int pair(struct tt_comm *comm, char *in, char *out, size_t count)
{
    struct tt_task task = {.func = TT_FUNC_ALLREDUCE,
                           .in = buffer[0],
                           .out = buffer[1],
                           .count = count,
                           .type = ncclFloat32,
                           .op = ncclSum,
                           .root = -1,
                           .comm = comm,
                           .stream = fake_stream(0)};
    int before = fake.nworks;
    tt_group_start();
    assert_int_equal(tt_plan_add(&task, "call"), ncclSuccess);
    task.in = in;
    task.out = out;
    assert_int_equal(tt_plan_add(&task, "call"), ncclSuccess);
    assert_int_equal(tt_group_end(), ncclSuccess);
    return fake.nworks - before;
}

static void small_collectives_of_a_group_are_one_work(void **state)
{
    struct tt_comm *comm = fake_comm(2, 0, true);
    char *in = buffer[0] + 256, *out = buffer[1] + 256;
    (void)state;
    fake_reset();
    assert_int_equal(pair(comm, in, out, 8), 1);
    assert_int_equal(fake.works[0].spec.nframes, 2);
    assert_false(fake.works[0].frames[0].begins);
    assert_true(fake.works[0].frames[1].begins);
    int created = fake.created;
    assert_int_equal(pair(comm, in + 64, out + 64, 8), 1);
    assert_ptr_equal(fake.works[1].frames[0].in, buffer[0]);
    assert_ptr_equal(fake.works[1].frames[1].in, in + 64);
    assert_ptr_equal(fake.works[1].frames[1].out, out + 64);
    assert_int_equal(pair(comm, in, in, 8), 1);               /* in place */
    assert_int_equal(pair(comm, buffer[0], buffer[1], 8), 1); /* the same result twice */
    assert_int_equal(fake.created, created);
    assert_int_equal(pair(comm, buffer[1] + 28, out, 8), 2); /* reads the first one's result */
    assert_int_equal(pair(comm, in, out, 8), 1);
    fake.not_flat = true;
    assert_int_equal(pair(comm, in, out, 16), 2);
    created = fake.created;
    assert_int_equal(pair(comm, in, out, 16), 2); /* not tried again */
    assert_int_equal(fake.created - created, 0);
    fake_comm_free(comm);
}

static void a_group_of_messages_is_kept(void **state)
{
    struct tt_comm *comm = fake_comm(2, 0, true);
    (void)state;
    fake_reset();
    exchange(comm, 0, 8);
    exchange(comm, 64, 8);  /* the same with other buffers */
    exchange(comm, 64, 16); /* other sizes: bound anew */
    exchange(comm, 128, 8); /* still known */
    assert_int_equal(fake.nworks, 4);
    for (int k = 0; k < 4; k++) {
        static const size_t from[] = {0, 64, 64, 128};
        const struct fake_work *work = &fake.works[k];
        print_message("case: group %d\n", k);
        assert_true(work->spec.kept && work->allow_inline);
        assert_int_equal(work->spec.nframes, 3);
        assert_ptr_equal(work->frames[0].in, buffer[0] + from[k] + 8);
        assert_ptr_equal(work->frames[1].out, buffer[1] + from[k] + 8);
        assert_ptr_equal(work->frames[2].in, buffer[0] + from[k]); /* within the rank: last */
        assert_ptr_equal(work->frames[2].out, buffer[1] + from[k]);
    }
    assert_int_equal(fake.created, 2);
    fake_comm_free(comm);
}

/* Messages that a profiler sees have a kept work beside the one without it, whose frames get the
 * events of each group. */
static void a_profiler_keeps_messages(void **state)
{
    static const ncclProfiler_v7_t table = {
        .startEvent = start_event, .stopEvent = stop_event, .recordEventState = record_state};
    int mask = ncclProfileP2p;
    struct tt_comm *comm = fake_comm(2, 0, true);
    struct tt_profiler profiler = {.table = &table, .member = &comm->member, .mask = &mask};
    (void)state;
    fake_reset();
    comm->profiler = &profiler;
    for (int k = 0; k < 3; k++) {
        const struct fake_work *work = &fake.works[k];
        int started = events_started;
        exchange(comm, 64 * (size_t)k, 8);
        /* GroupApi and Group, a P2pApi and a P2p for each of four messages */
        assert_int_equal(events_started, started + 2 + 4 + 4);
        assert_true(work->spec.kept);
        assert_ptr_equal(work->spec.events.profiler, &profiler);
        assert_ptr_equal(work->frames[0].in, buffer[0] + 64 * k + 8);
        assert_ptr_equal(work->frames[0].event, &events_started);
        assert_ptr_equal(work->frames[1].event, &events_started);
        assert_ptr_equal(work->frames[2].event, &events_started); /* within the rank */
    }
    assert_int_equal(fake.created, 1);
    mask = 0;
    int started = events_started;
    exchange(comm, 0, 8);
    exchange(comm, 64, 8);
    assert_int_equal(events_started, started);
    assert_null(fake.works[4].spec.events.profiler);
    assert_null(fake.works[4].frames[0].event);
    assert_int_equal(fake.created, 2);
    fake_comm_free(comm);
}

/* So have small collectives of a group. */
static void a_profiler_keeps_collectives(void **state)
{
    static const ncclProfiler_v7_t table = {
        .startEvent = start_event, .stopEvent = stop_event, .recordEventState = record_state};
    int mask = ncclProfileColl | ncclProfileKernelLaunch;
    struct tt_comm *comm = fake_comm(2, 0, true);
    struct tt_profiler profiler = {.table = &table, .member = &comm->member, .mask = &mask};
    char *in = buffer[0] + 256, *out = buffer[1] + 256;
    (void)state;
    int created = 0;
    fake_reset();
    comm->profiler = &profiler;
    for (int k = 0; k < 3; k++) {
        const struct fake_work *work = &fake.works[k];
        int started = events_started;
        if (k == 1) created = fake.created;
        assert_int_equal(pair(comm, in + 64 * k, out, 8), 1);
        /* GroupApi, Group and KernelLaunch, a CollApi and a Coll for each of two */
        assert_int_equal(events_started, started + 3 + 2 * 2);
        assert_ptr_equal(work->spec.events.profiler, &profiler);
        assert_ptr_equal(work->frames[1].in, in + 64 * k);
        assert_ptr_equal(work->frames[0].event, &events_started);
        assert_ptr_equal(work->frames[1].event, &events_started);
    }
    assert_int_equal(fake.created, created);
    mask = 0;
    int started = events_started;
    assert_int_equal(pair(comm, in, out, 8), 1);
    assert_int_equal(events_started, started);
    fake_comm_free(comm);
}

static void one_rank_is_bound_once(void **state)
{
    struct tt_comm *comm = fake_comm(1, 0, true);
    (void)state;
    fake_reset();
    for (int k = 0; k < 3; k++)
        add(comm, 16);
    tt_group_start();
    add(comm, 16);
    assert_int_equal(fake.nworks, 4); /* in groups too it runs at once */
    tt_group_end();
    assert_int_equal(fake.nworks, 4);
    assert_int_equal(comm->plan->misses, 1);
    assert_true(fake.works[3].spec.kept);
    fake_comm_free(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_profiler_keeps_the_cache),
        cmocka_unit_test(a_tuner_keeps_what_it_chose_before),
        cmocka_unit_test(small_collectives_of_a_group_are_one_work),
        cmocka_unit_test(a_profiler_keeps_messages),
        cmocka_unit_test(a_profiler_keeps_collectives),
        cmocka_unit_test(a_group_of_messages_is_kept),
        cmocka_unit_test(one_rank_is_bound_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
