/* Which ranks wait in an init, as their processes say, and which have ended: do all that are left
 * wait for one that cannot come? */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tt_launcher_note;
struct launch_inits;

/* NULL: memory is short. `far`: ranks are on other hosts. */
struct launch_inits *launch_inits_create(int nranks, bool far);
void launch_inits_destroy(struct launch_inits *inits); /* accepts NULL */

/* What process `pid` of a rank of the job has told. Accepts NULL. */
void launch_inits_take(struct launch_inits *inits, int rank, pid_t pid,
                       const struct tt_launcher_note *note);
/* A rank of the job has ended, with status 0. Accepts NULL. */
void launch_inits_ended(struct launch_inits *inits, int rank);

struct launch_stand {
    char sentence[600]; /* who waits for whom */
    const bool *waits;  /* borrowed: of each rank */
    int ended;          /* the first rank that has ended */
};
/* True when ranks have ended and all others wait in the init of one communicator of as many ranks
 * as the job has. Accepts NULL. */
bool launch_inits_stand(const struct launch_inits *inits, struct launch_stand *stand_out);
