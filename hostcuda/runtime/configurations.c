/* The launch configuration between <<<>>> and the call of the stub. */
#include "../shared/face.h"

#include "device/host/host_face.h"

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream)
{
    const struct tt_configuration configuration = {.grid = {grid.x, grid.y, grid.z},
                                                   .block = {block.x, block.y, block.z},
                                                   .shared_bytes = shared_bytes,
                                                   .stream = stream};
    if (tuttiHostConfigurationPush(&configuration)) return 0;
    tuttiHostErrorSet(cudaErrorLaunchOutOfResources);
    return 1; /* the caller leaves the kernel out */
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    struct tt_configuration top;
    if (!tuttiHostConfigurationPop(&top)) return tt_face_done(cudaErrorMissingConfiguration);
    if (grid) *grid = (dim3){top.grid[0], top.grid[1], top.grid[2]};
    if (block) *block = (dim3){top.block[0], top.block[1], top.block[2]};
    if (shared_bytes) *shared_bytes = top.shared_bytes;
    if (stream) *(cudaStream_t *)stream = top.stream;
    return cudaSuccess;
}
