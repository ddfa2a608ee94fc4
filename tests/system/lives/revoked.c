/* When a stream is over because the communicator was revoked, the buffers are the caller's again:
 * no network writes there any more what the peer goes on sending. With the argument `registered`
 * the buffers are, and messages went through them before. */
#include "../harness/harness.h"

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

static bool registered;

static void begin(const struct harness_rank *rank, const char *out, char *in, size_t bytes)
{
    NCCL(ncclGroupStart());
    NCCL(ncclSend(out, bytes, ncclInt8, !rank->rank, rank->comm, rank->stream));
    NCCL(ncclRecv(in, bytes, ncclInt8, !rank->rank, rank->comm, rank->stream));
    NCCL(ncclGroupEnd());
}

static void exchange(struct harness_rank *rank)
{
    enum { WARM = 50 };
    _Atomic int *looked = rank->arg;
    char *out = harness_device_alloc(BYTES), *in = harness_device_alloc(BYTES);
    void *handles[2];
    memset(out, SENT, BYTES);
    if (registered) {
        NCCL(ncclCommRegister(rank->comm, out, BYTES, &handles[0]));
        NCCL(ncclCommRegister(rank->comm, in, BYTES, &handles[1]));
    }
    for (int k = 0; k < WARM && registered; k++) {
        begin(rank, out, in, BYTES / 16);
        CUDA(cudaStreamSynchronize(rank->stream));
    }
    memset(in, 0, BYTES);
    begin(rank, out, in, BYTES);
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

int main(int argc, char **argv)
{
    registered = argc > 1 && strcmp(argv[1], "registered") == 0;
    _Atomic int *looked =
        mmap(NULL, sizeof(*looked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(looked != MAP_FAILED);
    harness_processes(2, exchange, looked, 0);
    puts("revoked: nothing comes after the end of the stream");
    return 0;
}
