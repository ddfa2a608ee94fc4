/* Facts, made from tables: compile-time checks of plugin kind collnet, interface v9.
 * Header under test: ABI_HEADER (define it as a quoted include name to override).
 */

#ifndef ABI_HEADER
#define ABI_HEADER "nccl/net.h"
#endif
#include "checks.h"

#include ABI_HEADER

/* ncclNetProperties_v9_t (referenced) */
#ifndef ABI_SKIP_ncclNetProperties_v9_t
ABI_SIZE(ncclNetProperties_v9_t, 104);
ABI_ALIGN(ncclNetProperties_v9_t, 8);
ABI_AT(ncclNetProperties_v9_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, name, char * *);
ABI_AT(ncclNetProperties_v9_t, pciPath, 8, 8);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, pciPath, char * *);
ABI_AT(ncclNetProperties_v9_t, guid, 16, 8);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, guid, uint64_t *);
ABI_AT(ncclNetProperties_v9_t, ptrSupport, 24, 4);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, ptrSupport, int *);
ABI_AT(ncclNetProperties_v9_t, regIsGlobal, 28, 4);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, regIsGlobal, int *);
ABI_AT(ncclNetProperties_v9_t, forceFlush, 32, 4);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, forceFlush, int *);
ABI_AT(ncclNetProperties_v9_t, speed, 36, 4);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, speed, int *);
ABI_AT(ncclNetProperties_v9_t, port, 40, 4);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, port, int *);
ABI_AT(ncclNetProperties_v9_t, latency, 44, 4);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, latency, float *);
ABI_AT(ncclNetProperties_v9_t, maxComms, 48, 4);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, maxComms, int *);
ABI_AT(ncclNetProperties_v9_t, maxRecvs, 52, 4);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, maxRecvs, int *);
ABI_AT(ncclNetProperties_v9_t, netDeviceType, 56, 4);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, netDeviceType, ncclNetDeviceType *);
ABI_AT(ncclNetProperties_v9_t, netDeviceVersion, 60, 4);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, netDeviceVersion, int *);
ABI_AT(ncclNetProperties_v9_t, vProps, 64, 20);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, vProps, ncclNetVDeviceProps_v9_t *);
ABI_AT(ncclNetProperties_v9_t, maxP2pBytes, 88, 8);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, maxP2pBytes, size_t *);
ABI_AT(ncclNetProperties_v9_t, maxCollBytes, 96, 8);
ABI_FIELD_TYPE(ncclNetProperties_v9_t, maxCollBytes, size_t *);
#endif

/* ncclNetVDeviceProps_v9_t (referenced) */
#ifndef ABI_SKIP_ncclNetVDeviceProps_v9_t
ABI_SIZE(ncclNetVDeviceProps_v9_t, 20);
ABI_ALIGN(ncclNetVDeviceProps_v9_t, 4);
ABI_AT(ncclNetVDeviceProps_v9_t, ndevs, 0, 4);
ABI_FIELD_TYPE(ncclNetVDeviceProps_v9_t, ndevs, int *);
ABI_AT(ncclNetVDeviceProps_v9_t, devs, 4, 16);
ABI_FIELD_TYPE(ncclNetVDeviceProps_v9_t, devs, int (*)[4]);
#endif

/* ncclNetSGE_v9_t */
#ifndef ABI_SKIP_ncclNetSGE_v9_t
ABI_SIZE(ncclNetSGE_v9_t, 24);
ABI_ALIGN(ncclNetSGE_v9_t, 8);
ABI_AT(ncclNetSGE_v9_t, mhandle, 0, 8);
ABI_FIELD_TYPE(ncclNetSGE_v9_t, mhandle, void * *);
ABI_AT(ncclNetSGE_v9_t, address, 8, 8);
ABI_FIELD_TYPE(ncclNetSGE_v9_t, address, void * *);
ABI_AT(ncclNetSGE_v9_t, size, 16, 8);
ABI_FIELD_TYPE(ncclNetSGE_v9_t, size, size_t *);
#endif

/* ncclCollNet_v9_t */
#ifndef ABI_SKIP_ncclCollNet_v9_t
ABI_SIZE(ncclCollNet_v9_t, 144);
ABI_ALIGN(ncclCollNet_v9_t, 8);
ABI_AT(ncclCollNet_v9_t, name, 0, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, name, const char * *);
ABI_AT(ncclCollNet_v9_t, init, 8, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, init, ncclResult_t (**)(ncclDebugLogger_t));
ABI_AT(ncclCollNet_v9_t, devices, 16, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, devices, ncclResult_t (**)(int *));
ABI_AT(ncclCollNet_v9_t, getProperties, 24, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, getProperties, ncclResult_t (**)(int, ncclNetProperties_v9_t *));
ABI_AT(ncclCollNet_v9_t, listen, 32, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, listen, ncclResult_t (**)(int, void *, void **));
ABI_AT(ncclCollNet_v9_t, connect, 40, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, connect, ncclResult_t (**)(void *[], int, int, void *, void **));
ABI_AT(ncclCollNet_v9_t, reduceSupport, 48, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, reduceSupport, ncclResult_t (**)(ncclDataType_t, ncclRedOp_t, int *));
ABI_AT(ncclCollNet_v9_t, regMr, 56, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, regMr, ncclResult_t (**)(void *, void *, size_t, int, void **));
ABI_AT(ncclCollNet_v9_t, regMrDmaBuf, 64, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, regMrDmaBuf, ncclResult_t (**)(void *, void *, size_t, int, uint64_t, int, void **));
ABI_AT(ncclCollNet_v9_t, deregMr, 72, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, deregMr, ncclResult_t (**)(void *, void *));
ABI_AT(ncclCollNet_v9_t, iallreduce, 80, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, iallreduce, ncclResult_t (**)(void *, void *, void *, size_t, ncclDataType_t, ncclRedOp_t, void *, void *, void **));
ABI_AT(ncclCollNet_v9_t, iallgather, 88, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, iallgather, ncclResult_t (**)(void *, void *, int, ncclNetSGE_v9_t *, size_t, size_t, size_t, void *, void **));
ABI_AT(ncclCollNet_v9_t, ireducescatter, 96, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, ireducescatter, ncclResult_t (**)(void *, int, ncclNetSGE_v9_t *, void *, size_t, size_t, size_t, ncclDataType_t, ncclRedOp_t, void *, void **));
ABI_AT(ncclCollNet_v9_t, iflush, 104, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, iflush, ncclResult_t (**)(void *, void *, int, void *, void **));
ABI_AT(ncclCollNet_v9_t, test, 112, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, test, ncclResult_t (**)(void *, int *, int *));
ABI_AT(ncclCollNet_v9_t, closeColl, 120, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, closeColl, ncclResult_t (**)(void *));
ABI_AT(ncclCollNet_v9_t, closeListen, 128, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, closeListen, ncclResult_t (**)(void *));
ABI_AT(ncclCollNet_v9_t, makeVDevice, 136, 8);
ABI_FIELD_TYPE(ncclCollNet_v9_t, makeVDevice, ncclResult_t (**)(int *, ncclNetVDeviceProps_v9_t *));
#endif
