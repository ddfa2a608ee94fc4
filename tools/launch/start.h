/* A job under way: what is known of its ranks, and what starts them. Private to launch.c, which
 * watches and ends them, and start.c. */
#pragma once

#include "env.h"
#include "guard.h"
#include "launch.h"
#include "output.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>

struct launch_child {
    pid_t pid; /* 0: ended */
    int status;
    int said, said_status; /* number among those that said that they exit; 0: none */
    int held;              /* number among the failures that are held back; 0: none */
    struct launch_output out, err;
    int script_fd; /* script of a remote shell, which ends its rank when we close it; -1: local */
};

struct launch {
    const struct launch_options *options;
    struct launch_env env;
    struct launch_guard guard;
    struct launch_pmi *pmi; /* NULL: ranks are on other hosts, which it does not reach */
    struct rlimit files;    /* descriptors that a rank may have: as many as we were given */
    struct launch_child *children;
    struct launch_same *same;     /* NULL: each rank's warnings are printed */
    struct launch_report *report; /* NULL: not wanted */
    struct launch_inits *inits;
    bool reported[LAUNCH_MAX_HOSTS]; /* its remote shell has said why it cannot start ranks */
    int nalive, nsaid, nheld;
    struct timespec held_since; /* the first of them */
    int first_status;           /* exit status to report; -1: none failed yet */
    bool ending;
    struct timespec ending_since;
    bool killed;
    int signal_fd;
    int typed[2]; /* way of what is typed to rank 0; -1: it reads our standard input itself */
};

/* Where the rank is to run. A host may be listed several times. */
struct launch_slot launch_slot_of(const struct launch_options *options, int rank);
/* What starts ranks on other hosts. */
const char *launch_remote_shell(void);
/* Start the rank. False: it could not be, and that is said. */
bool launch_start(struct launch *launch, int rank);
/* What keeps execvp() from finding the program (an errno), or 0. */
int launch_find_program(const char *name);
/* Say so. Returns the exit status that shells give. */
int launch_no_program(const struct launch_options *options, int why);

/* The way of what is typed at a terminal to rank 0. Open it before that is started. */
bool launch_open_typed(struct launch *launch);
void launch_forward_typed(struct launch *launch);
void launch_close_typed(struct launch *launch);
