/* The arenas behind what devices hand out. Private to the room. */
#pragma once

#include "arena.h"
#include "state.h"

/* The arena that holds an address, or NULL for foreign memory. device and kind are set. */
struct host_arena *host_arena_of(const void *ptr, int *device, enum tt_memory_kind *kind);
/* A device's arena; NULL when there is none. */
struct host_arena *host_arena_device(int device);
/* The live device or managed allocation at ptr. */
bool host_memory_find(const void *ptr, struct host_block *block_out, int *device_out);
/* Free device or managed memory. 1 when ptr is no base of such. */
int host_memory_free(void *ptr);
