/* What the driver's functions answer to right and wrong use: modules, libraries, their kernels and
 * variables, occupancy, launches. Run with four devices. */
#define CONFORM_DRIVER
#include "conform.h"

#include <dlfcn.h>
#include <stdint.h>

static int not_a_handle; /* its address is no handle */
#define NO_LIBRARY ((CUlibrary)&not_a_handle)
#define NO_MODULE ((CUmodule)&not_a_handle)
#define NO_KERNEL ((CUkernel)&not_a_handle)
#define NO_FUNCTION ((CUfunction)&not_a_handle)
#define NO_STREAM ((CUstream)&not_a_handle)

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                          ".visible .global .align 4 .u32 factor = 7;\n"
                          ".visible .global .attribute(.managed) .align 4 .u32 total = 42;\n"
                          ".visible .entry increase(.param .u64 at)\n{\n"
                          ".reg .b64 %rd<3>; .reg .b32 %r<4>;\n"
                          "ld.param.u64 %rd1, [at]; cvta.to.global.u64 %rd2, %rd1;\n"
                          "atom.global.add.u32 %r1, [%rd2], 1;\nret;\n}\n"
                          ".visible .entry other()\n{\nret;\n}\n";

struct block; /* struct tuttiBlock of tutti.h, which is not there on a GPU */
struct kernel {
    size_t size;
    const void *function;
    const char *name;
    void (*run)(const struct block *block, void **args, void *context);
    void *context;
    size_t nargs;
    const size_t *arg_bytes;
};

static void increase(const struct block *block, void **args, void *context)
{
    (void)block, (void)context;
    ++**(unsigned **)args[0];
}

static void give_implementation(void)
{
    static const size_t sizes[] = {sizeof(unsigned *)};
    const struct kernel kernel = {sizeof(kernel), NULL, "increase", increase, NULL, 1, sizes};
    int (*give)(const struct kernel *kernel) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "tuttiRegisterKernel");
    memcpy(&give, &found, sizeof(give));
    if (give) HOLDS(give(&kernel) == 0);
}

static void modules(void)
{
    CUmodule module = NULL;
    CUmoduleLoadingMode mode = (CUmoduleLoadingMode)9;
    CUfunction function = NULL, all[2] = {NULL, NULL};
    unsigned count = 0;
    WORKS(cuModuleGetLoadingMode(&mode));
    HOLDS(mode == CU_MODULE_EAGER_LOADING || mode == CU_MODULE_LAZY_LOADING);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuModuleGetLoadingMode(NULL));
    WORKS(cuModuleLoadDataEx(&module, ptx, 0, NULL, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadDataEx(&module, ptx, 1, NULL, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(NULL, ptx));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, NULL));
    ANSWERS(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/no/such/file"));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuModuleLoad(&module, NULL));
    WORKS(cuModuleGetFunctionCount(&count, module));
    HOLDS(count == 2);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunctionCount(NULL, module));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunctionCount(&count, NO_MODULE));
    WORKS(cuModuleEnumerateFunctions(all, 2, module));
    HOLDS(all[0] && all[1] && all[0] != all[1]);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuModuleEnumerateFunctions(NULL, 2, module));
    WORKS(cuModuleGetFunction(&function, module, "other"));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(NULL, module, "other"));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&function, NO_MODULE, "other"));
    ANSWERS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, ""));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadFatBinary(NULL, ptx));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuModuleLoadFatBinary(&module, NULL));
    WORKS(cuModuleUnload(module));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(NULL));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuFuncLoad(function)); /* it went with its module */
}

static void libraries(void)
{
    CUlibrary library = NULL, its = NULL;
    CUkernel kernel = NULL, all[2] = {NULL, NULL};
    CUmodule module = NULL;
    CUdeviceptr ptr = 0;
    const char *name = NULL;
    size_t len = 0;
    unsigned count = 0;
    WORKS(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuLibraryLoadData(NULL, ptx, NULL, NULL, 0, NULL, NULL, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuLibraryLoadData(&its, ptx, NULL, NULL, 1, NULL, NULL, 0)); /* no options */
    ANSWERS(CUDA_ERROR_FILE_NOT_FOUND,
            cuLibraryLoadFromFile(&its, "/no/such/file", NULL, NULL, 0, NULL, NULL, 0));
    WORKS(cuLibraryGetKernelCount(&count, library));
    HOLDS(count == 2);
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernelCount(&count, NO_LIBRARY));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuLibraryGetKernelCount(NULL, library));
    WORKS(cuLibraryEnumerateKernels(all, 2, library));
    HOLDS(all[0] && all[1] && all[0] != all[1]);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuLibraryEnumerateKernels(NULL, 2, library));
    WORKS(cuLibraryGetKernel(&kernel, library, "increase"));
    ANSWERS(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "nothing"));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuLibraryGetKernel(&kernel, library, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuLibraryGetKernel(NULL, library, "increase"));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernel(&kernel, NO_LIBRARY, "increase"));
    WORKS(cuLibraryGetGlobal(&ptr, &len, library, "factor"));
    HOLDS(ptr && len == 4);
    ANSWERS(CUDA_ERROR_NOT_FOUND, cuLibraryGetGlobal(&ptr, &len, library, "nothing"));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuLibraryGetGlobal(NULL, NULL, library, "factor"));
    WORKS(cuLibraryGetManaged(&ptr, &len, library, "total"));
    HOLDS(*(unsigned *)(uintptr_t)ptr == 42);
    ANSWERS(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&ptr, &len, library, "factor"));
    WORKS(cuLibraryGetModule(&module, library));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuLibraryGetModule(NULL, library));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetModule(&module, NO_LIBRARY));
    WORKS(cuKernelGetLibrary(&its, kernel));
    HOLDS(its == library);
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuKernelGetLibrary(&its, NO_KERNEL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuKernelGetLibrary(NULL, kernel));
    WORKS(cuKernelGetName(&name, kernel));
    HOLDS(!strcmp(name, "increase"));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuKernelGetName(&name, NO_KERNEL));
    WORKS(cuLibraryUnload(library));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(NULL));
}

static void kernels(CUkernel kernel)
{
    CUfunction function = NULL;
    CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
    int value = 0;
    WORKS(cuKernelGetFunction(&function, kernel));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuKernelGetFunction(NULL, kernel));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuKernelGetFunction(&function, NO_KERNEL));
    WORKS(cuFuncLoad(function));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuFuncLoad(NO_FUNCTION));
    WORKS(cuFuncIsLoaded(&state, function));
    HOLDS(state == CU_FUNCTION_LOADING_STATE_LOADED);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuFuncIsLoaded(NULL, function));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuFuncIsLoaded(&state, NULL));
    WORKS(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 1));
    HOLDS(value > 0);
    ANSWERS(CUDA_ERROR_INVALID_DEVICE,
            cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 9));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE,
            cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, NO_KERNEL, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuKernelGetAttribute(&value, (CUfunction_attribute)99, kernel, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuKernelGetAttribute(NULL, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
    WORKS(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536, kernel, 0));
    WORKS(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    HOLDS(value == 65536);
    ANSWERS(
        CUDA_ERROR_INVALID_VALUE,
        cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 30, kernel, 0));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE,
            cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024, kernel, 9));
    WORKS(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, 0));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, 9));
    WORKS(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_EQUAL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuFuncSetCacheConfig(function, (CUfunc_cache)9));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuFuncSetCacheConfig(NO_FUNCTION, CU_FUNC_CACHE_PREFER_L1));
}

static void occupancy(CUfunction function)
{
    int blocks = 0, size = 0;
    WORKS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0));
    HOLDS(blocks > 0);
    WORKS(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        &blocks, function, 256, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
    WORKS(cuOccupancyMaxPotentialBlockSize(&blocks, &size, function, NULL, 0, 0));
    HOLDS(blocks > 0 && size > 0);
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, function, 256, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 0, 0));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, NO_FUNCTION, 256, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, function, 256, 0, 64));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuOccupancyMaxPotentialBlockSize(NULL, &size, function, NULL, 0, 0));
}

struct shape {
    CUresult wanted;
    unsigned grid[3], block[3], shared_bytes;
};

static void launches(CUfunction function, CUdeviceptr count)
{
    static const struct shape shapes[] = {
        {CUDA_SUCCESS, {1, 1, 1}, {1, 1, 1}, 0},
        {CUDA_SUCCESS, {2, 2, 1}, {32, 4, 8}, 1024},
        {CUDA_ERROR_INVALID_VALUE, {0, 1, 1}, {1, 1, 1}, 0},
        {CUDA_ERROR_INVALID_VALUE, {1, 0, 1}, {1, 1, 1}, 0},
        {CUDA_ERROR_INVALID_VALUE, {1, 1, 0}, {1, 1, 1}, 0},
        {CUDA_ERROR_INVALID_VALUE, {1, 1, 1}, {0, 1, 1}, 0},
        {CUDA_ERROR_INVALID_VALUE, {1, 1, 1}, {1025, 1, 1}, 0},
        {CUDA_ERROR_INVALID_VALUE, {1, 1, 1}, {1, 1, 65}, 0},
        {CUDA_ERROR_INVALID_VALUE, {1, 1, 1}, {64, 64, 1}, 0},
        {CUDA_ERROR_INVALID_VALUE, {1, 65536, 1}, {1, 1, 1}, 0},
        {CUDA_ERROR_INVALID_VALUE, {1, 1, 65536}, {1, 1, 1}, 0},
        {CUDA_ERROR_INVALID_VALUE, {1U << 31, 1, 1}, {1, 1, 1}, 0},
        {CUDA_ERROR_INVALID_VALUE, {1, 1, 1}, {1, 1, 1}, 1U << 30},
    };
    CUlaunchConfig config;
    void *args[] = {&count};
    unsigned ran = 0;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct shape *at = &shapes[i];
        const unsigned *g = at->grid, *b = at->block;
        memset(&config, 0, sizeof(config));
        config.gridDimX = g[0], config.gridDimY = g[1], config.gridDimZ = g[2];
        config.blockDimX = b[0], config.blockDimY = b[1], config.blockDimZ = b[2];
        config.sharedMemBytes = at->shared_bytes;
        printf("launch %zu\n", i);
        ANSWERS(at->wanted, cuLaunchKernel(function, g[0], g[1], g[2], b[0], b[1], b[2],
                                           at->shared_bytes, NULL, args, NULL));
        ANSWERS(at->wanted, cuLaunchKernelEx(&config, function, args, NULL));
        if (!at->wanted) ran += 2 * g[0] * g[1] * g[2];
    }
    unsigned counted = 0;
    WORKS(cuMemcpyDtoH(&counted, count, sizeof(counted)));
    HOLDS(counted >= ran);
    config.gridDimX = 1, config.sharedMemBytes = 0;
    config.numAttrs = 1, config.attrs = NULL;
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, function, args, NULL));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE,
            cuLaunchKernel(NO_FUNCTION, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE,
            cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NO_STREAM, args, NULL));
}

/* All blocks of a cooperative launch are on the device at a time. */
static void cooperative(CUfunction function, CUdeviceptr count)
{
    void *args[] = {&count};
    int per_sm = 0, sms = 0;
    WORKS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, function, 128, 0));
    WORKS(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    const unsigned most = (unsigned)(per_sm * sms);
    WORKS(cuLaunchCooperativeKernel(function, most, 1, 1, 128, 1, 1, 0, NULL, args));
    ANSWERS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            cuLaunchCooperativeKernel(function, most + 1, 1, 1, 128, 1, 1, 0, NULL, args));
    ANSWERS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            cuLaunchCooperativeKernel(function, 65535, 65535, 65535, 1, 1, 1, 0, NULL, args));
    CUlaunchAttribute attr;
    CUlaunchConfig config;
    memset(&attr, 0, sizeof(attr));
    memset(&config, 0, sizeof(config));
    config.gridDimX = most + 1;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 128;
    attr.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    config.attrs = &attr;
    config.numAttrs = 1;
    WORKS(cuLaunchKernelEx(&config, function, args, NULL));
    attr.value.cooperative = 1;
    ANSWERS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            cuLaunchKernelEx(&config, function, args, NULL));
    ANSWERS(CUDA_ERROR_INVALID_VALUE,
            cuLaunchCooperativeKernel(function, 1, 1, 1, 2000, 1, 1, 0, NULL, args));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE,
            cuLaunchCooperativeKernel(NO_FUNCTION, 1, 1, 1, 1, 1, 1, 0, NULL, args));
    WORKS(cuCtxSynchronize());
}

int main(void)
{
    CUlibrary library = NULL;
    CUkernel kernel = NULL;
    CUfunction function = NULL;
    CUdeviceptr count = 0;
    give_implementation();
    WORKS(cuInit(0));
    modules();
    libraries();
    WORKS(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    WORKS(cuLibraryGetKernel(&kernel, library, "increase"));
    WORKS(cuKernelGetFunction(&function, kernel));
    WORKS(cuMemAlloc(&count, sizeof(unsigned)));
    WORKS(cuMemsetD32(count, 0, 1));
    kernels(kernel);
    occupancy(function);
    launches(function, count);
    cooperative(function, count);
    WORKS(cuMemFree(count));
    WORKS(cuLibraryUnload(library));
    return finish("loaded code of the driver");
}
