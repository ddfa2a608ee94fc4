/* How calls fold: built-in operators, averages, user operators. Private to the room. */
#pragma once

#include "nccl.h"
#include "program/program.h"

#include <stdbool.h>

struct tt_comm;
struct tt_fold;
struct tt_plan;
struct tt_task;

/* The fold of a call, before an algorithm is chosen.
 * Errors: ncclInvalidArgument for an unknown operator or one of another type. */
ncclResult_t tt_operator_fold(struct tt_plan *plan, const struct tt_task *task,
                              struct tt_fold *fold_out);
bool tt_redop_known(const struct tt_comm *comm, ncclRedOp_t op);
/* Adjust an average to how the chosen algorithm folds. */
void tt_operator_adapt(struct tt_fold *fold, const struct tt_task *task, int nranks,
                       enum tt_algo algo);
