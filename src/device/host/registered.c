/* Host memory that the program registered, sorted by address. Nothing is done to it: every device
 * reaches it anyway. */
#include "host_face.h"
#include "state.h"

#include <stdlib.h>
#include <string.h>

enum { HOST_ALREADY_REGISTERED = 712, HOST_NOT_REGISTERED = 713 };

struct registrations {
    pthread_rwlock_t lock;
    struct tt_registered *ranges; /* owned, sorted by base */
    _Atomic size_t count;
    size_t room;
};

static struct registrations registrations = {.lock = PTHREAD_RWLOCK_INITIALIZER};

/* Index of the first range that ends behind ptr. Lock held. */
static size_t first_behind(const char *ptr)
{
    size_t low = 0, high = registrations.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct tt_registered *range = &registrations.ranges[middle];
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
    if (registrations.count == registrations.room) {
        size_t room = registrations.room ? 2 * registrations.room : 16;
        struct tt_registered *ranges =
            realloc(registrations.ranges, room * sizeof(*registrations.ranges));
        if (!ranges) return HOST_OUT_OF_MEMORY;
        registrations.ranges = ranges;
        registrations.room = room;
    }
    memmove(registrations.ranges + at + 1, registrations.ranges + at,
            (registrations.count - at) * sizeof(*range));
    registrations.ranges[at] = *range;
    registrations.count++;
    return HOST_OK;
}

int tuttiHostHostRegister(void *ptr, size_t bytes, unsigned flags)
{
    const struct tt_range *range = tuttiHostRange();
    char *base = ptr;
    if (!ptr || bytes == 0 || (uintptr_t)ptr + bytes < (uintptr_t)ptr) return HOST_INVALID_VALUE;
    if (range && base + bytes > range->base && base < range->base + range->bytes)
        return HOST_INVALID_VALUE;
    pthread_rwlock_wrlock(&registrations.lock);
    size_t at = first_behind(base);
    bool overlaps = at < registrations.count && registrations.ranges[at].base < base + bytes;
    int rc = overlaps ? HOST_ALREADY_REGISTERED
                      : insert(at, &(struct tt_registered){base, bytes, flags});
    pthread_rwlock_unlock(&registrations.lock);
    return rc;
}

int tuttiHostHostUnregister(void *ptr)
{
    if (!ptr) return HOST_INVALID_VALUE;
    pthread_rwlock_wrlock(&registrations.lock);
    size_t at = first_behind(ptr);
    bool found = at < registrations.count && registrations.ranges[at].base == ptr;
    if (found) {
        registrations.count--;
        memmove(registrations.ranges + at, registrations.ranges + at + 1,
                (registrations.count - at) * sizeof(*registrations.ranges));
    }
    pthread_rwlock_unlock(&registrations.lock);
    return found ? HOST_OK : HOST_NOT_REGISTERED;
}

bool tuttiHostRegistered(const void *ptr, struct tt_registered *range_out)
{
    if (atomic_load_explicit(&registrations.count, memory_order_relaxed) == 0) return false;
    pthread_rwlock_rdlock(&registrations.lock);
    size_t at = first_behind(ptr);
    bool found = at < registrations.count && registrations.ranges[at].base <= (const char *)ptr;
    if (found) *range_out = registrations.ranges[at];
    pthread_rwlock_unlock(&registrations.lock);
    return found;
}
