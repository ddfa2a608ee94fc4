/* `strangers`: while ranks meet, others connect to the bootstrap port and send nothing, random
 * bytes, half a greeting or a byte now and then, and keep their connections open; one more comes
 * and goes as fast as it can. The ranks meet all the same. */
#include "../harness/harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STRANGERS = 300, VISITS = 1000, RANKS = 3 };

struct noise {
    int port;
    _Atomic bool stop;
    _Atomic int connected;
};

static int connect_to(int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr))) return fd;
    close(fd);
    return -1;
}

/* The slow ones say a little more; one connects and is gone. */
static void pester(struct noise *noise, const int *fds, int visits)
{
    for (int i = 3; i < atomic_load(&noise->connected); i += 4) {
        if (visits % 100 == 0 && send(fds[i], "T", 1, MSG_NOSIGNAL) < 0) continue;
    }
    if (visits >= VISITS) return;
    int fd = connect_to(noise->port);
    if (fd >= 0) close(fd);
}

static void *make_noise(void *arg)
{
    struct noise *noise = arg;
    int fds[STRANGERS];
    unsigned char junk[600];
    for (size_t i = 0; i < sizeof(junk); i++) {
        junk[i] = (unsigned char)(rand() >> 7);
    }
    for (int i = 0; i < STRANGERS; i++) {
        do {
            fds[i] = connect_to(noise->port);
            if (fds[i] < 0) usleep(1000);
        } while (fds[i] < 0 && !atomic_load(&noise->stop));
        if (fds[i] < 0) break;
        atomic_fetch_add(&noise->connected, 1);
        size_t bytes = i % 4 == 0 ? 0 : i % 4 == 1 ? sizeof(junk) : i % 4 == 2 ? 40 : 1;
        if (bytes && send(fds[i], junk, bytes, MSG_NOSIGNAL) < 0) continue;
    }
    for (int visits = 0; !atomic_load(&noise->stop); visits++) {
        pester(noise, fds, visits);
        usleep(100);
    }
    for (int i = 0; i < atomic_load(&noise->connected); i++) {
        close(fds[i]);
    }
    return NULL;
}

struct rank_arg {
    ncclUniqueId id;
    int rank;
};

static void *run_rank(void *arg)
{
    struct rank_arg *a = arg;
    ncclComm_t comm;
    CUDA(cudaSetDevice(a->rank));
    if (a->rank == RANKS - 1) usleep(500000); /* strangers come before the last rank does */
    NCCL(ncclCommInitRank(&comm, RANKS, a->id, a->rank));
    NCCL(ncclCommDestroy(comm));
    return NULL;
}

int main(void)
{
    struct noise noise = {.port = 20000 + (int)(getpid() % 12000)};
    struct rank_arg args[RANKS];
    pthread_t threads[RANKS];
    pthread_t noisy;
    char address[64];
    snprintf(address, sizeof(address), "127.0.0.1:%d", noise.port);
    setenv("NCCL_COMM_ID", address, 1);
    setenv("TUTTI_INIT_TIMEOUT", "30", 1);
    CHECK(!pthread_create(&noisy, NULL, make_noise, &noise));
    for (int r = 0; r < RANKS; r++) {
        args[r].rank = r;
        NCCL(ncclGetUniqueId(&args[r].id));
        CHECK(!pthread_create(&threads[r], NULL, run_rank, &args[r]));
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(threads[r], NULL);
    }
    atomic_store(&noise.stop, true);
    pthread_join(noisy, NULL);
    CHECK(atomic_load(&noise.connected) > 0);
    printf("strangers: ok, %d connected\n", atomic_load(&noise.connected));
    return 0;
}
