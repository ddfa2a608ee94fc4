// Kernels that call what CUDA gives to device code. They are compiled, never run: no host code
// stands behind their names, and C's headers may come before and after CUDA's.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cuda_runtime.h>

template <class T> __global__ void reduced(T *values, T *sum, int count)
{
    __shared__ T part[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T mine = i < count ? __ldg(values + i) : T(0);
    for (int by = warpSize / 2; by > 0; by /= 2) {
        mine += __shfl_down_sync(0xffffffff, mine, by);
    }
    part[threadIdx.x % 32] = mine;
    __syncthreads();
    assert(count > 0);
    if (threadIdx.x == 0) {
        atomicAdd(sum, 1);
        atomicMax_block(&part[0], 0);
        __threadfence_system();
        printf("%d\n", count);
    }
}

__global__ void bits(unsigned *words, unsigned long long *lowest, int *held)
{
    unsigned word = words[threadIdx.x];
    *held = __popc(word) + __clz((int)word) + __ffs((int)word) + __popcll(*lowest) +
            __any_sync(__activemask(), 1);
    atomicMin(lowest, (unsigned long long)__ffsll((long long)word));
    if (atomicCAS(held, 0, 1) == 0) {
        atomicExch(words, __brev(word) ^ __umulhi(word, 3));
    }
    char *memory = (char *)malloc(8);
    memset(memory, 0, 8);
    memcpy(memory, words, 8);
    free(memory);
}

__global__ void curves(float *x, double *y)
{
    int i = threadIdx.x;
    float sine, cosine;
    sincosf(x[i], &sine, &cosine);
    x[i] = sqrtf(x[i]) + __expf(sine) + powf(cosine, 2.f) + fmaxf(x[i], rsqrtf(2.f)) + fabsf(-1.f) +
           (float)abs(-3);
    x[i] += std::max(x[i], 0.f) + std::sqrt(x[i]) + __fdividef(1.f, 3.f) +
            __int_as_float(__float2int_rn(x[i]));
    y[i] = exp(y[i]) + sin(y[i]) + fma(y[i], 2.0, 1.0) + tanh(y[i]) + normcdf(y[i]) + floor(y[i]) +
           __dadd_rn(1, 2);
}

int main()
{
    double *numbers = nullptr;
    if (cudaMalloc(&numbers, 64) != cudaSuccess) return 1;
    reduced<<<1, 1>>>(numbers, numbers, 1);
    bits<<<1, 1>>>(nullptr, nullptr, nullptr);
    curves<<<1, 1>>>(nullptr, nullptr);
    // The host's functions of the same names are untouched.
    double far =
        std::fabs(sqrt(4.0) - 2) + std::fabs(rsqrtf(4.f) - 0.5) + std::abs(-0.0) + min(0, 1);
    printf("%g\n", far);
    return cudaGetLastError() == cudaErrorInvalidDeviceFunction && far == 0 ? 0 : 1;
}
