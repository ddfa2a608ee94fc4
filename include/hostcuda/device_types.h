/* Rounding modes of conversions. Includes vector_types.h, which older programs expect here. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <device_types.h>
#else
#ifndef TUTTI_DEVICE_TYPES_H_
#define TUTTI_DEVICE_TYPES_H_

#include "vector_types.h"

enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };

#endif
#endif
