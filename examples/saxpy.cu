// A CUDA program with a kernel, ported to machines without a GPU. What the port added stands between
// the two marks; the rest is as it was. Without Tutti (nvcc alone) the lines fall away.
//   nvcc -cudart shared -DTUTTI saxpy.cu -I$home/nccl/include -L$home/lib -lcudart -ltutti-host -o saxpy
//   tutti run ./saxpy
#include <cuda_runtime.h>
#include <cstdio>

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

// ---- the port ----
#ifdef TUTTI
#include <tutti.h>

static void saxpy_host(const tuttiBlock &b, int n, float a, const float *x, float *y)
{
    for (unsigned t = 0; t < b.block.x; t++) {
        int i = b.index.x * b.block.x + t;
        if (i < n) y[i] = a * x[i] + y[i];
    }
}
static const int ported = tuttiRegisterKernel(saxpy, saxpy_host);
#endif
// ---- end of the port ----

int main()
{
    enum { N = 1 << 20 };
    float *x = nullptr, *y = nullptr, *host = new float[N];
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaMalloc(reinterpret_cast<void **>(&x), N * sizeof(float));
    cudaMalloc(reinterpret_cast<void **>(&y), N * sizeof(float));
    for (int i = 0; i < N; i++) host[i] = static_cast<float>(i % 1000);
    cudaMemcpyAsync(x, host, N * sizeof(float), cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(y, host, N * sizeof(float), cudaMemcpyHostToDevice, stream);
    saxpy<<<(N + 255) / 256, 256, 0, stream>>>(N, 2.0f, x, y);
    cudaError_t rc = cudaGetLastError();
    cudaMemcpyAsync(host, y, N * sizeof(float), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    int wrong = 0;
    for (int i = 0; i < N; i++) wrong += host[i] != 3.0f * static_cast<float>(i % 1000);
    printf("saxpy: %s, %d of %d wrong\n", cudaGetErrorString(rc), wrong, static_cast<int>(N));
    cudaFree(x);
    cudaFree(y);
    cudaStreamDestroy(stream);
    delete[] host;
    return wrong != 0;
}
