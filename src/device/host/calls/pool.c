/* Memory pools: their handles, accounts and attributes. The arena itself keeps freed pages warm, so
 * a pool has no memory: only what is said of it changes. One lock guards all pools. */
#include "pool.h"

#include "reset.h"

#include "device/host/heap/slab.h"
#include "device/host/host_face.h"
#include "device/host/host_pool.h"
#include "device/host/memory/ipc.h"

#include <stdlib.h>
#include <unistd.h>

enum { POOL_MAGIC = 0x706f6f6c, POOL_BYTES = 2048, MAX_POOLS = 1 << 14 };

_Static_assert(sizeof(struct CUmemPoolHandle_st) <= POOL_BYTES, "a pool fits its slot of the slab");

bool tt_host_pool_holds(const struct CUmemPoolHandle_st *pool)
{
    return tt_host_slab_holds(&tt_host.pools.slab, pool, POOL_MAGIC) && !pool->dying;
}

/* ---- blocks; lock held ---- */

struct tt_host_pool_block **tt_host_pool_find(const void *ptr)
{
    struct tt_host_pool_block **link =
        &tt_host.pools.buckets[((uintptr_t)ptr >> 9) % TT_HOST_POOL_BUCKETS];
    while (*link && (*link)->ptr != ptr) {
        link = &(*link)->next;
    }
    return link;
}

void tt_host_pool_list(struct tt_host_pool_block *block)
{
    struct tt_host_pool_block **bucket =
        &tt_host.pools.buckets[((uintptr_t)block->ptr >> 9) % TT_HOST_POOL_BUCKETS];
    block->next = *bucket;
    *bucket = block;
    atomic_fetch_add_explicit(&tt_host.pools.nblocks, 1, memory_order_release);
}

void tt_host_pool_unlist(struct tt_host_pool_block **link)
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

void tt_host_pool_account(struct CUmemPoolHandle_st *pool, size_t bytes)
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
    tt_host_slab_give(&tt_host.pools.slab, pool);
}

void tt_host_pool_remove(struct CUmemPoolHandle_st *pool, size_t bytes)
{
    pool->nblocks--;
    pool->values[ATTR_USED] -= bytes;
    give_up(pool, pool->values[ATTR_RELEASE]);
    if (pool->dying && pool->nblocks == 0) give_pool(pool);
}

void tt_host_pool_expect(struct CUmemPoolHandle_st *pool, size_t bytes)
{
    pool->nblocks++;
    pool->coming_bytes += bytes;
}

void tt_host_pool_expected(struct CUmemPoolHandle_st *pool, size_t bytes, bool came)
{
    pool->coming_bytes -= bytes;
    if (came) tt_host_pool_account(pool, bytes);
    tt_host_pool_remove(pool, 0);
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

struct CUmemPoolHandle_st *tt_host_pool_make(int device, size_t max_bytes)
{
    struct CUmemPoolHandle_st *pool = tt_host_slab_take(&tt_host.pools.slab, POOL_BYTES, MAX_POOLS);
    if (!pool) return NULL;
    begin_pool(pool, device, max_bytes);
    pool->magic = POOL_MAGIC;
    return pool;
}

/* Lock held. */
static struct CUmemPoolHandle_st *default_of(int device)
{
    if (!tt_host.pools.defaults[device]) {
        tt_host.pools.defaults[device] = tt_host_pool_make(device, 0);
        if (tt_host.pools.defaults[device]) tt_host.pools.defaults[device]->own = true;
    }
    return tt_host.pools.defaults[device];
}

struct CUmemPoolHandle_st *tt_host_pool_current(int device)
{
    return tt_host.pools.current[device] ? tt_host.pools.current[device] : default_of(device);
}

int tuttiHostPoolCreate(int device, unsigned share, size_t max_bytes,
                        struct CUmemPoolHandle_st **pool_out)
{
    if (!tt_host_device_info(device)) return TT_HOST_INVALID_DEVICE;
    if (share & ~(unsigned)TT_POOL_SHARE_FD)
        return tuttiHostUnsupported("memory pools with handles other than file descriptors");
    pthread_mutex_lock(&tt_host.pools.lock);
    struct CUmemPoolHandle_st *pool = tt_host_pool_make(device, max_bytes);
    if (pool) pool->shared = share != 0;
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!pool) return TT_HOST_OUT_OF_MEMORY;
    *pool_out = pool;
    return TT_HOST_OK;
}

int tuttiHostPoolDestroy(struct CUmemPoolHandle_st *pool)
{
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = tt_host_pool_holds(pool) && !pool->own;
    if (good) {
        if (tt_host.pools.current[pool->device] == pool) tt_host.pools.current[pool->device] = NULL;
        pool->dying = true;
        if (pool->nblocks == 0) give_pool(pool);
    }
    pthread_mutex_unlock(&tt_host.pools.lock);
    return good ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

int tuttiHostPoolDefault(int device, struct CUmemPoolHandle_st **pool_out)
{
    if (!tt_host_device_info(device)) return TT_HOST_INVALID_DEVICE;
    pthread_mutex_lock(&tt_host.pools.lock);
    struct CUmemPoolHandle_st *pool = default_of(device);
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!pool) return TT_HOST_OUT_OF_MEMORY;
    *pool_out = pool;
    return TT_HOST_OK;
}

int tuttiHostPoolCurrent(int device, struct CUmemPoolHandle_st **pool_out)
{
    if (!tt_host_device_info(device)) return TT_HOST_INVALID_DEVICE;
    pthread_mutex_lock(&tt_host.pools.lock);
    struct CUmemPoolHandle_st *pool = tt_host_pool_current(device);
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!pool) return TT_HOST_OUT_OF_MEMORY;
    *pool_out = pool;
    return TT_HOST_OK;
}

int tuttiHostPoolChoose(int device, struct CUmemPoolHandle_st *pool)
{
    if (!tt_host_device_info(device)) return TT_HOST_INVALID_DEVICE;
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = tt_host_pool_holds(pool) && pool->device == device && pool->imported < 0;
    if (good) tt_host.pools.current[device] = pool;
    pthread_mutex_unlock(&tt_host.pools.lock);
    return good ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

/* Freed memory is the arena's at once: only what is said of it changes. */
int tuttiHostPoolTrim(struct CUmemPoolHandle_st *pool, size_t keep_bytes)
{
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = tt_host_pool_holds(pool);
    if (good) give_up(pool, keep_bytes);
    pthread_mutex_unlock(&tt_host.pools.lock);
    return good ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

int tuttiHostPoolGet(struct CUmemPoolHandle_st *pool, int attribute, uint64_t *value_out)
{
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = tt_host_pool_holds(pool) && attribute >= 1 && attribute < TT_HOST_POOL_ATTRIBUTES;
    if (good) *value_out = pool->values[attribute];
    pthread_mutex_unlock(&tt_host.pools.lock);
    return good ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

int tuttiHostPoolSet(struct CUmemPoolHandle_st *pool, int attribute, uint64_t value)
{
    bool mark = attribute == ATTR_RESERVED_HIGH || attribute == ATTR_USED_HIGH;
    bool settable = (attribute >= 1 && attribute <= ATTR_RELEASE) || (mark && value == 0);
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = tt_host_pool_holds(pool) && settable;
    if (good) pool->values[attribute] = mark ? pool->values[attribute - 1] : value;
    pthread_mutex_unlock(&tt_host.pools.lock);
    return good ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

/* Lock held. */
static int check_access(const struct CUmemPoolHandle_st *pool, const struct tt_pool_access *one)
{
    if (!tt_host_device_info(one->device)) return TT_HOST_INVALID_DEVICE;
    if (one->access != 0 && one->access != 1 && one->access != 3) return TT_HOST_INVALID_VALUE;
    return pool->device != one->device || one->access == 3 ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

int tuttiHostPoolAccessSet(struct CUmemPoolHandle_st *pool, const struct tt_pool_access *list,
                           size_t count)
{
    pthread_mutex_lock(&tt_host.pools.lock);
    int rc = tt_host_pool_holds(pool) ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
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
    if (!tt_host_device_info(device)) return TT_HOST_INVALID_DEVICE;
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = tt_host_pool_holds(pool);
    if (good) *access_out = pool->device == device ? 3 : pool->access[device];
    pthread_mutex_unlock(&tt_host.pools.lock);
    return good ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

struct CUmemPoolHandle_st *tuttiHostPoolOf(const void *ptr)
{
    if (tt_host_forked()) return NULL;
    pthread_mutex_lock(&tt_host.pools.lock);
    const struct tt_host_pool_block *block = *tt_host_pool_find(ptr);
    struct CUmemPoolHandle_st *pool = block ? block->pool : NULL;
    if (pool && pool->dying) pool = NULL;
    pthread_mutex_unlock(&tt_host.pools.lock);
    return pool;
}

/* ---- the end of a device ---- */

static bool is_of(const struct tt_host_pool_block *block, int device)
{
    struct tt_pointer where;
    if (block->pool) return block->pool->device == device;
    return !tuttiHostPointer(block->ptr, &where) && where.device == device &&
           where.kind == TT_MEMORY_DEVICE;
}

/* Lock held. The bytes go with the device's memory. */
static void forget_block(struct tt_host_pool_block **link)
{
    struct tt_host_pool_block *block = *link;
    tt_host_pool_unlist(link);
    if (block->pool && block->pool->imported >= 0) tt_host_ipc_unmap(block->ptr);
    free(block);
}

/* Lock held. */
static void forget_blocks(int device, struct tt_host_pool_block **link)
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
void tt_host_pools_reset(int device)
{
    pthread_mutex_lock(&tt_host.pools.lock);
    for (size_t i = 0; i < TT_HOST_POOL_BUCKETS; i++) {
        forget_blocks(device, &tt_host.pools.buckets[i]);
    }
    size_t made = atomic_load_explicit(&tt_host.pools.slab.made, memory_order_acquire);
    for (size_t i = 0; i < made; i++) {
        struct CUmemPoolHandle_st *pool = tt_host_slab_object(&tt_host.pools.slab, i);
        if (pool->magic == POOL_MAGIC && pool->device == device && !pool->own) give_pool(pool);
    }
    struct CUmemPoolHandle_st *own = tt_host.pools.defaults[device];
    if (own) begin_pool(own, device, 0);
    if (own) own->own = true;
    tt_host.pools.current[device] = NULL;
    tt_host.pools.resets++;
    pthread_mutex_unlock(&tt_host.pools.lock);
}
