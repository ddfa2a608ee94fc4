/* Where a kernel's thread stands in its grid. Device code only has these names; a host
 * implementation of a kernel gets the same numbers as arguments (see tutti.h). */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <device_launch_parameters.h>
#else
#ifndef TUTTI_DEVICE_LAUNCH_PARAMETERS_H_
#define TUTTI_DEVICE_LAUNCH_PARAMETERS_H_

#include "host_defines.h"
#include "vector_types.h"

/* For clang, which reads kernels also when it makes host code alone. */
#if defined(__clang__) && defined(__CUDA__)
extern const __device__ uint3 threadIdx, blockIdx;
extern const __device__ dim3 blockDim, gridDim;
extern const __device__ int warpSize;
#endif

#endif
#endif
