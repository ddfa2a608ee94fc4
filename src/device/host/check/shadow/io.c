/* System calls of the program on closed pages, which the kernel refuses. Where a page of the buffer
 * is closed, it is opened, and what the call has read or written is judged as an access of the
 * host. Until the call returns, its pages stay open, whatever other threads call meanwhile. */
#include "io.h"

#include "guard.h"
#include "shadow.h"

#include "base/mem.h"
#include "device/host/check/task/site.h"
#include "device/host/memory/memory.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <sys/mman.h>

enum { PAGE = 4096, TRIES_MOST = 100000 };

/* A handler of a signal may have interrupted the holder of the lock in this thread. */
static bool lock(struct tt_host_check *check)
{
    bool locked = false;
    for (int i = 0; !locked && !tt_host_thread.check.is_locked && i < TRIES_MOST; i++) {
        locked = pthread_mutex_trylock(&check->lock) == 0;
        if (!locked) sched_yield();
    }
    if (locked) tt_host_thread.check.is_locked = true;
    return locked;
}

static void unlock(struct tt_host_check *check)
{
    tt_host_thread.check.is_locked = false;
    pthread_mutex_unlock(&check->lock);
}

static bool is_closed(const struct tt_host_check *check, const char *page, bool write)
{
    int prot = tt_check_guard_of(check, page);
    return prot == PROT_NONE || (write && !(prot & PROT_WRITE));
}

/* How many pages were closed to the access. */
static size_t open_pages(struct tt_host_check *check, const void *ptr, size_t bytes, bool write)
{
    const char *page = (const char *)ptr - (uintptr_t)ptr % PAGE;
    size_t opened = 0;
    for (const char *end = (const char *)ptr + bytes; check->nguards && page < end; page += PAGE) {
        if (!is_closed(check, page, write)) continue;
        tt_check_guard_open(check, page, 1);
        opened++;
    }
    return opened;
}

static size_t open_parts(const struct tt_check_io *io, const struct iovec *parts, size_t nparts)
{
    size_t opened = 0;
    for (size_t i = 0; i < nparts; i++)
        opened += open_pages(io->check, parts[i].iov_base, parts[i].iov_len, io->write);
    return opened;
}

size_t tt_check_io_nparts(const struct msghdr *message)
{
    return tt_min_size(message->msg_iovlen, IOV_MAX);
}

void tt_check_io_names_of(const struct msghdr *message, struct iovec names[TT_CHECK_IO_NAMES])
{
    names[0] = (struct iovec){message->msg_name, message->msg_namelen};
    names[1] = (struct iovec){message->msg_control, message->msg_controllen};
}

static size_t open_all(const struct tt_check_io *io)
{
    size_t opened =
        open_parts(io, io->parts, io->nparts) + open_parts(io, io->names, TT_CHECK_IO_NAMES);
    for (size_t i = 0; i < io->nmessages; i++) {
        struct iovec names[TT_CHECK_IO_NAMES];
        tt_check_io_names_of(&io->messages[i].msg_hdr, names);
        opened += open_parts(io, io->messages[i].msg_hdr.msg_iov,
                             tt_check_io_nparts(&io->messages[i].msg_hdr));
        opened += open_parts(io, names, TT_CHECK_IO_NAMES);
    }
    return opened;
}

/* ---- those under way ---- */

/* Widens the range by the parts that may be closed, now or before the call is over. */
static void cover(const struct tt_check_io *io, const struct iovec *parts, size_t nparts,
                  struct tt_check_range *range)
{
    for (size_t i = 0; i < nparts; i++) {
        const char *part = parts[i].iov_base, *end = part + parts[i].iov_len;
        bool may_close =
            tt_host_view(part) != part || tt_check_lent_at(io->check, part, parts[i].iov_len);
        if (!may_close || !parts[i].iov_len) continue;
        const char *first = range->bytes ? range->ptr : part, *last = first + range->bytes;
        if (part < first) first = part;
        if (end > last) last = end;
        *range = (struct tt_check_range){first, (size_t)(last - first)};
    }
}

static struct tt_check_range cover_all(const struct tt_check_io *io)
{
    struct tt_check_range range = {NULL, 0};
    cover(io, io->parts, io->nparts, &range);
    cover(io, io->names, TT_CHECK_IO_NAMES, &range);
    for (size_t i = 0; i < io->nmessages; i++) {
        struct iovec names[TT_CHECK_IO_NAMES];
        tt_check_io_names_of(&io->messages[i].msg_hdr, names);
        cover(io, io->messages[i].msg_hdr.msg_iov, tt_check_io_nparts(&io->messages[i].msg_hdr),
              &range);
        cover(io, names, TT_CHECK_IO_NAMES, &range);
    }
    return range;
}

/* Of what is far from memory that is ever closed, no more is wanted. */
static bool is_far(const struct tt_check_io *io)
{
    bool far = !io->nmessages && !atomic_load(&io->check->nlent);
    for (size_t i = 0; i < io->nparts; i++)
        far = far && tt_host_view(io->parts[i].iov_base) == io->parts[i].iov_base;
    for (size_t i = 0; i < TT_CHECK_IO_NAMES; i++)
        far = far && tt_host_view(io->names[i].iov_base) == io->names[i].iov_base;
    return far;
}

void tt_check_io_begin(struct tt_check_io *io, const char *name)
{
    int kept = errno;
    io->check = atomic_load_explicit(&tt_host.check, memory_order_acquire);
    if (tt_host_forked()) {
        open_all(io);
    } else if (!is_far(io) && lock(io->check)) {
        bool works = tt_host_thread.in_host_fn || tt_host_thread.in_kernel;
        bool closed = open_all(io);
        struct tt_check_range range = cover_all(io);
        if (range.bytes) io->passing = tt_check_guard_pass(io->check, range);
        unlock(io->check);
        if (closed && !works) tt_host_thread.check.site = tt_check_call_site();
        if (closed && !works && lock(io->check)) {
            io->op = tt_check_op_begin(io->check, NULL, name);
            unlock(io->check);
        }
    }
    errno = kept;
}

/* So many bytes were moved: the first of the parts. */
static void touch(const struct tt_check_io *io, const struct iovec *parts, size_t nparts,
                  size_t bytes)
{
    for (size_t i = 0; i < nparts && bytes; i++) {
        size_t some = tt_min_size(bytes, parts[i].iov_len);
        tt_check_touch(io->check, io->op, parts[i].iov_base, some, io->write);
        bytes -= some;
    }
}

static void touch_all(const struct tt_check_io *io, ssize_t moved)
{
    size_t count = moved > 0 ? (size_t)moved : 0;
    touch(io, io->parts, io->nparts, count);
    if (moved >= 0) touch(io, io->names, TT_CHECK_IO_NAMES, SIZE_MAX);
    for (size_t i = 0; i < tt_min_size(count, io->nmessages); i++) {
        const struct mmsghdr *one = &io->messages[i];
        struct iovec names[TT_CHECK_IO_NAMES];
        tt_check_io_names_of(&one->msg_hdr, names);
        touch(io, one->msg_hdr.msg_iov, tt_check_io_nparts(&one->msg_hdr), one->msg_len);
        touch(io, names, TT_CHECK_IO_NAMES, SIZE_MAX);
    }
}

void tt_check_io_end(struct tt_check_io *io, ssize_t moved)
{
    int kept = errno;
    if ((io->op || io->passing) && lock(io->check)) {
        if (io->passing) tt_check_guard_passed(io->check, io->passing);
        if (io->op) touch_all(io, moved);
        if (io->op) tt_check_op_drop(io->op);
        unlock(io->check);
    }
    errno = kept;
}

void tt_check_io_lend_buffer(const void *ptr)
{
    struct tt_host_check *check = atomic_load_explicit(&tt_host.check, memory_order_acquire);
    if (tt_host_view(ptr) == ptr || tt_host_forked() || !lock(check)) return;
    check->lends_buffers = check->does_io = true;
    check->guards_stale = true;
    unlock(check);
}
