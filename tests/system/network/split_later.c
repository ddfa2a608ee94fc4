/* Under `tutti run`: a sum, a pause in which the test cuts a network, a split, and sums over the
 * child. With a file the ranks hand the id of rank 0 on in it. usage: split-later SECONDS [FILE] */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 1000 };

static void must(ncclResult_t rc, const char *what)
{
    if (!rc) return;
    fprintf(stderr, "%s: %s (%s)\n", what, ncclGetErrorString(rc), ncclGetLastError(NULL));
    exit(1);
}

static void sum(ncclComm_t comm, float *numbers, int nranks)
{
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)i;
    must(ncclAllReduce(numbers, numbers, COUNT, ncclFloat, ncclSum, comm, NULL), "AllReduce");
    if (cudaStreamSynchronize(NULL)) must(ncclUnhandledCudaError, "AllReduce");
    for (int i = 0; i < COUNT; i++) {
        if (numbers[i] == (float)(i * nranks)) continue;
        fprintf(stderr, "number %d is wrong\n", i);
        exit(1);
    }
}

/* The file is there once it is complete. */
static void hand_on(ncclUniqueId *id, const char *path, int rank)
{
    char fresh[4096];
    FILE *file = NULL;
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    if (rank == 0) {
        must(ncclGetUniqueId(id), "id");
        file = fopen(fresh, "w");
        if (!file || fwrite(id, sizeof(*id), 1, file) != 1 || fclose(file) || rename(fresh, path))
            exit(1);
        return;
    }
    while (!(file = fopen(path, "r")))
        usleep(10000);
    if (fread(id, sizeof(*id), 1, file) != 1) exit(1);
    fclose(file);
}

int main(int argc, char **argv)
{
    int rank = (int)strtol(getenv("RANK"), NULL, 10);
    int nranks = (int)strtol(getenv("WORLD_SIZE"), NULL, 10);
    unsigned pause_sec = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    ncclUniqueId id;
    ncclComm_t comm, child;
    float *numbers;
    if (cudaMalloc((void **)&numbers, COUNT * sizeof(float))) return 1;
    if (argc > 2) {
        hand_on(&id, argv[2], rank);
    } else {
        must(ncclGetUniqueId(&id), "id");
    }
    must(ncclCommInitRank(&comm, nranks, id, rank), "init");
    sum(comm, numbers, nranks);
    printf("pausing\n");
    fflush(stdout);
    sleep(pause_sec);
    must(ncclCommSplit(comm, 0, nranks - rank, &child, NULL), "split");
    sum(child, numbers, nranks);
    sum(comm, numbers, nranks);
    must(ncclCommDestroy(child), "destroy");
    must(ncclCommDestroy(comm), "destroy");
    printf("all is right\n");
    return 0;
}
