/* Start and stop of CUDA's profilers in the runtime API: accepted, without effect. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <cuda_profiler_api.h>
#else
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
#endif
