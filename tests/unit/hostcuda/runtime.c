/* Devices, errors, streams, events, memory, copies and pools, with what they must refuse. Written
 * so that it compiles as C and C++, for CUDA 12 and 13, against our headers and NVIDIA's. Run with
 * four devices. */
#include "conform.h"

static void devices(void)
{
    int count = 0, device = -1, value = 0, can = -1, version = 0;
    char bus[32], small[4];
    struct cudaDeviceProp prop[2];
    WORKS(cudaGetDeviceCount(&count));
    HOLDS(count == 4);
    ANSWERS(cudaErrorInvalidValue, cudaGetDeviceCount(NULL));
    WORKS(cudaGetDevice(&device));
    HOLDS(device == 0);
    ANSWERS(cudaErrorInvalidDevice, cudaSetDevice(4));
    ANSWERS(cudaErrorInvalidDevice, cudaSetDevice(-1));
    WORKS(cudaSetDevice(3));
    WORKS(cudaGetDevice(&device));
    HOLDS(device == 3);
    WORKS(cudaSetDevice(0));
    memset(prop, 0x5a, sizeof(prop));
    WORKS(cudaGetDeviceProperties(&prop[0], 1));
    HOLDS(((unsigned char *)&prop[1])[0] == 0x5a); /* not one byte more */
    HOLDS(prop[0].warpSize == 32 && prop[0].totalGlobalMem > 0 && prop[0].name[0]);
    WORKS(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 1));
    HOLDS(value == prop[0].major);
    WORKS(cudaDeviceGetAttribute(&value, cudaDevAttrPciBusId, 1));
    HOLDS(value == prop[0].pciBusID);
#if CUDART_VERSION >= 13000
    HOLDS(prop[0].deviceNumaId == -1 && prop[0].hostNumaId == -1); /* as the attributes say */
#endif
    ANSWERS(cudaErrorInvalidDevice, cudaGetDeviceProperties(&prop[0], 9));
    ANSWERS(cudaErrorInvalidValue, cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)9999, 0));
    for (int attr = 1; attr < (int)cudaDevAttrMax; attr++) {
        WORKS(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)attr, 0));
    }
    WORKS(cudaDeviceGetPCIBusId(bus, sizeof(bus), 2));
    WORKS(cudaDeviceGetByPCIBusId(&device, bus));
    HOLDS(device == 2);
    WORKS(cudaDeviceGetByPCIBusId(&device, strchr(bus, ':') + 1)); /* no domain */
    HOLDS(device == 2);
    ANSWERS(cudaErrorInvalidValue, cudaDeviceGetPCIBusId(small, sizeof(small), 2));
    ANSWERS(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(&device, "ffff:ff:1f.7"));
    ANSWERS(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(&device, "nonsense"));
    WORKS(cudaDeviceCanAccessPeer(&can, 0, 1));
    HOLDS(can == 1);
    WORKS(cudaDeviceCanAccessPeer(&can, 1, 1));
    HOLDS(can == 0);
    WORKS(cudaDeviceEnablePeerAccess(1, 0));
    ANSWERS(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(1, 0));
    WORKS(cudaDeviceDisablePeerAccess(1));
    ANSWERS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
    ANSWERS(cudaErrorInvalidValue, cudaDeviceEnablePeerAccess(2, 1));
    WORKS(cudaRuntimeGetVersion(&version));
    HOLDS(version / 1000 == CUDART_VERSION / 1000);
    WORKS(cudaDriverGetVersion(&value));
    HOLDS(value >= version);
}

static void settings(void)
{
    int least = 1, greatest = 1;
    unsigned int flags = 0;
    size_t limit = 0;
    WORKS(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    HOLDS(least == 0 && greatest < 0);
    WORKS(cudaDeviceGetStreamPriorityRange(NULL, NULL));
    WORKS(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    WORKS(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
    HOLDS(limit == 4096);
    ANSWERS(cudaErrorUnsupportedLimit, cudaDeviceSetLimit((enum cudaLimit)77, 1));
    WORKS(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
    WORKS(cudaGetDeviceFlags(&flags));
    HOLDS(flags == (cudaDeviceScheduleSpin | cudaDeviceMapHost));
    ANSWERS(cudaErrorInvalidValue, cudaSetDeviceFlags(0x4000));
    WORKS(cudaSetDeviceFlags(cudaDeviceScheduleAuto));
}

static void errors(void)
{
    cudaGetLastError();
    HOLDS(cudaPeekAtLastError() == cudaSuccess);
    cudaSetDevice(1000);
    HOLDS(cudaPeekAtLastError() == cudaErrorInvalidDevice);
    HOLDS(cudaGetLastError() == cudaErrorInvalidDevice);
    HOLDS(cudaGetLastError() == cudaSuccess);
    HOLDS(!strcmp(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady"));
    HOLDS(!strcmp(cudaGetErrorName((cudaError_t)31337), "unrecognized error code"));
    HOLDS(!strcmp(cudaGetErrorString((cudaError_t)31337), "unrecognized error code"));
    static const struct {
        cudaError_t code;
        const char *phrase; /* what programs and scripts match at the start */
    } texts[] = {
        {cudaErrorInvalidValue, "invalid argument"},
        {cudaErrorMemoryAllocation, "out of memory"},
        {cudaErrorInvalidDevice, "invalid device ordinal"},
        {cudaErrorInvalidResourceHandle, "invalid resource handle"},
        {cudaErrorNotReady, "device not ready"},
        {cudaErrorIllegalAddress, "an illegal memory access was encountered"},
        {cudaErrorNotSupported, "operation not supported"},
        {cudaErrorLaunchFailure, "unspecified launch failure"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *text = cudaGetErrorString(texts[i].code);
        HOLDS(!strncmp(text, texts[i].phrase, strlen(texts[i].phrase)));
    }
}

static void count_up(void *arg)
{
    ++*(int *)arg;
}

static void CUDART_CB callback(cudaStream_t stream, cudaError_t status, void *arg)
{
    (void)stream;
    if (status == cudaSuccess) ++*(int *)arg;
}

static void streams(void)
{
    cudaStream_t stream = NULL, other = NULL;
    unsigned int flags = 7;
    int count = 0, priority = 1;
    WORKS(cudaStreamCreate(&stream));
    WORKS(cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, -100));
    ANSWERS(cudaErrorInvalidValue, cudaStreamCreate(NULL));
    ANSWERS(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&other, 8));
    WORKS(cudaStreamGetFlags(other, &flags));
    HOLDS(flags == cudaStreamNonBlocking);
    WORKS(cudaStreamGetPriority(other, &priority));
    HOLDS(priority == -5);
    WORKS(cudaStreamQuery(stream));
    WORKS(cudaLaunchHostFunc(stream, count_up, &count));
    WORKS(cudaStreamAddCallback(stream, callback, &count, 0));
    WORKS(cudaStreamSynchronize(stream));
    HOLDS(count == 2);
    ANSWERS(cudaErrorInvalidValue, cudaLaunchHostFunc(stream, NULL, NULL));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(NULL));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(cudaStreamPerThread));
    WORKS(cudaStreamDestroy(stream));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(stream));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaStreamQuery((cudaStream_t)&count));
    WORKS(cudaStreamSynchronize(NULL));
    WORKS(cudaStreamSynchronize(cudaStreamLegacy));
    WORKS(cudaStreamSynchronize(cudaStreamPerThread));
    WORKS(cudaStreamDestroy(other));
    WORKS(cudaDeviceSynchronize());
}

static void events(void)
{
    cudaEvent_t start = NULL, end = NULL, plain = NULL, other = NULL;
    cudaStream_t stream = NULL;
    float msec = -1;
    WORKS(cudaStreamCreate(&stream));
    WORKS(cudaEventCreate(&start));
    WORKS(cudaEventCreateWithFlags(&end, cudaEventBlockingSync));
    WORKS(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
    ANSWERS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&plain, 64));
    ANSWERS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&plain, cudaEventInterprocess));
    WORKS(cudaEventQuery(start));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&msec, start, end));
    WORKS(cudaEventRecord(start, stream));
    WORKS(cudaEventRecord(end, stream));
    WORKS(cudaEventSynchronize(end));
    WORKS(cudaEventElapsedTime(&msec, start, end));
    HOLDS(msec >= 0);
    WORKS(cudaEventRecord(plain, stream));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&msec, plain, end));
    WORKS(cudaStreamWaitEvent(NULL, plain, 0));
    ANSWERS(cudaErrorInvalidValue, cudaStreamWaitEvent(stream, plain, 6));
    WORKS(cudaEventRecordWithFlags(plain, stream, cudaEventRecordDefault));
    ANSWERS(cudaErrorInvalidValue,
            cudaEventRecordWithFlags(plain, stream, cudaEventRecordExternal));
    WORKS(cudaSetDevice(1));
    WORKS(cudaStreamWaitEvent(NULL, plain, 0));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaEventRecord(plain, NULL));
    WORKS(cudaEventCreate(&other));
    WORKS(cudaEventRecord(other, NULL));
    WORKS(cudaEventSynchronize(other));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&msec, start, other));
    WORKS(cudaEventDestroy(other));
    WORKS(cudaSetDevice(0));
    WORKS(cudaEventDestroy(plain));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaEventDestroy(plain));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaEventRecord(plain, stream));
    WORKS(cudaEventDestroy(start));
    WORKS(cudaEventDestroy(end));
    WORKS(cudaStreamDestroy(stream));
}

static void pointers(void)
{
    struct cudaPointerAttributes found[2];
    void *device = NULL, *pinned = NULL, *managed = NULL, *address = NULL;
    static char foreign[8192];
    unsigned int flags = 0;
    WORKS(cudaSetDevice(2));
    WORKS(cudaMalloc((void **)&device, 4096));
    WORKS(cudaSetDevice(0));
    WORKS(cudaMallocHost((void **)&pinned, 100));
    WORKS(cudaMallocManaged((void **)&managed, 100, cudaMemAttachGlobal));
    memset(found, 0x5a, sizeof(found));
    WORKS(cudaPointerGetAttributes(&found[0], (char *)device + 17));
    HOLDS(((unsigned char *)&found[1])[0] == 0x5a);
    HOLDS(found[0].type == cudaMemoryTypeDevice && found[0].device == 2);
    WORKS(cudaPointerGetAttributes(&found[0], pinned));
    HOLDS(found[0].type == cudaMemoryTypeHost && found[0].hostPointer == pinned);
    WORKS(cudaPointerGetAttributes(&found[0], managed));
    HOLDS(found[0].type == cudaMemoryTypeManaged);
    WORKS(cudaPointerGetAttributes(&found[0], foreign));
    HOLDS(found[0].type == cudaMemoryTypeUnregistered && found[0].device == -2);
    ANSWERS(cudaErrorInvalidValue, cudaHostRegister((void *)4096, 4096, 0)); /* nothing there */
    WORKS(cudaHostRegister(foreign, sizeof(foreign), cudaHostRegisterDefault));
    ANSWERS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(foreign + 10, 10, 0));
    WORKS(cudaPointerGetAttributes(&found[0], foreign + 5));
    HOLDS(found[0].type == cudaMemoryTypeHost);
    WORKS(cudaHostGetDevicePointer((void **)&address, foreign + 5, 0));
    HOLDS(address == foreign + 5);
    ANSWERS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(foreign + 5));
    WORKS(cudaHostUnregister(foreign));
    ANSWERS(cudaErrorInvalidValue, cudaHostGetDevicePointer((void **)&address, foreign, 0));
    WORKS(cudaHostGetFlags(&flags, pinned));
    ANSWERS(cudaErrorInvalidValue, cudaHostGetFlags(&flags, foreign));
    WORKS(cudaStreamAttachMemAsync(NULL, managed, 0, cudaMemAttachGlobal));
    ANSWERS(cudaErrorInvalidValue, cudaStreamAttachMemAsync(NULL, device, 0, cudaMemAttachGlobal));
    ANSWERS(cudaErrorInvalidResourceHandle,
            cudaStreamAttachMemAsync((cudaStream_t)foreign, managed, 0, cudaMemAttachGlobal));
    WORKS(cudaFree(device));
    WORKS(cudaFree(managed));
    WORKS(cudaFreeHost(pinned));
}

static void allocation(void)
{
    void *ptr = NULL, *pinned = NULL;
    size_t before = 0, after = 0, total = 0, pitch = 0;
    int local = 0;
    WORKS(cudaMemGetInfo(&before, &total));
    WORKS(cudaMalloc((void **)&ptr, 1 << 20));
    HOLDS((size_t)ptr % 256 == 0);
    WORKS(cudaMemGetInfo(&after, NULL));
    HOLDS(after <= before - (1 << 20) && before <= total);
    ANSWERS(cudaErrorInvalidValue, cudaFree((char *)ptr + 1));
    ANSWERS(cudaErrorInvalidValue, cudaFree(&local));
    ANSWERS(cudaErrorInvalidValue, cudaFreeHost(ptr));
    WORKS(cudaFree(ptr));
    ANSWERS(cudaErrorInvalidValue, cudaFree(ptr));
    WORKS(cudaFree(NULL));
    WORKS(cudaFreeHost(NULL));
    ANSWERS(cudaErrorMemoryAllocation, cudaMalloc((void **)&ptr, (size_t)1 << 60));
    ANSWERS(cudaErrorInvalidValue, cudaMalloc((void **)NULL, 8));
    ptr = &local;
    WORKS(cudaMalloc((void **)&ptr, 0));
    HOLDS(ptr == NULL);
    WORKS(cudaHostAlloc((void **)&pinned, 10, cudaHostAllocPortable | cudaHostAllocMapped));
    ANSWERS(cudaErrorInvalidValue, cudaHostAlloc((void **)&ptr, 10, 64));
    ANSWERS(cudaErrorInvalidValue, cudaFree(pinned));
    WORKS(cudaFreeHost(pinned));
    ANSWERS(cudaErrorInvalidValue, cudaMallocManaged((void **)&ptr, 0, cudaMemAttachGlobal));
    ANSWERS(cudaErrorInvalidValue, cudaMallocManaged((void **)&ptr, 8, cudaMemAttachSingle));
    WORKS(cudaMallocPitch((void **)&ptr, &pitch, 100, 10));
    HOLDS(pitch % 512 == 0 && pitch >= 100);
    WORKS(cudaFree(ptr));
}

static void copies(void)
{
    char *device = NULL, *other = NULL, host[256], back[256];
    cudaStream_t stream = NULL;
    for (int i = 0; i < 256; i++) {
        host[i] = (char)i;
    }
    WORKS(cudaMalloc((void **)&device, 4096));
    WORKS(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    WORKS(cudaMemcpy(device, host, 256, cudaMemcpyHostToDevice));
    WORKS(cudaMemcpyAsync(device + 256, device, 256, cudaMemcpyDeviceToDevice, stream));
    WORKS(cudaMemcpyAsync(back, device + 256, 256, cudaMemcpyDefault, stream));
    WORKS(cudaStreamSynchronize(stream));
    HOLDS(!memcmp(host, back, 256));
    WORKS(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault));
    ANSWERS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(device, host, 4, (enum cudaMemcpyKind)9));
    ANSWERS(cudaErrorInvalidValue, cudaMemcpy(NULL, host, 4, cudaMemcpyHostToDevice));
    ANSWERS(cudaErrorInvalidValue, cudaMemcpy(device, NULL, 4, cudaMemcpyHostToDevice));
    WORKS(cudaMemcpy2D(device, 64, host, 16, 16, 4, cudaMemcpyHostToDevice));
    WORKS(cudaMemcpy2DAsync(back, 16, device, 64, 16, 4, cudaMemcpyDeviceToHost, stream));
    WORKS(cudaStreamSynchronize(stream));
    HOLDS(!memcmp(host, back, 64));
    ANSWERS(cudaErrorInvalidPitchValue,
            cudaMemcpy2D(device, 8, host, 16, 16, 4, cudaMemcpyHostToDevice));
    WORKS(cudaMemset(device, 0x41, 100));
    WORKS(cudaMemsetAsync(device + 50, 0x142, 10, stream)); /* the low 8 bits */
    WORKS(cudaStreamSynchronize(stream));
    WORKS(cudaMemcpy(back, device, 100, cudaMemcpyDeviceToHost));
    HOLDS(back[0] == 0x41 && back[50] == 0x42 && back[60] == 0x41);
    WORKS(cudaMemset2D(device, 32, 7, 4, 3));
    WORKS(cudaMemcpy(back, device, 100, cudaMemcpyDeviceToHost));
    HOLDS(back[32] == 7 && back[36] == 0x41 && back[67] == 7);
    ANSWERS(cudaErrorInvalidValue, cudaMemset(NULL, 0, 4));
    ANSWERS(cudaErrorInvalidResourceHandle,
            cudaMemcpyAsync(device, host, 4, cudaMemcpyHostToDevice, (cudaStream_t)host));
    WORKS(cudaSetDevice(1));
    WORKS(cudaMalloc((void **)&other, 4096));
    WORKS(cudaMemcpyPeer(other, 1, device, 0, 64));
    WORKS(cudaMemcpyPeerAsync(other + 64, 1, device, 0, 64, NULL));
    WORKS(cudaMemcpy(back, other, 128, cudaMemcpyDeviceToHost));
    HOLDS(back[32] == 7 && back[96] == 7);
    ANSWERS(cudaErrorInvalidDevice, cudaMemcpyPeer(other, 9, device, 0, 64));
    WORKS(cudaFree(other));
    WORKS(cudaSetDevice(0));
    WORKS(cudaFree(device));
    WORKS(cudaStreamDestroy(stream));
}

static void boxes(void)
{
    struct cudaPitchedPtr box;
    struct cudaMemcpy3DParms params;
    struct cudaExtent extent = {8, 4, 3};
    char host[8 * 4 * 3], back[8 * 4 * 3];
    memset(host, 3, sizeof(host));
    memset(&params, 0, sizeof(params));
    WORKS(cudaMalloc3D(&box, extent));
    WORKS(cudaMemset3D(box, 9, extent));
    params.srcPtr.ptr = host;
    params.srcPtr.pitch = params.srcPtr.xsize = 8;
    params.srcPtr.ysize = 4;
    params.dstPtr = box;
    params.extent.width = 4;
    params.extent.height = 2;
    params.extent.depth = 3;
    params.dstPos.x = 2;
    params.kind = cudaMemcpyHostToDevice;
    WORKS(cudaMemcpy3D(&params));
    memset(&params, 0, sizeof(params));
    params.srcPtr = box;
    params.dstPtr.ptr = back;
    params.dstPtr.pitch = params.dstPtr.xsize = 8;
    params.dstPtr.ysize = 4;
    params.extent = extent;
    params.kind = cudaMemcpyDeviceToHost;
    WORKS(cudaMemcpy3DAsync(&params, NULL));
    WORKS(cudaDeviceSynchronize());
    HOLDS(back[0] == 9 && back[2] == 3 && back[5] == 3 && back[6] == 9);
    HOLDS(back[8 * 2 + 2] == 9 && back[64 + 8 + 2] == 3);
    params.srcPtr.pitch = 4;
    ANSWERS(cudaErrorInvalidPitchValue, cudaMemcpy3D(&params));
    ANSWERS(cudaErrorInvalidValue, cudaMemcpy3D(NULL));
    WORKS(cudaFree(box.ptr));
}

static void pool_access(cudaMemPool_t pool)
{
    struct cudaMemAccessDesc access;
    enum cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
    struct cudaMemLocation where = {cudaMemLocationTypeDevice, 1};
    access.location = where;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    WORKS(cudaMemPoolSetAccess(pool, &access, 1));
    WORKS(cudaMemPoolGetAccess(&flags, pool, &where));
    HOLDS(flags == cudaMemAccessFlagsProtReadWrite);
    access.location.id = 0;
    access.flags = cudaMemAccessFlagsProtNone;
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolSetAccess(pool, &access, 1));
}

static void pools(void)
{
    cudaMemPool_t pool = NULL, own = NULL, current = NULL;
    struct cudaMemPoolProps props;
    cudaStream_t stream = NULL;
    unsigned long long value = 0;
    int on = 0;
    void *ptr = NULL, *other = NULL;
    memset(&props, 0, sizeof(props));
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    WORKS(cudaStreamCreate(&stream));
    WORKS(cudaDeviceGetDefaultMemPool(&own, 0));
    WORKS(cudaMemPoolCreate(&pool, &props));
    WORKS(cudaDeviceSetMemPool(0, pool));
    WORKS(cudaDeviceGetMemPool(&current, 0));
    HOLDS(current == pool);
    ANSWERS(cudaErrorInvalidValue, cudaDeviceSetMemPool(1, pool));
    WORKS(cudaMallocAsync((void **)&ptr, 1000, stream));
    WORKS(cudaMallocFromPoolAsync((void **)&other, 500, own, stream));
    WORKS(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
    HOLDS(value >= 1000);
    WORKS(cudaMemsetAsync(ptr, 1, 1000, stream));
    WORKS(cudaFreeAsync(ptr, stream));
    ANSWERS(cudaErrorInvalidValue, cudaFreeAsync(ptr, stream));
    WORKS(cudaStreamSynchronize(stream));
    WORKS(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
    HOLDS(value == 0);
    WORKS(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value));
    HOLDS(value >= 1000);
    value = 5;
    ANSWERS(cudaErrorInvalidValue,
            cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value));
    value = 0;
    WORKS(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value));
    WORKS(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &on));
    on = 5;
    WORKS(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &on));
    HOLDS(on == 0);
    pool_access(pool);
    WORKS(cudaMemPoolTrimTo(pool, 0));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolDestroy(own));
    WORKS(cudaFree(other)); /* cudaFree takes it too */
    WORKS(cudaMemPoolDestroy(pool));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolDestroy(pool));
    WORKS(cudaDeviceGetMemPool(&current, 0));
    HOLDS(current == own);
    props.handleTypes = cudaMemHandleTypeFabric;
    ANSWERS(cudaErrorNotSupported, cudaMemPoolCreate(&pool, &props));
    WORKS(cudaStreamDestroy(stream));
}

static void entry_points(void)
{
    enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
    void *fn = NULL, *old = NULL;
    WORKS(cudaGetDriverEntryPointByVersion("cuMemCreate", &fn, 12020, cudaEnableDefault, &status));
    HOLDS(fn != NULL && status == cudaDriverEntryPointSuccess);
    WORKS(cudaGetDriverEntryPointByVersion("cuStreamGetCaptureInfo", &fn, 12030, 0, &status));
    WORKS(cudaGetDriverEntryPointByVersion("cuStreamGetCaptureInfo", &old, 11040, 0, &status));
    HOLDS(fn != old && old != NULL);
    WORKS(cudaGetDriverEntryPointByVersion("cuMemCreate", &fn, 10010, 0, &status));
    HOLDS(fn == NULL && status == cudaDriverEntryPointVersionNotSufficent);
    WORKS(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &fn, 13000, 0, &status));
    HOLDS(fn == NULL && status == cudaDriverEntryPointSymbolNotFound);
    ANSWERS(cudaErrorSymbolNotFound,
            cudaGetDriverEntryPointByVersion("cuNoSuchThing", &fn, 13000, 0, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaGetDriverEntryPointByVersion(NULL, &fn, 13000, 0, &status));
}

int main(void)
{
    devices();
    settings();
    errors();
    streams();
    events();
    pointers();
    allocation();
    copies();
    boxes();
    pools();
    entry_points();
    WORKS(cudaDeviceReset());
    return finish("runtime");
}
