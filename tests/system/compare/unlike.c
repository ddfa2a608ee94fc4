/* Ranks that compare calls in different ways: one has NCCL_CHECK_MODE=DEBUG_GLOBAL and
 * TUTTI_CHECK_MATCH=0, the other neither. The job runs uncompared, and each rank's log says what
 * the other one lacks. */
#include "../harness/harness.h"

#include <string.h>
#include <unistd.h>

enum { N = 2, COUNT = 100, CALLS = 5 };

static void play(struct harness_rank *r)
{
    static char log[1 << 16];
    const char *words = r->rank ? "NCCL_CHECK_MODE is DEBUG_GLOBAL here and not at rank 0 on host "
                                : "TUTTI_CHECK_MATCH is on here and not at rank 1 on host ";
    ncclComm_t comm = NULL;
    char path[64];
    snprintf(path, sizeof(path), "unlike-%d.log", (int)getpid());
    if (r->rank) setenv("NCCL_CHECK_MODE", "DEBUG_GLOBAL", 1);
    if (r->rank) setenv("TUTTI_CHECK_MATCH", "0", 1);
    NCCL(ncclCommInitRank(&comm, N, r->id, r->rank));
    float *data = harness_device_alloc(COUNT * sizeof(*data));
    for (int k = 0; k < CALLS; k++)
        NCCL(ncclAllReduce(data, data, COUNT, ncclFloat, ncclSum, comm, r->stream));
    CUDA(cudaStreamSynchronize(r->stream));
    CUDA(cudaFree(data));
    NCCL(ncclCommDestroy(comm));
    FILE *file = fopen(path, "r");
    CHECK(file);
    log[fread(log, 1, sizeof(log) - 1, file)] = '\0';
    fclose(file);
    remove(path);
    if (!strstr(log, words)) harness_fail(__FILE__, __LINE__, "rank %d: %s", r->rank, log);
    CHECK(!strstr(log, "has not come to"));
}

int main(void)
{
    setenv("NCCL_DEBUG", "WARN", 1);
    setenv("NCCL_DEBUG_FILE", "unlike-%p.log", 1);
    harness_processes(N, play, NULL, HARNESS_NO_COMM);
    return 0;
}
