/* What the entry points share: the checks of an operation, its log lines, jobs on communicators.
 * Every public function is strong as pncclX; ncclX is its weak alias, so that a tool may wrap it.
 */
#pragma once

#include "comm/comm.h"
#include "nccl.h"
#include "plan/plan.h"
#include "plugin/nvtx.h"

#include <stdbool.h>

/* Read what the user has set: every entry that makes communicators or ids begins with it. */
void tt_settings_load(void);

/* Pointer arguments of queries. */
ncclResult_t tt_check_pointer(const void *ptr, const char *func, const char *what);

/* Not NULL and not destroyed; busy, broken, any phase. */
ncclResult_t tt_check_alive(const struct tt_comm *comm, const char *func);

/* Not NULL and not destroyed, nor will it be before tt_plan_unpin(comm->plan). */
ncclResult_t tt_enter(struct tt_comm *comm, const char *func);

/* Alive and neither busy nor broken; any phase. */
ncclResult_t tt_check_usable(struct tt_comm *comm, const char *func);

/* Allocate a child on the parent's device; it inherits the effective config unless one is given. */
ncclResult_t tt_child_create(const struct tt_comm_request *request, struct tt_comm *parent,
                             struct tt_comm **child_out);

/* "this process has no device": ncclUnhandledCudaError, said. */
ncclResult_t tt_check_device(const char *func);
