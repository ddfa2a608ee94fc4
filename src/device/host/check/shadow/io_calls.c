/* Functions of the C library that hand buffers to the kernel, as the program's calls of them are
 * led here (imports.c): each tells io.c its buffers, calls the original, and says how much was
 * moved. */
#include "io.h"

#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

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

/* A call that stores to the parts (write), or reads them. */
static void begin(struct tt_check_io *io, const struct iovec *parts, size_t nparts, bool write,
                  const char *name)
{
    *io = (struct tt_check_io){.parts = parts, .nparts = nparts, .write = write};
    tt_check_io_begin(io, name);
}

/* ---- one buffer ---- */

static ssize_t on_read(int file, void *ptr, size_t bytes)
{
    const struct iovec part = {ptr, bytes};
    struct tt_check_io io;
    begin(&io, &part, 1, true, "read()");
    ssize_t n = read(file, ptr, bytes);
    tt_check_io_end(&io, n);
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
    struct tt_check_io io;
    begin(&io, &part, 1, false, "write()");
    ssize_t n = write(file, ptr, bytes);
    tt_check_io_end(&io, n);
    return n;
}

static ssize_t on_pread(int file, void *ptr, size_t bytes, off_t at)
{
    const struct iovec part = {ptr, bytes};
    struct tt_check_io io;
    begin(&io, &part, 1, true, "pread()");
    ssize_t n = pread(file, ptr, bytes, at);
    tt_check_io_end(&io, n);
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
    struct tt_check_io io;
    begin(&io, &part, 1, false, "pwrite()");
    ssize_t n = pwrite(file, ptr, bytes, at);
    tt_check_io_end(&io, n);
    return n;
}

static ssize_t on_recvfrom(int file, void *ptr, size_t bytes, int flags, struct sockaddr *from,
                           socklen_t *from_bytes)
{
    const struct iovec part = {ptr, bytes};
    struct tt_check_io io = {.parts = &part, .nparts = 1, .write = true};
    socklen_t room = 0;
    if (from && read_from(&room, from_bytes, sizeof(room)))
        io.names[0] = (struct iovec){from, room};
    tt_check_io_begin(&io, from ? "recvfrom()" : "recv()");
    ssize_t n = recvfrom(file, ptr, bytes, flags, from, from_bytes);
    tt_check_io_end(&io, n); /* with MSG_TRUNC more than there is room for */
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
    struct tt_check_io io = {.parts = &part, .nparts = 1};
    if (to) io.names[0] = (struct iovec){(void *)(uintptr_t)to, to_bytes};
    tt_check_io_begin(&io, to ? "sendto()" : "send()");
    ssize_t n = sendto(file, ptr, bytes, flags, to, to_bytes);
    tt_check_io_end(&io, n);
    return n;
}

static ssize_t on_send(int file, const void *ptr, size_t bytes, int flags)
{
    return on_sendto(file, ptr, bytes, flags, NULL, 0);
}

static ssize_t on_getrandom(void *ptr, size_t bytes, unsigned flags)
{
    const struct iovec part = {ptr, bytes};
    struct tt_check_io io;
    begin(&io, &part, 1, true, "getrandom()");
    ssize_t n = getrandom(ptr, bytes, flags);
    tt_check_io_end(&io, n);
    return n;
}

static int on_getentropy(void *ptr, size_t bytes)
{
    const struct iovec part = {ptr, bytes};
    struct tt_check_io io;
    begin(&io, &part, 1, true, "getentropy()");
    int rc = getentropy(ptr, bytes);
    tt_check_io_end(&io, rc ? -1 : (ssize_t)bytes);
    return rc;
}

static int on_getsockopt(int file, int level, int option, void *ptr, socklen_t *bytes)
{
    socklen_t room = 0;
    if (!read_from(&room, bytes, sizeof(room))) room = 0;
    const struct iovec part = {ptr, room};
    struct tt_check_io io;
    begin(&io, &part, 1, true, "getsockopt()");
    int rc = getsockopt(file, level, option, ptr, bytes);
    tt_check_io_end(&io, rc ? -1 : (ssize_t)*bytes);
    return rc;
}

static int on_setsockopt(int file, int level, int option, const void *ptr, socklen_t bytes)
{
    const struct iovec part = {(void *)(uintptr_t)ptr, bytes};
    struct tt_check_io io;
    begin(&io, &part, 1, false, "setsockopt()");
    int rc = setsockopt(file, level, option, ptr, bytes);
    tt_check_io_end(&io, rc ? -1 : (ssize_t)bytes);
    return rc;
}

static int on_setvbuf(FILE *file, char *ptr, int mode, size_t bytes)
{
    tt_check_io_lend_buffer(ptr);
    return setvbuf(file, ptr, mode, bytes);
}

static void on_setbuf(FILE *file, char *ptr)
{
    tt_check_io_lend_buffer(ptr);
    setbuf(file, ptr);
}

static void on_setbuffer(FILE *file, char *ptr, size_t bytes)
{
    tt_check_io_lend_buffer(ptr);
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
    struct tt_check_io io;
    begin(&io, &part, 1, request_stores(request), "ioctl()");
    int rc = ioctl(file, request, ptr);
    tt_check_io_end(&io, rc < 0 ? -1 : (ssize_t)bytes);
    return rc;
}

/* Nothing, where their product is no size: the C library refuses it. */
static struct iovec items_of(const void *ptr, size_t each, size_t count)
{
    struct iovec part = {(void *)(uintptr_t)ptr, 0};
    if (__builtin_mul_overflow(each, count, &part.iov_len)) part.iov_len = 0;
    return part;
}

static size_t on_fread(void *ptr, size_t each, size_t count, FILE *file)
{
    const struct iovec part = items_of(ptr, each, count);
    struct tt_check_io io;
    begin(&io, &part, 1, true, "fread()");
    size_t n = fread(ptr, each, count, file);
    tt_check_io_end(&io, (ssize_t)(n * each));
    return n;
}

static size_t on_fwrite(const void *ptr, size_t each, size_t count, FILE *file)
{
    const struct iovec part = items_of(ptr, each, count);
    struct tt_check_io io;
    begin(&io, &part, 1, false, "fwrite()");
    size_t n = fwrite(ptr, each, count, file);
    tt_check_io_end(&io, (ssize_t)(n * each));
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
    const struct iovec part = items_of(ptr, each, count);
    struct tt_check_io io;
    begin(&io, &part, 1, true, "fread()");
    size_t n = fread_unlocked(ptr, each, count, file);
    tt_check_io_end(&io, (ssize_t)(n * each));
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
    const struct iovec part = items_of(ptr, each, count);
    struct tt_check_io io;
    begin(&io, &part, 1, false, "fwrite()");
    size_t n = fwrite_unlocked(ptr, each, count, file);
    tt_check_io_end(&io, (ssize_t)(n * each));
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

static void begin_list(struct tt_check_io *io, const struct iovec *parts, int count, bool write,
                       const char *name)
{
    begin(io, parts, parts_of(parts, count > 0 ? (size_t)count : 0), write, name);
}

static size_t parts_of_message(const struct msghdr *message, bool *is_there_out)
{
    struct msghdr copy = {0};
    *is_there_out = read_from(&copy, message, sizeof(copy));
    if (!*is_there_out) return 0;
    return parts_of(message->msg_iov, tt_check_io_nparts(message));
}

static ssize_t on_readv(int file, const struct iovec *parts, int count)
{
    struct tt_check_io io;
    begin_list(&io, parts, count, true, "readv()");
    ssize_t n = readv(file, parts, count);
    tt_check_io_end(&io, n);
    return n;
}

static ssize_t on_writev(int file, const struct iovec *parts, int count)
{
    struct tt_check_io io;
    begin_list(&io, parts, count, false, "writev()");
    ssize_t n = writev(file, parts, count);
    tt_check_io_end(&io, n);
    return n;
}

static ssize_t on_preadv(int file, const struct iovec *parts, int count, off_t at)
{
    struct tt_check_io io;
    begin_list(&io, parts, count, true, "preadv()");
    ssize_t n = preadv(file, parts, count, at);
    tt_check_io_end(&io, n);
    return n;
}

static ssize_t on_pwritev(int file, const struct iovec *parts, int count, off_t at)
{
    struct tt_check_io io;
    begin_list(&io, parts, count, false, "pwritev()");
    ssize_t n = pwritev(file, parts, count, at);
    tt_check_io_end(&io, n);
    return n;
}

static ssize_t on_preadv2(int file, const struct iovec *parts, int count, off_t at, int flags)
{
    struct tt_check_io io;
    begin_list(&io, parts, count, true, "preadv2()");
    ssize_t n = preadv2(file, parts, count, at, flags);
    tt_check_io_end(&io, n);
    return n;
}

static ssize_t on_pwritev2(int file, const struct iovec *parts, int count, off_t at, int flags)
{
    struct tt_check_io io;
    begin_list(&io, parts, count, false, "pwritev2()");
    ssize_t n = pwritev2(file, parts, count, at, flags);
    tt_check_io_end(&io, n);
    return n;
}

static ssize_t on_recvmsg(int file, struct msghdr *message, int flags)
{
    bool is_there;
    size_t nparts = parts_of_message(message, &is_there);
    const struct iovec *parts = nparts ? message->msg_iov : NULL;
    struct tt_check_io io = {.parts = parts, .nparts = nparts, .write = true};
    if (is_there) tt_check_io_names_of(message, io.names);
    tt_check_io_begin(&io, "recvmsg()");
    ssize_t n = recvmsg(file, message, flags);
    tt_check_io_end(&io, n);
    return n;
}

static ssize_t on_sendmsg(int file, const struct msghdr *message, int flags)
{
    bool is_there;
    size_t nparts = parts_of_message(message, &is_there);
    const struct iovec *parts = nparts ? message->msg_iov : NULL;
    struct tt_check_io io = {.parts = parts, .nparts = nparts, .write = false};
    if (is_there) tt_check_io_names_of(message, io.names);
    tt_check_io_begin(&io, "sendmsg()");
    ssize_t n = sendmsg(file, message, flags);
    tt_check_io_end(&io, n);
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
        const size_t nparts = tt_check_io_nparts(&one->msg_hdr);
        if (nparts && !parts_of(one->msg_hdr.msg_iov, nparts)) break;
        n++;
    }
    return n;
}

static int on_recvmmsg(int file, struct mmsghdr *messages, unsigned count, int flags,
                       struct timespec *limit)
{
    struct tt_check_io io = {
        .messages = messages, .nmessages = messages_of(messages, count), .write = true};
    tt_check_io_begin(&io, "recvmmsg()");
    int n = recvmmsg(file, messages, count, flags, limit);
    tt_check_io_end(&io, n);
    return n;
}

static int on_sendmmsg(int file, struct mmsghdr *messages, unsigned count, int flags)
{
    struct tt_check_io io = {
        .messages = messages, .nmessages = messages_of(messages, count), .write = false};
    tt_check_io_begin(&io, "sendmmsg()");
    int n = sendmmsg(file, messages, count, flags);
    tt_check_io_end(&io, n);
    return n;
}

/* ---- the table ---- */

struct instead {
    const char *name;
    void (*fn)(void);
};

static const struct instead instead[] = {
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

void *tt_check_io_instead(const char *name)
{
    for (size_t i = 0; i < TT_LEN(instead); i++) {
        if (!strcmp(instead[i].name, name)) return (void *)(uintptr_t)instead[i].fn;
    }
    return NULL;
}
