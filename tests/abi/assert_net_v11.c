/* Facts, made from tables: compile-time checks of plugin kind net, interface v11.
 * Header under test: ABI_HEADER (define it as a quoted include name to override).
 */

#ifndef ABI_HEADER
#define ABI_HEADER "nccl/net.h"
#endif
#include "checks.h"

#include ABI_HEADER

/* ncclNetVDeviceProps_v11_t */
#ifndef ABI_SKIP_ncclNetVDeviceProps_v11_t
ABI_SIZE(ncclNetVDeviceProps_v11_t, 20);
ABI_ALIGN(ncclNetVDeviceProps_v11_t, 4);
ABI_AT(ncclNetVDeviceProps_v11_t, ndevs, 0, 4);
ABI_FIELD_TYPE(ncclNetVDeviceProps_v11_t, ndevs, int *);
ABI_AT(ncclNetVDeviceProps_v11_t, devs, 4, 16);
ABI_FIELD_TYPE(ncclNetVDeviceProps_v11_t, devs, int (*)[4]);
#endif

/* ncclNetCommConfig_v11_t */
#ifndef ABI_SKIP_ncclNetCommConfig_v11_t
ABI_SIZE(ncclNetCommConfig_v11_t, 4);
ABI_ALIGN(ncclNetCommConfig_v11_t, 4);
ABI_AT(ncclNetCommConfig_v11_t, trafficClass, 0, 4);
ABI_FIELD_TYPE(ncclNetCommConfig_v11_t, trafficClass, int *);
#endif

/* ncclNetProperties_v11_t */
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

/* ncclNetCommAttr_v11_t */
#ifndef ABI_SKIP_ncclNetCommAttr_v11_t
ABI_SIZE(ncclNetCommAttr_v11_t, 16);
ABI_ALIGN(ncclNetCommAttr_v11_t, 4);
ABI_AT(ncclNetCommAttr_v11_t, maxConcurrentPeers, 0, 4);
ABI_FIELD_TYPE(ncclNetCommAttr_v11_t, maxConcurrentPeers, int32_t *);
ABI_AT(ncclNetCommAttr_v11_t, minConcurrentPeers, 4, 4);
ABI_FIELD_TYPE(ncclNetCommAttr_v11_t, minConcurrentPeers, int32_t *);
ABI_AT(ncclNetCommAttr_v11_t, maxFlowsPerPeer, 8, 4);
ABI_FIELD_TYPE(ncclNetCommAttr_v11_t, maxFlowsPerPeer, int32_t *);
ABI_AT(ncclNetCommAttr_v11_t, minFlowsPerPeer, 12, 4);
ABI_FIELD_TYPE(ncclNetCommAttr_v11_t, minFlowsPerPeer, int32_t *);
#endif

/* ncclNetAttr_v11_t */
#ifndef ABI_SKIP_ncclNetAttr_v11_t
ABI_SIZE(ncclNetAttr_v11_t, 44);
ABI_ALIGN(ncclNetAttr_v11_t, 4);
ABI_AT(ncclNetAttr_v11_t, sendCommAttr, 0, 16);
ABI_FIELD_TYPE(ncclNetAttr_v11_t, sendCommAttr, ncclNetCommAttr_v11_t *);
ABI_AT(ncclNetAttr_v11_t, recvCommAttr, 16, 16);
ABI_FIELD_TYPE(ncclNetAttr_v11_t, recvCommAttr, ncclNetCommAttr_v11_t *);
ABI_AT(ncclNetAttr_v11_t, op, 32, 4);
ABI_FIELD_TYPE(ncclNetAttr_v11_t, op, uint32_t *);
ABI_AT(ncclNetAttr_v11_t, algo, 36, 4);
ABI_FIELD_TYPE(ncclNetAttr_v11_t, algo, uint32_t *);
ABI_AT(ncclNetAttr_v11_t, proto, 40, 4);
ABI_FIELD_TYPE(ncclNetAttr_v11_t, proto, uint32_t *);
#endif

/* ncclNetDeviceHandle_v11_t */
#ifndef ABI_SKIP_ncclNetDeviceHandle_v11_t
ABI_SIZE(ncclNetDeviceHandle_v11_t, 32);
ABI_ALIGN(ncclNetDeviceHandle_v11_t, 8);
ABI_AT(ncclNetDeviceHandle_v11_t, netDeviceType, 0, 4);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v11_t, netDeviceType, ncclNetDeviceType *);
ABI_AT(ncclNetDeviceHandle_v11_t, netDeviceVersion, 4, 4);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v11_t, netDeviceVersion, int *);
ABI_AT(ncclNetDeviceHandle_v11_t, handle, 8, 8);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v11_t, handle, void * *);
ABI_AT(ncclNetDeviceHandle_v11_t, size, 16, 8);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v11_t, size, size_t *);
ABI_AT(ncclNetDeviceHandle_v11_t, needsProxyProgress, 24, 4);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v11_t, needsProxyProgress, int *);
#endif

/* ncclNet_v11_t */
#ifndef ABI_SKIP_ncclNet_v11_t
ABI_SIZE(ncclNet_v11_t, 176);
ABI_ALIGN(ncclNet_v11_t, 8);
ABI_AT(ncclNet_v11_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, name, const char * *);
ABI_AT(ncclNet_v11_t, init, 8, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, init, ncclResult_t (**)(void **, uint64_t, ncclNetCommConfig_v11_t *, ncclDebugLogger_t, ncclProfilerCallback_t));
ABI_AT(ncclNet_v11_t, devices, 16, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, devices, ncclResult_t (**)(int *));
ABI_AT(ncclNet_v11_t, getProperties, 24, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, getProperties, ncclResult_t (**)(int, ncclNetProperties_v11_t *));
ABI_AT(ncclNet_v11_t, listen, 32, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, listen, ncclResult_t (**)(void *, int, void *, void **));
ABI_AT(ncclNet_v11_t, connect, 40, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, connect, ncclResult_t (**)(void *, int, void *, void **, ncclNetDeviceHandle_v11_t **));
ABI_AT(ncclNet_v11_t, accept, 48, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, accept, ncclResult_t (**)(void *, void **, ncclNetDeviceHandle_v11_t **));
ABI_AT(ncclNet_v11_t, regMr, 56, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, regMr, ncclResult_t (**)(void *, void *, size_t, int, void **));
ABI_AT(ncclNet_v11_t, regMrDmaBuf, 64, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, regMrDmaBuf, ncclResult_t (**)(void *, void *, size_t, int, uint64_t, int, void **));
ABI_AT(ncclNet_v11_t, deregMr, 72, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, deregMr, ncclResult_t (**)(void *, void *));
ABI_AT(ncclNet_v11_t, isend, 80, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, isend, ncclResult_t (**)(void *, void *, size_t, int, void *, void *, void **));
ABI_AT(ncclNet_v11_t, irecv, 88, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, irecv, ncclResult_t (**)(void *, int, void **, size_t *, int *, void **, void **, void **));
ABI_AT(ncclNet_v11_t, iflush, 96, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, iflush, ncclResult_t (**)(void *, int, void **, int *, void **, void **));
ABI_AT(ncclNet_v11_t, test, 104, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, test, ncclResult_t (**)(void *, int *, int *));
ABI_AT(ncclNet_v11_t, closeSend, 112, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, closeSend, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v11_t, closeRecv, 120, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, closeRecv, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v11_t, closeListen, 128, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, closeListen, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v11_t, getDeviceMr, 136, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, getDeviceMr, ncclResult_t (**)(void *, void *, void **));
ABI_AT(ncclNet_v11_t, irecvConsumed, 144, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, irecvConsumed, ncclResult_t (**)(void *, int, void *));
ABI_AT(ncclNet_v11_t, makeVDevice, 152, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, makeVDevice, ncclResult_t (**)(int *, ncclNetVDeviceProps_v11_t *));
ABI_AT(ncclNet_v11_t, finalize, 160, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, finalize, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v11_t, setNetAttr, 168, 8);
ABI_FIELD_TYPE(ncclNet_v11_t, setNetAttr, ncclResult_t (**)(void *, ncclNetAttr_v11_t *));
#endif

#ifdef NCCL_NET_MAX_DEVS_PER_NIC_V11
ABI_VALUE(NCCL_NET_MAX_DEVS_PER_NIC_V11, 4);
#endif
