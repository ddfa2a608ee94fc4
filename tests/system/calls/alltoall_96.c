/* 96 ranks as threads exchange with each other, twice the cores do not matter. */
#include "../harness/checked.h"

#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 96, MOST = 1024 };

static int body(struct world_team *team)
{
    static const size_t counts[] = {1, 64, MOST};
    void *in, *out;
    int failures = 0;
    world_check_cuda(cudaSetDevice(team->ranks[0].device), "cudaSetDevice");
    world_check_cuda(cudaMalloc(&in, (size_t)RANKS * MOST * 4), "cudaMalloc");
    world_check_cuda(cudaMalloc(&out, (size_t)RANKS * MOST * 4), "cudaMalloc");
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        failures += checked_alltoall(team, &in, &out, counts[c]);
    }
    failures += checked_allreduce(team, &in, &out, MOST);
    world_check_cuda(cudaFree(in), "cudaFree");
    world_check_cuda(cudaFree(out), "cudaFree");
    return failures;
}

int main(void)
{
    setenv("TUTTI_DEVICES", "96", 1);
    int failures = world_run(world_mode("threads"), RANKS, body, NULL);
    printf("%d ranks, %d wrong\n", RANKS, failures);
    return failures ? 1 : 0;
}
