/* Device-side communication: the host's part of it. See nccl_device/core.h. */
#ifndef NCCL_DEVICE_H_
#define NCCL_DEVICE_H_

#include "nccl_device/core.h"

#endif
