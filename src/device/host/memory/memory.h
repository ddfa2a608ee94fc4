/* The arenas behind what devices hand out. Private to the room. */
#pragma once

#include "arena.h"
#include "state.h"

/* The arena that holds an address, or NULL for foreign memory. device and kind are set. */
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
/* Where our own code reaches memory that the race checker may have closed for the program; and
 * back. An address outside of the range stays as it is. */
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
/* A device's arena; NULL when there is none. */
struct tt_host_arena *tt_host_arena_device(int device);
/* tuttiHostMalloc() that does not wait for memory on its way back. */
int tt_host_memory_try(int device, size_t bytes, void **ptr_out);
/* The live device or managed allocation at ptr. */
bool tt_host_memory_find(const void *ptr, struct tt_host_block *block_out, int *device_out);
/* Make bytes of a live allocation zeros; many of them take no memory until they are written. */
void tt_host_memory_zero(void *ptr, size_t bytes);
/* Free device or managed memory that nothing uses, or whatever work that is queued may use. 1 when
 * ptr is no base of such. */
int tt_host_memory_free(void *ptr);
int tt_host_memory_leave(void *ptr);
/* Free what the device has, and pinned and managed memory that was allocated when it was current,
 * all as if queued work may use it. */
void tt_host_memory_reset(int device);
