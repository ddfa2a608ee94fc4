/* What an MPI library asks its launcher: the process management interface (PMI), versions 1 and 2,
 * over one socket per rank. MPICH and what descends from it start by it; Open MPI does not. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct launch_pmi; /* the server's side for all ranks of a job on this machine */

enum launch_pmi_event {
    LAUNCH_PMI_NONE,
    LAUNCH_PMI_ABORT, /* the rank called MPI_Abort */
};

/* NULL when out of memory. */
struct launch_pmi *launch_pmi_create(int nranks);
void launch_pmi_destroy(struct launch_pmi *pmi);

/* Make the pair of sockets of a rank that is about to start. The launcher's end is kept; the
 * other, which has to reach the program as PMI_FD, is the caller's to close. -1: %m says why. */
int launch_pmi_connect(struct launch_pmi *pmi, int rank);

/* Launcher's end, for poll(); -1: closed. */
int launch_pmi_fd(const struct launch_pmi *pmi, int rank);

/* Read what came and answer it; never blocks. *status_out is set with LAUNCH_PMI_ABORT only. */
enum launch_pmi_event launch_pmi_read(struct launch_pmi *pmi, int rank, int *status_out);

/* The rank's process has ended. False: it was between MPI_Init and MPI_Finalize, where others may
 * wait for it. */
bool launch_pmi_ended(struct launch_pmi *pmi, int rank);
