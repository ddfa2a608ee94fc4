/* Reduction operators of calls: built-in ones, averages, user operators; and the check of a call's
 * arguments. Private to the room. */
#pragma once

#include "nccl.h"
#include "program/program.h"

#include <stdbool.h>
#include <stdint.h>

struct tt_comm;
struct tt_reduction;
struct tt_plan;
struct tt_task;

/* The reduction of a call, before an algorithm is chosen.
 * Errors: ncclInvalidArgument for an unknown operator or one of another type. */
ncclResult_t tt_operator_reduction(struct tt_plan *plan, const struct tt_task *task,
                                   struct tt_reduction *reduction_out);
bool tt_redop_known(const struct tt_comm *comm, ncclRedOp_t op);
/* Where the operator's scalar lies on a device; NULL for one that was read when it was created. */
const void *tt_redop_device_scalar(const struct tt_comm *comm, ncclRedOp_t op);
/* Adjust an average to how the chosen algorithm reduces. */
void tt_operator_adapt(struct tt_reduction *reduction, const struct tt_task *task, int nranks,
                       enum tt_algo algo);

/* ---- pointer.c ---- */

/* Check that a pointer of call nccl`name` lies in live memory that the communicator's device
 * reaches. Errors: ncclInvalidArgument naming `what` it is. */
ncclResult_t tt_pointer_check(const struct tt_comm *comm, const char *name, const char *what,
                              const void *ptr);
/* A call was refused: the other ranks hear why, and under TUTTI_STRICT the process does not end
 * well, whether the program looks at the result or not. */
void tt_refusal_keep(struct tt_comm *comm, const char *why);

/* ---- check.c ---- */

/* Check the arguments of a call: root, type, operator, sizes, pointers, in this order.
 * Errors: ncclInvalidArgument naming the argument. */
ncclResult_t tt_task_check(const struct tt_task *task);
/* Bytes of one buffer: the call's count times the size of its type; 0 for an unknown type. */
int64_t tt_task_bytes(const struct tt_task *task);
/* Log the call: lines of COLL and CALL. */
void tt_task_log(const struct tt_task *task);
