/* Memory of pools: allocation and frees in stream order. A free marks its block first, so that a
 * second one is refused. When memory is exhausted, a marked block is handed out anew behind the
 * work that was queued before its free, and that free does nothing when its stream gets there. */
#include "pool.h"

#include "device/host/check/check.h"
#include "device/host/graph/capture.h"
#include "device/host/graph/graph.h"
#include "device/host/host_face.h"
#include "device/host/host_graph.h"
#include "device/host/host_pool.h"
#include "device/host/memory/held.h"
#include "device/host/memory/ipc.h"
#include "device/host/memory/memory.h"

#include <stdlib.h>

/* ---- allocation ---- */

struct request {
    size_t bytes;
    int device; /* whose pool it is, unless one is named */
};

static bool has_room(const struct CUmemPoolHandle_st *pool, size_t bytes)
{
    return !pool->max_bytes ||
           (bytes <= pool->max_bytes &&
            pool->values[ATTR_USED] + pool->coming_bytes <= pool->max_bytes - bytes);
}

/* Whether a block whose free is queued may be had by `stream`, and is better than the best so far:
 * one of the same stream, or else smaller. Lock held. */
static bool suits(const struct tt_host_pool_block *block, const struct tt_host_pool_block *best,
                  const struct CUstream_st *stream)
{
    bool same = block->users.stream == stream;
    if (!block->leaving || (!same && !block->pool->values[ATTR_DEPENDENCIES])) return false;
    if (!best || same != (best->users.stream == stream)) return !best || same;
    return block->bytes < best->bytes;
}

/* A block of the pool that is on its way out and large enough, or NULL. Lock held. */
static struct tt_host_pool_block *find_leaving(const struct CUmemPoolHandle_st *pool, size_t bytes,
                                               const struct CUstream_st *stream)
{
    struct tt_host_pool_block *best = NULL;
    for (size_t i = 0; i < TT_HOST_POOL_BUCKETS; i++) {
        for (struct tt_host_pool_block *one = tt_host.pools.buckets[i]; one; one = one->next) {
            if (one->pool == pool && one->bytes >= bytes && suits(one, best, stream)) best = one;
        }
    }
    return best;
}

/* Hand out anew what is on its way out, for work behind the stream's present end. */
static int revive(struct CUmemPoolHandle_st *pool, size_t bytes, struct CUstream_st *stream,
                  void **ptr_out)
{
    struct tt_host_op op = {.kind = TT_HOST_OP_WAIT};
    void *ptr = NULL;
    pthread_mutex_lock(&tt_host.pools.lock);
    if (!pool) pool = tt_host_pool_current(stream->device);
    struct tt_host_pool_block *block = pool ? find_leaving(pool, bytes, stream) : NULL;
    if (block) {
        block->leaving = false;
        block->revived++;
        ptr = block->ptr;
        op.position = block->users;
    }
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!ptr) return TT_HOST_OUT_OF_MEMORY;
    bool behind = op.position.stream == stream || tt_host_position_reached(&op.position);
    int rc = behind ? TT_HOST_OK : tt_host_stream_append(stream, &op);
    if (rc) {
        tuttiHostFreeAsync(ptr, stream);
        return rc;
    }
    *ptr_out = ptr;
    return TT_HOST_OK;
}

/* Memory that is on its way back may have to be waited for, and others need their pools meanwhile:
 * the lock is not held then. */
static int allocate(struct CUmemPoolHandle_st *pool, const struct request *want, bool waits,
                    void **ptr_out)
{
    struct tt_host_pool_block *block = calloc(1, sizeof(*block));
    if (!block) return TT_HOST_OUT_OF_MEMORY;
    pthread_mutex_lock(&tt_host.pools.lock);
    if (!pool) pool = tt_host_pool_current(want->device);
    int rc =
        pool && tt_host_pool_holds(pool) && pool->imported < 0 ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
    if (!rc && !has_room(pool, want->bytes)) rc = TT_HOST_OUT_OF_MEMORY;
    if (!rc) tt_host_pool_expect(pool, want->bytes);
    const int device = rc ? 0 : pool->device;
    const uint64_t resets = tt_host.pools.resets;
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (rc) {
        free(block);
        return rc;
    }
    rc = waits ? tuttiHostMalloc(device, want->bytes, &block->ptr)
               : tt_host_memory_try(device, want->bytes, &block->ptr);
    pthread_mutex_lock(&tt_host.pools.lock);
    if (resets != tt_host.pools.resets) { /* the device's memory has gone, perhaps with the pool */
        rc = TT_HOST_OUT_OF_MEMORY;
    } else {
        tt_host_pool_expected(pool, want->bytes, !rc);
    }
    if (!rc) {
        block->bytes = want->bytes;
        block->pool = pool;
        tt_host_pool_list(block);
        *ptr_out = block->ptr;
        block = NULL;
    }
    pthread_mutex_unlock(&tt_host.pools.lock);
    free(block);
    return rc;
}

/* Give the memory of a listed block back, or only forget it when another call frees it. False when
 * it is none. */
static bool release(void *ptr, int (*give)(void *ptr))
{
    if (!atomic_load_explicit(&tt_host.pools.nblocks, memory_order_acquire)) return false;
    pthread_mutex_lock(&tt_host.pools.lock);
    struct tt_host_pool_block **link = tt_host_pool_find(ptr);
    struct tt_host_pool_block *block = *link;
    if (block && block->revived) {
        block->revived--;
        pthread_mutex_unlock(&tt_host.pools.lock);
        return true;
    }
    if (block) tt_host_pool_unlist(link);
    bool imported = block && block->pool && block->pool->imported >= 0;
    if (block && block->pool) tt_host_pool_remove(block->pool, block->bytes);
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!block) return false;
    if (imported) {
        tt_host_ipc_unmap(ptr);
    } else {
        give(ptr);
    }
    free(block);
    return true;
}

static int check_held(const void *ptr)
{
    struct tt_pointer memory;
    if (!tt_host_held_any() || !ptr || tuttiHostPointer(ptr, &memory) || !memory.base)
        return TT_HOST_OK;
    return tt_host_held_free(memory.base, memory.bytes);
}

int tuttiHostFreeUsed(void *ptr)
{
    if (tt_host_forked()) return TT_HOST_NOT_INITIALIZED;
    if (tt_host_forbidden()) return TT_HOST_NOT_PERMITTED;
    int rc = check_held(ptr);
    if (rc) return rc;
    return release(ptr, tt_host_memory_free_used) ? TT_HOST_OK : tt_host_memory_free_used(ptr);
}

/* ---- in capture: a node whose item owns the memory, and one that does nothing ---- */

static int add_node(struct CUstream_st *stream, const struct tt_node *params)
{
    struct tt_item *item = NULL;
    int rc = params->kind == TT_NODE_ALLOC
                 ? tt_host_memory_item(params->ptr, params->bytes, params->device, &item)
                 : tt_host_memory_free_item(params->ptr, &item);
    if (rc && params->kind == TT_NODE_ALLOC) tuttiHostFree(params->ptr);
    if (rc) return rc;
    const struct tt_host_op op = {.kind = TT_HOST_OP_ITEM, .item = item};
    rc = tt_host_capture_add_node(stream, &op, params);
    if (rc) item->step(item, TT_ITEM_RELEASE);
    return rc;
}

static bool is_capturing(const struct CUstream_st *stream)
{
    return atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
}

int tuttiHostMallocAsync(struct CUmemPoolHandle_st *pool, size_t bytes, struct CUstream_st *handle,
                         void **ptr_out)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    void *ptr = NULL;
    if (!stream) return TT_HOST_BAD_HANDLE;
    if (bytes == 0) return TT_HOST_INVALID_VALUE;
    if (tt_host_forbidden()) return TT_HOST_NOT_PERMITTED;
    int rc;
    if (!is_capturing(stream)) {
        const struct request want = {bytes, stream->device};
        rc = allocate(pool, &want, false, ptr_out);
        if (rc == TT_HOST_OUT_OF_MEMORY) rc = revive(pool, bytes, stream, ptr_out);
        if (rc == TT_HOST_OUT_OF_MEMORY) rc = allocate(pool, &want, true, ptr_out);
        if (tt_host_checks() && !rc) tt_host_check_alloc_async(*ptr_out, bytes, stream);
        return rc;
    }
    rc = tuttiHostMalloc(stream->device, bytes, &ptr);
    if (rc) return rc;
    struct tt_node params = {
        .kind = TT_NODE_ALLOC, .ptr = ptr, .bytes = bytes, .device = stream->device};
    rc = add_node(stream, &params); /* the memory went with the item */
    if (!rc) *ptr_out = ptr;
    return rc;
}

/* ---- frees in stream order ---- */

struct free_item {
    struct tt_item item;
    void *ptr;
    bool of_graph;
};

static enum tt_step free_step(struct tt_item *item, enum tt_item_call call)
{
    struct free_item *freeing = (struct free_item *)item;
    if (call == TT_ITEM_STEP) {
        if (!freeing->of_graph) {
            release(freeing->ptr, tuttiHostFree);
        } else if (!tt_host_memory_freed(freeing->ptr)) {
            tuttiHostFree(freeing->ptr); /* its graph has gone meanwhile */
        }
    } else {
        free(freeing);
    }
    return TT_STEP_DONE;
}

/* Memory of another process, but no pool's. */
static bool is_opened(const void *ptr)
{
    struct tt_pointer where;
    return tuttiHostIpcMapped(ptr, &where);
}

/* List what is to be freed, or mark it; 1 when it is no live allocation or on its way already. */
static int announce(void *ptr, struct CUstream_st *stream)
{
    struct tt_pointer where;
    struct tt_host_position end;
    int rc = tt_host_stream_end(stream, &end);
    if (rc) return rc;
    tuttiHostPointer(ptr, &where);
    if (!where.base) tuttiHostIpcMapped(ptr, &where);
    bool good =
        where.base == ptr && (where.kind == TT_MEMORY_DEVICE || where.kind == TT_MEMORY_MANAGED);
    struct tt_host_pool_block *fresh = good ? calloc(1, sizeof(*fresh)) : NULL;
    if (!fresh) return good ? TT_HOST_OUT_OF_MEMORY : TT_HOST_INVALID_VALUE;
    pthread_mutex_lock(&tt_host.pools.lock);
    struct tt_host_pool_block *block = *tt_host_pool_find(ptr);
    if (block ? block->leaving : is_opened(ptr)) rc = TT_HOST_INVALID_VALUE;
    if (!rc && !block) {
        fresh->ptr = ptr;
        tt_host_pool_list(fresh);
        block = fresh;
        fresh = NULL;
    }
    if (!rc) {
        block->leaving = true;
        block->users = end;
    }
    pthread_mutex_unlock(&tt_host.pools.lock);
    free(fresh);
    return rc;
}

static void take_back(void *ptr)
{
    pthread_mutex_lock(&tt_host.pools.lock);
    struct tt_host_pool_block **link = tt_host_pool_find(ptr);
    struct tt_host_pool_block *block = *link;
    bool gone = block && !block->pool;
    if (block && block->revived) {
        block->revived--; /* handed out already */
    } else if (block) {
        block->leaving = false;
    }
    if (gone) tt_host_pool_unlist(link);
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (gone) free(block);
}

int tuttiHostFreeAsync(void *ptr, struct CUstream_st *handle)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return TT_HOST_BAD_HANDLE;
    if (!ptr) return TT_HOST_INVALID_VALUE;
    if (tt_host_forbidden()) return TT_HOST_NOT_PERMITTED;
    if (is_capturing(stream))
        return add_node(stream, &(struct tt_node){.kind = TT_NODE_FREE, .ptr = ptr});
    struct free_item *freeing = calloc(1, sizeof(*freeing));
    if (!freeing) return TT_HOST_OUT_OF_MEMORY;
    if (check_held(ptr)) {
        free(freeing);
        return TT_HOST_INVALID_VALUE;
    }
    freeing->item.step = free_step;
    freeing->ptr = ptr;
    int rc = tt_host_memory_unclaim(ptr, true);
    freeing->of_graph = rc == TT_HOST_OK;
    if (rc == TT_HOST_NOT_SUPPORTED) rc = announce(ptr, stream);
    if (!rc) {
        if (tt_host_checks()) tt_host_check_free_async(ptr, stream);
        rc = tuttiHostSubmit(handle, &freeing->item, true);
        if (rc && !freeing->of_graph) take_back(ptr);
    }
    if (rc) free(freeing);
    return rc;
}
