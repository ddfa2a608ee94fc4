/* Start and stop marks for CUDA's profilers; accepted, without effect. */
#ifndef TUTTI_CUDA_PROFILER_API_H_
#define TUTTI_CUDA_PROFILER_API_H_

#include "driver_types.h"

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

#ifdef __cplusplus
}
#endif

#endif
