// Registration, launches and questions about kernels: what kernels.cpp leaves out. CUDA 12 and 13.
#include "conform.h"
#include "tutti.h"

static void add(int *count, int what)
{
    (void)count, (void)what;
}

static void add_host(const tuttiBlock &b, int *count, int what)
{
    (void)b;
    *count += what;
}

static void stranger() {}

static int table[8];
static int *managed;
static void **module;

static const void *const stub = reinterpret_cast<const void *>(add);
static const void *const unknown = reinterpret_cast<const void *>(stranger);

extern "C" {
void __cudaRegisterHostVar(void **handle, const char *name, char *host_var, size_t size);
void __cudaRegisterUnifiedTable(void **handle);
}

static void registration()
{
    static int wrapper[6];
    char name[] = "_Z3addPii";
    module = __cudaRegisterFatBinary(wrapper);
    DOES(__cudaRegisterFatBinary, module != nullptr);
    void **second = __cudaRegisterFatBinary(nullptr); // nothing of it is looked at
    REFUSES(__cudaRegisterFatBinary, second && second != module);
    __cudaUnregisterFatBinary(second);
    __cudaUnregisterFatBinary(second);
    __cudaUnregisterFatBinary(nullptr);
    REFUSES(__cudaUnregisterFatBinary, cudaPeekAtLastError() == cudaSuccess);
    __cudaRegisterFunction(module, reinterpret_cast<const char *>(add), name, name, -1, nullptr,
                           nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFunction(module, nullptr, name, name, -1, nullptr, nullptr, nullptr, nullptr,
                           nullptr);
    __cudaRegisterVar(module, reinterpret_cast<char *>(table), nullptr, "table", 0, sizeof(table),
                      0, 0);
    __cudaRegisterVar(module, nullptr, nullptr, "nothing", 0, 4, 0, 0);
    __cudaRegisterManagedVar(module, nullptr, nullptr, "nowhere", 0, 4, 0, 0);
    REFUSES(__cudaRegisterManagedVar, cudaPeekAtLastError() == cudaSuccess);
    __cudaRegisterManagedVar(module, reinterpret_cast<void **>(&managed), nullptr, "managed", 0,
                             4 * sizeof(int), 0, 0);
    __cudaRegisterHostVar(module, "host", reinterpret_cast<char *>(table), sizeof(table));
    DOES(__cudaRegisterHostVar, cudaPeekAtLastError() == cudaSuccess);
    __cudaRegisterUnifiedTable(module);
    DOES(__cudaRegisterUnifiedTable, cudaPeekAtLastError() == cudaSuccess);
    __cudaRegisterFatBinaryEnd(module);
    __cudaRegisterFatBinaryEnd(nullptr);
    DOES(__cudaRegisterFatBinaryEnd, cudaPeekAtLastError() == cudaSuccess);
    DOES(__cudaInitModule, __cudaInitModule(module) != 0);
}

static void registered()
{
    struct cudaPointerAttributes found;
    const char *name = nullptr;
    size_t size = 0;
    void *address = nullptr;
    WORKS(cudaFuncGetName(&name, stub));
    DOES(__cudaRegisterFunction, name && !strcmp(name, "_Z3addPii"));
    REFUSES(__cudaRegisterFunction, cudaFuncGetName(&name, nullptr) != cudaSuccess);
    cudaGetLastError();
    WORKS(cudaGetSymbolSize(&size, table));
    DOES(__cudaRegisterVar, size == sizeof(table));
    REFUSES(__cudaRegisterVar,
            cudaGetSymbolSize(&size, static_cast<const void *>(nullptr)) == cudaErrorInvalidSymbol);
    cudaGetLastError();
    DOES(__cudaRegisterManagedVar, managed && managed[3] == 0);
    managed[3] = 8;
    WORKS(cudaPointerGetAttributes(&found, managed));
    HOLDS(found.type == cudaMemoryTypeManaged && found.devicePointer == managed);
    ANSWERS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, unknown));
    ANSWERS(cudaErrorInvalidValue, cudaGetSymbolAddress(static_cast<void **>(nullptr), table));
    ANSWERS(cudaErrorInvalidSymbol, cudaGetSymbolSize(&size, unknown));
}

static void symbol_copies()
{
    int values[4] = {4, 3, 2, 1}, back[4] = {};
    cudaStream_t wrong = reinterpret_cast<cudaStream_t>(values);
    WORKS(cudaMemcpyToSymbolAsync(table, values, 16, 16, cudaMemcpyHostToDevice, nullptr));
    WORKS(cudaMemcpyFromSymbolAsync(back, table, 16, 16, cudaMemcpyDeviceToHost, nullptr));
    WORKS(cudaStreamSynchronize(nullptr));
    HOLDS(back[0] == 4 && back[3] == 1);
    ANSWERS(cudaErrorInvalidValue,
            cudaMemcpyToSymbolAsync(table, values, 16, 24, cudaMemcpyHostToDevice, nullptr));
    ANSWERS(cudaErrorInvalidResourceHandle,
            cudaMemcpyFromSymbolAsync(back, table, 16, 16, cudaMemcpyDeviceToHost, wrong));
    ANSWERS(cudaErrorInvalidSymbol, cudaMemcpyFromSymbol(back, values, 4));
    ANSWERS(cudaErrorInvalidSymbol,
            cudaMemcpyToSymbolAsync(unknown, values, 4, 0, cudaMemcpyHostToDevice, nullptr));
}

/* Copies to and from a variable, as nodes of a graph. */
static void symbol_nodes()
{
    const enum cudaMemcpyKind in = cudaMemcpyHostToDevice, out = cudaMemcpyDeviceToHost;
    int one[4] = {1, 2, 3, 4}, two[4] = {5, 6, 7, 8}, back[4] = {}, other[4] = {};
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaGraphNode_t to = nullptr, from = nullptr, no = nullptr;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddMemcpyNodeToSymbol(&to, graph, nullptr, 0, table, one, 16, 0, in));
    WORKS(cudaGraphAddMemcpyNodeFromSymbol(&from, graph, &to, 1, back, table, 16, 0, out));
    ANSWERS(cudaErrorInvalidSymbol,
            cudaGraphAddMemcpyNodeToSymbol(&no, graph, nullptr, 0, unknown, one, 4, 0, in));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddMemcpyNodeFromSymbol(&no, graph, nullptr, 0, back,
                                                                    table, 16, sizeof(table), out));
    ANSWERS(cudaErrorInvalidMemcpyDirection,
            cudaGraphAddMemcpyNodeToSymbol(&no, graph, nullptr, 0, table, one, 4, 0, out));
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    WORKS(cudaGraphLaunch(exec, nullptr));
    WORKS(cudaStreamSynchronize(nullptr));
    HOLDS(back[0] == 1 && back[3] == 4);
    WORKS(cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, to, table, two, 16, 0, in));
    WORKS(cudaGraphExecMemcpyNodeSetParamsFromSymbol(exec, from, other, table, 16, 0, out));
    ANSWERS(cudaErrorInvalidSymbol,
            cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, to, unknown, two, 4, 0, in));
    WORKS(cudaGraphLaunch(exec, nullptr));
    WORKS(cudaStreamSynchronize(nullptr));
    HOLDS(other[0] == 5 && other[3] == 8 && back[0] == 1);
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphMemcpyNodeSetParamsToSymbol(to, table, two, 8, 8, in));
    WORKS(cudaGraphMemcpyNodeSetParamsFromSymbol(from, back, table, 8, 8, out));
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    WORKS(cudaGraphLaunch(exec, nullptr));
    WORKS(cudaStreamSynchronize(nullptr));
    HOLDS(back[0] == 5 && back[1] == 6 && back[2] == 3);
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphDestroy(graph));
}

static void questions()
{
    cudaFunction_t function = nullptr;
    cudaKernel_t kernel = nullptr;
    const char *name = nullptr;
    int blocks = 0;
    WORKS(cudaGetFuncBySymbol(&function, stub));
    HOLDS(function != nullptr);
    WORKS(cudaGetKernel(&kernel, stub));
    ANSWERS(cudaErrorInvalidDeviceFunction, cudaGetKernel(&kernel, unknown));
    ANSWERS(cudaErrorInvalidDeviceFunction, __cudaGetKernel(&kernel, unknown));
    HOLDS(kernel == nullptr);
    ANSWERS(cudaErrorInvalidDeviceFunction, cudaFuncGetName(&name, unknown));
    WORKS(cudaFuncSetAttribute(stub, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    ANSWERS(cudaErrorInvalidValue,
            cudaFuncSetAttribute(stub, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 30));
    ANSWERS(cudaErrorInvalidDeviceFunction,
            cudaFuncSetAttribute(unknown, cudaFuncAttributeMaxDynamicSharedMemorySize, 8));
    WORKS(cudaFuncSetCacheConfig(stub, cudaFuncCachePreferL1));
    ANSWERS(cudaErrorInvalidDeviceFunction, cudaFuncSetCacheConfig(unknown, cudaFuncCachePreferL1));
    WORKS(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, stub, 128, 0, 0));
    HOLDS(blocks == 16);
    ANSWERS(cudaErrorInvalidDeviceFunction,
            cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, unknown, 128, 0, 0));
    ANSWERS(cudaErrorInvalidDeviceFunction,
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, unknown, 128, 0));
    ANSWERS(cudaErrorInvalidValue,
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, stub, 0, 0));
}

static void launches()
{
    int count = 0, what = 5, *where = &count;
    void *args[] = {&where, &what};
    cudaLaunchConfig_t config = {};
    cudaKernel_t kernel = nullptr;
    HOLDS(tuttiRegisterKernel(add, add_host) == 0);
    WORKS(cudaLaunchKernel(stub, dim3(2), dim3(32), args, 0, nullptr));
    ANSWERS(cudaErrorInvalidConfiguration,
            cudaLaunchKernel(stub, dim3(0), dim3(32), args, 0, nullptr));
    ANSWERS(cudaErrorInvalidConfiguration,
            cudaLaunchKernel(stub, dim3(1), dim3(1024, 2), args, 0, nullptr));
    ANSWERS(
        cudaErrorInvalidResourceHandle,
        cudaLaunchKernel(stub, dim3(1), dim3(1), args, 0, reinterpret_cast<cudaStream_t>(&count)));
    config.gridDim = dim3(3);
    config.blockDim = dim3(1);
    WORKS(cudaLaunchKernelExC(&config, stub, args));
    ANSWERS(cudaErrorInvalidValue, cudaLaunchKernelExC(nullptr, stub, args));
    ANSWERS(cudaErrorInvalidDeviceFunction, cudaLaunchKernelExC(&config, unknown, args));
    WORKS(cudaLaunchCooperativeKernel(stub, dim3(2), dim3(1), args, 0, nullptr));
    ANSWERS(cudaErrorCooperativeLaunchTooLarge,
            cudaLaunchCooperativeKernel(stub, dim3(1 << 20), dim3(1), args, 0, nullptr));
    cudaLaunchAttribute attr = {};
    attr.id = cudaLaunchAttributeCooperative;
    attr.val.cooperative = 1;
    config.attrs = &attr;
    config.numAttrs = 1;
    config.gridDim = dim3(1 << 20);
    ANSWERS(cudaErrorCooperativeLaunchTooLarge, cudaLaunchKernelExC(&config, stub, args));
    WORKS(__cudaGetKernel(&kernel, stub));
    WORKS(__cudaLaunchKernel(kernel, dim3(1), dim3(1), args, 0, nullptr));
    WORKS(cudaStreamSynchronize(nullptr));
    HOLDS(count == 5 * (2 + 3 + 2 + 1));
}

static void configurations()
{
    dim3 grid, block;
    size_t shared = 0;
    cudaStream_t stream = nullptr;
    int pushed = 0;
    DOES(__cudaPushCallConfiguration,
         __cudaPushCallConfiguration(dim3(2), dim3(3), 4, nullptr) == 0);
    WORKS(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    HOLDS(grid.x == 2 && block.x == 3 && shared == 4 && !stream);
    while (pushed < 1000 && __cudaPushCallConfiguration(dim3(1), dim3(1), 0, nullptr) == 0) {
        pushed++;
    }
    REFUSES(__cudaPushCallConfiguration, pushed > 0 && pushed < 1000); // no launch takes them
    while (pushed-- > 0) {
        WORKS(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    }
    ANSWERS(cudaErrorMissingConfiguration,
            __cudaPopCallConfiguration(&grid, &block, &shared, &stream));
}

static void attributes(cudaGraphNode_t node, cudaGraphNode_t other, cudaGraphNode_t empty)
{
    cudaLaunchAttributeValue value = {};
    value.priority = -2;
    WORKS(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributePriority, &value));
    value.priority = 0;
    WORKS(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributePriority, &value));
    HOLDS(value.priority == -2);
#if CUDART_VERSION >= 13000
    WORKS(cudaGraphKernelNodeCopyAttributes(other, node)); // to, from
#else
    WORKS(cudaGraphKernelNodeCopyAttributes(node, other)); // from, to
#endif
    value.priority = 0;
    WORKS(cudaGraphKernelNodeGetAttribute(other, cudaLaunchAttributePriority, &value));
    HOLDS(value.priority == -2);
    ANSWERS(cudaErrorInvalidValue,
            cudaGraphKernelNodeSetAttribute(empty, cudaLaunchAttributePriority, &value));
    ANSWERS(cudaErrorInvalidValue,
            cudaGraphKernelNodeGetAttribute(empty, cudaLaunchAttributePriority, &value));
    ANSWERS(cudaErrorInvalidValue, cudaGraphKernelNodeCopyAttributes(node, empty));
}

static void in_graphs()
{
    int count = 0, what = 1, *where = &count, other = 0;
    void *args[] = {&where, &what};
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaGraphNode_t node = nullptr, twin = nullptr, empty = nullptr;
    struct cudaKernelNodeParams params = {};
    params.func = const_cast<void *>(stub);
    params.gridDim = dim3(2);
    params.blockDim = dim3(1);
    params.kernelParams = args;
    WORKS(cudaGraphCreate(&graph, 0));
    WORKS(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    WORKS(cudaGraphAddKernelNode(&twin, graph, &node, 1, &params));
    WORKS(cudaGraphAddEmptyNode(&empty, graph, nullptr, 0));
    attributes(node, twin, empty);
    what = 10;
    WORKS(cudaGraphKernelNodeSetParams(node, &params));
    what = 0;
    ANSWERS(cudaErrorInvalidValue, cudaGraphKernelNodeSetParams(empty, &params));
    ANSWERS(cudaErrorInvalidValue, cudaGraphKernelNodeGetParams(empty, &params));
    ANSWERS(cudaErrorInvalidValue, cudaGraphKernelNodeGetParams(node, nullptr));
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    WORKS(cudaGraphLaunch(exec, nullptr));
    WORKS(cudaStreamSynchronize(nullptr));
    HOLDS(count == 22);
    where = &other;
    what = 3;
    WORKS(cudaGraphExecKernelNodeSetParams(exec, node, &params));
    WORKS(cudaGraphLaunch(exec, nullptr));
    WORKS(cudaStreamSynchronize(nullptr));
    HOLDS(other == 6);
    ANSWERS(cudaErrorInvalidValue, cudaGraphExecKernelNodeSetParams(exec, empty, &params));
    params.func = const_cast<void *>(unknown);
    ANSWERS(cudaErrorInvalidDeviceFunction, cudaGraphExecKernelNodeSetParams(exec, node, &params));
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphDestroy(graph));
}

int main()
{
    registration();
    registered();
    symbol_copies();
    symbol_nodes();
    questions();
    launches();
    configurations();
    in_graphs();
    __cudaUnregisterFatBinary(module);
    const char *name = nullptr;
    DOES(__cudaUnregisterFatBinary, cudaFuncGetName(&name, stub) == cudaErrorInvalidDeviceFunction);
    return finish("surface of kernels");
}
