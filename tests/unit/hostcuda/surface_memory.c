/* Memory, copies, fills, hints and pools: what the other suites leave out. C and C++, CUDA 12 and
 * 13. Run with four devices. */
#include "conform.h"

#include <stdint.h>
#include <unistd.h>

static struct cudaMemLocation location_of(enum cudaMemLocationType type, int id)
{
    struct cudaMemLocation location;
    memset(&location, 0, sizeof(location));
    location.type = type;
    location.id = id;
    return location;
}

/* Slices must hold the rows of the box, also when it is so deep that it cannot be filled. */
static void deep_boxes(struct cudaPitchedPtr box)
{
    struct cudaExtent deep = {1, 1, (size_t)1 << 60}, high = {1, box.ysize + 1, 2};
    struct cudaPitchedPtr flat = box, huge = box;
    flat.ysize = 0;
    huge.ysize = (size_t)1 << 62;
    ANSWERS(cudaErrorInvalidValue, cudaMemset3D(flat, 6, deep));
    ANSWERS(cudaErrorInvalidValue, cudaMemset3DAsync(flat, 6, deep, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaMemset3D(box, 6, high));
    ANSWERS(cudaErrorInvalidValue, cudaMemset3D(huge, 6, deep));
    deep.width = 0;
    WORKS(cudaMemset3D(flat, 6, deep));
}

/* A box that ends behind its memory leaves the slices before that as they are. */
static void long_boxes(struct cudaPitchedPtr box, struct cudaExtent extent)
{
    char first = 0;
    extent.depth++;
    WORKS(cudaMemset(box.ptr, 3, 1));
    ANSWERS(cudaErrorInvalidValue, cudaMemset3D(box, 6, extent));
    ANSWERS(cudaErrorInvalidValue, cudaMemset3DAsync(box, 6, extent, NULL));
    WORKS(cudaMemcpy(&first, box.ptr, 1, cudaMemcpyDeviceToHost));
    HOLDS(first == 3);
}

static void refused_allocations(void)
{
    struct cudaPointerAttributes found;
    struct cudaPitchedPtr box;
    struct cudaExtent extent = {(size_t)1 << 40, 1 << 20, 1 << 20};
    cudaStream_t wrong = (cudaStream_t)&box;
    cudaMemPool_t pool = NULL;
    size_t pitch = 0;
    void *ptr = NULL;
    ANSWERS(cudaErrorInvalidValue, cudaMallocHost((void **)NULL, 8));
    ANSWERS(cudaErrorMemoryAllocation, cudaMallocHost(&ptr, (size_t)1 << 60));
    ANSWERS(cudaErrorInvalidValue, cudaMallocPitch(&ptr, NULL, 8, 8));
    ANSWERS(cudaErrorMemoryAllocation, cudaMallocPitch(&ptr, &pitch, (size_t)1 << 40, 1 << 30));
    ANSWERS(cudaErrorMemoryAllocation, cudaMalloc3D(&box, extent));
    ANSWERS(cudaErrorInvalidValue, cudaMalloc3D(NULL, extent));
    ANSWERS(cudaErrorInvalidValue, cudaPointerGetAttributes(NULL, &found));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaMallocAsync(&ptr, 8, wrong));
    ANSWERS(cudaErrorInvalidValue, cudaMallocAsync((void **)NULL, 8, NULL));
    ANSWERS(cudaErrorMemoryAllocation, cudaMallocAsync(&ptr, (size_t)1 << 60, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&ptr, 8, (cudaMemPool_t)&box, NULL));
    ANSWERS(cudaErrorInvalidDevice, cudaDeviceGetDefaultMemPool(&pool, 4));
    ANSWERS(cudaErrorInvalidValue, cudaDeviceGetDefaultMemPool(NULL, 0));
    ANSWERS(cudaErrorInvalidDevice, cudaDeviceGetMemPool(&pool, 4));
    ANSWERS(cudaErrorInvalidValue, cudaHostRegister(NULL, 8, 0));
    ANSWERS(cudaErrorInvalidValue, cudaHostRegister(&found, 0, 0));
}

static void refused_copies(void)
{
    struct cudaMemcpy3DParms params;
    struct cudaPitchedPtr box;
    struct cudaExtent extent = {8, 4, 3};
    char host[256], *device = NULL;
    cudaStream_t wrong = (cudaStream_t)host;
    memset(&params, 0, sizeof(params));
    memset(host, 0, sizeof(host));
    WORKS(cudaMalloc((void **)&device, 4096));
    ANSWERS(cudaErrorInvalidDevice, cudaMemcpyPeerAsync(device, 0, device + 64, 9, 64, NULL));
    ANSWERS(cudaErrorInvalidResourceHandle,
            cudaMemcpyPeerAsync(device, 0, device + 64, 0, 64, wrong));
    ANSWERS(cudaErrorInvalidPitchValue,
            cudaMemcpy2DAsync(device, 8, host, 16, 16, 4, cudaMemcpyHostToDevice, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaMemcpy3DAsync(NULL, NULL));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaMemsetAsync(device, 0, 4, wrong));
    ANSWERS(cudaErrorInvalidValue, cudaMemsetAsync(NULL, 0, 4, NULL));
    ANSWERS(cudaErrorInvalidPitchValue, cudaMemset2D(device, 2, 0, 4, 3));
    WORKS(cudaMemset2DAsync(device, 64, 5, 32, 2, NULL));
    WORKS(cudaMemcpy(host, device, 128, cudaMemcpyDeviceToHost));
    HOLDS(host[31] == 5 && host[64] == 5 && host[95] == 5);
    ANSWERS(cudaErrorInvalidPitchValue, cudaMemset2DAsync(device, 2, 0, 4, 3, NULL));
    ANSWERS(cudaErrorInvalidResourceHandle, cudaMemset2DAsync(device, 8, 0, 4, 3, wrong));
    WORKS(cudaMalloc3D(&box, extent));
    WORKS(cudaMemset3DAsync(box, 6, extent, NULL));
    WORKS(cudaMemcpy(host, box.ptr, 8, cudaMemcpyDeviceToHost));
    HOLDS(host[7] == 6);
    ANSWERS(cudaErrorInvalidResourceHandle, cudaMemset3DAsync(box, 6, extent, wrong));
    deep_boxes(box);
    long_boxes(box, extent);
    WORKS(cudaFree(box.ptr));
    box.ptr = NULL;
    ANSWERS(cudaErrorInvalidValue, cudaMemset3D(box, 6, extent));
    WORKS(cudaFree(device));
}

/* Memory that was freed, and more than there is: refused before a byte is touched. */
static void refused_spans(void)
{
    char *small = NULL, *page = NULL, host[4096], *pinned = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphNode_t node = NULL;
    memset(host, 7, sizeof(host));
    WORKS(cudaMalloc((void **)&small, 100));
    WORKS(cudaMalloc((void **)&page, 4096));
    WORKS(cudaMallocHost((void **)&pinned, 100));
    WORKS(cudaMemset(page, 1, 4096));
    ANSWERS(cudaErrorInvalidValue, cudaMemcpy(small, host, 101, cudaMemcpyHostToDevice));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemcpyAsync(host, small + 1, 100, cudaMemcpyDeviceToHost, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaMemcpy(page, pinned, 101, cudaMemcpyHostToDevice));
    ANSWERS(cudaErrorInvalidValue, cudaMemcpy(page, host, SIZE_MAX, cudaMemcpyHostToDevice));
    ANSWERS(cudaErrorInvalidValue, cudaMemset(small, 0, 101));
    ANSWERS(cudaErrorInvalidValue, cudaMemset(page + 4000, 0, 97));
    ANSWERS(cudaErrorInvalidValue, cudaMemset2D(page, 1024, 0, 1024, 5));
    ANSWERS(cudaErrorInvalidValue, cudaMemset2D(page, SIZE_MAX / 2, 0, 8, 3));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemcpy2D(page, 1024, host, 512, 512, 5, cudaMemcpyHostToDevice));
    ANSWERS(cudaErrorInvalidValue, cudaMemcpyPeer(small, 0, page, 0, 200));
    WORKS(cudaMemcpy2D(page + 512, 1024, host, 512, 512, 4, cudaMemcpyHostToDevice));
    WORKS(cudaMemcpy(host, page, 8, cudaMemcpyDeviceToHost));
    HOLDS(host[0] == 1);
    WORKS(cudaGraphCreate(&graph, 0));
    ANSWERS(cudaErrorInvalidValue, cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, small, host, 101,
                                                            cudaMemcpyHostToDevice));
    WORKS(cudaGraphDestroy(graph));
    WORKS(cudaFree(small));
    ANSWERS(cudaErrorInvalidValue, cudaMemcpy(small, host, 4, cudaMemcpyHostToDevice));
    ANSWERS(cudaErrorInvalidValue, cudaMemcpy(host, small, 4, cudaMemcpyDeviceToHost));
    ANSWERS(cudaErrorInvalidValue, cudaMemsetAsync(small, 0, 4, NULL));
    WORKS(cudaFree(page));
    WORKS(cudaFreeHost(pinned));
}

/* Boxes that are nothing, and boxes that are nowhere. */
static void odd_boxes(void)
{
    static const size_t far[] = {(size_t)1 << 50, (size_t)1 << 62, (size_t)1 << 63, SIZE_MAX};
    char host[4096], *device = NULL;
    struct cudaMemcpy3DParms params;
    memset(host, 7, sizeof(host));
    WORKS(cudaMalloc((void **)&device, 4096));
    WORKS(cudaMemset(device, 1, 4096));
    WORKS(cudaMemcpy2D(device, 512, host, 512, 512, 0, cudaMemcpyHostToDevice));
    WORKS(cudaMemcpy2DAsync(device, 512, host, 512, 512, 0, cudaMemcpyHostToDevice, NULL));
    WORKS(cudaMemcpy(host, device, 8, cudaMemcpyDeviceToHost));
    HOLDS(host[0] == 1);
    for (int i = 0; i < 8; i++) {
        memset(&params, 0, sizeof(params));
        params.srcPtr = make_cudaPitchedPtr(host, 512, 512, 4);
        params.dstPtr = make_cudaPitchedPtr(device, 512, 512, 4);
        params.extent = make_cudaExtent(8, 2, 1);
        params.kind = cudaMemcpyDefault;
        struct cudaPos *pos = i < 4 ? &params.srcPos : &params.dstPos;
        pos->x = far[i % 4];
        ANSWERS(cudaErrorInvalidValue, cudaMemcpy3D(&params));
        *pos = make_cudaPos(0, far[i % 4], 0);
        ANSWERS(cudaErrorInvalidValue, cudaMemcpy3D(&params));
        *pos = make_cudaPos(0, 0, far[i % 4]);
        ANSWERS(cudaErrorInvalidValue, cudaMemcpy3DAsync(&params, NULL));
    }
    WORKS(cudaFree(device));
}

/* The host sees a fill without a stream of memory that it shares when the call returns. */
static void fills_are_seen(void)
{
    const size_t len = (size_t)32 << 20;
    char *managed = NULL, *pinned = NULL;
    WORKS(cudaMallocManaged((void **)&managed, len, cudaMemAttachGlobal));
    WORKS(cudaMallocHost((void **)&pinned, len));
    WORKS(cudaMemset(managed, 5, len));
    HOLDS(managed[len - 1] == 5);
    WORKS(cudaMemset2D(pinned, len / 2, 6, len / 2, 2));
    HOLDS(pinned[len - 1] == 6);
    WORKS(cudaFree(managed));
    WORKS(cudaFreeHost(pinned));
}

static void dawdle(void *arg)
{
    (void)arg;
    usleep(50000);
}

/* A source that is read during the call is the caller's again behind it, whatever the stream does.
 */
static void batch_now(char *device, cudaStream_t stream)
{
    char *pinned = NULL, back[8] = "";
#if CUDART_VERSION >= 13000
    const void *srcs[1];
#else
    void *srcs[1];
    size_t failed = 9;
#endif
    void *dsts[1];
    size_t lens[1] = {6}, starts[1] = {0};
    struct cudaMemcpyAttributes attrs;
    memset(&attrs, 0, sizeof(attrs));
    attrs.srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
    WORKS(cudaMallocHost((void **)&pinned, 64));
    memcpy(pinned, "before", 6);
    srcs[0] = pinned;
    dsts[0] = device;
    WORKS(cudaLaunchHostFunc(stream, dawdle, NULL));
#if CUDART_VERSION >= 13000
    WORKS(cudaMemcpyBatchAsync(dsts, srcs, lens, 1, &attrs, starts, 1, stream));
#else
    WORKS(cudaMemcpyBatchAsync(dsts, srcs, lens, 1, &attrs, starts, 1, &failed, stream));
#endif
    memcpy(pinned, "behind", 6);
    WORKS(cudaStreamSynchronize(stream));
    WORKS(cudaMemcpy(back, device, 6, cudaMemcpyDeviceToHost));
    HOLDS(!memcmp(back, "before", 6));
    WORKS(cudaFreeHost(pinned));
}

static void batches(void)
{
    char host[64] = "first second", *device = NULL, back[64] = "";
#if CUDART_VERSION >= 13000
    const void *srcs[2];
#else
    void *srcs[2];
#endif
    void *dsts[2];
    size_t lens[2] = {6, 6}, starts[1] = {0};
    struct cudaMemcpyAttributes attrs;
    cudaStream_t stream = NULL;
    memset(&attrs, 0, sizeof(attrs));
    attrs.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    WORKS(cudaMalloc((void **)&device, 64));
    WORKS(cudaStreamCreate(&stream));
    dsts[0] = device;
    dsts[1] = device + 6;
    srcs[0] = host + 6;
    srcs[1] = host;
#if CUDART_VERSION >= 13000
    WORKS(cudaMemcpyBatchAsync(dsts, srcs, lens, 2, &attrs, starts, 1, stream));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemcpyBatchAsync(dsts, srcs, lens, 2, &attrs, starts, 1, NULL));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemcpyBatchAsync(dsts, srcs, lens, 0, &attrs, starts, 1, stream));
#else
    size_t failed = 9;
    WORKS(cudaMemcpyBatchAsync(dsts, srcs, lens, 2, &attrs, starts, 1, &failed, stream));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemcpyBatchAsync(dsts, srcs, lens, 2, &attrs, starts, 1, &failed, NULL));
    dsts[1] = NULL;
    ANSWERS(cudaErrorInvalidValue,
            cudaMemcpyBatchAsync(dsts, srcs, lens, 2, &attrs, starts, 1, &failed, stream));
    HOLDS(failed == 1);
#endif
    WORKS(cudaStreamSynchronize(stream));
    WORKS(cudaMemcpy(back, device, 12, cudaMemcpyDeviceToHost));
    HOLDS(!memcmp(back, "secondfirst ", 12));
    batch_now(device, stream);
    WORKS(cudaStreamDestroy(stream));
    WORKS(cudaFree(device));
}

#if CUDART_VERSION >= 13000
#define DEVICE(number) location_of(cudaMemLocationTypeDevice, number), 0
#define PLACE(number) location_of(cudaMemLocationTypeDevice, number)
#else
#define DEVICE(number) number
#define PLACE(number) number
#endif

static int hint(const void *ptr, enum cudaMemRangeAttribute attr)
{
    int value = -77;
    cudaMemRangeGetAttribute(&value, sizeof(value), attr, ptr, 4096);
    return value;
}

static void hints(void)
{
    char *managed = NULL, *device = NULL;
    int value = 7, many[3] = {9, 9, 9};
    WORKS(cudaMallocManaged((void **)&managed, 8192, cudaMemAttachGlobal));
    WORKS(cudaMalloc((void **)&device, 8192));
    WORKS(cudaMemPrefetchAsync(managed, 8192, DEVICE(2), NULL));
    HOLDS(hint(managed, cudaMemRangeAttributeLastPrefetchLocation) == 2);
    ANSWERS(cudaErrorInvalidDevice, cudaMemPrefetchAsync(managed, 8192, DEVICE(9), NULL));
    ANSWERS(cudaErrorInvalidValue, cudaMemPrefetchAsync(device, 8192, DEVICE(2), NULL));
    ANSWERS(cudaErrorInvalidResourceHandle,
            cudaMemPrefetchAsync(managed, 8192, DEVICE(2), (cudaStream_t)managed));
    WORKS(cudaMemAdvise(managed, 8192, cudaMemAdviseSetReadMostly, PLACE(0)));
    HOLDS(hint(managed, cudaMemRangeAttributeReadMostly) == 1);
    WORKS(cudaMemAdvise(managed, 8192, cudaMemAdviseUnsetReadMostly, PLACE(0)));
    HOLDS(hint(managed, cudaMemRangeAttributeReadMostly) == 0);
    HOLDS(hint(managed, cudaMemRangeAttributePreferredLocation) == cudaInvalidDeviceId);
    WORKS(cudaMemAdvise(managed, 8192, cudaMemAdviseSetPreferredLocation, PLACE(3)));
    HOLDS(hint(managed, cudaMemRangeAttributePreferredLocation) == 3);
    WORKS(cudaMemAdvise(managed, 8192, cudaMemAdviseUnsetPreferredLocation, PLACE(3)));
    HOLDS(hint(managed, cudaMemRangeAttributePreferredLocation) == cudaInvalidDeviceId);
    WORKS(cudaMemAdvise(managed, 8192, cudaMemAdviseSetAccessedBy, PLACE(1)));
    WORKS(cudaMemAdvise(managed, 8192, cudaMemAdviseSetAccessedBy, PLACE(3)));
    WORKS(cudaMemRangeGetAttribute(many, sizeof(many), cudaMemRangeAttributeAccessedBy, managed,
                                   8192));
    HOLDS(many[0] == 1 && many[1] == 3 && many[2] == cudaInvalidDeviceId);
    ANSWERS(cudaErrorInvalidValue,
            cudaMemAdvise(managed, 8192, (enum cudaMemoryAdvise)55, PLACE(1)));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemAdvise(device, 8192, cudaMemAdviseSetReadMostly, PLACE(1)));
    ANSWERS(cudaErrorInvalidDevice,
            cudaMemAdvise(managed, 8192, cudaMemAdviseSetPreferredLocation, PLACE(9)));
    WORKS(cudaMemRangeGetAttribute(&value, sizeof(value), cudaMemRangeAttributeReadMostly, managed,
                                   100));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemRangeGetAttribute(&value, 3, cudaMemRangeAttributeReadMostly, managed, 100));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemRangeGetAttribute(&value, sizeof(value), cudaMemRangeAttributeReadMostly, device,
                                     100));
    WORKS(cudaFree(managed));
    WORKS(cudaMallocManaged((void **)&managed, 8192, cudaMemAttachGlobal)); /* hints went along */
    HOLDS(hint(managed, cudaMemRangeAttributeLastPrefetchLocation) == cudaInvalidDeviceId);
    WORKS(cudaFree(managed));
    WORKS(cudaFree(device));
}

/* One page of many, and a range that agrees in nothing. */
static void hints_by_page(void)
{
    enum { PAGE = 4096 };
    char *managed = NULL, *own = (char *)malloc(4 * PAGE);
    enum cudaMemRangeAttribute attrs[2] = {cudaMemRangeAttributeReadMostly,
                                           cudaMemRangeAttributePreferredLocation};
    int read_mostly = -7, preferred = -7;
    void *values[2] = {&read_mostly, &preferred};
    size_t lens[2] = {sizeof(int), sizeof(int)};
    WORKS(cudaMallocManaged((void **)&managed, 8 * PAGE, cudaMemAttachGlobal));
    WORKS(cudaMemAdvise(managed + 2 * PAGE, PAGE, cudaMemAdviseSetReadMostly, PLACE(0)));
    WORKS(cudaMemAdvise(managed + 3 * PAGE + 5, 1, cudaMemAdviseSetReadMostly, PLACE(0)));
    HOLDS(hint(managed, cudaMemRangeAttributeReadMostly) == 0);
    HOLDS(hint(managed + 2 * PAGE, cudaMemRangeAttributeReadMostly) == 1);
    WORKS(cudaMemRangeGetAttributes(values, lens, attrs, 2, managed + 2 * PAGE, 2 * PAGE));
    HOLDS(read_mostly == 1 && preferred == cudaInvalidDeviceId);
    WORKS(cudaMemRangeGetAttributes(values, lens, attrs, 2, managed + 2 * PAGE, 3 * PAGE));
    HOLDS(read_mostly == 0);
    ANSWERS(cudaErrorInvalidValue, cudaMemRangeGetAttributes(values, lens, attrs, 0, managed, 1));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemRangeGetAttributes(values, lens, attrs, 2, managed, 9 * PAGE));
    lens[1] = 3;
    ANSWERS(cudaErrorInvalidValue,
            cudaMemRangeGetAttributes(values, lens, attrs, 2, managed, PAGE));
    WORKS(cudaMemPrefetchAsync(managed, 4 * PAGE, DEVICE(1), NULL));
    WORKS(cudaMemPrefetchAsync(managed + 4 * PAGE, 4 * PAGE, DEVICE(2), NULL));
    HOLDS(hint(managed + PAGE, cudaMemRangeAttributeLastPrefetchLocation) == 1);
    HOLDS(hint(managed + 4 * PAGE, cudaMemRangeAttributeLastPrefetchLocation) == 2);
    WORKS(cudaMemRangeGetAttribute(&preferred, sizeof(int),
                                   cudaMemRangeAttributeLastPrefetchLocation, managed, 8 * PAGE));
    HOLDS(preferred == cudaInvalidDeviceId);
    WORKS(cudaMemPrefetchAsync(managed, 8 * PAGE, DEVICE(3), NULL));
    WORKS(cudaMemRangeGetAttribute(&preferred, sizeof(int),
                                   cudaMemRangeAttributeLastPrefetchLocation, managed, 8 * PAGE));
    HOLDS(preferred == 3);
    HOLDS(hint(managed + 2 * PAGE, cudaMemRangeAttributeReadMostly) == 1);
    WORKS(cudaMemAdvise(own, 4 * PAGE, cudaMemAdviseSetPreferredLocation, PLACE(2)));
    HOLDS(hint(own, cudaMemRangeAttributePreferredLocation) == 2); /* pageable: reached as well */
    WORKS(cudaMemAdvise(own, 4 * PAGE, cudaMemAdviseUnsetPreferredLocation, PLACE(2)));
    HOLDS(hint(own, cudaMemRangeAttributePreferredLocation) == cudaInvalidDeviceId);
    ANSWERS(cudaErrorInvalidValue,
            cudaMemAdvise((void *)PAGE, PAGE, cudaMemAdviseSetReadMostly, PLACE(0)));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemAdvise(managed, SIZE_MAX, cudaMemAdviseSetReadMostly, PLACE(0)));
    WORKS(cudaFree(managed));
    free(own);
}

static void pools(void)
{
    struct cudaMemPoolProps props;
    cudaMemPool_t pool = NULL, wrong = (cudaMemPool_t)&props;
    struct cudaMemLocation here = location_of(cudaMemLocationTypeDevice, 1);
    struct cudaMemLocation nowhere = location_of(cudaMemLocationTypeDevice, 9);
    enum cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
    unsigned long long value = 0;
    void *ptr = NULL, *other = NULL;
    memset(&props, 0, sizeof(props));
    props.allocType = cudaMemAllocationTypePinned;
    props.location = here;
    props.maxSize = 1 << 20;
    WORKS(cudaMemPoolCreate(&pool, &props));
    WORKS(cudaSetDevice(1));
    WORKS(cudaMallocFromPoolAsync(&ptr, 1 << 20, pool, NULL));
    ANSWERS(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&other, 4096, pool, NULL));
    WORKS(cudaFreeAsync(ptr, NULL));
    WORKS(cudaStreamSynchronize(NULL));
    value = 1 << 20;
    WORKS(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value));
    value = 0;
    WORKS(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value));
    HOLDS(value == 1 << 20);
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)77, &value));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolTrimTo(wrong, 0));
    WORKS(cudaMemPoolGetAccess(&flags, pool, &here));
    HOLDS(flags == cudaMemAccessFlagsProtReadWrite);
    ANSWERS(cudaErrorInvalidDevice, cudaMemPoolGetAccess(&flags, pool, &nowhere));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolGetAccess(&flags, wrong, &here));
    WORKS(cudaMemPoolDestroy(pool));
    props.location = nowhere;
    ANSWERS(cudaErrorInvalidDevice, cudaMemPoolCreate(&pool, &props));
    WORKS(cudaSetDevice(0));
}

/* The descriptor also serves the process that made it: the same bytes at another address. */
static void shared_pools(void)
{
    struct cudaMemPoolProps props;
    struct cudaMemPoolPtrExportData token, wrong;
    cudaMemPool_t pool = NULL, plain = NULL, twin = NULL;
    char *ptr = NULL, *other = NULL, *private_ptr = NULL;
    void *nothing = NULL;
    int fd = -1, none = -1, ends[2];
    memset(&props, 0, sizeof(props));
    props.allocType = cudaMemAllocationTypePinned;
    props.location = location_of(cudaMemLocationTypeDevice, 0);
    WORKS(cudaMemPoolCreate(&plain, &props));
    props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    WORKS(cudaMemPoolCreate(&pool, &props));
    WORKS(cudaMallocFromPoolAsync((void **)&ptr, 5000, pool, NULL));
    WORKS(cudaMallocFromPoolAsync((void **)&private_ptr, 5000, plain, NULL));
    WORKS(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolExportToShareableHandle(
                                       &none, plain, cudaMemHandleTypePosixFileDescriptor, 0));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemPoolExportToShareableHandle(&none, pool, cudaMemHandleTypeFabric, 0));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolExportToShareableHandle(
                                       NULL, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    WORKS(cudaMemPoolImportFromShareableHandle(&twin, (void *)(size_t)fd,
                                               cudaMemHandleTypePosixFileDescriptor, 0));
    HOLDS(pipe(ends) == 0);
    ANSWERS(cudaErrorInvalidValue,
            cudaMemPoolImportFromShareableHandle(&plain, (void *)(size_t)ends[0],
                                                 cudaMemHandleTypePosixFileDescriptor, 0));
    ANSWERS(cudaErrorInvalidValue,
            cudaMemPoolImportFromShareableHandle(&plain, (void *)(size_t)-1,
                                                 cudaMemHandleTypePosixFileDescriptor, 0));
    close(ends[0]);
    close(ends[1]);
    close(fd); /* the pool has its own */
    WORKS(cudaMemPoolExportPointer(&token, ptr));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolExportPointer(&wrong, ptr + 8));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolExportPointer(&wrong, private_ptr));
    WORKS(cudaMemset(ptr, 0x21, 5000));
    WORKS(cudaMemPoolImportPointer((void **)&other, twin, &token));
    HOLDS(other && other != ptr && other[4999] == 0x21);
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolImportPointer(&nothing, pool, &token));
    memset(&wrong, 0x5a, sizeof(wrong));
    ANSWERS(cudaErrorInvalidValue, cudaMemPoolImportPointer(&nothing, twin, &wrong));
    ANSWERS(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&nothing, 64, twin, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaDeviceSetMemPool(0, twin));
    ANSWERS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(other)); /* not that kind */
    WORKS(cudaFreeAsync(other, NULL));
    ANSWERS(cudaErrorInvalidValue, cudaFreeAsync(other, NULL));
    WORKS(cudaStreamSynchronize(NULL));
    WORKS(cudaMemPoolImportPointer((void **)&other, twin, &token));
    WORKS(cudaFree(other));
    ANSWERS(cudaErrorInvalidValue, cudaFree(other));
    WORKS(cudaFree(ptr));
    WORKS(cudaFree(private_ptr));
    WORKS(cudaMemPoolDestroy(twin));
    WORKS(cudaMemPoolDestroy(pool));
    WORKS(cudaMemPoolDestroy(plain));
}

int main(void)
{
    refused_allocations();
    refused_copies();
    refused_spans();
    odd_boxes();
    fills_are_seen();
    batches();
    hints();
    hints_by_page();
    pools();
    shared_pools();
    return finish("surface of memory");
}
