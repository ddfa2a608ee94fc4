/* Functions of the host device for the CUDA faces, beside device.h: errors, memory, sharing.
 * Results are CUDA's numbers; none of these sets the thread's last error, the faces do. Out
 * pointers must not be NULL unless noted otherwise; they are set on success only. Any thread. */
#pragma once

#include "device/device.h"

#pragma GCC visibility push(default)

struct CUevent_st;

/* 0 when devices can be used, 3 in a child that was forked after first use, 100 with no device. */
int tuttiHostReady(void);
/* Has any call asked for devices yet? One load; starts nothing. */
bool tuttiHostStarted(void);

/* ---- the thread's last error ---- */
int tuttiHostErrorSet(int error); /* stores it unless 0; returns it */
int tuttiHostErrorPeek(void);
int tuttiHostErrorGet(void); /* and resets */

/* ---- devices ---- */
/* "0000:07:00.0", any case, domain may be missing. 1 when no visible device has it. */
int tuttiHostDeviceByBusId(const char *bus_id, int *device_out);

/* ---- memory ---- */
/* Page-aligned memory that every device reaches. bytes 0: NULL for pinned, 1 for managed. Managed
 * memory is freed by tuttiHostFreeUsed(). */
enum { TT_HOST_KEPT = 8 }; /* beside CUDA's flags: it stays when the device is reset */
int tuttiHostMallocHost(size_t bytes, unsigned flags, bool managed, void **ptr_out);
int tuttiHostFreeHost(void *ptr); /* base of pinned memory, or NULL */
/* Flags given to tuttiHostMallocHost(); 1 for other memory. */
int tuttiHostHostFlags(const void *ptr, unsigned *flags);
int tuttiHostMemInfo(int device, size_t *free_bytes, size_t *total_bytes);

/* Number of the allocation that holds ptr, unique in the process; 1 when there is none. */
int tuttiHostPointerId(const void *ptr, uint64_t *id_out);

/* ---- sharing between processes ---- */
enum { TT_IPC_BYTES = 64 };
/* A token for the device allocation that holds ptr. 1 when it is not of tuttiHostMalloc(),
 * and when it is a pool's. */
int tuttiHostIpcGet(const void *ptr, unsigned char token[TT_IPC_BYTES]);
/* Map the allocation of another process; opened again: same address, counted. 201 for a token of
 * this process, 1 for bytes that are no token or whose process is gone. */
int tuttiHostIpcOpen(const unsigned char token[TT_IPC_BYTES], void **ptr_out);
int tuttiHostIpcClose(void *ptr);
/* The opened memory around ptr, as device memory (to tuttiHostPointer() it is foreign), or false.
 * One load when nothing is open. */
bool tuttiHostIpcMapped(const void *ptr, struct tt_pointer *pointer_out);
/* Only events made with TT_EVENT_INTERPROCESS; else 400. */
int tuttiHostIpcEventGet(struct CUevent_st *event, unsigned char token[TT_IPC_BYTES]);
int tuttiHostIpcEventOpen(const unsigned char token[TT_IPC_BYTES], struct CUevent_st **event_out);

#pragma GCC visibility pop
