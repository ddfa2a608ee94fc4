/* Segregated fits: free runs of grains hang in bins by size (a power of two and eight steps above
 * it), found by two bit scans; neighbours are joined at once by tags at both ends of a run.
 *
 * A tag is not zero for the first grain of a live block, and for the first and the last grain of a
 * free run: so freeing a block reads the tags before and behind it. Tags lie outside of the
 * memory they speak of, which therefore stays sparse and cannot be broken by its users.
 *
 *     live   | 1 | 0 |  --  | flags 16 | kind 3 | slack 12 | grains 30 |
 *     free   | 0 | 1 |  --  | warm 30 | grains 30 |      (last grain: the same with warm 0)
 *
 * Warm grains of a run are those that still hold pages; taken to be the first ones of it. */
#include "arena.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE_PAGE = 2 << 20, NIL = -1, LOOK = 8, LOOK_HARD = 4096 };
enum { ZEROED_BY_HAND = 256 << 10 }; /* bytes below which a call of the system costs more */
enum {
    WARM_SHIFT = TT_HOST_TAG_GRAINS_BITS,
    SLACK_SHIFT = TT_HOST_TAG_GRAINS_BITS,
    KIND_SHIFT = SLACK_SHIFT + TT_HOST_TAG_SLACK_BITS,
    FLAGS_SHIFT = 45
};
static const uint64_t grains_mask = (UINT64_C(1) << TT_HOST_TAG_GRAINS_BITS) - 1;
static const uint64_t is_live = UINT64_C(1) << TT_HOST_TAG_LIVE_BIT;
static const uint64_t is_free = UINT64_C(1) << 62;

struct run { /* free grains that hang in no bin */
    size_t first, count, warm;
};

static uint64_t tag_of(const struct tt_host_arena *arena, size_t grain)
{
    return atomic_load_explicit(&arena->tags[grain].what, memory_order_relaxed);
}

static void set_tag(struct tt_host_arena *arena, size_t grain, uint64_t what)
{
    atomic_store_explicit(&arena->tags[grain].what, what, memory_order_release);
}

/* ---- bins ---- */

struct bin {
    unsigned row, column;
};

static struct bin bin_of(size_t count)
{
    if (count < TT_HOST_BIN_COLUMNS) return (struct bin){0, (unsigned)count};
    unsigned power = 63 - (unsigned)__builtin_clzll(count);
    return (struct bin){power - 2, (unsigned)(count >> (power - 3)) & 7};
}

static void insert(struct tt_host_arena *arena, const struct run *run)
{
    if (!run->count) return;
    struct bin bin = bin_of(run->count);
    uint32_t *head = &arena->bins[bin.row][bin.column];
    struct tt_host_tag *tag = &arena->tags[run->first];
    set_tag(arena, run->first + run->count - 1, is_free | run->count);
    set_tag(arena, run->first, is_free | (uint64_t)run->warm << WARM_SHIFT | run->count);
    tag->next = *head;
    tag->prev = (uint32_t)NIL;
    if (*head != (uint32_t)NIL) arena->tags[*head].prev = (uint32_t)run->first;
    *head = (uint32_t)run->first;
    arena->columns[bin.row] |= (uint8_t)(1u << bin.column);
    arena->rows |= 1u << bin.row;
    arena->warm += run->warm;
}

static struct run remove_run(struct tt_host_arena *arena, size_t first)
{
    struct tt_host_tag *tag = &arena->tags[first];
    uint64_t what = tag_of(arena, first);
    struct run run = {first, what & grains_mask, what >> WARM_SHIFT & grains_mask};
    struct bin bin = bin_of(run.count);
    if (tag->next != (uint32_t)NIL) arena->tags[tag->next].prev = tag->prev;
    if (tag->prev != (uint32_t)NIL) {
        arena->tags[tag->prev].next = tag->next;
    } else {
        arena->bins[bin.row][bin.column] = tag->next;
        if (tag->next == (uint32_t)NIL) arena->columns[bin.row] &= (uint8_t) ~(1u << bin.column);
        if (!arena->columns[bin.row]) arena->rows &= ~(1u << bin.row);
    }
    set_tag(arena, run.first + run.count - 1, 0);
    set_tag(arena, run.first, 0);
    arena->warm -= run.warm;
    return run;
}

/* The run grown by its free neighbours. */
static struct run join(struct tt_host_arena *arena, struct run run)
{
    uint64_t before = run.first ? tag_of(arena, run.first - 1) : 0;
    size_t end = run.first + run.count;
    if (end < arena->limit && tag_of(arena, end) & is_free) {
        struct run behind = remove_run(arena, end);
        run.count += behind.count;
        run.warm += behind.warm;
    }
    if (before & is_free) {
        struct run front = remove_run(arena, run.first - (before & grains_mask));
        run.first = front.first;
        run.count += front.count;
        run.warm += front.warm;
    }
    return run;
}

/* ---- making ---- */

static size_t tag_bytes(const struct tt_host_arena *arena)
{
    size_t tags = arena->limit * sizeof(struct tt_host_tag);
    return tags + tt_host_bitset_bytes(arena->limit);
}

bool tt_host_arena_init(struct tt_host_arena *arena, const struct tt_host_arena_ground *ground)
{
    memset(arena, 0, sizeof(*arena));
    pthread_mutex_init(&arena->lock, NULL);
    pthread_cond_init(&arena->returned, NULL);
    arena->base = ground->base;
    arena->bytes = ground->bytes;
    arena->grain = ground->grain;
    arena->shift = (unsigned)__builtin_ctzll(ground->grain);
    arena->limit = ground->bytes / ground->grain;
    arena->fd = ground->fd;
    arena->fd_offset = ground->fd_offset;
    arena->warm_most = ground->pool_bytes / ground->grain;
    memset(arena->bins, 0xff, sizeof(arena->bins)); /* NIL */
    void *tags = mmap(NULL, tag_bytes(arena), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (tags == MAP_FAILED) return false;
    madvise(tags, tag_bytes(arena), MADV_DONTDUMP);
    arena->tags = tags;
    tt_host_bitset_init(&arena->starts, arena->tags + arena->limit, arena->limit);
    insert(arena, &(struct run){0, arena->limit, 0});
    return true;
}

void tt_host_arena_fini(struct tt_host_arena *arena)
{
    if (arena->tags) munmap(arena->tags, tag_bytes(arena));
    arena->tags = NULL;
}

/* ---- allocation ---- */

struct ask {
    size_t count, align; /* grains */
};

static size_t up(size_t value, size_t align)
{
    return (value + align - 1) & ~(align - 1);
}

static bool fits(const struct tt_host_arena *arena, size_t first, const struct ask *ask)
{
    size_t count = tag_of(arena, first) & grains_mask;
    return up(first, ask->align) + ask->count <= first + count;
}

/* A run of the bin that fits, among its first `look` ones; SIZE_MAX when there is none. */
static size_t look_in(const struct tt_host_arena *arena, struct bin bin, const struct ask *ask,
                      int look)
{
    uint32_t first = arena->bins[bin.row][bin.column];
    for (; first != (uint32_t)NIL && look > 0; first = arena->tags[first].next, look--) {
        if (fits(arena, first, ask)) return first;
    }
    return SIZE_MAX;
}

/* The first run of the lowest bin from `bin` on that is not empty. */
static size_t lowest(const struct tt_host_arena *arena, struct bin bin)
{
    unsigned columns = arena->columns[bin.row] & (0xffu << bin.column);
    if (!columns) {
        uint32_t rows = arena->rows & (UINT32_MAX << bin.row) & ~(1u << bin.row);
        if (!rows) return SIZE_MAX;
        bin.row = (unsigned)__builtin_ctz(rows);
        columns = arena->columns[bin.row];
    }
    return arena->bins[bin.row][__builtin_ctz(columns)];
}

/* Nearly full: look into every run that may be large enough. */
static size_t look_hard(const struct tt_host_arena *arena, const struct ask *ask)
{
    struct bin bin = bin_of(ask->count);
    size_t found = SIZE_MAX;
    while (found == SIZE_MAX && bin.row < TT_HOST_BIN_ROWS) {
        found = look_in(arena, bin, ask, LOOK_HARD);
        bin.column = (bin.column + 1) % TT_HOST_BIN_COLUMNS;
        if (!bin.column) bin.row++;
    }
    return found;
}

static size_t search(const struct tt_host_arena *arena, const struct ask *ask)
{
    size_t found = look_in(arena, bin_of(ask->count), ask, LOOK); /* what was freed comes back */
    if (found != SIZE_MAX) return found;
    size_t most = ask->count + ask->align - 1;
    if (most >= TT_HOST_BIN_COLUMNS) { /* so that every run of the bin is large enough */
        most += (UINT64_C(1) << (60 - __builtin_clzll(most))) - 1;
    }
    if (most <= grains_mask) found = lowest(arena, bin_of(most));
    return found != SIZE_MAX ? found : look_hard(arena, ask);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Cut the asked grains out of a run; what is left goes back. Returns the first grain. */
static size_t carve(struct tt_host_arena *arena, size_t found, const struct ask *ask)
{
    struct run run = remove_run(arena, found);
    size_t first = up(run.first, ask->align);
    struct run front = {run.first, first - run.first, least(run.warm, first - run.first)};
    size_t warm = least(run.warm - front.warm, ask->count);
    struct run back = {first + ask->count, run.count - front.count - ask->count,
                       run.warm - front.warm - warm};
    insert(arena, &front);
    insert(arena, &back);
    return first;
}

static struct ask ask_for(const struct tt_host_arena *arena, size_t bytes)
{
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : bytes >= PAGE ? PAGE : arena->grain;
    size_t round = bytes >= PAGE ? PAGE : arena->grain;
    return (struct ask){up(bytes, round) / arena->grain, align / arena->grain};
}

bool tt_host_arena_has_room(const struct tt_host_arena *arena, size_t bytes)
{
    size_t used = atomic_load_explicit(&arena->used_bytes, memory_order_relaxed);
    return used <= arena->bytes && bytes <= arena->bytes - used;
}

bool tt_host_arena_charge(struct tt_host_arena *arena, size_t bytes)
{
    pthread_mutex_lock(&arena->lock);
    bool good = tt_host_arena_has_room(arena, bytes);
    if (good) atomic_fetch_add_explicit(&arena->used_bytes, bytes, memory_order_relaxed);
    pthread_mutex_unlock(&arena->lock);
    return good;
}

void tt_host_arena_credit(struct tt_host_arena *arena, size_t bytes)
{
    atomic_fetch_sub_explicit(&arena->used_bytes, bytes, memory_order_relaxed);
}

/* A run for the asked grains, if need be one of looser alignment. Lock held. */
static size_t find_run(const struct tt_host_arena *arena, struct ask *ask)
{
    size_t found = search(arena, ask);
    if (found != SIZE_MAX || ask->align <= PAGE / arena->grain) return found;
    struct ask loose = {ask->count, PAGE / arena->grain};
    found = search(arena, &loose);
    if (found != SIZE_MAX) *ask = loose;
    return found;
}

bool tt_host_arena_alloc(struct tt_host_arena *arena, const struct tt_host_want *want,
                         void **ptr_out)
{
    if (want->bytes == 0 || want->bytes > arena->bytes) return false;
    struct ask ask = ask_for(arena, want->bytes);
    size_t slack = ask.count * arena->grain - want->bytes;
    size_t found = SIZE_MAX;
    pthread_mutex_lock(&arena->lock);
    while (tt_host_arena_has_room(arena, ask.count * arena->grain)) {
        found = find_run(arena, &ask);
        if (found != SIZE_MAX || !arena->away) break;
        pthread_cond_wait(&arena->returned, &arena->lock);
    }
    if (found != SIZE_MAX) {
        size_t first = carve(arena, found, &ask);
        atomic_store_explicit(&arena->tags[first].id, ++arena->next_id, memory_order_relaxed);
        set_tag(arena, first,
                is_live | (uint64_t)want->flags << FLAGS_SHIFT |
                    (uint64_t)want->kind << KIND_SHIFT | (uint64_t)slack << SLACK_SHIFT |
                    ask.count);
        tt_host_bitset_add(&arena->starts, first);
        atomic_fetch_add_explicit(&arena->used_bytes, ask.count * arena->grain,
                                  memory_order_relaxed);
        *ptr_out = arena->base + first * arena->grain;
    }
    pthread_mutex_unlock(&arena->lock);
    return found != SIZE_MAX;
}

/* ---- freeing ---- */

/* Whole pages go back and are zeros when they are touched again. */
static void punch_bytes(const struct tt_host_arena *arena, size_t from, size_t to)
{
    if (from >= to) return;
    if (arena->fd < 0 && !madvise(arena->base + from, to - from, MADV_REMOVE)) return;
    if (fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)(arena->fd_offset + from), (off_t)(to - from))) {
        memset(arena->base + from, 0,
               to - from); /* no holes here: at least nothing of it is seen */
    }
}

/* The pages of a run beyond its first `keep` grains go back. Not under the lock: it takes long. */
static void punch(const struct tt_host_arena *arena, const struct run *run, size_t keep)
{
    punch_bytes(arena, up((run->first + keep) * arena->grain, PAGE),
                (run->first + run->count) * arena->grain / PAGE * PAGE);
}

void tt_host_arena_zero(const struct tt_host_arena *arena, void *ptr, size_t bytes)
{
    size_t at = (size_t)((const char *)ptr - arena->base), end = at + bytes;
    size_t from = up(at, PAGE), to = end / PAGE * PAGE;
    if (from >= to || bytes < ZEROED_BY_HAND) {
        memset(ptr, 0, bytes);
        return;
    }
    memset(ptr, 0, from - at);
    punch_bytes(arena, from, to);
    memset(arena->base + to, 0, end - to);
}

/* Lock held. */
static void come_back(struct tt_host_arena *arena)
{
    arena->away--;
    pthread_cond_broadcast(&arena->returned);
}

/* Put a free run back, with no more warm grains than may be kept. Called and left with the lock,
 * which others have while pages are given back: then nothing but the run itself hangs in no bin,
 * unless it has too few pages of its own. */
static void put_back(struct tt_host_arena *arena, struct run run)
{
    bool pages = run.count * arena->grain >= (size_t)2 * PAGE || arena->grain == PAGE;
    if (!pages) run = join(arena, run);
    size_t keep = arena->warm < arena->warm_most ? arena->warm_most - arena->warm : 0;
    if (run.warm > keep && (pages || run.count * arena->grain >= (size_t)2 * PAGE)) {
        arena->warm += keep; /* promised */
        arena->away++;
        pthread_mutex_unlock(&arena->lock);
        punch(arena, &run, keep);
        pthread_mutex_lock(&arena->lock);
        arena->warm -= keep;
        run.warm = keep;
        come_back(arena);
    }
    run = join(arena, run);
    insert(arena, &run);
}

static struct run take_live(struct tt_host_arena *arena, size_t first)
{
    struct run run = {first, tag_of(arena, first) & grains_mask, 0};
    run.warm = run.count;
    tt_host_bitset_remove(&arena->starts, first);
    set_tag(arena, first, 0);
    atomic_fetch_sub_explicit(&arena->used_bytes, run.count * arena->grain, memory_order_relaxed);
    return run;
}

bool tt_host_arena_take(struct tt_host_arena *arena, const void *ptr, struct tt_host_run *run_out)
{
    size_t offset = (size_t)((const char *)ptr - arena->base);
    if (offset >= arena->bytes || offset % arena->grain) return false;
    pthread_mutex_lock(&arena->lock);
    bool live = tag_of(arena, offset / arena->grain) & is_live;
    if (live) {
        struct run run = take_live(arena, offset / arena->grain);
        *run_out = (struct tt_host_run){run.first, run.count};
        arena->away++;
    }
    pthread_mutex_unlock(&arena->lock);
    return live;
}

void tt_host_arena_give(struct tt_host_arena *arena, const struct tt_host_run *taken)
{
    struct run run = {taken->first, taken->count, taken->count};
    pthread_mutex_lock(&arena->lock);
    put_back(arena, run);
    come_back(arena);
    pthread_mutex_unlock(&arena->lock);
}

void tt_host_arena_keep(struct tt_host_arena *arena)
{
    pthread_mutex_lock(&arena->lock);
    come_back(arena); /* as far as others are concerned */
    pthread_mutex_unlock(&arena->lock);
}

void tt_host_arena_unkeep(struct tt_host_arena *arena)
{
    pthread_mutex_lock(&arena->lock);
    arena->away++;
    pthread_mutex_unlock(&arena->lock);
}

bool tt_host_arena_free(struct tt_host_arena *arena, const void *ptr)
{
    struct tt_host_run run;
    if (!tt_host_arena_take(arena, ptr, &run)) return false;
    tt_host_arena_give(arena, &run);
    return true;
}

/* ---- looking up ---- */

bool tt_host_arena_find(const struct tt_host_arena *arena, const void *ptr,
                        struct tt_host_block *block_out)
{
    size_t offset = (size_t)((const char *)ptr - arena->base);
    if (offset >= arena->bytes) return false;
    size_t grain = offset >> arena->shift;
    size_t first = grain; /* as a rule the start is asked for */
    uint64_t what = atomic_load_explicit(&arena->tags[first].what, memory_order_acquire);
    if (!(what & is_live)) {
        first = tt_host_bitset_floor(&arena->starts, grain);
        if (first == SIZE_MAX) return false;
        what = atomic_load_explicit(&arena->tags[first].what, memory_order_acquire);
    }
    size_t count = what & grains_mask;
    if (!(what & is_live) || grain >= first + count) return false;
    size_t bytes = count * arena->grain;
    *block_out = (struct tt_host_block){
        .base = arena->base + first * arena->grain,
        .bytes = bytes,
        .asked = tt_host_tag_asked(what, arena->shift),
        .kind = (unsigned)(what >> KIND_SHIFT & 7),
        .flags = (unsigned)(what >> FLAGS_SHIFT & 0xffff),
        .id = atomic_load_explicit(&arena->tags[first].id, memory_order_relaxed),
    };
    return true;
}

bool tt_host_arena_last(const struct tt_host_arena *arena, const char *end,
                        struct tt_host_block *block_out)
{
    size_t grains = (size_t)(end - arena->base) >> arena->shift;
    size_t first = grains ? tt_host_bitset_floor(&arena->starts, grains - 1) : SIZE_MAX;
    return first != SIZE_MAX &&
           tt_host_arena_find(arena, arena->base + first * arena->grain, block_out);
}
