/* The predicted time of one entry of the table, before any plugin. Private to the room. */
#pragma once

#include "tune/lists.h"
#include "tune/tune.h"

struct tt_tune_entry {
    enum tt_func func;
    enum tt_algo algo;
    enum tt_proto proto;
};

/* Microseconds; -1: impossible, or forbidden by the lists or TUTTI_DETERMINISTIC. */
double tt_tune_cost(const struct tt_tune_env *env, const struct tt_tune_query *query,
                    const struct tt_tune_lists *lists, const struct tt_tune_entry *entry);

/* The first program of env->programs that fits the operation and needs no comparison; NULL: none.
 * Their ranges win over what a generator makes and a tuner plugin asks for, unless NCCL_ALGO says
 * something of the function, NCCL_PROTO forbids the program's protocol, or the call selects. What a
 * ring may not do (TUTTI_DETERMINISTIC, 8-bit floats over more than 8 ranks) they may not either.
 */
const struct tt_tune_program *tt_tune_imported(const struct tt_tune_env *env,
                                               const struct tt_tune_query *query,
                                               const struct tt_tune_lists *lists);
/* The fastest of those that were measured here, else of those that are predicted, if it is faster
 * than the library's own choice, which takes *time_usec; that then is its time.
 * NULL: none. */
const struct tt_tune_program *tt_tune_faster(const struct tt_tune_env *env,
                                             const struct tt_tune_query *query,
                                             const struct tt_tune_lists *lists, double *time_usec,
                                             bool *measured_out);
