// The program of saxpy.cu for a plain C++ compiler: the kernel is only declared, and the launch is
// a call of cudaLaunchKernelEx in place of <<< >>>.
//   c++ -std=c++11 saxpy.cpp -I$home/include -L$home/lib -lcudart -ltutti-host
#include <cstdio>
#include <cuda_runtime.h>
#include <tutti.h>

static void saxpy(int, float, const float *, float *) {} // only its address counts

static void saxpy_host(const tuttiBlock &b, int n, float a, const float *x, float *y)
{
    for (unsigned t = 0; t < b.block.x; t++) {
        int i = static_cast<int>(b.index.x * b.block.x + t);
        if (i < n) y[i] = a * x[i] + y[i];
    }
}

int main()
{
    enum { N = 1 << 20 };
    float *x = nullptr, *y = nullptr, *host = new float[N];
    cudaLaunchConfig_t config = {};
    int wrong = 0;
    tuttiRegisterKernel(saxpy, saxpy_host);
    cudaStreamCreate(&config.stream);
    cudaMalloc(&x, N * sizeof(float));
    cudaMalloc(&y, N * sizeof(float));
    for (int i = 0; i < N; i++) {
        host[i] = static_cast<float>(i % 1000);
    }
    cudaMemcpyAsync(x, host, N * sizeof(float), cudaMemcpyHostToDevice, config.stream);
    cudaMemcpyAsync(y, host, N * sizeof(float), cudaMemcpyHostToDevice, config.stream);
    config.gridDim = dim3((N + 255) / 256);
    config.blockDim = dim3(256);
    cudaError_t rc = cudaLaunchKernelEx(&config, saxpy, static_cast<int>(N), 2.0F, x, y);
    cudaMemcpyAsync(host, y, N * sizeof(float), cudaMemcpyDeviceToHost, config.stream);
    cudaStreamSynchronize(config.stream);
    for (int i = 0; i < N; i++) {
        wrong += host[i] != 3.0F * static_cast<float>(i % 1000);
    }
    std::printf("saxpy: %s, %d of %d wrong\n", cudaGetErrorString(rc), wrong, static_cast<int>(N));
    cudaFree(x);
    cudaFree(y);
    cudaStreamDestroy(config.stream);
    delete[] host;
    return wrong != 0;
}
