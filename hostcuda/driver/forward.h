/* Driver functions that are the runtime's under another name or with other structs: what their
 * files share. */
#pragma once

#include "../shared/face.h"
#include "driver.h"

#include "device/host/host_graph.h"

/* The driver's result of a call of the runtime's. `kept` is the thread's last error before the
 * call, and stays it: the driver has none. */
CUresult tt_driver_forward(int kept, cudaError_t rc);

/* A copy between boxes as the runtime has it, and back: 801 for arrays, 1 for kinds of memory that
 * there are not. */
int tt_driver_boxes(const CUDA_MEMCPY3D *params, struct cudaMemcpy3DParms *boxes);
void tt_driver_boxes_back(const struct cudaMemcpy3DParms *boxes, CUDA_MEMCPY3D *params);

struct cudaMemPoolProps tt_driver_pool_props(const CUmemPoolProps *props);

/* The ordinal of a context's device, -1 for what is none. NULL is the current one. */
int tt_driver_ordinal(CUcontext context);
