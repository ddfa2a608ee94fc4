// A shared object that is opened at run time: its kernel is registered when it is loaded and
// forgotten when it is closed.
#include "tutti.h"

#include <cuda_runtime.h>

__global__ void hundred(int *x)
{
    *x = 100;
}

static void hundred_host(const tuttiBlock &, int *x)
{
    *x = 100;
}

extern "C" const void *module_kernel()
{
    return reinterpret_cast<const void *>(hundred);
}

extern "C" void launch_module(int *x, cudaStream_t stream)
{
    tuttiRegisterKernel(hundred, hundred_host);
    hundred<<<1, 32, 0, stream>>>(x);
}
