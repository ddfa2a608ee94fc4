/* One arena: a part of the range, cut into grains, and who has them. Looking an address up takes no
 * lock; what is known of a block is one word. */
#pragma once

#include "bitset.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_host_block { /* a live allocation */
    char *base;
    size_t bytes;  /* as rounded up */
    size_t asked;  /* as the caller asked */
    unsigned kind; /* enum tt_memory_kind */
    unsigned flags;
    uint64_t id; /* unique in the arena */
};

enum { TT_HOST_BIN_ROWS = 28, TT_HOST_BIN_COLUMNS = 8 };

/* The word of a tag (arena.c draws it): how long a live block is. */
enum { TT_HOST_TAG_GRAINS_BITS = 30, TT_HOST_TAG_SLACK_BITS = 12, TT_HOST_TAG_LIVE_BIT = 63 };

/* Bytes that were asked for of a live block; 0 for what is not live. */
static inline size_t tt_host_tag_asked(uint64_t what, unsigned shift)
{
    const uint64_t grains = what & ((UINT64_C(1) << TT_HOST_TAG_GRAINS_BITS) - 1);
    const uint64_t slack =
        what >> TT_HOST_TAG_GRAINS_BITS & ((UINT64_C(1) << TT_HOST_TAG_SLACK_BITS) - 1);
    return what >> TT_HOST_TAG_LIVE_BIT ? (size_t)((grains << shift) - slack) : 0;
}

struct tt_host_tag { /* of a grain: what begins (or ends) there */
    _Atomic uint64_t what;
    union {
        struct {
            uint32_t next, prev; /* of a free run in its bin */
        };
        _Atomic uint64_t id; /* of a live block */
    };
};

struct tt_host_arena {
    /* what a look-up reads, in one line: a copy has just swept the cache, and does two */
    _Alignas(TT_LINE_BYTES) char *base;
    size_t bytes, grain, limit; /* limit: grains */
    struct tt_host_tag *tags;   /* owned; one per grain, sparse */
    unsigned shift;             /* grain: a power of two */
    _Alignas(TT_LINE_BYTES) pthread_mutex_t lock;
    pthread_cond_t returned;   /* a run that was away came back */
    size_t away;               /* runs that are neither live nor free and come back by themselves */
    _Atomic size_t used_bytes; /* here, and what was charged */
    size_t warm, warm_most;    /* grains: free ones that hold pages; how many are kept */
    struct tt_host_bitset starts;
    uint32_t rows;
    uint8_t columns[TT_HOST_BIN_ROWS];
    uint32_t bins[TT_HOST_BIN_ROWS][TT_HOST_BIN_COLUMNS];
    uint64_t next_id;
    int fd;
    size_t fd_offset;
};

struct tt_host_arena_ground { /* what an arena is made over */
    char *base;
    size_t bytes, grain; /* grain: 512 or 4096 */
    int fd;
    size_t fd_offset;
    size_t pool_bytes; /* freed pages kept; what exceeds it goes back to the system */
};

/* False when there is no address space for its tags. */
bool tt_host_arena_init(struct tt_host_arena *arena, const struct tt_host_arena_ground *ground);
void tt_host_arena_fini(struct tt_host_arena *arena);

struct tt_host_want {
    size_t bytes;
    unsigned kind, flags; /* flags: 16 bits, kept */
};
/* Aligned to 512, 4096 from a page on, 2 MiB from there on. False when no gap is large enough, nor
 * will be when what other threads are just freeing has come back. Thread-safe, as all below. */
bool tt_host_arena_alloc(struct tt_host_arena *arena, const struct tt_host_want *want,
                         void **ptr_out);
/* Not so much is in use that the bytes would be too many; exact with the lock only. */
bool tt_host_arena_has_room(const struct tt_host_arena *arena, size_t bytes);
/* Count memory that lies elsewhere (parts, vmm.c) against the arena. False when it is exhausted. */
bool tt_host_arena_charge(struct tt_host_arena *arena, size_t bytes);
void tt_host_arena_credit(struct tt_host_arena *arena, size_t bytes);
struct tt_host_run { /* grains that are neither live nor free */
    size_t first, count;
};
/* End a live allocation; its memory stays apart until it is given back, for which who needs memory
 * waits: the caller waits for nobody. False when ptr is not the base of one. */
bool tt_host_arena_take(struct tt_host_arena *arena, const void *ptr, struct tt_host_run *run_out);
void tt_host_arena_give(struct tt_host_arena *arena, const struct tt_host_run *taken);
/* The run that was taken is kept for longer, nobody waits for it; it is about to be given back. */
void tt_host_arena_keep(struct tt_host_arena *arena);
void tt_host_arena_unkeep(struct tt_host_arena *arena);
/* Both at once. */
bool tt_host_arena_free(struct tt_host_arena *arena, const void *ptr);
/* Make bytes of a live allocation zeros; many of them take no memory until they are written. */
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
/* The live allocation that begins last below `end`, which is at most the end of the arena. */
bool tt_host_arena_last(const struct tt_host_arena *arena, const char *end,
                        struct tt_host_block *block_out);
/* Give back free pages until at most keep_bytes of them are left. */
void tt_host_arena_trim(struct tt_host_arena *arena, size_t keep_bytes);
