/* Groups that run in the background: the communicators of one share a record of it until each of
 * them has seen the end. */
#include "plan/group/group.h"

#include <stdlib.h>

/* Drop one use; the last one frees. The thread itself is one of the users: it goes on when every
 * communicator was aborted before it could be attached, and then no thread joins it. */
void tt_background_release(struct tt_background *background)
{
    pthread_mutex_lock(&background->lock);
    bool last = --background->users == 0;
    pthread_mutex_unlock(&background->lock);
    if (!last) return;
    if (!background->joined) pthread_detach(background->thread);
    pthread_mutex_destroy(&background->lock);
    pthread_cond_destroy(&background->ended);
    free(background);
}

static void background_use(struct tt_background *background)
{
    pthread_mutex_lock(&background->lock);
    background->users++;
    pthread_mutex_unlock(&background->lock);
}

/* The plan's background group with a use of its own, or NULL. */
static struct tt_background *background_acquire(struct tt_plan *plan)
{
    pthread_mutex_lock(&plan->background_lock);
    struct tt_background *background = plan->background;
    if (background) background_use(background);
    pthread_mutex_unlock(&plan->background_lock);
    return background;
}

/* It has ended: the plan forgets it, the first to come joins the thread. */
static void background_detach(struct tt_plan *plan, struct tt_background *background)
{
    pthread_mutex_lock(&background->lock);
    bool join = !background->joined;
    background->joined = true;
    pthread_mutex_unlock(&background->lock);
    if (join) pthread_join(background->thread, NULL);
    pthread_mutex_lock(&plan->background_lock);
    bool held = plan->background == background;
    if (held) plan->background = NULL;
    pthread_mutex_unlock(&plan->background_lock);
    if (held) tt_background_release(background);
}

/* Only the thread that closed the group changes the pointer to another one; a thread that polls the
 * state may drop it and the use that goes with it as soon as it is seen. */
void tt_background_attach(struct tt_background *background, struct tt_plan *plan)
{
    pthread_mutex_lock(&plan->background_lock);
    bool attached = plan->background == background;
    pthread_mutex_unlock(&plan->background_lock);
    if (attached || !tt_plan_pin(plan)) return;
    tt_plan_wait(plan);
    background_use(background);
    pthread_mutex_lock(&plan->background_lock);
    plan->background = background;
    pthread_mutex_unlock(&plan->background_lock);
    tt_comm_show(plan->comm, ncclInProgress, "");
    tt_plan_unpin(plan);
}

bool tt_plan_busy(struct tt_plan *plan)
{
    struct tt_background *background = background_acquire(plan);
    if (!background) return false;
    pthread_mutex_lock(&background->lock);
    bool done = background->done;
    pthread_mutex_unlock(&background->lock);
    if (done) background_detach(plan, background);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): two users, two releases */
    tt_background_release(background);
    return !done;
}

void tt_plan_wait(struct tt_plan *plan)
{
    struct tt_background *background = background_acquire(plan);
    if (!background) return;
    pthread_mutex_lock(&background->lock);
    while (!background->done)
        pthread_cond_wait(&background->ended, &background->lock);
    pthread_mutex_unlock(&background->lock);
    background_detach(plan, background);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): two users, two releases */
    tt_background_release(background);
}
