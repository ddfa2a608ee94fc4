/* A sound program under TUTTI_CHECK=race:exit that lives close to closed pages: system calls on
 * pinned memory whose neighbours are in flight, also by a host function before work that uses it, a
 * child that looks at memory in flight, a handler of SIGSEGV of its own, SIGSEGV that
 * is sent, threads. Nothing is reported, no call fails, no byte is lost. Started again with the
 * name of a system call it makes a race by it, which is named, and the call does its work. */
#include "cuda_runtime.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 64 << 10, TURNS = 200 };

static void expect(int rc, int line, const char *call)
{
    if (!rc) return;
    fprintf(stderr, "line %d: %s: %d\n", line, call, rc);
    exit(2);
}
#define OK(call) expect((int)(call), __LINE__, #call)
#define CHECK(what) OK(!(what))

struct shared {
    char *pinned, *device;
    int pipe[2];
    cudaStream_t stream, other;
    _Atomic long served;
};

static void serve(void *arg)
{
    struct shared *my = arg;
    my->served += read(my->pipe[0], my->pinned, BYTES / 2) == BYTES / 2;
}

/* The copy behind it is there already, and other work holds the other half. */
static void host_function_reads(struct shared *my)
{
    static char want[BYTES / 2], got[BYTES];
    for (int turn = 0; turn < TURNS; turn++) {
        memset(want, turn, sizeof(want));
        CHECK(write(my->pipe[1], want, sizeof(want)) == (ssize_t)sizeof(want));
        OK(cudaMemcpyAsync(my->pinned + BYTES / 2, my->device, BYTES / 2, cudaMemcpyDefault,
                           my->other));
        OK(cudaLaunchHostFunc(my->stream, serve, my));
        OK(cudaMemcpyAsync(my->device + BYTES / 2, my->pinned, BYTES / 2, cudaMemcpyDefault,
                           my->stream));
        OK(cudaStreamSynchronize(my->stream));
        OK(cudaMemcpy(got, my->device + BYTES / 2, BYTES / 2, cudaMemcpyDefault));
        CHECK(!memcmp(got, want, sizeof(want)));
        OK(cudaStreamSynchronize(my->other));
    }
    CHECK(my->served == TURNS);
}

/* Slots within a page: one is filled from a pipe while another is in flight. */
static void neighbours(struct shared *my)
{
    enum { SLOT = 512 };
    char text[SLOT] = "slot";
    for (int turn = 0; turn < TURNS; turn++) {
        char *mine = my->pinned + turn % 8 * SLOT, *theirs = my->pinned + (turn + 1) % 8 * SLOT;
        OK(cudaMemcpyAsync(theirs, my->device, SLOT, cudaMemcpyDefault, my->stream));
        OK(ioctl(my->pipe[0], FIOCLEX, theirs)); /* which takes no argument */
        CHECK(write(my->pipe[1], text, SLOT) == SLOT);
        CHECK(read(my->pipe[0], mine, SLOT) == SLOT);
        mine[1]++;
        CHECK(write(my->pipe[1], mine, SLOT) == SLOT && read(my->pipe[0], mine, SLOT) == SLOT);
        OK(cudaStreamSynchronize(my->stream));
        theirs[0] = 1;
    }
    OK(cudaMemcpyAsync(my->device, my->pinned, BYTES, cudaMemcpyDefault, my->stream));
    CHECK(write(my->pipe[1], my->pinned, BYTES / 2) == BYTES / 2); /* reading is allowed */
    OK(cudaStreamSynchronize(my->stream));
    CHECK(read(my->pipe[0], my->pinned, BYTES / 2) == BYTES / 2);
}

static void *read_slowly(void *arg)
{
    struct shared *my = arg;
    my->served += read(my->pipe[0], my->pinned, 512) == 512;
    return NULL;
}

/* It waits in the kernel while the rest of its page is in flight, and calls are made beside it. */
static void waits_inside(struct shared *my)
{
    static char text[512];
    pthread_t thread;
    my->served = 0;
    for (int turn = 0; turn < TURNS / 4; turn++) {
        memset(text, turn, sizeof(text));
        OK(pthread_create(&thread, NULL, read_slowly, my));
        for (int k = 0; k < 8; k++)
            OK(cudaMemcpyAsync(my->pinned + 512 * (k % 4 + 1), my->device, 512, cudaMemcpyDefault,
                               my->stream));
        if (turn % 4 == 0) usleep(1000);
        OK(cudaMemcpyAsync(my->pinned + 1024, my->device, 1024, cudaMemcpyDefault, my->stream));
        CHECK(write(my->pipe[1], text, sizeof(text)) == (ssize_t)sizeof(text));
        OK(pthread_join(thread, NULL));
        CHECK(my->pinned[0] == (char)turn && my->pinned[511] == (char)turn);
        OK(cudaStreamSynchronize(my->stream));
    }
    CHECK(my->served == TURNS / 4);
}

static void child(struct shared *my)
{
    int status = -1;
    OK(cudaMemsetAsync(my->pinned, 3, BYTES, my->stream));
    OK(cudaMemcpyAsync(my->pinned, my->device, BYTES, cudaMemcpyDefault, my->stream));
    pid_t pid = fork();
    if (pid == 0) {
        my->pinned[0] = my->pinned[BYTES - 1];
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    OK(cudaStreamSynchronize(my->stream));
}

static sigjmp_buf back;
static volatile sig_atomic_t faults;

static void on_fault(int number)
{
    (void)number;
    faults++;
    siglongjmp(back, 1);
}

static void own_handler(struct shared *my)
{
    struct sigaction own = {.sa_handler = on_fault};
    char *closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(sigaction(SIGSEGV, &own, NULL));
    for (int turn = 0; turn < 3; turn++) {
        OK(cudaMemcpyAsync(my->pinned, my->device, BYTES, cudaMemcpyDefault, my->stream));
        if (!sigsetjmp(back, 1)) *(volatile char *)closed = 1;
        if (!sigsetjmp(back, 1)) raise(SIGSEGV);
        CHECK(faults == 2 * (turn + 1));
        OK(cudaStreamSynchronize(my->stream));
        my->pinned[0]++;
    }
    signal(SIGSEGV, SIG_DFL);
    munmap(closed, 4096);
}

/* In a process of its own, which ends by it. */
static void is_sent(struct shared *my)
{
    OK(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}));
    OK(cudaMemcpyAsync(my->pinned, my->device, BYTES, cudaMemcpyDefault, my->stream));
    raise(SIGSEGV);
}

static void ended_by_signal(const char *program)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        execl(program, program, "is-sent", (char *)NULL);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status != 0);
}

/* ---- calls that the kernel would refuse: each is a race, and is named ---- */

static const struct {
    const char *name;
    bool stores;        /* to the buffer */
    const char *report; /* what it is called there; NULL: the same */
} calls[] = {
    {"read()", true, NULL},
    {"pread()", true, NULL},
    {"recv()", true, NULL},
    {"recvfrom()", true, NULL},
    {"fread()", true, NULL},
    {"readv()", true, NULL},
    {"preadv()", true, NULL},
    {"preadv2()", true, NULL},
    {"recvmsg()", true, NULL},
    {"recvmmsg()", true, NULL},
    {"write()", false, NULL},
    {"pwrite()", false, NULL},
    {"send()", false, NULL},
    {"sendto()", false, NULL},
    {"fwrite()", false, NULL},
    {"writev()", false, NULL},
    {"pwritev()", false, NULL},
    {"pwritev2()", false, NULL},
    {"sendmsg()", false, NULL},
    {"sendmmsg()", false, NULL},
    /* as the compiler names them where it knows the buffer's size, and for one thread */
    {"__read_chk()", true, "read()"},
    {"__pread_chk()", true, "pread()"},
    {"__recv_chk()", true, "recv()"},
    {"__recvfrom_chk()", true, "recv()"},
    {"__fread_chk()", true, "fread()"},
    {"fread_unlocked()", true, "fread()"},
    {"__fread_unlocked_chk()", true, "fread()"},
    {"fwrite_unlocked()", false, "fwrite()"},
    {"ioctl()", true, NULL},
    {"getrandom()", true, NULL},
    {"getentropy()", true, NULL},
    {"getsockopt()", true, NULL},
    {"setsockopt()", false, NULL},
    /* what the kernel stores beside the data */
    {"recvfrom() with an address", true, "recvfrom()"},
    {"recvmsg() with an address", true, "recvmsg()"},
    {"recvmsg() with control data", true, "recvmsg()"},
    {"recvmmsg() with an address", true, "recvmmsg()"},
    {"store of a part", true, "a store of the host"}, /* of a page; the rest is not in flight */
};
/* NOLINTBEGIN(bugprone-reserved-identifier): the C library's */
ssize_t __read_chk(int file, void *ptr, size_t bytes, size_t room);
ssize_t __pread_chk(int file, void *ptr, size_t bytes, off_t at, size_t room);
ssize_t __recv_chk(int file, void *ptr, size_t bytes, size_t room, int flags);
ssize_t __recvfrom_chk(int file, void *ptr, size_t bytes, size_t room, int flags,
                       struct sockaddr *from, socklen_t *from_bytes);
size_t __fread_chk(void *ptr, size_t room, size_t each, size_t count, FILE *file);
size_t __fread_unlocked_chk(void *ptr, size_t room, size_t each, size_t count, FILE *file);
/* NOLINTEND(bugprone-reserved-identifier) */
enum { NCALLS = sizeof(calls) / sizeof(calls[0]) };

struct ends { /* full of data, but for the file's second half */
    int pipe[2], stream[2], datagrams[2];
    FILE *file;
};

/* The second part of several lies where nothing is in flight: the first one is what matters. */
static ssize_t call_parts(const struct ends *ends, char *buffer, const char *name)
{
    static char other[4];
    struct iovec parts[] = {{buffer, 4}, {other, sizeof(other)}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (!strcmp(name, "readv()")) return readv(ends->pipe[0], parts, 2);
    if (!strcmp(name, "writev()")) return writev(ends->pipe[1], parts, 2);
    if (!strcmp(name, "preadv()")) return preadv(fileno(ends->file), parts, 2, 0);
    if (!strcmp(name, "pwritev()")) return pwritev(fileno(ends->file), parts, 2, 0);
    if (!strcmp(name, "preadv2()")) return preadv2(fileno(ends->file), parts, 2, 0, 0);
    if (!strcmp(name, "pwritev2()")) return pwritev2(fileno(ends->file), parts, 2, 0, 0);
    if (!strcmp(name, "recvmsg()")) return recvmsg(ends->stream[0], &message, 0);
    return !strcmp(name, "sendmsg()") ? sendmsg(ends->stream[0], &message, 0) : -1;
}

/* The buffer is the second message's. */
static ssize_t call_messages(const struct ends *ends, char *buffer, const char *name)
{
    static char other[4];
    struct iovec parts[] = {{other, sizeof(other)}, {buffer, 4}};
    struct mmsghdr messages[] = {{.msg_hdr = {.msg_iov = &parts[0], .msg_iovlen = 1}},
                                 {.msg_hdr = {.msg_iov = &parts[1], .msg_iovlen = 1}}};
    int n = !strcmp(name, "recvmmsg()")   ? recvmmsg(ends->stream[0], messages, 2, 0, NULL)
            : !strcmp(name, "sendmmsg()") ? sendmmsg(ends->stream[0], messages, 2, 0)
                                          : -1;
    return n == 2 && messages[1].msg_len == 4 ? n : call_parts(ends, buffer, name);
}

/* The data lies elsewhere. */
static ssize_t call_beside(const struct ends *ends, char *buffer, const char *name)
{
    static char data[8];
    struct iovec part = {data, sizeof(data)};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    socklen_t bytes = sizeof(struct sockaddr_in);
    if (strstr(name, "address")) {
        message.msg_hdr.msg_name = buffer;
        message.msg_hdr.msg_namelen = bytes;
    } else {
        int on = 1;
        OK(setsockopt(ends->datagrams[0], IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)));
        message.msg_hdr.msg_control = buffer;
        message.msg_hdr.msg_controllen = 256;
    }
    if (!strncmp(name, "recvfrom", 8))
        return recvfrom(ends->datagrams[0], data, 8, 0, (struct sockaddr *)buffer, &bytes);
    if (!strncmp(name, "recvmmsg", 8)) return recvmmsg(ends->datagrams[0], &message, 1, 0, NULL);
    return recvmsg(ends->datagrams[0], &message.msg_hdr, 0);
}

static ssize_t call_other(const struct ends *ends, char *buffer, const char *name)
{
    if (strstr(name, " with ")) return call_beside(ends, buffer, name);
    if (!strcmp(name, "ioctl()")) return ioctl(ends->pipe[0], FIONREAD, buffer) ? -1 : buffer[0];
    if (!strcmp(name, "getrandom()")) return getrandom(buffer, 16, 0);
    if (!strcmp(name, "getentropy()")) return getentropy(buffer, 16) ? -1 : 16;
    socklen_t bytes = sizeof(int);
    if (!strcmp(name, "getsockopt()"))
        return getsockopt(ends->stream[0], SOL_SOCKET, SO_TYPE, buffer, &bytes) ? -1 : 4;
    if (!strcmp(name, "setsockopt()"))
        return setsockopt(ends->stream[0], SOL_SOCKET, SO_KEEPALIVE, buffer, bytes) ? -1 : 4;
    buffer[100]++; /* "store of a part" */
    return 1;
}

static ssize_t call_named_otherwise(const struct ends *ends, char *buffer, const char *name)
{
    FILE *file = ends->file;
    if (!strcmp(name, "__read_chk()")) return __read_chk(ends->pipe[0], buffer, 8, BYTES);
    if (!strcmp(name, "__pread_chk()")) return __pread_chk(fileno(file), buffer, 4, 0, BYTES);
    if (!strcmp(name, "__recv_chk()")) return __recv_chk(ends->stream[0], buffer, 8, BYTES, 0);
    if (!strcmp(name, "__recvfrom_chk()"))
        return __recvfrom_chk(ends->datagrams[0], buffer, 8, BYTES, 0, NULL, NULL);
    if (!strcmp(name, "__fread_chk()")) return (ssize_t)__fread_chk(buffer, BYTES, 2, 2, file);
    if (!strcmp(name, "fread_unlocked()"))
        return (ssize_t)fread_unlocked(buffer, 4, 4, file); /* less is inlined */
    if (!strcmp(name, "__fread_unlocked_chk()"))
        return (ssize_t)__fread_unlocked_chk(buffer, BYTES, 2, 2, file);
    if (!strcmp(name, "fwrite_unlocked()")) return (ssize_t)fwrite_unlocked(buffer, 1, BYTES, file);
    ssize_t n = call_messages(ends, buffer, name);
    return n < 0 ? call_other(ends, buffer, name) : n;
}

static ssize_t call_one(const struct ends *ends, char *buffer, const char *name)
{
    struct sockaddr_storage from;
    socklen_t bytes = sizeof(from);
    struct sockaddr *address = (void *)&from;
    if (!strcmp(name, "read()")) return read(ends->pipe[0], buffer + 8192, 8);
    if (!strcmp(name, "write()")) return write(ends->pipe[1], buffer + 8192, 8);
    if (!strcmp(name, "pread()")) return pread(fileno(ends->file), buffer, 4, 0);
    if (!strcmp(name, "pwrite()")) return pwrite(fileno(ends->file), buffer + 4000, 200, 0);
    if (!strcmp(name, "recv()")) return recv(ends->stream[0], buffer, BYTES, 0);
    if (!strcmp(name, "send()")) return send(ends->stream[0], buffer, 4096, 0);
    if (!strcmp(name, "fread()")) return (ssize_t)fread(buffer, 2, 2, ends->file);
    if (!strcmp(name, "fwrite()")) return (ssize_t)fwrite(buffer, 1, BYTES, ends->file);
    if (!strcmp(name, "recvfrom()"))
        return recvfrom(ends->datagrams[0], buffer, 8, MSG_TRUNC, address, &bytes);
    if (strcmp(name, "sendto()")) return call_named_otherwise(ends, buffer, name);
    OK(getsockname(ends->datagrams[1], address, &bytes));
    return sendto(ends->datagrams[0], buffer, 64, 0, address, bytes);
}

/* Datagrams by addresses, which sendto() wants. */
static void make_datagrams(int sockets[2])
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in to;
    socklen_t bytes = sizeof(to);
    for (int k = 0; k < 2; k++) {
        sockets[k] = socket(AF_INET, SOCK_DGRAM, 0);
        OK(bind(sockets[k], (const struct sockaddr *)&any, sizeof(any)));
    }
    OK(getsockname(sockets[0], (struct sockaddr *)&to, &bytes));
    CHECK(sendto(sockets[1], "0123456789abcdef", 16, 0, (const struct sockaddr *)&to, bytes) == 16);
}

static void race_by(struct shared *my, const char *name)
{
    char *own = my->pinned;
    struct ends ends = {.pipe = {my->pipe[0], my->pipe[1]}, .file = tmpfile()};
    bool stores = false;
    CHECK(ends.file != NULL);
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.stream));
    make_datagrams(ends.datagrams);
    CHECK(write(ends.pipe[1], "12345678", 8) == 8 && send(ends.stream[1], "12345678", 8, 0) == 8);
    CHECK(pwrite(fileno(ends.file), "12345678", 8, 0) == 8);
    for (int k = 0; k < NCALLS; k++)
        stores = stores || (calls[k].stores && !strcmp(calls[k].name, name));
    size_t bytes = strcmp(name, "store of a part") ? BYTES : 512;
    if (stores) OK(cudaMemcpyAsync(my->device, own, bytes, cudaMemcpyDefault, my->stream));
    if (!stores) OK(cudaMemcpyAsync(own, my->device, BYTES, cudaMemcpyDefault, my->stream));
    CHECK(call_one(&ends, own, name) > 0);
}

static void named(const char *program, const char *name, const char *report)
{
    static char said[1 << 14];
    char want[64];
    int ends[2], status = -1;
    size_t len = 0;
    OK(pipe(ends));
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(program, program, name, (char *)NULL);
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t n = 1; n > 0 && len + 1 < sizeof(said); len += n > 0 ? (size_t)n : 0)
        n = read(ends[0], said + len, sizeof(said) - len - 1);
    said[len] = 0;
    close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    snprintf(want, sizeof(want), "tutti check: race: %s ", report ? report : name);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 66 && strstr(said, want)) return;
    fprintf(stderr, "%s: status %d, said:\n%s\n", name, status, said);
    exit(2);
}

/* Lists that are nowhere are refused by the kernel, not read here. */
static void bad_lists(void)
{
    const struct iovec *volatile nowhere = (const struct iovec *)(uintptr_t)64;
    const struct iovec *volatile none = NULL; /* the compiler would warn */
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)64, .msg_iovlen = 1};
    int ends[2];
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    CHECK(readv(ends[0], none, 1) < 0 && errno == EFAULT);
    CHECK(writev(ends[0], nowhere, 1) < 0 && errno == EFAULT);
    CHECK(sendmsg(ends[0], &message, 0) < 0 && errno == EFAULT);
    CHECK(recvmsg(ends[0], (struct msghdr *)(uintptr_t)64, 0) < 0 && errno == EFAULT);
    CHECK(recvmmsg(ends[0], (struct mmsghdr *)(uintptr_t)64, 1, 0, NULL) < 0 && errno == EFAULT);
    static char one[] = "1";
    struct iovec byte = {one, 1};
    struct mmsghdr messages[] = {{.msg_hdr = {.msg_iov = &byte, .msg_iovlen = 1}},
                                 {.msg_hdr = message}};
    CHECK(sendmmsg(ends[0], &messages[1], 1, 0) < 0 && errno == EFAULT);
    CHECK(sendmmsg(ends[0], messages, 2, 0) == 1 && messages[0].msg_len == 1);
    close(ends[0]);
    close(ends[1]);
}

static void all_named(const char *program)
{
    for (int k = 0; k < NCALLS; k++)
        named(program, calls[k].name, calls[k].report);
}

static void *work(void *arg)
{
    struct shared my = *(struct shared *)arg;
    OK(cudaMallocHost((void **)&my.pinned, BYTES));
    OK(cudaMalloc((void **)&my.device, BYTES));
    OK(cudaStreamCreateWithFlags(&my.stream, cudaStreamNonBlocking));
    for (int turn = 0; turn < TURNS; turn++) {
        memset(my.pinned, turn, BYTES);
        OK(cudaMemcpyAsync(my.device, my.pinned, BYTES, cudaMemcpyDefault, my.stream));
        OK(cudaStreamSynchronize(my.stream));
        memset(my.pinned, 0, BYTES);
        OK(cudaMemcpyAsync(my.pinned, my.device, BYTES, cudaMemcpyDefault, my.stream));
        OK(cudaStreamSynchronize(my.stream));
        CHECK(my.pinned[0] == (char)turn && my.pinned[BYTES - 1] == (char)turn);
    }
    OK(cudaStreamDestroy(my.stream));
    OK(cudaFree(my.device));
    OK(cudaFreeHost(my.pinned));
    return NULL;
}

int main(int argc, char **argv)
{
    struct shared my = {.served = 0};
    pthread_t threads[3];
    setenv("TUTTI_DEVICES", "2", 0);
    setenv("TUTTI_CHECK", "race:exit", 1);
    OK(pipe(my.pipe));
    OK(cudaMallocHost((void **)&my.pinned, BYTES));
    OK(cudaMalloc((void **)&my.device, BYTES));
    OK(cudaMemset(my.device, 0, BYTES));
    OK(cudaDeviceSynchronize());
    OK(cudaStreamCreateWithFlags(&my.stream, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&my.other, cudaStreamNonBlocking));
    if (argc > 1) {
        if (!strcmp(argv[1], "is-sent")) is_sent(&my);
        race_by(&my, argv[1]);
        return 0;
    }
    all_named(argv[0]);
    ended_by_signal(argv[0]);
    host_function_reads(&my);
    bad_lists();
    neighbours(&my);
    waits_inside(&my);
    child(&my);
    own_handler(&my);
    for (int i = 0; i < 3; i++)
        OK(pthread_create(&threads[i], NULL, work, &my));
    for (int i = 0; i < 3; i++)
        OK(pthread_join(threads[i], NULL));
    OK(cudaFreeHost(my.pinned));
    OK(cudaFree(my.device));
    return 0;
}
