/* How conversions round, and what older programs include this name for: vector_types.h. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <device_types.h>
#else
#ifndef TUTTI_DEVICE_TYPES_H_
#define TUTTI_DEVICE_TYPES_H_

#include "vector_types.h"

enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };

#endif
#endif
