/* Profiler plugins: a library exports ncclProfiler_v7 (newest) or an older one, down to
 * ncclProfiler_v1. */
#ifndef TUTTI_NCCL_PROFILER_H_
#define TUTTI_NCCL_PROFILER_H_

#include "profiler_v1.h"
#include "profiler_v2.h"
#include "profiler_v3.h"
#include "profiler_v4.h"
#include "profiler_v5.h"
#include "profiler_v6.h"
#include "profiler_v7.h"

typedef ncclProfilerEventDescr_v7_t ncclProfilerEventDescr_t;
typedef ncclProfilerEventStateArgs_v7_t ncclProfilerEventStateArgs_t;
typedef ncclProfiler_v7_t ncclProfiler_t;

#endif
