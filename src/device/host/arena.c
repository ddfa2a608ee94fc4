/* First fit over the gaps between live allocations. Low addresses are reused first, so that pages
 * that were touched once serve again; lookups are a binary search under a read lock. */
#include "arena.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GRAIN = 512, PAGE = 4096, FIRST_ROOM = 64 };

void host_arena_init(struct host_arena *arena, char *base, size_t bytes, int fd, size_t fd_offset,
                     size_t pool_bytes)
{
    memset(arena, 0, sizeof(*arena));
    pthread_rwlock_init(&arena->lock, NULL);
    arena->base = base;
    arena->bytes = bytes;
    arena->fd = fd;
    arena->fd_offset = fd_offset;
    arena->pool_bytes = pool_bytes;
}

/* First block whose base is above ptr. */
static size_t upper(const struct host_arena *arena, const char *ptr)
{
    size_t low = 0;
    size_t high = arena->nblocks;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (arena->blocks[mid].base <= ptr) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

static bool make_room(struct host_arena *arena)
{
    if (arena->nblocks < arena->room) return true;
    size_t room = arena->room ? arena->room * 2 : FIRST_ROOM;
    struct host_block *blocks = realloc(arena->blocks, room * sizeof(*blocks));
    if (!blocks) return false;
    arena->blocks = blocks;
    arena->room = room;
    return true;
}

static char *align_up(char *ptr, size_t grain)
{
    return (char *)(((uintptr_t)ptr + grain - 1) / grain * grain);
}

static bool place(struct host_arena *arena, size_t bytes, size_t grain, size_t *index, char **base)
{
    char *from = arena->base;
    for (size_t i = 0; i <= arena->nblocks; i++) {
        char *to = i < arena->nblocks ? arena->blocks[i].base : arena->base + arena->bytes;
        char *start = align_up(from, grain);
        if (start <= to && (size_t)(to - start) >= bytes) {
            *index = i;
            *base = start;
            return true;
        }
        if (i < arena->nblocks) from = arena->blocks[i].base + arena->blocks[i].bytes;
    }
    return false;
}

bool host_arena_alloc(struct host_arena *arena, size_t bytes, unsigned kind, unsigned flags,
                      void **ptr_out)
{
    size_t grain = bytes >= PAGE ? PAGE : GRAIN;
    size_t index = 0;
    char *base = NULL;
    if (bytes == 0 || bytes > arena->bytes) return false;
    size_t rounded = (bytes + grain - 1) / grain * grain;
    pthread_rwlock_wrlock(&arena->lock);
    bool good = make_room(arena) && place(arena, rounded, grain, &index, &base);
    if (good) {
        memmove(&arena->blocks[index + 1], &arena->blocks[index],
                (arena->nblocks - index) * sizeof(arena->blocks[0]));
        arena->blocks[index] = (struct host_block){base, rounded, bytes, kind, flags};
        arena->nblocks++;
        arena->used_bytes += rounded;
        arena->warm_bytes -= rounded < arena->warm_bytes ? rounded : arena->warm_bytes;
        *ptr_out = base;
    }
    pthread_rwlock_unlock(&arena->lock);
    return good;
}

/* Give whole pages of a freed block back unless they fit into the pool. */
static void give_back(struct host_arena *arena, const struct host_block *block)
{
    if (arena->warm_bytes + block->bytes <= arena->pool_bytes) {
        arena->warm_bytes += block->bytes;
        return;
    }
    char *from = align_up(block->base, PAGE);
    char *to = block->base + block->bytes;
    size_t whole = to > from ? (size_t)(to - from) / PAGE * PAGE : 0;
    off_t offset = (off_t)(arena->fd_offset + (size_t)(from - arena->base));
    if (whole &&
        fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, (off_t)whole)) {
        memset(from, 0, whole); /* no holes here: at least nothing of it is seen again */
    }
}

bool host_arena_free(struct host_arena *arena, void *ptr)
{
    pthread_rwlock_wrlock(&arena->lock);
    size_t above = upper(arena, ptr);
    bool good = above > 0 && arena->blocks[above - 1].base == (char *)ptr;
    if (good) {
        struct host_block block = arena->blocks[above - 1];
        memmove(&arena->blocks[above - 1], &arena->blocks[above],
                (arena->nblocks - above) * sizeof(arena->blocks[0]));
        arena->nblocks--;
        arena->used_bytes -= block.bytes;
        give_back(arena, &block);
    }
    pthread_rwlock_unlock(&arena->lock);
    return good;
}

bool host_arena_find(struct host_arena *arena, const void *ptr, struct host_block *block_out)
{
    pthread_rwlock_rdlock(&arena->lock);
    size_t above = upper(arena, ptr);
    bool good = false;
    if (above > 0) {
        const struct host_block *block = &arena->blocks[above - 1];
        good = (const char *)ptr < block->base + block->bytes;
        if (good) *block_out = *block;
    }
    pthread_rwlock_unlock(&arena->lock);
    return good;
}
