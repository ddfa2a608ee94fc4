// Kernels as compiled programs have them, by hand: registration, launch configuration, launch.
// First without a host implementation (a clear error), then with one, by function and by name.
#include "conform.h"
#include "tutti.h"

static void **module;

// What nvcc makes of a __global__ function: a host function that launches the kernel.
static void scale(float *x, float factor, int n)
{
    void *args[] = {&x, &factor, &n};
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
    if (__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream)) return;
    cudaLaunchKernel(reinterpret_cast<const void *>(scale), grid, block, args, shared_bytes,
                     stream);
}

static void named(int *count)
{
    (void)count;
}

static int table[4];

static void scale_host(const tuttiBlock &b, float *x, float factor, int n)
{
    for (unsigned t = 0; t < b.block.x; t++) {
        int i = static_cast<int>(b.index.x * b.block.x + t);
        if (i < n) x[i] *= factor;
    }
}

static void named_host(const struct tuttiBlock *b, void **args, void *context)
{
    static_cast<char *>(b->shared)[b->shared_bytes - 1] = 1;
    **static_cast<int **>(args[0]) += *static_cast<int *>(context);
}

static void unregistered()
{
    struct cudaFuncAttributes attributes;
    cudaFunction_t function = nullptr;
    const void *stub = reinterpret_cast<const void *>(named_host);
    ANSWERS(cudaErrorInvalidDeviceFunction,
            cudaLaunchKernel(stub, dim3(1), dim3(1), nullptr, 0, nullptr));
    ANSWERS(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes(&attributes, stub));
    ANSWERS(cudaErrorInvalidDeviceFunction, cudaGetFuncBySymbol(&function, stub));
    HOLDS(function == nullptr);
    ANSWERS(cudaErrorMissingConfiguration,
            __cudaPopCallConfiguration(nullptr, nullptr, nullptr, nullptr));
}

static void without_implementation()
{
    const void *stub = reinterpret_cast<const void *>(scale);
    struct cudaFuncAttributes attributes;
    cudaKernel_t kernel = nullptr;
    const char *name = nullptr;
    int blocks = 0;
    WORKS(cudaFuncGetAttributes(&attributes, stub));
    HOLDS(attributes.maxThreadsPerBlock == 1024);
    WORKS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, stub, 256, 0));
    HOLDS(blocks > 0);
    WORKS(__cudaGetKernel(&kernel, stub));
    HOLDS(kernel != nullptr);
    WORKS(cudaFuncGetName(&name, stub));
    HOLDS(!strcmp(name, "_Z5scalePffi"));
    HOLDS(__cudaPushCallConfiguration(dim3(2), dim3(64), 0, nullptr) == 0);
    cudaGetLastError();
    scale(nullptr, 1, 0);
    HOLDS(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
    ANSWERS(cudaErrorInvalidDeviceFunction,
            __cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr));
    ANSWERS(cudaErrorInvalidDeviceFunction,
            __cudaLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, nullptr));
}

/* Memory that the host means to read alone, and variables that devices change at any time. */
static void qualified()
{
    const float *in = nullptr;
    volatile int *flag = nullptr;
    const char *text = nullptr;
    const void *to[] = {nullptr};
    size_t bytes = 4;
    static volatile int shared;
    void *address = nullptr;
    cudaMemPool_t pool = nullptr;
    WORKS(cudaMalloc(&in, bytes));
    WORKS(cudaFree(const_cast<float *>(in)));
    WORKS(cudaMallocHost(&flag, bytes));
    WORKS(cudaFreeHost(const_cast<int *>(flag)));
    WORKS(cudaHostAlloc(&text, bytes, cudaHostAllocMapped));
    WORKS(cudaHostGetDevicePointer(&in, const_cast<char *>(text), 0));
    WORKS(cudaFreeHost(const_cast<char *>(text)));
    WORKS(cudaMallocManaged(&in, bytes));
    WORKS(cudaStreamAttachMemAsync(nullptr, in));
    WORKS(cudaFree(const_cast<float *>(in)));
    WORKS(cudaDeviceGetDefaultMemPool(&pool, 0));
    WORKS(cudaMallocAsync(&flag, bytes, pool, nullptr));
    WORKS(cudaFreeAsync(const_cast<int *>(flag), nullptr));
    WORKS(cudaMallocPitch(&text, &bytes, 4, 4));
    WORKS(cudaFree(const_cast<char *>(text)));
    ANSWERS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, shared));
#if CUDART_VERSION >= 13000
    struct cudaMemcpyAttributes how = {};
    ANSWERS(cudaErrorInvalidValue, cudaMemcpyBatchAsync(to, to, &bytes, 0, how, nullptr));
#endif
    (void)to;
}

static void with_implementation()
{
    float *x = nullptr, back[1000];
    struct cudaFuncAttributes attributes;
    cudaStream_t stream = nullptr;
    HOLDS(tuttiRegisterKernel(scale, scale_host) == 0);
    for (float &value : back) {
        value = 2;
    }
    WORKS(cudaStreamCreate(&stream));
    WORKS(cudaMalloc(&x, sizeof(back)));
    WORKS(cudaMemcpyAsync(x, back, sizeof(back), cudaMemcpyHostToDevice, stream));
    HOLDS(__cudaPushCallConfiguration(dim3(16), dim3(64), 0, stream) == 0);
    scale(x, 3, 999);
    WORKS(cudaMemcpyAsync(back, x, sizeof(back), cudaMemcpyDeviceToHost, stream));
    WORKS(cudaStreamSynchronize(stream));
    HOLDS(back[0] == 6 && back[998] == 6 && back[999] == 2);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(16);
    config.blockDim = dim3(64);
    config.stream = stream;
    WORKS(cudaLaunchKernelEx(&config, scale, x, 0.5f, 10));
    WORKS(cudaStreamSynchronize(stream));
    HOLDS(x[9] == 3 && x[10] == 6);
    config.blockDim = dim3(2048);
    ANSWERS(cudaErrorInvalidConfiguration, cudaLaunchKernelEx(&config, scale, x, 0.5f, 10));
    config.blockDim = dim3(64);
    config.dynamicSmemBytes = 65536; // above 48 KiB only when asked for
    ANSWERS(cudaErrorInvalidValue, cudaLaunchKernelEx(&config, scale, x, 0.5f, 10));
    WORKS(cudaFuncSetAttribute(scale, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    WORKS(cudaFuncGetAttributes(&attributes, scale));
    HOLDS(attributes.maxDynamicSharedSizeBytes == 65536);
    WORKS(cudaLaunchKernelEx(&config, scale, x, 0.5f, 10));
    WORKS(cudaSetDevice(1)); // not the stream's
    ANSWERS(cudaErrorInvalidResourceHandle, cudaLaunchKernelEx(&config, scale, x, 0.5f, 10));
    WORKS(cudaSetDevice(0));
    WORKS(cudaStreamSynchronize(stream));
    WORKS(cudaFree(x));
    WORKS(cudaStreamDestroy(stream));
}

// A kernel that is loaded runs what stands in for the compiled one of its name.
static void loaded()
{
    float *x = nullptr, factor = 3;
    int n = 2;
    void *args[] = {&x, &factor, &n};
    cudaLibrary_t library = nullptr;
    cudaKernel_t kernel = nullptr;
    WORKS(cudaLibraryLoadData(&library, ".version 7.0 .entry _Z5scalePffi(){} .entry none(){}",
                              nullptr, nullptr, 0, nullptr, nullptr, 0));
    WORKS(cudaLibraryGetKernel(&kernel, library, "_Z5scalePffi"));
    WORKS(cudaMallocManaged(&x, 2 * sizeof(*x)));
    x[0] = x[1] = 5;
    WORKS(cudaLaunchKernel(reinterpret_cast<const void *>(kernel), dim3(1), dim3(2), args, 0,
                           nullptr));
    WORKS(cudaDeviceSynchronize());
    HOLDS(x[0] == 15 && x[1] == 15);
    WORKS(cudaLibraryGetKernel(&kernel, library, "none"));
    ANSWERS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(reinterpret_cast<const void *>(kernel),
                                                             dim3(1), dim3(1), args, 0, nullptr));
    WORKS(cudaLibraryUnload(library));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaLibraryUnload(library));
    ANSWERS(cudaErrorInvalidKernelImage,
            cudaLibraryLoadData(&library, "no code", nullptr, nullptr, 0, nullptr, nullptr, 0));
    WORKS(cudaFree(x));
}

static void in_graphs()
{
    static int step = 5;
    const size_t sizes[] = {sizeof(int *)};
    struct tuttiKernel wrong = {}, kernel = {};
    HOLDS(tuttiRegisterKernel(nullptr) == 1);
    HOLDS(tuttiRegisterKernel(&wrong) == 1);
    kernel.size = sizeof(kernel);
    kernel.name = "_Z5namedPi";
    kernel.run = named_host;
    kernel.context = &step;
    kernel.nargs = 1;
    kernel.arg_bytes = sizes;
    HOLDS(tuttiRegisterKernel(&kernel) == 0);
    int *count = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaGraphNode_t node = nullptr;
    WORKS(cudaMallocManaged(&count, sizeof(*count)));
    *count = 0;
    void *args[] = {&count};
    struct cudaKernelNodeParams params = {}, found = {};
    params.func = reinterpret_cast<void *>(named);
    params.gridDim = dim3(3, 2);
    params.blockDim = dim3(32);
    params.sharedMemBytes = 100;
    params.kernelParams = args;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    WORKS(cudaGraphKernelNodeGetParams(node, &found));
    HOLDS(found.func == params.func && found.gridDim.y == 2 && found.sharedMemBytes == 100);
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    WORKS(cudaGraphLaunch(exec, nullptr));
    WORKS(cudaGraphLaunch(exec, nullptr));
    WORKS(cudaDeviceSynchronize());
    HOLDS(*count == 2 * 6 * 5);
    params.func = reinterpret_cast<void *>(in_graphs);
    ANSWERS(cudaErrorInvalidDeviceFunction,
            cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaFree(count));
}

static void variables()
{
    int values[4] = {1, 2, 3, 4}, back[4] = {};
    size_t size = 0;
    void *address = nullptr;
    WORKS(cudaMemcpyToSymbol(table, values, sizeof(values)));
    WORKS(cudaMemcpyFromSymbol(back, table, 8, 8));
    HOLDS(back[0] == 3 && back[1] == 4);
    WORKS(cudaGetSymbolSize(&size, table));
    HOLDS(size == sizeof(table));
    WORKS(cudaGetSymbolAddress(&address, table));
    ANSWERS(cudaErrorInvalidMemcpyDirection,
            cudaMemcpyToSymbol(table, values, 8, 0, cudaMemcpyDeviceToHost));
    ANSWERS(cudaErrorInvalidMemcpyDirection,
            cudaMemcpyFromSymbol(back, table, 8, 0, cudaMemcpyHostToHost));
    ANSWERS(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(values, back, 4));
    ANSWERS(cudaErrorInvalidValue, cudaMemcpyToSymbol(table, values, 16, 4));
}

// Forms that only C++ has.
static void by_type()
{
    struct counted {
        int *ends;
        ~counted() { __atomic_add_fetch(ends, 1, __ATOMIC_RELEASE); }
    };
    int grid = 0, block = 0, ends = 0, asked = 0;
    cudaUserObject_t object = nullptr;
    auto per_thread = [&asked](int size) {
        asked++;
        return static_cast<size_t>(size) * 128; // 96 KiB: room for 768 threads at a time
    };
    WORKS(cudaOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, scale, 0, 300));
    HOLDS(block % 32 == 0 || block == 300);
    HOLDS(grid > 0 && block > 128 && block <= 300);
    WORKS(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, scale, per_thread));
    HOLDS(asked > 1 && grid > 0 && block > 0 && block * 128 <= 101376);
    HOLDS(cudaOccupancyMaxPotentialBlockSize(nullptr, &block, scale) == cudaErrorInvalidValue);
    WORKS(cudaUserObjectCreate(&object, new counted{&ends}, 1, cudaUserObjectNoDestructorSync));
    WORKS(cudaUserObjectRelease(object, 1));
    conform_await(&ends, 1);
    double4_32a wide = make_double4_32a(1, 2, 3, 4);
    HOLDS(alignof(double4_32a) == 32 && alignof(long4_16a) == 16 && wide.w == 4);
}

int main()
{
    static int wrapper[6];
    unregistered();
    module = __cudaRegisterFatBinary(wrapper);
    char name[] = "_Z5scalePffi", other[] = "_Z5namedPi";
    __cudaRegisterFunction(module, reinterpret_cast<const char *>(scale), name, name, -1, nullptr,
                           nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFunction(module, reinterpret_cast<const char *>(named), other, other, -1, nullptr,
                           nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterVar(module, reinterpret_cast<char *>(table), nullptr, "table", 0, sizeof(table),
                      0, 0);
    __cudaRegisterFatBinaryEnd(module);
    without_implementation();
    qualified();
    with_implementation();
    loaded();
    in_graphs();
    variables();
    by_type();
    __cudaUnregisterFatBinary(module);
    ANSWERS(cudaErrorInvalidDeviceFunction,
            cudaLaunchKernel(reinterpret_cast<const void *>(named), dim3(1), dim3(1), nullptr, 0,
                             nullptr));
    __cudaUnregisterFatBinary(module); /* again, as after our own end: nothing happens */
    return finish("kernels");
}
