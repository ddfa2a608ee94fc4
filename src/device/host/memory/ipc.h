/* What processes share of each other: ranges of memory and cells of events. Private to the room. */
#pragma once

#include "device/host/host.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* How far the records of an interprocess event have come, for all processes. Numbers only grow. */
struct tt_host_cell {
    _Atomic uint64_t recorded; /* the number of the latest record */
    _Atomic uint64_t reached;  /* 40 bits: all up to this one; 24 bits: of those behind it */
};
enum { TT_HOST_CELL_BITS = 24 };

static inline bool tt_host_cell_reached(const struct tt_host_cell *cell, uint64_t number)
{
    uint64_t reached = atomic_load_explicit(&cell->reached, memory_order_acquire);
    uint64_t all = reached >> TT_HOST_CELL_BITS;
    if (number <= all) return true;
    return number - all <= TT_HOST_CELL_BITS && (reached >> (number - all - 1) & 1);
}

/* Zeroed, in control memory; NULL when that is exhausted. */
struct tt_host_cell *tt_host_cell_take(void);
void tt_host_cell_give(struct tt_host_cell *cell);
/* Records of one event end in any order: they may be on several streams. */
void tt_host_cell_reach(struct tt_host_cell *cell, uint64_t number);

/* A token for a cell of ours; the cell behind another process's token, mapped for ever. */
int tt_host_cell_export(const struct tt_host_cell *cell, unsigned char token_out[TT_IPC_BYTES]);
int tt_host_cell_import(const unsigned char token_bytes[TT_IPC_BYTES],
                        struct tt_host_cell **cell_out);

/* A token for the device allocation that holds ptr. 1 when it is no such one. */
int tt_host_ipc_get(const void *ptr, unsigned char token_out[TT_IPC_BYTES]);

/* ---- memory of exportable pools: the descriptor passes between processes, tokens name bytes ----
 */
/* A descriptor of our whole range (the caller's to close) that says which pool (not 0) it was made
 * for, or -1. */
int tt_host_ipc_export(uint32_t pool);
/* Which pool of its owner a descriptor was made for; 0 when it is no such one. */
uint32_t tt_host_ipc_exported(int fd);
/* A token for the device allocation that begins at ptr, of that pool; 1 when there is none. */
int tt_host_ipc_name(const void *ptr, uint32_t pool, unsigned char token_out[TT_IPC_BYTES]);
/* Map what a token names through the descriptor that its owner passed on. 1 when they do not belong
 * together, be it another pool. Each mapping is one of its own; tt_host_ipc_unmap() takes its
 * address.
 */
int tt_host_ipc_map(int fd, const unsigned char token_bytes[TT_IPC_BYTES], void **ptr_out);
void tt_host_ipc_unmap(void *ptr);
void tt_host_ipc_reclaim(void);     /* unmap what was closed and no work uses any more */
void tt_host_ipc_reset(int device); /* close all that was opened when the device was current */
