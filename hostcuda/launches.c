/* Launches of kernels. Compiled twice, for the legacy and the per-thread default stream. */
#include "face.h"
#include "loading.h"

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
    const struct tt_launch what = {.grid = {grid.x, grid.y, grid.z},
                                   .block = {block.x, block.y, block.z}};
    int rc = tt_face_cooperative(&what);
    return tt_face_done(rc ? rc : launch(func, grid, block, args, shared_bytes, stream));
}
