/* threadIdx, blockIdx, blockDim, gridDim and warpSize. Only device code has them; a host
 * implementation of a kernel gets the same numbers as arguments (see tutti.h). */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <device_launch_parameters.h>
#else
#ifndef TUTTI_DEVICE_LAUNCH_PARAMETERS_H_
#define TUTTI_DEVICE_LAUNCH_PARAMETERS_H_

#include "host_defines.h"
#include "vector_types.h"

/* For clang, which parses kernels even when it compiles only host code. */
#if defined(__clang__) && defined(__CUDA__)
extern const __device__ uint3 threadIdx, blockIdx;
extern const __device__ dim3 blockDim, gridDim;
extern const __device__ int warpSize;
#endif

#endif
#endif
