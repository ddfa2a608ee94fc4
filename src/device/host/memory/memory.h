/* Arenas of devices, and look-up of addresses in them. Private to the room. */
#pragma once

#include "device/host/heap/arena.h"
#include "device/host/process/state.h"

/* The arena of an address; sets *device and *kind. NULL: other memory. */
struct tt_host_arena *tt_host_arena_of(const void *ptr, int *device, enum tt_memory_kind *kind);
/* Bytes from ptr to the end of the device allocation in whose first grain it lies; 0: it lies
 * elsewhere, span.c knows more.                                                              hot */
static inline size_t tt_host_device_room(const void *ptr)
{
    const struct tt_host_memory *memory = &tt_host.memory;
    if (!atomic_load_explicit(&memory->reserved, memory_order_acquire)) return 0;
    size_t device = (size_t)((const char *)ptr - memory->devices_base) >> memory->shift;
    return device < (size_t)memory->ndevices ? tt_host_arena_room(&memory->devices[device], ptr)
                                             : 0;
}
static inline size_t tt_host_view_bytes(const struct tt_host_memory *memory)
{
    return memory->range.bytes - (size_t)(memory->host.base - memory->range.base);
}
/* The library's second mapping of memory whose first mapping the race checker may have protected;
 * and back. Other addresses are returned unchanged. */
static inline void *tt_host_view(const void *ptr)
{
    const struct tt_host_memory *memory = &tt_host.memory;
    size_t at = (size_t)((const char *)ptr - memory->host.base);
    return memory->view && at < tt_host_view_bytes(memory) ? memory->view + at
                                                           : (void *)(uintptr_t)ptr;
}
static inline const void *tt_host_unview(const void *ptr)
{
    const struct tt_host_memory *memory = &tt_host.memory;
    size_t at = (size_t)((const char *)ptr - memory->view);
    return memory->view && at < tt_host_view_bytes(memory) ? memory->host.base + at : ptr;
}
/* Make a file in memory of a fixed size, which other processes map. -1: errno. */
int tt_host_memory_file(const char *name, size_t bytes);
/* A device's arena; NULL when there is none. */
struct tt_host_arena *tt_host_arena_device(int device);
/* tuttiHostMalloc() that does not wait for deferred frees. */
int tt_host_memory_try(int device, size_t bytes, void **ptr_out);
/* The live device or managed allocation at ptr. */
bool tt_host_memory_find(const void *ptr, struct tt_host_block *block_out, int *device_out);
/* Zero bytes of a live allocation. Large ranges take no memory until they are written. */
void tt_host_memory_zero(void *ptr, size_t bytes);
/* Free device or managed memory: that no work uses; (leave) that queued work may use. 1: ptr is not
 * the base of an allocation. */
int tt_host_memory_free(void *ptr);
int tt_host_memory_leave(void *ptr);
/* Free all memory of the device, and pinned and managed memory that was allocated on it, as
 * tt_host_memory_leave() does. */
void tt_host_memory_reset(int device);
