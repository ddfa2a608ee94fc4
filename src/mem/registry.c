/* Registrations of one communicator, keyed by address range, and its windows. All lists are short;
 * a lock guards them because lookups may come from any thread. */
#include "base/error.h"
#include "base/mem.h"
#include "base/member.h"
#include "device/device.h"
#include "mem/process.h"

#include <stdlib.h>

struct registration {
    struct registration *next;
    char *base; /* page-rounded */
    size_t bytes;
    uint32_t uses;
};

struct tt_registry {
    const struct tt_member *member; /* borrowed */
    struct tt_registry *next;       /* of all registries of the process */
    pthread_mutex_t lock;
    struct registration *buffers;
    struct tt_window *windows;
};

ncclResult_t tt_registry_create(const struct tt_member *member, struct tt_registry **registry_out)
{
    struct tt_registry *registry = tt_calloc(1, sizeof(*registry));
    if (!registry) return tt_fail(ncclSystemError, "registry: out of memory");
    registry->member = member;
    pthread_mutex_init(&registry->lock, NULL);
    pthread_mutex_lock(&tt_mem.registries.lock);
    registry->next = tt_mem.registries.first;
    tt_mem.registries.first = registry;
    pthread_mutex_unlock(&tt_mem.registries.lock);
    *registry_out = registry;
    return ncclSuccess;
}

/* Under TUTTI_STRICT a free of the memory before its owner, a registration or a window, is told. */
static void hold(const struct tt_registry *registry, const void *owner, const void *base,
                 const char *why)
{
    const struct tt_hold held = {
        .owner = owner, .base = base, .device = registry->member->device, .why = why};
    tuttiHostHold(&held);
}

void tt_window_free(struct tt_window *window)
{
    if (!window) return;
    tuttiHostLet(window);
    free(window->parts);
    free(window->sizes);
    free(window);
}

void tt_registry_destroy(struct tt_registry *registry)
{
    if (!registry) return;
    pthread_mutex_lock(&tt_mem.registries.lock);
    struct tt_registry **link = &tt_mem.registries.first;
    while (*link && *link != registry)
        link = &(*link)->next;
    if (*link) *link = registry->next;
    pthread_mutex_unlock(&tt_mem.registries.lock);
    while (registry->buffers) {
        struct registration *buffer = registry->buffers;
        registry->buffers = buffer->next;
        tuttiHostLet(buffer);
        free(buffer);
    }
    while (registry->windows) {
        struct tt_window *window = registry->windows;
        registry->windows = window->next;
        tt_window_free(window);
    }
    pthread_mutex_destroy(&registry->lock);
    free(registry);
}

#define PAGE_BYTES ((uintptr_t)4096)

ncclResult_t tt_registry_add(struct tt_registry *registry, void *buff, size_t bytes,
                             void **handle_out)
{
    uintptr_t lo = (uintptr_t)buff & ~(PAGE_BYTES - 1);
    uintptr_t hi = ((uintptr_t)buff + bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
    struct registration *found;
    pthread_mutex_lock(&registry->lock);
    for (found = registry->buffers; found; found = found->next) {
        uintptr_t base = (uintptr_t)found->base;
        if (lo >= base && hi <= base + found->bytes) break;
    }
    if (!found) {
        found = calloc(1, sizeof(*found));
        if (found) {
            found->base = (char *)buff - ((uintptr_t)buff - lo);
            found->bytes = hi - lo;
            found->next = registry->buffers;
            registry->buffers = found;
            hold(registry, found, buff,
                 "it is registered (ncclCommRegister): call ncclCommDeregister before");
        }
    }
    if (found) found->uses++;
    pthread_mutex_unlock(&registry->lock);
    if (!found) return tt_fail(ncclSystemError, "register: out of memory");
    *handle_out = found;
    return ncclSuccess;
}

ncclResult_t tt_registry_remove(struct tt_registry *registry, void *handle)
{
    pthread_mutex_lock(&registry->lock);
    struct registration **link = &registry->buffers;
    while (*link && (void *)*link != handle)
        link = &(*link)->next;
    struct registration *found = *link;
    bool last = found && --found->uses == 0;
    if (last) *link = found->next;
    pthread_mutex_unlock(&registry->lock);
    if (last) tuttiHostLet(found);
    if (last) free(found);
    if (found) return ncclSuccess;
    return tt_fail(ncclInvalidUsage, "ncclCommDeregister: handle %p is unknown to rank %d", handle,
                   registry->member->rank);
}

bool tt_registry_covers(struct tt_registry *registry, const void *at, size_t bytes)
{
    uintptr_t lo = (uintptr_t)at, hi = lo + bytes;
    bool covers = bytes == 0;
    pthread_mutex_lock(&registry->lock);
    for (const struct registration *b = registry->buffers; b && !covers; b = b->next)
        covers = lo >= (uintptr_t)b->base && hi <= (uintptr_t)b->base + b->bytes;
    for (const struct tt_window *w = registry->windows; w && !covers; w = w->next)
        covers = lo >= (uintptr_t)w->buff && hi <= (uintptr_t)w->buff + w->bytes;
    pthread_mutex_unlock(&registry->lock);
    return covers;
}

size_t tt_registry_symmetric_place(struct tt_registry *registry, const void *at, size_t bytes)
{
    uintptr_t lo = (uintptr_t)at, hi = lo + bytes;
    size_t place = 0;
    pthread_mutex_lock(&registry->lock);
    for (const struct tt_window *w = registry->windows; w && !place; w = w->next) {
        if ((w->flags & NCCL_WIN_COLL_SYMMETRIC) && lo >= (uintptr_t)w->buff &&
            hi <= (uintptr_t)w->buff + w->bytes)
            place = lo - (uintptr_t)w->buff + 1;
    }
    pthread_mutex_unlock(&registry->lock);
    return place;
}

bool tt_registry_is_symmetric(struct tt_registry *registry, const void *at, size_t bytes)
{
    return tt_registry_symmetric_place(registry, at, bytes) != 0;
}

void tt_registry_window_add(struct tt_registry *registry, struct tt_window *window)
{
    pthread_mutex_lock(&registry->lock);
    window->owner = registry;
    window->next = registry->windows;
    registry->windows = window;
    pthread_mutex_unlock(&registry->lock);
    hold(registry, window, window->buff,
         "a window lies in it (ncclCommWindowRegister): call ncclCommWindowDeregister before");
}

struct tt_window *tt_registry_window(struct tt_registry *registry, ncclWindow_t handle)
{
    pthread_mutex_lock(&registry->lock);
    struct tt_window *window = registry->windows;
    while (window && (void *)window != (void *)handle)
        window = window->next;
    pthread_mutex_unlock(&registry->lock);
    return window;
}

struct tt_window *tt_window_find(ncclWindow_t handle)
{
    struct tt_window *window = NULL;
    pthread_mutex_lock(&tt_mem.registries.lock);
    for (struct tt_registry *own = tt_mem.registries.first; own && !window; own = own->next) {
        window = tt_registry_window(own, handle);
    }
    pthread_mutex_unlock(&tt_mem.registries.lock);
    return window;
}

void tt_registry_window_remove(struct tt_registry *registry, struct tt_window *window)
{
    pthread_mutex_lock(&registry->lock);
    struct tt_window **link = &registry->windows;
    while (*link && *link != window)
        link = &(*link)->next;
    if (*link) *link = window->next;
    pthread_mutex_unlock(&registry->lock);
    tt_window_free(window);
}
