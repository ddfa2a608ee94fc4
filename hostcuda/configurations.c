/* The launch configuration between <<<>>> and the call of the stub: a stack per thread. A file of
 * its own, so that the driver's library has no such stack. */
#include "face.h"

#include "device/host/host_face.h"

enum { MAX_CONFIGURATIONS = 4 }; /* thread-local memory is scarce in programs that load us late */

struct configuration {
    dim3 grid, block;
    size_t shared_bytes;
    struct CUstream_st *stream;
};

static _Thread_local struct {
    struct configuration stack[MAX_CONFIGURATIONS];
    int depth;
} configurations;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream)
{
    if (configurations.depth == MAX_CONFIGURATIONS) {
        tuttiHostErrorSet(cudaErrorLaunchOutOfResources);
        return 1; /* the caller leaves the kernel out */
    }
    configurations.stack[configurations.depth++] =
        (struct configuration){grid, block, shared_bytes, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    if (configurations.depth == 0) return tt_face_done(cudaErrorMissingConfiguration);
    const struct configuration *top = &configurations.stack[--configurations.depth];
    if (grid) *grid = top->grid;
    if (block) *block = top->block;
    if (shared_bytes) *shared_bytes = top->shared_bytes;
    if (stream) *(cudaStream_t *)stream = top->stream;
    return cudaSuccess;
}
