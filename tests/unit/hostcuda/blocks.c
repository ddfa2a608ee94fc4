/* Memory in parts as allocators use it: NCCL's (one block per buffer, freed by its address), those
 * that grow in place, those that pass blocks between processes. Each part walks the way such code
 * goes and then the ways in which it can go wrong. Run with TUTTI_DEVICE_MEMORY=64M. */
#include "conform.h"

#include <cuda.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRAIN = 2 << 20, MIB = 1 << 20 };

#define DRIVER(code, call) HOLDS((call) == (code))
#define DRIVES(call) DRIVER(CUDA_SUCCESS, call)

static const CUmemAllocationHandleType fds = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

static CUmemAllocationProp prop_of(CUmemLocationType type, int id)
{
    CUmemAllocationProp prop;
    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = type;
    prop.location.id = id;
    prop.requestedHandleTypes = fds;
    return prop;
}

static CUmemGenericAllocationHandle create(int device, size_t len)
{
    CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, device);
    CUmemGenericAllocationHandle handle = 0;
    DRIVES(cuMemCreate(&handle, len, &prop, 0));
    return handle;
}

static CUdeviceptr reserve(size_t len)
{
    CUdeviceptr where = 0;
    DRIVES(cuMemAddressReserve(&where, len, GRAIN, 0, 0));
    HOLDS(where % GRAIN == 0);
    return where;
}

static CUresult allow(CUdeviceptr where, size_t len, int device, int flags)
{
    CUmemAccessDesc access;
    memset(&access, 0, sizeof(access));
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = (CUmemAccess_flags)flags;
    return cuMemSetAccess(where, len, &access, 1);
}

static size_t free_of(int device)
{
    size_t free_now = 0, total = 0;
    WORKS(cudaSetDevice(device));
    WORKS(cudaMemGetInfo(&free_now, &total));
    WORKS(cudaSetDevice(0));
    return free_now;
}

/* ---- as NCCL's allocator does ---- */

static void *nccl_alloc(size_t wanted, size_t *len_out)
{
    CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr ptr = 0;
    size_t grain = 0;
    int rdma = -1, devices = 0;
    WORKS(cudaGetDeviceCount(&devices));
    DRIVES(cuDeviceGetAttribute(&rdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                                0));
    prop.allocFlags.gpuDirectRDMACapable = rdma != 0;
    DRIVES(cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    size_t len = (wanted + grain - 1) / grain * grain;
    DRIVES(cuMemCreate(&handle, len, &prop, 0));
    DRIVES(cuMemAddressReserve(&ptr, len, grain, 0, 0));
    DRIVES(cuMemMap(ptr, len, 0, handle, 0));
    for (int i = 0; i < devices; i++) {
        int can = i == 0;
        if (i) WORKS(cudaDeviceCanAccessPeer(&can, i, 0));
        if (can) DRIVES(allow(ptr, len, i, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    }
    *len_out = len;
    return (void *)ptr;
}

/* All that is known when it is freed is the address. */
static void nccl_free(void *ptr)
{
    CUmemGenericAllocationHandle handle = 0;
    size_t len = 0;
    DRIVES(cuMemRetainAllocationHandle(&handle, ptr));
    DRIVES(cuMemRelease(handle));
    DRIVES(cuMemGetAddressRange(NULL, &len, (CUdeviceptr)ptr));
    DRIVES(cuMemUnmap((CUdeviceptr)ptr, len));
    DRIVES(cuMemRelease(handle));
    DRIVES(cuMemAddressFree((CUdeviceptr)ptr, len));
}

static void as_nccl(void)
{
    struct cudaPointerAttributes facts;
    CUmemGenericAllocationHandle handle = 0;
    size_t before = free_of(0), len = 0;
    char *ptr = (char *)nccl_alloc(3 * MIB, &len);
    char *other = (char *)nccl_alloc(1, &len);
    HOLDS(len == GRAIN && free_of(0) == before - 3 * GRAIN);
    WORKS(cudaMemset(ptr, 5, 3 * MIB));
    WORKS(cudaMemcpy(other, ptr + MIB, MIB, cudaMemcpyDeviceToDevice));
    WORKS(cudaDeviceSynchronize());
    HOLDS(other[0] == 5 && other[MIB - 1] == 5);
    WORKS(cudaPointerGetAttributes(&facts, ptr + 1));
    HOLDS(facts.type == cudaMemoryTypeDevice && facts.device == 0 &&
          facts.devicePointer == ptr + 1);
    nccl_free(ptr);
    nccl_free(other);
    HOLDS(free_of(0) == before);
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemRetainAllocationHandle(&handle, ptr));
    WORKS(cudaPointerGetAttributes(&facts, ptr));
    HOLDS(facts.type == cudaMemoryTypeUnregistered);
}

/* Host memory near a device, which both may use. */
static void host_blocks(void)
{
    CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0), back;
    CUmemGenericAllocationHandle handle = 0;
    CUmemAccessDesc access;
    unsigned long long flags = 9;
    size_t before = free_of(0), grain = 0;
    DRIVES(cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    DRIVES(cuMemCreate(&handle, grain, &prop, 0));
    HOLDS(free_of(0) == before);
    DRIVES(cuMemGetAllocationPropertiesFromHandle(&back, handle));
    HOLDS(back.type == prop.type && back.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA);
    HOLDS(back.location.id == 0 && back.requestedHandleTypes == fds);
    CUdeviceptr where = reserve(grain);
    DRIVES(cuMemMap(where, grain, 0, handle, 0));
    memset(&access, 0, sizeof(access));
    access.location = prop.location;
    DRIVES(cuMemGetAccess(&flags, &access.location, where));
    HOLDS(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    DRIVES(allow(where, grain, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DRIVES(cuMemSetAccess(where, grain, &access, 1));
    DRIVES(cuMemGetAccess(&flags, &access.location, where));
    HOLDS(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    *(volatile char *)where = 1;
    DRIVES(cuMemUnmap(where, grain));
    DRIVES(cuMemAddressFree(where, grain));
    DRIVES(cuMemRelease(handle));
}

/* ---- properties ---- */

static void properties(void)
{
    CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 3), back;
    CUmemGenericAllocationHandle handle = 0;
    size_t grain = 0;
    memset(&back, 0xee, sizeof(back));
    prop.allocFlags.gpuDirectRDMACapable = 1;
    DRIVES(cuMemCreate(&handle, GRAIN, &prop, 0));
    DRIVES(cuMemGetAllocationPropertiesFromHandle(&back, handle));
    HOLDS(back.location.type == CU_MEM_LOCATION_TYPE_DEVICE && back.location.id == 3);
    HOLDS(back.allocFlags.gpuDirectRDMACapable == 1 && back.win32HandleMetaData == NULL);
    DRIVES(cuMemRelease(handle));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemRelease(0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationPropertiesFromHandle(&back, handle));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 0, &prop, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, GRAIN + 4096, &prop, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemCreate(NULL, GRAIN, &prop, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, GRAIN, NULL, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, GRAIN, &prop, 1));
    prop.location.id = 99;
    DRIVER(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&handle, GRAIN, &prop, 0));
    prop = prop_of(CU_MEM_LOCATION_TYPE_INVALID, 0);
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, GRAIN, &prop, 0));
    prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, GRAIN, &prop, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE,
           cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    DRIVER(CUDA_ERROR_INVALID_VALUE,
           cuMemGetAllocationGranularity(&grain, NULL, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

/* ---- addresses ---- */

static size_t asked(CUpointer_attribute attribute, CUdeviceptr where)
{
    size_t value = 0;
    DRIVES(cuPointerGetAttribute(&value, attribute, where));
    return value;
}

/* A range is what was reserved, a mapping is what has memory; both are found from within. */
static void ranges_and_mappings(void)
{
    CUmemGenericAllocationHandle handle = create(0, GRAIN);
    CUdeviceptr where = reserve(4 * GRAIN), base = 0, middle = where + GRAIN;
    size_t len = 0;
    DRIVES(cuMemMap(middle, GRAIN, 0, handle, 0));
    DRIVES(allow(middle, GRAIN, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    DRIVES(cuMemGetAddressRange(&base, &len, middle + 100));
    HOLDS(base == middle && len == GRAIN);
    HOLDS(asked(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, middle + 100) == where);
    HOLDS(asked(CU_POINTER_ATTRIBUTE_RANGE_SIZE, middle + 100) == 4 * GRAIN);
    HOLDS(asked(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, middle + 100) == middle);
    HOLDS(asked(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, middle + 100) == GRAIN);
    HOLDS((int)asked(CU_POINTER_ATTRIBUTE_MAPPED, middle) == 1);
    HOLDS((int)asked(CU_POINTER_ATTRIBUTE_MAPPED, where) == 0);
    HOLDS(asked(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, where + 5) == where);
    HOLDS(asked(CU_POINTER_ATTRIBUTE_RANGE_SIZE, where + 5) == 4 * GRAIN);
    HOLDS(asked(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, middle) == (size_t)fds);
    HOLDS((int)asked(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, middle) == 0);
    DRIVER(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &len, where));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(where, 4 * GRAIN)); /* a part is mapped */
    DRIVES(cuMemUnmap(middle, GRAIN));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(where, GRAIN)); /* not the whole */
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(where + GRAIN, 3 * GRAIN));
    DRIVES(cuMemAddressFree(where, 4 * GRAIN));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(where, 4 * GRAIN));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemMap(where, GRAIN, 0, handle, 0));
    DRIVES(cuMemRelease(handle));
}

static void wrong_ranges(void)
{
    CUmemGenericAllocationHandle handle = create(0, 2 * GRAIN), gone = create(0, GRAIN);
    CUdeviceptr where = reserve(6 * GRAIN), ptr = 0;
    DRIVES(cuMemRelease(gone));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&ptr, 0, 0, 0, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&ptr, GRAIN / 2, 0, 0, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(NULL, GRAIN, 0, 0, 0));
    DRIVER(CUDA_ERROR_OUT_OF_MEMORY, cuMemAddressReserve(&ptr, (size_t)1 << 60, 0, 0, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemMap(where, GRAIN, 0, gone, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemMap(where, 0, 0, handle, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemMap(where, 3 * GRAIN, 0, handle, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemMap(where, GRAIN, 2 * GRAIN, handle, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemMap(where + 4096, GRAIN, 0, handle, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemMap(where, GRAIN, 0, handle, 1));
    DRIVES(cuMemMap(where, 2 * GRAIN, 0, handle, 0));
    DRIVES(cuMemMap(where + 4 * GRAIN, 2 * GRAIN, 0, handle, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(where, GRAIN)); /* half of a mapping */
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(where + GRAIN, GRAIN));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(where, 6 * GRAIN)); /* a hole inside */
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(where, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(where, 3 * GRAIN));
    DRIVER(CUDA_ERROR_INVALID_VALUE, allow(where, GRAIN, 0, 3));
    DRIVER(CUDA_ERROR_INVALID_VALUE, allow(where, 6 * GRAIN, 0, 3));
    DRIVER(CUDA_ERROR_INVALID_VALUE, allow(where, 0, 0, 3));
    DRIVES(cuMemUnmap(where, 2 * GRAIN));
    DRIVES(cuMemUnmap(where + 4 * GRAIN, 2 * GRAIN));
    DRIVES(cuMemAddressFree(where, 6 * GRAIN));
    DRIVES(cuMemRelease(handle));
}

/* ---- access ---- */

static int access_of(CUdeviceptr where, int device)
{
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    unsigned long long flags = 99;
    DRIVES(cuMemGetAccess(&flags, &location, where));
    return (int)flags;
}

/* All of the descriptions hold, or none. */
static void access_together(void)
{
    CUmemGenericAllocationHandle handle = create(0, GRAIN);
    CUdeviceptr where = reserve(GRAIN);
    CUmemAccessDesc access[2];
    memset(access, 0, sizeof(access));
    for (int i = 0; i < 2; i++) {
        access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        access[i].location.id = i;
        access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    DRIVES(cuMemMap(where, GRAIN, 0, handle, 0));
    access[1].flags = (CUmemAccess_flags)2; /* writing alone */
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(where, GRAIN, access, 2));
    HOLDS(access_of(where, 0) == 0 && access_of(where, 1) == 0);
    access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    access[1].location.id = 77;
    DRIVER(CUDA_ERROR_INVALID_DEVICE, cuMemSetAccess(where, GRAIN, access, 2));
    access[1].location.type = CU_MEM_LOCATION_TYPE_INVALID;
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(where, GRAIN, access, 2));
    HOLDS(access_of(where, 0) == 0);
    access[1].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[1].location.id = 1;
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(where, GRAIN, access, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(where, GRAIN, NULL, 2));
    DRIVES(cuMemSetAccess(where, GRAIN, access, 2));
    HOLDS(access_of(where, 0) == 3 && access_of(where, 1) == 1 && access_of(where, 2) == 0);
    DRIVES(cuMemUnmap(where, GRAIN));
    DRIVES(cuMemMap(where, GRAIN, 0, handle, 0));
    HOLDS(access_of(where, 0) == 0); /* a new mapping begins without */
    DRIVES(cuMemUnmap(where, GRAIN));
    DRIVES(cuMemAddressFree(where, GRAIN));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(where, 1, 16)); /* nowhere */
    ANSWERS(cudaErrorInvalidValue, cudaMemsetAsync((void *)where, 1, GRAIN, NULL));
    DRIVES(cuMemRelease(handle));
}

/* ---- growing in place ---- */

static void growing(void)
{
    enum { PARTS = 8 };
    CUdeviceptr where = reserve((size_t)1 << 36);
    size_t before = free_of(0);
    for (int i = 0; i < PARTS; i++) {
        CUmemGenericAllocationHandle handle = create(0, GRAIN);
        DRIVES(cuMemMap(where + (size_t)i * GRAIN, GRAIN, 0, handle, 0));
        DRIVES(cuMemRelease(handle));
    }
    DRIVES(allow(where, PARTS * GRAIN, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    WORKS(cudaMemset((void *)where, 3, PARTS * GRAIN)); /* over all parts */
    ANSWERS(cudaErrorInvalidValue, cudaMemset((void *)where, 3, PARTS * GRAIN + 1));
    DRIVES(cuMemUnmap(where + 3 * GRAIN, 2 * GRAIN));
    HOLDS(free_of(0) == before - 6 * GRAIN);
    ANSWERS(cudaErrorInvalidValue, cudaMemset((void *)(where + 2 * GRAIN), 3, GRAIN + 1));
    ANSWERS(cudaErrorInvalidValue, cudaMemset((void *)(where + 3 * GRAIN), 3, 1));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemcpy((void *)where, (void *)(where + 4 * GRAIN), 10, cudaMemcpyDefault));
    WORKS(cudaMemset((void *)(where + 2 * GRAIN), 4, GRAIN));
    WORKS(cudaDeviceSynchronize());
    HOLDS(*(char *)(where + 5 * GRAIN) == 3 && *(char *)(where + 3 * GRAIN - 1) == 4);
    DRIVES(cuMemUnmap(where, 3 * GRAIN));
    DRIVES(cuMemUnmap(where + 5 * GRAIN, 3 * GRAIN));
    DRIVES(cuMemAddressFree(where, (size_t)1 << 36));
    HOLDS(free_of(0) == before);
}

/* ---- no more memory ---- */

static void exhausted(void)
{
    CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 1);
    CUmemGenericAllocationHandle handle = 0, more = 99;
    void *ptr = NULL;
    size_t most = free_of(1) / GRAIN * GRAIN;
    DRIVER(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&more, most + GRAIN, &prop, 0));
    HOLDS(more == 99);
    DRIVES(cuMemCreate(&handle, most, &prop, 0));
    DRIVER(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&more, GRAIN, &prop, 0));
    WORKS(cudaSetDevice(1));
    ANSWERS(cudaErrorMemoryAllocation, cudaMalloc(&ptr, GRAIN));
    ANSWERS(cudaErrorMemoryAllocation, cudaMallocAsync(&ptr, GRAIN, NULL));
    WORKS(cudaSetDevice(0));
    CUdeviceptr where = reserve(most);
    DRIVES(cuMemMap(where, most, 0, handle, 0));
    DRIVES(cuMemRelease(handle));
    DRIVER(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&more, GRAIN, &prop, 0)); /* mapped yet */
    DRIVES(cuMemUnmap(where, most));
    DRIVES(cuMemCreate(&more, GRAIN, &prop, 0));
    DRIVES(cuMemRelease(more));
    DRIVES(cuMemAddressFree(where, most));
}

/* ---- what a graph knows of an address that is gone ---- */

static void launched_too_late(void)
{
    CUmemGenericAllocationHandle handle = create(0, GRAIN);
    CUdeviceptr where = reserve(GRAIN);
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    char *ptr = NULL;
    WORKS(cudaMalloc((void **)&ptr, 4096));
    DRIVES(cuMemMap(where, GRAIN, 0, handle, 0));
    DRIVES(allow(where, GRAIN, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WORKS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    WORKS(cudaMemsetAsync((void *)where, 1, 4096, stream));
    WORKS(cudaMemcpyAsync(ptr, (void *)where, 4096, cudaMemcpyDefault, stream));
    WORKS(cudaStreamEndCapture(stream, &graph));
    WORKS(cudaGraphInstantiate(&exec, graph, 0));
    WORKS(cudaGraphLaunch(exec, stream));
    WORKS(cudaStreamSynchronize(stream));
    HOLDS(ptr[0] == 1 && ptr[4095] == 1);
    DRIVES(cuMemUnmap(where, GRAIN));
    ANSWERS(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream));
    WORKS(cudaStreamSynchronize(stream));
    WORKS(cudaGraphExecDestroy(exec));
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaStreamDestroy(stream));
    DRIVES(cuMemAddressFree(where, GRAIN));
    DRIVES(cuMemRelease(handle));
    WORKS(cudaFree(ptr));
}

/* ---- other processes ---- */

/* The program started again, a block of device 2 in descriptor 3. */
static int import_here(void)
{
    CUmemGenericAllocationHandle handle = 0, twin = 0;
    CUmemAllocationProp prop;
    size_t before = free_of(2);
    int ordinal = -1, fd = -1;
    DRIVES(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)3, fds));
    DRIVES(cuMemImportFromShareableHandle(&twin, (void *)(intptr_t)3, fds));
    HOLDS(handle != twin && free_of(2) == before);
    DRIVES(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
    HOLDS(prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop.location.id == 2);
    HOLDS(prop.type == CU_MEM_ALLOCATION_TYPE_PINNED && prop.requestedHandleTypes == fds);
    CUdeviceptr where = reserve(GRAIN);
    DRIVES(cuMemMap(where, GRAIN, 0, handle, 0));
    DRIVES(allow(where, GRAIN, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    DRIVES(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, where));
    HOLDS(ordinal == 2 && *(char *)where == 6);
    *(char *)where = 7;
    DRIVES(cuMemExportToShareableHandle(&fd, twin, fds, 0)); /* passed on */
    close(fd);
    DRIVES(cuMemUnmap(where, GRAIN));
    DRIVES(cuMemAddressFree(where, GRAIN));
    DRIVES(cuMemRelease(handle));
    DRIVES(cuMemRelease(twin));
    return finish("blocks, another process");
}

static int start_again(const char *program, int fd)
{
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fd, 3);
        execl(program, program, "import", (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return status;
}

static void passed_on(const char *program)
{
    CUmemGenericAllocationHandle handle = create(2, GRAIN);
    CUdeviceptr where = reserve(GRAIN);
    int fd = -1;
    DRIVES(cuMemMap(where, GRAIN, 0, handle, 0));
    DRIVES(allow(where, GRAIN, 2, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    *(char *)where = 6;
    DRIVES(cuMemExportToShareableHandle(&fd, handle, fds, 0));
    HOLDS(start_again(program, fd) == 0);
    HOLDS(*(char *)where == 7);
    close(fd);
    DRIVES(cuMemUnmap(where, GRAIN));
    DRIVES(cuMemAddressFree(where, GRAIN));
    DRIVES(cuMemRelease(handle));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, handle, fds, 0));
    CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    DRIVES(cuMemCreate(&handle, GRAIN, &prop, 0));
    DRIVER(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, handle, fds, 0));
    DRIVES(cuMemRelease(handle));
}

/* Descriptors of something else, as long as a block is. */
static void wrong_descriptors(void)
{
    CUmemGenericAllocationHandle handle = 0;
    struct cudaMemPoolProps props;
    cudaMemPool_t pool = NULL;
    int memory = memfd_create("stranger", 0), ends[2], fd = -1;
    HOLDS(memory >= 0 && ftruncate(memory, GRAIN) == 0 && pipe(ends) == 0);
    memset(&props, 0, sizeof(props));
    props.allocType = cudaMemAllocationTypePinned;
    props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    props.location.type = cudaMemLocationTypeDevice;
    WORKS(cudaMemPoolCreate(&pool, &props));
    WORKS(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    const int wrong[] = {memory, ends[0], fd, -1, 9999};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        DRIVER(CUDA_ERROR_INVALID_VALUE,
               cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)wrong[i], fds));
    }
    close(memory);
    close(ends[0]);
    close(ends[1]);
    close(fd);
    WORKS(cudaMemPoolDestroy(pool));
}

static void in_fork(void)
{
    CUmemGenericAllocationHandle handle = create(0, GRAIN);
    CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUdeviceptr where = reserve(GRAIN), other = 0;
    int status = 1;
    DRIVES(cuMemMap(where, GRAIN, 0, handle, 0));
    pid_t pid = fork();
    if (pid == 0) {
        bool good = cuMemCreate(&handle, GRAIN, &prop, 0) == CUDA_ERROR_NOT_INITIALIZED &&
                    cuMemAddressReserve(&other, GRAIN, 0, 0, 0) == CUDA_ERROR_NOT_INITIALIZED &&
                    cuMemUnmap(where, GRAIN) == CUDA_ERROR_NOT_INITIALIZED &&
                    cuMemRelease(handle) == CUDA_ERROR_NOT_INITIALIZED &&
                    allow(where, GRAIN, 0, 3) == CUDA_ERROR_NOT_INITIALIZED;
        _exit(good ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    HOLDS(status == 0);
    DRIVES(cuMemUnmap(where, GRAIN));
    DRIVES(cuMemAddressFree(where, GRAIN));
    DRIVES(cuMemRelease(handle));
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) return import_here();
    as_nccl();
    host_blocks();
    properties();
    ranges_and_mappings();
    wrong_ranges();
    access_together();
    growing();
    exhausted();
    passed_on(argv[0]);
    wrong_descriptors();
    in_fork();
    launched_too_late();
    return finish("blocks");
}
