// A program of several translation units and a module that is opened at run time, each with
// kernels, two of them of one name. Compiled by nvcc or clang; run with our runtime. usage: main
// MODULE
#include "../conform.h"
#include "tutti.h"

#include <dlfcn.h>

typedef void launcher(int *x, cudaStream_t stream);
extern "C" launcher launch_part;
extern "C" const void *part_kernel();

static __global__ void same(int *x)
{
    *x += 1;
}

static void same_host(const tuttiBlock &, int *x)
{
    *x += 1;
}

static void questions(const void *kernel)
{
    struct cudaFuncAttributes found;
    int blocks = 0;
    memset(&found, 0, sizeof(found));
    WORKS(cudaFuncGetAttributes(&found, kernel));
    HOLDS(found.maxThreadsPerBlock == 1024);
    WORKS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 128, 0));
    HOLDS(blocks > 0);
}

static void opened(const char *path, int *x)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) printf("%s\n", dlerror());
    HOLDS(module != NULL);
    if (!module) return;
    launcher *launch = reinterpret_cast<launcher *>(dlsym(module, "launch_module"));
    const void *(*kernel_of)() =
        reinterpret_cast<const void *(*)()>(dlsym(module, "module_kernel"));
    HOLDS(launch && kernel_of);
    if (!launch || !kernel_of) return;
    const void *kernel = kernel_of();
    questions(kernel);
    *x = 0;
    launch(x, NULL); /* the module brings its host implementation along */
    HOLDS(cudaGetLastError() == cudaSuccess);
    WORKS(cudaStreamSynchronize(NULL));
    HOLDS(*x == 100);
    dlclose(module);
    struct cudaFuncAttributes found;
    ANSWERS(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes(&found, kernel));
}

int main(int argc, char **argv)
{
    int *x = NULL;
    if (argc != 2) return 2;
    WORKS(cudaMallocManaged(reinterpret_cast<void **>(&x), sizeof(*x), cudaMemAttachGlobal));
    questions(reinterpret_cast<const void *>(same));
    questions(part_kernel());
    HOLDS(part_kernel() != reinterpret_cast<const void *>(same));
    *x = 0;
    cudaGetLastError();
    same<<<1, 1>>>(x);
    HOLDS(cudaGetLastError() == cudaErrorInvalidDeviceFunction); /* no implementation yet */
    HOLDS(tuttiRegisterKernel(same, same_host) == 0);
    same<<<2, 1>>>(x);
    HOLDS(cudaGetLastError() == cudaSuccess);
    launch_part(x, NULL);
    HOLDS(cudaGetLastError() == cudaSuccess);
    WORKS(cudaStreamSynchronize(NULL));
    HOLDS(*x == 2 + 10);
    opened(argv[1], x);
    WORKS(cudaFree(x));
    return finish("several modules");
}
