/* The types of the CUDA runtime in one include: result codes, enumerations, flags, structs. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <driver_types.h>
#else
#ifndef TUTTI_DRIVER_TYPES_H_
#define TUTTI_DRIVER_TYPES_H_

#include "host_defines.h"
#include "hostcuda/device_attr.h"
#include "hostcuda/device_prop.h"
#include "hostcuda/enums.h"
#include "hostcuda/errors.h"
#include "hostcuda/flags.h"
#include "hostcuda/graph_types.h"
#include "hostcuda/handles.h"
#include "hostcuda/launch_types.h"
#include "hostcuda/memory_types.h"
#include "hostcuda/version.h"
#include "library_types.h"
#include "vector_types.h"

/* The two default streams. Handle 0 means the legacy one, or the thread's where
 * CUDA_API_PER_THREAD_DEFAULT_STREAM is defined. */
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)

typedef void(CUDART_CB *cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status,
                                              void *userData);

#endif
#endif
