/* Handles that can be checked without lock or hash: objects of one kind lie in one reserved region
 * that is never given back, so reading a dead one is harmless and its magic word tells. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_slab {
    pthread_mutex_t lock;
    char *base;
    size_t object_bytes, limit; /* limit: objects */
    size_t made;
    uint32_t *free_list; /* owned */
    size_t nfree;
};

/* Zeroed object, or NULL. The caller sets the magic word (first 4 bytes) last. */
void *host_slab_take(struct host_slab *slab);
void host_slab_give(struct host_slab *slab, void *object);

/* True when handle is an object of this slab that carries the magic word. */
static inline bool host_slab_holds(const struct host_slab *slab, const void *handle, uint32_t magic)
{
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)slab->base;
    if (!slab->base || offset >= slab->made * slab->object_bytes || offset % slab->object_bytes)
        return false;
    return *(const volatile uint32_t *)handle == magic;
}
