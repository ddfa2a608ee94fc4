/* Memory pools of several processes: pools as descriptors, their memory as tokens. */
#include "pool.h"

#include "device/host/heap/slab.h"
#include "device/host/host_face.h"
#include "device/host/host_pool.h"
#include "device/host/memory/ipc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* What other processes know the pool by. */
static uint32_t number_of(const struct CUmemPoolHandle_st *pool)
{
    return (uint32_t)tt_host_slab_number(&tt_host.pools.slab, pool) + 1;
}

int tuttiHostPoolExport(struct CUmemPoolHandle_st *pool, int *fd_out)
{
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = tt_host_pool_holds(pool) && pool->shared;
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!good) return TT_HOST_INVALID_VALUE;
    int fd = tt_host_ipc_export(number_of(pool));
    if (fd < 0) return TT_HOST_OPERATING_SYSTEM;
    *fd_out = fd;
    return TT_HOST_OK;
}

int tuttiHostPoolImport(int fd, struct CUmemPoolHandle_st **pool_out)
{
    if (!tt_host_ipc_exported(fd)) return TT_HOST_INVALID_VALUE;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return TT_HOST_OPERATING_SYSTEM;
    pthread_mutex_lock(&tt_host.pools.lock);
    struct CUmemPoolHandle_st *pool = tt_host_pool_make(tt_host_thread.device, 0);
    if (pool) pool->imported = own;
    pthread_mutex_unlock(&tt_host.pools.lock);
    if (!pool) {
        close(own);
        return TT_HOST_OUT_OF_MEMORY;
    }
    *pool_out = pool;
    return TT_HOST_OK;
}

int tuttiHostPoolTokenGet(const void *ptr, unsigned char token_out[TT_IPC_BYTES])
{
    pthread_mutex_lock(&tt_host.pools.lock);
    const struct tt_host_pool_block *block = *tt_host_pool_find(ptr);
    bool good = block && block->pool && block->pool->shared && !block->leaving;
    int rc =
        good ? tt_host_ipc_name(ptr, number_of(block->pool), token_out) : TT_HOST_INVALID_VALUE;
    pthread_mutex_unlock(&tt_host.pools.lock);
    return rc;
}

int tuttiHostPoolTokenOpen(struct CUmemPoolHandle_st *pool, const unsigned char token[TT_IPC_BYTES],
                           void **ptr_out)
{
    struct tt_host_pool_block *block = calloc(1, sizeof(*block));
    if (!block) return TT_HOST_OUT_OF_MEMORY;
    pthread_mutex_lock(&tt_host.pools.lock);
    bool good = tt_host_pool_holds(pool) && pool->imported >= 0;
    int rc = good ? tt_host_ipc_map(pool->imported, token, &block->ptr) : TT_HOST_INVALID_VALUE;
    if (!rc) {
        *ptr_out = block->ptr;
        block->pool = pool;
        tt_host_pool_account(pool, 0); /* the bytes are the exporter's */
        tt_host_pool_list(block);
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
    if (tt_host_forked()) return TT_HOST_NOT_INITIALIZED;
    tuttiHostPointer(ptr, &where);
    if (where.base && tuttiHostPoolOf(where.base)) return TT_HOST_INVALID_VALUE;
    return tt_host_ipc_get(ptr, token_out);
}
