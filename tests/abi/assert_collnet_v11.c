/* Facts, made from tables: compile-time checks of plugin kind collnet, interface v11.
 * Header under test: ABI_HEADER (define it as a quoted include name to override).
 */

#ifndef ABI_HEADER
#define ABI_HEADER "nccl/net.h"
#endif
#include "checks.h"

#include ABI_HEADER

/* ncclNetProperties_v11_t (referenced) */
#ifndef ABI_SKIP_ncclNetProperties_v11_t
ABI_SIZE(ncclNetProperties_v11_t, 112);
ABI_ALIGN(ncclNetProperties_v11_t, 8);
ABI_AT(ncclNetProperties_v11_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, name, char * *);
ABI_AT(ncclNetProperties_v11_t, pciPath, 8, 8);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, pciPath, char * *);
ABI_AT(ncclNetProperties_v11_t, guid, 16, 8);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, guid, uint64_t *);
ABI_AT(ncclNetProperties_v11_t, ptrSupport, 24, 4);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, ptrSupport, int *);
ABI_AT(ncclNetProperties_v11_t, regIsGlobal, 28, 4);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, regIsGlobal, int *);
ABI_AT(ncclNetProperties_v11_t, forceFlush, 32, 4);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, forceFlush, int *);
ABI_AT(ncclNetProperties_v11_t, speed, 36, 4);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, speed, int *);
ABI_AT(ncclNetProperties_v11_t, port, 40, 4);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, port, int *);
ABI_AT(ncclNetProperties_v11_t, latency, 44, 4);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, latency, float *);
ABI_AT(ncclNetProperties_v11_t, maxComms, 48, 4);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, maxComms, int *);
ABI_AT(ncclNetProperties_v11_t, maxRecvs, 52, 4);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, maxRecvs, int *);
ABI_AT(ncclNetProperties_v11_t, netDeviceType, 56, 4);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, netDeviceType, ncclNetDeviceType *);
ABI_AT(ncclNetProperties_v11_t, netDeviceVersion, 60, 4);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, netDeviceVersion, int *);
ABI_AT(ncclNetProperties_v11_t, vProps, 64, 20);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, vProps, ncclNetVDeviceProps_v11_t *);
ABI_AT(ncclNetProperties_v11_t, maxP2pBytes, 88, 8);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, maxP2pBytes, size_t *);
ABI_AT(ncclNetProperties_v11_t, maxCollBytes, 96, 8);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, maxCollBytes, size_t *);
ABI_AT(ncclNetProperties_v11_t, maxMultiRequestSize, 104, 4);
ABI_FIELD_TYPE(ncclNetProperties_v11_t, maxMultiRequestSize, int *);
#endif

/* ncclNetVDeviceProps_v11_t (referenced) */
#ifndef ABI_SKIP_ncclNetVDeviceProps_v11_t
ABI_SIZE(ncclNetVDeviceProps_v11_t, 20);
ABI_ALIGN(ncclNetVDeviceProps_v11_t, 4);
ABI_AT(ncclNetVDeviceProps_v11_t, ndevs, 0, 4);
ABI_FIELD_TYPE(ncclNetVDeviceProps_v11_t, ndevs, int *);
ABI_AT(ncclNetVDeviceProps_v11_t, devs, 4, 16);
ABI_FIELD_TYPE(ncclNetVDeviceProps_v11_t, devs, int (*)[4]);
#endif

/* ncclNetSGE_v11_t */
#ifndef ABI_SKIP_ncclNetSGE_v11_t
ABI_SIZE(ncclNetSGE_v11_t, 24);
ABI_ALIGN(ncclNetSGE_v11_t, 8);
ABI_AT(ncclNetSGE_v11_t, mhandle, 0, 8);
ABI_FIELD_TYPE(ncclNetSGE_v11_t, mhandle, void * *);
ABI_AT(ncclNetSGE_v11_t, address, 8, 8);
ABI_FIELD_TYPE(ncclNetSGE_v11_t, address, void * *);
ABI_AT(ncclNetSGE_v11_t, size, 16, 8);
ABI_FIELD_TYPE(ncclNetSGE_v11_t, size, size_t *);
#endif

/* ncclCollNet_v11_t */
#ifndef ABI_SKIP_ncclCollNet_v11_t
ABI_SIZE(ncclCollNet_v11_t, 152);
ABI_ALIGN(ncclCollNet_v11_t, 8);
ABI_AT(ncclCollNet_v11_t, name, 0, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, name, const char * *);
ABI_AT(ncclCollNet_v11_t, init, 8, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, init, ncclResult_t (**)(void **, uint64_t, ncclDebugLogger_t));
ABI_AT(ncclCollNet_v11_t, devices, 16, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, devices, ncclResult_t (**)(int *));
ABI_AT(ncclCollNet_v11_t, getProperties, 24, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, getProperties, ncclResult_t (**)(int, ncclNetProperties_v11_t *));
ABI_AT(ncclCollNet_v11_t, listen, 32, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, listen, ncclResult_t (**)(void *, int, void *, void **));
ABI_AT(ncclCollNet_v11_t, connect, 40, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, connect, ncclResult_t (**)(void *[], int, int, void *, void **));
ABI_AT(ncclCollNet_v11_t, reduceSupport, 48, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, reduceSupport, ncclResult_t (**)(ncclDataType_t, ncclRedOp_t, int *));
ABI_AT(ncclCollNet_v11_t, regMr, 56, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, regMr, ncclResult_t (**)(void *, void *, size_t, int, void **));
ABI_AT(ncclCollNet_v11_t, regMrDmaBuf, 64, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, regMrDmaBuf, ncclResult_t (**)(void *, void *, size_t, int, uint64_t, int, void **));
ABI_AT(ncclCollNet_v11_t, deregMr, 72, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, deregMr, ncclResult_t (**)(void *, void *));
ABI_AT(ncclCollNet_v11_t, iallreduce, 80, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, iallreduce, ncclResult_t (**)(void *, void *, void *, size_t, ncclDataType_t, ncclRedOp_t, void *, void *, void **));
ABI_AT(ncclCollNet_v11_t, iallgather, 88, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, iallgather, ncclResult_t (**)(void *, void *, int, ncclNetSGE_v11_t *, size_t, size_t, size_t, void *, void **));
ABI_AT(ncclCollNet_v11_t, ireducescatter, 96, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, ireducescatter, ncclResult_t (**)(void *, int, ncclNetSGE_v11_t *, void *, size_t, size_t, size_t, ncclDataType_t, ncclRedOp_t, void *, void **));
ABI_AT(ncclCollNet_v11_t, iflush, 104, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, iflush, ncclResult_t (**)(void *, void *, int, void *, void **));
ABI_AT(ncclCollNet_v11_t, test, 112, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, test, ncclResult_t (**)(void *, int *, int *));
ABI_AT(ncclCollNet_v11_t, closeColl, 120, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, closeColl, ncclResult_t (**)(void *));
ABI_AT(ncclCollNet_v11_t, closeListen, 128, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, closeListen, ncclResult_t (**)(void *));
ABI_AT(ncclCollNet_v11_t, makeVDevice, 136, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, makeVDevice, ncclResult_t (**)(int *, ncclNetVDeviceProps_v11_t *));
ABI_AT(ncclCollNet_v11_t, finalize, 144, 8);
ABI_FIELD_TYPE(ncclCollNet_v11_t, finalize, ncclResult_t (**)(void *));
#endif

#ifdef NCCL_NET_MAX_DEVS_PER_NIC_V11
ABI_VALUE(NCCL_NET_MAX_DEVS_PER_NIC_V11, 4);
#endif
