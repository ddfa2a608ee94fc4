/* The device API: functions that the host calls (core.h) and, in C++, functions that kernels call
 * (kernels.h). On a host device it is incomplete: both headers say what is missing. */
#ifndef NCCL_DEVICE_H_
#define NCCL_DEVICE_H_

#include "nccl_device/core.h"
#include "nccl_device/kernels.h"

#endif
