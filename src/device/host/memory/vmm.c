/* Mappings of blocks at reserved addresses, and the devices that may use them. One lock guards the
 * lists; none of this is near a hot path. */
#include "vmm.h"

#include "vmm_parts.h"

#include "base/mem.h"
#include "device/host/check/block.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Lock held. */
static int check_map(const char *base, size_t bytes, size_t offset,
                     const struct tt_host_vmm_block *block)
{
    if (!block || bytes == 0 || bytes % TT_BLOCK_GRAIN || offset % TT_BLOCK_GRAIN)
        return TT_HOST_INVALID_VALUE;
    if (offset > block->info.bytes || bytes > block->info.bytes - offset)
        return TT_HOST_INVALID_VALUE;
    if ((uintptr_t)base % TT_BLOCK_GRAIN || !tt_host_vmm_is_reserved(base, bytes))
        return TT_HOST_INVALID_VALUE;
    return tt_host_vmm_is_mapped(base, bytes) ? TT_HOST_INVALID_VALUE : TT_HOST_OK;
}

int tuttiHostMap(void *ptr, size_t bytes, size_t offset, uint64_t id)
{
    struct tt_host_mapping *mapping = calloc(1, sizeof(*mapping));
    int rc = mapping ? tt_host_vmm_lock() : TT_HOST_OUT_OF_MEMORY;
    if (rc) {
        free(mapping);
        return rc;
    }
    struct tt_host_vmm_block *block = tt_host_vmm_find_block(id);
    rc = check_map(ptr, bytes, offset, block);
    const int how = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
    const int protection = tt_host_vmm_lingers(ptr, bytes) ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (!rc && mmap(ptr, bytes, protection, how, block->fd, (off_t)offset) == MAP_FAILED)
        rc = TT_HOST_MAP_FAILED;
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
    tt_host_vmm_unlock();
    free(mapping);
    return rc;
}

/* Exactly the mappings that fill the range; lock held. */
static bool fills_range(const char *base, size_t bytes)
{
    size_t covered = 0;
    for (const struct tt_host_mapping *one = tt_host.vmm.mappings; one; one = one->next) {
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
    for (struct tt_host_mapping **link = &tt_host.vmm.mappings; *link;) {
        struct tt_host_mapping *one = *link;
        if (one->base < base || one->base >= base + bytes) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        tt_host.vmm.nmappings--;
        one->block->mappings--;
        tt_host_vmm_reclaim_block(one->block);
        free(one);
    }
}

int tuttiHostUnmap(void *ptr, size_t bytes)
{
    struct tt_host_lingering *lingering = NULL;
    char *base = ptr;
    if (tt_host_thread.in_host_fn) return TT_HOST_NOT_PERMITTED;
    int rc = tt_host_vmm_lock();
    if (rc) return rc;
    if (!fills_range(base, bytes)) rc = TT_HOST_INVALID_VALUE;
    if (!rc) rc = tt_host_vmm_note_lingering(&lingering);
    if (!rc) {
        tt_host_vmm_list_lingering(lingering, base, bytes);
        forget_mappings(base, bytes);
        if (!lingering) tt_host_vmm_refresh(base, bytes);
    }
    tt_host_vmm_unlock();
    if (tt_host_checks() && !rc) tt_host_check_withdraw("unmapping", ptr, bytes);
    return rc;
}

size_t tt_host_vmm_aliases(const void *ptr, size_t *bytes, const void **aliases, size_t room)
{
    const char *at = ptr;
    size_t count = 0;
    *bytes = tt_min_size(*bytes, TT_BLOCK_GRAIN - (uintptr_t)ptr % TT_BLOCK_GRAIN);
    if (tt_host_forked()) return 0;
    pthread_mutex_lock(&tt_host.vmm.lock);
    const struct tt_host_mapping *own = tt_host_vmm_find_mapping(at);
    size_t offset = own ? own->offset + (size_t)(at - own->base) : 0;
    const struct tt_host_mapping *one = own ? tt_host.vmm.mappings : NULL;
    for (; one && count < room; one = one->next) {
        bool same = one->block->file == own->block->file && offset >= one->offset &&
                    offset - one->offset < one->bytes;
        if (same && one != own) aliases[count++] = one->base + (offset - one->offset);
    }
    tt_host_vmm_unlock();
    return count;
}

static size_t index_of(int device)
{
    return device == TT_MAP_HOST ? TT_HOST_MAX_DEVICES : (size_t)device;
}

/* What any thread may do with a mapping once `device` may do `access`. */
static int widest_with(const struct tt_host_mapping *one, int device, int access)
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
    for (const struct tt_host_mapping *one = tt_host.vmm.mappings; one; one = one->next) {
        if (tt_host_vmm_overlap(one->base, one->bytes, base, bytes) &&
            (one->access & ~widest_with(one, device, access)))
            return true;
    }
    return false;
}

int tuttiHostMapAccess(void *ptr, size_t bytes, int device, int access)
{
    struct tt_host_lingering *lingering = NULL;
    char *base = ptr;
    if (access != 0 && access != 1 && access != 3) return TT_HOST_INVALID_VALUE;
    if (device != TT_MAP_HOST && !tt_host_device_info(device)) return TT_HOST_INVALID_DEVICE;
    int rc = tt_host_vmm_lock();
    if (rc) return rc;
    if (!fills_range(base, bytes)) rc = TT_HOST_INVALID_VALUE;
    if (!rc && narrows(base, bytes, device, access)) rc = tt_host_vmm_note_lingering(&lingering);
    if (!rc) tt_host_vmm_list_lingering(lingering, base, bytes);
    for (struct tt_host_mapping *one = tt_host.vmm.mappings; !rc && one; one = one->next) {
        if (!tt_host_vmm_overlap(one->base, one->bytes, base, bytes)) continue;
        int widest = widest_with(one, device, access);
        bool changes = widest != one->access;
        one->by[index_of(device)] = (unsigned char)access;
        one->access = widest;
        if (changes) rc = tt_host_vmm_protect(one);
    }
    tt_host_vmm_unlock();
    return rc;
}

int tuttiHostMapAccessGet(const void *ptr, int device, int *access_out)
{
    if (device != TT_MAP_HOST && !tt_host_device_info(device)) return TT_HOST_INVALID_DEVICE;
    int rc = tt_host_vmm_lock();
    if (rc) return rc;
    const struct tt_host_mapping *one = tt_host_vmm_find_mapping(ptr);
    if (one) *access_out = one->by[index_of(device)];
    tt_host_vmm_unlock();
    return one ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

bool tuttiHostMapped(const void *ptr, struct tt_mapped *mapped_out)
{
    if (atomic_load_explicit(&tt_host.vmm.nmappings, memory_order_relaxed) == 0 || tt_host_forked())
        return false;
    pthread_mutex_lock(&tt_host.vmm.lock);
    const struct tt_host_mapping *one = tt_host_vmm_find_mapping(ptr);
    if (one) {
        *mapped_out = (struct tt_mapped){one->base, one->bytes, one->access, one->block->id,
                                         one->block->info};
    }
    tt_host_vmm_unlock();
    return one != NULL;
}
