/* What is said of addresses of every kind, of host memory that programs bring, and of what streams
 * keep until it is asked for. Run with TUTTI_DEVICE_MEMORY=64M. */
#include "conform.h"

#include <cuda.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { MIB = 1 << 20, PAGE = 4096 };

static void said(const void *ptr, enum cudaMemoryType type, int device)
{
    struct cudaPointerAttributes facts;
    bool host = type == cudaMemoryTypeHost || type == cudaMemoryTypeManaged;
    bool known = type != cudaMemoryTypeUnregistered;
    memset(&facts, 0xee, sizeof(facts));
    WORKS(cudaPointerGetAttributes(&facts, ptr));
    HOLDS(facts.type == type && facts.device == device);
    HOLDS(facts.devicePointer == (known ? ptr : NULL));
    if (known) HOLDS(facts.hostPointer == (host ? ptr : NULL));
}

/* Each kind from within, and nothing of what has gone. */
static void kinds_of_memory(void)
{
    static char foreign[PAGE], registered[PAGE];
    char *device = NULL, *pinned = NULL, *managed = NULL, *mapped = NULL;
    WORKS(cudaSetDevice(2));
    WORKS(cudaMalloc((void **)&device, 1000));
    WORKS(cudaMallocHost((void **)&pinned, 1000));
    WORKS(cudaHostAlloc((void **)&mapped, 1000, cudaHostAllocMapped | cudaHostAllocPortable));
    WORKS(cudaMallocManaged((void **)&managed, 1000, cudaMemAttachGlobal));
    WORKS(cudaHostRegister(registered, PAGE, cudaHostRegisterMapped));
    WORKS(cudaSetDevice(0));
    said(device, cudaMemoryTypeDevice, 2);
    said(device + 999, cudaMemoryTypeDevice, 2);
    said(pinned + 10, cudaMemoryTypeHost, 2);
    said(mapped, cudaMemoryTypeHost, 2);
    said(managed + 1, cudaMemoryTypeManaged, 2);
    said(registered + PAGE - 1, cudaMemoryTypeHost, 2);
    said(foreign, cudaMemoryTypeUnregistered, -2);
    said(registered + PAGE, cudaMemoryTypeUnregistered, -2);
    ANSWERS(cudaErrorInvalidValue, cudaPointerGetAttributes(NULL, device));
    WORKS(cudaFree(device));
    WORKS(cudaFreeHost(pinned));
    WORKS(cudaFreeHost(mapped));
    WORKS(cudaFree(managed));
    WORKS(cudaHostUnregister(registered));
    said(registered, cudaMemoryTypeUnregistered, -2);
    said(pinned, cudaMemoryTypeUnregistered, -2);
}

/* ---- host memory that is registered ---- */

static void registered_ranges(void)
{
    char *pages =
        (char *)mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *pinned = NULL, *device = NULL, *at = NULL;
    unsigned flags = 99;
    WORKS(cudaMallocHost((void **)&pinned, 2 * PAGE));
    WORKS(cudaMalloc((void **)&device, 2 * PAGE));
    WORKS(cudaHostRegister(pages + PAGE, 4 * PAGE, cudaHostRegisterPortable));
    ANSWERS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(pages + PAGE, 4 * PAGE, 0));
    ANSWERS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(pages, 2 * PAGE, 0));
    ANSWERS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(pages + 4 * PAGE, 2 * PAGE, 0));
    ANSWERS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(pages, 8 * PAGE, 0));
    WORKS(cudaHostRegister(pages, PAGE, 0)); /* beside it */
    WORKS(cudaHostRegister(pages + 5 * PAGE, PAGE, cudaHostRegisterReadOnly));
    WORKS(cudaHostGetDevicePointer((void **)&at, pages + 2 * PAGE, 0));
    HOLDS(at == pages + 2 * PAGE);
    ANSWERS(cudaErrorInvalidValue, cudaHostGetDevicePointer((void **)&at, pages + 2 * PAGE, 1));
    ANSWERS(cudaErrorInvalidValue, cudaHostGetDevicePointer((void **)&at, pages + 7 * PAGE, 0));
    WORKS(cudaHostGetFlags(&flags, pages + PAGE));
    HOLDS(flags == (cudaHostAllocPortable | cudaHostAllocMapped));
    ANSWERS(cudaErrorInvalidValue, cudaHostGetFlags(&flags, pages + 7 * PAGE));
    ANSWERS(cudaErrorInvalidValue, cudaHostGetFlags(&flags, device));
    ANSWERS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(pages + 2 * PAGE));
    ANSWERS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(pinned));
    ANSWERS(cudaErrorInvalidValue, cudaFreeHost(pages + PAGE)); /* not what CUDA made */
    ANSWERS(cudaErrorInvalidValue, cudaFree(pages + PAGE));
    ANSWERS(cudaErrorInvalidValue, cudaHostRegister(device, PAGE, 0));
    ANSWERS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(pinned, PAGE, 0));
    ANSWERS(cudaErrorInvalidValue, cudaHostRegister(pages + 6 * PAGE, PAGE, 0x100));
    ANSWERS(cudaErrorInvalidValue, cudaHostRegister(pages + 6 * PAGE, (size_t)-1, 0));
    WORKS(cudaHostUnregister(pages));
    WORKS(cudaHostUnregister(pages + PAGE));
    WORKS(cudaHostUnregister(pages + 5 * PAGE));
    ANSWERS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(pages + PAGE));
    WORKS(cudaHostRegister(pages, 8 * PAGE, 0));
    WORKS(cudaHostUnregister(pages));
    munmap(pages, 8 * PAGE);
    WORKS(cudaFree(device));
    WORKS(cudaFreeHost(pinned));
}

static void freed_wrongly(void)
{
    char *device = NULL, *pinned = NULL, *managed = NULL, local = 0;
    WORKS(cudaMalloc((void **)&device, MIB));
    WORKS(cudaMallocHost((void **)&pinned, MIB));
    WORKS(cudaMallocManaged((void **)&managed, MIB, cudaMemAttachGlobal));
    ANSWERS(cudaErrorInvalidValue, cudaFree(device + 512));
    ANSWERS(cudaErrorInvalidValue, cudaFree(pinned));
    ANSWERS(cudaErrorInvalidValue, cudaFreeHost(device));
    ANSWERS(cudaErrorInvalidValue, cudaFreeHost(managed));
    ANSWERS(cudaErrorInvalidValue, cudaFreeHost(pinned + 64));
    ANSWERS(cudaErrorInvalidValue, cudaFree(&local));
    ANSWERS(cudaErrorInvalidValue, cudaFreeHost(&local));
    WORKS(cudaFree(NULL));
    WORKS(cudaFreeHost(NULL));
    WORKS(cudaFree(device));
    WORKS(cudaFree(managed));
    WORKS(cudaFreeHost(pinned));
    ANSWERS(cudaErrorInvalidValue, cudaFree(device));
    ANSWERS(cudaErrorInvalidValue, cudaFree(managed));
    ANSWERS(cudaErrorInvalidValue, cudaFreeHost(pinned));
}

/* ---- the driver's questions ---- */

static void drivers_questions(void)
{
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
    };
    unsigned type = 9, sync = 9, on = 1;
    int ordinal = 9, local = 0;
    size_t len = 9;
    void *host = &local, *device = NULL;
    void *out[] = {&type, &ordinal, &len, &host, &device, &sync};
    char *ptr = NULL;
    WORKS(cudaSetDevice(1));
    WORKS(cudaMalloc((void **)&ptr, 5000));
    WORKS(cudaSetDevice(0));
    HOLDS(!cuPointerGetAttributes(6, which, out, (CUdeviceptr)ptr + 7));
    HOLDS(type == CU_MEMORYTYPE_DEVICE && ordinal == 1 && len == 5000);
    HOLDS(host == NULL && device == ptr + 7 && sync == 0);
    HOLDS(!cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)ptr));
    HOLDS(!cuPointerGetAttributes(6, which, out, (CUdeviceptr)&local)); /* a stranger's */
    HOLDS(type == 0 && ordinal == -2 && len == 0 && host == NULL && device == NULL);
    HOLDS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&local) ==
          CUDA_ERROR_INVALID_VALUE);
    HOLDS(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, (CUdeviceptr)ptr) ==
          CUDA_ERROR_INVALID_VALUE);
    WORKS(cudaFree(ptr));
    HOLDS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)ptr) ==
          CUDA_ERROR_INVALID_VALUE);
    HOLDS(cuMemGetAddressRange(NULL, &len, (CUdeviceptr)ptr) == CUDA_ERROR_NOT_FOUND);
}

/* ---- what streams keep ---- */

static cudaLaunchAttributeValue kept(cudaStream_t stream, cudaLaunchAttributeID id)
{
    cudaLaunchAttributeValue value;
    memset(&value, 0xee, sizeof(value));
    WORKS(cudaStreamGetAttribute(stream, id, &value));
    return value;
}

static void stream_attributes(void)
{
    cudaStream_t stream = NULL, other = NULL;
    cudaLaunchAttributeValue value;
    WORKS(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -2));
    WORKS(cudaStreamCreate(&other));
    HOLDS(kept(stream, cudaLaunchAttributePriority).priority == -2);
    HOLDS(kept(stream, cudaLaunchAttributeSynchronizationPolicy).syncPolicy == cudaSyncPolicyAuto);
    HOLDS(kept(stream, cudaLaunchAttributeMemSyncDomain).memSyncDomain ==
          cudaLaunchMemSyncDomainDefault);
    HOLDS(kept(stream, cudaLaunchAttributeAccessPolicyWindow).accessPolicyWindow.num_bytes == 0);
    memset(&value, 0, sizeof(value));
    value.syncPolicy = cudaSyncPolicyBlockingSync;
    WORKS(cudaStreamSetAttribute(stream, cudaLaunchAttributeSynchronizationPolicy, &value));
    value.syncPolicy = (enum cudaSynchronizationPolicy)77;
    ANSWERS(cudaErrorInvalidValue,
            cudaStreamSetAttribute(stream, cudaLaunchAttributeSynchronizationPolicy, &value));
    memset(&value, 0, sizeof(value));
    value.accessPolicyWindow.num_bytes = 4096;
    value.accessPolicyWindow.hitRatio = 0.5F;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    WORKS(cudaStreamSetAttribute(stream, cudaLaunchAttributeAccessPolicyWindow, &value));
    WORKS(cudaStreamCopyAttributes(other, stream));
    HOLDS(kept(other, cudaLaunchAttributeSynchronizationPolicy).syncPolicy ==
          cudaSyncPolicyBlockingSync);
    HOLDS(kept(other, cudaLaunchAttributeAccessPolicyWindow).accessPolicyWindow.num_bytes == 4096);
    ANSWERS(cudaErrorInvalidValue,
            cudaStreamSetAttribute(stream, cudaLaunchAttributeCooperative, &value));
    ANSWERS(cudaErrorInvalidValue,
            cudaStreamGetAttribute(stream, (cudaLaunchAttributeID)555, &value));
    ANSWERS(cudaErrorInvalidValue,
            cudaStreamGetAttribute(stream, cudaLaunchAttributePriority, NULL));
    WORKS(cudaStreamDestroy(stream));
    WORKS(cudaStreamDestroy(other));
    ANSWERS(cudaErrorInvalidResourceHandle,
            cudaStreamGetAttribute(stream, cudaLaunchAttributePriority, &value));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamCopyAttributes(other, stream));
    HOLDS(kept(NULL, cudaLaunchAttributePriority).priority == 0);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    kinds_of_memory();
    registered_ranges();
    freed_wrongly();
    drivers_questions();
    stream_attributes();
    return finish("pointers");
}
