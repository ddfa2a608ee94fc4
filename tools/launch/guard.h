/* A process that cleans up after a launcher that could not (kill -9): it ends the ranks with all
 * that they started, and removes the file of the secret. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct launch_guard {
    pid_t pid;              /* 0: not started */
    int alive_fd;           /* the guard sees its other end close when the launcher ends */
    _Atomic(pid_t) *groups; /* process group of each rank, 0: ended; memory shared with the guard */
    size_t ngroups;
};

/* Start it, before any rank and with the signals that end the launcher blocked.
 * secret_file   removed when the launcher ends without launch_guard_end(); copied by fork
 * False when there is no memory or no process for it (said on stderr). */
bool launch_guard_start(struct launch_guard *guard, int nranks, const char *secret_file);

/* All is cleaned up: the guard ends and does nothing. Accepts one that never started. */
void launch_guard_end(struct launch_guard *guard);
