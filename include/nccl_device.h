/* Device-side communication: what a program asks of the library (core.h) and, in C++, what its
 * kernels call (kernels.h), as far as a host device can give it. */
#ifndef NCCL_DEVICE_H_
#define NCCL_DEVICE_H_

#include "nccl_device/core.h"
#include "nccl_device/kernels.h"

#endif
