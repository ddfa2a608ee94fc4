/* Modules that end while they are in use: unloaded under kernels that are queued or in a graph, and
 * with a device that is reset. Work that was launched keeps what it needs. */
#include "conform.h"
#include "tutti.h"

#include <cuda.h>
#include <stdatomic.h>

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                          ".visible .global .align 4 .u32 kept[2] = {7, 8};\n"
                          ".visible .entry add_one(.param .u64 at)\n{\nret;\n}\n";

#define DRIVER(code, call) conform((int)(call) == (int)(code), __LINE__, #call, 1, 0)

static void add_one(const struct tuttiBlock *block, void **args, void *context)
{
    (void)block, (void)context;
    **(unsigned **)args[0] += 1;
}

static void await_gate(void *arg)
{
    while (!atomic_load((_Atomic int *)arg)) {
        sched_yield();
    }
}

struct loaded {
    CUmodule module;
    CUfunction function;
    CUdeviceptr kept;
};

static struct loaded load(void)
{
    struct loaded one = {NULL, NULL, 0};
    DRIVER(0, cuModuleLoadData(&one.module, ptx));
    DRIVER(0, cuModuleGetFunction(&one.function, one.module, "add_one"));
    DRIVER(0, cuModuleGetGlobal(&one.kept, NULL, one.module, "kept"));
    return one;
}

static void launch(const struct loaded *one, cudaStream_t stream, unsigned *at)
{
    void *args[] = {&at};
    DRIVER(0, cuLaunchKernel(one->function, 1, 1, 1, 1, 1, 1, 0, (CUstream)stream, args, NULL));
}

/* The kernel is behind a gate when its module goes; so is a copy of the module's variable, whose
 * memory is not handed out meanwhile. */
static void unloaded_under_kernels(cudaStream_t stream, unsigned *counter)
{
    _Atomic int gate = 0;
    unsigned *copies = NULL, *taken[64];
    struct loaded one = load();
    WORKS(cudaMallocHost((void **)&copies, 2 * sizeof(*copies)));
    *counter = 0;
    WORKS(cudaLaunchHostFunc(stream, await_gate, &gate));
    launch(&one, stream, counter);
    WORKS(
        cudaMemcpyAsync(copies, (void *)one.kept, 2 * sizeof(*copies), cudaMemcpyDefault, stream));
    launch(&one, stream, counter);
    DRIVER(0, cuModuleUnload(one.module));
    DRIVER(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(one.module));
    for (int i = 0; i < 64; i++) {
        WORKS(cudaMalloc((void **)&taken[i], 2 * sizeof(*copies)));
        WORKS(cudaMemset(taken[i], 255, 2 * sizeof(*copies)));
    }
    atomic_store(&gate, 1);
    WORKS(cudaStreamSynchronize(stream));
    HOLDS(*counter == 2 && copies[0] == 7 && copies[1] == 8);
    for (int i = 0; i < 64; i++) {
        WORKS(cudaFree(taken[i]));
    }
    WORKS(cudaFreeHost(copies));
}

/* A graph's node has the kernel for as long as the graph lives. */
static void unloaded_under_graph(cudaStream_t stream, unsigned *counter)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL, again = NULL;
    struct loaded one = load();
    *counter = 0;
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    launch(&one, stream, counter);
    WORKS(cudaStreamEndCapture(stream, &graph));
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    DRIVER(0, cuModuleUnload(one.module));
    WORKS(cudaGraphInstantiate(&again, graph, 0));
    for (int i = 0; i < 3; i++) {
        WORKS(cudaGraphLaunch(exec, stream));
        WORKS(cudaGraphLaunch(again, stream));
    }
    WORKS(cudaStreamSynchronize(stream));
    HOLDS(*counter == 6);
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphExecDestroy(again));
    WORKS(cudaGraphDestroy(graph));
}

/* The device's memory goes, so the module's variables do; its kernels and the module itself stay
 * good, also for being unloaded. Those of another device are not touched. */
static void reset_with_modules(void)
{
    CUdeviceptr ptr = 0;
    unsigned value = 0, *counter = NULL;
    struct loaded here, there;
    WORKS(cudaSetDevice(1));
    there = load();
    WORKS(cudaSetDevice(0));
    here = load();
    WORKS(cudaDeviceReset());
    DRIVER(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&ptr, NULL, here.module, "kept"));
    HOLDS(cudaMemcpy(&value, (void *)here.kept, sizeof(value), cudaMemcpyDefault) != cudaSuccess);
    cudaGetLastError();
    DRIVER(0, cuModuleGetGlobal(&ptr, NULL, there.module, "kept"));
    DRIVER(0, cuMemcpyDtoH(&value, ptr, sizeof(value)));
    HOLDS(ptr == there.kept && value == 7);
    WORKS(cudaMallocManaged((void **)&counter, sizeof(*counter), cudaMemAttachGlobal));
    *counter = 0;
    launch(&here, NULL, counter);
    WORKS(cudaDeviceSynchronize());
    HOLDS(*counter == 1);
    DRIVER(0, cuModuleUnload(here.module));
    DRIVER(0, cuModuleUnload(there.module));
    WORKS(cudaFree(counter));
    here = load(); /* with variables that are as new */
    DRIVER(0, cuMemcpyDtoH(&value, here.kept, sizeof(value)));
    HOLDS(value == 7);
    DRIVER(0, cuModuleUnload(here.module));
}

/* The driver's own nodes: by the function or by the kernel of a library, changed in both. */
static void driver_nodes(CUstream stream, unsigned *counter)
{
    struct loaded one = load();
    CUDA_KERNEL_NODE_PARAMS params, found;
    CUgraph graph = NULL;
    CUgraphNode node = NULL;
    CUgraphExec exec = NULL;
    int blocks = 0, size = 0;
    void *args[] = {&counter};
    *counter = 0;
    memset(&params, 0, sizeof(params));
    params.func = one.function;
    params.gridDimX = 3;
    params.gridDimY = params.gridDimZ = params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = args;
    DRIVER(0, cuGraphCreate(&graph, 0));
    DRIVER(0, cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    DRIVER(0, cuGraphKernelNodeGetParams(node, &found));
    HOLDS(found.func == one.function && found.gridDimX == 3);
    DRIVER(0, cuGraphInstantiate(&exec, graph, 0));
    DRIVER(0, cuGraphLaunch(exec, stream));
    DRIVER(0, cuStreamSynchronize(stream));
    HOLDS(*counter == 3);
    params.gridDimX = 5;
    DRIVER(0, cuGraphExecKernelNodeSetParams(exec, node, &params));
    DRIVER(0, cuGraphLaunch(exec, stream));
    DRIVER(0, cuStreamSynchronize(stream));
    HOLDS(*counter == 8);
    params.func = NULL;
    DRIVER(CUDA_ERROR_INVALID_HANDLE, cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    HOLDS(cudaPeekAtLastError() == cudaSuccess); /* which is the runtime's */
    DRIVER(0, cuOccupancyMaxPotentialBlockSize(&blocks, &size, one.function, NULL, 0, 0));
    HOLDS(blocks > 0 && size > 0);
    DRIVER(0, cuGraphExecDestroy(exec));
    DRIVER(0, cuGraphDestroy(graph));
    DRIVER(0, cuModuleUnload(one.module));
}

int main(void)
{
    static const size_t sizes[] = {sizeof(unsigned *)};
    const struct tuttiKernel kernel = {
        .size = sizeof(kernel), .name = "add_one", .run = add_one, .nargs = 1, .arg_bytes = sizes};
    cudaStream_t stream = NULL;
    unsigned *counter = NULL;
    HOLDS(tuttiRegisterKernel(&kernel) == 0);
    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WORKS(cudaMallocManaged((void **)&counter, sizeof(*counter), cudaMemAttachGlobal));
    unloaded_under_kernels(stream, counter);
    unloaded_under_graph(stream, counter);
    driver_nodes((CUstream)stream, counter);
    WORKS(cudaFree(counter));
    WORKS(cudaStreamDestroy(stream));
    reset_with_modules();
    return finish("unloading");
}
