/* Launches of kernels. Compiled twice, for the legacy and the per-thread default stream. */
#include "face.h"

#include "device/host/host_kernel.h"

static int launch(const void *func, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                  cudaStream_t stream)
{
    struct tt_launch what = {.function = func,
                             .grid = {grid.x, grid.y, grid.z},
                             .block = {block.x, block.y, block.z},
                             .shared_bytes = shared_bytes,
                             .args = args};
    int rc = tt_face_device(tuttiHostGetDevice());
    return rc ? rc : tuttiHostLaunch(tt_face_stream(stream), &what);
}

cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args,
                             size_t shared_bytes, cudaStream_t stream)
{
    return tt_face_done(launch(func, grid, block, args, shared_bytes, stream));
}

/* Code from nvcc drops this result: the stored error is all that the program sees. */
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared_bytes, cudaStream_t stream)
{
    return tt_face_done(launch(kernel, grid, block, args, shared_bytes, stream));
}

/* Attributes say how a device schedules the kernel, so they are accepted and left alone. */
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
    if (!config || (config->numAttrs && !config->attrs)) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(launch(func, config->gridDim, config->blockDim, args,
                               config->dynamicSmemBytes, config->stream));
}

/* Blocks run one after another here, so a host implementation must not wait for another block. */
cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
                                        size_t shared_bytes, cudaStream_t stream)
{
    int sms = 1, per_sm = 1;
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (threads && threads <= 1024) per_sm = (int)(2048 / threads);
    tt_face_attribute(tuttiHostGetDevice(), cudaDevAttrMultiProcessorCount, &sms);
    if (per_sm > 32) per_sm = 32;
    if ((uint64_t)grid.x * grid.y * grid.z > (uint64_t)sms * (uint64_t)per_sm)
        return tt_face_done(cudaErrorCooperativeLaunchTooLarge);
    return tt_face_done(launch(func, grid, block, args, shared_bytes, stream));
}
