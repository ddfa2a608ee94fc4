/* Ranks that wait in their init for others: what is to be said of them when all were asked. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* True when all ranks that have answered are in the init of this communicator. */
bool doctor_in_init(const json_t *comm);

/* Give each communicator of a job whose ranks wait in its init for ranks that have not come a
 * verdict, unless it has one. */
void doctor_judge_inits(json_t *job);
