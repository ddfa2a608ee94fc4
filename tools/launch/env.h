/* The environment that every rank gets: who it is, where rank 0 listens, the shared secret, our
 * libraries. */
#pragma once

#include "launch.h"

#include <stddef.h>
#include <sys/types.h>

#define LAUNCH_MAX_VARS 24
#define LAUNCH_VARS_BYTES 20480 /* for all of them as text */

struct launch_env { /* of the whole job; rank variables are made per rank */
    char master[160];
    int port;               /* MASTER_PORT, for the program's own use */
    int id_port;            /* of NCCL_COMM_ID; another one, so that both may be listened on */
    int id_port_fd;         /* keeps it from others until launch_env_fini() */
    int exits_fd;           /* where processes of this host tell (base/launcher.h); -1: none */
    char exits_name[16];    /* its abstract name */
    char secret_file[4096]; /* mode 0600, removed by launch_env_fini() */
    char secret[65];
    char libraries[8192];                 /* value of LD_LIBRARY_PATH */
    int local_max;                        /* most ranks on one host */
    const struct launch_options *options; /* borrowed from the launcher */
};

/* False when something could not be made (said on stderr). */
bool launch_env_init(struct launch_env *env, const struct launch_options *options);
void launch_env_fini(struct launch_env *env);

/* What the script for a remote shell says first, as a line on standard error. */
#define LAUNCH_STARTED "tutti run: the shell has started"

/* And before each line that a process tells the launcher. */
#define LAUNCH_NOTE "tutti run: note "

struct tt_launcher_note;
/* What a process of this host has told first, and its pid; 0: nothing (now). */
pid_t launch_env_note(const struct launch_env *env, struct tt_launcher_note *note_out);

struct launch_slot {
    int rank, nranks;
    int local_rank, local_size;
    int host; /* index into options->hosts; -1: here */
};

/* NAME=VALUE texts for one rank; returns how many. texts[i] are written into `buffer`. */
int launch_env_vars(const struct launch_env *env, const struct launch_slot *slot, char *buffer,
                    size_t buffer_bytes, char *texts[LAUNCH_MAX_VARS]);

/* Shell script that sets the variables, runs the program and keeps its exit status; for a remote
 * shell's standard input, so that no secret stands in a process list. The program is ended when
 * that input ends. Caller frees. */
char *launch_env_script(const struct launch_env *env, const struct launch_slot *slot,
                        char *const *program);
