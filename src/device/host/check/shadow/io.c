/* System calls of the program on closed pages, which the kernel refuses: calls of the usual
 * functions are led here (imports.c). Where a page of the buffer is closed, it is opened, and what
 * the call has read or written is judged as an access of the host. Until the call returns, its
 * pages stay open, whatever other threads call meanwhile. */
#include "io.h"

#include "guard.h"
#include "shadow.h"

#include "base/mem.h"
#include "device/host/check/task/site.h"
#include "device/host/memory/memory.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, TRIES_MOST = 100000 };

enum { NAMES = 2 };

struct io {
    struct tt_host_check *check;
    struct tt_check_op *op;    /* owned; NULL: no page is closed */
    const struct iovec *parts; /* borrowed */
    size_t nparts;
    struct iovec names[NAMES];      /* address and control data, beside the parts */
    const struct mmsghdr *messages; /* borrowed; several, instead of the parts */
    size_t nmessages;
    bool write;
    struct tt_check_range *passing; /* borrowed; what stays open until the call returns */
};

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

static size_t open_parts(const struct io *io, const struct iovec *parts, size_t nparts)
{
    size_t opened = 0;
    for (size_t i = 0; i < nparts; i++)
        opened += open_pages(io->check, parts[i].iov_base, parts[i].iov_len, io->write);
    return opened;
}

static size_t nparts_of(const struct mmsghdr *message)
{
    return tt_min_size(message->msg_hdr.msg_iovlen, IOV_MAX);
}

/* What the kernel reads or stores beside the parts. */
static void names_of(const struct msghdr *message, struct iovec names[NAMES])
{
    names[0] = (struct iovec){message->msg_name, message->msg_namelen};
    names[1] = (struct iovec){message->msg_control, message->msg_controllen};
}

static size_t open_all(const struct io *io)
{
    size_t opened = open_parts(io, io->parts, io->nparts) + open_parts(io, io->names, NAMES);
    for (size_t i = 0; i < io->nmessages; i++) {
        struct iovec names[NAMES];
        names_of(&io->messages[i].msg_hdr, names);
        opened += open_parts(io, io->messages[i].msg_hdr.msg_iov, nparts_of(&io->messages[i]));
        opened += open_parts(io, names, NAMES);
    }
    return opened;
}

/* ---- those under way ---- */

/* Widens the range by the parts that may be closed, now or before the call is over. */
static void cover(const struct io *io, const struct iovec *parts, size_t nparts,
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

static struct tt_check_range cover_all(const struct io *io)
{
    struct tt_check_range range = {NULL, 0};
    cover(io, io->parts, io->nparts, &range);
    cover(io, io->names, NAMES, &range);
    for (size_t i = 0; i < io->nmessages; i++) {
        struct iovec names[NAMES];
        names_of(&io->messages[i].msg_hdr, names);
        cover(io, io->messages[i].msg_hdr.msg_iov, nparts_of(&io->messages[i]), &range);
        cover(io, names, NAMES, &range);
    }
    return range;
}

/* Of what is far from memory that is ever closed, no more is wanted. */
static bool is_far(const struct io *io)
{
    bool far = !io->nmessages && !atomic_load(&io->check->nlent);
    for (size_t i = 0; i < io->nparts; i++)
        far = far && tt_host_view(io->parts[i].iov_base) == io->parts[i].iov_base;
    for (size_t i = 0; i < NAMES; i++)
        far = far && tt_host_view(io->names[i].iov_base) == io->names[i].iov_base;
    return far;
}

static void begin_all(struct io *io, const char *name)
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

/* A call that stores to the parts (write), or reads them. */
static void begin(struct io *io, const struct iovec *parts, size_t nparts, bool write,
                  const char *name)
{
    *io = (struct io){.parts = parts, .nparts = nparts, .write = write};
    begin_all(io, name);
}

/* So many bytes were moved: the first of the parts. */
static void touch(const struct io *io, const struct iovec *parts, size_t nparts, size_t bytes)
{
    for (size_t i = 0; i < nparts && bytes; i++) {
        size_t some = tt_min_size(bytes, parts[i].iov_len);
        tt_check_touch(io->check, io->op, parts[i].iov_base, some, io->write);
        bytes -= some;
    }
}

static void touch_all(const struct io *io, ssize_t moved)
{
    size_t count = moved > 0 ? (size_t)moved : 0;
    touch(io, io->parts, io->nparts, count);
    if (moved >= 0) touch(io, io->names, NAMES, SIZE_MAX);
    for (size_t i = 0; i < tt_min_size(count, io->nmessages); i++) {
        const struct mmsghdr *one = &io->messages[i];
        struct iovec names[NAMES];
        names_of(&one->msg_hdr, names);
        touch(io, one->msg_hdr.msg_iov, nparts_of(one), one->msg_len);
        touch(io, names, NAMES, SIZE_MAX);
    }
}

/* So many bytes were moved, or with several messages so many of these; or -1. */
static void end(struct io *io, ssize_t moved)
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

/* ---- what the program hands over may be nowhere ---- */

/* False where the kernel would refuse it. */
static bool read_from(void *to, const void *from, size_t bytes)
{
    const struct iovec into = {to, bytes}, source = {(void *)(uintptr_t)from, bytes};
    const ssize_t n = process_vm_readv(getpid(), &into, 1, &source, 1, 0);
    if (n == (ssize_t)bytes) return true;
    if (n >= 0 || errno == EFAULT) return false;
    memcpy(to, from, bytes); /* where the process may not make that call at all */
    return true;
}

/* ---- one buffer ---- */

static ssize_t on_read(int file, void *ptr, size_t bytes)
{
    const struct iovec part = {ptr, bytes};
    struct io io;
    begin(&io, &part, 1, true, "read()");
    ssize_t n = read(file, ptr, bytes);
    end(&io, n);
    return n;
}

static ssize_t on_read_chk(int file, void *ptr, size_t bytes, size_t room)
{
    if (bytes > room) abort();
    return on_read(file, ptr, bytes);
}

static ssize_t on_write(int file, const void *ptr, size_t bytes)
{
    const struct iovec part = {(void *)(uintptr_t)ptr, bytes};
    struct io io;
    begin(&io, &part, 1, false, "write()");
    ssize_t n = write(file, ptr, bytes);
    end(&io, n);
    return n;
}

static ssize_t on_pread(int file, void *ptr, size_t bytes, off_t at)
{
    const struct iovec part = {ptr, bytes};
    struct io io;
    begin(&io, &part, 1, true, "pread()");
    ssize_t n = pread(file, ptr, bytes, at);
    end(&io, n);
    return n;
}

static ssize_t on_pread_chk(int file, void *ptr, size_t bytes, off_t at, size_t room)
{
    if (bytes > room) abort();
    return on_pread(file, ptr, bytes, at);
}

static ssize_t on_pwrite(int file, const void *ptr, size_t bytes, off_t at)
{
    const struct iovec part = {(void *)(uintptr_t)ptr, bytes};
    struct io io;
    begin(&io, &part, 1, false, "pwrite()");
    ssize_t n = pwrite(file, ptr, bytes, at);
    end(&io, n);
    return n;
}

static ssize_t on_recvfrom(int file, void *ptr, size_t bytes, int flags, struct sockaddr *from,
                           socklen_t *from_bytes)
{
    const struct iovec part = {ptr, bytes};
    struct io io = {.parts = &part, .nparts = 1, .write = true};
    socklen_t room = 0;
    if (from && read_from(&room, from_bytes, sizeof(room)))
        io.names[0] = (struct iovec){from, room};
    begin_all(&io, from ? "recvfrom()" : "recv()");
    ssize_t n = recvfrom(file, ptr, bytes, flags, from, from_bytes);
    end(&io, n); /* with MSG_TRUNC more than there is room for */
    return n;
}

static ssize_t on_recvfrom_chk(int file, void *ptr, size_t bytes, size_t room, int flags,
                               struct sockaddr *from, socklen_t *from_bytes)
{
    if (bytes > room) abort();
    return on_recvfrom(file, ptr, bytes, flags, from, from_bytes);
}

static ssize_t on_recv(int file, void *ptr, size_t bytes, int flags)
{
    return on_recvfrom(file, ptr, bytes, flags, NULL, NULL);
}

static ssize_t on_recv_chk(int file, void *ptr, size_t bytes, size_t room, int flags)
{
    return on_recvfrom_chk(file, ptr, bytes, room, flags, NULL, NULL);
}

static ssize_t on_sendto(int file, const void *ptr, size_t bytes, int flags,
                         const struct sockaddr *to, socklen_t to_bytes)
{
    const struct iovec part = {(void *)(uintptr_t)ptr, bytes};
    struct io io = {.parts = &part, .nparts = 1};
    if (to) io.names[0] = (struct iovec){(void *)(uintptr_t)to, to_bytes};
    begin_all(&io, to ? "sendto()" : "send()");
    ssize_t n = sendto(file, ptr, bytes, flags, to, to_bytes);
    end(&io, n);
    return n;
}

static ssize_t on_send(int file, const void *ptr, size_t bytes, int flags)
{
    return on_sendto(file, ptr, bytes, flags, NULL, 0);
}

static ssize_t on_getrandom(void *ptr, size_t bytes, unsigned flags)
{
    const struct iovec part = {ptr, bytes};
    struct io io;
    begin(&io, &part, 1, true, "getrandom()");
    ssize_t n = getrandom(ptr, bytes, flags);
    end(&io, n);
    return n;
}

static int on_getentropy(void *ptr, size_t bytes)
{
    const struct iovec part = {ptr, bytes};
    struct io io;
    begin(&io, &part, 1, true, "getentropy()");
    int rc = getentropy(ptr, bytes);
    end(&io, rc ? -1 : (ssize_t)bytes);
    return rc;
}

static int on_getsockopt(int file, int level, int option, void *ptr, socklen_t *bytes)
{
    socklen_t room = 0;
    if (!read_from(&room, bytes, sizeof(room))) room = 0;
    const struct iovec part = {ptr, room};
    struct io io;
    begin(&io, &part, 1, true, "getsockopt()");
    int rc = getsockopt(file, level, option, ptr, bytes);
    end(&io, rc ? -1 : (ssize_t)*bytes);
    return rc;
}

static int on_setsockopt(int file, int level, int option, const void *ptr, socklen_t bytes)
{
    const struct iovec part = {(void *)(uintptr_t)ptr, bytes};
    struct io io;
    begin(&io, &part, 1, false, "setsockopt()");
    int rc = setsockopt(file, level, option, ptr, bytes);
    end(&io, rc ? -1 : (ssize_t)bytes);
    return rc;
}

/* What the C library hands to the kernel later, by itself, is not followed. */
static void lend_buffer(const void *ptr)
{
    struct tt_host_check *check = atomic_load_explicit(&tt_host.check, memory_order_acquire);
    if (tt_host_view(ptr) == ptr || tt_host_forked() || !lock(check)) return;
    check->lends_buffers = check->does_io = true;
    check->guards_stale = true;
    unlock(check);
}

static int on_setvbuf(FILE *file, char *ptr, int mode, size_t bytes)
{
    lend_buffer(ptr);
    return setvbuf(file, ptr, mode, bytes);
}

static void on_setbuf(FILE *file, char *ptr)
{
    lend_buffer(ptr);
    setbuf(file, ptr);
}

static void on_setbuffer(FILE *file, char *ptr, size_t bytes)
{
    lend_buffer(ptr);
    setbuffer(file, ptr, bytes);
}

/* What the number of a request says of its argument. Old ones say nothing: but for the usual ones
 * it may even be no address. */
static size_t request_bytes(unsigned long request)
{
    switch (request) {
    case FIONREAD:
    case TIOCOUTQ:
    case FIONBIO:
    case FIOASYNC: return sizeof(int);
    case TIOCGWINSZ:
    case TIOCSWINSZ: return sizeof(struct winsize);
    default: return _IOC_DIR(request) ? _IOC_SIZE(request) : 0;
    }
}

static bool request_stores(unsigned long request)
{
    bool loads = request == FIONBIO || request == FIOASYNC || request == TIOCSWINSZ;
    return !loads && _IOC_DIR(request) != _IOC_WRITE;
}

static int on_ioctl(int file, unsigned long request, ...)
{
    enum { OLD_ONES = 64 }; /* bytes, as a rule less */
    va_list args;
    va_start(args, request);
    void *ptr = va_arg(args, void *);
    va_end(args);
    size_t bytes = request_bytes(request);
    const struct iovec part = {ptr, bytes ? bytes : OLD_ONES};
    struct io io;
    begin(&io, &part, 1, request_stores(request), "ioctl()");
    int rc = ioctl(file, request, ptr);
    end(&io, rc < 0 ? -1 : (ssize_t)bytes);
    return rc;
}

static size_t on_fread(void *ptr, size_t each, size_t count, FILE *file)
{
    struct iovec part = {ptr, 0};
    if (__builtin_mul_overflow(each, count, &part.iov_len)) part.iov_len = 0;
    struct io io;
    begin(&io, &part, 1, true, "fread()");
    size_t n = fread(ptr, each, count, file);
    end(&io, (ssize_t)(n * each));
    return n;
}

static size_t on_fwrite(const void *ptr, size_t each, size_t count, FILE *file)
{
    struct iovec part = {(void *)(uintptr_t)ptr, 0};
    if (__builtin_mul_overflow(each, count, &part.iov_len)) part.iov_len = 0;
    struct io io;
    begin(&io, &part, 1, false, "fwrite()");
    size_t n = fwrite(ptr, each, count, file);
    end(&io, (ssize_t)(n * each));
    return n;
}

static size_t on_fread_chk(void *ptr, size_t room, size_t each, size_t count, FILE *file)
{
    size_t bytes;
    if (__builtin_mul_overflow(each, count, &bytes) || bytes > room) abort();
    return on_fread(ptr, each, count, file);
}

static size_t on_fread_unlocked(void *ptr, size_t each, size_t count, FILE *file)
{
    struct iovec part = {ptr, 0};
    if (__builtin_mul_overflow(each, count, &part.iov_len)) part.iov_len = 0;
    struct io io;
    begin(&io, &part, 1, true, "fread()");
    size_t n = fread_unlocked(ptr, each, count, file);
    end(&io, (ssize_t)(n * each));
    return n;
}

static size_t on_fread_unlocked_chk(void *ptr, size_t room, size_t each, size_t count, FILE *file)
{
    size_t bytes;
    if (__builtin_mul_overflow(each, count, &bytes) || bytes > room) abort();
    return on_fread_unlocked(ptr, each, count, file);
}

static size_t on_fwrite_unlocked(const void *ptr, size_t each, size_t count, FILE *file)
{
    struct iovec part = {(void *)(uintptr_t)ptr, 0};
    if (__builtin_mul_overflow(each, count, &part.iov_len)) part.iov_len = 0;
    struct io io;
    begin(&io, &part, 1, false, "fwrite()");
    size_t n = fwrite_unlocked(ptr, each, count, file);
    end(&io, (ssize_t)(n * each));
    return n;
}

/* ---- several buffers ---- */

/* How many parts the list has that can be read, from its first to its last; a bad list is left to
 * the kernel, which refuses it. */
static size_t parts_of(const struct iovec *parts, size_t count)
{
    char byte;
    const char *first = (const char *)parts;
    if (count == 0 || count > IOV_MAX) return 0;
    for (size_t at = 0; at < count * sizeof(*parts); at += sizeof(*parts)) {
        if (!read_from(&byte, first + at, 1)) return 0;
    }
    return count;
}

static size_t parts_of_message(const struct msghdr *message, bool *is_there_out)
{
    struct msghdr copy = {0};
    *is_there_out = read_from(&copy, message, sizeof(copy));
    if (!*is_there_out) return 0;
    return parts_of(message->msg_iov, tt_min_size(message->msg_iovlen, IOV_MAX));
}

static ssize_t on_readv(int file, const struct iovec *parts, int count)
{
    struct io io;
    begin(&io, parts, parts_of(parts, count > 0 ? (size_t)count : 0), true, "readv()");
    ssize_t n = readv(file, parts, count);
    end(&io, n);
    return n;
}

static ssize_t on_writev(int file, const struct iovec *parts, int count)
{
    struct io io;
    begin(&io, parts, parts_of(parts, count > 0 ? (size_t)count : 0), false, "writev()");
    ssize_t n = writev(file, parts, count);
    end(&io, n);
    return n;
}

static ssize_t on_preadv(int file, const struct iovec *parts, int count, off_t at)
{
    struct io io;
    begin(&io, parts, parts_of(parts, count > 0 ? (size_t)count : 0), true, "preadv()");
    ssize_t n = preadv(file, parts, count, at);
    end(&io, n);
    return n;
}

static ssize_t on_pwritev(int file, const struct iovec *parts, int count, off_t at)
{
    struct io io;
    begin(&io, parts, parts_of(parts, count > 0 ? (size_t)count : 0), false, "pwritev()");
    ssize_t n = pwritev(file, parts, count, at);
    end(&io, n);
    return n;
}

static ssize_t on_preadv2(int file, const struct iovec *parts, int count, off_t at, int flags)
{
    struct io io;
    begin(&io, parts, parts_of(parts, count > 0 ? (size_t)count : 0), true, "preadv2()");
    ssize_t n = preadv2(file, parts, count, at, flags);
    end(&io, n);
    return n;
}

static ssize_t on_pwritev2(int file, const struct iovec *parts, int count, off_t at, int flags)
{
    struct io io;
    begin(&io, parts, parts_of(parts, count > 0 ? (size_t)count : 0), false, "pwritev2()");
    ssize_t n = pwritev2(file, parts, count, at, flags);
    end(&io, n);
    return n;
}

static ssize_t on_recvmsg(int file, struct msghdr *message, int flags)
{
    bool is_there;
    size_t nparts = parts_of_message(message, &is_there);
    const struct iovec *parts = nparts ? message->msg_iov : NULL;
    struct io io = {.parts = parts, .nparts = nparts, .write = true};
    if (is_there) names_of(message, io.names);
    begin_all(&io, "recvmsg()");
    ssize_t n = recvmsg(file, message, flags);
    end(&io, n);
    return n;
}

static ssize_t on_sendmsg(int file, const struct msghdr *message, int flags)
{
    bool is_there;
    size_t nparts = parts_of_message(message, &is_there);
    const struct iovec *parts = nparts ? message->msg_iov : NULL;
    struct io io = {.parts = parts, .nparts = nparts, .write = false};
    if (is_there) names_of(message, io.names);
    begin_all(&io, "sendmsg()");
    ssize_t n = sendmsg(file, message, flags);
    end(&io, n);
    return n;
}

/* ---- several messages ---- */

/* Those before the first one that cannot be read, at which the kernel stops. */
static size_t messages_of(const struct mmsghdr *messages, unsigned count)
{
    const size_t most = tt_min_size(count, IOV_MAX); /* the kernel's limit, too */
    size_t n = 0;
    while (n < most) {
        const struct mmsghdr *one = &messages[n];
        struct mmsghdr copy = {0};
        if (!read_from(&copy, one, sizeof(copy))) break;
        if (nparts_of(one) && !parts_of(one->msg_hdr.msg_iov, nparts_of(one))) break;
        n++;
    }
    return n;
}

static int on_recvmmsg(int file, struct mmsghdr *messages, unsigned count, int flags,
                       struct timespec *limit)
{
    struct io io = {.messages = messages, .nmessages = messages_of(messages, count), .write = true};
    begin_all(&io, "recvmmsg()");
    int n = recvmmsg(file, messages, count, flags, limit);
    end(&io, n);
    return n;
}

static int on_sendmmsg(int file, struct mmsghdr *messages, unsigned count, int flags)
{
    struct io io = {
        .messages = messages, .nmessages = messages_of(messages, count), .write = false};
    begin_all(&io, "sendmmsg()");
    int n = sendmmsg(file, messages, count, flags);
    end(&io, n);
    return n;
}

void *tt_check_io_instead(const char *name)
{
    static const struct {
        const char *name;
        void (*fn)(void);
    } rows[] = {
        {"read", (void (*)(void))on_read},
        {"__read_chk", (void (*)(void))on_read_chk},
        {"write", (void (*)(void))on_write},
        {"pread", (void (*)(void))on_pread},
        {"pread64", (void (*)(void))on_pread},
        {"__pread_chk", (void (*)(void))on_pread_chk},
        {"__pread64_chk", (void (*)(void))on_pread_chk},
        {"pwrite", (void (*)(void))on_pwrite},
        {"pwrite64", (void (*)(void))on_pwrite},
        {"recv", (void (*)(void))on_recv},
        {"__recv_chk", (void (*)(void))on_recv_chk},
        {"send", (void (*)(void))on_send},
        {"fread", (void (*)(void))on_fread},
        {"__fread_chk", (void (*)(void))on_fread_chk},
        {"fread_unlocked", (void (*)(void))on_fread_unlocked},
        {"__fread_unlocked_chk", (void (*)(void))on_fread_unlocked_chk},
        {"fwrite", (void (*)(void))on_fwrite},
        {"fwrite_unlocked", (void (*)(void))on_fwrite_unlocked},
        {"getrandom", (void (*)(void))on_getrandom},
        {"getentropy", (void (*)(void))on_getentropy},
        {"setvbuf", (void (*)(void))on_setvbuf},
        {"setbuf", (void (*)(void))on_setbuf},
        {"setbuffer", (void (*)(void))on_setbuffer},
        {"ioctl", (void (*)(void))on_ioctl},
        {"getsockopt", (void (*)(void))on_getsockopt},
        {"setsockopt", (void (*)(void))on_setsockopt},
        {"recvfrom", (void (*)(void))on_recvfrom},
        {"sendto", (void (*)(void))on_sendto},
        {"__recvfrom_chk", (void (*)(void))on_recvfrom_chk},
        {"readv", (void (*)(void))on_readv},
        {"writev", (void (*)(void))on_writev},
        {"preadv", (void (*)(void))on_preadv},
        {"pwritev", (void (*)(void))on_pwritev},
        {"preadv64", (void (*)(void))on_preadv},
        {"pwritev64", (void (*)(void))on_pwritev},
        {"preadv2", (void (*)(void))on_preadv2},
        {"pwritev2", (void (*)(void))on_pwritev2},
        {"preadv64v2", (void (*)(void))on_preadv2},
        {"pwritev64v2", (void (*)(void))on_pwritev2},
        {"recvmsg", (void (*)(void))on_recvmsg},
        {"sendmsg", (void (*)(void))on_sendmsg},
        {"recvmmsg", (void (*)(void))on_recvmmsg},
        {"sendmmsg", (void (*)(void))on_sendmmsg},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!strcmp(rows[i].name, name)) return (void *)(uintptr_t)rows[i].fn;
    }
    return NULL;
}
