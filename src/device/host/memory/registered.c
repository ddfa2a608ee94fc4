/* Host memory that the program registered, sorted by address. Nothing is done to it: every device
 * reaches it anyway. */
#include "registered.h"

#include "device/host/check/block.h"
#include "device/host/host_face.h"
#include "device/host/process/state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TT_HOST_ALREADY_REGISTERED = 712, TT_HOST_NOT_REGISTERED = 713 };

/* Index of the first range that ends behind ptr. Lock held. */
static size_t first_behind(const char *ptr)
{
    size_t low = 0, high = tt_host.registrations.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct tt_registered *range = &tt_host.registrations.ranges[middle];
        if (range->base + range->bytes <= ptr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Lock held. */
static int insert(size_t at, const struct tt_registered *range)
{
    if (tt_host.registrations.count == tt_host.registrations.room) {
        size_t room = tt_host.registrations.room ? 2 * tt_host.registrations.room : 16;
        struct tt_registered *ranges =
            realloc(tt_host.registrations.ranges, room * sizeof(*tt_host.registrations.ranges));
        if (!ranges) return TT_HOST_OUT_OF_MEMORY;
        tt_host.registrations.ranges = ranges;
        tt_host.registrations.room = room;
    }
    memmove(tt_host.registrations.ranges + at + 1, tt_host.registrations.ranges + at,
            (tt_host.registrations.count - at) * sizeof(*range));
    tt_host.registrations.ranges[at] = *range;
    tt_host.registrations.count++;
    return TT_HOST_OK;
}

/* Has the process memory at every page of the range? With MS_ASYNC the call does nothing else. */
static bool is_mapped(char *base, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), into = (uintptr_t)base % page;
    return msync(base - into, bytes + into, MS_ASYNC) == 0;
}

static bool is_pinned(const void *ptr)
{
    struct tt_pointer where;
    return !tuttiHostPointer(ptr, &where) && where.base && where.kind == TT_MEMORY_PINNED;
}

int tuttiHostHostRegister(void *ptr, size_t bytes, unsigned flags)
{
    const struct tt_range *range = tuttiHostRange();
    char *base = ptr;
    if (!ptr || bytes == 0 || (uintptr_t)ptr + bytes < (uintptr_t)ptr) return TT_HOST_INVALID_VALUE;
    if (range && base + bytes > range->base && base < range->base + range->bytes)
        return is_pinned(ptr) ? TT_HOST_ALREADY_REGISTERED : TT_HOST_INVALID_VALUE;
    if (!is_mapped(base, bytes)) return TT_HOST_INVALID_VALUE;
    pthread_rwlock_wrlock(&tt_host.registrations.lock);
    size_t at = first_behind(base);
    bool overlaps =
        at < tt_host.registrations.count && tt_host.registrations.ranges[at].base < base + bytes;
    int rc = overlaps
                 ? TT_HOST_ALREADY_REGISTERED
                 : insert(at, &(struct tt_registered){base, bytes, flags, tt_host_thread.device});
    pthread_rwlock_unlock(&tt_host.registrations.lock);
    if (!rc && tt_host_checks()) tt_host_check_lend(ptr, bytes);
    return rc;
}

int tuttiHostHostUnregister(void *ptr)
{
    struct tt_registered range;
    if (!ptr) return TT_HOST_INVALID_VALUE;
    if (tt_host_checks() && tuttiHostRegistered(ptr, &range) && range.base == ptr)
        tt_host_check_withdraw("unregistering", ptr, range.bytes);
    pthread_rwlock_wrlock(&tt_host.registrations.lock);
    size_t at = first_behind(ptr);
    bool found = at < tt_host.registrations.count && tt_host.registrations.ranges[at].base == ptr;
    if (found) {
        tt_host.registrations.count--;
        memmove(tt_host.registrations.ranges + at, tt_host.registrations.ranges + at + 1,
                (tt_host.registrations.count - at) * sizeof(*tt_host.registrations.ranges));
    }
    pthread_rwlock_unlock(&tt_host.registrations.lock);
    return found ? TT_HOST_OK : TT_HOST_NOT_REGISTERED;
}

/* The first range that the device registered, or NULL. */
static void *first_of(int device)
{
    void *base = NULL;
    pthread_rwlock_rdlock(&tt_host.registrations.lock);
    for (size_t i = 0; i < tt_host.registrations.count && !base; i++) {
        const struct tt_registered *range = &tt_host.registrations.ranges[i];
        if (range->device == device) base = range->base;
    }
    pthread_rwlock_unlock(&tt_host.registrations.lock);
    return base;
}

void tt_host_registrations_reset(int device)
{
    for (void *base = first_of(device); base; base = first_of(device))
        tuttiHostHostUnregister(base);
}

bool tuttiHostRegistered(const void *ptr, struct tt_registered *range_out)
{
    if (atomic_load_explicit(&tt_host.registrations.count, memory_order_relaxed) == 0) return false;
    pthread_rwlock_rdlock(&tt_host.registrations.lock);
    size_t at = first_behind(ptr);
    bool found = at < tt_host.registrations.count &&
                 tt_host.registrations.ranges[at].base <= (const char *)ptr;
    if (found) *range_out = tt_host.registrations.ranges[at];
    pthread_rwlock_unlock(&tt_host.registrations.lock);
    return found;
}
