/* How many system calls a Send, a Broadcast and an AllReduce of 16 MiB over sockets cost who sends,
 * MACs and all. What a receiver and a full socket cost depends on who runs when, and is printed
 * alone. */
#include "../harness/harness.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MIB = 1 << 20, BYTES = 16 * MIB, ROUNDS = 8, MOST_PER_MIB = 10 };

#define EXPORTED __attribute__((visibility("default")))
static _Atomic int sent, full, got, empty; /* these stand before libc's for the library as well */
static _Atomic size_t first;               /* bytes that the first sendmsg() since then offered */

EXPORTED ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    size_t none = 0, offered = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        offered += message->msg_iov[i].iov_len;
    atomic_compare_exchange_strong(&first, &none, offered);
    ssize_t n = syscall(SYS_sendmsg, fd, message, flags);
    atomic_fetch_add_explicit(n < 0 ? &full : &sent, 1, memory_order_relaxed);
    return n;
}

EXPORTED ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t n = syscall(SYS_recvmsg, fd, message, flags);
    atomic_fetch_add_explicit(n < 0 ? &empty : &got, 1, memory_order_relaxed);
    return n;
}

EXPORTED ssize_t send(int fd, const void *bytes, size_t len_bytes, int flags)
{
    ssize_t n = syscall(SYS_sendto, fd, bytes, len_bytes, flags, NULL, 0);
    atomic_fetch_add_explicit(n < 0 ? &full : &sent, 1, memory_order_relaxed);
    return n;
}

EXPORTED ssize_t recv(int fd, void *bytes, size_t len_bytes, int flags)
{
    ssize_t n = syscall(SYS_recvfrom, fd, bytes, len_bytes, flags, NULL, NULL);
    atomic_fetch_add_explicit(n < 0 ? &empty : &got, 1, memory_order_relaxed);
    return n;
}

static void pass(const struct harness_rank *self, unsigned char *bytes)
{
    NCCL(self->rank ? ncclRecv(bytes, BYTES, ncclChar, 0, self->comm, self->stream)
                    : ncclSend(bytes, BYTES, ncclChar, 1, self->comm, self->stream));
    CUDA(cudaStreamSynchronize(self->stream));
}

static void spread(const struct harness_rank *self, unsigned char *bytes)
{
    NCCL(ncclBroadcast(bytes, bytes, BYTES, ncclUint8, 0, self->comm, self->stream));
    CUDA(cudaStreamSynchronize(self->stream));
}

static void sum(const struct harness_rank *self, unsigned char *bytes)
{
    NCCL(ncclAllReduce(bytes, bytes, BYTES, ncclUint8, ncclMax, self->comm, self->stream));
    CUDA(cudaStreamSynchronize(self->stream));
}

static void count(struct harness_rank *self, const char *what, bool sends,
                  void (*call)(const struct harness_rank *, unsigned char *))
{
    unsigned char *bytes = harness_device_alloc(BYTES);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = self->rank ? 0 : (unsigned char)(i % 251);
    call(self, bytes); /* connects, and the kernel's buffers grow */
    atomic_store(&sent, 0), atomic_store(&full, 0);
    atomic_store(&got, 0), atomic_store(&empty, 0);
    size_t most = 0; /* the proxy may have moved the first message by itself */
    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&first, 0);
        call(self, bytes);
        if (atomic_load(&first) > most) most = atomic_load(&first);
    }
    for (size_t i = 0; i < BYTES; i++)
        CHECK(bytes[i] == (unsigned char)(i % 251));
    const double mib = ROUNDS * (double)BYTES / MIB;
    printf("%s, rank %d, per MiB: %.1f calls that sent, %.1f that found no room, %.1f that "
           "received, %.1f that found nothing; %zu bytes offered at first\n",
           what, self->rank, atomic_load(&sent) / mib, atomic_load(&full) / mib,
           atomic_load(&got) / mib, atomic_load(&empty) / mib, most);
    if (sends && call != sum) CHECK(most >= (call == pass ? MIB : 2 * MIB)); /* four messages */
    if (sends) CHECK(atomic_load(&sent) > 0 && atomic_load(&sent) <= MOST_PER_MIB * mib);
    CUDA(cudaFree(bytes));
}

static void count_both(struct harness_rank *self)
{
    count(self, "Send", self->rank == 0, pass);
    count(self, "Broadcast", self->rank == 0, spread);
    count(self, "AllReduce", true, sum);
}

int main(void)
{
    harness_processes(2, count_both, NULL, 0);
    return 0;
}
