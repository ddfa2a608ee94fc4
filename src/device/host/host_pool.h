/* Memory pools and allocation in stream order, for the CUDA faces. Results are CUDA's numbers. Out
 * pointers are set on success only. Any thread. */
#pragma once

#include "device/device.h"

#pragma GCC visibility push(default)

struct CUmemPoolHandle_st;

/* pool NULL: the current pool of the stream's device. The address is known at once, the memory may
 * be used in stream order. In capture: a node whose memory lives as long as the graph. 1 for 0
 * bytes, 2 exhausted, 400 bad stream. */
int tuttiHostMallocAsync(struct CUmemPoolHandle_st *pool, size_t bytes, struct CUstream_st *stream,
                         void **ptr_out);
/* Free when the stream gets there; also memory of tuttiHostMalloc(). 1 for what is not allocated or
 * was handed to such a call already. */
int tuttiHostFreeAsync(void *ptr, struct CUstream_st *stream);
/* Free now; true when ptr was a pool's. */
bool tuttiHostPoolFree(void *ptr);

/* share: enum cudaMemAllocationHandleType (0 none; others 801). max_bytes 0: the device's. */
int tuttiHostPoolCreate(int device, unsigned share, size_t max_bytes,
                        struct CUmemPoolHandle_st **pool_out);
/* At once, or when its last allocation is freed. 1 for a device's own pool. */
int tuttiHostPoolDestroy(struct CUmemPoolHandle_st *pool);
int tuttiHostPoolDefault(int device, struct CUmemPoolHandle_st **pool_out);
int tuttiHostPoolCurrent(int device, struct CUmemPoolHandle_st **pool_out);
int tuttiHostPoolChoose(int device, struct CUmemPoolHandle_st *pool); /* 1: another device's */
int tuttiHostPoolTrim(struct CUmemPoolHandle_st *pool, size_t keep_bytes);
/* CUDA's numbers: 1-3 reuse switches, 4 release threshold, 5 reserved, 6 its high mark, 7 used,
 * 8 its high mark; setting 6 and 8 takes only 0, 5 and 7 cannot be set. */
int tuttiHostPoolGet(struct CUmemPoolHandle_st *pool, int attribute, uint64_t *value_out);
int tuttiHostPoolSet(struct CUmemPoolHandle_st *pool, int attribute, uint64_t value);
/* access: 0 none, 1 read, 3 read and write; 1 when it would take the owner's away. */
int tuttiHostPoolAccessSet(struct CUmemPoolHandle_st *pool, int device, int access);
int tuttiHostPoolAccessGet(struct CUmemPoolHandle_st *pool, int device, int *access_out);

#pragma GCC visibility pop
