/* Starts ranks as processes, forwards their output with prefixes, and ends all of them when one
 * fails. */
#pragma once

#include <stdbool.h>

#define LAUNCH_MAX_RANKS 4096
#define LAUNCH_MAX_HOSTS 256
#define LAUNCH_MAX_EXPORTS 64

struct launch_host {
    char name[128];
    int slots;
};

struct launch_options {
    const char *name; /* of the subcommand, for messages; NULL: run */
    int nranks;
    struct launch_host hosts[LAUNCH_MAX_HOSTS]; /* nhosts 0: this machine only */
    int nhosts;
    bool prefix;       /* "[rank] " before every line */
    bool own_ids;      /* no NCCL_COMM_ID: the program hands out unique ids itself */
    bool direct_rank0; /* rank 0 writes to our own standard output, and its errors have no number */
    bool json; /* what became of the job to standard output, what ranks print to the error */
    const char *device;                      /* host, cuda, auto */
    const char *exports[LAUNCH_MAX_EXPORTS]; /* names that ranks on other hosts get too; borrowed */
    int nexports;
    const char *master; /* address that ranks on other hosts can reach; NULL: chosen */
    char **program;     /* argv of the program, NULL-terminated */
};

/* Run to the end. Returns the exit status of the first rank that failed (128 + signal when a signal
 * ended it), 0 when all succeeded, 2 when nothing could be started (said on stderr). */
int launch_run(const struct launch_options *options);
