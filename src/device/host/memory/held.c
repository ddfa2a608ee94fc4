/* What objects of NCCL still need, told under TUTTI_STRICT: memory in windows and registrations,
 * which must not be freed yet, memory that only ncclMemFree frees, devices with communicators. The
 * calls answer as CUDA's do, which knows nothing of NCCL; the process's exit status does not. */
#include "held.h"

#include "base/mem.h"
#include "base/param.h"
#include "device/host/host_face.h"
#include "device/host/process/state.h"

#include <stdlib.h>

struct tt_host_held {
    struct tt_host_held *next;
    struct tt_hold hold;
};

void tuttiHostHold(const struct tt_hold *hold)
{
    if (!tt_param_bool("TUTTI_STRICT")) return;
    struct tt_host_held *held = tt_calloc(1, sizeof(*held));
    if (!held) return; /* a report less */
    held->hold = *hold;
    pthread_rwlock_wrlock(&tt_host.registrations.lock);
    held->next = tt_host.registrations.held;
    tt_host.registrations.held = held;
    atomic_fetch_add_explicit(&tt_host.registrations.nheld, 1, memory_order_relaxed);
    pthread_rwlock_unlock(&tt_host.registrations.lock);
}

static void forget(struct tt_host_held **link)
{
    struct tt_host_held *held = *link;
    *link = held->next;
    atomic_fetch_sub_explicit(&tt_host.registrations.nheld, 1, memory_order_relaxed);
    free(held);
}

bool tt_host_held_any(void)
{
    return atomic_load_explicit(&tt_host.registrations.nheld, memory_order_relaxed);
}

void tuttiHostLet(const void *owner)
{
    if (!tt_host_held_any()) return;
    pthread_rwlock_wrlock(&tt_host.registrations.lock);
    for (struct tt_host_held **link = &tt_host.registrations.held; *link;) {
        if ((*link)->hold.owner == owner) {
            forget(link);
        } else {
            link = &(*link)->next;
        }
    }
    pthread_rwlock_unlock(&tt_host.registrations.lock);
}

int tt_host_held_free(const void *base, size_t bytes)
{
    int rc = TT_HOST_OK;
    if (!tt_host_held_any()) return rc;
    pthread_rwlock_wrlock(&tt_host.registrations.lock);
    for (struct tt_host_held **link = &tt_host.registrations.held; *link && !rc;) {
        const struct tt_hold hold = (*link)->hold;
        if (!hold.base || (size_t)((const char *)hold.base - (const char *)base) >= bytes) {
            link = &(*link)->next;
            continue;
        }
        tuttiHostWarn("TUTTI_STRICT: %p (%zu bytes) is freed, but %s", base, bytes, hold.why);
        tuttiHostFail("memory was freed that NCCL has (TUTTI_STRICT)");
        if (hold.refuses) {
            rc = TT_HOST_INVALID_VALUE;
        } else {
            forget(link);
        }
    }
    pthread_rwlock_unlock(&tt_host.registrations.lock);
    return rc;
}

void tt_host_held_reset(int device)
{
    if (!tt_host_held_any()) return;
    pthread_rwlock_wrlock(&tt_host.registrations.lock);
    for (struct tt_host_held **link = &tt_host.registrations.held; *link;) {
        const struct tt_hold *hold = &(*link)->hold;
        if (hold->device != device) {
            link = &(*link)->next;
            continue;
        }
        if (!hold->base) {
            tuttiHostWarn("TUTTI_STRICT: device %d is reset, but %s", device, hold->why);
            tuttiHostFail("a device was reset that NCCL uses (TUTTI_STRICT)");
        }
        forget(link);
    }
    pthread_rwlock_unlock(&tt_host.registrations.lock);
}
