/* The first of three processes exits in a collective, the second gets its error and ends. The third
 * may wait for the second alone, and no rank is left to report it: it must end as well, with a
 * sentence that names one of them, and in memory its own call: also where the second has aborted
 * the communicator and its process goes on, and where it is stopped when the third looks for the
 * cause first. In memory and over sockets.
 *
 * usage: orphan [sockets] */
#include "../harness/harness.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, COUNT = 1 << 20, LIMIT_SEC = 60 };

enum life { EXITS, ABORTS, LINGERS, STOPS }; /* of the second: what it does about its error */
enum { BEHIND_USEC = 700000 }; /* the first has ended its communicator and its program by then */
enum { STOPPED_SEC = 3 };      /* it has been found to be stopped by then */

static void judge(int rank, ncclResult_t state, const char *why, bool sockets)
{
    if (state != ncclRemoteError || !(strstr(why, "rank 0") || strstr(why, "rank 1")))
        harness_fail(__FILE__, __LINE__, "rank %d: code %d, \"%s\"", rank, (int)state, why);
    if (!sockets && !strstr(why, "AllReduce"))
        harness_fail(__FILE__, __LINE__, "rank %d: its call is not in \"%s\"", rank, why);
}

/* ncclSuccess: rank 0 had given all its part before it exited. */
static ncclResult_t outcome(ncclComm_t comm, cudaStream_t stream)
{
    ncclResult_t state = ncclSuccess;
    bool done = false;
    while (!state && !done) {
        done = cudaStreamQuery(stream) == cudaSuccess;
        NCCL(ncclCommGetAsyncError(comm, &state));
        usleep(500);
    }
    return state;
}

static ncclComm_t join(int rank, int ids[2])
{
    ncclUniqueId id;
    ncclComm_t comm;
    alarm(LIMIT_SEC);
    if (rank == 0) NCCL(ncclGetUniqueId(&id));
    for (int other = 1; rank == 0 && other < RANKS; other++)
        CHECK(write(ids[1], &id, sizeof(id)) == sizeof(id));
    if (rank > 0) CHECK(read(ids[0], &id, sizeof(id)) == sizeof(id));
    CUDA(cudaSetDevice(rank));
    NCCL(ncclCommInitRank(&comm, RANKS, id, rank));
    return comm;
}

/* The first ends well, and the others connect to each other after that: what they need for it comes
 * by its process, which stays so long. */
static void play_behind(int rank, int ids[2])
{
    ncclComm_t comm = join(rank, ids);
    ncclResult_t state;
    cudaStream_t stream;
    float *buffer;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc((void **)&buffer, COUNT * sizeof(float)));
    if (rank > 0) {
        usleep(BEHIND_USEC);
        NCCL(ncclGroupStart());
        NCCL(ncclSend(buffer, COUNT / 2, ncclFloat, RANKS - rank, comm, stream));
        NCCL(ncclRecv(buffer + COUNT / 2, COUNT / 2, ncclFloat, RANKS - rank, comm, stream));
        NCCL(ncclGroupEnd());
        CUDA(cudaStreamSynchronize(stream));
        NCCL(ncclCommGetAsyncError(comm, &state));
        CHECK(state == ncclSuccess);
    }
    NCCL(ncclCommDestroy(comm));
    exit(0);
}

static void play(int rank, int ids[2], enum life life, bool sockets)
{
    ncclComm_t comm = join(rank, ids);
    cudaStream_t stream;
    float *buffer;
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc((void **)&buffer, COUNT * sizeof(float)));
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    if (rank == 0) usleep(50000);
    ncclResult_t state = ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, comm, stream);
    if (rank == 0) exit(0);
    if (rank == 1 && life == STOPS) raise(SIGSTOP);
    const double start = harness_now_sec();
    if (!state) state = outcome(comm, stream);
    if (!state) exit(0);
    printf("rank %d after %.2f s: %s\n", rank, harness_now_sec() - start, ncclGetLastError(comm));
    judge(rank, state, ncclGetLastError(comm), sockets);
    if (life == ABORTS || life == LINGERS) NCCL(ncclCommAbort(comm));
    if (life == LINGERS && rank == 1) { /* until the third has ended, and closed its pipe */
        char byte;
        close(ids[1]);
        CHECK(read(ids[0], &byte, 1) == 0);
    }
    exit(0);
}

/* The first has ended, and the third looked, before the second goes on. */
static void await_look(const pid_t pids[RANKS])
{
    int status;
    CHECK(waitpid(pids[1], &status, WUNTRACED) == pids[1] && WIFSTOPPED(status));
    while (waitid(P_PID, (id_t)pids[0], &(siginfo_t){0}, WEXITED | WNOWAIT))
        ;
    sleep(STOPPED_SEC);
    CHECK(kill(pids[1], SIGCONT) == 0);
}

/* life  -1: play_behind() */
static void run(int life, bool sockets)
{
    int ids[2], status;
    pid_t pids[RANKS];
    CHECK(pipe(ids) == 0);
    for (int rank = 0; rank < RANKS; rank++) {
        pids[rank] = fork();
        CHECK(pids[rank] >= 0);
        if (pids[rank] == 0 && life < 0) play_behind(rank, ids);
        if (pids[rank] == 0) play(rank, ids, (enum life)life, sockets);
    }
    if (life == STOPS) await_look(pids);
    close(ids[1]);
    for (int rank = 0; rank < RANKS; rank++) {
        CHECK(wait(&status) > 0);
        if (status) {
            harness_fail(__FILE__, __LINE__, "life %d: a rank ended with %#x", life,
                         (unsigned)status);
        }
    }
    close(ids[0]);
}

int main(int argc, char **argv)
{
    const bool sockets = argc > 1 && !strcmp(argv[1], "sockets");
    setenv("TUTTI_DEVICES", "3", 1);
    setenv("NCCL_P2P_DISABLE", "1", 1);
    if (sockets) setenv("NCCL_SHM_DISABLE", "1", 1);
    for (int life = sockets ? -1 : EXITS; life <= STOPS; life++)
        run(life, sockets);
    return 0;
}
