/* Start and stop of CUDA's profilers in the driver API: accepted, without effect. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <cudaProfiler.h>
#else
#ifndef TUTTI_CUDAPROFILER_H_
#define TUTTI_CUDAPROFILER_H_

#include "hostcuda/driver_results.h"

#ifdef __cplusplus
extern "C" {
#endif

CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);

#ifdef __cplusplus
}
#endif

#endif
#endif
