/* Objects are cut from an address range that costs nothing until touched. */
#include "slab.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static size_t power_of_two(size_t bytes)
{
    size_t power = 64;
    while (power < bytes) {
        power *= 2;
    }
    return power;
}

static bool make_region(struct tt_host_slab *slab, size_t object_bytes, size_t limit)
{
    if (atomic_load_explicit(&slab->base, memory_order_relaxed)) return true;
    slab->object_bytes = power_of_two(object_bytes);
    void *base = mmap(NULL, slab->object_bytes * limit, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return false;
    slab->free_list = malloc(limit * sizeof(slab->free_list[0]));
    if (!slab->free_list) {
        munmap(base, slab->object_bytes * limit);
        return false;
    }
    madvise(base, slab->object_bytes * limit, MADV_NOHUGEPAGE);
    atomic_store_explicit(&slab->base, base, memory_order_release);
    return true;
}

void *tt_host_slab_take_used(struct tt_host_slab *slab, size_t object_bytes, size_t limit)
{
    void *object = NULL;
    pthread_mutex_lock(&slab->lock);
    if (make_region(slab, object_bytes, limit)) {
        size_t made = atomic_load_explicit(&slab->made, memory_order_relaxed);
        if (slab->nfree) {
            object = tt_host_slab_object(slab, slab->free_list[--slab->nfree]);
        } else if (made < limit) {
            object = tt_host_slab_object(slab, made);
            atomic_store_explicit(&slab->made, made + 1, memory_order_release);
            atomic_store_explicit(&slab->end, (made + 1) * slab->object_bytes,
                                  memory_order_release);
        }
    }
    pthread_mutex_unlock(&slab->lock);
    return object;
}

void *tt_host_slab_take(struct tt_host_slab *slab, size_t object_bytes, size_t limit)
{
    void *object = tt_host_slab_take_used(slab, object_bytes, limit);
    /* the word itself may be looked at meanwhile by holders of the old handle */
    if (object) memset((char *)object + sizeof(uint32_t), 0, slab->object_bytes - sizeof(uint32_t));
    return object;
}

void tt_host_slab_give(struct tt_host_slab *slab, void *object)
{
    tt_host_slab_enliven(object, 0);
    pthread_mutex_lock(&slab->lock);
    slab->free_list[slab->nfree++] = (uint32_t)tt_host_slab_number(slab, object);
    pthread_mutex_unlock(&slab->lock);
}
