/* Versions 1 to 3 of the interface: init does not say what communicator it is for, so each
 * operation carries its communicator's number. */
#pragma once

#include "nccl/profiler.h"

ncclResult_t trace_init_v1(void **context, int *mask);
ncclResult_t trace_init_v2(void **context, int *mask);
ncclResult_t trace_init_v3(void **context, int *mask);
ncclResult_t trace_start_v1(void *context, void **handle, ncclProfilerEventDescr_v1_t *descr);
ncclResult_t trace_start_v2(void *context, void **handle, ncclProfilerEventDescr_v2_t *descr);
ncclResult_t trace_start_v3(void *context, void **handle, ncclProfilerEventDescr_v3_t *descr);
ncclResult_t trace_state_v1(void *handle, ncclProfilerEventState_t state,
                            ncclProfilerEventStateArgs_v1_t *args);
ncclResult_t trace_state_v2(void *handle, ncclProfilerEventState_t state,
                            ncclProfilerEventStateArgs_v2_t *args);
ncclResult_t trace_state_v3(void *handle, ncclProfilerEventState_t state,
                            ncclProfilerEventStateArgs_v3_t *args);
