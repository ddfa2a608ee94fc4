/* Kernels: attributes, occupancy and launch; and functions that code from nvcc calls. Part of
 * cuda_runtime_api.h. */
#ifndef TUTTI_HOSTCUDA_LAUNCH_API_H_
#define TUTTI_HOSTCUDA_LAUNCH_API_H_

#include "../driver_types.h"
#include "defaults.h"
#include "rename.h"

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args,
                             size_t shared_bytes, cudaStream_t stream);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args);
cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
                                        size_t shared_bytes, cudaStream_t stream);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *func);
cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value);
cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache config);
cudaError_t cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config);
cudaError_t cudaFuncGetName(const char **name, const void *func);
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol);
cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *func);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *func,
                                                          int block_size, size_t shared_bytes);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *func,
                                                                   int block_size,
                                                                   size_t shared_bytes,
                                                                   unsigned int flags);

/* ---- libraries: device code that is loaded at run time ---- */
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                enum cudaJitOption *jit_options, void **jit_values,
                                unsigned int jit_count, enum cudaLibraryOption *options,
                                void **values, unsigned int count);
cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path,
                                    enum cudaJitOption *jit_options, void **jit_values,
                                    unsigned int jit_count, enum cudaLibraryOption *options,
                                    void **values, unsigned int count);
cudaError_t cudaLibraryUnload(cudaLibrary_t library);
cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name);
cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t library);
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int count,
                                        cudaLibrary_t library);
cudaError_t cudaLibraryGetGlobal(void **ptr, size_t *len, cudaLibrary_t library, const char *name);
cudaError_t cudaLibraryGetManaged(void **ptr, size_t *len, cudaLibrary_t library, const char *name);
cudaError_t cudaLibraryGetUnifiedFunction(void **function, cudaLibrary_t library,
                                          const char *symbol);
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr,
                                            int value, int device);

#ifndef __CUDACC__ /* nvcc brings its own */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host_fun, char *device_fun,
                            const char *device_name, int thread_limit, uint3 *tid, uint3 *bid,
                            dim3 *block_dim, dim3 *grid_dim, int *warp_size);
void __cudaRegisterVar(void **handle, char *host_var, char *device_address, const char *device_name,
                       int ext, size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host_var_address, char *device_address,
                              const char *device_name, int ext, size_t size, int constant,
                              int global);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block,
                                     size_t shared_bytes TUTTI_CUDA_DEFAULT(0),
                                     struct CUstream_st *stream TUTTI_CUDA_DEFAULT(0));
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *func);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared_bytes, cudaStream_t stream);
#endif

#ifdef __cplusplus
}
#endif

#endif
