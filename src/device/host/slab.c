/* Objects are cut from an address range that costs nothing until touched. */
#include "slab.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static bool make_region(struct host_slab *slab)
{
    if (slab->base) return true;
    size_t bytes = slab->object_bytes * slab->limit;
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return false;
    slab->free_list = malloc(slab->limit * sizeof(slab->free_list[0]));
    __atomic_store_n(&slab->base, slab->free_list ? base : NULL, __ATOMIC_RELEASE);
    return slab->base != NULL;
}

void *host_slab_take(struct host_slab *slab)
{
    char *object = NULL;
    pthread_mutex_lock(&slab->lock);
    if (make_region(slab)) {
        if (slab->nfree) {
            object = slab->base + slab->free_list[--slab->nfree] * slab->object_bytes;
        } else if (slab->made < slab->limit) {
            object = slab->base + slab->made * slab->object_bytes;
            __atomic_store_n(&slab->made, slab->made + 1, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&slab->lock);
    /* the word itself may be looked at meanwhile by holders of the old handle */
    if (object) memset(object + sizeof(uint32_t), 0, slab->object_bytes - sizeof(uint32_t));
    return object;
}

void host_slab_give(struct host_slab *slab, void *object)
{
    host_slab_enliven(object, 0);
    pthread_mutex_lock(&slab->lock);
    slab->free_list[slab->nfree++] =
        (uint32_t)((size_t)((char *)object - slab->base) / slab->object_bytes);
    pthread_mutex_unlock(&slab->lock);
}
