/* `tutti plugin check`: a plugin is driven as a communicator drives it, each case in a process of
 * its own, so that a crash or a hang is a line of the report. One file check_<kind>.c per kind. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct check_options {
    const char *file; /* as NCCL_<KIND>_PLUGIN would have it */
    long iterations;  /* of what is timed */
    long seconds;     /* for each case */
    bool json;
};

/* What a case tells its parent as it goes on; shared memory. */
struct check_case_state {
    char doing[64]; /* what was last begun; "" nothing */
    char note[256]; /* why the answer is no, or a remark */
    int call;       /* the kind's own: last call into the plugin */
    uint64_t detail;
    uint64_t calls; /* into the plugin */
    double nsec_per_call, bytes_per_turn;
    int version;
    uint32_t mask;
    char name[64];
};

enum check_end { CHECK_OK, CHECK_NO, CHECK_CRASHED, CHECK_HUNG };

/* Run `body` in a child with its standard output on ours for talk. It returns 0 when all is well.
 * `state` is shared with it, zeroed before; *signal_out is set with CHECK_CRASHED. */
enum check_end check_isolated(int (*body)(struct check_case_state *state, void *arg), void *arg,
                              long seconds, struct check_case_state *state, int *signal_out);
/* Shared memory for one state; NULL: none to be had (told). */
struct check_case_state *check_state_map(void);

/* Exit status of the command. */
int check_profiler(const struct check_options *options);
