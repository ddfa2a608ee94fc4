// A program as nvcc makes it, linked to the shared runtime: it starts, and a launch without a host
// implementation is an error that stays for cudaGetLastError(); with one it runs.
#include "conform.h"
#include "tutti.h"

__global__ void add(int *x, int n, int what)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += what;
}

struct point {
    short x;
    double y;
    char name[5];
};
__device__ int factor;
__managed__ int total = 42;
__device__ int first = 7;
__device__ float row[4] = {1.5f, -2.f, 0.f, 3.25f};
__constant__ double fixed[3] = {1, 2.5, -3};
__constant__ const short never = -4;
__device__ point corner = {1, 2, "abc"};
__device__ float *inside = row + 3;
static __device__ unsigned char bytes[300] = "starts so";
namespace space
{
__device__ long far = -5;
}

// Kernels use them, so that nothing is dropped; the address keeps the constant from being folded.
__global__ void uses(double *x)
{
    *x = factor + total + first + row[1] + fixed[2] + *(&never + threadIdx.x) + corner.y + *inside +
         bytes[threadIdx.x] + space::far;
}

template <class T> static T value(const T &variable)
{
    T found;
    WORKS(cudaMemcpyFromSymbol(&found, variable, sizeof(found)));
    return found;
}

// What variables start with stands in the device code.
static void starts()
{
    float *address = nullptr;
    HOLDS(value(factor) == 0 && value(first) == 7 && value(never) == -4 && value(space::far) == -5);
    HOLDS(value(corner).x == 1 && value(corner).y == 2 && !strcmp(value(corner).name, "abc"));
    float copy[4];
    double more[3];
    unsigned char text[300];
    WORKS(cudaMemcpyFromSymbol(copy, row, sizeof(copy)));
    HOLDS(copy[0] == 1.5f && copy[1] == -2 && copy[2] == 0 && copy[3] == 3.25f);
    WORKS(cudaMemcpyFromSymbol(more, fixed, sizeof(more)));
    HOLDS(more[0] == 1 && more[1] == 2.5 && more[2] == -3);
    WORKS(cudaMemcpyFromSymbol(text, bytes, sizeof(text)));
    HOLDS(!memcmp(text, "starts so", 10) && text[299] == 0);
    WORKS(cudaGetSymbolAddress(reinterpret_cast<void **>(&address), row));
    HOLDS(value(inside) == address + 3);
    HOLDS(total == 42);
}

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
    starts();
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
