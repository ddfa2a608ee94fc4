/* Memory pools as the files about them share them. A pool is an account over its device's arena; a
 * block is memory of a pool, or other memory on its way out in stream order, and is listed from its
 * allocation to its free. The lock of tt_host.pools guards all of it and is held by a caller of
 * these functions. Private to this folder. */
#pragma once

#include "device/host/process/state.h"
#include "device/host/stream/stream.h"

enum {
    TT_HOST_POOL_ATTRIBUTES = 9,
    ATTR_DEPENDENCIES = 3, /* reuse may make streams wait for others */
    ATTR_RELEASE = 4,
    ATTR_RESERVED = 5,
    ATTR_RESERVED_HIGH = 6,
    ATTR_USED = 7,
    ATTR_USED_HIGH = 8,
};

struct CUmemPoolHandle_st {
    uint32_t magic;
    int device;
    bool own, dying; /* own: the device's; dying: destroyed, but memory of it lives */
    bool shared;     /* others may import it */
    int imported;    /* owned; descriptor of the exporter's memory, -1: our own pool */
    size_t max_bytes, nblocks;
    size_t coming_bytes; /* of allocations under way, which count for max_bytes */
    uint64_t values[TT_HOST_POOL_ATTRIBUTES];  /* by attribute number */
    unsigned char access[TT_HOST_MAX_DEVICES]; /* of other devices; 0: none */
};

struct tt_host_pool_block {
    struct tt_host_pool_block *next;
    void *ptr;
    size_t bytes;
    struct CUmemPoolHandle_st *pool; /* NULL: of tuttiHostMalloc(), on its way out */
    bool leaving;                    /* a free is queued ... */
    struct tt_host_position users;   /* ... behind this position, up to which the memory is used */
    unsigned revived;                /* queued frees that do nothing: it was handed out anew */
};

bool tt_host_pool_holds(const struct CUmemPoolHandle_st *pool); /* a living one */
/* A new pool of the device, or NULL. max_bytes 0: no limit. */
struct CUmemPoolHandle_st *tt_host_pool_make(int device, size_t max_bytes);
struct CUmemPoolHandle_st *tt_host_pool_current(int device); /* of allocations that name none */

/* The link to the block that begins at ptr, or one to NULL. */
struct tt_host_pool_block **tt_host_pool_find(const void *ptr);
void tt_host_pool_list(struct tt_host_pool_block *block);
void tt_host_pool_unlist(struct tt_host_pool_block **link);
/* Count a block that the pool gets, or loses. A destroyed pool ends with its last block. */
void tt_host_pool_account(struct CUmemPoolHandle_st *pool, size_t bytes);
void tt_host_pool_remove(struct CUmemPoolHandle_st *pool, size_t bytes);
/* An allocation begins, and ends: the pool stays meanwhile, also while the lock is released. */
void tt_host_pool_expect(struct CUmemPoolHandle_st *pool, size_t bytes);
void tt_host_pool_expected(struct CUmemPoolHandle_st *pool, size_t bytes, bool came);
