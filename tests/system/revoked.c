/* When a stream is over because the communicator was revoked, the buffers are the caller's again:
 * no network writes there any more what the peer goes on sending. */
#include "harness.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REVOKER = 0, BYTES = 64 << 20, OWN = 0x55, SENT = 1 };

/* Looks while the network writes: on purpose no order stands between the two. */
__attribute__((noinline, no_sanitize("thread"))) static bool has_begun(const volatile char *in)
{
    return *in == SENT;
}

static void exchange(struct harness_rank *rank)
{
    _Atomic int *looked = rank->arg;
    char *out = harness_device_alloc(BYTES), *in = harness_device_alloc(BYTES);
    memset(out, SENT, BYTES);
    memset(in, 0, BYTES);
    NCCL(ncclGroupStart());
    NCCL(ncclSend(out, BYTES, ncclInt8, !rank->rank, rank->comm, rank->stream));
    NCCL(ncclRecv(in, BYTES, ncclInt8, !rank->rank, rank->comm, rank->stream));
    NCCL(ncclGroupEnd());
    if (rank->rank == REVOKER) {
        while (!has_begun(in))
            (void)cudaStreamQuery(rank->stream);
        NCCL(ncclCommRevoke(rank->comm, 0));
        (void)cudaStreamSynchronize(rank->stream);
        memset(in, OWN, BYTES);
        usleep(300000);
        size_t own = 0;
        for (size_t i = 0; i < BYTES; i++)
            own += in[i] == OWN;
        atomic_store(looked, 1);
        if (own != BYTES)
            harness_fail(__FILE__, __LINE__, "%zu bytes came after the end", (size_t)BYTES - own);
    } else {
        (void)cudaStreamSynchronize(rank->stream);
        while (!atomic_load(looked))
            usleep(1000);
    }
    NCCL(ncclCommAbort(rank->comm));
    rank->comm = NULL;
}

int main(void)
{
    _Atomic int *looked =
        mmap(NULL, sizeof(*looked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(looked != MAP_FAILED);
    harness_processes(2, exchange, looked, 0);
    puts("revoked: nothing comes after the end of the stream");
    return 0;
}
