/* Memory pools and allocation in stream order, for the CUDA faces. Results are CUDA's numbers. Out
 * pointers are set on success only. Any thread. */
#pragma once

#include "device/device.h"
#include "device/host/host.h"

#pragma GCC visibility push(default)

struct CUmemPoolHandle_st;

/* pool NULL: the current pool of the stream's device. The address is known at once, the memory may
 * be used in stream order. In capture: a node whose memory lives as long as the graph. When nothing
 * else is left, memory whose free is queued is reused behind that. 1 for 0 bytes, 2 exhausted, 400
 * bad stream. */
int tuttiHostMallocAsync(struct CUmemPoolHandle_st *pool, size_t bytes, struct CUstream_st *stream,
                         void **ptr_out);
/* Free when the stream gets there; also memory of tuttiHostMalloc(). 1 for what is not allocated or
 * was handed to such a call already. */
int tuttiHostFreeAsync(void *ptr, struct CUstream_st *stream);

enum { TT_POOL_SHARE_FD = 1 }; /* enum cudaMemAllocationHandleType: a file descriptor */
/* share: 0 or TT_POOL_SHARE_FD (others 801). max_bytes 0: the device's. */
int tuttiHostPoolCreate(int device, unsigned share, size_t max_bytes,
                        struct CUmemPoolHandle_st **pool_out);
/* At once, or when its last allocation is freed. 1 for a device's own pool. */
int tuttiHostPoolDestroy(struct CUmemPoolHandle_st *pool);
int tuttiHostPoolDefault(int device, struct CUmemPoolHandle_st **pool_out);
int tuttiHostPoolCurrent(int device, struct CUmemPoolHandle_st **pool_out);
int tuttiHostPoolChoose(int device, struct CUmemPoolHandle_st *pool); /* 1: another device's */
/* The pool of the allocation at ptr; NULL when it is no pool's, or its pool was destroyed. */
struct CUmemPoolHandle_st *tuttiHostPoolOf(const void *ptr);
int tuttiHostPoolTrim(struct CUmemPoolHandle_st *pool, size_t keep_bytes);
/* CUDA's numbers: 1-3 reuse switches, 4 release threshold, 5 reserved, 6 its high mark, 7 used,
 * 8 its high mark; setting 6 and 8 takes only 0, 5 and 7 cannot be set. */
int tuttiHostPoolGet(struct CUmemPoolHandle_st *pool, int attribute, uint64_t *value_out);
int tuttiHostPoolSet(struct CUmemPoolHandle_st *pool, int attribute, uint64_t value);
struct tt_pool_access {
    int device, access; /* 0 none, 1 read, 3 read and write */
};
/* All of them or none; 1 when it would take the owner's away. */
int tuttiHostPoolAccessSet(struct CUmemPoolHandle_st *pool, const struct tt_pool_access *list,
                           size_t count);
int tuttiHostPoolAccessGet(struct CUmemPoolHandle_st *pool, int device, int *access_out);

/* ---- pools of several processes ---- */
/* A descriptor that other processes import, the caller's to close. 1: not made to be shared. */
int tuttiHostPoolExport(struct CUmemPoolHandle_st *pool, int *fd_out);
/* A pool over another process's memory, on the thread's device; nothing can be allocated from it.
 * The descriptor stays the caller's. 1: it is none of a pool. */
int tuttiHostPoolImport(int fd, struct CUmemPoolHandle_st **pool_out);
/* A token for an allocation of a shared pool; 1 for other memory. */
int tuttiHostPoolTokenGet(const void *ptr, unsigned char token_out[TT_IPC_BYTES]);
/* Map it; each call maps anew, each address is freed by tuttiHostFreeUsed() or in stream order. 1
 * when the token is not of the pool's exporter. */
int tuttiHostPoolTokenOpen(struct CUmemPoolHandle_st *pool, const unsigned char token[TT_IPC_BYTES],
                           void **ptr_out);

#pragma GCC visibility pop
