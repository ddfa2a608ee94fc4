/* What was done last to every byte that was touched: pages of 2 MiB, each a sorted list of pieces
 * that do not overlap. A write makes one piece of what it covers; a read splits at its ends. A
 * reader that is before the new one is dropped: what must come behind the new one comes behind it.
 * Kernels that report nothing are seen late: what they may race with is kept until they have run.
 */
#include "shadow.h"

#include "guard.h"
#include "pattern.h"

#include "base/mem.h"
#include "device/host/memory/memory.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_SHIFT = 21, PAGE_BYTES = 1 << PAGE_SHIFT };

/* ---- pages ---- */

static size_t page_slot(const struct tt_check_page *pages, size_t room, uint64_t number)
{
    size_t at = (size_t)((number * 0x9e3779b97f4a7c15ull) >> 24) & (room - 1);
    while (pages[at].pieces && pages[at].number != number) {
        at = (at + 1) & (room - 1);
    }
    return at;
}

static bool grow_pages(struct tt_host_check *check)
{
    size_t room = check->page_room ? 2 * check->page_room : 256;
    struct tt_check_page *pages = calloc(room, sizeof(*pages));
    if (!pages) return false;
    for (size_t i = 0; i < check->page_room; i++) {
        if (check->pages[i].pieces)
            pages[page_slot(pages, room, check->pages[i].number)] = check->pages[i];
    }
    free(check->pages);
    check->pages = pages;
    check->page_room = room;
    return true;
}

/* The page, made when it is wanted; NULL: unknown, or out of memory. */
static struct tt_check_page *page_of(struct tt_host_check *check, uint64_t number, bool make)
{
    if (2 * check->npages >= check->page_room && !grow_pages(check)) return NULL;
    struct tt_check_page *page = &check->pages[page_slot(check->pages, check->page_room, number)];
    if (page->pieces || !make) return page->pieces ? page : NULL;
    page->pieces = calloc(4, sizeof(*page->pieces));
    if (!page->pieces) return NULL;
    page->number = number;
    page->room = 4;
    page->count = 0;
    check->npages++;
    return page;
}

/* ---- pieces ---- */

static void clear_piece(struct tt_check_piece *piece)
{
    for (size_t i = 0; piece->readers && i < piece->readers->count; i++) {
        tt_check_op_drop(piece->readers->at[i].op);
    }
    free(piece->readers);
    tt_check_op_drop(piece->writer);
    piece->readers = NULL;
    piece->writer = NULL;
}

static struct tt_check_readers *copy_readers(const struct tt_check_readers *from)
{
    if (!from) return NULL;
    size_t bytes = sizeof(*from) + from->room * sizeof(from->at[0]);
    struct tt_check_readers *copy = malloc(bytes);
    if (!copy) return NULL;
    memcpy(copy, from, bytes);
    for (size_t i = 0; i < copy->count; i++) {
        copy->at[i].op->refs++;
    }
    return copy;
}

/* An unset piece at an index; false: out of memory. */
static bool insert(struct tt_check_page *page, size_t index)
{
    if (page->count == page->room) {
        struct tt_check_piece *wider = realloc(page->pieces, 2 * page->room * sizeof(*wider));
        if (!wider) return false;
        page->pieces = wider;
        page->room *= 2;
    }
    memmove(&page->pieces[index + 1], &page->pieces[index],
            (page->count - index) * sizeof(page->pieces[0]));
    page->count++;
    memset(&page->pieces[index], 0, sizeof(page->pieces[0]));
    return true;
}

static size_t first_behind(const struct tt_check_page *page,
                           uint32_t at) /* the first that ends > at */
{
    size_t low = 0;
    size_t high = page->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (page->pieces[middle].to > at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* No piece lies across `at`. */
static bool split(struct tt_check_page *page, uint32_t at)
{
    size_t index = first_behind(page, at);
    if (index == page->count || page->pieces[index].from >= at) return true;
    if (!insert(page, index + 1)) return false;
    struct tt_check_piece *left = &page->pieces[index];
    struct tt_check_piece *right = left + 1;
    *right = *left;
    left->to = right->from = at;
    if (right->writer) right->writer->refs++;
    right->readers = copy_readers(left->readers);
    return true;
}

/* Pieces, without gaps, for exactly [from, to); the index of the first, or SIZE_MAX. */
static size_t cover(struct tt_check_page *page, uint32_t from, uint32_t to)
{
    if (!split(page, from) || !split(page, to)) return SIZE_MAX;
    size_t first = first_behind(page, from);
    uint32_t at = from;
    for (size_t i = first; at < to; i++) {
        bool gap = i == page->count || page->pieces[i].from > at;
        if (gap) {
            uint32_t end = i < page->count && page->pieces[i].from < to ? page->pieces[i].from : to;
            if (!insert(page, i)) return SIZE_MAX;
            page->pieces[i].from = at;
            page->pieces[i].to = end;
        }
        at = page->pieces[i].to;
    }
    return first;
}

/* One piece in place of those of [from, to). */
static struct tt_check_piece *replace(struct tt_check_page *page, uint32_t from, uint32_t to)
{
    size_t first = cover(page, from, to);
    if (first == SIZE_MAX) return NULL;
    size_t end = first;
    while (end < page->count && page->pieces[end].from < to) {
        clear_piece(&page->pieces[end++]);
    }
    memmove(&page->pieces[first + 1], &page->pieces[end],
            (page->count - end) * sizeof(page->pieces[0]));
    page->count -= end - first - 1;
    page->pieces[first] = (struct tt_check_piece){.from = from, .to = to};
    return &page->pieces[first];
}

/* ---- an access ---- */

struct access {
    struct tt_host_check *check;
    struct tt_check_op *op;
    bool write;
    bool seen;        /* that it holds nothing yet is no matter */
    const char *page; /* the first address of the page */
};

static void report(const struct access *access, const struct tt_check_piece *piece,
                   struct tt_check_op *other, enum tt_check_kind kind, bool other_writes)
{
    const struct tt_check_finding finding = {.kind = kind,
                                             .first = other,
                                             .second = access->op,
                                             .first_writes = other_writes,
                                             .second_writes = access->write,
                                             .ptr = access->page + piece->from,
                                             .bytes = piece->to - piece->from};
    bool race = kind == TT_CHECK_RACE && other;
    if (race && tt_check_ordered_late(access->check, other, access->op)) return;
    if (race && tt_check_keep_finding(access->check, &finding, other, access->op)) return;
    tt_check_report(access->check, &finding);
}

static void look(const struct access *access, struct tt_check_piece *piece)
{
    struct tt_check_op *writer = piece->writer;
    const char *ptr = access->page + piece->from;
    if (writer && !tt_check_ordered(writer, access->op)) {
        report(access, piece, writer, TT_CHECK_RACE, true);
    } else if ((piece->flags & TT_CHECK_FREED) && writer && tt_check_before(writer, access->op)) {
        report(access, piece, writer, TT_CHECK_USE_AFTER_FREE, true);
    }
    for (size_t i = 0; piece->readers && i < piece->readers->count; i++) {
        const struct tt_check_user *user = &piece->readers->at[i];
        if ((access->write || user->wrote) && !tt_check_ordered(user->op, access->op))
            report(access, piece, user->op, TT_CHECK_RACE, user->wrote);
    }
    if (!access->write && !access->seen && (piece->flags & TT_CHECK_FRESH) &&
        tt_check_is_unwritten(access->check, ptr, piece->to - piece->from)) {
        report(access, piece, NULL, TT_CHECK_UNWRITTEN, false);
        piece->flags &= ~(uint32_t)TT_CHECK_FRESH; /* once is enough */
    }
}

/* Is there a kernel on its way that may be seen to race with it? */
static bool is_needed(const struct tt_host_check *check, const struct tt_check_op *op)
{
    for (size_t i = 0; i < check->nopaque; i++) {
        const struct tt_check_op *kernel = check->opaque[i].op;
        if (kernel != op && !tt_check_ordered(op, kernel)) return true;
    }
    return false;
}

static void add_user(struct tt_check_piece *piece, struct tt_check_op *op, bool wrote)
{
    struct tt_check_readers *readers = piece->readers;
    if (!readers || readers->count == readers->room) {
        size_t room = readers ? 2 * readers->room : 2;
        struct tt_check_readers *wider =
            realloc(readers, sizeof(*wider) + room * sizeof(wider->at[0]));
        if (!wider) return;
        if (!readers) wider->count = 0;
        wider->room = room;
        piece->readers = readers = wider;
    }
    op->refs++;
    readers->at[readers->count++] = (struct tt_check_user){op, wrote};
}

/* Drop the users that `op` stands for: what comes behind it comes behind them. A write stands for
 * all. */
static void drop_users(const struct tt_host_check *check, struct tt_check_piece *piece,
                       const struct tt_check_op *op, bool write)
{
    struct tt_check_readers *readers = piece->readers;
    size_t kept = 0;
    for (size_t i = 0; readers && i < readers->count; i++) {
        const struct tt_check_user user = readers->at[i];
        if ((write || tt_check_before(user.op, op)) && !is_needed(check, user.op)) {
            tt_check_op_drop(user.op);
        } else {
            readers->at[kept++] = user;
        }
    }
    if (readers) readers->count = kept;
}

static void add_reader(const struct tt_host_check *check, struct tt_check_piece *piece,
                       struct tt_check_op *op)
{
    for (size_t i = 0; piece->readers && i < piece->readers->count; i++) {
        if (piece->readers->at[i].op == op) return;
    }
    drop_users(check, piece, op, false);
    add_user(piece, op, false);
}

/* A write while kernels are on their way, which may race with what was there before. */
static void overwrite(const struct tt_host_check *check, struct tt_check_piece *piece,
                      struct tt_check_op *op)
{
    drop_users(check, piece, op, true);
    if (piece->writer && piece->writer != op && is_needed(check, piece->writer))
        add_user(piece, piece->writer, true);
    tt_check_op_drop(piece->writer);
    op->refs++;
    piece->writer = op;
    piece->flags = 0;
}

static bool is_late(const struct tt_check_piece *piece, const struct tt_check_op *op)
{
    return piece->writer && piece->writer != op && tt_check_before(op, piece->writer);
}

/* late: a host function or kernel has done what a later one came before. */
static void touch_page(const struct access *access, struct tt_check_page *page, uint32_t from,
                       uint32_t to)
{
    const struct tt_host_check *check = access->check;
    bool late = false;
    size_t first = cover(page, from, to);
    if (first == SIZE_MAX) return;
    for (size_t i = first; i < page->count && page->pieces[i].from < to; i++) {
        struct tt_check_piece *piece = &page->pieces[i];
        look(access, piece);
        late = late || is_late(piece, access->op);
        if (!access->write) add_reader(check, piece, access->op);
    }
    if (!access->write) return;
    for (size_t i = first; (late || check->nopaque) && i < page->count && page->pieces[i].from < to;
         i++) {
        struct tt_check_piece *piece = &page->pieces[i];
        if (!is_late(piece, access->op)) {
            overwrite(check, piece, access->op);
        } else if (is_needed(check, access->op)) {
            add_user(piece, access->op, true);
        }
    }
    if (late || check->nopaque) return;
    struct tt_check_piece *piece = replace(page, from, to);
    if (!piece) return;
    piece->writer = access->op;
    access->op->refs++;
}

/* For guard.c, which closes what the host sees. */
static void note_used(struct tt_host_check *check, const struct tt_check_op *op, const void *ptr,
                      size_t bytes)
{
    if (tt_host_view(ptr) == ptr && !tt_check_lent_at(check, ptr, bytes)) return;
    if (check->nused == check->used_room) {
        size_t room = check->used_room ? 2 * check->used_room : 16;
        struct tt_check_use *wider = realloc(check->used, room * sizeof(*wider));
        if (!wider) return;
        check->used = wider;
        check->used_room = room;
    }
    check->used[check->nused++] =
        (struct tt_check_use){ptr, bytes, op->task, op->epoch, op->direct};
}

static void touch(const struct access *kind, const void *ptr, size_t bytes)
{
    struct tt_host_check *check = kind->check;
    struct access access = *kind;
    uintptr_t at = (uintptr_t)ptr;
    if (!access.op || !ptr || !bytes || at + bytes < at) return;
    for (size_t i = 0; i < check->nprivate; i++) {
        if (at - (uintptr_t)check->private[i].ptr < check->private[i].bytes) return;
    }
    if (access.op->task != TT_CHECK_HOST && !access.seen) note_used(check, access.op, ptr, bytes);
    for (uintptr_t end = at + bytes; at < end;) {
        uintptr_t base = at >> PAGE_SHIFT << PAGE_SHIFT;
        uintptr_t until = end - base < PAGE_BYTES ? end : base + PAGE_BYTES;
        struct tt_check_page *page = page_of(check, at >> PAGE_SHIFT, true);
        access.page = (const char *)ptr - ((uintptr_t)ptr - base);
        if (page) touch_page(&access, page, (uint32_t)(at - base), (uint32_t)(until - base));
        at = until;
    }
}

void tt_check_touch(struct tt_host_check *check, struct tt_check_op *op, const void *ptr,
                    size_t bytes, bool write)
{
    touch(&(struct access){.check = check, .op = op, .write = write}, ptr, bytes);
}

void tt_check_touch_seen(struct tt_host_check *check, struct tt_check_op *op, const void *ptr,
                         size_t bytes, bool write)
{
    touch(&(struct access){.check = check, .op = op, .write = write, .seen = true}, ptr, bytes);
}

/* Unordered, as far as is known: what is behind another host function that is not over may have
 * been ordered by what the two do. */
static bool races_in_call(const struct tt_host_check *check, const struct tt_check_op *other,
                          const struct tt_check_op *op)
{
    if (!other || other->task == TT_CHECK_HOST || tt_check_ordered(other, op)) return false;
    for (size_t i = 0; i < check->ncalls; i++) {
        const struct tt_check_op *call = check->calls[i];
        bool own = call->task == op->task && call->epoch == op->epoch;
        if (!own && tt_check_before(call, other)) return false;
    }
    return true;
}

void tt_check_touch_in_call(struct tt_host_check *check, struct tt_check_op *op, const void *ptr,
                            size_t bytes, bool write)
{
    const struct tt_check_page *page = page_of(check, (uintptr_t)ptr >> PAGE_SHIFT, false);
    uint32_t at = (uint32_t)((uintptr_t)ptr & (PAGE_BYTES - 1));
    size_t index = page ? first_behind(page, at) : 0;
    if (!page || index >= page->count || page->pieces[index].from > at) return;
    const struct tt_check_piece *piece = &page->pieces[index];
    const size_t left = piece->to - at;
    const struct tt_check_piece used = {.from = at,
                                        .to = at + (uint32_t)(bytes < left ? bytes : left)};
    const struct access access = {
        .check = check, .op = op, .write = write, .page = (const char *)ptr - at};
    if (races_in_call(check, piece->writer, op))
        report(&access, &used, piece->writer, TT_CHECK_RACE, true);
    for (size_t i = 0; piece->readers && i < piece->readers->count; i++) {
        const struct tt_check_user *user = &piece->readers->at[i];
        if ((write || user->wrote) && races_in_call(check, user->op, op))
            report(&access, &used, user->op, TT_CHECK_RACE, user->wrote);
    }
}

void tt_check_reset(struct tt_host_check *check, const void *ptr, size_t bytes, uint32_t flags,
                    struct tt_check_op *op)
{
    uintptr_t at = (uintptr_t)ptr;
    check->guards_stale = true;
    for (uintptr_t end = at + bytes; at < end;) {
        uintptr_t base = at >> PAGE_SHIFT << PAGE_SHIFT;
        uintptr_t until = end - base < PAGE_BYTES ? end : base + PAGE_BYTES;
        struct tt_check_page *page = page_of(check, at >> PAGE_SHIFT, flags || op);
        struct tt_check_piece *piece =
            page ? replace(page, (uint32_t)(at - base), (uint32_t)(until - base)) : NULL;
        if (piece) piece->flags = flags;
        if (piece && op) op->refs++;
        if (piece) piece->writer = op;
        at = until;
    }
}

bool tt_check_is_freed(struct tt_host_check *check, const void *ptr)
{
    const struct tt_check_page *page = page_of(check, (uintptr_t)ptr >> PAGE_SHIFT, false);
    uint32_t at = (uint32_t)((uintptr_t)ptr & (PAGE_BYTES - 1));
    size_t index = page ? first_behind(page, at) : 0;
    return page && index < page->count && page->pieces[index].from <= at &&
           (page->pieces[index].flags & TT_CHECK_FREED);
}

/* ---- what the host has not waited for ---- */

static bool is_in_flight(const struct tt_host_check *check, const struct tt_check_op *op)
{
    if (!op || op->task == TT_CHECK_HOST || check->all_excepted) return false;
    for (size_t i = 0; i < check->nexcepted; i++) {
        if (tt_check_before(check->excepted[i], op)) return false;
    }
    return tt_check_clock_of(check->tasks[TT_CHECK_HOST].now, op->task) < op->epoch;
}

static enum tt_check_flight flight_of(const struct tt_host_check *check,
                                      const struct tt_check_piece *piece)
{
    if (piece->flags & TT_CHECK_FREED) return TT_CHECK_ORDERED;
    if (is_in_flight(check, piece->writer)) return TT_CHECK_WRITTEN;
    for (size_t i = 0; piece->readers && i < piece->readers->count; i++) {
        const struct tt_check_user *user = &piece->readers->at[i];
        if (is_in_flight(check, user->op)) return user->wrote ? TT_CHECK_WRITTEN : TT_CHECK_READ;
    }
    return TT_CHECK_ORDERED;
}

enum tt_check_flight tt_check_flight_at(struct tt_host_check *check, const void *ptr, size_t bytes,
                                        size_t *same_out)
{
    uintptr_t in_page = (uintptr_t)ptr & (PAGE_BYTES - 1);
    const struct tt_check_page *page = page_of(check, (uintptr_t)ptr >> PAGE_SHIFT, false);
    uint32_t at = (uint32_t)in_page;
    uint32_t end = (uint32_t)tt_min_size(in_page + bytes, PAGE_BYTES);
    size_t i = page ? first_behind(page, at) : 0;
    bool there = page && i < page->count && page->pieces[i].from <= at;
    enum tt_check_flight flight = there ? flight_of(check, &page->pieces[i]) : TT_CHECK_ORDERED;
    while (there && page->pieces[i].to < end) { /* pieces side by side that are alike */
        const struct tt_check_piece *next = &page->pieces[i + 1];
        bool on = i + 1 < page->count && next->from == page->pieces[i].to &&
                  flight_of(check, next) == flight;
        if (!on) end = page->pieces[i].to;
        i += on;
    }
    if (!there && page && i < page->count && page->pieces[i].from < end) end = page->pieces[i].from;
    *same_out = end - at;
    return flight;
}
