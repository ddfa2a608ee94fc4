/* Memory pools and allocation in stream order, for the CUDA faces. Results are CUDA's numbers. Out
 * pointers are set on success only. Any thread. */
#pragma once

#include "device/device.h"
#include "device/host/host.h"

#pragma GCC visibility push(default)

struct CUmemPoolHandle_st;

/* Allocate in stream order: *ptr_out is set at once, the memory may be used by later work of the
 * stream. In capture: a node whose memory lives as long as the graph. When the pool is exhausted,
 * memory whose free is queued is reused after that free. pool NULL: the current pool of the
 * stream's device. 1 for 0 bytes, 2 exhausted, 400 bad stream. */
int tuttiHostMallocAsync(struct CUmemPoolHandle_st *pool, size_t bytes, struct CUstream_st *stream,
                         void **ptr_out);
/* Free in stream order; also memory of tuttiHostMalloc(). 1 when ptr is not allocated, or its free
 * is queued already. */
int tuttiHostFreeAsync(void *ptr, struct CUstream_st *stream);

enum { TT_POOL_SHARE_FD = 1 }; /* enum cudaMemAllocationHandleType: a file descriptor */
/* share: 0 or TT_POOL_SHARE_FD (others 801). max_bytes 0: the device's. */
int tuttiHostPoolCreate(int device, unsigned share, size_t max_bytes,
                        struct CUmemPoolHandle_st **pool_out);
/* Destroy the pool, now or when its last allocation is freed. 1 for a device's default pool. */
int tuttiHostPoolDestroy(struct CUmemPoolHandle_st *pool);
int tuttiHostPoolDefault(int device, struct CUmemPoolHandle_st **pool_out);
int tuttiHostPoolCurrent(int device, struct CUmemPoolHandle_st **pool_out);
int tuttiHostPoolChoose(int device, struct CUmemPoolHandle_st *pool); /* 1: another device's */
/* The pool of the allocation at ptr; NULL: it has none, or the pool was destroyed. */
struct CUmemPoolHandle_st *tuttiHostPoolOf(const void *ptr);
int tuttiHostPoolTrim(struct CUmemPoolHandle_st *pool, size_t keep_bytes);
/* CUDA's numbers: 1-3 reuse switches, 4 release threshold, 5 reserved, 6 its high mark, 7 used,
 * 8 its high mark; setting 6 and 8 takes only 0, 5 and 7 cannot be set. */
int tuttiHostPoolGet(struct CUmemPoolHandle_st *pool, int attribute, uint64_t *value_out);
int tuttiHostPoolSet(struct CUmemPoolHandle_st *pool, int attribute, uint64_t value);
struct tt_pool_access {
    int device, access; /* 0 none, 1 read, 3 read and write */
};
/* Set the access of `count` devices, all or none. 1 when it would remove the owner's access. */
int tuttiHostPoolAccessSet(struct CUmemPoolHandle_st *pool, const struct tt_pool_access *list,
                           size_t count);
int tuttiHostPoolAccessGet(struct CUmemPoolHandle_st *pool, int device, int *access_out);

/* ---- pools of several processes ---- */
/* A descriptor that other processes can import; the caller closes it. 1: the pool was not made to
 * be shared. */
int tuttiHostPoolExport(struct CUmemPoolHandle_st *pool, int *fd_out);
/* Make a pool of another process's memory, on the thread's device; nothing can be allocated from
 * it. The descriptor is not closed. 1: it is not a pool's descriptor. */
int tuttiHostPoolImport(int fd, struct CUmemPoolHandle_st **pool_out);
/* A token for an allocation of a shared pool; 1 for other memory. */
int tuttiHostPoolTokenGet(const void *ptr, unsigned char token_out[TT_IPC_BYTES]);
/* Map the allocation of a token. Each call makes a new mapping; free each address by
 * tuttiHostFreeUsed() or in stream order. 1 when the token is not of the pool's exporter. */
int tuttiHostPoolTokenOpen(struct CUmemPoolHandle_st *pool, const unsigned char token[TT_IPC_BYTES],
                           void **ptr_out);

#pragma GCC visibility pop
