/* The host's plain loads and stores, seen by page protection.
 *
 * A page of pinned or managed memory is closed to the program while every byte of it that is
 * allocated is in flight: used by work on streams that the host has not waited for, be it done or
 * not. A thread that waits opens it before it goes on. So a sound program never meets a closed
 * page, nor does a system call of its, which the kernel would refuse; so a page that is in flight
 * in part stays open. What runs on streams comes by the view (memory.h), which is never closed;
 * host functions and kernels, which are the program's code, come by faults (fault.c) that open the
 * page until they return; host functions of a program that may hand it to the kernel (imports.c)
 * find what is used behind them open. */
#include "guard.h"

#include "shadow.h"

#include "base/mem.h"
#include "device/host/memory/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, OPEN = PROT_READ | PROT_WRITE, GUARDS_MOST = 4096, FREED_PAGES_MOST = 4096 };

static struct tt_check_guard *guard_of(const struct tt_host_check *check, const void *ptr)
{
    for (size_t i = 0; i < check->nguards; i++) {
        struct tt_check_guard *guard = &check->guards[i];
        if ((size_t)((const char *)ptr - guard->base) < tt_round_up(guard->bytes, PAGE))
            return guard;
    }
    return NULL;
}

static void protect(struct tt_check_guard *guard, size_t page, size_t count, int prot)
{
    if (mprotect(guard->base + page * PAGE, count * PAGE, prot)) return;
    memset(guard->prot + page, prot, count);
    guard->whole = -1;
}

/* ---- which pages ---- */

static struct tt_check_guard *add_guard(struct tt_host_check *check,
                                        const struct tt_host_block *block)
{
    if (check->nguards == GUARDS_MOST) return NULL;
    if (check->nguards == check->guard_room) {
        size_t room = check->guard_room ? 2 * check->guard_room : 16;
        struct tt_check_guard *wider = realloc(check->guards, room * sizeof(*wider));
        if (!wider) return NULL;
        check->guards = wider;
        check->guard_room = room;
    }
    size_t pages = tt_round_up(block->asked, PAGE) / PAGE;
    unsigned char *prot = malloc(pages);
    if (!prot) return NULL;
    memset(prot, OPEN, pages);
    check->guards[check->nguards] = (struct tt_check_guard){.base = block->base,
                                                            .bytes = block->asked,
                                                            .kind = block->kind,
                                                            .from = pages,
                                                            .whole = -1,
                                                            .prot = prot};
    return &check->guards[check->nguards++];
}

static struct tt_check_guard *guard_for_lent(struct tt_host_check *check, const void *ptr)
{
    const struct tt_check_range *lent = tt_check_lent_at(check, ptr, 1);
    if (!lent) return NULL;
    const struct tt_host_block block = {
        .kind = TT_MEMORY_PINNED, .base = (char *)(uintptr_t)lent->ptr, .asked = lent->bytes};
    struct tt_check_guard *guard = add_guard(check, &block);
    if (guard) guard->lent = true;
    return guard;
}

static struct tt_check_guard *guard_for(struct tt_host_check *check, const void *ptr)
{
    const struct tt_host_memory *memory = &tt_host.memory;
    struct tt_host_block block;
    struct tt_check_guard *guard = guard_of(check, ptr);
    if (guard || tt_host_view(ptr) == ptr) return guard ? guard : guard_for_lent(check, ptr);
    bool of_device = (const char *)ptr >= memory->devices_base;
    size_t device =
        of_device ? (size_t)((const char *)ptr - memory->devices_base) >> memory->shift : 0;
    const struct tt_host_arena *arena = of_device ? &memory->devices[device] : &memory->host;
    return tt_host_arena_find(arena, ptr, &block) ? add_guard(check, &block) : NULL;
}

static void widen(struct tt_check_guard *guard, size_t at, size_t end)
{
    guard->from = tt_min_size(guard->from, at / PAGE);
    guard->to = tt_max_size(guard->to, tt_round_up(end, PAGE) / PAGE);
    guard->whole = -1;
}

static void watch(struct tt_host_check *check, const struct tt_check_use *used)
{
    const struct tt_check_range *lent = tt_check_lent_at(check, used->ptr, used->bytes);
    const char *from = used->ptr, *end = from + used->bytes;
    if (lent && from < (const char *)lent->ptr) from = lent->ptr;
    struct tt_check_guard *guard = guard_for(check, from);
    if (!guard) return;
    size_t at = (size_t)(from - guard->base), bytes = (size_t)(end - from);
    widen(guard, at, bytes < guard->bytes - at ? at + bytes : guard->bytes);
    if (guard->lent && used->direct) tt_check_clock_raise(&guard->direct, used->task, used->epoch);
}

/* ---- closing and opening ---- */

static int prot_for(enum tt_check_flight flight)
{
    if (flight == TT_CHECK_WRITTEN) return PROT_NONE;
    return flight == TT_CHECK_READ ? PROT_READ : OPEN;
}

static struct tt_check_clock *known_to_host(const struct tt_host_check *check)
{
    return check->ntasks ? check->tasks[TT_CHECK_HOST].now : NULL;
}

/* Does the host know all that the clock counts? */
static bool is_over(const struct tt_host_check *check, const struct tt_check_clock *clock)
{
    const struct tt_check_clock *host = known_to_host(check);
    bool over = true;
    for (size_t i = 0; over && clock && i < clock->count; i++)
        over = tt_check_clock_of(host, i) >= clock->at[i];
    return over;
}

/* Of the pages from `page` on; *count_out: how many are alike at least. One of which bytes differ
 * is as closed as the most closed of them, or as open as the openest. */
static int wanted(struct tt_host_check *check, const struct tt_check_guard *guard, size_t page,
                  size_t *count_out)
{
    size_t at = page * PAGE, same;
    bool closes = guard->kind == TT_MEMORY_DEVICE || check->closes_parts;
    enum tt_check_flight flight =
        tt_check_flight_at(check, guard->base + at, guard->bytes - at, &same);
    size_t end = at + same == guard->bytes ? tt_round_up(at + same, PAGE) : at + same;
    *count_out = end / PAGE - page;
    if (*count_out) return prot_for(flight);
    size_t stop = tt_min_size(at + PAGE, guard->bytes);
    for (; at < stop; at += same) {
        enum tt_check_flight next = tt_check_flight_at(check, guard->base + at, stop - at, &same);
        if (closes ? next > flight : next < flight) flight = next;
    }
    *count_out = 1;
    return prot_for(flight);
}

static void set(struct tt_check_guard *guard, size_t page, size_t count, int prot)
{
    for (size_t end = page + count, run; page < end; page += run) {
        unsigned char now = guard->prot[page];
        for (run = 1; page + run < end && guard->prot[page + run] == now; run++) {
        }
        if (now != prot) protect(guard, page, run, prot);
    }
}

static bool is_passing(const struct tt_host_check *check, const char *page)
{
    bool passing = false;
    for (size_t i = 0; i < TT_CHECK_PASSING_MOST; i++) {
        const struct tt_check_range *one = &check->passing[i];
        const char *first = one->ptr;
        passing = passing || (one->bytes && first < page + PAGE && page < first + one->bytes);
    }
    return passing;
}

/* What the pages from `page` on may be used for, `all` unless that is negative; *count becomes how
 * many of them are alike. */
static int prot_at(struct tt_host_check *check, struct tt_check_guard *guard, int all, size_t page,
                   size_t *count)
{
    const int prot = all < 0 ? wanted(check, guard, page, count) : all;
    if (check->npassing == 0) return prot;
    *count = 1;
    return is_passing(check, guard->base + page * PAGE) ? OPEN : prot;
}

/* True when none of its pages is closed. */
static bool update(struct tt_host_check *check, struct tt_check_guard *guard)
{
    const bool hidden = guard->kernels || !is_over(check, guard->opaque);
    const bool direct = !is_over(check, guard->direct); /* it must find its pages open */
    const bool passed = check->npassing != 0;
    const int all = hidden ? PROT_NONE : direct ? OPEN : -1;
    bool open = !direct;
    int whole = hidden && !passed ? PROT_NONE : -1;
    for (size_t page = guard->from, count; page < guard->to; page += count) {
        count = guard->to - page;
        const int prot = prot_at(check, guard, all, page, &count);
        count = tt_min_size(count, guard->to - page);
        if (count == guard->to - guard->from && !passed) whole = prot;
        if (whole < 0 || whole != guard->whole) set(guard, page, count, prot);
        if (prot != OPEN) open = false;
    }
    guard->whole = whole;
    return open;
}

static void drop_guard(struct tt_host_check *check, struct tt_check_guard *guard)
{
    free(guard->prot);
    tt_check_clock_drop(guard->opaque);
    tt_check_clock_drop(guard->direct);
    *guard = check->guards[--check->nguards];
}

bool tt_check_guard_due(const struct tt_host_check *check)
{
    bool changed = check->guards_stale || known_to_host(check) != check->guards_know;
    return check->nused || (check->nguards && changed);
}

void tt_check_guard_update(struct tt_host_check *check)
{
    for (size_t i = 0; i < check->nused; i++)
        watch(check, &check->used[i]);
    check->nused = 0;
    check->closes_parts =
        !tt_check_program_does_io(check) && check->npassing < TT_CHECK_PASSING_MOST;
    tt_check_clock_drop(check->guards_know);
    check->guards_know =
        tt_check_clock_hold(known_to_host(check)); /* it is copied before it changes */
    check->guards_stale = false;
    for (size_t i = check->nguards; i-- > 0;) {
        struct tt_check_guard *guard = &check->guards[i];
        if (!update(check, guard)) continue;
        drop_guard(check, guard);
    }
}

void tt_check_guard_return(struct tt_host_check *check, const void *ptr, size_t bytes)
{
    for (size_t i = check->nguards; i-- > 0;) {
        struct tt_check_guard *guard = &check->guards[i];
        bool meets = guard->base < (const char *)ptr + bytes &&
                     (const char *)ptr < guard->base + guard->bytes;
        if (!guard->lent || !meets) continue;
        set(guard, 0, guard->bytes / PAGE, OPEN);
        drop_guard(check, guard);
    }
    for (size_t i = check->nlent; i-- > 0;) {
        if (tt_check_lent_at(check, ptr, bytes) == &check->lent[i])
            check->lent[i] = check->lent[--check->nlent];
    }
}

void tt_check_guard_except(struct tt_host_check *check, const struct tt_check_op *op)
{
    if (!tt_check_program_does_io(check)) return;
    bool all = !op || check->nexcepted == TT_CHECK_EXCEPTED_MOST;
    if (all) check->all_excepted++;
    if (!all) check->excepted[check->nexcepted++] = op;
    check->guards_stale = true;
}

void tt_check_guard_again(struct tt_host_check *check, const struct tt_check_op *op)
{
    size_t i = 0;
    while (i < check->nexcepted && check->excepted[i] != op)
        i++;
    if (i < check->nexcepted) {
        check->excepted[i] = check->excepted[--check->nexcepted];
    } else if (check->all_excepted) {
        check->all_excepted--;
    }
    check->guards_stale = true;
}

struct tt_check_range *tt_check_guard_pass(struct tt_host_check *check, struct tt_check_range range)
{
    size_t i = 0;
    while (i < TT_CHECK_PASSING_MOST && check->passing[i].bytes)
        i++;
    if (i == TT_CHECK_PASSING_MOST) return NULL;
    check->passing[i] = range;
    check->npassing++;
    return &check->passing[i];
}

void tt_check_guard_passed(struct tt_host_check *check, struct tt_check_range *range)
{
    range->bytes = 0;
    check->npassing--;
    check->guards_stale = true; /* what it kept open may be closed again */
}

/* ---- kernels that report nothing ---- */

/* Memory of a device that was an allocation, from the page of an address on. */
static struct tt_check_guard *guard_for_freed(struct tt_host_check *check, const void *ptr)
{
    const struct tt_host_memory *memory = &tt_host.memory;
    char *base = (char *)(uintptr_t)ptr - (uintptr_t)ptr % PAGE;
    size_t pages = 0;
    if (tt_host_view(ptr) == ptr || (const char *)ptr < memory->devices_base) return NULL;
    while (pages < FREED_PAGES_MOST && tt_check_is_freed(check, base + pages * PAGE) &&
           tt_check_is_freed(check, base + pages * PAGE + PAGE - 1))
        pages++;
    if (!pages) return NULL;
    const struct tt_host_block block = {
        .kind = TT_MEMORY_DEVICE, .base = base, .asked = pages * PAGE};
    struct tt_check_guard *guard = add_guard(check, &block);
    if (guard) guard->freed = true;
    return guard;
}

void tt_check_guard_forget(struct tt_host_check *check, const void *ptr, size_t bytes)
{
    for (size_t i = check->nguards; i-- > 0;) {
        struct tt_check_guard *guard = &check->guards[i];
        bool meets = guard->base < (const char *)ptr + bytes &&
                     (const char *)ptr < guard->base + guard->bytes;
        if (!guard->freed || !meets) continue;
        set(guard, 0, guard->bytes / PAGE, OPEN);
        drop_guard(check, guard);
    }
}

/* Kernels and the program may talk by words in pinned memory. What is managed may be next to bytes
 * that system calls use. */
static struct tt_check_guard *guard_of_kernel(struct tt_host_check *check, const void *ptr)
{
    struct tt_check_guard *guard = guard_for(check, ptr);
    if (!guard) guard = guard_for_freed(check, ptr);
    if (!guard || guard->kind == TT_MEMORY_PINNED) return NULL;
    return guard->kind == TT_MEMORY_DEVICE || !tt_check_program_does_io(check) ? guard : NULL;
}

void tt_check_guard_kernel(struct tt_host_check *check, const struct tt_check_op *op,
                           const struct tt_check_words *words)
{
    for (size_t i = 0; op && i < words->count; i++) {
        struct tt_check_guard *guard = guard_of_kernel(check, words->at[i]);
        if (!guard) continue;
        widen(guard, 0, guard->bytes);
        tt_check_clock_raise(&guard->opaque, op->task, op->epoch);
        check->guards_stale = true;
    }
}

void tt_check_guard_running(struct tt_host_check *check, const struct tt_check_words *words,
                            int change)
{
    for (size_t i = 0; i < words->count; i++) {
        struct tt_check_guard *guard =
            change > 0 ? guard_of_kernel(check, words->at[i]) : guard_of(check, words->at[i]);
        if (!guard || guard->kernels + change < 0) continue;
        widen(guard, 0, guard->bytes);
        guard->kernels += change;
        check->guards_stale = true;
    }
}

/* ---- faults ---- */

bool tt_check_guard_holds(const struct tt_host_check *check, const void *ptr)
{
    return tt_host_view(ptr) != ptr || guard_of(check, ptr);
}

bool tt_check_guard_is_pinned(const struct tt_host_check *check, const void *ptr)
{
    const struct tt_check_guard *guard = guard_of(check, ptr);
    return guard && guard->kind == TT_MEMORY_PINNED;
}

int tt_check_guard_of(const struct tt_host_check *check, const void *ptr)
{
    const struct tt_check_guard *guard = guard_of(check, ptr);
    return guard ? guard->prot[(size_t)((const char *)ptr - guard->base) / PAGE] : OPEN;
}

static void open_to(struct tt_host_check *check, const void *ptr, size_t pages, int prot)
{
    struct tt_check_guard *guard = guard_of(check, ptr);
    if (!guard) return;
    size_t page = (size_t)((const char *)ptr - guard->base) / PAGE;
    size_t end = tt_min_size(page + pages, tt_round_up(guard->bytes, PAGE) / PAGE);
    protect(guard, page, end - page, prot);
    check->guards_stale = true;
}

void tt_check_guard_open(struct tt_host_check *check, const void *ptr, size_t pages)
{
    open_to(check, ptr, pages, OPEN);
}

void tt_check_guard_let_read(struct tt_host_check *check, const void *ptr, size_t pages)
{
    open_to(check, ptr, pages, PROT_READ);
}

void tt_check_guard_shut(struct tt_host_check *check, const void *ptr)
{
    const char *page = (const char *)((uintptr_t)ptr / PAGE * PAGE);
    mprotect((void *)(uintptr_t)page, PAGE, tt_check_guard_of(check, ptr));
}
