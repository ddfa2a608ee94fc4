/* What a program does to descriptors that are not its own. A rank that closes all, or puts
 * /dev/null in their place, gets an error that says so, and the others one that names it. Where one
 * connection of its tree alone is closed (in memory), the others say that its process runs. A rank
 * that makes shared memory shorter is refused: else the others would end by SIGBUS. In memory and
 * over sockets.
 *
 * usage: robbed [sockets] */
#include "../harness/harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, COUNT = 40000, LIMIT_SEC = 60, MOST_FDS = 1000, CALLS = 3 };
enum deed { CLOSE, REPLACE, SHORTEN, CLOSE_ONE };

struct shared {
    ncclUniqueId id;
    _Atomic bool ready;
    _Atomic int called; /* ranks that have made their first calls */
};

static bool is_connected(int fd)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof(peer);
    return getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.ss_family != AF_UNIX;
}

/* Each descriptor from 3 on. Returns how many there were. */
static int do_deed(enum deed deed)
{
    int fds[MOST_FDS], n = 0, null = open("/dev/null", O_RDWR | O_CLOEXEC);
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    CHECK(dir && null >= 0);
    while ((entry = readdir(dir)) && n < MOST_FDS) {
        int fd = (int)strtol(entry->d_name, NULL, 10);
        if (fd > 2 && fd != null && fd != dirfd(dir)) fds[n++] = fd;
    }
    closedir(dir);
    for (int i = 0; i < n; i++) {
        struct stat at;
        if (deed == CLOSE || (deed == CLOSE_ONE && is_connected(fds[i]))) close(fds[i]);
        if (deed == REPLACE) CHECK(dup2(null, fds[i]) == fds[i]);
        if (deed == SHORTEN && fstat(fds[i], &at) == 0 && S_ISREG(at.st_mode))
            CHECK(ftruncate(fds[i], 0) != 0 && errno == EPERM);
    }
    close(null);
    return n;
}

static ncclResult_t sum(ncclComm_t comm, cudaStream_t stream, float *buffer)
{
    ncclResult_t state = ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, comm, stream);
    if (state) return state;
    (void)cudaStreamSynchronize(stream);
    NCCL(ncclCommGetAsyncError(comm, &state));
    return state;
}

static void live(int rank, enum deed deed, struct shared *shared)
{
    const bool victim = rank == RANKS - 1;
    ncclResult_t state = ncclSuccess;
    ncclComm_t comm;
    cudaStream_t stream;
    float *buffer;
    alarm(LIMIT_SEC);
    if (rank == 0) NCCL(ncclGetUniqueId(&shared->id));
    if (rank == 0) shared->ready = true;
    while (!shared->ready)
        usleep(500);
    CUDA(cudaSetDevice(rank));
    NCCL(ncclCommInitRank(&comm, RANKS, shared->id, rank));
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc((void **)&buffer, COUNT * sizeof(float)));
    NCCL(sum(comm, stream, buffer));
    shared->called++;
    while (shared->called < RANKS)
        usleep(500);
    if (victim) CHECK(do_deed(deed) > 3);
    for (int k = 0; !state && (deed != SHORTEN || k < CALLS); k++)
        state = sum(comm, stream, buffer);
    const char *why = ncclGetLastError(comm);
    printf("rank %d: code %d, \"%s\"\n", rank, (int)state, why);
    if (deed == SHORTEN) {
        CHECK(state == ncclSuccess);
        NCCL(ncclCommDestroy(comm));
        exit(0);
    }
    if (deed == CLOSE_ONE) { /* that rank itself only notices that the others end */
        if (!state ||
            (!victim && (state != ncclRemoteError || !strstr(why, "though its process runs"))))
            harness_fail(__FILE__, __LINE__, "rank %d: code %d, \"%s\"", rank, (int)state, why);
        (void)ncclCommAbort(comm);
        exit(0);
    }
    /* over sockets a data connection may have noticed it first: "Bad file descriptor" */
    const bool right = victim ? strstr(why, "descriptor") || strstr(why, "NET/Socket")
                              : strstr(why, "rank 2") != NULL;
    if (state != (victim ? ncclSystemError : ncclRemoteError) || !right)
        harness_fail(__FILE__, __LINE__, "rank %d: code %d, \"%s\"", rank, (int)state, why);
    (void)ncclCommAbort(comm);
    exit(0);
}

static void run(enum deed deed)
{
    int status, wrong = 0;
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    fflush(NULL);
    for (int rank = 0; rank < RANKS; rank++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) live(rank, deed, shared);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        CHECK(wait(&status) > 0);
        wrong += status != 0;
    }
    CHECK(wrong == 0);
    munmap(shared, sizeof(*shared));
}

int main(int argc, char **argv)
{
    setenv("TUTTI_DEVICES", "3", 1);
    if (argc > 1 && !strcmp(argv[1], "sockets")) {
        setenv("NCCL_P2P_DISABLE", "1", 1);
        setenv("NCCL_SHM_DISABLE", "1", 1);
    }
    for (enum deed deed = CLOSE; deed <= SHORTEN; deed++)
        run(deed);
    if (argc < 2) run(CLOSE_ONE);
    return 0;
}
