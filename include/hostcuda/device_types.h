/* How conversions round, and what older programs include this name for: vector_types.h. */
#ifndef TUTTI_DEVICE_TYPES_H_
#define TUTTI_DEVICE_TYPES_H_

#include "vector_types.h"

enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };

#endif
