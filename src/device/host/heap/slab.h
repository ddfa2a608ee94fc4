/* Objects whose handles can be validated without a lock or a hash table: all objects of a kind lie
 * in one reserved region that is never unmapped, so a stale handle can be read, and its magic word
 * shows that it is stale. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_host_slab {
    char *_Atomic base;  /* set once */
    size_t object_bytes; /* a power of two; set before base */
    _Atomic size_t made; /* objects that were ever handed out */
    _Atomic size_t end;  /* the same in bytes; 0 before base is set */
    pthread_mutex_t lock;
    uint32_t *free_list; /* owned */
    size_t nfree;
};

/* A zeroed object, or NULL. When it is complete, the caller calls tt_host_slab_enliven(). The first
 * call determines the size of the slab's objects and their largest number. */
void *tt_host_slab_take(struct tt_host_slab *slab, size_t object_bytes, size_t limit);
/* The same, but the bytes are those of its last use; zeros in a new object. */
void *tt_host_slab_take_used(struct tt_host_slab *slab, size_t object_bytes, size_t limit);
void tt_host_slab_give(struct tt_host_slab *slab, void *object);

static inline void *tt_host_slab_object(struct tt_host_slab *slab, size_t number)
{
    char *base = atomic_load_explicit(&slab->base, memory_order_acquire);
    return base + number * slab->object_bytes;
}

static inline size_t tt_host_slab_number(struct tt_host_slab *slab, const void *object)
{
    char *base = atomic_load_explicit(&slab->base, memory_order_relaxed);
    return (size_t)((const char *)object - base) >> __builtin_ctzll(slab->object_bytes);
}

/* Set the magic word (the object's first 4 bytes): from now on the handle is valid. */
static inline void tt_host_slab_enliven(void *object, uint32_t magic)
{
    __atomic_store_n((uint32_t *)object, magic, __ATOMIC_RELEASE);
}

/* True when handle is an object of this slab that carries the magic word.                     hot
 */
static inline bool tt_host_slab_holds(struct tt_host_slab *slab, const void *handle, uint32_t magic)
{
    size_t end = atomic_load_explicit(&slab->end, memory_order_acquire);
    const char *base = atomic_load_explicit(&slab->base, memory_order_relaxed);
    size_t offset = (size_t)((uintptr_t)handle - (uintptr_t)base);
    if (offset >= end || (offset & (slab->object_bytes - 1))) return false;
    return __atomic_load_n((const uint32_t *)handle, __ATOMIC_ACQUIRE) == magic;
}
