/* Communicators that outlive main(), as a framework's static objects do: their owner ends them in
 * an exit handler, after the library's own. */
#include "check.h"

enum { PAIRS = 3, COUNT = 1000 };

static ncclComm_t comms[PAIRS][2];
static cudaStream_t streams[2];
static float *buffers[2];

static void must_end(ncclResult_t rc, const char *what)
{
    if (rc == ncclSuccess) return;
    fprintf(stderr, "%s in an exit handler: %s (%s)\n", what, ncclGetErrorString(rc),
            ncclGetLastError(NULL));
    _Exit(1);
}

static void end_all(void)
{
    ncclResult_t state = ncclSuccess;
    for (int k = 0; k < 2; k++) {
        must_end(ncclCommGetAsyncError(comms[0][k], &state), "ncclCommGetAsyncError");
        must_end(ncclCommAbort(comms[0][k]), "ncclCommAbort");
        must_end(ncclCommDestroy(comms[1][k]), "ncclCommDestroy");
    }
    ncclCommFinalize(comms[2][0]); /* may say that it is too late, but returns */
    ncclCommDestroy(comms[2][0]);
    ncclCommAbort(comms[2][1]);
    for (int k = 0; k < 2; k++) {
        CUDA(cudaFree(buffers[k]));
        CUDA(cudaStreamDestroy(streams[k]));
    }
    printf("ended\n");
}

int main(void)
{
    atexit(end_all);
    for (int pair = 0; pair < PAIRS; pair++) {
        NCCL(ncclCommInitAll(comms[pair], 2, NULL));
    }
    for (int k = 0; k < 2; k++) {
        CUDA(cudaSetDevice(k));
        CUDA(cudaStreamCreate(&streams[k]));
        CUDA(cudaMalloc((void **)&buffers[k], COUNT * sizeof(float)));
        fill(buffers[k], COUNT, 1);
    }
    for (int pair = 0; pair < PAIRS; pair++) {
        NCCL(ncclGroupStart());
        for (int k = 0; k < 2; k++) {
            NCCL(ncclAllReduce(buffers[k], buffers[k], COUNT, ncclFloat, ncclSum, comms[pair][k],
                               streams[k]));
        }
        NCCL(ncclGroupEnd());
    }
    for (int k = 0; k < 2; k++) {
        CUDA(cudaStreamSynchronize(streams[k]));
        expect(buffers[k], COUNT, 8, "three sums");
    }
    return 0;
}
