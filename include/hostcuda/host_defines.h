/* CUDA's qualifiers of functions and variables, such as __device__. For a host compiler they are
 * empty, for clang in CUDA mode they are attributes; nvcc has its own. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <host_defines.h>
#else
#ifndef TUTTI_HOST_DEFINES_H_
#define TUTTI_HOST_DEFINES_H_

#ifndef CUDARTAPI
#define CUDARTAPI
#endif
#ifndef CUDART_CB
#define CUDART_CB
#endif

/* clang -x cuda --cuda-host-only -nocudainc -nocudalib knows the attributes, not these names. */
#if defined(__clang__) && defined(__CUDA__)
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#endif

#ifndef __CUDACC__
/* Functions between the two can be called from host and device code, as clang requires of functions
 * that kernels call. */
#if defined(__clang__) && defined(__CUDA__)
#define TUTTI_BOTH_BEGIN _Pragma("clang force_cuda_host_device begin")
#define TUTTI_BOTH_END _Pragma("clang force_cuda_host_device end")
#else
#define TUTTI_BOTH_BEGIN
#define TUTTI_BOTH_END
#endif

#ifndef __host__
#define __host__
#endif
#ifndef __device__
#define __device__
#endif
#ifndef __global__
#define __global__
#endif
#ifndef __shared__
#define __shared__
#endif
#ifndef __constant__
#define __constant__
#endif
#ifndef __managed__
#define __managed__
#endif
#ifndef __grid_constant__
#define __grid_constant__
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif
#ifndef __cluster_dims__
#define __cluster_dims__(...)
#endif
/* __noinline__ is not defined: headers of C libraries use it as the name of an attribute. */
#ifndef __forceinline__
#define __forceinline__ __inline__ __attribute__((always_inline))
#endif
#ifndef __device_builtin__
#define __device_builtin__
#endif
#ifndef __builtin_align__
#define __builtin_align__(n) __attribute__((aligned(n)))
#endif
#ifndef __align__
#define __align__(n) __attribute__((aligned(n)))
#endif
#endif

#endif
#endif
