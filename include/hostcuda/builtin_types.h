/* A name that older programs include for what driver_types.h holds. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <builtin_types.h>
#else
#ifndef TUTTI_BUILTIN_TYPES_H_
#define TUTTI_BUILTIN_TYPES_H_

#include "driver_types.h"

#endif
#endif
