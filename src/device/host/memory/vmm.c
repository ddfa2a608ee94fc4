/* Blocks, reservations and mappings. One lock guards the lists; none of this is near a hot path. A
 * block dies when its handles are released and nothing maps it.
 *
 * Work that was queued before an unmap or a loss of access may still use the pages, and whoever
 * unmaps must not wait for it: it may be waiting for him (ranks may be threads). So the books say
 * at once what was asked for, and the pages linger as they were until that work is done. A new
 * mapping in their place is open to that work as well, which has been left behind by its own
 * program. */
#include "vmm.h"

#include "ends.h"

#include "base/mem.h"
#include "device/host/check/block.h"
#include "device/host/host_vmm.h"
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOST_MAP_FAILED = 205, HOST_OPERATING_SYSTEM = 304 };
enum { TT_PLACE_DEVICE = 1 }; /* enum CUmemLocationType */

struct host_vmm_block {
    struct host_vmm_block *next;
    uint64_t id;
    int fd;     /* owned */
    ino_t file; /* of an imported one, and of the one that it comes from */
    unsigned handles, mappings;
    bool charged; /* to the device's arena */
    struct tt_block_info info;
};

struct host_reservation {
    struct host_reservation *next;
    char *base;
    size_t bytes;
    bool gone; /* the program's no more; its addresses are, while pages linger */
};

struct host_lingering {
    struct host_lingering *next;
    struct host_ends *ends; /* owned; of the work that may use the pages */
    char *base;
    size_t bytes;
};

struct host_mapping {
    struct host_mapping *next;
    struct host_vmm_block *block; /* counted by block->mappings */
    char *base;
    size_t bytes, offset;
    int access;                             /* the widest of them */
    unsigned char by[HOST_MAX_DEVICES + 1]; /* per device; the last one: the host */
};

static void settle_lingering(void);

/* 3 in a forked child, whose locks may be held by threads that it does not have. */
static int lock(void)
{
    if (host_forked()) return HOST_NOT_INITIALIZED;
    pthread_mutex_lock(&tt_host.vmm.lock);
    if (tt_host.vmm.lingering) settle_lingering();
    return HOST_OK;
}

static void unlock(void)
{
    pthread_mutex_unlock(&tt_host.vmm.lock);
}

void host_vmm_settle(void)
{
    if (!lock()) unlock(); /* who takes the lock does it */
}

/* ---- blocks; lock held ---- */

static struct host_vmm_block *find_block(uint64_t id)
{
    struct host_vmm_block *block = tt_host.vmm.blocks;
    while (block && (block->id != id || block->handles == 0)) {
        block = block->next;
    }
    return block;
}

static void settle_block(struct host_vmm_block *block)
{
    if (block->handles || block->mappings) return;
    struct host_vmm_block **link = &tt_host.vmm.blocks;
    while (*link != block) {
        link = &(*link)->next;
    }
    *link = block->next;
    if (block->charged) host_arena_credit(host_arena_device(block->info.device), block->info.bytes);
    close(block->fd);
    free(block);
}

/* ---- blocks ---- */

/* Takes the descriptor on success. */
static int add_block(int fd, const struct tt_block_info *info, bool charged, uint64_t *block_out)
{
    struct stat facts;
    struct host_vmm_block *block = calloc(1, sizeof(*block));
    int rc = block ? lock() : HOST_OUT_OF_MEMORY;
    if (rc) {
        free(block);
        return rc;
    }
    block->fd = fd;
    if (!fstat(fd, &facts)) block->file = facts.st_ino;
    block->info = *info;
    block->charged = charged;
    block->handles = 1;
    block->id = ++tt_host.vmm.last_id;
    block->next = tt_host.vmm.blocks;
    tt_host.vmm.blocks = block;
    *block_out = block->id;
    unlock();
    return HOST_OK;
}

/* The file's name tells other processes what the block is. */
static int make_file(const struct tt_block_info *info, const struct tt_device_info *device)
{
    char name[96];
    int number = info->on_host ? info->number : device->nvml_index;
    snprintf(name, sizeof(name), "tutti-block:%d:%d:%u:%d", info->place, number, info->share,
             info->rdma);
    return memfd_create(name, MFD_CLOEXEC);
}

int tuttiHostBlockCreate(const struct tt_block_info *info, uint64_t *block_out)
{
    struct tt_device_info device;
    if (host_forked()) return HOST_NOT_INITIALIZED;
    if (info->bytes == 0 || info->bytes % TT_BLOCK_GRAIN) return HOST_INVALID_VALUE;
    int rc = tuttiHostDeviceInfo(info->device, &device);
    if (rc) return rc;
    struct host_arena *arena = info->on_host ? NULL : host_arena_device(info->device);
    if (!info->on_host && (!arena || !host_arena_charge(arena, info->bytes)))
        return HOST_OUT_OF_MEMORY;
    int fd = make_file(info, &device);
    if (fd < 0) rc = HOST_OPERATING_SYSTEM;
    if (!rc && ftruncate(fd, (off_t)info->bytes)) rc = HOST_OUT_OF_MEMORY;
    if (!rc) rc = add_block(fd, info, arena != NULL, block_out);
    if (rc && fd >= 0) close(fd);
    if (rc && arena) host_arena_credit(arena, info->bytes);
    return rc;
}

int tuttiHostBlockRelease(uint64_t id)
{
    int rc = lock();
    if (rc) return rc;
    struct host_vmm_block *block = find_block(id);
    if (block) {
        block->handles--;
        settle_block(block);
    }
    unlock();
    return block ? HOST_OK : HOST_INVALID_VALUE;
}

int tuttiHostBlockRetain(uint64_t id)
{
    int rc = lock();
    if (rc) return rc;
    struct host_vmm_block *block = tt_host.vmm.blocks; /* a mapped block may have no handle left */
    while (block && block->id != id) {
        block = block->next;
    }
    if (block) block->handles++;
    unlock();
    return block ? HOST_OK : HOST_INVALID_VALUE;
}

int tuttiHostBlockInfo(uint64_t id, struct tt_block_info *info_out)
{
    int rc = lock();
    if (rc) return rc;
    const struct host_vmm_block *block = find_block(id);
    if (block) *info_out = block->info;
    unlock();
    return block ? HOST_OK : HOST_INVALID_VALUE;
}

int tuttiHostBlockExport(uint64_t id, int *fd_out)
{
    int fd = -1;
    int rc = lock();
    if (rc) return rc;
    const struct host_vmm_block *block = find_block(id);
    if (block) fd = dup(block->fd);
    unlock();
    if (!block) return HOST_INVALID_VALUE;
    if (fd < 0) return HOST_OPERATING_SYSTEM;
    *fd_out = fd;
    return HOST_OK;
}

static int device_numbered(int nvml_index)
{
    for (int d = 0; d < host_device_count(); d++) {
        if (host_device_info(d)->nvml_index == nvml_index) return d;
    }
    return tuttiHostGetDevice();
}

/* What make_file() wrote; false for other files. */
static bool read_file(int fd, struct tt_block_info *info)
{
    char path[64];
    char target[128] = "";
    int rdma = 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fd < 0 || readlink(path, target, sizeof(target) - 1) < 0) return false;
    /* NOLINTNEXTLINE(cert-err34-c): a number that does not fit is not ours */
    if (sscanf(target, "/memfd:tutti-block:%d:%d:%u:%d", &info->place, &info->number, &info->share,
               &rdma) != 4)
        return false;
    info->rdma = rdma != 0;
    return true;
}

int tuttiHostBlockImport(int fd, uint64_t *block_out)
{
    struct stat facts;
    struct tt_block_info info = {.device = tuttiHostGetDevice()};
    if (host_forked()) return HOST_NOT_INITIALIZED;
    if (!read_file(fd, &info) || fstat(fd, &facts)) return HOST_INVALID_VALUE;
    info.on_host = info.place != TT_PLACE_DEVICE;
    if (!info.on_host) info.device = info.number = device_numbered(info.number);
    info.bytes = (size_t)facts.st_size;
    if (info.bytes == 0 || info.bytes % TT_BLOCK_GRAIN) return HOST_INVALID_VALUE;
    int own = dup(fd);
    if (own < 0) return HOST_OPERATING_SYSTEM;
    int rc = add_block(own, &info, false, block_out); /* it counts where it was made */
    if (rc) close(own);
    return rc;
}

/* ---- pages; lock held ---- */

static bool overlap(const char *base, size_t bytes, const char *other, size_t other_bytes)
{
    return base < other + other_bytes && other < base + bytes;
}

static bool lingers(const char *base, size_t bytes)
{
    const struct host_lingering *one = tt_host.vmm.lingering;
    while (one && !overlap(one->base, one->bytes, base, bytes)) {
        one = one->next;
    }
    return one != NULL;
}

static const struct host_mapping *find_mapping(const char *ptr)
{
    const struct host_mapping *one = tt_host.vmm.mappings;
    while (one && (ptr < one->base || ptr >= one->base + one->bytes)) {
        one = one->next;
    }
    return one;
}

/* Give the pages what the widest access allows; everything where pages linger. */
static int protect(const struct host_mapping *one)
{
    int protection = one->access == 3 ? PROT_READ | PROT_WRITE
                     : one->access    ? PROT_READ
                                      : PROT_NONE;
    if (lingers(one->base, one->bytes)) protection = PROT_READ | PROT_WRITE;
    return mprotect(one->base, one->bytes, protection) ? HOST_OPERATING_SYSTEM : HOST_OK;
}

static void make_blank(char *base, size_t bytes)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    if (bytes && mmap(base, bytes, PROT_NONE, how, -1, 0) == MAP_FAILED)
        mprotect(base, bytes, PROT_NONE); /* out of maps: what was there stays, out of reach */
}

/* Make the pages of a range what the books say, but for those that linger. */
static void refresh(char *base, size_t bytes)
{
    char *blank = base; /* from here on there is nothing */
    for (char *at = base; at < base + bytes; at += TT_BLOCK_GRAIN) {
        if (!lingers(at, TT_BLOCK_GRAIN) && !find_mapping(at)) continue;
        make_blank(blank, (size_t)(at - blank));
        blank = at + TT_BLOCK_GRAIN;
    }
    make_blank(blank, (size_t)(base + bytes - blank));
    for (const struct host_mapping *one = tt_host.vmm.mappings; one; one = one->next) {
        if (overlap(one->base, one->bytes, base, bytes)) protect(one);
    }
}

static void bury_reservations(void)
{
    for (struct host_reservation **link = &tt_host.vmm.reservations; *link;) {
        struct host_reservation *one = *link;
        if (!one->gone || lingers(one->base, one->bytes)) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        tt_host.vmm.nreservations--;
        munmap(one->base, one->bytes);
        free(one);
    }
}

/* End what has lingered long enough. */
static void settle_lingering(void)
{
    for (struct host_lingering **link = &tt_host.vmm.lingering; *link;) {
        struct host_lingering *one = *link;
        if (!host_ends_reached(one->ends)) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        refresh(one->base, one->bytes);
        host_ends_free(one->ends);
        free(one);
    }
    bury_reservations();
}

/* *out: what lets pages linger, the caller's; NULL when there is no work that may use them. */
static int note_lingering(struct host_lingering **out)
{
    struct host_ends *ends = NULL;
    *out = NULL;
    if (host_ends_note(&ends)) return HOST_OUT_OF_MEMORY;
    if (!ends) return HOST_OK;
    *out = malloc(sizeof(**out));
    if (!*out) {
        host_ends_free(ends);
        return HOST_OUT_OF_MEMORY;
    }
    **out = (struct host_lingering){.ends = ends};
    return HOST_OK;
}

/* Takes `lingering`. */
static void list_lingering(struct host_lingering *lingering, char *base, size_t bytes)
{
    if (!lingering) return;
    lingering->base = base;
    lingering->bytes = bytes;
    lingering->next = tt_host.vmm.lingering;
    tt_host.vmm.lingering = lingering;
}

/* ---- addresses ---- */

/* Map more than asked for and give back what is not aligned. */
static char *map_aligned(size_t bytes, size_t align, void *hint)
{
    size_t whole;
    if (__builtin_add_overflow(bytes, align, &whole)) return NULL;
    char *base = mmap(hint, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return NULL;
    char *start = (char *)(((uintptr_t)base + align - 1) / align * align);
    if (start > base) munmap(base, (size_t)(start - base));
    size_t rest = whole - (size_t)(start - base) - bytes;
    if (rest) munmap(start + bytes, rest);
    return start;
}

int tuttiHostReserve(size_t bytes, size_t align, void *hint, void **ptr_out)
{
    if (align == 0) align = TT_BLOCK_GRAIN;
    if (host_forked()) return HOST_NOT_INITIALIZED;
    if (bytes == 0 || bytes % TT_BLOCK_GRAIN || (align & (align - 1))) return HOST_INVALID_VALUE;
    if (align < TT_BLOCK_GRAIN) align = TT_BLOCK_GRAIN;
    struct host_reservation *reservation = calloc(1, sizeof(*reservation));
    char *base = reservation ? map_aligned(bytes, align, hint) : NULL;
    if (!base) {
        free(reservation);
        return HOST_OUT_OF_MEMORY;
    }
    reservation->base = base;
    reservation->bytes = bytes;
    pthread_mutex_lock(&tt_host.vmm.lock);
    reservation->next = tt_host.vmm.reservations;
    tt_host.vmm.reservations = reservation;
    tt_host.vmm.nreservations++;
    unlock();
    *ptr_out = base;
    return HOST_OK;
}

/* Lock held. */
static bool overlaps_mapping(const char *base, size_t bytes)
{
    for (const struct host_mapping *one = tt_host.vmm.mappings; one; one = one->next) {
        if (overlap(one->base, one->bytes, base, bytes)) return true;
    }
    return false;
}

int tuttiHostUnreserve(void *ptr, size_t bytes)
{
    int rc = lock();
    if (rc) return rc;
    struct host_reservation *found = tt_host.vmm.reservations;
    while (found && (found->gone || found->base != ptr || found->bytes != bytes)) {
        found = found->next;
    }
    if (found && overlaps_mapping(ptr, bytes)) found = NULL;
    if (found) {
        found->gone = true;
        bury_reservations();
    }
    unlock();
    return found ? HOST_OK : HOST_INVALID_VALUE;
}

/* ---- mappings ---- */

/* Lock held. */
static bool is_reserved(const char *base, size_t bytes)
{
    for (const struct host_reservation *one = tt_host.vmm.reservations; one; one = one->next) {
        if (!one->gone && base >= one->base && bytes <= one->bytes &&
            (size_t)(base - one->base) <= one->bytes - bytes)
            return true;
    }
    return false;
}

/* Lock held. */
static int check_map(const char *base, size_t bytes, size_t offset,
                     const struct host_vmm_block *block)
{
    if (!block || bytes == 0 || bytes % TT_BLOCK_GRAIN || offset % TT_BLOCK_GRAIN)
        return HOST_INVALID_VALUE;
    if (offset > block->info.bytes || bytes > block->info.bytes - offset) return HOST_INVALID_VALUE;
    if ((uintptr_t)base % TT_BLOCK_GRAIN || !is_reserved(base, bytes)) return HOST_INVALID_VALUE;
    return overlaps_mapping(base, bytes) ? HOST_INVALID_VALUE : HOST_OK;
}

bool tuttiHostAnyReserved(void)
{
    return atomic_load_explicit(&tt_host.vmm.nreservations, memory_order_relaxed) != 0;
}

bool tuttiHostReserved(const void *ptr, struct tt_reserved *reserved_out)
{
    if (!tuttiHostAnyReserved() || host_forked()) return false;
    pthread_mutex_lock(&tt_host.vmm.lock);
    const struct host_reservation *one = tt_host.vmm.reservations;
    while (one && !overlap(one->base, one->bytes, ptr, 1)) {
        one = one->next;
    }
    if (one) *reserved_out = (struct tt_reserved){one->base, one->bytes};
    unlock();
    return one != NULL;
}

int tuttiHostMap(void *ptr, size_t bytes, size_t offset, uint64_t id)
{
    struct host_mapping *mapping = calloc(1, sizeof(*mapping));
    int rc = mapping ? lock() : HOST_OUT_OF_MEMORY;
    if (rc) {
        free(mapping);
        return rc;
    }
    struct host_vmm_block *block = find_block(id);
    rc = check_map(ptr, bytes, offset, block);
    const int how = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
    const int protection = lingers(ptr, bytes) ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (!rc && mmap(ptr, bytes, protection, how, block->fd, (off_t)offset) == MAP_FAILED)
        rc = HOST_MAP_FAILED;
    if (!rc) {
        mapping->next = tt_host.vmm.mappings;
        mapping->block = block;
        mapping->base = ptr;
        mapping->bytes = bytes;
        mapping->offset = offset;
        tt_host.vmm.mappings = mapping;
        tt_host.vmm.nmappings++;
        block->mappings++;
        mapping = NULL;
    }
    unlock();
    free(mapping);
    return rc;
}

/* Exactly the mappings that fill the range; lock held. */
static bool fills_range(const char *base, size_t bytes)
{
    size_t covered = 0;
    for (const struct host_mapping *one = tt_host.vmm.mappings; one; one = one->next) {
        bool inside = one->base >= base && one->base + one->bytes <= base + bytes;
        bool touches = one->base < base + bytes && base < one->base + one->bytes;
        if (touches && !inside) return false;
        if (inside) covered += one->bytes;
    }
    return bytes && covered == bytes;
}

/* Lock held. */
static void forget_mappings(const char *base, size_t bytes)
{
    for (struct host_mapping **link = &tt_host.vmm.mappings; *link;) {
        struct host_mapping *one = *link;
        if (one->base < base || one->base >= base + bytes) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        tt_host.vmm.nmappings--;
        one->block->mappings--;
        settle_block(one->block);
        free(one);
    }
}

int tuttiHostUnmap(void *ptr, size_t bytes)
{
    struct host_lingering *lingering = NULL;
    char *base = ptr;
    if (host_thread.in_host_fn) return HOST_NOT_PERMITTED;
    int rc = lock();
    if (rc) return rc;
    if (!fills_range(base, bytes)) rc = HOST_INVALID_VALUE;
    if (!rc) rc = note_lingering(&lingering);
    if (!rc) {
        list_lingering(lingering, base, bytes);
        forget_mappings(base, bytes);
        if (!lingering) refresh(base, bytes);
    }
    unlock();
    if (host_checks() && !rc) host_check_withdraw("unmapping", ptr, bytes);
    return rc;
}

size_t host_vmm_aliases(const void *ptr, size_t *bytes, const void **aliases, size_t room)
{
    const char *at = ptr;
    size_t count = 0;
    *bytes = tt_min_size(*bytes, TT_BLOCK_GRAIN - (uintptr_t)ptr % TT_BLOCK_GRAIN);
    if (host_forked()) return 0;
    pthread_mutex_lock(&tt_host.vmm.lock);
    const struct host_mapping *own = find_mapping(at);
    size_t offset = own ? own->offset + (size_t)(at - own->base) : 0;
    const struct host_mapping *one = own ? tt_host.vmm.mappings : NULL;
    for (; one && count < room; one = one->next) {
        bool same = one->block->file == own->block->file && offset >= one->offset &&
                    offset - one->offset < one->bytes;
        if (same && one != own) aliases[count++] = one->base + (offset - one->offset);
    }
    unlock();
    return count;
}

static size_t index_of(int device)
{
    return device == TT_MAP_HOST ? HOST_MAX_DEVICES : (size_t)device;
}

/* What anybody may do with a mapping once `device` may do `access`. */
static int widest_with(const struct host_mapping *one, int device, int access)
{
    int widest = access;
    for (size_t i = 0; i < sizeof(one->by); i++) {
        if (i != index_of(device)) widest |= one->by[i];
    }
    return widest;
}

/* Whether any mapping of the range loses access; lock held. */
static bool narrows(const char *base, size_t bytes, int device, int access)
{
    for (const struct host_mapping *one = tt_host.vmm.mappings; one; one = one->next) {
        if (overlap(one->base, one->bytes, base, bytes) &&
            (one->access & ~widest_with(one, device, access)))
            return true;
    }
    return false;
}

int tuttiHostMapAccess(void *ptr, size_t bytes, int device, int access)
{
    struct host_lingering *lingering = NULL;
    char *base = ptr;
    if (access != 0 && access != 1 && access != 3) return HOST_INVALID_VALUE;
    if (device != TT_MAP_HOST && !host_device_info(device)) return HOST_INVALID_DEVICE;
    int rc = lock();
    if (rc) return rc;
    if (!fills_range(base, bytes)) rc = HOST_INVALID_VALUE;
    if (!rc && narrows(base, bytes, device, access)) rc = note_lingering(&lingering);
    if (!rc) list_lingering(lingering, base, bytes);
    for (struct host_mapping *one = tt_host.vmm.mappings; !rc && one; one = one->next) {
        if (!overlap(one->base, one->bytes, base, bytes)) continue;
        int widest = widest_with(one, device, access);
        bool changes = widest != one->access;
        one->by[index_of(device)] = (unsigned char)access;
        one->access = widest;
        if (changes) rc = protect(one);
    }
    unlock();
    return rc;
}

int tuttiHostMapAccessGet(const void *ptr, int device, int *access_out)
{
    if (device != TT_MAP_HOST && !host_device_info(device)) return HOST_INVALID_DEVICE;
    int rc = lock();
    if (rc) return rc;
    const struct host_mapping *one = find_mapping(ptr);
    if (one) *access_out = one->by[index_of(device)];
    unlock();
    return one ? HOST_OK : HOST_INVALID_VALUE;
}

bool tuttiHostMapped(const void *ptr, struct tt_mapped *mapped_out)
{
    if (atomic_load_explicit(&tt_host.vmm.nmappings, memory_order_relaxed) == 0 || host_forked())
        return false;
    pthread_mutex_lock(&tt_host.vmm.lock);
    const struct host_mapping *one = find_mapping(ptr);
    if (one) {
        *mapped_out = (struct tt_mapped){one->base, one->bytes, one->access, one->block->id,
                                         one->block->info};
    }
    unlock();
    return one != NULL;
}
