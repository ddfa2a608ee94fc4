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

/* Object whose bytes behind the magic word are zero, or NULL. The caller makes it alive last. */
void *host_slab_take(struct host_slab *slab);
void host_slab_give(struct host_slab *slab, void *object);

/* Set the magic word (the object's first 4 bytes): from now on the handle is good. */
static inline void host_slab_enliven(void *object, uint32_t magic)
{
    __atomic_store_n((uint32_t *)object, magic, __ATOMIC_RELEASE);
}

/* True when handle is an object of this slab that carries the magic word. */
static inline bool host_slab_holds(const struct host_slab *slab, const void *handle, uint32_t magic)
{
    const char *base = __atomic_load_n(&slab->base, __ATOMIC_ACQUIRE);
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)base;
    size_t made = __atomic_load_n(&slab->made, __ATOMIC_ACQUIRE);
    if (!base || offset >= made * slab->object_bytes || offset % slab->object_bytes) return false;
    return __atomic_load_n((const uint32_t *)handle, __ATOMIC_ACQUIRE) == magic;
}
