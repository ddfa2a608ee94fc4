/* What is bound once and launched again: which calls take the memo's work, and which plugins may
 * look without costing it. */
#include "fakes.h"

#include "plan/plan.h"
#include "plan/plan_state.h"
#include "plugin/profiler.h"
#include "plugin/tuner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

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
    assert_int_equal(tt_plan_add(&task), ncclSuccess);
}

static int events_started;

static ncclResult_t start_event(void *context, void **handle, ncclProfilerEventDescr_v6_t *descr)
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

static ncclResult_t record_state(void *handle, ncclProfilerEventState_v6_t state,
                                 ncclProfilerEventStateArgs_v6_t *args)
{
    (void)handle, (void)state, (void)args;
    return ncclSuccess;
}

/* With mask 0 a profiler costs a look; with another one the call is bound once all the same. */
static void a_profiler_keeps_the_memo(void **state)
{
    static const ncclProfiler_v6_t table = {
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
    add(comm, 16);
    assert_int_equal(comm->plan->misses, 1);
    assert_true(events_started > 0);
    assert_false(fake.works[3].spec.kept);
    assert_ptr_equal(fake.works[3].spec.events.profiler, &profiler);
    mask = 0;
    add(comm, 16);
    assert_true(fake.works[4].spec.kept);
    assert_int_equal(comm->func_seq[TT_FUNC_ALLREDUCE], 5);
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
        cmocka_unit_test(a_profiler_keeps_the_memo),
        cmocka_unit_test(a_tuner_keeps_what_it_chose_before),
        cmocka_unit_test(one_rank_is_bound_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
