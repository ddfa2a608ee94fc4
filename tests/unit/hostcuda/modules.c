/* Device code that a program loads by itself, by both interfaces: what it declares, its variables'
 * values, launches. A GPU runs the code as it is; our runtime runs what stands in for it here. */
#include "conform.h"

#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

static const char ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .global .align 4 .u32 factor = 7;\n"
    ".visible .const .align 4 .u32 shift[2] = {1, 2};\n"
    ".visible .global .attribute(.managed) .align 4 .u32 total = 42;\n"
    ".visible .global .align 8 .u64 where = generic(factor);\n"
    ".visible .entry times(.param .u64 at, .param .u32 by)\n{\n"
    ".reg .b64 %rd<3>; .reg .b32 %r<4>;\n"
    "ld.param.u64 %rd1, [at]; cvta.to.global.u64 %rd2, %rd1; ld.param.u32 %r1, [by];\n"
    "ld.global.u32 %r2, [%rd2]; mul.lo.s32 %r3, %r2, %r1; st.global.u32 [%rd2], %r3;\nret;\n}\n"
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

static void times(const struct block *block, void **args, void *context)
{
    (void)block, (void)context;
    **(unsigned **)args[0] *= *(unsigned *)args[1];
}

static void give_implementation(void)
{
    static const size_t sizes[] = {sizeof(unsigned *), sizeof(unsigned)};
    const struct kernel kernel = {sizeof(kernel), NULL, "times", times, NULL, 2, sizes};
    int (*give)(const struct kernel *kernel) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "tuttiRegisterKernel");
    memcpy(&give, &found, sizeof(give));
    if (give) HOLDS(give(&kernel) == 0);
}

/* A driver's result is no last error of the runtime's. */
#define DRIVER(code, call) conform((int)(call) == (int)(code), __LINE__, #call, 1, 0)

static unsigned value(CUdeviceptr ptr)
{
    unsigned found = 0;
    DRIVER(0, cuMemcpyDtoH(&found, ptr, sizeof(found)));
    return found;
}

static void variables(CUmodule module)
{
    CUdeviceptr ptr = 0, to = 0;
    size_t len = 0;
    DRIVER(0, cuModuleGetGlobal(&ptr, &len, module, "factor"));
    HOLDS(len == 4 && value(ptr) == 7);
    DRIVER(0, cuModuleGetGlobal(&to, NULL, module, "where"));
    HOLDS(value(to) == (unsigned)ptr && value(to + 4) == (unsigned)(ptr >> 32));
    DRIVER(0, cuModuleGetGlobal(&ptr, &len, module, "shift"));
    HOLDS(len == 8 && value(ptr) == 1 && value(ptr + 4) == 2);
    DRIVER(0, cuModuleGetGlobal(NULL, &len, module, "total"));
    HOLDS(len == 4);
    DRIVER(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&ptr, &len, module, "times"));
    DRIVER(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&ptr, &len, module, "nothing"));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal(&ptr, &len, module, NULL));
}

/* Arguments in one buffer, as the kernel's parameters lie. */
static void packed_launches(CUfunction function, CUstream stream, unsigned *at)
{
    struct packed {
        unsigned *at;
        unsigned by;
    } packed = {at, 3};
    size_t bytes = sizeof(at) + sizeof(packed.by), too_few = sizeof(at);
    void *unknown[] = {(void *)9, &packed, CU_LAUNCH_PARAM_END};
    void *args[] = {&packed.at, &packed.by};
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, stream, NULL, 0};
    *at = 7;
    DRIVER(0, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
    packed.by = 2; /* the buffer is read during the call */
    DRIVER(0, cuLaunchKernelEx(&config, function, NULL, extra));
    packed.by = 100;
    DRIVER(0, cuStreamSynchronize(stream));
    HOLDS(*at == 7 * 3 * 2);
    DRIVER(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, args, extra));
    DRIVER(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, unknown));
    extra[3] = &too_few;
    DRIVER(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
    HOLDS(*at == 7 * 3 * 2);
}

static void launches(CUfunction function)
{
    unsigned *at = NULL, by = 5;
    void *args[] = {&at, &by};
    CUstream stream;
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, NULL, 0};
    DRIVER(0, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    WORKS(cudaMallocManaged((void **)&at, sizeof(*at), cudaMemAttachGlobal));
    *at = 2;
    DRIVER(0, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL));
    config.hStream = stream;
    DRIVER(0, cuLaunchKernelEx(&config, function, args, NULL));
    DRIVER(0, cuLaunchCooperativeKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, args));
    DRIVER(0, cuStreamSynchronize(stream));
    HOLDS(*at == 2 * 5 * 5 * 5);
    packed_launches(function, stream, at);
    DRIVER(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, stream, args, NULL));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(NULL, function, args, NULL));
    WORKS(cudaFree(at));
    DRIVER(0, cuStreamDestroy(stream));
}

static void functions(CUmodule module)
{
    CUfunction function = NULL, all[3] = {NULL, NULL, NULL};
    CUmodule its = NULL;
    const char *name = "";
    unsigned count = 0;
    int number = 0;
    DRIVER(0, cuModuleGetFunction(&function, module, "times"));
    DRIVER(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&all[0], module, "time"));
    DRIVER(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&all[0], module, "factor"));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(&all[0], module, NULL));
    DRIVER(0, cuModuleGetFunctionCount(&count, module));
    HOLDS(count == 2);
    DRIVER(0, cuModuleEnumerateFunctions(all, 2, module));
    HOLDS((all[0] == function || all[1] == function) && all[0] != all[1] && all[2] == NULL);
    DRIVER(0, cuFuncGetName(&name, function));
    HOLDS(!strcmp(name, "times"));
    DRIVER(0, cuFuncGetModule(&its, function));
    HOLDS(its == module);
    DRIVER(0, cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    HOLDS(number == 1024);
    DRIVER(0, cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 1));
    launches(function);
}

static void modules(const char *path)
{
    CUmodule module = NULL;
    CUmoduleLoadingMode mode;
    FILE *file = fopen(path, "w");
    DRIVER(0, cuInit(0));
    WORKS(cudaFree(NULL)); /* makes the context */
    DRIVER(0, cuModuleGetLoadingMode(&mode));
    DRIVER(0, cuModuleLoadData(&module, ptx));
    variables(module);
    functions(module);
    DRIVER(0, cuModuleUnload(module));
    fputs(ptx, file);
    fclose(file);
    DRIVER(0, cuModuleLoad(&module, path));
    variables(module);
    DRIVER(0, cuModuleUnload(module));
    DRIVER(0, cuModuleLoadDataEx(&module, ptx, 0, NULL, NULL));
    DRIVER(0, cuModuleUnload(module));
    DRIVER(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/no/such/file"));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, NULL));
}

/* Memory of this process that others may map, which is where the host keeps a device's. */
static long shared_kib(void)
{
    char line[128];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "RssShmem: %ld", &kib) == 1) break;
    }
    if (file) fclose(file);
    return kib;
}

/* A large variable of zeros is zeros also where there was something before, and takes no memory
 * until it is used. */
static void large_variable(void)
{
    enum { LARGE = 32 << 20 };
    static const char large_ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                                    ".visible .global .align 8 .b8 large[33554432];\n";
    CUmodule module = NULL;
    CUdeviceptr ptr = 0;
    void *before = NULL;
    size_t len = 0, used = 0;
    char *seen = (char *)malloc(LARGE);
    long kib = shared_kib();
    DRIVER(0, cuModuleLoadData(&module, large_ptx));
    HOLDS(shared_kib() < kib + 8192);
    DRIVER(0, cuModuleUnload(module));
    WORKS(cudaMalloc(&before, LARGE));
    WORKS(cudaMemset(before, 255, LARGE));
    WORKS(cudaFree(before));
    DRIVER(0, cuModuleLoadData(&module, large_ptx));
    DRIVER(0, cuModuleGetGlobal(&ptr, &len, module, "large"));
    HOLDS(len == LARGE && seen);
    DRIVER(0, cuMemcpyDtoH(seen, ptr, LARGE));
    for (size_t i = 0; i < LARGE; i++) {
        used += seen[i] != 0;
    }
    HOLDS(used == 0);
    free(seen);
    DRIVER(0, cuModuleUnload(module));
}

static void libraries(const char *path)
{
    cudaLibrary_t library = NULL;
    cudaKernel_t kernel = NULL, all[2];
    unsigned count = 0, *ptr = NULL, by = 3, found = 0;
    void *args[] = {&ptr, &by};
    const dim3 one = {1, 1, 1};
    size_t len = 0;
    CUmodule module = NULL;
    WORKS(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    WORKS(cudaLibraryGetKernelCount(&count, library));
    HOLDS(count == 2);
    WORKS(cudaLibraryEnumerateKernels(all, 2, library));
    WORKS(cudaLibraryGetKernel(&kernel, library, "times"));
    HOLDS(all[0] == kernel || all[1] == kernel);
    ANSWERS(cudaErrorSymbolNotFound, cudaLibraryGetKernel(&kernel, library, "nothing"));
    ANSWERS(cudaErrorSymbolNotFound,
            cudaLibraryGetUnifiedFunction((void **)&ptr, library, "nothing"));
    WORKS(cudaLibraryGetManaged((void **)&ptr, &len, library, "total"));
    HOLDS(len == 4 && *ptr == 42);
    ANSWERS(cudaErrorSymbolNotFound, cudaLibraryGetManaged((void **)&ptr, &len, library, "factor"));
    WORKS(cudaLibraryGetGlobal((void **)&ptr, &len, library, "factor"));
    WORKS(cudaLaunchKernel((const void *)kernel, one, one, args, 0, NULL));
    WORKS(cudaMemcpy(&found, ptr, sizeof(found), cudaMemcpyDefault));
    HOLDS(len == 4 && found == 21);
    WORKS(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 999,
                                          0));
    DRIVER(0, cuLibraryGetModule(&module, (CUlibrary)library));
    DRIVER(0, cuModuleGetGlobal(NULL, &len, module, "shift"));
    WORKS(cudaLibraryUnload(library));
    WORKS(cudaLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
    WORKS(cudaLibraryUnload(library));
    ANSWERS(cudaErrorFileNotFound,
            cudaLibraryLoadFromFile(&library, "/no/such/file", NULL, NULL, 0, NULL, NULL, 0));
    ANSWERS(cudaErrorInvalidValue, cudaLibraryLoadData(NULL, ptx, NULL, NULL, 0, NULL, NULL, 0));
}

static void linked_kernels(CUmodule module)
{
    CUfunction function = NULL;
    CUdeviceptr ptr = 0;
    size_t len = 0;
    DRIVER(0, cuModuleGetFunction(&function, module, "times"));
    DRIVER(0, cuModuleGetFunction(&function, module, "second"));
    DRIVER(0, cuModuleGetGlobal(&ptr, &len, module, "factor"));
    HOLDS(len == 4 && value(ptr) == 7);
    DRIVER(0, cuModuleGetGlobal(&ptr, &len, module, "added"));
    HOLDS(len == 8 && value(ptr) == 3 && value(ptr + 4) == 4);
    DRIVER(0, cuModuleGetGlobal(&ptr, &len, module, "where_added"));
    HOLDS(len == 8);
}

/* Pieces, one of them a file, become one module; logs are written to. */
static void links(char *path)
{
    static char more[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                         ".visible .global .align 4 .u32 added[2] = {3, 4};\n"
                         ".visible .global .align 8 .u64 where_added = generic(added);\n"
                         ".visible .entry second()\n{\nret;\n}\n";
    static char log[64] = "unwritten";
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof(log)};
    CUlinkState state = NULL;
    CUmodule module = NULL;
    void *code = NULL;
    size_t bytes = 0;
    DRIVER(0, cuLinkCreate(2, options, values, &state));
    HOLDS(strcmp(log, "unwritten") != 0);
    DRIVER(0, cuLinkAddFile(state, CU_JIT_INPUT_PTX, path, 0, NULL, NULL));
    DRIVER(0, cuLinkAddData(state, CU_JIT_INPUT_PTX, more, sizeof(more), "more", 0, NULL, NULL));
    DRIVER(0, cuLinkComplete(state, &code, &bytes));
    HOLDS(code && bytes);
    DRIVER(0, cuModuleLoadData(&module, code));
    DRIVER(0, cuLinkDestroy(state));
    linked_kernels(module);
    DRIVER(0, cuModuleUnload(module));

    DRIVER(0, cuLinkCreate(0, NULL, NULL, &state));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuLinkCreate(0, NULL, NULL, NULL));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuLinkCreate(1, NULL, NULL, &state));
    DRIVER(CUDA_ERROR_INVALID_VALUE,
           cuLinkAddData(state, CU_JIT_INPUT_PTX, NULL, 0, "none", 0, NULL, NULL));
    DRIVER(CUDA_ERROR_FILE_NOT_FOUND,
           cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/no/such/file", 0, NULL, NULL));
    DRIVER(CUDA_ERROR_INVALID_VALUE,
           cuLinkAddData(state, CU_JIT_NUM_INPUT_TYPES, more, sizeof(more), "more", 0, NULL, NULL));
    DRIVER(0, cuLinkDestroy(state));
}

int main(void)
{
    char path[] = "/tmp/tutti-modules-XXXXXX";
    int file = mkstemp(path);
    if (file < 0) return 1;
    close(file);
    give_implementation();
    modules(path);
    large_variable();
    libraries(path);
    links(path);
    unlink(path);
    return finish("modules");
}
