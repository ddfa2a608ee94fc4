/* Runs what a group collected: first the jobs, each in a thread when there are several (they meet
 * each other), then the calls. A group of non-blocking communicators does that in a thread of its
 * own. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "device/device.h"
#include "plan/group/group.h"
#include "plan/group/job.h"
#include "plan/launch/batch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- jobs ---- */

struct running_jobs { /* the jobs of one group while they run */
    struct tt_job *jobs;
    pthread_mutex_t lock;
    bool failed;
};

struct job_thread {
    struct running_jobs *running;
    struct tt_job *first;
    pthread_t thread;
    bool started;
};

static void jobs_failed(struct running_jobs *running, const struct tt_job *job)
{
    pthread_mutex_lock(&running->lock);
    bool first = !running->failed;
    running->failed = true;
    pthread_mutex_unlock(&running->lock);
    for (struct tt_job *other = first ? running->jobs : NULL; other; other = other->next) {
        if (other != job && other->undo) other->undo(other);
    }
}

/* Whose connections the job uses: a grow its parent's. */
static const struct tt_plan *job_line(const struct tt_job *job)
{
    return job->parent_plan ? job->parent_plan : job->plan;
}

/* Run it, unless another thread or an earlier job ended its communicator. */
static ncclResult_t job_run(struct tt_job *job)
{
    struct tt_plan *plan = job->plan;
    if (plan && job->gone_is_ok && !tt_plan_pin(plan)) return ncclSuccess;
    ncclResult_t rc = plan && !job->gone_is_ok ? tt_plan_pin_or_fail(plan) : ncclSuccess;
    if (rc) tt_error_take(job->why, sizeof(job->why));
    if (rc) return rc;
    if (job->comm) tuttiHostSetDevice(job->comm->member.device);
    job->ran = true;
    rc = job->run(job);
    if (rc) tt_error_take(job->why, sizeof(job->why));
    if (plan) tt_plan_unpin(plan);
    return rc;
}

/* The first job and all later ones on the same communicator, in order: they use its connections.
 * After a failure only those that end it still run. */
static void jobs_run(struct running_jobs *running, struct tt_job *first)
{
    const struct tt_plan *line = job_line(first);
    bool failed = false;
    for (struct tt_job *job = first; job; job = job->next) {
        if (job != first && (!line || job_line(job) != line)) continue;
        if (failed && !job->must_block) continue;
        job->rc = job_run(job);
        if (job->rc && !failed) jobs_failed(running, job);
        failed = failed || job->rc;
    }
}

static bool job_leads(const struct running_jobs *running, const struct tt_job *job)
{
    for (const struct tt_job *other = running->jobs; other != job; other = other->next) {
        if (job_line(job) && job_line(other) == job_line(job)) return false;
    }
    return true;
}

static void *job_main(void *arg)
{
    struct job_thread *self = arg;
    jobs_run(self->running, self->first);
    return NULL;
}

static void jobs_in_threads(struct running_jobs *running, struct job_thread *threads, int nthreads)
{
    int k = 0;
    for (struct tt_job *job = running->jobs; job; job = job->next) {
        if (job_leads(running, job))
            threads[k++] = (struct job_thread){.running = running, .first = job};
    }
    for (k = 0; k < nthreads; k++) {
        int err = pthread_create(&threads[k].thread, NULL, job_main, &threads[k]);
        threads[k].started = err == 0;
        if (err == 0) continue;
        threads[k].first->rc = tt_fail(ncclSystemError,
                                       "group: no thread for job %d of %d (error "
                                       "%d)",
                                       k + 1, nthreads, err);
        tt_error_take(threads[k].first->why, sizeof(threads[k].first->why));
        jobs_failed(running, threads[k].first);
    }
    for (k = 0; k < nthreads; k++) {
        if (threads[k].started) pthread_join(threads[k].thread, NULL);
    }
}

static ncclResult_t jobs_start(struct running_jobs *running)
{
    int nthreads = 0;
    for (struct tt_job *job = running->jobs; job; job = job->next)
        nthreads += job_leads(running, job);
    if (nthreads == 1) {
        jobs_run(running, running->jobs);
        return ncclSuccess;
    }
    struct job_thread *threads = tt_calloc((size_t)nthreads, sizeof(*threads));
    if (!threads) return tt_fail(ncclSystemError, "group: out of memory for %d jobs", nthreads);
    jobs_in_threads(running, threads, nthreads);
    free(threads);
    return ncclSuccess;
}

static ncclResult_t run_jobs(struct tt_group *group)
{
    struct running_jobs running = {.jobs = group->jobs};
    if (!group->jobs) return ncclSuccess;
    int device = tuttiHostGetDevice();
    pthread_mutex_init(&running.lock, NULL);
    ncclResult_t rc = jobs_start(&running);
    pthread_mutex_destroy(&running.lock);
    tuttiHostSetDevice(device);
    if (rc) tt_error_take(group->why, sizeof(group->why));
    for (struct tt_job *job = group->jobs; job && !rc; job = job->next) {
        rc = job->rc;
        if (rc) memcpy(group->why, job->why, sizeof(group->why));
        if (rc) tt_error_keep("%s", group->why); /* another thread may have said it */
    }
    return rc;
}

/* ---- calls ---- */

static ncclResult_t simulate(struct tt_group *group)
{
    double total = 0;
    bool known = false;
    for (struct tt_plan *plan = group->plans; plan; plan = plan->next_in_group) {
        double usec = -1;
        ncclResult_t rc = tt_launch_estimate(plan, plan->first, &usec);
        if (rc) return rc;
        if (usec < 0) continue;
        known = true;
        if (usec > total) total = usec; /* communicators run side by side */
    }
    size_t end = offsetof(ncclSimInfo_t, estimatedTime) + sizeof(float);
    if (known && group->simulate->size >= end) group->simulate->estimatedTime = (float)total;
    return ncclSuccess;
}

/* Prepare the calls of one communicator; it goes to streams that are captured like the first's. */
static ncclResult_t prepare(struct tt_group *group, struct tt_plan *plan)
{
    const struct tt_plan *leader = group->plans;
    plan->launch = (struct tt_group_launch){0};
    if (!plan->first) return ncclSuccess; /* it had calls with count 0 alone */
    while (!leader->first)
        leader = leader->next_in_group;
    bool alone = !group->plans->next_in_group && !group->jobs;
    plan->launch =
        (struct tt_group_launch){.allow_inline = alone, .single = alone && !plan->first->next};
    ncclResult_t rc = tt_launch_prepare(plan, plan->first, &plan->launch);
    if (rc || plan->launch.captured == leader->launch.captured) return rc;
    return tt_fail(ncclInvalidUsage,
                   "rank %d: the communicators of a group must all be captured or none",
                   plan->comm->member.rank);
}

/* All or nothing: whatever may refuse a call comes before the first one is launched. */
static ncclResult_t launch(struct tt_group *group)
{
    struct tt_plan *plan, *entered = group->plans; /* up to this one */
    ncclResult_t rc = ncclSuccess;
    while (entered && !rc) {
        rc = tt_plan_enter_pinned(entered);
        if (!rc) entered = entered->next_in_group;
    }
    if (!rc) rc = tt_global_check_collect(group->plans);
    for (plan = group->plans; plan && !rc; plan = plan->next_in_group)
        rc = prepare(group, plan);
    if (!rc) rc = tt_global_check_group(group->plans);
    if (!rc && tuttiHostChecks()) tt_group_look_across(group->plans);
    for (plan = group->plans; plan && !rc; plan = plan->next_in_group)
        if (plan->first) rc = tt_launch_prepared(plan, plan->first, &plan->launch);
    for (plan = group->plans; plan != entered; plan = plan->next_in_group)
        tt_plan_exit(plan);
    return rc;
}

ncclResult_t tt_group_run(struct tt_group *group)
{
    struct tt_plan *pinned = group->plans; /* up to this one */
    ncclResult_t rc = run_jobs(group);
    if (rc) return rc;
    while (pinned && !rc) {
        rc = tt_plan_pin_or_fail(pinned);
        if (!rc) pinned = pinned->next_in_group;
    }
    if (!rc) rc = group->simulate ? simulate(group) : launch(group);
    if (rc) tt_error_take(group->why, sizeof(group->why));
    for (struct tt_plan *plan = group->plans; plan != pinned; plan = plan->next_in_group)
        tt_plan_unpin(plan);
    return rc;
}

/* ---- in a thread of its own ---- */

static void *group_main(void *arg)
{
    struct tt_background *background = arg;
    struct tt_group *group = background->group;
    ncclResult_t rc = tt_group_run(group);
    for (struct tt_plan *plan = group->plans; plan; plan = plan->next_in_group)
        tt_plan_show(plan, rc, group->why);
    for (struct tt_job *job = group->jobs; job; job = job->next) {
        if (!job->plan) continue;
        tt_plan_show(job->plan, job->rc ? job->rc : rc, job->rc ? job->why : group->why);
    }
    tt_group_destroy(group);
    pthread_mutex_lock(&background->lock);
    background->done = true;
    pthread_cond_broadcast(&background->ended);
    pthread_mutex_unlock(&background->lock);
    tt_background_release(background);
    return NULL;
}

ncclResult_t tt_group_run_in_thread(struct tt_group *group)
{
    struct tt_background *background = tt_calloc(1, sizeof(*background));
    if (!background) {
        tt_group_destroy(group);
        return tt_fail(ncclSystemError, "group: out of memory");
    }
    pthread_mutex_init(&background->lock, NULL);
    pthread_cond_init(&background->ended, NULL);
    background->group = group;
    background->users = 2; /* this function's, until every communicator is attached; the thread's */
    for (struct tt_job *job = group->jobs; job; job = job->next)
        if (job->plan) tt_background_attach(background, job->plan);
    for (struct tt_plan *plan = group->plans; plan; plan = plan->next_in_group)
        tt_background_attach(background, plan);
    pthread_mutex_lock(
        &background->lock); /* a thread that sees it done sees which thread to join */
    int err = pthread_create(&background->thread, NULL, group_main, background);
    background->joined = err != 0;
    pthread_mutex_unlock(&background->lock);
    if (err) {
        tt_fail(ncclSystemError, "group: no background thread (error %d); it runs here", err);
        group_main(background);
    }
    tt_background_release(background);
    return ncclInProgress;
}
