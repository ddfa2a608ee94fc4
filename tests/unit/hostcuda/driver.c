/* The driver interface as plugins reach it: libraries opened by name, functions looked up. Beside
 * that both runtimes in one process, which share the state of devices.
 * usage: driver LIBCUDA LIBCUDART12 LIBCUDART13 */
#define CONFORM_DRIVER
#include "conform.h"

#include <dlfcn.h>
#include <unistd.h>

static void *open_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) printf("%s\n", dlerror());
    if (!library) exit(1);
    return library;
}

static void devices(void)
{
    CUdevice device = -1;
    CUcontext context = NULL, current = NULL;
    CUuuid one, two;
    int count = 0, value = -1;
    const char *text = NULL;
    char name[8];
    ANSWERS(CUDA_SUCCESS, cuInit(0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    ANSWERS(CUDA_SUCCESS, cuDeviceGetCount(&count));
    HOLDS(count == 4);
    ANSWERS(CUDA_SUCCESS, cuDeviceGet(&device, 3));
    ANSWERS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 4));
    ANSWERS(CUDA_SUCCESS, cuDeviceGetUuid(&one, 0));
    ANSWERS(CUDA_SUCCESS, cuDeviceGetUuid(&two, 1));
    HOLDS(memcmp(&one, &two, sizeof(one)) != 0);
    ANSWERS(CUDA_SUCCESS, cuDeviceGetName(name, sizeof(name), 0));
    HOLDS(strlen(name) == 7);
    ANSWERS(CUDA_SUCCESS, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0));
    HOLDS(value == 0);
    ANSWERS(CUDA_SUCCESS,
            cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    HOLDS(value > 0);
    ANSWERS(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context, 2));
    ANSWERS(CUDA_SUCCESS, cuCtxSetCurrent(context));
    ANSWERS(CUDA_SUCCESS, cuCtxGetDevice(&device));
    HOLDS(device == 2);
    ANSWERS(CUDA_SUCCESS, cuCtxGetCurrent(&current));
    HOLDS(current == context);
    ANSWERS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent((CUcontext)&device));
    ANSWERS(CUDA_SUCCESS, cuDevicePrimaryCtxRelease(2));
    ANSWERS(CUDA_SUCCESS, cuGetErrorName(CUDA_ERROR_NOT_FOUND, &text));
    HOLDS(!strcmp(text, "CUDA_ERROR_NOT_FOUND"));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuGetErrorString((CUresult)31337, &text));
    HOLDS(text == NULL);
}

/* Every code has a name of its own and a sentence. */
static void results(void)
{
    const char *name = NULL, *text = NULL;
    int known = 0;
    for (int code = 1; code <= 1000; code++) {
        CUresult rc = cuGetErrorName((CUresult)code, &name);
        HOLDS(cuGetErrorString((CUresult)code, &text) == rc);
        if (rc != CUDA_SUCCESS) continue;
        HOLDS(!strncmp(name, "CUDA_ERROR_", 11) && text && *text);
        known++;
    }
    HOLDS(known == 100);
    ANSWERS(CUDA_SUCCESS, cuGetErrorName(CUDA_ERROR_TENSOR_MEMORY_LEAK, &name));
    HOLDS(!strcmp(name, "CUDA_ERROR_TENSOR_MEMORY_LEAK"));
}

static void memory(void)
{
    CUdeviceptr ptr = 0, base = 0;
    CUstream stream = NULL;
    CUpointer_attribute attrs[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    unsigned type = 77;
    int ordinal = 77;
    void *values[] = {&type, &ordinal};
    unsigned long long id = 0;
    unsigned word = 0;
    size_t len = 0;
    char host[64];
    ANSWERS(CUDA_SUCCESS, cuMemAlloc(&ptr, 1000));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&base, 0));
    ANSWERS(CUDA_SUCCESS, cuMemGetAddressRange(&base, &len, ptr + 100));
    HOLDS(base == ptr && len == 1000);
    ANSWERS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &len, (CUdeviceptr)(uintptr_t)host));
    ANSWERS(CUDA_SUCCESS, cuPointerGetAttributes(2, attrs, values, ptr + 5));
    HOLDS(type == CU_MEMORYTYPE_DEVICE && ordinal == 2);
    ANSWERS(CUDA_SUCCESS, cuPointerGetAttributes(2, attrs, values, (CUdeviceptr)(uintptr_t)host));
    HOLDS(type == 0 && ordinal == -2);
    ANSWERS(CUDA_SUCCESS, cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                            (CUdeviceptr)(uintptr_t)host));
    ANSWERS(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ANSWERS(CUDA_SUCCESS, cuMemsetD8(ptr, 0x11, 64));
    ANSWERS(CUDA_SUCCESS, cuStreamWriteValue32(stream, ptr + 4, 0x22222222, 0));
    ANSWERS(CUDA_SUCCESS, cuStreamWaitValue32(stream, ptr + 4, 2, CU_STREAM_WAIT_VALUE_GEQ));
    ANSWERS(CUDA_SUCCESS, cuMemcpyDtoHAsync(host, ptr, 64, stream));
    ANSWERS(CUDA_SUCCESS, cuStreamSynchronize(stream));
    memcpy(&word, host + 4, 4);
    HOLDS(host[0] == 0x11 && word == 0x22222222 && host[8] == 0x11);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(stream, ptr + 1, 0, 0));
    ANSWERS(CUDA_SUCCESS, cuMemHostRegister(host, sizeof(host), 0));
    ANSWERS(CUDA_SUCCESS, cuMemHostGetDevicePointer(&base, host, 0));
    HOLDS(base == (CUdeviceptr)(uintptr_t)host);
    ANSWERS(CUDA_SUCCESS, cuMemHostUnregister(host));
    ANSWERS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(host));
    ANSWERS(CUDA_SUCCESS, cuStreamDestroy(stream));
    ANSWERS(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(stream));
    ANSWERS(CUDA_SUCCESS, cuMemFree(ptr));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemFree(ptr));
}

static unsigned read_word(CUdeviceptr at, size_t bytes)
{
    unsigned word = 0;
    ANSWERS(CUDA_SUCCESS, cuMemcpyDtoH(&word, at, bytes));
    return word;
}

/* Bytes, halves and words, in a row and in several; what lies between rows stays. */
static void fills(CUdeviceptr at, CUdeviceptr end)
{
    ANSWERS(CUDA_SUCCESS, cuMemsetD8(at, 0x11, 4096));
    ANSWERS(CUDA_SUCCESS, cuMemsetD16(at + 2, 0xabcd, 3));
    HOLDS(read_word(at, 4) == 0xabcd1111 && read_word(at + 6, 4) == 0x1111abcd);
    ANSWERS(CUDA_SUCCESS, cuMemsetD16Async(at, 0x2222, 1, NULL));
    HOLDS(read_word(at, 4) == 0xabcd2222);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(at + 1, 1, 1));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(0, 1, 1));
    ANSWERS(CUDA_SUCCESS, cuMemsetD2D8(at, 64, 0x33, 3, 4));
    HOLDS(read_word(at + 192, 4) == 0x11333333 && read_word(at + 256, 4) == 0x11111111);
    ANSWERS(CUDA_SUCCESS, cuMemsetD2D16(at, 64, 0x4444, 3, 4));
    HOLDS(read_word(at + 192 + 4, 4) == 0x11114444 && read_word(at + 62, 4) == 0x44441111);
    ANSWERS(CUDA_SUCCESS, cuMemsetD2D32(at, 64, 0x55667788, 3, 4));
    HOLDS(read_word(at + 192 + 8, 4) == 0x55667788 && read_word(at + 192 + 12, 4) == 0x11111111);
    ANSWERS(CUDA_SUCCESS, cuMemsetD2D8Async(at, 64, 1, 1, 2, NULL));
    ANSWERS(CUDA_SUCCESS, cuMemsetD2D16Async(at + 128, 64, 2, 1, 2, NULL));
    ANSWERS(CUDA_SUCCESS, cuMemsetD2D32Async(at + 256, 64, 3, 1, 2, NULL));
    HOLDS(read_word(at + 64, 1) == 1 && read_word(at + 192, 2) == 2 && read_word(at + 320, 4) == 3);
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32(at, 66, 1, 3, 4)); /* rows lie askew */
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32(at, 8, 1, 3, 4));  /* and in each other */
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D16(at, 64, 1, SIZE_MAX, 4));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(end - 64, 64, 1, 64, 2));
    ANSWERS(CUDA_SUCCESS, cuMemsetD2D8(at, 64, 1, 0, 4));
    ANSWERS(CUDA_SUCCESS, cuMemsetD2D8(at, 64, 1, 4, 0));
}

static void parts(void)
{
    CUmemAllocationProp prop, back;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0, other = 0;
    CUdeviceptr where = 0, twin = 0;
    size_t grain = 0;
    int fd = -1, got = 0;
    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    ANSWERS(CUDA_SUCCESS,
            cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, grain + 1, &prop, 0));
    ANSWERS(CUDA_SUCCESS, cuMemCreate(&handle, 2 * grain, &prop, 0));
    ANSWERS(CUDA_SUCCESS, cuMemAddressReserve(&where, 4 * grain, 0, 0, 0));
    ANSWERS(CUDA_SUCCESS, cuMemMap(where, 2 * grain, 0, handle, 0));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(where, grain, 0, handle, 0)); /* taken */
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemMap(where + 3 * grain, 2 * grain, 0, handle, 0));
    ANSWERS(CUDA_SUCCESS, cuMemSetAccess(where, 2 * grain, &access, 1));
    ANSWERS(CUDA_SUCCESS, cuMemsetD32(where, 42, 10));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(where + 2, 42, 10));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32Async(where + 1, 42, 10, NULL));
    fills(where + grain, where + 2 * grain);
    ANSWERS(CUDA_SUCCESS,
            cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ANSWERS(CUDA_SUCCESS, cuMemImportFromShareableHandle(&other, (void *)(intptr_t)fd,
                                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    ANSWERS(CUDA_SUCCESS, cuMemAddressReserve(&twin, 2 * grain, 0, 0, 0));
    ANSWERS(CUDA_SUCCESS, cuMemMap(twin, 2 * grain, 0, other, 0));
    ANSWERS(CUDA_SUCCESS, cuMemSetAccess(twin, 2 * grain, &access, 1));
    ANSWERS(CUDA_SUCCESS, cuMemcpyDtoH(&got, twin + 4, 4));
    HOLDS(got == 42); /* the same bytes at two addresses */
    ANSWERS(CUDA_SUCCESS, cuMemRelease(handle));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
    ANSWERS(CUDA_SUCCESS, cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)(where + 8)));
    ANSWERS(CUDA_SUCCESS, cuMemGetAllocationPropertiesFromHandle(&back, handle));
    HOLDS(back.requestedHandleTypes == prop.requestedHandleTypes);
    ANSWERS(CUDA_SUCCESS, cuMemRelease(handle));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(&handle, &got));
    ANSWERS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(where, 4 * grain)); /* still mapped */
    ANSWERS(CUDA_SUCCESS, cuMemUnmap(where, 2 * grain));
    ANSWERS(CUDA_SUCCESS, cuMemAddressFree(where, 4 * grain));
    ANSWERS(CUDA_SUCCESS, cuMemUnmap(twin, 2 * grain));
    ANSWERS(CUDA_SUCCESS, cuMemAddressFree(twin, 2 * grain));
    ANSWERS(CUDA_SUCCESS, cuMemRelease(other));
    ANSWERS(
        CUDA_ERROR_NOT_SUPPORTED,
        cuMemGetHandleForAddressRange(&fd, where, grain, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    ANSWERS(CUDA_ERROR_NOT_SUPPORTED, cuMemCreate(&handle, grain, &prop, 0));
}

typedef int malloc_function(void **ptr, size_t len);
typedef int attributes_function(void *attributes, const void *ptr);
typedef int free_function(void *ptr);
typedef int properties_function(void *properties, int device);
typedef int version_function(int *version);
typedef int plain_function(void);

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) printf("no %s\n", name);
    if (!found) exit(1);
    return found;
}

/* Memory from one runtime is known to the other, and each writes its own version's struct. */
static void both_runtimes(void *runtime12, void *runtime13)
{
    malloc_function *allocate = (malloc_function *)find(runtime12, "cudaMalloc");
    attributes_function *ask12 = (attributes_function *)find(runtime12, "cudaPointerGetAttributes");
    attributes_function *ask13 = (attributes_function *)find(runtime13, "cudaPointerGetAttributes");
    free_function *release = (free_function *)find(runtime13, "cudaFree");
    version_function *version12 = (version_function *)find(runtime12, "cudaRuntimeGetVersion");
    version_function *version13 = (version_function *)find(runtime13, "cudaRuntimeGetVersion");
    properties_function *old = (properties_function *)find(runtime12, "cudaGetDeviceProperties");
    plain_function *missing = (plain_function *)find(runtime13, "cudaGraphicsUnmapResources");
    plain_function *last = (plain_function *)find(runtime13, "cudaGetLastError");
    unsigned char bytes[1100];
    void *ptr = NULL;
    int version = 0;
    HOLDS(version12(&version) == 0 && version / 1000 == 12);
    HOLDS(version13(&version) == 0 && version / 1000 == 13);
    HOLDS(allocate(&ptr, 100) == 0 && ptr);
    memset(bytes, 0x5a, sizeof(bytes));
    HOLDS(ask12(bytes, ptr) == 0 && bytes[0] == 2 && bytes[23] != 0x5a && bytes[24] == 0x5a);
    HOLDS(ask13(bytes, ptr) == 0 && bytes[0] == 2 && bytes[87] == 0 && bytes[88] == 0x5a);
    HOLDS(release(ptr) == 0);
    HOLDS(release(ptr) == 1);
    memset(bytes, 0x5a, sizeof(bytes));
    HOLDS(old(bytes, 0) == 0);
    HOLDS(bytes[727] == 0 && bytes[728] == 0x5a);
    last();
    HOLDS(missing() == 801 && last() == 801 && last() == 0);
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    open_library(argv[1]);
    void *runtime12 = open_library(argv[2]), *runtime13 = open_library(argv[3]);
    devices();
    results();
    memory();
    parts();
    both_runtimes(runtime12, runtime13);
    return finish("driver");
}
