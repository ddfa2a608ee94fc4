/* Jobs of communicators: their order, what undoes them, the background, and a communicator that
 * ends while others use it. What a group launches is read from the fakes. */
#include "../check.h"
#include "fakes.h"

#include "base/mem.h"
#include "plan/group/group.h"
#include "plan/group/job.h"
#include "plan/plan.h"

#include <pthread.h>
#include <stdlib.h>

static char buffer[2][64];

static void add(struct tt_comm *comm)
{
    const struct tt_task task = {.func = TT_FUNC_ALLREDUCE,
                                 .in = buffer[0],
                                 .out = buffer[1],
                                 .count = 16,
                                 .type = ncclFloat32,
                                 .op = ncclSum,
                                 .root = -1,
                                 .comm = comm,
                                 .stream = fake_stream(0)};
    assert_int_equal(tt_plan_add(&task, "call"), ncclSuccess);
}

struct test_job {
    struct tt_job base;
    ncclResult_t answer;
    int *counter; /* incremented by run, in order */
    int order;
    _Atomic int *undone;
    _Atomic int *wait_for; /* run() waits until it is set */
};

static _Atomic int jobs_freed;

static ncclResult_t job_run(struct tt_job *base)
{
    struct test_job *job = tt_container_of(base, struct test_job, base);
    while (job->wait_for && !*job->wait_for)
        continue;
    if (job->counter && (*job->counter)++ != job->order) return ncclInternalError;
    return job->answer;
}

static void job_undo(struct tt_job *base)
{
    struct test_job *job = tt_container_of(base, struct test_job, base);
    if (job->undone) *job->undone = 1;
}

static void job_destroy(struct tt_job *base)
{
    jobs_freed++;
    free(tt_container_of(base, struct test_job, base));
}

static struct test_job *job_of(struct tt_comm *comm, ncclResult_t answer)
{
    struct test_job *job = calloc(1, sizeof(*job));
    job->answer = answer;
    job->base = (struct tt_job){.comm = comm,
                                .run = job_run,
                                .undo = job_undo,
                                .destroy = job_destroy,
                                .blocking = !comm || comm->config.blocking != 0};
    return job;
}

static void jobs_of_one_communicator_keep_order(void **state)
{
    struct tt_comm *a = fake_comm(2, 0, true), *b = fake_comm(2, 1, true);
    int count_a = 0, count_b = 0;
    (void)state;
    jobs_freed = 0;
    tt_group_start();
    for (int k = 0; k < 4; k++) {
        struct test_job *job = job_of(k % 2 ? b : a, ncclSuccess);
        job->counter = k % 2 ? &count_b : &count_a;
        job->order = k / 2;
        assert_int_equal(tt_group_job(&job->base), ncclSuccess);
    }
    assert_int_equal(count_a, 0);
    assert_int_equal(tt_group_end(), ncclSuccess);
    assert_int_equal(count_a, 2);
    assert_int_equal(count_b, 2);
    assert_int_equal(jobs_freed, 4);
    fake_comm_free(a);
    fake_comm_free(b);
}

static void failing_job_undoes_the_others(void **state)
{
    struct tt_comm *a = fake_comm(2, 0, true), *b = fake_comm(2, 1, true);
    _Atomic int undone = 0;
    (void)state;
    struct test_job *waits = job_of(a, ncclRemoteError);
    struct test_job *fails = job_of(b, ncclSystemError);
    waits->undone = waits->wait_for = &undone;
    tt_group_start();
    tt_group_job(&waits->base);
    tt_group_job(&fails->base);
    assert_int_not_equal(tt_group_end(), ncclSuccess);
    assert_int_equal(undone, 1);
    fake_comm_free(a);
    fake_comm_free(b);
}

static void background_shows_progress(void **state)
{
    struct tt_comm *comm = fake_comm(2, 0, true);
    _Atomic int go = 0;
    (void)state;
    comm->config.blocking = 0;
    struct test_job *job = job_of(comm, ncclSystemError);
    job->wait_for = &go;
    assert_int_equal(tt_group_job(&job->base), ncclInProgress);
    assert_int_equal(comm->state, ncclInProgress);
    assert_true(tt_plan_busy(comm->plan));
    go = 1;
    tt_plan_wait(comm->plan);
    assert_false(tt_plan_busy(comm->plan));
    assert_int_equal(comm->state, ncclSystemError);
    fake_comm_free(comm);
}

static _Atomic bool polled_enough;

static void *poll_state(void *arg)
{
    struct tt_comm *comm = arg;
    while (!polled_enough)
        tt_plan_busy(comm->plan);
    return NULL;
}

/* A second thread polls while groups start and land: it may be the one that lets a group go. */
static void background_is_polled(void **state)
{
    struct tt_comm *comm = fake_comm(2, 0, true);
    pthread_t poller;
    (void)state;
    comm->config.blocking = 0;
    assert_int_equal(pthread_create(&poller, NULL, poll_state, comm), 0);
    for (int k = 0; k < 2000; k++) {
        assert_int_equal(tt_group_job(&job_of(comm, ncclSuccess)->base), ncclInProgress);
        tt_plan_wait(comm->plan);
    }
    polled_enough = true;
    pthread_join(poller, NULL);
    fake_comm_free(comm);
}

/* ---- a communicator that ends while others use it ---- */

static ncclResult_t end_run(struct tt_job *base)
{
    struct test_job *job = tt_container_of(base, struct test_job, base);
    struct tt_comm *comm = base->comm;
    if (job->wait_for) *job->wait_for = 1;
    assert_true(tt_plan_close(comm->plan, job->answer));
    if (job->undone) assert_int_equal(*job->undone, 2);
    base->comm = NULL;
    fake_comm_free(comm);
    return ncclSuccess;
}

static struct test_job *end_job(struct tt_comm *comm, ncclResult_t rc)
{
    struct test_job *job = job_of(comm, rc);
    job->base.run = end_run;
    job->base.undo = NULL;
    job->base.must_block = true;
    return job;
}

static void *end_comm(void *arg)
{
    assert_int_equal(tt_group_job(&end_job(arg, ncclInternalError)->base), ncclSuccess);
    return NULL;
}

/* Another thread ends one of the two: nothing is launched on either. */
static void ended_while_a_group_is_open(void **state)
{
    struct tt_comm *a = fake_comm(2, 0, true), *b = fake_comm(2, 1, true);
    pthread_t thread;
    (void)state;
    fake_reset();
    tt_group_start();
    add(a);
    assert_int_equal(pthread_create(&thread, NULL, end_comm, a), 0);
    pthread_join(thread, NULL);
    add(b);
    assert_int_equal(tt_group_end(), ncclInternalError);
    assert_int_equal(fake.nworks, 0);
    tt_group_start();
    add(b);
    assert_int_equal(tt_group_end(), ncclSuccess);
    fake_comm_free(b);
}

/* The group itself ends it, after which no job and no call of the group touches it. */
static void ended_by_its_own_group(void **state)
{
    struct tt_comm *comm = fake_comm(2, 0, true);
    (void)state;
    fake_reset();
    tt_group_start();
    add(comm);
    tt_group_job(&end_job(comm, ncclInvalidUsage)->base);
    tt_group_job(&job_of(comm, ncclSuccess)->base);
    assert_int_equal(tt_group_end(), ncclInvalidUsage);
    assert_int_equal(fake.nworks, 0);
}

static ncclResult_t slow_run(struct tt_job *base)
{
    struct test_job *job = tt_container_of(base, struct test_job, base);
    *job->undone = 1; /* inside */
    while (!*job->wait_for)
        continue;
    assert_int_equal(base->comm->magic, TT_COMM_MAGIC);
    *job->undone = 2; /* done with the communicator */
    return ncclSuccess;
}

struct slow_arg {
    struct tt_comm *comm;
    _Atomic int waiting, go;
};

static void *run_slowly(void *arg)
{
    struct slow_arg *slow = arg;
    struct test_job *job = job_of(slow->comm, ncclSuccess);
    job->base.run = slow_run;
    job->undone = &slow->waiting;
    job->wait_for = &slow->go;
    assert_int_equal(tt_group_job(&job->base), ncclSuccess);
    return NULL;
}

/* The end waits for the job that another thread runs. */
static void ended_while_a_job_runs(void **state)
{
    struct slow_arg slow = {fake_comm(2, 0, true), 0, 0};
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, run_slowly, &slow), 0);
    while (slow.waiting != 1)
        continue;
    struct test_job *job = end_job(slow.comm, ncclInternalError);
    job->undone = &slow.waiting;
    job->wait_for = &slow.go;
    assert_int_equal(tt_group_job(&job->base), ncclSuccess);
    pthread_join(thread, NULL);
}

/* A failure before does not keep it alive. */
static void ends_after_a_failure(void **state)
{
    struct tt_comm *comm = fake_comm(2, 0, true);
    (void)state;
    jobs_freed = 0;
    tt_group_start();
    tt_group_job(&job_of(comm, ncclSystemError)->base);
    struct test_job *job = end_job(comm, ncclInternalError);
    _Atomic int seen = 0;
    job->wait_for = &seen;
    tt_group_job(&job->base);
    assert_int_equal(tt_group_end(), ncclSystemError);
    assert_int_equal(seen, 1);
    assert_int_equal(jobs_freed, 2);
}

static void modes_do_not_mix(void **state)
{
    struct tt_comm *a = fake_comm(2, 0, true), *b = fake_comm(2, 1, true);
    (void)state;
    b->config.blocking = 0;
    tt_group_start();
    assert_int_equal(tt_group_job(&job_of(a, ncclSuccess)->base), ncclSuccess);
    assert_int_equal(tt_group_job(&job_of(b, ncclSuccess)->base), ncclInvalidArgument);
    assert_int_equal(tt_group_end(), ncclInvalidArgument);
    fake_comm_free(a);
    fake_comm_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_one_communicator_keep_order),
        cmocka_unit_test(failing_job_undoes_the_others),
        cmocka_unit_test(background_shows_progress),
        cmocka_unit_test(background_is_polled),
        cmocka_unit_test(ended_while_a_group_is_open),
        cmocka_unit_test(ended_by_its_own_group),
        cmocka_unit_test(ended_while_a_job_runs),
        cmocka_unit_test(ends_after_a_failure),
        cmocka_unit_test(modes_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
