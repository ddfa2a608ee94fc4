/* Device communicators on a host device: queries, teams and addresses answer; what needs a kernel
 * is refused with a sentence. */
#include "api/calls.h"
#include "base/error.h"
#include "device/device.h"
#include "mem/mem.h"
#include "nccl_device.h"

#include <string.h>

#define OLDEST_VERSION 22800 /* first release with this interface */

static ncclResult_t check_stamp(const char *func, unsigned magic, unsigned version)
{
    if (magic != NCCL_API_MAGIC) {
        return tt_fail(ncclInvalidUsage, "%s: magic %#x; start from the initializer macro", func,
                       magic);
    }
    if (version > NCCL_VERSION_CODE || version < OLDEST_VERSION) {
        return tt_fail(ncclInvalidUsage, "%s: version %u; this library knows %d to %d", func,
                       version, OLDEST_VERSION, NCCL_VERSION_CODE);
    }
    return ncclSuccess;
}

/* ---- teams ---- */

static const struct tt_comm *own_comm(ncclComm_t comm)
{
    const struct tt_comm *own = (const struct tt_comm *)comm;
    return own && own->magic == TT_COMM_MAGIC ? own : NULL;
}

ncclTeam_t pncclTeamWorld(ncclComm_t comm)
{
    const struct tt_comm *own = own_comm(comm);
    if (!own) return (ncclTeam_t){0};
    return (ncclTeam_t){.nRanks = own->member.nranks, .rank = own->member.rank, .stride = 1};
}

ncclTeam_t pncclTeamLsa(ncclComm_t comm)
{
    const struct tt_comm *own = own_comm(comm);
    if (own && own->tune.all_direct) return pncclTeamWorld(comm);
    return (ncclTeam_t){.nRanks = own ? 1 : 0, .rank = 0, .stride = 1};
}

ncclTeam_t pncclTeamRail(ncclComm_t comm)
{
    ncclTeam_t world = pncclTeamWorld(comm), lsa = pncclTeamLsa(comm);
    if (lsa.nRanks == 0) return world;
    return (ncclTeam_t){
        .nRanks = world.nRanks / lsa.nRanks, .rank = world.rank / lsa.nRanks, .stride = lsa.nRanks};
}

int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank)
{
    return pncclTeamWorld(comm).rank + (rank - team.rank) * team.stride;
}

int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank)
{
    return pncclTeamLsa(comm).rank + (rank - team.rank) * team.stride;
}

/* ---- queries ---- */

ncclResult_t pncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props)
{
    static const char func[] = "ncclCommQueryProperties";
    ncclResult_t rc = tt_check_pointer(props, func, "props");
    if (!rc) rc = tt_check_usable((struct tt_comm *)comm, "ncclCommQueryProperties");
    if (!rc) rc = check_stamp(func, props->magic, props->version);
    if (rc) return rc;
    const struct tt_comm *own = own_comm(comm);
    struct tt_device_info info = {.nvml_index = own->member.device};
    tuttiHostDeviceInfo(own->member.device, &info);
    ncclCommProperties_t answer = {.size = props->size,
                                   .magic = props->magic,
                                   .version = props->version,
                                   .rank = own->member.rank,
                                   .nRanks = own->member.nranks,
                                   .cudaDev = own->member.device,
                                   .nvmlDev = info.nvml_index,
                                   .nLsaTeams = pncclTeamRail(comm).nRanks};
    memcpy(props, &answer, props->size < sizeof(answer) ? props->size : sizeof(answer));
    return ncclSuccess;
}

ncclResult_t pncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *reqs,
                                ncclDevComm_t *outDevComm)
{
    static const char func[] = "ncclDevCommCreate";
    ncclResult_t rc = tt_comm_check((struct tt_comm *)comm, "DevCommCreate");
    if (!rc) rc = tt_check_pointer(reqs, func, "reqs");
    if (!rc) rc = tt_check_pointer(outDevComm, func, "outDevComm");
    if (!rc) rc = check_stamp(func, reqs->magic, reqs->version);
    if (rc) return tt_group_error(rc);
    return tt_group_error(tt_fail(ncclInvalidUsage,
                                  "%s: a host device runs no kernels, so there is nothing to use a "
                                  "device communicator",
                                  func));
}

ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devComm)
{
    static const char func[] = "ncclDevCommDestroy";
    ncclResult_t rc = tt_comm_check((struct tt_comm *)comm, "DevCommDestroy");
    if (!rc) rc = tt_check_pointer(devComm, func, "devComm");
    if (rc) return rc;
    return tt_fail(ncclInvalidUsage, "%s: no device communicator was ever made here", func);
}

/* ---- addresses ---- */

static ncclResult_t window_checked(ncclWindow_t window, size_t offset, void **out, const char *func,
                                   struct tt_window **window_out)
{
    ncclResult_t rc = tt_check_pointer(out, func, "outPtr");
    if (!rc) *out = NULL;
    if (!rc) rc = tt_check_pointer(window, func, "window");
    if (rc) return rc;
    struct tt_window *found = tt_window_find(window);
    if (!found) {
        return tt_fail(ncclInvalidArgument, "%s: window %p is unknown", func, (void *)window);
    }
    if (offset >= found->bytes) {
        return tt_fail(ncclInvalidArgument, "%s: offset %zu is not below the window's %zu bytes",
                       func, offset, found->bytes);
    }
    *window_out = found;
    return ncclSuccess;
}

static ncclResult_t peer_pointer(ncclWindow_t window, size_t offset, int peer, void **out,
                                 const char *func)
{
    struct tt_window *found = NULL;
    ncclResult_t rc = window_checked(window, offset, out, func, &found);
    if (rc) return rc;
    if (peer < 0 || peer >= found->nranks) {
        return tt_fail(ncclInvalidArgument, "%s: rank %d is not in 0..%d", func, peer,
                       found->nranks - 1);
    }
    if (found->parts[peer]) *out = found->parts[peer] + offset;
    return ncclSuccess;
}

ncclResult_t pncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **outPtr)
{
    return peer_pointer(window, offset, peer, outPtr, "ncclGetPeerDevicePointer");
}

ncclResult_t pncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsaRank,
                                      void **outPtr)
{
    return peer_pointer(window, offset, lsaRank, outPtr, "ncclGetLsaDevicePointer");
}

ncclResult_t pncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **outPtr)
{
    struct tt_window *found = NULL;
    return window_checked(window, offset, outPtr, "ncclGetLsaMultimemDevicePointer", &found);
}

ncclResult_t pncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset,
                                           ncclMultimemHandle_t multimem, void **outPtr)
{
    static const char func[] = "ncclGetMultimemDevicePointer";
    struct tt_window *found = NULL;
    ncclResult_t rc = window_checked(window, offset, outPtr, func, &found);
    if (rc) return rc;
    return tt_check_pointer(multimem.mcBasePtr, func, "multimem.mcBasePtr");
}

/* ---- resources of device-side protocols: the public header declares the first four for C++ only,
 * NCCL's the last two in none that is installed ---- */

struct ncclGinOutboxHandle;
struct ncclGinInboxA2AHandle;

#pragma GCC visibility push(default)
int ncclLLA2ACalcSlots(int maxElts, int maxEltSize);
ncclResult_t ncclLLA2ACreateRequirement(int nBlocks, int nSlots, ncclLLA2AHandle_t *outHandle,
                                        ncclDevResourceRequirements_t *outReq);
ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers,
                                             ncclLsaBarrierHandle_t *outHandle,
                                             ncclDevResourceRequirements_t *outReq);
ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int nBarriers,
                                             ncclGinBarrierHandle_t *outHandle,
                                             ncclDevResourceRequirements_t *outReq);
ncclResult_t ncclGinOutboxCreateRequirement(int nBlocks, int size_log2,
                                            struct ncclGinOutboxHandle *outHandle,
                                            ncclDevResourceRequirements_t *outReq);
ncclResult_t ncclGinInboxA2ACreateRequirement(ncclTeam_t peers, int nBlocks, int size_log2,
                                              struct ncclGinInboxA2AHandle *outHandle,
                                              ncclDevResourceRequirements_t *outReq);
#pragma GCC visibility pop

static ncclResult_t refuse(const char *func)
{
    return tt_fail(ncclInvalidUsage, "%s: a host device runs no kernels", func);
}

int ncclLLA2ACalcSlots(int maxElts, int maxEltSize)
{
    (void)maxElts, (void)maxEltSize;
    return 0;
}

ncclResult_t ncclLLA2ACreateRequirement(int nBlocks, int nSlots, ncclLLA2AHandle_t *outHandle,
                                        ncclDevResourceRequirements_t *outReq)
{
    (void)nBlocks, (void)nSlots, (void)outHandle, (void)outReq;
    return refuse("ncclLLA2ACreateRequirement");
}

ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers,
                                             ncclLsaBarrierHandle_t *outHandle,
                                             ncclDevResourceRequirements_t *outReq)
{
    (void)team, (void)nBarriers, (void)outHandle, (void)outReq;
    return refuse("ncclLsaBarrierCreateRequirement");
}

ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int nBarriers,
                                             ncclGinBarrierHandle_t *outHandle,
                                             ncclDevResourceRequirements_t *outReq)
{
    (void)comm, (void)team, (void)nBarriers, (void)outHandle, (void)outReq;
    return refuse("ncclGinBarrierCreateRequirement");
}

ncclResult_t ncclGinOutboxCreateRequirement(int nBlocks, int size_log2,
                                            struct ncclGinOutboxHandle *outHandle,
                                            ncclDevResourceRequirements_t *outReq)
{
    (void)nBlocks, (void)size_log2, (void)outHandle, (void)outReq;
    return refuse("ncclGinOutboxCreateRequirement");
}

ncclResult_t ncclGinInboxA2ACreateRequirement(ncclTeam_t peers, int nBlocks, int size_log2,
                                              struct ncclGinInboxA2AHandle *outHandle,
                                              ncclDevResourceRequirements_t *outReq)
{
    (void)peers, (void)nBlocks, (void)size_log2, (void)outHandle, (void)outReq;
    return refuse("ncclGinInboxA2ACreateRequirement");
}

/* ---- the weak aliases ---- */

__typeof__(pncclTeamWorld) ncclTeamWorld __attribute__((weak, alias("pncclTeamWorld")));
__typeof__(pncclTeamLsa) ncclTeamLsa __attribute__((weak, alias("pncclTeamLsa")));
__typeof__(pncclTeamRail) ncclTeamRail __attribute__((weak, alias("pncclTeamRail")));
__typeof__(pncclTeamRankToWorld) ncclTeamRankToWorld
    __attribute__((weak, alias("pncclTeamRankToWorld")));
__typeof__(pncclTeamRankToLsa) ncclTeamRankToLsa __attribute__((weak, alias("pncclTeamRankToLsa")));
__typeof__(pncclCommQueryProperties) ncclCommQueryProperties
    __attribute__((weak, alias("pncclCommQueryProperties")));
__typeof__(pncclDevCommCreate) ncclDevCommCreate __attribute__((weak, alias("pncclDevCommCreate")));
__typeof__(pncclDevCommDestroy) ncclDevCommDestroy
    __attribute__((weak, alias("pncclDevCommDestroy")));
__typeof__(pncclGetPeerDevicePointer) ncclGetPeerDevicePointer
    __attribute__((weak, alias("pncclGetPeerDevicePointer")));
__typeof__(pncclGetLsaDevicePointer) ncclGetLsaDevicePointer
    __attribute__((weak, alias("pncclGetLsaDevicePointer")));
__typeof__(pncclGetLsaMultimemDevicePointer) ncclGetLsaMultimemDevicePointer
    __attribute__((weak, alias("pncclGetLsaMultimemDevicePointer")));
__typeof__(pncclGetMultimemDevicePointer) ncclGetMultimemDevicePointer
    __attribute__((weak, alias("pncclGetMultimemDevicePointer")));
