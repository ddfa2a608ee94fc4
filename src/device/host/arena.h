/* One arena: a part of the range with its live allocations in address order. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct host_block {
    char *base;
    size_t bytes;  /* as rounded up */
    size_t asked;  /* as the caller asked */
    unsigned kind; /* enum tt_memory_kind */
    unsigned flags;
};

struct host_arena {
    pthread_rwlock_t lock;
    char *base;
    size_t bytes, used_bytes, warm_bytes;
    struct host_block *blocks; /* owned; sorted by base */
    size_t nblocks, room;
    int fd;
    size_t fd_offset;
    size_t pool_bytes; /* freed pages kept; what exceeds it goes back to the system */
};

void host_arena_init(struct host_arena *arena, char *base, size_t bytes, int fd, size_t fd_offset,
                     size_t pool_bytes);

/* 512-aligned (4096 from a page on). False when no gap is large enough. Thread-safe. */
bool host_arena_alloc(struct host_arena *arena, size_t bytes, unsigned kind, unsigned flags,
                      void **ptr_out);
/* False when ptr is not the base of a live allocation. */
bool host_arena_free(struct host_arena *arena, void *ptr);
/* The live allocation that holds ptr. */
bool host_arena_find(struct host_arena *arena, const void *ptr, struct host_block *block_out);
