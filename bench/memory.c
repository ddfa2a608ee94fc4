/* What a rank's process weighs: proportional set size after init and one AllReduce of 64 MiB on n
 * processes of this machine, less the two user buffers; the mean of the processes and the largest.
 * bench-memory [ranks]      (8) */
#include "nccl.h"

#include <cuda_runtime.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_RANKS = 128, STAGES = 3, KIB = 1024, BUFFER_BYTES = 64 << 20 };
static const char *const stage_names[STAGES] = {"after init", "with buffers", "after AllReduce"};

struct shared { /* shared by all processes */
    _Atomic int ready, failed;
    _Atomic int arrived[STAGES][2];
    ncclUniqueId id;
    double pss_kib[STAGES][MAX_RANKS];
};

static double pss_kib(void)
{
    char line[256];
    double kib = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "Pss:", 4) != 0) continue;
        kib = strtod(line + 4, NULL);
        break;
    }
    if (file) fclose(file);
    return kib;
}

static void barrier(_Atomic int *arrived, int nranks)
{
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < nranks)
        usleep(200);
}

/* All measure while nothing changes. */
static void weigh(struct shared *shared, int stage, int rank, int nranks)
{
    _Atomic int *arrived = shared->arrived[stage];
    barrier(&arrived[0], nranks);
    shared->pss_kib[stage][rank] = pss_kib();
    barrier(&arrived[1], nranks);
}

static int rank_main(struct shared *shared, int nranks, int rank)
{
    ncclComm_t comm = NULL;
    void *send = NULL, *recv = NULL;
    while (!atomic_load(&shared->ready))
        usleep(200);
    int bad = cudaSetDevice(rank) != cudaSuccess;
    bad = bad || ncclCommInitRank(&comm, nranks, shared->id, rank) != ncclSuccess;
    if (bad) fprintf(stderr, "rank %d: %s\n", rank, ncclGetLastError(NULL));
    weigh(shared, 0, rank, nranks);
    bad = bad || cudaMalloc(&send, BUFFER_BYTES) || cudaMalloc(&recv, BUFFER_BYTES);
    if (!bad) {
        memset(send, 0, BUFFER_BYTES);
        memset(recv, 0, BUFFER_BYTES);
    }
    weigh(shared, 1, rank, nranks);
    bad = bad || ncclAllReduce(send, recv, BUFFER_BYTES / 4, ncclFloat, ncclSum, comm, NULL);
    bad = bad || cudaStreamSynchronize(NULL) != cudaSuccess;
    weigh(shared, 2, rank, nranks);
    if (bad) atomic_fetch_add(&shared->failed, 1);
    cudaFree(send);
    cudaFree(recv);
    ncclCommDestroy(comm);
    return bad;
}

static void print(const struct shared *shared, int nranks)
{
    for (int stage = 0; stage < STAGES; stage++) {
        double buffers = stage == 0 ? 0 : 2.0 * BUFFER_BYTES / KIB;
        double sum = 0, most = 0;
        for (int r = 0; r < nranks; r++) {
            double own = shared->pss_kib[stage][r];
            sum += own;
            most = own > most ? own : most;
        }
        printf("%d processes, %-16s mean %.1f MiB, largest %.1f MiB, without user buffers\n",
               nranks, stage_names[stage], (sum / nranks - buffers) / KIB, (most - buffers) / KIB);
    }
}

int main(int argc, char **argv)
{
    int nranks = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 8;
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (nranks < 1 || nranks > MAX_RANKS || shared == MAP_FAILED) return 2;
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
    char devices[16];
    snprintf(devices, sizeof(devices), "%d", nranks);
    setenv("TUTTI_DEVICES", devices, 0);
    fflush(NULL);
    for (int r = 0; r < nranks; r++) {
        if (fork()) continue;
        exit(rank_main(shared, nranks, r));
    }
    if (ncclGetUniqueId(&shared->id)) return 1;
    atomic_store(&shared->ready, 1);
    while (wait(NULL) > 0)
        continue;
    print(shared, nranks);
    return atomic_load(&shared->failed) != 0;
}
