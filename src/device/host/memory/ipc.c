/* Tokens that name memory and events for other processes, and what was opened of theirs.
 *
 * A token says where the owner's range is (process, descriptor), what it is (device and inode of
 * its memfd, so that a reused process number opens nothing wrong) and which bytes are meant. Memory
 * is mapped once per allocation and counted; cells of events are mapped once per page and stay. */
#include "ipc.h"

#include "base/mem.h"
#include "device/host/check/block.h"
#include "device/host/host.h"
#include "device/host/process/ends.h"
#include "memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, TOKEN_MEMORY = 0x6d747474, TOKEN_EVENT = 0x65747474, TOKEN_POOL = 0x70747474 };
enum { CELL_BYTES = TT_LINE_BYTES, CELLS = PAGE / CELL_BYTES };

struct token {
    uint32_t magic;
    int32_t pid;
    int32_t fd;
    uint32_t pool; /* the owner's number of it; 0: of none */
    uint64_t device, inode;
    uint64_t offset, bytes;
};
_Static_assert(sizeof(struct token) <= TT_IPC_BYTES, "a token fits CUDA's handles");

struct tt_host_opened {
    struct tt_host_opened *next;
    struct token token;
    char *map; /* owned, unless of a cell's page */
    size_t map_bytes;
    char *base;
    unsigned count;
    int device;                /* that was current when it was opened */
    struct tt_host_ends *ends; /* owned; closed, but work may still use it */
    bool pooled;               /* a pool's: no matter of cudaIpcCloseMemHandle */
};

struct tt_host_cell_page {
    struct tt_host_cell_page *next;
    char *base;    /* control memory */
    uint64_t free; /* bit per cell */
};

/* ---- tokens ---- */

static int make_token(uint32_t magic, const void *ptr, size_t bytes, struct token *token)
{
    const struct tt_range *range = tuttiHostRange();
    struct stat status;
    if (!range || fstat(range->memfd, &status)) return TT_HOST_INVALID_VALUE;
    *token = (struct token){
        .magic = magic,
        .pid = getpid(),
        .fd = range->memfd,
        .device = status.st_dev,
        .inode = status.st_ino,
        .offset = (uint64_t)((const char *)ptr - range->base),
        .bytes = bytes,
    };
    return TT_HOST_OK;
}

static bool parse_token(uint32_t magic, const unsigned char *bytes, struct token *token)
{
    memcpy(token, bytes, sizeof(*token));
    return token->magic == magic && token->bytes && token->bytes <= SIZE_MAX / 2 &&
           token->offset <= SIZE_MAX / 2;
}

static int read_token(uint32_t magic, const unsigned char *bytes, struct token *token)
{
    struct token own;
    if (!parse_token(magic, bytes, token)) return TT_HOST_INVALID_VALUE;
    int rc = make_token(magic, tuttiHostRange() ? tuttiHostRange()->base : NULL, 1, &own);
    if (rc) return rc;
    bool mine = own.inode == token->inode && own.device == token->device;
    return mine ? TT_HOST_DEVICE_UNINITIALIZED : TT_HOST_OK;
}

/* The range behind the descriptor is the one that the token speaks of. */
static bool fits(int fd, const struct token *token)
{
    struct stat status;
    return !fstat(fd, &status) && status.st_ino == token->inode && status.st_dev == token->device &&
           token->offset + token->bytes <= (uint64_t)status.st_size;
}

/* The owner's memfd, or -1. */
static int open_range(const struct token *token)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", token->pid, token->fd);
    if (stat(path, &status) || status.st_ino != token->inode || status.st_dev != token->device)
        return -1;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fits(fd, token)) return fd;
    close(fd);
    return -1;
}

static struct tt_host_opened *map_part(int fd, const struct token *token)
{
    size_t from = token->offset / PAGE * PAGE;
    size_t bytes = tt_round_up(token->offset - from + token->bytes, PAGE);
    struct tt_host_opened *opened = tt_calloc(1, sizeof(*opened));
    void *map = MAP_FAILED;
    if (opened) map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)from);
    if (map == MAP_FAILED) {
        free(opened);
        return NULL;
    }
    madvise(map, bytes, MADV_DONTDUMP);
    opened->token = *token;
    opened->map = map;
    opened->map_bytes = bytes;
    opened->base = opened->map + (token->offset - from);
    return opened;
}

static struct tt_host_opened *map_token(const struct token *token)
{
    int fd = open_range(token);
    struct tt_host_opened *opened = fd < 0 ? NULL : map_part(fd, token);
    if (fd >= 0) close(fd);
    return opened;
}

static struct tt_host_opened *find_opened(struct tt_host_opened *list, const struct token *token)
{
    for (; list; list = list->next) {
        const struct token *other = &list->token;
        if (!list->pooled && other->inode == token->inode && other->device == token->device &&
            other->offset == token->offset)
            return list;
    }
    return NULL;
}

/* ---- memory ---- */

static void put_token(const struct token *token, unsigned char *token_out)
{
    memset(token_out, 0, TT_IPC_BYTES);
    memcpy(token_out, token, sizeof(*token));
}

static int write_token(uint32_t magic, const void *ptr, size_t bytes, unsigned char *token_out)
{
    struct token token;
    int rc = make_token(magic, ptr, bytes, &token);
    if (!rc) put_token(&token, token_out);
    return rc;
}

int tt_host_ipc_get(const void *ptr, unsigned char token_out[TT_IPC_BYTES])
{
    struct tt_host_block block;
    int device;
    if (!tt_host_memory_find(ptr, &block, &device) || block.kind != TT_MEMORY_DEVICE)
        return TT_HOST_INVALID_VALUE;
    return write_token(TOKEN_MEMORY, block.base, block.asked, token_out);
}

/* Unmap what was closed and nothing uses any more. Lock held. */
static void unmap_closed(void)
{
    for (struct tt_host_opened **link = &tt_host.sharing.closed; *link;) {
        struct tt_host_opened *one = *link;
        if (!tt_host_ends_reached(one->ends)) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        munmap(one->map, one->map_bytes);
        tt_host_ends_free(one->ends);
        free(one);
    }
}

/* Lock held. */
static void list_memory(struct tt_host_opened *opened)
{
    opened->device = tuttiHostGetDevice();
    opened->next = tt_host.sharing.memory;
    tt_host.sharing.memory = opened;
    atomic_fetch_add_explicit(&tt_host.sharing.nmemory, 1, memory_order_release);
    unmap_closed();
}

int tuttiHostIpcOpen(const unsigned char token_bytes[TT_IPC_BYTES], void **ptr_out)
{
    struct token token;
    int rc =
        tt_host_forked() ? TT_HOST_NOT_INITIALIZED : read_token(TOKEN_MEMORY, token_bytes, &token);
    if (rc) return rc;
    pthread_mutex_lock(&tt_host.sharing.lock);
    struct tt_host_opened *opened = find_opened(tt_host.sharing.memory, &token);
    if (opened && opened->token.bytes != token.bytes) {
        rc = TT_HOST_INVALID_VALUE; /* freed and allocated anew over there: close the old one first
                                     */
    } else if (!opened) {
        opened = map_token(&token);
        rc = opened ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
        if (opened) list_memory(opened);
    }
    if (!rc) {
        opened->count++;
        *ptr_out = opened->base;
    }
    pthread_mutex_unlock(&tt_host.sharing.lock);
    return rc;
}

/* No lookup finds it any more; it stays mapped while work that was queued before may use it, for
 * the closing thread must not wait for that: the work may be waiting for it. Lock held. */
static int close_last(struct tt_host_opened **link)
{
    struct tt_host_opened *last = *link;
    if (tt_host_ends_note(&last->ends)) return TT_HOST_OUT_OF_MEMORY;
    *link = last->next;
    atomic_fetch_sub_explicit(&tt_host.sharing.nmemory, 1, memory_order_release);
    last->next = tt_host.sharing.closed;
    tt_host.sharing.closed = last;
    return TT_HOST_OK;
}

static int close_opened(void *ptr, bool pooled)
{
    struct tt_host_opened **link = &tt_host.sharing.memory;
    size_t gone_bytes = 0;
    pthread_mutex_lock(&tt_host.sharing.lock);
    while (*link && ((*link)->base != ptr || (*link)->pooled != pooled)) {
        link = &(*link)->next;
    }
    int rc = *link ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
    if (!rc && (*link)->count == 1) {
        gone_bytes = (*link)->token.bytes;
        rc = close_last(link);
    } else if (!rc) {
        (*link)->count--;
    }
    unmap_closed();
    pthread_mutex_unlock(&tt_host.sharing.lock);
    if (tt_host_checks() && !rc && gone_bytes && !pooled)
        tt_host_check_withdraw("closing", ptr, gone_bytes);
    return rc;
}

void tt_host_ipc_reclaim(void)
{
    pthread_mutex_lock(&tt_host.sharing.lock);
    unmap_closed();
    pthread_mutex_unlock(&tt_host.sharing.lock);
}

void tt_host_ipc_reset(int device)
{
    pthread_mutex_lock(&tt_host.sharing.lock);
    for (struct tt_host_opened **link = &tt_host.sharing.memory; *link;) {
        if ((*link)->device != device || close_last(link)) link = &(*link)->next;
    }
    unmap_closed();
    pthread_mutex_unlock(&tt_host.sharing.lock);
}

int tuttiHostIpcClose(void *ptr)
{
    return close_opened(ptr, false);
}

bool tuttiHostIpcMapped(const void *ptr, struct tt_pointer *pointer_out)
{
    bool found = false;
    if (!atomic_load_explicit(&tt_host.sharing.nmemory, memory_order_acquire)) return false;
    pthread_mutex_lock(&tt_host.sharing.lock);
    for (const struct tt_host_opened *opened = tt_host.sharing.memory; opened && !found;
         opened = opened->next) {
        found = (size_t)((const char *)ptr - opened->base) < opened->token.bytes;
        if (found) {
            *pointer_out = (struct tt_pointer){TT_MEMORY_DEVICE, opened->device, opened->base,
                                               opened->token.bytes};
        }
    }
    pthread_mutex_unlock(&tt_host.sharing.lock);
    return found;
}

/* ---- memory of pools ---- */

/* A descriptor opened anew has a position of its own, which goes along wherever it is passed and
 * which is not needed for mapping: it says which pool was exported. */
int tt_host_ipc_export(uint32_t pool)
{
    const struct tt_range *range = tuttiHostRange();
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", range ? range->memfd : -1);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || lseek(fd, (off_t)pool, SEEK_SET) == (off_t)pool) return fd;
    close(fd);
    return -1;
}

uint32_t tt_host_ipc_exported(int fd)
{
    const char wanted[] = "/memfd:tutti-range";
    char path[64];
    char target[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t len = fd < 0 ? -1 : readlink(path, target, sizeof(target));
    if (len < (ssize_t)sizeof(wanted) - 1 || memcmp(target, wanted, sizeof(wanted) - 1) != 0)
        return 0;
    off_t pool = lseek(fd, 0, SEEK_CUR);
    return pool > 0 && pool <= (off_t)UINT32_MAX ? (uint32_t)pool : 0;
}

int tt_host_ipc_name(const void *ptr, uint32_t pool, unsigned char token_out[TT_IPC_BYTES])
{
    struct tt_host_block block;
    struct token token;
    int device;
    if (!tt_host_memory_find(ptr, &block, &device) || block.base != ptr)
        return TT_HOST_INVALID_VALUE;
    int rc = make_token(TOKEN_POOL, block.base, block.asked, &token);
    if (rc) return rc;
    token.pool = pool;
    put_token(&token, token_out);
    return TT_HOST_OK;
}

int tt_host_ipc_map(int fd, const unsigned char token_bytes[TT_IPC_BYTES], void **ptr_out)
{
    struct token token;
    if (!parse_token(TOKEN_POOL, token_bytes, &token) || !fits(fd, &token) ||
        token.pool != tt_host_ipc_exported(fd))
        return TT_HOST_INVALID_VALUE;
    struct tt_host_opened *opened = map_part(fd, &token);
    if (!opened) return TT_HOST_OUT_OF_MEMORY;
    opened->count = 1;
    opened->pooled = true;
    pthread_mutex_lock(&tt_host.sharing.lock);
    list_memory(opened);
    pthread_mutex_unlock(&tt_host.sharing.lock);
    *ptr_out = opened->base;
    return TT_HOST_OK;
}

void tt_host_ipc_unmap(void *ptr)
{
    close_opened(ptr, true);
}

/* ---- cells of events ---- */

static struct tt_host_cell_page *new_cells(void)
{
    void *base = NULL;
    struct tt_host_cell_page *page = tt_calloc(1, sizeof(*page));
    if (!page || tuttiHostControlAlloc(PAGE, &base)) {
        free(page);
        return NULL;
    }
    page->base = base;
    page->free = UINT64_MAX >> (64 - CELLS);
    page->next = tt_host.sharing.own;
    tt_host.sharing.own = page;
    return page;
}

/* All records are reached; a waiter for one that never will be keeps the cell from reuse. */
static bool is_complete(const struct tt_host_cell *cell)
{
    return atomic_load(&cell->reached) == atomic_load(&cell->recorded) << TT_HOST_CELL_BITS;
}

static struct tt_host_cell *cell_at(const struct tt_host_cell_page *page, int i)
{
    return (struct tt_host_cell *)(void *)(page->base + (size_t)i * CELL_BYTES);
}

/* Take a free cell of the page, or NULL. */
static struct tt_host_cell *take_of(struct tt_host_cell_page *page)
{
    for (uint64_t left = page->free; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        if (!is_complete(cell_at(page, i))) continue;
        page->free &= ~(UINT64_C(1) << i);
        return cell_at(page, i);
    }
    return NULL;
}

struct tt_host_cell *tt_host_cell_take(void)
{
    struct tt_host_cell *cell = NULL;
    pthread_mutex_lock(&tt_host.sharing.lock);
    for (struct tt_host_cell_page *page = tt_host.sharing.own; page && !cell; page = page->next) {
        cell = take_of(page);
    }
    struct tt_host_cell_page *fresh = cell ? NULL : new_cells();
    if (fresh) cell = take_of(fresh);
    pthread_mutex_unlock(&tt_host.sharing.lock);
    return cell;
}

/* Its numbers go on: another process may still wait for one of them. */
void tt_host_cell_give(struct tt_host_cell *cell)
{
    pthread_mutex_lock(&tt_host.sharing.lock);
    for (struct tt_host_cell_page *page = tt_host.sharing.own; page; page = page->next) {
        size_t offset = (size_t)((char *)cell - page->base);
        if (offset < PAGE) page->free |= UINT64_C(1) << offset / CELL_BYTES;
    }
    pthread_mutex_unlock(&tt_host.sharing.lock);
}

static uint64_t with_reached(uint64_t reached, uint64_t number)
{
    uint64_t all = reached >> TT_HOST_CELL_BITS;
    uint64_t bits = reached & ((UINT64_C(1) << TT_HOST_CELL_BITS) - 1);
    if (number <= all) return reached;
    if (number - all > TT_HOST_CELL_BITS)
        return number << TT_HOST_CELL_BITS; /* give up on old ones */
    bits |= UINT64_C(1) << (number - all - 1);
    while (bits & 1) {
        bits >>= 1;
        all++;
    }
    return all << TT_HOST_CELL_BITS | bits;
}

void tt_host_cell_reach(struct tt_host_cell *cell, uint64_t number)
{
    uint64_t before = atomic_load_explicit(&cell->reached, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&cell->reached, &before,
                                                  with_reached(before, number),
                                                  memory_order_acq_rel, memory_order_relaxed)) {
    }
}

int tt_host_cell_export(const struct tt_host_cell *cell, unsigned char token_out[TT_IPC_BYTES])
{
    return write_token(TOKEN_EVENT, cell, sizeof(*cell), token_out);
}

int tt_host_cell_import(const unsigned char token_bytes[TT_IPC_BYTES],
                        struct tt_host_cell **cell_out)
{
    struct token token;
    int rc = read_token(TOKEN_EVENT, token_bytes, &token);
    size_t within = token.offset % PAGE;
    if (rc) return rc;
    if (within % CELL_BYTES || token.bytes != sizeof(struct tt_host_cell))
        return TT_HOST_INVALID_VALUE;
    token.offset -= within;
    token.bytes = PAGE;
    pthread_mutex_lock(&tt_host.sharing.lock);
    struct tt_host_opened *page = find_opened(tt_host.sharing.pages, &token);
    if (!page) {
        page = map_token(&token);
        if (page) page->next = tt_host.sharing.pages;
        if (page) tt_host.sharing.pages = page;
    }
    pthread_mutex_unlock(&tt_host.sharing.lock);
    if (!page) return TT_HOST_INVALID_VALUE;
    *cell_out = (struct tt_host_cell *)(void *)(page->base + within);
    return TT_HOST_OK;
}
