/* Memory and events that processes share. Private to the room. */
#pragma once

#include "device/host/host.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Progress of the records of an interprocess event, in shared memory. Numbers only grow. */
struct tt_host_cell {
    _Atomic uint64_t recorded; /* the number of the latest record */
    _Atomic uint64_t reached; /* high 40 bits: all records up to this one; low 24: which after it */
};
enum { TT_HOST_CELL_BITS = 24 };

static inline bool tt_host_cell_reached(const struct tt_host_cell *cell, uint64_t number)
{
    uint64_t reached = atomic_load_explicit(&cell->reached, memory_order_acquire);
    uint64_t all = reached >> TT_HOST_CELL_BITS;
    if (number <= all) return true;
    return number - all <= TT_HOST_CELL_BITS && (reached >> (number - all - 1) & 1);
}

/* A zeroed cell in the shared control memory. NULL: it is exhausted. */
struct tt_host_cell *tt_host_cell_take(void);
void tt_host_cell_give(struct tt_host_cell *cell);
/* Record `number` is complete. Records may complete in any order, as they may be on several
 * streams. */
void tt_host_cell_reach(struct tt_host_cell *cell, uint64_t number);

/* Export a cell of this process as a token; map the cell of another process's token, for good. */
int tt_host_cell_export(const struct tt_host_cell *cell, unsigned char token_out[TT_IPC_BYTES]);
int tt_host_cell_import(const unsigned char token_bytes[TT_IPC_BYTES],
                        struct tt_host_cell **cell_out);

/* A token for the device allocation that ptr lies in. 1: there is none. */
int tt_host_ipc_get(const void *ptr, unsigned char token_out[TT_IPC_BYTES]);

/* ---- exportable pools: processes exchange a file descriptor, then tokens for allocations ---- */
/* A file descriptor of this process's memory, marked with the pool (not 0), which the caller
 * closes. -1: failed. */
int tt_host_ipc_export(uint32_t pool);
/* The pool that a descriptor is marked with; 0: it is no such descriptor. */
uint32_t tt_host_ipc_exported(int fd);
/* A token for the device allocation of the pool that begins at ptr. 1: there is none. */
int tt_host_ipc_name(const void *ptr, uint32_t pool, unsigned char token_out[TT_IPC_BYTES]);
/* Map the allocation of a token through its owner's descriptor. 1: the two are not of one pool.
 * Each call makes a new mapping, which tt_host_ipc_unmap() ends. */
int tt_host_ipc_map(int fd, const unsigned char token_bytes[TT_IPC_BYTES], void **ptr_out);
void tt_host_ipc_unmap(void *ptr);
void tt_host_ipc_reclaim(void);     /* unmap closed memory that no queued work uses */
void tt_host_ipc_reset(int device); /* close all that was opened on the device */
