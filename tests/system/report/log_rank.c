/* A program whose log is read: one rank per process as the launcher says, or with "threads" two
 * devices of this process. Every config field is set to something of its own. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 256 };

static void ok(ncclResult_t rc, const char *what)
{
    if (rc == ncclSuccess) return;
    fprintf(stderr, "%s: %s (%s)\n", what, ncclGetErrorString(rc), ncclGetLastError(NULL));
    exit(1);
}

static ncclConfig_t settings(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    config.cgaClusterSize = 2;
    config.minCTAs = 3;
    config.maxCTAs = 5;
    config.netName = "Socket";
    config.splitShare = 1;
    config.trafficClass = 7;
    config.commName = "logged";
    config.collnetEnable = 1;
    config.CTAPolicy = NCCL_CTA_POLICY_EFFICIENCY;
    config.shrinkShare = 1;
    config.nvlsCTAs = 4;
    config.nChannelsPerNetPeer = 2;
    config.nvlinkCentricSched = 1;
    config.graphUsageMode = 1;
    config.numRmaCtx = 3;
    config.maxP2pPeers = 2;
    config.graphStreamOrdering = 0;
    return config;
}

/* Calls on all communicators of this process in one group. */
static void operate(ncclComm_t *comms, int n, int first_rank)
{
    float *in[2], *out[2];
    cudaStream_t streams[2];
    for (int i = 0; i < n; i++) {
        cudaSetDevice(first_rank + i);
        cudaMalloc((void **)&in[i], COUNT * 4);
        cudaMalloc((void **)&out[i], COUNT * 4);
        cudaStreamCreate(&streams[i]);
    }
    ok(ncclGroupStart(), "ncclGroupStart");
    for (int i = 0; i < n; i++) {
        ok(ncclAllReduce(in[i], out[i], COUNT, ncclFloat32, ncclSum, comms[i], streams[i]),
           "ncclAllReduce");
    }
    ok(ncclGroupEnd(), "ncclGroupEnd");
    ok(ncclGroupStart(), "ncclGroupStart");
    for (int i = 0; i < n; i++) {
        int peer = 1 - first_rank - i;
        ok(ncclSend(in[i], COUNT, ncclFloat32, peer, comms[i], streams[i]), "ncclSend");
        ok(ncclRecv(out[i], COUNT, ncclFloat32, peer, comms[i], streams[i]), "ncclRecv");
    }
    ok(ncclGroupEnd(), "ncclGroupEnd");
    for (int i = 0; i < n; i++) {
        cudaStreamSynchronize(streams[i]);
        cudaStreamDestroy(streams[i]);
        cudaFree(in[i]);
        cudaFree(out[i]);
    }
}

int main(int argc, char **argv)
{
    int threads = argc > 1 && strcmp(argv[1], "threads") == 0, n = threads ? 2 : 1;
    const char *rank_text = getenv("RANK");
    int rank = threads || !rank_text ? 0 : atoi(rank_text);
    ncclComm_t comms[2], children[2];
    ncclUniqueId id;
    ncclConfig_t config = settings();
    ok(ncclGetUniqueId(&id), "ncclGetUniqueId");
    ok(ncclGroupStart(), "ncclGroupStart");
    for (int i = 0; i < n; i++) {
        cudaSetDevice(rank + i);
        ok(ncclCommInitRankConfig(&comms[i], 2, id, rank + i, &config), "ncclCommInitRankConfig");
    }
    ok(ncclGroupEnd(), "ncclGroupEnd");
    operate(comms, n, rank);
    ok(ncclGroupStart(), "ncclGroupStart");
    for (int i = 0; i < n; i++)
        ok(ncclCommSplit(comms[i], 4, rank + i, &children[i], NULL), "ncclCommSplit");
    ok(ncclGroupEnd(), "ncclGroupEnd");
    for (int i = 0; i < n; i++)
        ok(ncclCommDestroy(children[i]), "ncclCommDestroy");
    for (int i = 0; i < n; i++)
        ok(ncclCommDestroy(comms[i]), "ncclCommDestroy");
    return 0;
}
