/* What the CUDA faces need of the host device beside device.h: errors, memory, pools, sharing.
 * Results are CUDA's numbers; none of these sets the thread's last error, the faces do. Out
 * pointers must not be NULL unless said otherwise; they are set on success only. Any thread. */
#pragma once

#include "device/device.h"

#pragma GCC visibility push(default)

struct CUevent_st;
struct CUmemPoolHandle_st;

/* 0 when devices can be used, 3 in a child that was forked after first use, 100 with no device. */
int tuttiHostReady(void);

/* ---- the thread's last error ---- */
int tuttiHostErrorSet(int error); /* stores it unless 0; returns it */
int tuttiHostErrorPeek(void);
int tuttiHostErrorGet(void); /* and resets */

/* ---- devices ---- */
/* "0000:07:00.0", any case, domain may be missing. 1 when no visible device has it. */
int tuttiHostDeviceByBusId(const char *bus_id, int *device_out);
/* Permission of `device` to reach `peer`. 101 bad or equal ordinals, 704 enabled twice, 705 not
 * enabled. Nothing depends on it: all memory is reachable. */
int tuttiHostPeerEnable(int device, int peer);
int tuttiHostPeerDisable(int device, int peer);

/* ---- memory ---- */
/* Page-aligned memory that every device reaches. bytes 0: NULL for pinned, 1 for managed. Managed
 * memory is freed by tuttiHostFree(). */
int tuttiHostMallocHost(size_t bytes, unsigned flags, bool managed, void **ptr_out);
int tuttiHostFreeHost(void *ptr); /* base of pinned memory, or NULL */
/* Flags given to tuttiHostMallocHost() or tuttiHostHostRegister(); 1 for other memory. */
int tuttiHostHostFlags(const void *ptr, unsigned *flags);
int tuttiHostMemInfo(int device, size_t *free_bytes, size_t *total_bytes);

/* Remember foreign memory as pinned; tuttiHostPointer() then answers TT_MEMORY_FOREIGN with the
 * registered base and size. 712 when it overlaps a registered range, 1 for memory of ours. */
int tuttiHostHostRegister(void *ptr, size_t bytes, unsigned flags);
int tuttiHostHostUnregister(void *ptr); /* 713 when ptr is not the base of a registered range */

/* Number of the allocation that holds ptr, unique in the process; 1 when there is none. */
int tuttiHostPointerId(const void *ptr, uint64_t *id_out);

/* ---- stream-ordered allocation ---- */
/* pool NULL: the current pool of the stream's device. The address is known at once, the memory may
 * be used in stream order. In capture: a memory node. 2 exhausted, 400 bad stream. */
int tuttiHostMallocAsync(struct CUmemPoolHandle_st *pool, size_t bytes, struct CUstream_st *stream,
                         void **ptr_out);
/* Free when the stream gets there; also memory of tuttiHostMalloc(). NULL: 1, as CUDA has it. */
int tuttiHostFreeAsync(void *ptr, struct CUstream_st *stream);

/* share: enum cudaMemAllocationHandleType (0 none, 1 descriptor; others 801). max_bytes 0: device.
 */
int tuttiHostPoolCreate(int device, unsigned share, size_t max_bytes,
                        struct CUmemPoolHandle_st **pool_out);
int tuttiHostPoolDestroy(struct CUmemPoolHandle_st *pool); /* 1 for a device's own pool */
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

/* ---- sharing between processes ---- */
enum { TT_IPC_BYTES = 64 };
/* A token for the device allocation that holds ptr. 1 when it is not of tuttiHostMalloc(). */
int tuttiHostIpcGet(const void *ptr, unsigned char token[TT_IPC_BYTES]);
/* Map the allocation of another process; opened again: same address, counted. 201 for a token of
 * this process, 1 for bytes that are no token or whose process is gone. */
int tuttiHostIpcOpen(const unsigned char token[TT_IPC_BYTES], void **ptr_out);
int tuttiHostIpcClose(void *ptr);
/* Only events made with TT_EVENT_INTERPROCESS; else 400. */
int tuttiHostIpcEventGet(struct CUevent_st *event, unsigned char token[TT_IPC_BYTES]);
int tuttiHostIpcEventOpen(const unsigned char token[TT_IPC_BYTES], struct CUevent_st **event_out);

#pragma GCC visibility pop
