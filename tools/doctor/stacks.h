/* Where the threads of a running program are. */
#pragma once

#include <jansson.h>

/* Add to the processes of the job that run on this host as `pids` where their threads are, but
 * those of the library: "stacks": [{thread, name, frames: [{function, where}]}], innermost frame
 * first, or "stacks_missing": why not. Each thread is stopped for some milliseconds. */
void doctor_add_stacks(json_t *job, const int *pids, int npids);
void doctor_show_stacks(const json_t *job);
