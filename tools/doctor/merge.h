/* Answers of several processes about one job. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Add the answer of a process to the list of jobs. Where it is about a communicator that one of
 * them has as well, that job gets what it lacks: states of ranks that did not answer there, and
 * processes. Owns `job`; accepts NULL. */
void doctor_merge(json_t *jobs, json_t *job);
/* True when both answers are about one communicator. */
bool doctor_shares_comm(const json_t *job, const json_t *other);
/* A process of this host that runs and whose rank is missing in a job, so that it can be asked
 * itself, over its own socket; 0: none. Those in `asked` are passed over. */
int doctor_missing_pid(const json_t *jobs, const int *asked, int nasked);
