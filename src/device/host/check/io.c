/* System calls of the program on closed pages, which the kernel refuses: calls of the usual
 * functions are led here (imports.c). Where a page of the buffer is closed, it is opened, and what
 * the call has read or written is judged as an access of the host. */
#include "io.h"

#include "guard.h"

#include "base/mem.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAGE = 4096, TRIES_MOST = 100000 };

struct io {
    struct tt_host_check *check;
    struct tt_check_op *op; /* owned; NULL: no page is closed */
    const void *ptr;
    bool write;
};

/* A handler of a signal may have interrupted who holds the lock in this thread. */
static bool lock(struct tt_host_check *check)
{
    bool locked = false;
    for (int i = 0; !locked && !tt_host_thread.is_checking && i < TRIES_MOST; i++) {
        locked = pthread_mutex_trylock(&check->lock) == 0;
        if (!locked) sched_yield();
    }
    if (locked) tt_host_thread.is_checking = true;
    return locked;
}

static void unlock(struct tt_host_check *check)
{
    tt_host_thread.is_checking = false;
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

static struct io begin(const void *ptr, size_t bytes, bool write, const char *name)
{
    struct io io = {.check = atomic_load_explicit(&tt_host.check, memory_order_acquire),
                    .ptr = ptr,
                    .write = write};
    int kept = errno;
    if (tt_host_forked()) {
        open_pages(io.check, ptr, bytes, write);
    } else if (lock(io.check)) {
        bool works = tt_host_thread.in_host_fn || tt_host_thread.in_kernel;
        bool closed = open_pages(io.check, ptr, bytes, write);
        unlock(io.check);
        if (closed && !works) tt_host_thread.site = tt_check_call_site();
        if (closed && !works && lock(io.check)) {
            io.op = tt_check_op_begin(io.check, NULL, name);
            unlock(io.check);
        }
    }
    errno = kept;
    return io;
}

/* So many bytes were moved. */
static void end(const struct io *io, ssize_t bytes)
{
    int kept = errno;
    if (io->op && lock(io->check)) {
        if (bytes > 0) tt_check_touch(io->check, io->op, io->ptr, (size_t)bytes, io->write);
        tt_check_op_drop(io->op);
        unlock(io->check);
    }
    errno = kept;
}

/* ---- the functions ---- */

static ssize_t on_read(int file, void *ptr, size_t bytes)
{
    const struct io io = begin(ptr, bytes, true, "read()");
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
    const struct io io = begin(ptr, bytes, false, "write()");
    ssize_t n = write(file, ptr, bytes);
    end(&io, n);
    return n;
}

static ssize_t on_pread(int file, void *ptr, size_t bytes, off_t at)
{
    const struct io io = begin(ptr, bytes, true, "pread()");
    ssize_t n = pread(file, ptr, bytes, at);
    end(&io, n);
    return n;
}

static ssize_t on_pwrite(int file, const void *ptr, size_t bytes, off_t at)
{
    const struct io io = begin(ptr, bytes, false, "pwrite()");
    ssize_t n = pwrite(file, ptr, bytes, at);
    end(&io, n);
    return n;
}

static ssize_t on_recv(int file, void *ptr, size_t bytes, int flags)
{
    const struct io io = begin(ptr, bytes, true, "recv()");
    ssize_t n = recv(file, ptr, bytes, flags);
    end(&io, n > (ssize_t)bytes ? (ssize_t)bytes : n); /* MSG_TRUNC */
    return n;
}

static ssize_t on_recv_chk(int file, void *ptr, size_t bytes, size_t room, int flags)
{
    if (bytes > room) abort();
    return on_recv(file, ptr, bytes, flags);
}

static ssize_t on_send(int file, const void *ptr, size_t bytes, int flags)
{
    const struct io io = begin(ptr, bytes, false, "send()");
    ssize_t n = send(file, ptr, bytes, flags);
    end(&io, n);
    return n;
}

static size_t on_fread(void *ptr, size_t each, size_t count, FILE *file)
{
    size_t bytes = 0;
    bool far = __builtin_mul_overflow(each, count, &bytes);
    const struct io io = begin(ptr, far ? 0 : bytes, true, "fread()");
    size_t n = fread(ptr, each, count, file);
    end(&io, (ssize_t)(n * each));
    return n;
}

static size_t on_fwrite(const void *ptr, size_t each, size_t count, FILE *file)
{
    size_t bytes = 0;
    bool far = __builtin_mul_overflow(each, count, &bytes);
    const struct io io = begin(ptr, far ? 0 : bytes, false, "fwrite()");
    size_t n = fwrite(ptr, each, count, file);
    end(&io, (ssize_t)(n * each));
    return n;
}

void *tt_check_io_instead(const char *name)
{
    static const struct {
        const char *name;
        void (*fn)(void);
    } rows[] = {
        {"read", (void (*)(void))on_read},           {"__read_chk", (void (*)(void))on_read_chk},
        {"write", (void (*)(void))on_write},         {"pread", (void (*)(void))on_pread},
        {"pread64", (void (*)(void))on_pread},       {"pwrite", (void (*)(void))on_pwrite},
        {"pwrite64", (void (*)(void))on_pwrite},     {"recv", (void (*)(void))on_recv},
        {"__recv_chk", (void (*)(void))on_recv_chk}, {"send", (void (*)(void))on_send},
        {"fread", (void (*)(void))on_fread},         {"fwrite", (void (*)(void))on_fwrite},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!strcmp(rows[i].name, name)) return (void *)(uintptr_t)rows[i].fn;
    }
    return NULL;
}
