/* Launches of kernels. Compiled twice, for the legacy and the per-thread default stream. */
#include "../shared/face.h"
#include "../shared/loading.h"

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

static int check_cooperative(dim3 grid, dim3 block)
{
    const struct tt_launch what = {.grid = {grid.x, grid.y, grid.z},
                                   .block = {block.x, block.y, block.z}};
    return tt_face_cooperative(&what);
}

/* Attributes say how a device schedules the kernel: but for one they are left alone. */
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
    int rc = cudaSuccess;
    if (!config || (config->numAttrs && !config->attrs)) return tt_face_done(cudaErrorInvalidValue);
    for (unsigned i = 0; !rc && i < config->numAttrs; i++) {
        if (config->attrs[i].id == cudaLaunchAttributeCooperative &&
            config->attrs[i].val.cooperative)
            rc = check_cooperative(config->gridDim, config->blockDim);
    }
    if (rc) return tt_face_done(rc);
    return tt_face_done(launch(func, config->gridDim, config->blockDim, args,
                               config->dynamicSmemBytes, config->stream));
}

/* Blocks run one after another here, so a host implementation must not wait for another block. */
cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
                                        size_t shared_bytes, cudaStream_t stream)
{
    int rc = check_cooperative(grid, block);
    return tt_face_done(rc ? rc : launch(func, grid, block, args, shared_bytes, stream));
}
