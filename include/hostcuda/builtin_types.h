/* An older name of driver_types.h. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <builtin_types.h>
#else
#ifndef TUTTI_BUILTIN_TYPES_H_
#define TUTTI_BUILTIN_TYPES_H_

#include "driver_types.h"

#endif
#endif
