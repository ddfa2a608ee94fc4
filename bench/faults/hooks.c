/* Loaded before the C library into a rank of `bench-faults`: counts the calls that the library
 * makes, and lets those of the victim go wrong at the scenario's moment. What others in the process
 * call (the program, the C library itself) passes through. */
#include "shared.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>

enum { IN_A_ROW = 3, JUMP_EVERY = 4 };

static struct fault_shared *shared; /* NULL: not a rank, or not yet */
static int own_rank;
static uintptr_t library_begin, library_end;

/* ---- what is hooked ---- */

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_mmap)(void *, size_t, int, int, int, off_t);
static int (*real_memfd_create)(const char *, unsigned);
static ssize_t (*real_send)(int, const void *, size_t, int);
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static ssize_t (*real_recv)(int, void *, size_t, int);
static ssize_t (*real_recvmsg)(int, struct msghdr *, int);
static int (*real_clock_gettime)(clockid_t, struct timespec *);

static void resolve(void)
{
    if (real_malloc) return;
    *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&real_mmap = dlsym(RTLD_NEXT, "mmap");
    *(void **)&real_memfd_create = dlsym(RTLD_NEXT, "memfd_create");
    *(void **)&real_send = dlsym(RTLD_NEXT, "send");
    *(void **)&real_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
    *(void **)&real_recv = dlsym(RTLD_NEXT, "recv");
    *(void **)&real_recvmsg = dlsym(RTLD_NEXT, "recvmsg");
    *(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
}

static int find_library(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    if (!strstr(object->dlpi_name, "libnccl.so")) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t begin = object->dlpi_addr + segment->p_vaddr, end = begin + segment->p_memsz;
        if (segment->p_type != PT_LOAD) continue;
        if (!library_begin || begin < library_begin) library_begin = begin;
        if (end > library_end) library_end = end;
    }
    return 1;
}

__attribute__((constructor)) static void attach(void)
{
    const char *fd = getenv("FAULTS_SHARED"), *rank = getenv("FAULTS_RANK");
    resolve();
    if (!fd || !rank) return;
    own_rank = atoi(rank);
    dl_iterate_phdr(find_library, NULL);
    void *at = real_mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(fd), 0);
    if (at != MAP_FAILED) shared = at;
}

/* ---- when ---- */

static bool counts_for(const void *caller)
{
    return shared && (uintptr_t)caller >= library_begin && (uintptr_t)caller < library_end &&
           atomic_load_explicit(&shared->begin_usec, memory_order_relaxed) != 0;
}

/* Count `n` of that kind; which of them the fault is about, 1 to n; 0: none. */
static uint64_t is_due(enum fault_kind kind, const void *caller, uint64_t n)
{
    if (!counts_for(caller)) return 0;
    uint64_t before = atomic_fetch_add(&shared->reports[own_rank].counts[kind], n);
    const struct fault_scenario *scenario = &shared->scenario;
    if (scenario->kind != kind || scenario->victim != own_rank) return 0;
    return scenario->moment > before && scenario->moment <= before + n ? scenario->moment - before
                                                                       : 0;
}

static void inject(void)
{
    int64_t none = 0;
    atomic_compare_exchange_strong(&shared->injected_usec, &none, fault_now_usec());
}

/* Some in a row fail. */
static bool fails(enum fault_kind kind, const void *caller)
{
    static _Atomic int more[FAULT_KINDS];
    bool due = is_due(kind, caller, 1) != 0;
    if (due) {
        inject();
        atomic_store(&more[kind], (int)(shared->scenario.seed % IN_A_ROW));
        return true;
    }
    return counts_for(caller) && atomic_load(&more[kind]) > 0 &&
           atomic_fetch_sub(&more[kind], 1) > 0;
}

/* ---- memory ---- */

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))
#pragma GCC visibility push(default)

void *malloc(size_t bytes)
{
    resolve();
    if (fails(FAULT_MALLOC, CALLER)) return errno = ENOMEM, NULL;
    return real_malloc(bytes);
}

void *calloc(size_t count, size_t size)
{
    resolve();
    if (fails(FAULT_MALLOC, CALLER)) return errno = ENOMEM, NULL;
    return real_calloc(count, size);
}

void *realloc(void *old, size_t bytes)
{
    resolve();
    if (fails(FAULT_MALLOC, CALLER)) return errno = ENOMEM, NULL;
    return real_realloc(old, bytes);
}

void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    resolve();
    if (fails(FAULT_MMAP, CALLER)) return errno = ENOMEM, MAP_FAILED;
    return real_mmap(at, bytes, prot, flags, fd, offset);
}

/* The driver of the devices asks for it, before anything else begins. */
int memfd_create(const char *name, unsigned flags)
{
    resolve();
    if (shared && shared->scenario.kind == FAULT_MEMFD && shared->scenario.victim == own_rank) {
        inject();
        return errno = EPERM, -1;
    }
    return real_memfd_create(name, flags);
}

/* ---- sockets ---- */

static bool is_network(int fd, struct sockaddr_in *peer)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof(address);
    if (getpeername(fd, (struct sockaddr *)&address, &len)) return false;
    memcpy(peer, &address, sizeof(*peer));
    return address.ss_family == AF_INET || address.ss_family == AF_INET6;
}

static void close_at_moment(int fd, const void *caller)
{
    struct sockaddr_in peer;
    if (!counts_for(caller) || !is_network(fd, &peer) || !is_due(FAULT_CLOSED, caller, 1)) return;
    atomic_store(&shared->peer, ntohl(peer.sin_addr.s_addr));
    inject();
    shutdown(fd, SHUT_RDWR);
}

/* Bytes have come; one bit of one of them is another on the victim's side. */
static void flip_at_moment(int fd, const struct iovec *pieces, size_t npieces, ssize_t n,
                           const void *caller)
{
    struct sockaddr_in peer;
    int before = errno;
    if (n <= 0 || !counts_for(caller) || !is_network(fd, &peer)) {
        errno = before;
        return;
    }
    uint64_t at = is_due(FAULT_FLIPPED, caller, (uint64_t)n);
    for (size_t i = 0; at && i < npieces; i++) {
        if (at <= pieces[i].iov_len) {
            ((unsigned char *)pieces[i].iov_base)[at - 1] ^=
                (unsigned char)(1u << shared->scenario.seed % 8);
            atomic_store(&shared->peer, ntohl(peer.sin_addr.s_addr));
            inject();
            break;
        }
        at -= pieces[i].iov_len;
    }
}

ssize_t send(int fd, const void *from, size_t bytes, int flags)
{
    close_at_moment(fd, CALLER);
    return real_send(fd, from, bytes, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    close_at_moment(fd, CALLER);
    return real_sendmsg(fd, message, flags);
}

ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
    close_at_moment(fd, CALLER);
    ssize_t n = real_recv(fd, to, bytes, flags);
    const struct iovec piece = {to, bytes};
    if (!(flags & MSG_PEEK)) flip_at_moment(fd, &piece, 1, n, CALLER);
    return n;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    close_at_moment(fd, CALLER);
    ssize_t n = real_recvmsg(fd, message, flags);
    flip_at_moment(fd, message->msg_iov, message->msg_iovlen, n, CALLER);
    return n;
}

/* ---- the clock of the wall ---- */

/* Seconds that it is off: forth and back by up to a year, again and again. Of all callers: so is a
 * clock that is set by hand. */
static time_t jump(void)
{
    if (!shared || shared->scenario.kind != FAULT_CLOCK || shared->scenario.victim != own_rank)
        return 0;
    if (!atomic_load(&shared->begin_usec)) return 0;
    uint64_t n = atomic_fetch_add(&shared->reports[own_rank].counts[FAULT_CLOCK], 1) +
                 shared->scenario.moment;
    time_t by = (time_t)(1 + shared->scenario.seed % (365 * 86400));
    inject();
    return n / JUMP_EVERY % 2 ? by : -by;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    resolve();
    int rc = real_clock_gettime(clock, time);
    if (!rc && clock == CLOCK_REALTIME) time->tv_sec += jump();
    return rc;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    resolve();
    real_clock_gettime(CLOCK_REALTIME, &now);
    *time = (struct timeval){now.tv_sec + jump(), now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;
    resolve();
    real_clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += jump();
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
#pragma GCC visibility pop

int64_t fault_now_usec(void)
{
    struct timespec now;
    resolve();
    real_clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
