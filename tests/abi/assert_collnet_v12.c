/* Facts, made from tables: compile-time checks of plugin kind collnet, interface v12.
 * Header under test: ABI_HEADER (define it as a quoted include name to override).
 */

#ifndef ABI_HEADER
#define ABI_HEADER "nccl/net.h"
#endif
#include "checks.h"

#include ABI_HEADER

/* ncclNetProperties_v12_t (referenced) */
#ifndef ABI_SKIP_ncclNetProperties_v12_t
ABI_SIZE(ncclNetProperties_v12_t, 128);
ABI_ALIGN(ncclNetProperties_v12_t, 8);
ABI_AT(ncclNetProperties_v12_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, name, char * *);
ABI_AT(ncclNetProperties_v12_t, pciPath, 8, 8);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, pciPath, char * *);
ABI_AT(ncclNetProperties_v12_t, guid, 16, 8);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, guid, uint64_t *);
ABI_AT(ncclNetProperties_v12_t, ptrSupport, 24, 4);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, ptrSupport, int *);
ABI_AT(ncclNetProperties_v12_t, regIsGlobal, 28, 4);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, regIsGlobal, int *);
ABI_AT(ncclNetProperties_v12_t, forceFlush, 32, 4);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, forceFlush, int *);
ABI_AT(ncclNetProperties_v12_t, speed, 36, 4);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, speed, int *);
ABI_AT(ncclNetProperties_v12_t, port, 40, 4);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, port, int *);
ABI_AT(ncclNetProperties_v12_t, latency, 44, 4);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, latency, float *);
ABI_AT(ncclNetProperties_v12_t, maxComms, 48, 4);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, maxComms, int *);
ABI_AT(ncclNetProperties_v12_t, maxRecvs, 52, 4);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, maxRecvs, int *);
ABI_AT(ncclNetProperties_v12_t, netDeviceType, 56, 4);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, netDeviceType, ncclNetDeviceType *);
ABI_AT(ncclNetProperties_v12_t, netDeviceVersion, 60, 4);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, netDeviceVersion, int *);
ABI_AT(ncclNetProperties_v12_t, vProps, 64, 36);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, vProps, ncclNetVDeviceProps_v12_t *);
ABI_AT(ncclNetProperties_v12_t, maxP2pBytes, 104, 8);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, maxP2pBytes, size_t *);
ABI_AT(ncclNetProperties_v12_t, maxCollBytes, 112, 8);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, maxCollBytes, size_t *);
ABI_AT(ncclNetProperties_v12_t, maxMultiRequestSize, 120, 4);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, maxMultiRequestSize, int *);
ABI_AT(ncclNetProperties_v12_t, railId, 124, 2);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, railId, int16_t *);
ABI_AT(ncclNetProperties_v12_t, planeId, 126, 2);
ABI_FIELD_TYPE(ncclNetProperties_v12_t, planeId, int16_t *);
#endif

/* ncclNetVDeviceProps_v12_t (referenced) */
#ifndef ABI_SKIP_ncclNetVDeviceProps_v12_t
ABI_SIZE(ncclNetVDeviceProps_v12_t, 36);
ABI_ALIGN(ncclNetVDeviceProps_v12_t, 4);
ABI_AT(ncclNetVDeviceProps_v12_t, ndevs, 0, 4);
ABI_FIELD_TYPE(ncclNetVDeviceProps_v12_t, ndevs, int *);
ABI_AT(ncclNetVDeviceProps_v12_t, devs, 4, 32);
ABI_FIELD_TYPE(ncclNetVDeviceProps_v12_t, devs, int (*)[8]);
#endif

/* ncclNetSGE_v12_t */
#ifndef ABI_SKIP_ncclNetSGE_v12_t
ABI_SIZE(ncclNetSGE_v12_t, 24);
ABI_ALIGN(ncclNetSGE_v12_t, 8);
ABI_AT(ncclNetSGE_v12_t, mhandle, 0, 8);
ABI_FIELD_TYPE(ncclNetSGE_v12_t, mhandle, void * *);
ABI_AT(ncclNetSGE_v12_t, address, 8, 8);
ABI_FIELD_TYPE(ncclNetSGE_v12_t, address, void * *);
ABI_AT(ncclNetSGE_v12_t, size, 16, 8);
ABI_FIELD_TYPE(ncclNetSGE_v12_t, size, size_t *);
#endif

/* ncclCollNet_v12_t */
#ifndef ABI_SKIP_ncclCollNet_v12_t
ABI_SIZE(ncclCollNet_v12_t, 152);
ABI_ALIGN(ncclCollNet_v12_t, 8);
ABI_AT(ncclCollNet_v12_t, name, 0, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, name, const char * *);
ABI_AT(ncclCollNet_v12_t, init, 8, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, init, ncclResult_t (**)(void **, uint64_t, ncclDebugLogger_t));
ABI_AT(ncclCollNet_v12_t, devices, 16, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, devices, ncclResult_t (**)(int *));
ABI_AT(ncclCollNet_v12_t, getProperties, 24, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, getProperties, ncclResult_t (**)(int, ncclNetProperties_v12_t *));
ABI_AT(ncclCollNet_v12_t, listen, 32, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, listen, ncclResult_t (**)(void *, int, void *, void **));
ABI_AT(ncclCollNet_v12_t, connect, 40, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, connect, ncclResult_t (**)(void *[], int, int, void *, void **));
ABI_AT(ncclCollNet_v12_t, reduceSupport, 48, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, reduceSupport, ncclResult_t (**)(ncclDataType_t, ncclRedOp_t, int *));
ABI_AT(ncclCollNet_v12_t, regMr, 56, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, regMr, ncclResult_t (**)(void *, void *, size_t, int, void **));
ABI_AT(ncclCollNet_v12_t, regMrDmaBuf, 64, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, regMrDmaBuf, ncclResult_t (**)(void *, void *, size_t, int, uint64_t, int, void **));
ABI_AT(ncclCollNet_v12_t, deregMr, 72, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, deregMr, ncclResult_t (**)(void *, void *));
ABI_AT(ncclCollNet_v12_t, iallreduce, 80, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, iallreduce, ncclResult_t (**)(void *, void *, void *, size_t, ncclDataType_t, ncclRedOp_t, void *, void *, void **));
ABI_AT(ncclCollNet_v12_t, iallgather, 88, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, iallgather, ncclResult_t (**)(void *, void *, int, ncclNetSGE_v12_t *, size_t, size_t, size_t, void *, void **));
ABI_AT(ncclCollNet_v12_t, ireducescatter, 96, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, ireducescatter, ncclResult_t (**)(void *, int, ncclNetSGE_v12_t *, void *, size_t, size_t, size_t, ncclDataType_t, ncclRedOp_t, void *, void **));
ABI_AT(ncclCollNet_v12_t, iflush, 104, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, iflush, ncclResult_t (**)(void *, void *, int, void *, void **));
ABI_AT(ncclCollNet_v12_t, test, 112, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, test, ncclResult_t (**)(void *, int *, int *));
ABI_AT(ncclCollNet_v12_t, closeColl, 120, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, closeColl, ncclResult_t (**)(void *));
ABI_AT(ncclCollNet_v12_t, closeListen, 128, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, closeListen, ncclResult_t (**)(void *));
ABI_AT(ncclCollNet_v12_t, makeVDevice, 136, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, makeVDevice, ncclResult_t (**)(int *, ncclNetVDeviceProps_v12_t *));
ABI_AT(ncclCollNet_v12_t, finalize, 144, 8);
ABI_FIELD_TYPE(ncclCollNet_v12_t, finalize, ncclResult_t (**)(void *));
#endif

#ifdef NCCL_NET_MAX_DEVS_PER_NIC_V12
ABI_VALUE(NCCL_NET_MAX_DEVS_PER_NIC_V12, 8);
#endif
