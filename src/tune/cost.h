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

/* choose.c calls it: tt_tune_program_for() with the lists as they were read. */
const struct tt_tune_program *tt_tune_imported(const struct tt_tune_env *env,
                                               const struct tt_tune_query *query,
                                               const struct tt_tune_lists *lists);
