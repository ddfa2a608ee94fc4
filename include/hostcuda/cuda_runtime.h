/* CUDA's runtime API for machines without CUDA: the C functions of cuda_runtime_api.h and, in C++,
 * their typed overloads, which only call the C functions. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <cuda_runtime.h>
#else
#ifndef TUTTI_CUDA_RUNTIME_H_
#define TUTTI_CUDA_RUNTIME_H_

#include "channel_descriptor.h"
#include "cuda_runtime_api.h"
#include "driver_functions.h"
#include "vector_functions.h"

#include "device_functions.h"
#include "device_launch_parameters.h"

#ifdef __cplusplus
#ifdef __CUDA__
#include "hostcuda/compiled.h"
#endif
#include "hostcuda/overloads.h"
#include "hostcuda/overloads_graph.h"
#include "hostcuda/overloads_occupancy.h"
#endif

#endif
#endif
