/* The driver interface: launches of kernels. Compiled twice, for the legacy and the per-thread
 * default stream. */
#include "../shared/loading.h"
#include "driver.h"

#include "device/host/host_face.h"
#include "device/host/host_kernel.h"

static CUresult launch(const CUlaunchConfig *config, CUfunction function, void **args, void **extra)
{
    struct tt_launch what = {.function = function,
                             .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                             .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                             .shared_bytes = config->sharedMemBytes};
    int rc = tt_driver_device(tuttiHostGetDevice());
    if (!rc) rc = tt_face_arguments(&what, args, extra);
    return tt_driver_done(rc ? rc : tuttiHostLaunch(tt_driver_stream(config->hStream), &what));
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **args, void **extra)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    const CUlaunchConfig config = {.gridDimX = grid_x,
                                   .gridDimY = grid_y,
                                   .gridDimZ = grid_z,
                                   .blockDimX = block_x,
                                   .blockDimY = block_y,
                                   .blockDimZ = block_z,
                                   .sharedMemBytes = shared_bytes,
                                   .hStream = stream};
    return launch(&config, function, args, extra);
}

static int check_cooperative(const CUlaunchConfig *config)
{
    const struct tt_launch what = {
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ}};
    return tt_face_cooperative(&what);
}

/* Attributes say how a device schedules the kernel: but for one they are left alone. */
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **args,
                          void **extra)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int rc = CUDA_SUCCESS;
    if (!config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; !rc && i < config->numAttrs; i++) {
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE &&
            config->attrs[i].value.cooperative)
            rc = check_cooperative(config);
    }
    if (rc) return tt_driver_done(rc);
    return launch(config, function, args, extra);
}

/* Blocks run one after another here, so a host implementation must not wait for another block. */
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                   void **args)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    const CUlaunchConfig config = {.gridDimX = grid_x,
                                   .gridDimY = grid_y,
                                   .gridDimZ = grid_z,
                                   .blockDimX = block_x,
                                   .blockDimY = block_y,
                                   .blockDimZ = block_z,
                                   .sharedMemBytes = shared_bytes,
                                   .hStream = stream};
    int rc = check_cooperative(&config);
    return rc ? tt_driver_done(rc) : launch(&config, function, args, NULL);
}
