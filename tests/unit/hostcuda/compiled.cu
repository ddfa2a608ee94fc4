// A program as nvcc makes it, linked to the shared runtime: it starts, and a launch without a host
// implementation is an error that stays for cudaGetLastError(); with one it runs.
#include "conform.h"
#include "tutti.h"

__global__ void add(int *x, int n, int what)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += what;
}

__device__ int factor;
__managed__ int total;

static void add_host(const tuttiBlock &b, int *x, int n, int what)
{
    for (unsigned t = 0; t < b.block.x; t++) {
        int i = b.index.x * b.block.x + t;
        if (i < n) x[i] += what;
    }
}

int main()
{
    int *x = nullptr, back[100], seven = 7, got = 0;
    cudaStream_t stream;
    WORKS(cudaStreamCreate(&stream));
    WORKS(cudaMalloc(&x, sizeof(back)));
    WORKS(cudaMemset(x, 0, sizeof(back)));
    cudaGetLastError();
    add<<<2, 64, 0, stream>>>(x, 100, 5);
    HOLDS(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
    HOLDS(tuttiRegisterKernel(add, add_host) == 0);
    add<<<2, 64, 0, stream>>>(x, 100, 5);
    add<<<2, 64, 0, stream>>>(x, 50, 1);
    HOLDS(cudaGetLastError() == cudaSuccess);
    WORKS(cudaMemcpyAsync(back, x, sizeof(back), cudaMemcpyDeviceToHost, stream));
    WORKS(cudaStreamSynchronize(stream));
    HOLDS(back[0] == 6 && back[49] == 6 && back[50] == 5 && back[99] == 5);
    WORKS(cudaMemcpyToSymbol(factor, &seven, sizeof(seven)));
    WORKS(cudaMemcpyFromSymbol(&got, factor, sizeof(got)));
    HOLDS(got == 7);
    total = 3;
    HOLDS(total == 3);
    WORKS(cudaFree(x));
    WORKS(cudaStreamDestroy(stream));
    return finish("compiled");
}
