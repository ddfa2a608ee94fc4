/* Memory pools: an account over the device's arena, which itself keeps freed pages warm. A block is
 * listed from its allocation to its free; a free in stream order marks it first, so that a second
 * one is refused. When memory is exhausted, a marked block is handed out anew behind the work that
 * was queued before its free, and that free does nothing when its stream gets there. One lock
 * guards all pools. */
#include "reset.h"

#include "device/host/check/check.h"
#include "device/host/graph/capture.h"
#include "device/host/graph/graph.h"
#include "device/host/host_face.h"
#include "device/host/host_graph.h"
#include "device/host/host_pool.h"
#include "device/host/memory/ipc.h"
#include "device/host/memory/slab.h"
#include "device/host/memory/state.h"
#include "device/host/stream/stream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    POOL_MAGIC = 0x706f6f6c,
    POOL_PLACE = 2048,
    MAX_POOLS = 1 << 14,
    ATTRIBUTES = 9,
    ATTR_DEPENDENCIES = 3, /* reuse may make streams wait for others */
    ATTR_RELEASE = 4,
    ATTR_RESERVED = 5,
    ATTR_RESERVED_HIGH = 6,
    ATTR_USED = 7,
    ATTR_USED_HIGH = 8,
    HOST_OPERATING_SYSTEM = 304,
};

struct CUmemPoolHandle_st {
    uint32_t magic;
    int device;
    bool own, dying; /* own: the device's; dying: destroyed, but memory of it lives */
    bool shared;     /* others may import it */
    int imported;    /* owned; descriptor of the exporter's memory, -1: our own pool */
    size_t max_bytes, nblocks;
    uint64_t values[ATTRIBUTES];            /* by attribute number */
    unsigned char access[HOST_MAX_DEVICES]; /* of other devices; 0: none */
};

struct host_pool_block {
    struct host_pool_block *next;
    void *ptr;
    size_t bytes;
    struct CUmemPoolHandle_st *pool; /* NULL: of tuttiHostMalloc(), on its way out */
    bool leaving;                    /* a free is queued ... */
    struct host_place users;         /* ... behind this place, up to which the memory is used */
    unsigned revived;                /* queued frees that do nothing: it was handed out anew */
};

_Static_assert(sizeof(struct CUmemPoolHandle_st) <= POOL_PLACE, "a pool fits its place");

static bool is_pool(const struct CUmemPoolHandle_st *pool)
{
    return host_slab_holds(&tt_host.pools.places, pool, POOL_MAGIC) && !pool->dying;
}

/* ---- blocks; lock held ---- */

static struct host_pool_block **find_block(const void *ptr)
{
    struct host_pool_block **link =
        &tt_host.pools.buckets[((uintptr_t)ptr >> 9) % HOST_POOL_BUCKETS];
    while (*link && (*link)->ptr != ptr) {
        link = &(*link)->next;
    }
    return link;
}

static void add_block(struct host_pool_block *block)
{
    struct host_pool_block **bucket =
        &tt_host.pools.buckets[((uintptr_t)block->ptr >> 9) % HOST_POOL_BUCKETS];
    block->next = *bucket;
    *bucket = block;
    atomic_fetch_add_explicit(&tt_host.pools.nblocks, 1, memory_order_release);
}

static void unlist_block(struct host_pool_block **link)
{
    *link = (*link)->next;
    atomic_fetch_sub_explicit(&tt_host.pools.nblocks, 1, memory_order_relaxed);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What was freed counts as reserved up to so many bytes in all. */
static void give_up(struct CUmemPoolHandle_st *pool, uint64_t keep_bytes)
{
    uint64_t kept = least(pool->values[ATTR_RESERVED], keep_bytes);
    pool->values[ATTR_RESERVED] = kept > pool->values[ATTR_USED] ? kept : pool->values[ATTR_USED];
}

static void account(struct CUmemPoolHandle_st *pool, size_t bytes)
{
    pool->nblocks++;
    pool->values[ATTR_USED] += bytes;
    give_up(pool, UINT64_MAX);
    if (pool->values[ATTR_USED] > pool->values[ATTR_USED_HIGH])
        pool->values[ATTR_USED_HIGH] = pool->values[ATTR_USED];
    if (pool->values[ATTR_RESERVED] > pool->values[ATTR_RESERVED_HIGH])
        pool->values[ATTR_RESERVED_HIGH] = pool->values[ATTR_RESERVED];
}

static void give_pool(struct CUmemPoolHandle_st *pool)
{
    if (pool->imported >= 0) close(pool->imported);
    host_slab_give(&tt_host.pools.places, pool);
}

static void settle(struct CUmemPoolHandle_st *pool, size_t bytes)
{
    pool->nblocks--;
    pool->values[ATTR_USED] -= bytes;
    give_up(pool, pool->values[ATTR_RELEASE]);
    if (pool->dying && pool->nblocks == 0) give_pool(pool);
}

/* ---- pools ---- */

static void begin_pool(struct CUmemPoolHandle_st *pool, int device, size_t max_bytes)
{
    const uint32_t magic = pool->magic;
    *pool = (struct CUmemPoolHandle_st){
        .magic = magic, .device = device, .max_bytes = max_bytes, .imported = -1};
    for (int switches = 1; switches <= 3; switches++) {
        pool->values[switches] = 1;
    }
}

/* Lock held. */
static struct CUmemPoolHandle_st *make_pool(int device, size_t max_bytes)
{
    struct CUmemPoolHandle_st *pool = host_slab_take(&tt_host.pools.places, POOL_PLACE, MAX_POOLS);
    if (!pool) return NULL;
    begin_pool(pool, device, max_bytes);
    pool->magic = POOL_MAGIC;
    return pool;
}

/* Lock held. */
static struct CUmemPoolHandle_st *default_of(int device)
{
    if (!tt_host.pools.defaults[device]) {
        tt_host.pools.defaults[device] = make_pool(device, 0);
        if (tt_host.pools.defaults[device]) tt_host.pools.defaults[device]->own = true;
    }
    return tt_host.pools.defaults[device];
}

/* Lock held. */
static struct CUmemPoolHandle_st *current_of(int device)
{
    return tt_host.pools.current[device] ? tt_host.pools.current[device] : default_of(device);
}

int tuttiHostPoolCreate(int device, unsigned share, size_t max_bytes,
                        struct CUmemPoolHandle_st **pool_out)
{
    if (!host_device_card(device)) return HOST_INVALID_DEVICE;
    if (share & ~(unsigned)TT_POOL_SHARE_FD)
        return tuttiHostUnsupported("memory pools with handles other than file descriptors");
    pthread_mutex_lock(&tt_host.pools.lock);
    struct CUmemPoolHandle_st *pool = make_pool(device, max_bytes);
    if (pool) pool->shared = share != 0;
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!pool) return HOST_OUT_OF_MEMORY;
    *pool_out = pool;
    return HOST_OK;
}

int tuttiHostPoolDestroy(struct CUmemPoolHandle_st *pool)
{
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = is_pool(pool) && !pool->own;
    if (good) {
        if (tt_host.pools.current[pool->device] == pool) tt_host.pools.current[pool->device] = NULL;
        pool->dying = true;
        if (pool->nblocks == 0) give_pool(pool);
    }
    pthread_mutex_unlock(&tt_host.pools.lock);
    return good ? HOST_OK : HOST_INVALID_VALUE;
}

int tuttiHostPoolDefault(int device, struct CUmemPoolHandle_st **pool_out)
{
    if (!host_device_card(device)) return HOST_INVALID_DEVICE;
    pthread_mutex_lock(&tt_host.pools.lock);
    struct CUmemPoolHandle_st *pool = default_of(device);
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!pool) return HOST_OUT_OF_MEMORY;
    *pool_out = pool;
    return HOST_OK;
}

int tuttiHostPoolCurrent(int device, struct CUmemPoolHandle_st **pool_out)
{
    if (!host_device_card(device)) return HOST_INVALID_DEVICE;
    pthread_mutex_lock(&tt_host.pools.lock);
    struct CUmemPoolHandle_st *pool = current_of(device);
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!pool) return HOST_OUT_OF_MEMORY;
    *pool_out = pool;
    return HOST_OK;
}

int tuttiHostPoolChoose(int device, struct CUmemPoolHandle_st *pool)
{
    if (!host_device_card(device)) return HOST_INVALID_DEVICE;
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = is_pool(pool) && pool->device == device && pool->imported < 0;
    if (good) tt_host.pools.current[device] = pool;
    pthread_mutex_unlock(&tt_host.pools.lock);
    return good ? HOST_OK : HOST_INVALID_VALUE;
}

/* Freed memory is the arena's at once: only what is said of it changes. */
int tuttiHostPoolTrim(struct CUmemPoolHandle_st *pool, size_t keep_bytes)
{
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = is_pool(pool);
    if (good) give_up(pool, keep_bytes);
    pthread_mutex_unlock(&tt_host.pools.lock);
    return good ? HOST_OK : HOST_INVALID_VALUE;
}

int tuttiHostPoolGet(struct CUmemPoolHandle_st *pool, int attribute, uint64_t *value_out)
{
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = is_pool(pool) && attribute >= 1 && attribute < ATTRIBUTES;
    if (good) *value_out = pool->values[attribute];
    pthread_mutex_unlock(&tt_host.pools.lock);
    return good ? HOST_OK : HOST_INVALID_VALUE;
}

int tuttiHostPoolSet(struct CUmemPoolHandle_st *pool, int attribute, uint64_t value)
{
    bool mark = attribute == ATTR_RESERVED_HIGH || attribute == ATTR_USED_HIGH;
    bool settable = (attribute >= 1 && attribute <= ATTR_RELEASE) || (mark && value == 0);
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = is_pool(pool) && settable;
    if (good) pool->values[attribute] = mark ? pool->values[attribute - 1] : value;
    pthread_mutex_unlock(&tt_host.pools.lock);
    return good ? HOST_OK : HOST_INVALID_VALUE;
}

/* Lock held. */
static int check_access(const struct CUmemPoolHandle_st *pool, const struct tt_pool_access *one)
{
    if (!host_device_card(one->device)) return HOST_INVALID_DEVICE;
    if (one->access != 0 && one->access != 1 && one->access != 3) return HOST_INVALID_VALUE;
    return pool->device != one->device || one->access == 3 ? HOST_OK : HOST_INVALID_VALUE;
}

int tuttiHostPoolAccessSet(struct CUmemPoolHandle_st *pool, const struct tt_pool_access *list,
                           size_t count)
{
    pthread_mutex_lock(&tt_host.pools.lock);
    int rc = is_pool(pool) ? HOST_OK : HOST_INVALID_VALUE;
    for (size_t i = 0; !rc && i < count; i++) {
        rc = check_access(pool, &list[i]);
    }
    for (size_t i = 0; !rc && i < count; i++) {
        pool->access[list[i].device] = (unsigned char)list[i].access;
    }
    pthread_mutex_unlock(&tt_host.pools.lock);
    return rc;
}

int tuttiHostPoolAccessGet(struct CUmemPoolHandle_st *pool, int device, int *access_out)
{
    if (!host_device_card(device)) return HOST_INVALID_DEVICE;
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = is_pool(pool);
    if (good) *access_out = pool->device == device ? 3 : pool->access[device];
    pthread_mutex_unlock(&tt_host.pools.lock);
    return good ? HOST_OK : HOST_INVALID_VALUE;
}

struct CUmemPoolHandle_st *tuttiHostPoolOf(const void *ptr)
{
    if (host_forked()) return NULL;
    pthread_mutex_lock(&tt_host.pools.lock);
    const struct host_pool_block *block = *find_block(ptr);
    struct CUmemPoolHandle_st *pool = block ? block->pool : NULL;
    if (pool && pool->dying) pool = NULL;
    pthread_mutex_unlock(&tt_host.pools.lock);
    return pool;
}

/* ---- allocation ---- */

static bool has_room(const struct CUmemPoolHandle_st *pool, size_t bytes)
{
    return !pool->max_bytes ||
           (bytes <= pool->max_bytes && pool->values[ATTR_USED] <= pool->max_bytes - bytes);
}

/* Whether a block whose free is queued may be had by `stream`, and is better than the best so far:
 * one of the same stream, or else smaller. Lock held. */
static bool suits(const struct host_pool_block *block, const struct host_pool_block *best,
                  const struct CUstream_st *stream)
{
    bool same = block->users.stream == stream;
    if (!block->leaving || (!same && !block->pool->values[ATTR_DEPENDENCIES])) return false;
    if (!best || same != (best->users.stream == stream)) return !best || same;
    return block->bytes < best->bytes;
}

/* A block of the pool that is on its way out and large enough, or NULL. Lock held. */
static struct host_pool_block *find_leaving(const struct CUmemPoolHandle_st *pool, size_t bytes,
                                            const struct CUstream_st *stream)
{
    struct host_pool_block *best = NULL;
    for (size_t i = 0; i < HOST_POOL_BUCKETS; i++) {
        for (struct host_pool_block *one = tt_host.pools.buckets[i]; one; one = one->next) {
            if (one->pool == pool && one->bytes >= bytes && suits(one, best, stream)) best = one;
        }
    }
    return best;
}

/* Hand out anew what is on its way out, for work behind the stream's present end. */
static int revive(struct CUmemPoolHandle_st *pool, size_t bytes, struct CUstream_st *stream,
                  void **ptr_out)
{
    struct host_op op = {.kind = HOST_OP_WAIT};
    void *ptr = NULL;
    pthread_mutex_lock(&tt_host.pools.lock);
    if (!pool) pool = current_of(stream->device);
    struct host_pool_block *block = pool ? find_leaving(pool, bytes, stream) : NULL;
    if (block) {
        block->leaving = false;
        block->revived++;
        ptr = block->ptr;
        op.place = block->users;
    }
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!ptr) return HOST_OUT_OF_MEMORY;
    bool behind = op.place.stream == stream || host_place_reached(&op.place);
    int rc = behind ? HOST_OK : host_stream_append(stream, &op);
    if (rc) {
        tuttiHostFreeAsync(ptr, stream);
        return rc;
    }
    *ptr_out = ptr;
    return HOST_OK;
}

static int allocate(struct CUmemPoolHandle_st *pool, size_t bytes, int device, void **ptr_out)
{
    struct host_pool_block *block = calloc(1, sizeof(*block));
    if (!block) return HOST_OUT_OF_MEMORY;
    pthread_mutex_lock(&tt_host.pools.lock);
    if (!pool) pool = current_of(device);
    int rc = pool && is_pool(pool) && pool->imported < 0 ? HOST_OK : HOST_INVALID_VALUE;
    if (!rc && !has_room(pool, bytes)) rc = HOST_OUT_OF_MEMORY;
    if (!rc) rc = tuttiHostMalloc(pool->device, bytes, &block->ptr);
    if (!rc) {
        block->bytes = bytes;
        block->pool = pool;
        account(pool, bytes);
        add_block(block);
        *ptr_out = block->ptr;
        block = NULL;
    }
    pthread_mutex_unlock(&tt_host.pools.lock);
    free(block);
    return rc;
}

/* Give the memory of a listed block back, or only forget it when somebody else frees it. False when
 * it is none. */
static bool release(void *ptr, int (*give)(void *ptr))
{
    if (!atomic_load_explicit(&tt_host.pools.nblocks, memory_order_acquire)) return false;
    pthread_mutex_lock(&tt_host.pools.lock);
    struct host_pool_block **link = find_block(ptr);
    struct host_pool_block *block = *link;
    if (block && block->revived) {
        block->revived--;
        pthread_mutex_unlock(&tt_host.pools.lock);
        return true;
    }
    if (block) unlist_block(link);
    bool imported = block && block->pool && block->pool->imported >= 0;
    if (block && block->pool) settle(block->pool, block->bytes);
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!block) return false;
    if (imported) {
        host_ipc_unmap(ptr);
    } else {
        give(ptr);
    }
    free(block);
    return true;
}

int tuttiHostFreeUsed(void *ptr)
{
    if (host_forked()) return HOST_NOT_INITIALIZED;
    return release(ptr, host_memory_free_used) ? HOST_OK : host_memory_free_used(ptr);
}

/* ---- in capture: a node whose item owns the memory, and one that does nothing ---- */

static int add_node(struct CUstream_st *stream, const struct tt_node *told)
{
    struct tt_item *item = NULL;
    int rc = told->kind == TT_NODE_ALLOC
                 ? host_memory_item(told->ptr, told->bytes, told->device, &item)
                 : host_memory_free_item(told->ptr, &item);
    if (rc && told->kind == TT_NODE_ALLOC) tuttiHostFree(told->ptr);
    if (rc) return rc;
    const struct host_op op = {.kind = HOST_OP_ITEM, .item = item};
    rc = host_capture_add_told(stream, &op, told);
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
    struct CUstream_st *stream = host_stream_find(handle);
    void *ptr = NULL;
    if (!stream) return HOST_BAD_HANDLE;
    if (bytes == 0) return HOST_INVALID_VALUE;
    int rc;
    if (!is_capturing(stream)) {
        rc = allocate(pool, bytes, stream->device, ptr_out);
        if (rc == HOST_OUT_OF_MEMORY) rc = revive(pool, bytes, stream, ptr_out);
        if (host_checks() && !rc) host_check_alloc_async(*ptr_out, bytes, stream);
        return rc;
    }
    rc = tuttiHostMalloc(stream->device, bytes, &ptr);
    if (rc) return rc;
    struct tt_node told = {
        .kind = TT_NODE_ALLOC, .ptr = ptr, .bytes = bytes, .device = stream->device};
    rc = add_node(stream, &told); /* the memory went with the item */
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
        } else if (!host_memory_freed(freeing->ptr)) {
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
    struct host_place end;
    int rc = host_stream_end(stream, &end);
    if (rc) return rc;
    tuttiHostPointer(ptr, &where);
    if (!where.base) tuttiHostIpcMapped(ptr, &where);
    bool good =
        where.base == ptr && (where.kind == TT_MEMORY_DEVICE || where.kind == TT_MEMORY_MANAGED);
    struct host_pool_block *fresh = good ? calloc(1, sizeof(*fresh)) : NULL;
    if (!fresh) return good ? HOST_OUT_OF_MEMORY : HOST_INVALID_VALUE;
    pthread_mutex_lock(&tt_host.pools.lock);
    struct host_pool_block *block = *find_block(ptr);
    if (block ? block->leaving : is_opened(ptr)) rc = HOST_INVALID_VALUE;
    if (!rc && !block) {
        fresh->ptr = ptr;
        add_block(fresh);
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
    struct host_pool_block **link = find_block(ptr);
    struct host_pool_block *block = *link;
    bool gone = block && !block->pool;
    if (block && block->revived) {
        block->revived--; /* handed out already */
    } else if (block) {
        block->leaving = false;
    }
    if (gone) unlist_block(link);
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (gone) free(block);
}

int tuttiHostFreeAsync(void *ptr, struct CUstream_st *handle)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return HOST_BAD_HANDLE;
    if (!ptr) return HOST_INVALID_VALUE;
    if (is_capturing(stream))
        return add_node(stream, &(struct tt_node){.kind = TT_NODE_FREE, .ptr = ptr});
    struct free_item *freeing = calloc(1, sizeof(*freeing));
    if (!freeing) return HOST_OUT_OF_MEMORY;
    freeing->item.step = free_step;
    freeing->ptr = ptr;
    int rc = host_memory_unclaim(ptr, true);
    freeing->of_graph = rc == HOST_OK;
    if (rc == HOST_NOT_SUPPORTED) rc = announce(ptr, stream);
    if (!rc) {
        if (host_checks()) host_check_free_async(ptr, stream);
        rc = tuttiHostSubmit(handle, &freeing->item, true);
        if (rc && !freeing->of_graph) take_back(ptr);
    }
    if (rc) free(freeing);
    return rc;
}

/* ---- the end of a device ---- */

static bool is_of(const struct host_pool_block *block, int device)
{
    struct tt_pointer where;
    if (block->pool) return block->pool->device == device;
    return !tuttiHostPointer(block->ptr, &where) && where.device == device &&
           where.kind == TT_MEMORY_DEVICE;
}

/* Lock held. The bytes go with the device's memory. */
static void forget_block(struct host_pool_block **link)
{
    struct host_pool_block *block = *link;
    unlist_block(link);
    if (block->pool && block->pool->imported >= 0) host_ipc_unmap(block->ptr);
    free(block);
}

/* Lock held. */
static void forget_blocks(int device, struct host_pool_block **link)
{
    while (*link) {
        if (is_of(*link, device)) {
            forget_block(link);
        } else {
            link = &(*link)->next;
        }
    }
}

/* The device's own pool is as new. */
void host_pools_reset(int device)
{
    pthread_mutex_lock(&tt_host.pools.lock);
    for (size_t i = 0; i < HOST_POOL_BUCKETS; i++) {
        forget_blocks(device, &tt_host.pools.buckets[i]);
    }
    size_t made = atomic_load_explicit(&tt_host.pools.places.made, memory_order_acquire);
    for (size_t i = 0; i < made; i++) {
        struct CUmemPoolHandle_st *pool = host_slab_object(&tt_host.pools.places, i);
        if (pool->magic == POOL_MAGIC && pool->device == device && !pool->own) give_pool(pool);
    }
    struct CUmemPoolHandle_st *own = tt_host.pools.defaults[device];
    if (own) begin_pool(own, device, 0);
    if (own) own->own = true;
    tt_host.pools.current[device] = NULL;
    pthread_mutex_unlock(&tt_host.pools.lock);
}

/* ---- pools of several processes ---- */

/* What other processes know the pool by. */
static uint32_t number_of(const struct CUmemPoolHandle_st *pool)
{
    return (uint32_t)host_slab_number(&tt_host.pools.places, pool) + 1;
}

int tuttiHostPoolExport(struct CUmemPoolHandle_st *pool, int *fd_out)
{
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = is_pool(pool) && pool->shared;
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!good) return HOST_INVALID_VALUE;
    int fd = host_ipc_export(number_of(pool));
    if (fd < 0) return HOST_OPERATING_SYSTEM;
    *fd_out = fd;
    return HOST_OK;
}

int tuttiHostPoolImport(int fd, struct CUmemPoolHandle_st **pool_out)
{
    if (!host_ipc_exported(fd)) return HOST_INVALID_VALUE;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return HOST_OPERATING_SYSTEM;
    pthread_mutex_lock(&tt_host.pools.lock);
    struct CUmemPoolHandle_st *pool = make_pool(host_thread.device, 0);
    if (pool) pool->imported = own;
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!pool) {
        close(own);
        return HOST_OUT_OF_MEMORY;
    }
    *pool_out = pool;
    return HOST_OK;
}

int tuttiHostPoolTokenGet(const void *ptr, unsigned char token_out[TT_IPC_BYTES])
{
    pthread_mutex_lock(&tt_host.pools.lock);
    const struct host_pool_block *block = *find_block(ptr);
    bool good = block && block->pool && block->pool->shared && !block->leaving;
    int rc = good ? host_ipc_name(ptr, number_of(block->pool), token_out) : HOST_INVALID_VALUE;
    pthread_mutex_unlock(&tt_host.pools.lock);
    return rc;
}

int tuttiHostPoolTokenOpen(struct CUmemPoolHandle_st *pool, const unsigned char token[TT_IPC_BYTES],
                           void **ptr_out)
{
    struct host_pool_block *block = calloc(1, sizeof(*block));
    if (!block) return HOST_OUT_OF_MEMORY;
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = is_pool(pool) && pool->imported >= 0;
    int rc = good ? host_ipc_map(pool->imported, token, &block->ptr) : HOST_INVALID_VALUE;
    if (!rc) {
        *ptr_out = block->ptr;
        block->pool = pool;
        account(pool, 0); /* the bytes are the exporter's */
        add_block(block);
        block = NULL;
    }
    pthread_mutex_unlock(&tt_host.pools.lock);
    free(block);
    return rc;
}

/* Pools have ways of their own. */
int tuttiHostIpcGet(const void *ptr, unsigned char token_out[TT_IPC_BYTES])
{
    struct tt_pointer where;
    if (host_forked()) return HOST_NOT_INITIALIZED;
    tuttiHostPointer(ptr, &where);
    if (where.base && tuttiHostPoolOf(where.base)) return HOST_INVALID_VALUE;
    return host_ipc_get(ptr, token_out);
}
