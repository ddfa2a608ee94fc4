/* Communicators that are used after their end: every call says so, and none reads freed memory. */
#include <cuda_runtime.h>
#include <nccl.h>
#include <nccl_device.h>
#include <stdio.h>
#include <string.h>

struct fixture {
    ncclComm_t comm;     /* after its end */
    float *buffer;       /* of COUNT */
    cudaStream_t stream; /* the null stream */
    int failures;
};
enum { COUNT = 64, TURNS = 40 };

static void expect(struct fixture *fixture, const char *what, ncclResult_t got)
{
    const char *why = ncclGetLastError(NULL);
    if (got == ncclInvalidArgument && strstr(why, "was destroyed or aborted before")) return;
    fixture->failures++;
    printf("wrong: %s: code %d: %s\n", what, (int)got, why);
}

static void collectives(struct fixture *s)
{
    float *b = s->buffer;
    expect(s, "AllReduce", ncclAllReduce(b, b, 8, ncclFloat, ncclSum, s->comm, s->stream));
    expect(s, "Broadcast", ncclBroadcast(b, b, 8, ncclFloat, 0, s->comm, s->stream));
    expect(s, "Bcast", ncclBcast(b, 8, ncclFloat, 0, s->comm, s->stream));
    expect(s, "Reduce", ncclReduce(b, b, 8, ncclFloat, ncclSum, 0, s->comm, s->stream));
    expect(s, "AllGather", ncclAllGather(b, b, 8, ncclFloat, s->comm, s->stream));
    expect(s, "ReduceScatter", ncclReduceScatter(b, b, 8, ncclFloat, ncclSum, s->comm, s->stream));
    expect(s, "AlltoAll", ncclAlltoAll(b, b + 32, 8, ncclFloat, s->comm, s->stream));
    expect(s, "Gather", ncclGather(b, b + 32, 8, ncclFloat, 0, s->comm, s->stream));
    expect(s, "Scatter", ncclScatter(b, b + 32, 8, ncclFloat, 0, s->comm, s->stream));
    expect(s, "Send", ncclSend(b, 8, ncclFloat, 0, s->comm, s->stream));
    expect(s, "Recv", ncclRecv(b, 8, ncclFloat, 0, s->comm, s->stream));
    (void)ncclGroupStart();
    expect(s, "in a group", ncclAllReduce(b, b, 8, ncclFloat, ncclSum, s->comm, s->stream));
    expect(s, "GroupEnd", ncclGroupEnd());
}

static void queries(struct fixture *s)
{
    int number = 0;
    uint64_t stat = 0;
    ncclResult_t state = ncclSuccess;
    ncclCommProperties_t props = NCCL_COMM_PROPERTIES_INITIALIZER;
    expect(s, "CommCount", ncclCommCount(s->comm, &number));
    expect(s, "CommCuDevice", ncclCommCuDevice(s->comm, &number));
    expect(s, "CommUserRank", ncclCommUserRank(s->comm, &number));
    expect(s, "CommGetAsyncError", ncclCommGetAsyncError(s->comm, &state));
    expect(s, "CommQueryProperties", ncclCommQueryProperties(s->comm, &props));
    expect(s, "CommMemStats", ncclCommMemStats(s->comm, ncclStatGpuMemTotal, &stat));
    if (ncclTeamWorld(s->comm).nRanks || ncclTeamLsa(s->comm).nRanks) s->failures++;
}

static void lives(struct fixture *s)
{
    ncclComm_t child = NULL;
    ncclUniqueId id;
    int excluded = 1;
    expect(s, "CommSplit", ncclCommSplit(s->comm, 0, 0, &child, NULL));
    expect(s, "CommShrink",
           ncclCommShrink(s->comm, &excluded, 1, &child, NULL, NCCL_SHRINK_DEFAULT));
    expect(s, "CommShrink with abort",
           ncclCommShrink(s->comm, &excluded, 1, &child, NULL, NCCL_SHRINK_ABORT));
    expect(s, "CommGetUniqueId", ncclCommGetUniqueId(s->comm, &id));
    expect(s, "CommGrow", ncclCommGrow(s->comm, 3, NULL, -1, &child, NULL));
    expect(s, "CommSuspend", ncclCommSuspend(s->comm, NCCL_SUSPEND_MEM));
    expect(s, "CommResume", ncclCommResume(s->comm));
    expect(s, "CommRevoke", ncclCommRevoke(s->comm, NCCL_REVOKE_DEFAULT));
    expect(s, "CommFinalize", ncclCommFinalize(s->comm));
    expect(s, "CommDestroy", ncclCommDestroy(s->comm));
    expect(s, "CommAbort", ncclCommAbort(s->comm));
}

static void memory(struct fixture *s)
{
    void *handle = NULL;
    ncclWindow_t window = NULL, some = (ncclWindow_t)(void *)s;
    ncclRedOp_t op = ncclSum;
    ncclDevComm_t device;
    ncclDevCommRequirements_t needs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    memset(&device, 0, sizeof(device));
    expect(s, "CommRegister", ncclCommRegister(s->comm, s->buffer, 64, &handle));
    expect(s, "CommDeregister", ncclCommDeregister(s->comm, s));
    expect(s, "CommWindowRegister", ncclCommWindowRegister(s->comm, s->buffer, 64, &window, 0));
    expect(s, "CommWindowDeregister", ncclCommWindowDeregister(s->comm, some));
    expect(s, "WinGetUserPtr", ncclWinGetUserPtr(s->comm, some, &handle));
    expect(s, "RedOpCreatePreMulSum",
           ncclRedOpCreatePreMulSum(&op, s->buffer, ncclFloat, ncclScalarHostImmediate, s->comm));
    expect(s, "RedOpDestroy", ncclRedOpDestroy((ncclRedOp_t)(ncclNumOps + 1), s->comm));
    expect(s, "DevCommCreate", ncclDevCommCreate(s->comm, &needs, &device));
    expect(s, "DevCommDestroy", ncclDevCommDestroy(s->comm, &device));
}

static void every_call(struct fixture *s, const char *name, ncclComm_t comm)
{
    int before = s->failures;
    s->comm = comm;
    collectives(s);
    queries(s);
    memory(s);
    lives(s);
    printf("%s: %s\n", name, s->failures == before ? "every call says so" : "WRONG");
}

static ncclComm_t single(void)
{
    ncclComm_t comm = NULL;
    int device = 0;
    if (ncclCommInitAll(&comm, 1, &device)) printf("init: %s\n", ncclGetLastError(NULL));
    return comm;
}

/* A child that shares its parent's resources, in both orders of their ends. */
static void shared(struct fixture *s, int parent_first)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    ncclComm_t parent = NULL, child = NULL;
    config.splitShare = 1;
    if (ncclGetUniqueId(&id) || ncclCommInitRankConfig(&parent, 1, id, 0, &config) ||
        ncclCommSplit(parent, 0, 0, &child, NULL))
        s->failures++;
    if (ncclCommDestroy(parent_first ? parent : child)) s->failures++;
    every_call(s, parent_first ? "parent whose child lives" : "child whose parent lives",
               parent_first ? parent : child);
    if (ncclCommDestroy(parent_first ? child : parent)) s->failures++;
    every_call(s, "the other one", parent_first ? child : parent);
    every_call(s, "the first again", parent_first ? parent : child);
}

int main(void)
{
    struct fixture fixture = {0};
    ncclComm_t first = single(), aborted = single();
    if (cudaMalloc((void **)&fixture.buffer, COUNT * sizeof(float)) || ncclCommDestroy(first) ||
        ncclCommAbort(aborted))
        return 1;
    every_call(&fixture, "destroyed", first);
    every_call(&fixture, "aborted", aborted);
    shared(&fixture, 0);
    shared(&fixture, 1);
    for (int turn = 0; turn < TURNS; turn++) { /* none of these takes their place yet */
        ncclComm_t other = single();
        if (other == first || other == aborted || ncclCommDestroy(other)) fixture.failures++;
    }
    every_call(&fixture, "destroyed long ago", first);
    (void)cudaFree(fixture.buffer);
    printf("%d wrong\n", fixture.failures);
    return fixture.failures > 0;
}
