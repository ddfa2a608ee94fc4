/* An arena: an allocator over a part of the address range, in units of grains. Looking up an
 * address takes no lock: the size of a block is one atomic word. */
#pragma once

#include "bitset.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_host_block { /* a live allocation */
    char *base;
    size_t bytes;  /* rounded up */
    size_t asked;  /* requested by the caller */
    unsigned kind; /* enum tt_memory_kind */
    unsigned flags;
    uint64_t id; /* unique in the arena */
};

enum { TT_HOST_BIN_ROWS = 28, TT_HOST_BIN_COLUMNS = 8 };

/* Fields of a tag's word, which holds the size of a live block (layout: arena.c). */
enum { TT_HOST_TAG_GRAINS_BITS = 30, TT_HOST_TAG_SLACK_BITS = 12, TT_HOST_TAG_LIVE_BIT = 63 };

/* Requested bytes of a live block; 0: it is not live. */
static inline size_t tt_host_tag_asked(uint64_t what, unsigned shift)
{
    const uint64_t grains = what & ((UINT64_C(1) << TT_HOST_TAG_GRAINS_BITS) - 1);
    const uint64_t slack =
        what >> TT_HOST_TAG_GRAINS_BITS & ((UINT64_C(1) << TT_HOST_TAG_SLACK_BITS) - 1);
    return what >> TT_HOST_TAG_LIVE_BIT ? (size_t)((grains << shift) - slack) : 0;
}

struct tt_host_tag { /* per grain: the block or free run that begins (or ends) there */
    _Atomic uint64_t what;
    union {
        struct {
            uint32_t next, prev; /* of a free run in its bin */
        };
        _Atomic uint64_t id; /* of a live block */
    };
};

struct tt_host_arena {
    /* all that a look-up reads, in one cache line */
    _Alignas(TT_LINE_BYTES) char *base;
    size_t bytes, grain, limit; /* limit: grains */
    struct tt_host_tag *tags;   /* owned; one per grain, sparse */
    unsigned shift;             /* grain: a power of two */
    _Alignas(TT_LINE_BYTES) pthread_mutex_t lock;
    pthread_cond_t returned;   /* a taken run was given back */
    size_t away;               /* taken runs that will be given back without help */
    _Atomic size_t used_bytes; /* allocated here, and charged */
    size_t warm, warm_most;    /* grains: free ones that hold pages; how many are kept */
    struct tt_host_bitset starts;
    uint32_t rows;
    uint8_t columns[TT_HOST_BIN_ROWS];
    uint32_t bins[TT_HOST_BIN_ROWS][TT_HOST_BIN_COLUMNS];
    uint64_t next_id;
    int fd;
    size_t fd_offset;
};

struct tt_host_arena_ground { /* the address range of an arena */
    char *base;
    size_t bytes, grain; /* grain: 512 or 4096 */
    int fd;
    size_t fd_offset;
    size_t pool_bytes; /* freed pages beyond this are returned to the system */
};

/* False when there is no address space for its tags. */
bool tt_host_arena_init(struct tt_host_arena *arena, const struct tt_host_arena_ground *ground);
void tt_host_arena_fini(struct tt_host_arena *arena);

struct tt_host_want {
    size_t bytes;
    unsigned kind, flags; /* flags: 16 bits, kept */
};
/* Allocate. Alignment: 512; 4096 from a page on; 2 MiB from 2 MiB on. False: no free run is large
 * enough, and none becomes so when other threads have finished their frees, for which it waits.
 * Thread-safe, as all below. */
bool tt_host_arena_alloc(struct tt_host_arena *arena, const struct tt_host_want *want,
                         void **ptr_out);
/* Whether the bytes fit beside what is in use. Exact only while the lock is held. */
bool tt_host_arena_has_room(const struct tt_host_arena *arena, size_t bytes);
/* Count memory outside the arena (vmm.c) against its size. False: it is exhausted. */
bool tt_host_arena_charge(struct tt_host_arena *arena, size_t bytes);
void tt_host_arena_credit(struct tt_host_arena *arena, size_t bytes);
struct tt_host_run { /* taken grains: neither live nor free */
    size_t first, count;
};
/* Take a live allocation: it ends, but its memory is not free until tt_host_arena_give().
 * Allocations that need memory wait for that, so the caller must not wait for them. False: ptr is
 * not the base of a live allocation. */
bool tt_host_arena_take(struct tt_host_arena *arena, const void *ptr, struct tt_host_run *run_out);
void tt_host_arena_give(struct tt_host_arena *arena, const struct tt_host_run *taken);
/* A taken run is kept for long: allocations do not wait for it; (unkeep) do again. */
void tt_host_arena_keep(struct tt_host_arena *arena);
void tt_host_arena_unkeep(struct tt_host_arena *arena);
/* Take and give. */
bool tt_host_arena_free(struct tt_host_arena *arena, const void *ptr);
/* Zero bytes of a live allocation. Large ranges take no memory until they are written. */
void tt_host_arena_zero(const struct tt_host_arena *arena, void *ptr, size_t bytes);
/* The live allocation that holds ptr. Takes no lock.                                          hot
 */
bool tt_host_arena_find(const struct tt_host_arena *arena, const void *ptr,
                        struct tt_host_block *block_out);
/* Bytes from ptr to the end of the live allocation in whose first grain ptr lies; 0: ask
 * tt_host_arena_find(). Reads the arena's first line and a tag. hot
 */
static inline size_t tt_host_arena_room(const struct tt_host_arena *arena, const void *ptr)
{
    size_t offset = (size_t)((const char *)ptr - arena->base);
    if (offset >= arena->bytes) return 0;
    uint64_t what =
        atomic_load_explicit(&arena->tags[offset >> arena->shift].what, memory_order_acquire);
    size_t before = offset & (arena->grain - 1);
    size_t asked = tt_host_tag_asked(what, arena->shift);
    return asked > before ? asked - before : 0;
}
/* The live allocation with the highest address below `end`, at most the end of the arena. */
bool tt_host_arena_last(const struct tt_host_arena *arena, const char *end,
                        struct tt_host_block *block_out);
