/* The range: [control | pinned and managed | device 0 | device 1 | ...] in one sparse memfd, and
 * what is handed out of it. Freed pages above 64 MiB per device go back to the system. */
#include "arena.h"
#include "host.h"
#include "state.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t pool_bytes = (size_t)64 << 20;

struct memory {
    struct tt_range range;
    struct host_arena control, host;
    struct host_arena *devices; /* owned; by device number */
    int ndevices;
    char *devices_base;
    size_t stride;
};

static struct memory memory;
static pthread_once_t memory_once = PTHREAD_ONCE_INIT;

static bool map_range(size_t bytes)
{
    int fd = memfd_create("tutti-range", MFD_CLOEXEC);
    if (fd < 0) return false;
    char *base = MAP_FAILED;
    if (!ftruncate(fd, (off_t)bytes)) {
        base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    }
    if (base == MAP_FAILED) {
        close(fd);
        return false;
    }
    madvise(base, bytes, MADV_DONTDUMP);
    memory.range = (struct tt_range){base, bytes, fd};
    return true;
}

static void lay_out(size_t control, size_t host)
{
    char *base = memory.range.base;
    int fd = memory.range.memfd;
    host_arena_init(&memory.control, base, control, fd, 0, 0);
    host_arena_init(&memory.host, base + control, host, fd, control, pool_bytes);
    memory.devices_base = base + control + host;
    for (int d = 0; d < memory.ndevices; d++) {
        size_t offset = control + host + (size_t)d * memory.stride;
        host_arena_init(&memory.devices[d], base + offset, memory.stride, fd, offset, pool_bytes);
    }
    madvise(memory.devices_base, (size_t)memory.ndevices * memory.stride, MADV_HUGEPAGE);
}

/* As generous as the system allows: halve until it maps. */
static void reserve(void)
{
    size_t control = (size_t)256 << 30;
    size_t host = (size_t)64 << 30;
    memory.ndevices = host_device_count();
    memory.stride = memory.ndevices ? host_device_card(0)->memory_bytes : 0;
    memory.devices = tt_calloc((size_t)memory.ndevices + 1, sizeof(*memory.devices));
    while (memory.devices && control >= (size_t)64 << 20) {
        if (map_range(control + host + (size_t)memory.ndevices * memory.stride)) {
            lay_out(control, host);
            return;
        }
        control /= 2;
        host /= 2;
        if (control < (size_t)4 << 30) memory.stride = memory.stride / 2 / (2 << 20) * (2 << 20);
    }
    tt_warn("host device: no address range for device memory: %m");
    memory.ndevices = 0;
}

static bool ready(void)
{
    pthread_once(&memory_once, reserve);
    return memory.range.base != NULL;
}

const struct tt_range *tuttiHostRange(void)
{
    return ready() ? &memory.range : NULL;
}

static struct host_arena *arena_of(const void *ptr, int *device, enum tt_memory_kind *kind)
{
    const char *p = ptr;
    *device = 0;
    *kind = TT_MEMORY_FOREIGN;
    if (!ready() || p < memory.range.base || p >= memory.range.base + memory.range.bytes)
        return NULL;
    if (p >= memory.devices_base) {
        *device = (int)((size_t)(p - memory.devices_base) / memory.stride);
        *kind = TT_MEMORY_DEVICE;
        return &memory.devices[*device];
    }
    *kind = p >= memory.host.base ? TT_MEMORY_PINNED : TT_MEMORY_CONTROL;
    return p >= memory.host.base ? &memory.host : &memory.control;
}

int tuttiHostControlAlloc(size_t bytes, void **ptr_out)
{
    if (!ready()) return HOST_OUT_OF_MEMORY;
    size_t whole = tt_round_up(bytes ? bytes : 1, 4096);
    return host_arena_alloc(&memory.control, whole, TT_MEMORY_CONTROL, 0, ptr_out)
               ? HOST_OK
               : HOST_OUT_OF_MEMORY;
}

void tuttiHostControlFree(void *ptr, size_t bytes)
{
    (void)bytes;
    if (ptr) host_arena_free(&memory.control, ptr);
}

int tuttiHostMalloc(int device, size_t bytes, void **ptr_out)
{
    *ptr_out = NULL;
    if (bytes == 0) return HOST_OK;
    if (!ready()) return HOST_OUT_OF_MEMORY;
    if (device < 0 || device >= memory.ndevices) return HOST_INVALID_DEVICE;
    return host_arena_alloc(&memory.devices[device], bytes, TT_MEMORY_DEVICE, 0, ptr_out)
               ? HOST_OK
               : HOST_OUT_OF_MEMORY;
}

int tuttiHostFree(void *ptr)
{
    int device;
    enum tt_memory_kind kind;
    struct host_block block;
    if (!ptr) return HOST_OK;
    struct host_arena *arena = arena_of(ptr, &device, &kind);
    if (!arena || !host_arena_find(arena, ptr, &block) || block.base != ptr)
        return HOST_INVALID_VALUE;
    if (block.kind != TT_MEMORY_DEVICE && block.kind != TT_MEMORY_MANAGED)
        return HOST_INVALID_VALUE;
    return host_arena_free(arena, ptr) ? HOST_OK : HOST_INVALID_VALUE;
}

int tuttiHostMallocHost(size_t bytes, unsigned flags, bool managed, void **ptr_out)
{
    *ptr_out = NULL;
    if (bytes == 0) return managed ? HOST_INVALID_VALUE : HOST_OK;
    if (!ready()) return HOST_OUT_OF_MEMORY;
    unsigned kind = managed ? TT_MEMORY_MANAGED : TT_MEMORY_PINNED;
    size_t whole = tt_max_size(bytes, 4096);
    return host_arena_alloc(&memory.host, whole, kind, flags, ptr_out) ? HOST_OK
                                                                       : HOST_OUT_OF_MEMORY;
}

int tuttiHostFreeHost(void *ptr)
{
    struct host_block block;
    if (!ptr) return HOST_OK;
    if (!ready() || !host_arena_find(&memory.host, ptr, &block) || block.base != ptr ||
        block.kind != TT_MEMORY_PINNED) {
        return HOST_INVALID_VALUE;
    }
    return host_arena_free(&memory.host, ptr) ? HOST_OK : HOST_INVALID_VALUE;
}

int tuttiHostHostFlags(const void *ptr, unsigned *flags)
{
    struct host_block block;
    if (!ready() || !host_arena_find(&memory.host, ptr, &block) || block.kind != TT_MEMORY_PINNED)
        return HOST_INVALID_VALUE;
    *flags = block.flags;
    return HOST_OK;
}

int tuttiHostPointer(const void *ptr, struct tt_pointer *pointer_out)
{
    struct host_block block;
    memset(pointer_out, 0, sizeof(*pointer_out));
    struct host_arena *arena = arena_of(ptr, &pointer_out->device, &pointer_out->kind);
    if (!arena) return HOST_OK;
    if (host_arena_find(arena, ptr, &block)) {
        pointer_out->kind = (enum tt_memory_kind)block.kind;
        pointer_out->base = block.base;
        pointer_out->bytes = block.asked;
    }
    return HOST_OK;
}

int tuttiHostMemInfo(int device, size_t *free_bytes, size_t *total_bytes)
{
    if (!ready() || device < 0 || device >= memory.ndevices) return HOST_INVALID_DEVICE;
    struct host_arena *arena = &memory.devices[device];
    pthread_rwlock_rdlock(&arena->lock);
    *total_bytes = arena->bytes;
    *free_bytes = arena->bytes - arena->used_bytes;
    pthread_rwlock_unlock(&arena->lock);
    return HOST_OK;
}
