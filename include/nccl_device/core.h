/* Host side of the device API: what a program calls before its own kernels communicate. On a host
 * device, kernels run as host code. There, properties and teams can be queried, and windows give
 * the addresses of peers' memory; ncclDevCommCreate() fails with ncclInvalidUsage. C99 and C++. */
#ifndef NCCL_DEVICE_CORE_H_
#define NCCL_DEVICE_CORE_H_

#include "../nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef enum {
    NCCL_GIN_CONNECTION_NONE = 0,
    NCCL_GIN_CONNECTION_FULL = 1,
    NCCL_GIN_CONNECTION_RAIL = 2,
} ncclGinConnectionType_t;

typedef enum {
    NCCL_GIN_TYPE_NONE = 0,
    NCCL_GIN_TYPE_PROXY = 2,
    NCCL_GIN_TYPE_GDAKI = 3,
    NCCL_GIN_TYPE_GPI = 4,
} ncclGinType_t;

typedef uint32_t ncclDevResourceHandle_t;
typedef uint32_t ncclGinSignal_t;
typedef uint32_t ncclGinCounter_t;

typedef struct ncclGinRequest {
    uint64_t opaque[2];
} ncclGinRequest_t;

typedef struct ncclMultimemHandle {
    void *mcBasePtr;
} ncclMultimemHandle_t;

/* Some ranks of a communicator. `rank` is the caller's rank in the team; team rank i is the rank
 * `own + (i - rank) * stride` of the communicator, where `own` is the caller's rank there. */
typedef struct ncclTeam {
    int nRanks, rank, stride;
} ncclTeam_t;

typedef struct ncclDevResourceRequirements ncclDevResourceRequirements_t;
struct ncclDevResourceRequirements {
    ncclDevResourceRequirements_t *next;
    size_t bufferSize, bufferAlign;
    ncclDevResourceHandle_t *outBufferHandle;
    int ginSignalCount, ginCounterCount;
    ncclGinSignal_t *outGinSignalStart;
    ncclGinCounter_t *outGinCounterStart;
};

typedef struct ncclTeamRequirements ncclTeamRequirements_t;
struct ncclTeamRequirements {
    ncclTeamRequirements_t *next;
    ncclTeam_t team;
    bool multimem;
    ncclMultimemHandle_t *outMultimemHandle;
};

/* What the program needs of a device communicator. Start from
 * NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER. */
typedef struct ncclDevCommRequirements {
    size_t size;
    unsigned int magic, version;
    ncclDevResourceRequirements_t *resourceRequirementsList;
    ncclTeamRequirements_t *teamRequirementsList;
    bool lsaMultimem;
    int barrierCount, lsaBarrierCount, railGinBarrierCount;
    int lsaLLA2ABlockCount, lsaLLA2ASlotCount;
    bool ginForceEnable;
    int ginContextCount, ginSignalCount, ginCounterCount;
    ncclGinConnectionType_t ginConnectionType;
    bool ginExclusiveContexts;
    int ginQueueDepth, ginTrafficClass, worldGinBarrierCount;
    bool ginStrongSignalsRequired, ginVaSignalsRequired;
} ncclDevCommRequirements_t;

/* Handles of resources that kernels use. No function of this library fills them. */
typedef struct ncclLsaBarrierHandle {
    ncclDevResourceHandle_t bufHandle;
    int nBarriers;
} ncclLsaBarrierHandle_t;

typedef struct ncclGinBarrierHandle {
    ncclGinSignal_t signal0;
    int nBarriers;
} ncclGinBarrierHandle_t;

typedef struct ncclLLA2AHandle {
    ncclDevResourceHandle_t bufHandle;
    uint32_t nSlots;
} ncclLLA2AHandle_t;

/* A device communicator, which kernels take by value. No function of this library fills it. */
typedef struct ncclDevComm {
    int rank, nRanks, lsaRank, lsaSize;
    ncclMultimemHandle_t lsaMultimem;
    ncclLsaBarrierHandle_t lsaBarrier;
    ncclGinBarrierHandle_t railGinBarrier, worldGinBarrier;
    int ginContextCount, ginConnectionCount;
    uint64_t opaque[119];
} ncclDevComm_t;

/* What a communicator supports. Start from NCCL_COMM_PROPERTIES_INITIALIZER. */
typedef struct ncclCommProperties {
    size_t size;
    unsigned int magic, version;
    int rank, nRanks, cudaDev, nvmlDev;
    bool deviceApiSupport, multimemSupport;
    ncclGinType_t ginType;
    int nLsaTeams;
    bool hostRmaSupport;
    ncclGinType_t railedGinType;
} ncclCommProperties_t;

/* clang-format off */
#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER { \
    sizeof(ncclDevCommRequirements_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, \
    NULL, NULL, false, 0, 0, 0, 0, 0, false, 4, 0, 0, NCCL_GIN_CONNECTION_NONE, \
    false, 0, NCCL_CONFIG_UNDEF_INT, 0, true, true \
}
#define NCCL_COMM_PROPERTIES_INITIALIZER { \
    sizeof(ncclCommProperties_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, \
    0, 0, 0, 0, false, false, NCCL_GIN_TYPE_NONE, 0, false, NCCL_GIN_TYPE_NONE \
}
/* clang-format on */

/* Fill `props`. Errors: ncclInvalidArgument (props is NULL, the communicator is not ready),
 * ncclInvalidUsage (magic or version is wrong). */
ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props);
ncclResult_t pncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props);

/* Create or destroy a device communicator. On a host device both check their arguments, then fail
 * with ncclInvalidUsage. */
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *reqs,
                               ncclDevComm_t *outDevComm);
ncclResult_t pncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *reqs,
                                ncclDevComm_t *outDevComm);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devComm);
ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devComm);

/* Set *outPtr to the address, in this process, of byte `offset` of the window's memory at another
 * rank. `peer` is a rank of the communicator, `lsaRank` a rank of ncclTeamLsa(). Where this process
 * cannot reach that memory, *outPtr is NULL and the result ncclSuccess. */
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **outPtr);
ncclResult_t pncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **outPtr);
ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsaRank,
                                     void **outPtr);
ncclResult_t pncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsaRank,
                                      void **outPtr);
/* The same through a multicast mapping. A host device has none: *outPtr is NULL and the result
 * ncclSuccess. */
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **outPtr);
ncclResult_t pncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **outPtr);
ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset,
                                          ncclMultimemHandle_t multimem, void **outPtr);
ncclResult_t pncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset,
                                           ncclMultimemHandle_t multimem, void **outPtr);

/* Teams of the calling rank: all ranks; the ranks whose memory it reaches by loads and stores; the
 * ranks with its position in every such set. Then: the rank of the communicator, or of
 * ncclTeamLsa(), that `rank` of a team is. */
ncclTeam_t ncclTeamWorld(ncclComm_t comm);
ncclTeam_t pncclTeamWorld(ncclComm_t comm);
ncclTeam_t ncclTeamLsa(ncclComm_t comm);
ncclTeam_t pncclTeamLsa(ncclComm_t comm);
ncclTeam_t ncclTeamRail(ncclComm_t comm);
ncclTeam_t pncclTeamRail(ncclComm_t comm);
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);
int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
} /* extern "C" */

/* Requirements of device-side protocols. ncclLLA2ACalcSlots() returns 0, the others fail with
 * ncclInvalidUsage. */
extern "C" {
int ncclLLA2ACalcSlots(int maxElts, int maxEltSize);
ncclResult_t ncclLLA2ACreateRequirement(int nBlocks, int nSlots, ncclLLA2AHandle_t *outHandle,
                                        ncclDevResourceRequirements_t *outReq);
ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers,
                                             ncclLsaBarrierHandle_t *outHandle,
                                             ncclDevResourceRequirements_t *outReq);
ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int nBarriers,
                                             ncclGinBarrierHandle_t *outHandle,
                                             ncclDevResourceRequirements_t *outReq);
}
#endif
#endif
