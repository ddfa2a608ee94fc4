/* A library of the kind that profilers preload: it stands before libnccl, writes down calls of this
 * process, and goes on to the pncc* names. With SPY_WRONG set it spoils what AllReduce is told. */
#include "nccl.h"

#include <cuda_runtime.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...)
{
    const char *folder = getenv("SPY_FOLDER");
    char path[512];
    va_list args;
    if (!folder) return;
    snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
    FILE *out = fopen(path, "ae");
    if (!out) return;
    va_start(args, fmt);
    vfprintf(out, fmt, args);
    va_end(args);
    fclose(out);
}

SEEN ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                                ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                cudaStream_t stream)
{
    enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    if (datatype == ncclFloat64) { /* the program's own barriers */
        return pncclAllReduce(sendbuff, recvbuff, count, datatype, op, comm, stream);
    }
    cudaStreamIsCapturing(stream, &capturing);
    note("allreduce count %zu type %d op %d offset %d stream %d captured %d\n", count,
         (int)datatype, (int)op, (int)((size_t)sendbuff % 256), stream != NULL, (int)capturing);
    if (getenv("SPY_WRONG") && count > 1) count--;
    return pncclAllReduce(sendbuff, recvbuff, count, datatype, op, comm, stream);
}

SEEN ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                                ncclDataType_t datatype, int root, ncclComm_t comm,
                                cudaStream_t stream)
{
    note("broadcast root %d\n", root);
    return pncclBroadcast(sendbuff, recvbuff, count, datatype, root, comm, stream);
}

SEEN ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
    note("register\n");
    return pncclCommRegister(comm, buff, size, handle);
}

SEEN ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size,
                                         ncclWindow_t *win, int winFlags)
{
    note("window flags %d\n", winFlags);
    return pncclCommWindowRegister(comm, buff, size, win, winFlags);
}

SEEN ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId,
                                         int rank, ncclConfig_t *config)
{
    note("init rank %d nranks %d policy %d main %d\n", rank, nranks, config->CTAPolicy,
         getpid() == gettid());
    return pncclCommInitRankConfig(comm, nranks, commId, rank, config);
}
