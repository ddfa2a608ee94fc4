/* The oracle's worlds: buffers of every kind, streams, events and communicators. */
#include "oracle.h"

/* What compiled programs call; no header has them. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterVar(void **handle, char *host_var, char *device_address, const char *device_name,
                       int ext, size_t size, int constant, int global);

static uint32_t variables[STORE][WORDS];

void oracle_fail(const struct world *world, int line, const char *what, int rc)
{
    printf("line %d: %s: %d at operation %ld of thread %zu (%s): %s\nrepeat: oracle 0 %llu %zu\n",
           line, what, rc, world->number, world->index, world->doing, ncclGetLastError(NULL),
           (unsigned long long)world->seed, world->run->nthreads);
    _Exit(1); /* other threads are at work */
}

size_t oracle_pick(struct world *world, size_t count)
{
    world->state = world->state * 6364136223846793005ull + 1442695040888963407ull;
    return (size_t)(world->state >> 33) % count;
}

const char *oracle_kind_name(enum kind kind)
{
    static const char *const names[] = {"device", "pageable", "registered", "pinned",  "managed",
                                        "mapped", "pool",     "opened",     "variable"};
    return names[kind];
}

void oracle_variables_register(void)
{
    static char names[STORE][16];
    void **module = __cudaRegisterFatBinary(NULL);
    for (size_t i = 0; i < STORE; i++) {
        snprintf(names[i], sizeof(names[i]), "variable%zu", i);
        __cudaRegisterVar(module, (char *)variables[i], names[i], names[i], 0, BYTES, 0, 0);
    }
    __cudaRegisterFatBinaryEnd(module);
}

/* ---- buffers ---- */

static size_t mapped_bytes(struct world *world, const CUmemAllocationProp *prop)
{
    size_t grain;
    OK(world, cuMemGetAllocationGranularity(&grain, prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    return (BYTES + grain - 1) / grain * grain;
}

static CUmemAllocationProp mapped_prop(int device)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
}

static void *map_memory(struct world *world, int device)
{
    CUmemAllocationProp prop = mapped_prop(device);
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr ptr;
    size_t bytes = mapped_bytes(world, &prop);
    OK(world, cuMemCreate(&handle, bytes, &prop, 0));
    OK(world, cuMemAddressReserve(&ptr, bytes, 0, 0, 0));
    OK(world, cuMemMap(ptr, bytes, 0, handle, 0));
    OK(world, cuMemSetAccess(ptr, bytes, &access, 1));
    OK(world, cuMemRelease(handle));
    return (void *)(uintptr_t)ptr;
}

static void open_buffer(struct world *world, size_t number)
{
    struct buffer *buffer = &world->buffers[number];
    size_t store = world->index * DEVICES + number / KIND_COUNT_;
    void **at = (void **)&buffer->at;
    buffer->kind = (enum kind)(number % KIND_COUNT_);
    buffer->device = (int)(number / KIND_COUNT_);
    buffer->model = calloc(1, BYTES);
    OK(world, cudaSetDevice(buffer->device));
    switch (buffer->kind) {
    case KIND_DEVICE: OK(world, cudaMalloc(at, BYTES)); break;
    case KIND_PAGEABLE:
    case KIND_REGISTERED:
        buffer->at = calloc(1, BYTES);
        if (buffer->kind == KIND_REGISTERED) OK(world, cudaHostRegister(buffer->at, BYTES, 0));
        break;
    case KIND_PINNED: OK(world, cudaHostAlloc(at, BYTES, cudaHostAllocMapped)); break;
    case KIND_MANAGED: OK(world, cudaMallocManaged(at, BYTES, cudaMemAttachGlobal)); break;
    case KIND_MAPPED: buffer->at = map_memory(world, buffer->device); break;
    case KIND_OPENED: oracle_shared_open(world, buffer); break;
    case KIND_VARIABLE: OK(world, cudaGetSymbolAddress(at, variables[store])); break;
    default: OK(world, cudaMallocAsync(at, BYTES, world->streams[buffer->device])); break;
    }
    OK(world, cudaEventCreateWithFlags(&buffer->last, cudaEventDisableTiming));
    if (buffer->kind == KIND_PAGEABLE) return;
    OK(world, cudaStreamSynchronize(world->streams[buffer->device]));
    OK(world, cudaMemset(buffer->at, 0, BYTES));
    OK(world, cudaDeviceSynchronize());
}

static void close_buffer(struct world *world, struct buffer *buffer)
{
    CUmemAllocationProp prop = mapped_prop(buffer->device);
    CUdeviceptr mapped = (CUdeviceptr)(uintptr_t)buffer->at;
    OK(world, cudaSetDevice(buffer->device));
    switch (buffer->kind) {
    case KIND_REGISTERED: OK(world, cudaHostUnregister(buffer->at)); /* fallthrough */
    case KIND_PAGEABLE: free(buffer->at); break;
    case KIND_PINNED: OK(world, cudaFreeHost(buffer->at)); break;
    case KIND_OPENED: oracle_shared_close(world, buffer); break;
    case KIND_VARIABLE: break;
    case KIND_POOL: OK(world, cudaFreeAsync(buffer->at, world->streams[buffer->device])); break;
    case KIND_MAPPED:
        OK(world, cuMemUnmap(mapped, mapped_bytes(world, &prop)));
        OK(world, cuMemAddressFree(mapped, mapped_bytes(world, &prop)));
        break;
    default: OK(world, cudaFree(buffer->at)); break;
    }
    OK(world, cudaEventDestroy(buffer->last));
    free(buffer->model);
}

/* ---- worlds ---- */

void oracle_open(struct world *world)
{
    for (int i = 0; i < STREAMS; i++) {
        unsigned flags = i < NONBLOCKING ? cudaStreamNonBlocking : cudaStreamDefault;
        OK(world, cudaSetDevice(i % DEVICES));
        OK(world, cudaStreamCreateWithFlags(&world->streams[i], flags));
    }
    for (int d = 0; d < DEVICES; d++) {
        OK(world, cudaSetDevice(d));
        OK(world, cudaEventCreateWithFlags(&world->done[d], cudaEventDisableTiming));
    }
    for (size_t i = 0; i < BUFFERS; i++) {
        open_buffer(world, i);
    }
    OK(world, ncclCommInitAll(world->comms, DEVICES, NULL));
    oracle_kept_open(world);
}

void oracle_close(struct world *world)
{
    world->doing = "end";
    oracle_kept_close(world);
    for (size_t i = 0; i < BUFFERS; i++) {
        close_buffer(world, &world->buffers[i]);
    }
    for (int d = 0; d < DEVICES; d++) {
        OK(world, ncclCommDestroy(world->comms[d]));
        OK(world, cudaEventDestroy(world->done[d]));
    }
    for (int i = 0; i < STREAMS; i++) {
        OK(world, cudaStreamSynchronize(world->streams[i]));
        OK(world, cudaStreamDestroy(world->streams[i]));
    }
    while (world->changes) {
        struct change *change = world->changes;
        world->changes = change->next;
        free(change);
    }
}
