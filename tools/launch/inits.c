/* A communicator may be of fewer ranks than the job, and a process may have several ranks. So it is
 * a hang only where as many processes as live wait for a communicator of the whole job, each with
 * one rank of it, and none is left that could come. */
#include "inits.h"

#include "base/launcher.h"
#include "base/text/rank_list.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FRESH_SEC 5 /* a note that comes each second */

struct state {
    bool ended;
    pid_t pid;
    struct tt_launcher_note note; /* the last one of that process */
    struct timespec since;
};

struct launch_inits {
    int nranks, nended;
    bool far;
    struct state *states; /* owned */
    bool *waits;          /* owned; by launch_inits_stand() */
};

struct launch_inits *launch_inits_create(int nranks, bool far)
{
    struct launch_inits *inits = calloc(1, sizeof(*inits));
    if (!inits) return NULL;
    inits->nranks = nranks;
    inits->far = far;
    inits->states = calloc((size_t)nranks, sizeof(*inits->states));
    inits->waits = calloc((size_t)nranks, sizeof(*inits->waits));
    if (inits->states && inits->waits) return inits;
    launch_inits_destroy(inits);
    return NULL;
}

void launch_inits_destroy(struct launch_inits *inits)
{
    if (!inits) return;
    free(inits->states);
    free(inits->waits);
    free(inits);
}

void launch_inits_take(struct launch_inits *inits, int rank, pid_t pid,
                       const struct tt_launcher_note *note)
{
    struct state *state = inits ? &inits->states[rank] : NULL;
    if (!state) return;
    state->pid = pid;
    state->note = *note;
    clock_gettime(CLOCK_MONOTONIC, &state->since);
}

void launch_inits_ended(struct launch_inits *inits, int rank)
{
    if (!inits || inits->states[rank].ended) return;
    inits->states[rank].ended = true;
    inits->nended++;
}

/* Of a process on another host it is known that it lives by what it tells each second. */
static bool lives(const struct launch_inits *inits, const struct state *state)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!inits->far) return kill(state->pid, 0) == 0;
    return now.tv_sec - state->since.tv_sec < FRESH_SEC;
}

/* It waits with one rank, and its process, which may be a child of the one that was started, is
 * there. */
static bool waits(const struct launch_inits *inits, const struct state *state,
                  const struct tt_launcher_note *first)
{
    return state->note.status == 1 && state->note.nranks == inits->nranks &&
           state->note.comm_id == first->comm_id && lives(inits, state);
}

bool launch_inits_stand(const struct launch_inits *inits, struct launch_stand *stand_out)
{
    struct tt_rank_list here = {.count = 0}, gone = {.count = 0};
    const struct tt_launcher_note *first = NULL;
    if (!inits || !inits->nended || inits->nended == inits->nranks) return false;
    for (int r = inits->nranks - 1; r >= 0; r--) {
        const struct state *state = &inits->states[r];
        inits->waits[r] = !state->ended;
        if (state->ended) stand_out->ended = r;
        if (state->ended) continue;
        if (!first) first = &state->note;
        if (!waits(inits, state, first)) return false;
    }
    for (int r = 0; r < inits->nranks; r++)
        tt_rank_list_add(inits->states[r].ended ? &gone : &here, r);
    snprintf(stand_out->sentence, sizeof(stand_out->sentence),
             "%s %s ended with status 0, and %s %s %s for %s in the init of a communicator of all "
             "%d ranks",
             gone.count > 1 ? "ranks" : "rank", gone.text, here.count > 1 ? "ranks" : "rank",
             here.text, here.count > 1 ? "wait" : "waits", gone.count > 1 ? "them" : "it",
             inits->nranks);
    stand_out->waits = inits->waits;
    return true;
}
