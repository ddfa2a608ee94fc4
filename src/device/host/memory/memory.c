/* The range: [control | pinned and managed | device 0 | device 1 | ...] in one sparse memfd, and
 * what is handed out of it. Device parts have a power of two of address space each, so a shift
 * finds the device of an address. Freed pages above 64 MiB per device go back to the system. */
#include "memory.h"

#include "deferred_free.h"
#include "held.h"

#include "base/log.h"
#include "base/mem.h"
#include "device/host/check/block.h"
#include "device/host/host.h"
#include "device/host/process/hints.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const size_t pool_bytes = (size_t)64 << 20;

enum { PAGE = 4096, HUGE_PAGE = 2 << 20, GRAIN = 512, SLEEP_NSEC = 1000000, SLEEPS_MOST = 2000 };

/* A block's flags: what the caller gave, and above it the device that was current. */
enum { FLAG_BITS = 4, FLAGS = (1 << FLAG_BITS) - 1 };
_Static_assert(TT_HOST_MAX_DEVICES << FLAG_BITS <= 1 << 16, "a block's flags hold a device");

struct layout {
    size_t control, host, device; /* bytes */
    unsigned shift;
};

static void unmap(void)
{
    struct tt_host_memory *memory = &tt_host.memory;
    if (memory->view) munmap(memory->view, tt_host_view_bytes(memory));
    memory->view = NULL;
    tt_host_arena_fini(&memory->control);
    tt_host_arena_fini(&memory->host);
    for (int d = 0; d < memory->ndevices; d++) {
        tt_host_arena_fini(&memory->devices[d]);
    }
    if (memory->range.base) munmap(memory->range.base, memory->range.bytes);
    if (memory->range.memfd >= 0) close(memory->range.memfd);
    memory->range = (struct tt_range){.memfd = -1};
}

int tt_host_memory_file(const char *name, size_t bytes)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return -1;
    if (!ftruncate(fd, (off_t)bytes) &&
        !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* Where memfd_create() is forbidden (strict containers) the memory is this process's alone: peers
 * then reach it over the network. */
static bool map_range(size_t bytes)
{
    struct tt_host_memory *memory = &tt_host.memory;
    memory->range =
        (struct tt_range){.bytes = bytes, .memfd = tt_host_memory_file("tutti-range", bytes)};
    bool alone = memory->range.memfd < 0 && (errno == ENOSYS || errno == EPERM || errno == EACCES);
    if (!alone && memory->range.memfd < 0) return false;
    /* aligned to a huge page, or the kernel gives none */
    char *free_space = mmap(NULL, bytes + HUGE_PAGE, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (free_space == MAP_FAILED) return false;
    char *base = (char *)tt_round_up((uintptr_t)free_space, HUGE_PAGE);
    if (base > free_space) munmap(free_space, (size_t)(base - free_space));
    munmap(base + bytes, HUGE_PAGE - (size_t)(base - free_space));
    int flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED | (alone ? MAP_ANONYMOUS : 0);
    if (mmap(base, bytes, PROT_READ | PROT_WRITE, flags, memory->range.memfd, 0) == MAP_FAILED) {
        munmap(base, bytes);
        return false;
    }
    memory->range.base = base;
    madvise(base, bytes, MADV_DONTDUMP);
    return true;
}

static bool make_arena(struct tt_host_arena *arena, size_t offset, size_t bytes, size_t grain,
                       size_t pool)
{
    const struct tt_host_arena_ground ground = {tt_host.memory.range.base + offset, bytes,  grain,
                                                tt_host.memory.range.memfd,         offset, pool};
    return tt_host_arena_init(arena, &ground);
}

static bool lay_out(const struct layout *layout)
{
    struct tt_host_memory *memory = &tt_host.memory;
    size_t offset = layout->control + layout->host;
    size_t devices = (size_t)memory->ndevices << layout->shift;
    if (!map_range(offset + devices)) return false;
    memory->devices_base = memory->range.base + offset;
    memory->shift = layout->shift;
    if (devices) madvise(memory->devices_base, devices, MADV_HUGEPAGE);
    bool good = make_arena(&memory->control, 0, layout->control, PAGE, 0) &&
                make_arena(&memory->host, layout->control, layout->host, PAGE, pool_bytes);
    size_t grain = tt_host_checks() ? PAGE : GRAIN; /* which closes pages, each of one allocation */
    for (int d = 0; good && d < memory->ndevices; d++) {
        good = make_arena(&memory->devices[d], offset, layout->device, grain, pool_bytes);
        offset += (size_t)1 << layout->shift;
    }
    return good;
}

/* A second mapping of the same pages: mremap() of no bytes makes one where they are shared. */
static void open_view(void)
{
    struct tt_host_memory *memory = &tt_host.memory;
    if (!tt_host_checks() || sysconf(_SC_PAGESIZE) != PAGE) return;
    size_t bytes = tt_host_view_bytes(memory);
    void *view = mremap(memory->host.base, 0, bytes, MREMAP_MAYMOVE);
    if (view == MAP_FAILED) return;
    madvise(view, bytes, MADV_DONTDUMP);
    memory->view = memory->range.view = view;
    memory->range.view_offset = memory->range.bytes - bytes;
}

static unsigned shift_for(size_t bytes)
{
    return bytes > HUGE_PAGE ? 64 - (unsigned)__builtin_clzll(bytes - 1) : 21;
}

/* As generous as the system allows: halve until it maps. */
static void reserve(void)
{
    struct tt_host_memory *memory = &tt_host.memory;
    struct layout layout = {(size_t)64 << 30, (size_t)64 << 30, HUGE_PAGE, 21};
    memory->ndevices = tt_host_device_count();
    if (memory->ndevices) layout.device = tt_host_device_info(0)->memory_bytes;
    memory->devices = tt_calloc((size_t)memory->ndevices + 1, sizeof(*memory->devices));
    while (memory->devices && layout.control >= (size_t)32 << 20) {
        layout.shift = shift_for(layout.device);
        if (lay_out(&layout)) {
            open_view();
            return;
        }
        unmap();
        layout.control /= 2;
        layout.host /= 2;
        if (layout.control < (size_t)4 << 30)
            layout.device = tt_max_size(layout.device / 2 / HUGE_PAGE * HUGE_PAGE, HUGE_PAGE);
    }
    tt_warn("host device: no address range for device memory: %m");
    memory->ndevices = 0;
}

static void reserve_once(void)
{
    reserve();
    atomic_store_explicit(&tt_host.memory.reserved, true, memory_order_release);
}

static bool ready(void)
{
    if (tt_host_forked()) return false;
    if (!atomic_load_explicit(&tt_host.memory.reserved, memory_order_acquire))
        pthread_once(&tt_host.memory.once, reserve_once);
    return tt_host.memory.range.base != NULL;
}

static int not_ready(void)
{
    return tt_host_forked() ? TT_HOST_NOT_INITIALIZED : TT_HOST_OUT_OF_MEMORY;
}

const struct tt_range *tuttiHostRange(void)
{
    return ready() ? &tt_host.memory.range : NULL;
}

struct tt_host_arena *tt_host_arena_of(const void *ptr, int *device, enum tt_memory_kind *kind)
{
    size_t offset = (size_t)((const char *)ptr - tt_host.memory.range.base);
    *device = 0;
    *kind = TT_MEMORY_FOREIGN;
    if (!ready() || offset >= tt_host.memory.range.bytes) return NULL;
    if ((const char *)ptr >= tt_host.memory.devices_base) {
        *device = (int)((size_t)((const char *)ptr - tt_host.memory.devices_base) >>
                        tt_host.memory.shift);
        *kind = TT_MEMORY_DEVICE;
        return &tt_host.memory.devices[*device];
    }
    *kind = (const char *)ptr >= tt_host.memory.host.base ? TT_MEMORY_PINNED : TT_MEMORY_CONTROL;
    return *kind == TT_MEMORY_PINNED ? &tt_host.memory.host : &tt_host.memory.control;
}

struct tt_host_arena *tt_host_arena_device(int device)
{
    return ready() && device >= 0 && device < tt_host.memory.ndevices
               ? &tt_host.memory.devices[device]
               : NULL;
}

/* Memory that was freed may still be on its way back: only then is there room but no run. The work
 * that keeps it ends by itself as a rule; if it does not, for a while, there is no memory. */
static int take(struct tt_host_arena *arena, const struct tt_host_want *want, int sleeps_most,
                void **ptr_out)
{
    const struct timespec interval = {.tv_nsec = SLEEP_NSEC};
    bool leaving = tt_host_deferred_run();
    for (int sleeps = 0; !tt_host_arena_alloc(arena, want, ptr_out); sleeps++) {
        if (!leaving || !tt_host_arena_has_room(arena, want->bytes) || sleeps == sleeps_most)
            return TT_HOST_OUT_OF_MEMORY;
        nanosleep(&interval, NULL);
        leaving = tt_host_deferred_run();
    }
    return TT_HOST_OK;
}

int tuttiHostControlAlloc(size_t bytes, void **ptr_out)
{
    struct tt_host_want want = {.bytes = bytes ? bytes : 1, .kind = TT_MEMORY_CONTROL};
    if (!ready()) return not_ready();
    return take(&tt_host.memory.control, &want, SLEEPS_MOST, ptr_out);
}

void tuttiHostControlFree(void *ptr, size_t bytes)
{
    (void)bytes;
    if (ptr && ready()) tt_host_arena_free(&tt_host.memory.control, ptr);
}

static int take_device(int device, size_t bytes, int sleeps_most, void **ptr_out)
{
    struct tt_host_want want = {.bytes = bytes, .kind = TT_MEMORY_DEVICE};
    *ptr_out = NULL;
    if (tt_host_forked()) return TT_HOST_NOT_INITIALIZED;
    if (device < 0 || device >= tt_host_device_count()) return TT_HOST_INVALID_DEVICE;
    if (bytes == 0) return TT_HOST_OK;
    if (!ready()) return TT_HOST_OUT_OF_MEMORY;
    int rc = take(&tt_host.memory.devices[device], &want, sleeps_most, ptr_out);
    const struct tt_check_block block = {*ptr_out, bytes, TT_MEMORY_DEVICE, device};
    if (tt_host_checks() && !rc) tt_host_check_alloc(&block);
    return rc;
}

int tuttiHostMalloc(int device, size_t bytes, void **ptr_out)
{
    if (tt_host_forbidden()) return TT_HOST_NOT_PERMITTED;
    return take_device(device, bytes, SLEEPS_MOST, ptr_out);
}

int tt_host_memory_try(int device, size_t bytes, void **ptr_out)
{
    return take_device(device, bytes, 0, ptr_out);
}

bool tt_host_memory_find(const void *ptr, struct tt_host_block *block_out, int *device_out)
{
    enum tt_memory_kind kind;
    const struct tt_host_arena *arena = tt_host_arena_of(ptr, device_out, &kind);
    if (!arena || !tt_host_arena_find(arena, ptr, block_out)) return false;
    return block_out->kind == TT_MEMORY_DEVICE || block_out->kind == TT_MEMORY_MANAGED;
}

void tt_host_memory_zero(void *ptr, size_t bytes)
{
    enum tt_memory_kind kind;
    int device;
    tt_host_arena_zero(tt_host_arena_of(ptr, &device, &kind), ptr, bytes);
}

/* The arena of the device or managed allocation that begins at ptr, or NULL. */
static struct tt_host_arena *arena_to_free(const void *ptr)
{
    struct tt_host_block block;
    enum tt_memory_kind kind;
    int device;
    struct tt_host_arena *arena = tt_host_arena_of(ptr, &device, &kind);
    if (!arena || !tt_host_arena_find(arena, ptr, &block) || block.base != ptr) return NULL;
    if (block.kind == TT_MEMORY_MANAGED) tt_host_hints_forget(ptr, block.bytes);
    return block.kind == TT_MEMORY_DEVICE || block.kind == TT_MEMORY_MANAGED ? arena : NULL;
}

int tt_host_memory_free(void *ptr)
{
    struct tt_host_arena *arena = arena_to_free(ptr);
    if (!arena || !tt_host_arena_free(arena, ptr)) return TT_HOST_INVALID_VALUE;
    atomic_fetch_add_explicit(&tt_host.memory.frees, 1, memory_order_relaxed);
    return TT_HOST_OK;
}

int tt_host_memory_leave(void *ptr)
{
    struct tt_host_arena *arena = arena_to_free(ptr);
    return arena && tt_host_free_deferred(arena, ptr) ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

static void free_all(struct tt_host_arena *arena, int device)
{
    struct tt_host_block block;
    char *end = arena->base + arena->limit * arena->grain;
    for (; tt_host_arena_last(arena, end, &block); end = block.base) {
        bool other = arena == &tt_host.memory.host && block.flags >> FLAG_BITS != (unsigned)device;
        if (other || block.flags & TT_HOST_KEPT) continue;
        if (block.kind == TT_MEMORY_MANAGED) tt_host_hints_forget(block.base, block.bytes);
        tt_host_free_deferred(arena, block.base);
    }
}

void tt_host_memory_reset(int device)
{
    struct tt_host_arena *arena = tt_host_arena_device(device);
    if (!arena) return;
    free_all(arena, device);
    free_all(&tt_host.memory.host, device);
}

int tuttiHostMallocHost(size_t bytes, unsigned flags, bool managed, void **ptr_out)
{
    struct tt_host_want want = {.bytes = bytes, .kind = TT_MEMORY_PINNED};
    *ptr_out = NULL;
    if (tt_host_forked()) return TT_HOST_NOT_INITIALIZED;
    if (tt_host_forbidden()) return TT_HOST_NOT_PERMITTED;
    if (bytes == 0) return managed ? TT_HOST_INVALID_VALUE : TT_HOST_OK;
    if (!ready()) return TT_HOST_OUT_OF_MEMORY;
    if (managed) want.kind = TT_MEMORY_MANAGED;
    want.flags = (unsigned)tt_host_thread.device << FLAG_BITS | (flags & FLAGS);
    int rc = take(&tt_host.memory.host, &want, SLEEPS_MOST, ptr_out);
    const struct tt_check_block block = {*ptr_out, bytes, (enum tt_memory_kind)want.kind, 0};
    if (tt_host_checks() && !rc) tt_host_check_alloc(&block);
    return rc;
}

static bool find_pinned(const void *ptr, struct tt_host_block *block_out)
{
    return ready() && tt_host_arena_find(&tt_host.memory.host, ptr, block_out) &&
           block_out->kind == TT_MEMORY_PINNED;
}

int tuttiHostFreeHost(void *ptr)
{
    struct tt_host_block block;
    if (tt_host_forked()) return TT_HOST_NOT_INITIALIZED;
    if (!ptr) return TT_HOST_OK;
    if (tt_host_forbidden()) return TT_HOST_NOT_PERMITTED;
    if (!find_pinned(ptr, &block) || block.base != ptr) return TT_HOST_INVALID_VALUE;
    (void)tt_host_held_free(block.base, block.asked);
    const struct tt_check_block checked = {ptr, block.asked, TT_MEMORY_PINNED, 0};
    if (tt_host_checks()) tt_host_check_free(&checked);
    return tt_host_free_deferred(&tt_host.memory.host, ptr) ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

void *tuttiHostView(const void *ptr)
{
    return tt_host_view(ptr);
}

bool tuttiHostHasViews(void)
{
    return tt_host.memory.view != NULL;
}

int tuttiHostHostFlags(const void *ptr, unsigned *flags)
{
    struct tt_host_block block;
    if (!find_pinned(ptr, &block)) return TT_HOST_INVALID_VALUE;
    *flags = block.flags & FLAGS & ~(unsigned)TT_HOST_KEPT;
    return TT_HOST_OK;
}

int tuttiHostPointer(const void *ptr, struct tt_pointer *pointer_out)
{
    struct tt_host_block block;
    *pointer_out = (struct tt_pointer){.kind = TT_MEMORY_FOREIGN};
    const struct tt_host_arena *arena =
        tt_host_arena_of(ptr, &pointer_out->device, &pointer_out->kind);
    if (arena && tt_host_arena_find(arena, ptr, &block)) {
        pointer_out->kind = (enum tt_memory_kind)block.kind;
        pointer_out->base = block.base;
        pointer_out->bytes = block.asked;
        if (arena == &tt_host.memory.host) pointer_out->device = (int)(block.flags >> FLAG_BITS);
    }
    return TT_HOST_OK;
}

const _Atomic uint64_t *tuttiHostFrees(void)
{
    return &tt_host.memory.frees;
}

int tuttiHostPointerId(const void *ptr, uint64_t *id_out)
{
    struct tt_host_block block;
    enum tt_memory_kind kind;
    int device;
    const struct tt_host_arena *arena = tt_host_arena_of(ptr, &device, &kind);
    if (!arena || !tt_host_arena_find(arena, ptr, &block)) return TT_HOST_INVALID_VALUE;
    uint64_t part = kind == TT_MEMORY_DEVICE ? (uint64_t)device + 2 : kind == TT_MEMORY_PINNED;
    *id_out = part << 48 | block.id;
    return TT_HOST_OK;
}

int tuttiHostMemInfo(int device, size_t *free_bytes, size_t *total_bytes)
{
    struct tt_host_arena *arena = tt_host_arena_device(device);
    if (!arena) return tt_host_forked() ? TT_HOST_NOT_INITIALIZED : TT_HOST_INVALID_DEVICE;
    size_t used = atomic_load_explicit(&arena->used_bytes, memory_order_relaxed);
    *total_bytes = arena->bytes;
    *free_bytes = used < arena->bytes ? arena->bytes - used : 0;
    return TT_HOST_OK;
}
