/* Functions of the program's: registration by code from nvcc, what can be asked of them.
 * Launches are in launches.c. */
#include "../shared/face.h"
#include "../shared/loading.h"

#include "device/host/host_face.h"

#include <string.h>

/* NOLINTBEGIN(readability-non-const-parameter): the signatures are the compiler's */
#pragma GCC visibility push(default)
void __cudaRegisterHostVar(void **handle, const char *name, char *host_var, size_t size);
void __cudaRegisterUnifiedTable(void **handle);
#pragma GCC visibility pop

/* ---- registration; before main(), so nothing is started and nothing is said ---- */

struct fat_wrapper { /* what compilers hand over */
    int magic, version;
    const void *code;
    const void *name_or_parts; /* of what was linked on the device */
};

void **__cudaRegisterFatBinary(void *wrapper)
{
    const struct fat_wrapper *given = wrapper;
    bool known = given && given->magic == 0x466243b1;
    return tuttiHostModuleOpen(known ? given->code : NULL);
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    tuttiHostModuleReady(handle);
}

void __cudaUnregisterFatBinary(void **handle)
{
    tuttiHostModuleClose(handle);
}

void __cudaRegisterFunction(void **handle, const char *host_fun, char *device_fun,
                            const char *device_name, int thread_limit, uint3 *tid, uint3 *bid,
                            dim3 *block_dim, dim3 *grid_dim, int *warp_size)
{
    (void)thread_limit, (void)tid, (void)bid, (void)block_dim, (void)grid_dim, (void)warp_size;
    tuttiHostKernelAdd(handle, host_fun, device_name ? device_name : device_fun);
}

void __cudaRegisterVar(void **handle, char *host_var, char *device_address, const char *device_name,
                       int ext, size_t size, int constant, int global)
{
    (void)ext, (void)constant, (void)global;
    tuttiHostVariableAdd(handle, host_var, device_name ? device_name : device_address, size);
}

/* Host code reads and writes the memory whose address it finds at *host_var_address. */
void __cudaRegisterManagedVar(void **handle, void **host_var_address, char *device_address,
                              const char *device_name, int ext, size_t size, int constant,
                              int global)
{
    (void)ext, (void)constant, (void)global;
    tuttiHostManagedAdd(handle, host_var_address, device_name ? device_name : device_address, size);
}

char __cudaInitModule(void **handle)
{
    tuttiHostManagedInit(handle);
    return 1;
}

void __cudaRegisterHostVar(void **handle, const char *name, char *host_var, size_t size)
{
    (void)handle, (void)name, (void)host_var, (void)size;
}

void __cudaRegisterUnifiedTable(void **handle)
{
    (void)handle;
}
/* NOLINTEND(readability-non-const-parameter): as above */

/* ---- handles ---- */

/* A registered kernel, or 98. Its address is its handle. */
static int find(const void *func, const struct tt_kernel **kernel)
{
    *kernel = tuttiHostKernelFind(func);
    return *kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

static int find_handle(const void *func, const void **handle)
{
    const struct tt_kernel *kernel = NULL;
    int rc = find(func, &kernel);
    *handle = kernel;
    return rc;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
    const void *handle = NULL;
    int rc = find_handle(func, &handle);
    *kernel = (cudaKernel_t)(uintptr_t)handle;
    return tt_face_done(rc);
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
    return kernel ? __cudaGetKernel(kernel, func) : tt_face_done(cudaErrorInvalidValue);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
    const void *handle = NULL;
    if (!function) return tt_face_done(cudaErrorInvalidValue);
    int rc = find_handle(symbol, &handle);
    *function = (cudaFunction_t)(uintptr_t)handle;
    return tt_face_done(rc);
}

cudaError_t cudaFuncGetName(const char **name, const void *func)
{
    const struct tt_kernel *kernel = NULL;
    int rc = name ? find(func, &kernel) : (int)cudaErrorInvalidValue;
    if (!rc) *name = tuttiHostKernelName(kernel);
    return tt_face_done(rc);
}

/* ---- attributes ---- */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *func)
{
    const struct tt_kernel *kernel = NULL;
    int rc = attributes ? find(func, &kernel) : (int)cudaErrorInvalidValue;
    if (rc) return tt_face_done(rc);
    memset(attributes, 0, sizeof(*attributes));
    attributes->maxThreadsPerBlock = TT_FACE_THREADS_PER_BLOCK;
    attributes->numRegs = TT_FACE_REGISTERS;
    attributes->ptxVersion = TT_FACE_CODE_VERSION;
    attributes->binaryVersion = TT_FACE_CODE_VERSION;
    attributes->maxDynamicSharedSizeBytes = (int)tuttiHostKernelShared(kernel);
    attributes->preferredShmemCarveout = -1;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
    return tt_face_done(tt_face_kernel_set(func, (int)attr, value));
}

cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache config)
{
    const struct tt_kernel *kernel = NULL;
    int rc = find(func, &kernel);
    if (!rc && ((int)config < 0 || config > cudaFuncCachePreferEqual)) rc = cudaErrorInvalidValue;
    return tt_face_done(rc);
}

cudaError_t cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config)
{
    const struct tt_kernel *kernel = NULL;
    int rc = find(func, &kernel);
    if (!rc && ((int)config < 0 || config > cudaSharedMemBankSizeEightByte))
        rc = cudaErrorInvalidValue;
    return tt_face_done(rc);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *func,
                                                                   int block_size,
                                                                   size_t shared_bytes,
                                                                   unsigned int flags)
{
    const struct tt_kernel *kernel = NULL;
    int rc = find(func, &kernel);
    bool good =
        blocks && block_size > 0 && !(flags & ~(unsigned)cudaOccupancyDisableCachingOverride);
    if (!rc && !good) rc = cudaErrorInvalidValue;
    if (rc) return tt_face_done(rc);
    int found = TT_FACE_THREADS_PER_SM / block_size;
    if (block_size > TT_FACE_THREADS_PER_BLOCK || shared_bytes > TT_FACE_SHARED_OPTIN) found = 0;
    if (shared_bytes && found > (int)(TT_FACE_SHARED_OPTIN / shared_bytes))
        found = (int)(TT_FACE_SHARED_OPTIN / shared_bytes);
    *blocks = found > TT_FACE_BLOCKS_PER_SM ? TT_FACE_BLOCKS_PER_SM : found;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *func,
                                                          int block_size, size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, block_size,
                                                                  shared_bytes, 0);
}
