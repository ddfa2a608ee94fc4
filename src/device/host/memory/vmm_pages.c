/* Pages and addresses of memory in parts: what is reserved, and what lingers.
 *
 * Work that was queued before an unmap or a loss of access may still use the pages, and a thread
 * that unmaps must not wait for it: it may be waiting for that thread (ranks may be threads). So
 * the books say at once what was asked for, and the pages linger as they were until that work is
 * done. A new mapping in their place is open to that work as well, which has been left behind by
 * its own program. */
#include "vmm.h"
#include "vmm_parts.h"

#include "device/host/process/ends.h"

#include <stdlib.h>
#include <sys/mman.h>

static void reclaim_lingering(void);

int tt_host_vmm_lock(void)
{
    if (tt_host_forked()) return TT_HOST_NOT_INITIALIZED;
    pthread_mutex_lock(&tt_host.vmm.lock);
    if (tt_host.vmm.lingering) reclaim_lingering();
    return TT_HOST_OK;
}

void tt_host_vmm_unlock(void)
{
    pthread_mutex_unlock(&tt_host.vmm.lock);
}

void tt_host_vmm_reclaim(void)
{
    if (!tt_host_vmm_lock()) tt_host_vmm_unlock(); /* the holder of the lock does it */
}

/* ---- pages; lock held ---- */

bool tt_host_vmm_lingers(const char *base, size_t bytes)
{
    const struct tt_host_lingering *one = tt_host.vmm.lingering;
    while (one && !tt_host_vmm_overlap(one->base, one->bytes, base, bytes)) {
        one = one->next;
    }
    return one != NULL;
}

const struct tt_host_mapping *tt_host_vmm_find_mapping(const char *ptr)
{
    const struct tt_host_mapping *one = tt_host.vmm.mappings;
    while (one && (ptr < one->base || ptr >= one->base + one->bytes)) {
        one = one->next;
    }
    return one;
}

bool tt_host_vmm_is_mapped(const char *base, size_t bytes)
{
    for (const struct tt_host_mapping *one = tt_host.vmm.mappings; one; one = one->next) {
        if (tt_host_vmm_overlap(one->base, one->bytes, base, bytes)) return true;
    }
    return false;
}

int tt_host_vmm_protect(const struct tt_host_mapping *one)
{
    int protection = one->access == 3 ? PROT_READ | PROT_WRITE
                     : one->access    ? PROT_READ
                                      : PROT_NONE;
    if (tt_host_vmm_lingers(one->base, one->bytes)) protection = PROT_READ | PROT_WRITE;
    return mprotect(one->base, one->bytes, protection) ? TT_HOST_OPERATING_SYSTEM : TT_HOST_OK;
}

static void make_blank(char *base, size_t bytes)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    if (bytes && mmap(base, bytes, PROT_NONE, how, -1, 0) == MAP_FAILED)
        mprotect(base, bytes, PROT_NONE); /* out of maps: what was there stays, out of reach */
}

void tt_host_vmm_refresh(char *base, size_t bytes)
{
    char *blank = base; /* from here on there is nothing */
    for (char *at = base; at < base + bytes; at += TT_BLOCK_GRAIN) {
        if (!tt_host_vmm_lingers(at, TT_BLOCK_GRAIN) && !tt_host_vmm_find_mapping(at)) continue;
        make_blank(blank, (size_t)(at - blank));
        blank = at + TT_BLOCK_GRAIN;
    }
    make_blank(blank, (size_t)(base + bytes - blank));
    for (const struct tt_host_mapping *one = tt_host.vmm.mappings; one; one = one->next) {
        if (tt_host_vmm_overlap(one->base, one->bytes, base, bytes)) tt_host_vmm_protect(one);
    }
}

static void free_reservations(void)
{
    for (struct tt_host_reservation **link = &tt_host.vmm.reservations; *link;) {
        struct tt_host_reservation *one = *link;
        if (!one->gone || tt_host_vmm_lingers(one->base, one->bytes)) {
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
static void reclaim_lingering(void)
{
    for (struct tt_host_lingering **link = &tt_host.vmm.lingering; *link;) {
        struct tt_host_lingering *one = *link;
        if (!tt_host_ends_reached(one->ends)) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        tt_host_vmm_refresh(one->base, one->bytes);
        tt_host_ends_free(one->ends);
        free(one);
    }
    free_reservations();
}

int tt_host_vmm_note_lingering(struct tt_host_lingering **out)
{
    struct tt_host_ends *ends = NULL;
    *out = NULL;
    if (tt_host_ends_note(&ends)) return TT_HOST_OUT_OF_MEMORY;
    if (!ends) return TT_HOST_OK;
    *out = malloc(sizeof(**out));
    if (!*out) {
        tt_host_ends_free(ends);
        return TT_HOST_OUT_OF_MEMORY;
    }
    **out = (struct tt_host_lingering){.ends = ends};
    return TT_HOST_OK;
}

void tt_host_vmm_list_lingering(struct tt_host_lingering *lingering, char *base, size_t bytes)
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
    if (tt_host_forked()) return TT_HOST_NOT_INITIALIZED;
    if (bytes == 0 || bytes % TT_BLOCK_GRAIN || (align & (align - 1))) return TT_HOST_INVALID_VALUE;
    if (align < TT_BLOCK_GRAIN) align = TT_BLOCK_GRAIN;
    struct tt_host_reservation *reservation = calloc(1, sizeof(*reservation));
    char *base = reservation ? map_aligned(bytes, align, hint) : NULL;
    if (!base) {
        free(reservation);
        return TT_HOST_OUT_OF_MEMORY;
    }
    reservation->base = base;
    reservation->bytes = bytes;
    pthread_mutex_lock(&tt_host.vmm.lock);
    reservation->next = tt_host.vmm.reservations;
    tt_host.vmm.reservations = reservation;
    tt_host.vmm.nreservations++;
    tt_host_vmm_unlock();
    *ptr_out = base;
    return TT_HOST_OK;
}

bool tt_host_vmm_is_reserved(const char *base, size_t bytes)
{
    for (const struct tt_host_reservation *one = tt_host.vmm.reservations; one; one = one->next) {
        if (!one->gone && base >= one->base && bytes <= one->bytes &&
            (size_t)(base - one->base) <= one->bytes - bytes)
            return true;
    }
    return false;
}

int tuttiHostUnreserve(void *ptr, size_t bytes)
{
    int rc = tt_host_vmm_lock();
    if (rc) return rc;
    struct tt_host_reservation *found = tt_host.vmm.reservations;
    while (found && (found->gone || found->base != ptr || found->bytes != bytes)) {
        found = found->next;
    }
    if (found && tt_host_vmm_is_mapped(ptr, bytes)) found = NULL;
    if (found) {
        found->gone = true;
        free_reservations();
    }
    tt_host_vmm_unlock();
    return found ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

bool tuttiHostAnyReserved(void)
{
    return atomic_load_explicit(&tt_host.vmm.nreservations, memory_order_relaxed) != 0;
}

bool tuttiHostReserved(const void *ptr, struct tt_reserved *reserved_out)
{
    if (!tuttiHostAnyReserved() || tt_host_forked()) return false;
    pthread_mutex_lock(&tt_host.vmm.lock);
    const struct tt_host_reservation *one = tt_host.vmm.reservations;
    while (one && !tt_host_vmm_overlap(one->base, one->bytes, ptr, 1)) {
        one = one->next;
    }
    if (one) *reserved_out = (struct tt_reserved){one->base, one->bytes};
    tt_host_vmm_unlock();
    return one != NULL;
}
