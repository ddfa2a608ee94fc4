/* Shared by the entry points: checks of communicators and arguments. Every public function is
 * defined as pncclX; ncclX is its weak alias, so that a tool may wrap it (as with PMPI). */
#pragma once

#include "comm/comm.h"
#include "nccl.h"
#include "plan/plan.h"
#include "plugin/profiler/nvtx.h"

#include <stdbool.h>

/* Read the variables. Call it first in every entry point that makes communicators or ids. */
void tt_settings_load(void);

/* Check a pointer argument of a query; `what` names it. Errors: ncclInvalidArgument. */
ncclResult_t tt_check_pointer(const void *ptr, const char *func, const char *what);

/* Check that a communicator is not NULL and not destroyed. It may be in any phase, busy or failed.
 * Errors: ncclInvalidArgument. */
ncclResult_t tt_check_alive(const struct tt_comm *comm, const char *func);

/* Check that it is alive, not busy and not failed; in any phase. */
ncclResult_t tt_check_usable(struct tt_comm *comm, const char *func);
/* The same where a call has made one: not of what goes on in the background, or when a group ends.
 */
void tt_life_begun(struct tt_nvtx_life *life, ncclResult_t rc, const ncclComm_t *newcomm);

/* Allocate a child on the parent's device; it inherits the effective config unless one is given. */
ncclResult_t tt_child_create(const struct tt_comm_request *request, struct tt_comm *parent,
                             struct tt_comm **child_out);

/* Check that this process has a device. Errors: ncclUnhandledCudaError. */
ncclResult_t tt_check_device(const char *func);
