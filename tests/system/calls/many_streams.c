/* One thread drives all devices of two communicators, each rank in an order of its own, on two
 * streams per device, and then waits for a single stream: nothing may depend on a thread that
 * the program should have provided. */
#include "../harness/world.h"

#include <stdint.h>
#include <stdio.h>

enum { RANKS = 4, COUNT = 50000, ROUNDS = 20 };

struct rank {
    ncclComm_t comm[2];
    cudaStream_t stream[2];
    float *in[2], *out[2];
};

static void rank_init(struct rank *ranks, int r)
{
    world_check_cuda(cudaSetDevice(r), "cudaSetDevice");
    for (int c = 0; c < 2; c++) {
        void *in, *out;
        world_check_cuda(cudaStreamCreate(&ranks[r].stream[c]), "cudaStreamCreate");
        world_check_cuda(cudaMalloc(&in, COUNT * sizeof(float)), "cudaMalloc");
        world_check_cuda(cudaMalloc(&out, COUNT * sizeof(float)), "cudaMalloc");
        ranks[r].in[c] = in;
        ranks[r].out[c] = out;
        for (size_t i = 0; i < COUNT; i++) {
            ranks[r].in[c][i] = (float)(r + 1 + c);
        }
    }
}

/* Outside any group: every call returns although the other ranks have not called yet. */
static void round_launch(struct rank *ranks, int round)
{
    for (int r = 0; r < RANKS; r++) {
        for (int step = 0; step < 2; step++) {
            int c = (step + r + round) % 2;
            struct rank *own = &ranks[r];
            world_check(ncclAllReduce(own->in[c], own->out[c], COUNT, ncclFloat32, ncclSum,
                                      own->comm[c], own->stream[c]),
                        "ncclAllReduce");
        }
    }
}

static int round_check(struct rank *ranks, int waited)
{
    int failures = 0;
    world_check_cuda(cudaStreamSynchronize(ranks[waited].stream[0]), "cudaStreamSynchronize");
    for (size_t i = 0; i < COUNT; i++) {
        if (ranks[waited].out[0][i] != 1 + 2 + 3 + 4) failures++;
    }
    for (int r = 0; r < RANKS; r++) {
        for (int c = 0; c < 2; c++) {
            world_check_cuda(cudaStreamSynchronize(ranks[r].stream[c]), "cudaStreamSynchronize");
            if (ranks[r].out[c][COUNT - 1] != (float)(10 + 4 * c)) failures++;
            ranks[r].out[c][COUNT - 1] = 0;
        }
    }
    return failures;
}

int main(void)
{
    struct rank ranks[RANKS];
    ncclComm_t comms[2][RANKS];
    int failures = 0;
    for (int c = 0; c < 2; c++) {
        world_check(ncclCommInitAll(comms[c], RANKS, NULL), "ncclCommInitAll");
    }
    for (int r = 0; r < RANKS; r++) {
        ranks[r].comm[0] = comms[0][r];
        ranks[r].comm[1] = comms[1][r];
        rank_init(ranks, r);
    }
    for (int round = 0; round < ROUNDS; round++) {
        round_launch(ranks, round);
        failures += round_check(ranks, round % RANKS);
    }
    for (int r = 0; r < RANKS; r++) {
        for (int c = 0; c < 2; c++) {
            world_check(ncclCommDestroy(comms[c][r]), "ncclCommDestroy");
            world_check_cuda(cudaStreamDestroy(ranks[r].stream[c]), "cudaStreamDestroy");
            world_check_cuda(cudaFree(ranks[r].in[c]), "cudaFree");
            world_check_cuda(cudaFree(ranks[r].out[c]), "cudaFree");
        }
    }
    printf("%d rounds, %d wrong\n", ROUNDS, failures);
    return failures ? 1 : 0;
}
