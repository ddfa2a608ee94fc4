/* The driver interface: modules and libraries of device code, which are one here, and their
 * kernels. A function, a kernel and what the runtime calls so are one handle. */
#include "../shared/loading.h"
#include "driver.h"

#include "device/host/host_face.h"

/* NOLINTBEGIN(readability-non-const-parameter): the signatures are CUDA's */
static struct tt_host_library *library_of(const void *handle)
{
    return (struct tt_host_library *)(uintptr_t)handle;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tt_face_load(image, (struct tt_host_library **)module));
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (count && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
    return cuModuleLoadData(module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return cuModuleLoadData(module, image);
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tt_face_load_file(path, (struct tt_host_library **)module));
}

CUresult cuModuleUnload(CUmodule module)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostLibraryUnload(library_of(module)));
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!mode) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

static int find_kernel(const void *library, const char *name, const void **kernel_out)
{
    const struct tt_kernel *kernel = NULL;
    if (!name || !kernel_out) return CUDA_ERROR_INVALID_VALUE;
    int rc = tuttiHostLibraryKernel(library_of(library), name, &kernel);
    if (!rc) *kernel_out = kernel;
    return rc;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(find_kernel(module, name, (const void **)function));
}

static int count_kernels(const void *library, unsigned *count)
{
    size_t found = 0;
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    int rc = tuttiHostLibraryKernels(library_of(library), NULL, 0, &found);
    if (!rc) *count = (unsigned)found;
    return rc;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule module)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(count_kernels(module, count));
}

static int list_kernels(const void *library, const void *kernels, unsigned count)
{
    size_t found;
    if (!kernels || !count) return CUDA_ERROR_INVALID_VALUE;
    return tuttiHostLibraryKernels(library_of(library),
                                   (const struct tt_kernel **)(uintptr_t)kernels, count, &found);
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int count, CUmodule module)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(list_kernels(module, functions, count));
}

static int find_variable(const void *library, const char *name, bool managed, CUdeviceptr *ptr,
                         size_t *len)
{
    struct tt_span span;
    if (!name || (!ptr && !len)) return CUDA_ERROR_INVALID_VALUE;
    int rc = tuttiHostLibraryVariable(library_of(library), name, managed, &span);
    if (!rc && ptr) *ptr = (CUdeviceptr)(uintptr_t)span.ptr;
    if (!rc && len) *len = span.bytes;
    return rc;
}

CUresult cuModuleGetGlobal(CUdeviceptr *ptr, size_t *len, CUmodule module, const char *name)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(find_variable(module, name, false, ptr, len));
}

/* ---- libraries ---- */

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options,
                           void **jit_values, unsigned int jit_count, CUlibraryOption *options,
                           void **values, unsigned int count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    bool bad = (jit_count && (!jit_options || !jit_values)) || (count && (!options || !values));
    return tt_driver_done(bad ? (int)CUDA_ERROR_INVALID_VALUE
                              : tt_face_load(code, (struct tt_host_library **)library));
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit_options,
                               void **jit_values, unsigned int jit_count, CUlibraryOption *options,
                               void **values, unsigned int count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    bool bad = (jit_count && (!jit_options || !jit_values)) || (count && (!options || !values));
    return tt_driver_done(bad ? (int)CUDA_ERROR_INVALID_VALUE
                              : tt_face_load_file(path, (struct tt_host_library **)library));
}

CUresult cuLibraryUnload(CUlibrary library)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostLibraryUnload(library_of(library)));
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(find_kernel(library, name, (const void **)kernel));
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary library)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(count_kernels(library, count));
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int count, CUlibrary library)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(list_kernels(library, kernels, count));
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    unsigned unused;
    int rc = module ? count_kernels(library, &unused) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) *module = (CUmodule)(uintptr_t)library;
    return tt_driver_done(rc);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *ptr, size_t *len, CUlibrary library, const char *name)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(find_variable(library, name, false, ptr, len));
}

CUresult cuLibraryGetManaged(CUdeviceptr *ptr, size_t *len, CUlibrary library, const char *name)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(find_variable(library, name, true, ptr, len));
}

/* NOLINTEND(readability-non-const-parameter): as above */

/* ---- kernels ---- */

static int library_of_kernel(const void *kernel, const void **library_out)
{
    const struct tt_kernel *found = kernel && library_out ? tuttiHostKernelFind(kernel) : NULL;
    if (!library_out) return CUDA_ERROR_INVALID_VALUE;
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    *library_out = tuttiHostLibraryOf(found); /* NULL: it was compiled into the program */
    return *library_out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static int name_of(const void *kernel, const char **name)
{
    const struct tt_kernel *found = tuttiHostKernelFind(kernel);
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    if (found) *name = tuttiHostKernelName(found);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    if (!tuttiHostKernelFind(kernel)) return CUDA_ERROR_INVALID_HANDLE;
    *function = (CUfunction)(uintptr_t)kernel;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(library_of_kernel(kernel, (const void **)library));
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(name_of(kernel, name));
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(library_of_kernel(function, (const void **)module));
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(name_of(function, name));
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attr, CUfunction function)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    const struct tt_kernel *kernel = tuttiHostKernelFind(function);
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    switch (attr) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = TT_FACE_THREADS_PER_BLOCK; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = TT_FACE_REGISTERS; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = TT_FACE_CODE_VERSION; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = (int)tuttiHostKernelShared(kernel);
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = -1; break;
    default:
        if ((int)attr < 0 || attr > CU_FUNC_ATTRIBUTE_CACHE_MODE_CA)
            return CUDA_ERROR_INVALID_VALUE;
        *value = 0;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attr, int value)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tt_face_kernel_set(function, (int)attr, value));
}
