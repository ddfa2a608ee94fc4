/* Facts, made from tables: compile-time checks of plugin kind net, interface v10.
 * Header under test: ABI_HEADER (define it as a quoted include name to override).
 */

#ifndef ABI_HEADER
#define ABI_HEADER "nccl/net.h"
#endif
#include "checks.h"

#include ABI_HEADER

/* ncclNetVDeviceProps_v10_t */
#ifndef ABI_SKIP_ncclNetVDeviceProps_v10_t
ABI_SIZE(ncclNetVDeviceProps_v10_t, 20);
ABI_ALIGN(ncclNetVDeviceProps_v10_t, 4);
ABI_AT(ncclNetVDeviceProps_v10_t, ndevs, 0, 4);
ABI_FIELD_TYPE(ncclNetVDeviceProps_v10_t, ndevs, int *);
ABI_AT(ncclNetVDeviceProps_v10_t, devs, 4, 16);
ABI_FIELD_TYPE(ncclNetVDeviceProps_v10_t, devs, int (*)[4]);
#endif

/* ncclNetCommConfig_v10_t */
#ifndef ABI_SKIP_ncclNetCommConfig_v10_t
ABI_SIZE(ncclNetCommConfig_v10_t, 4);
ABI_ALIGN(ncclNetCommConfig_v10_t, 4);
ABI_AT(ncclNetCommConfig_v10_t, trafficClass, 0, 4);
ABI_FIELD_TYPE(ncclNetCommConfig_v10_t, trafficClass, int *);
#endif

/* ncclNetProperties_v10_t */
#ifndef ABI_SKIP_ncclNetProperties_v10_t
ABI_SIZE(ncclNetProperties_v10_t, 104);
ABI_ALIGN(ncclNetProperties_v10_t, 8);
ABI_AT(ncclNetProperties_v10_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, name, char * *);
ABI_AT(ncclNetProperties_v10_t, pciPath, 8, 8);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, pciPath, char * *);
ABI_AT(ncclNetProperties_v10_t, guid, 16, 8);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, guid, uint64_t *);
ABI_AT(ncclNetProperties_v10_t, ptrSupport, 24, 4);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, ptrSupport, int *);
ABI_AT(ncclNetProperties_v10_t, regIsGlobal, 28, 4);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, regIsGlobal, int *);
ABI_AT(ncclNetProperties_v10_t, forceFlush, 32, 4);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, forceFlush, int *);
ABI_AT(ncclNetProperties_v10_t, speed, 36, 4);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, speed, int *);
ABI_AT(ncclNetProperties_v10_t, port, 40, 4);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, port, int *);
ABI_AT(ncclNetProperties_v10_t, latency, 44, 4);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, latency, float *);
ABI_AT(ncclNetProperties_v10_t, maxComms, 48, 4);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, maxComms, int *);
ABI_AT(ncclNetProperties_v10_t, maxRecvs, 52, 4);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, maxRecvs, int *);
ABI_AT(ncclNetProperties_v10_t, netDeviceType, 56, 4);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, netDeviceType, ncclNetDeviceType *);
ABI_AT(ncclNetProperties_v10_t, netDeviceVersion, 60, 4);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, netDeviceVersion, int *);
ABI_AT(ncclNetProperties_v10_t, vProps, 64, 20);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, vProps, ncclNetVDeviceProps_v10_t *);
ABI_AT(ncclNetProperties_v10_t, maxP2pBytes, 88, 8);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, maxP2pBytes, size_t *);
ABI_AT(ncclNetProperties_v10_t, maxCollBytes, 96, 8);
ABI_FIELD_TYPE(ncclNetProperties_v10_t, maxCollBytes, size_t *);
#endif

/* ncclNetDeviceHandle_v10_t */
#ifndef ABI_SKIP_ncclNetDeviceHandle_v10_t
ABI_SIZE(ncclNetDeviceHandle_v10_t, 32);
ABI_ALIGN(ncclNetDeviceHandle_v10_t, 8);
ABI_AT(ncclNetDeviceHandle_v10_t, netDeviceType, 0, 4);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v10_t, netDeviceType, ncclNetDeviceType *);
ABI_AT(ncclNetDeviceHandle_v10_t, netDeviceVersion, 4, 4);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v10_t, netDeviceVersion, int *);
ABI_AT(ncclNetDeviceHandle_v10_t, handle, 8, 8);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v10_t, handle, void * *);
ABI_AT(ncclNetDeviceHandle_v10_t, size, 16, 8);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v10_t, size, size_t *);
ABI_AT(ncclNetDeviceHandle_v10_t, needsProxyProgress, 24, 4);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v10_t, needsProxyProgress, int *);
#endif

/* ncclNet_v10_t */
#ifndef ABI_SKIP_ncclNet_v10_t
ABI_SIZE(ncclNet_v10_t, 160);
ABI_ALIGN(ncclNet_v10_t, 8);
ABI_AT(ncclNet_v10_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, name, const char * *);
ABI_AT(ncclNet_v10_t, init, 8, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, init, ncclResult_t (**)(ncclDebugLogger_t, ncclProfilerCallback_t));
ABI_AT(ncclNet_v10_t, devices, 16, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, devices, ncclResult_t (**)(int *));
ABI_AT(ncclNet_v10_t, getProperties, 24, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, getProperties, ncclResult_t (**)(int, ncclNetProperties_v10_t *));
ABI_AT(ncclNet_v10_t, listen, 32, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, listen, ncclResult_t (**)(int, void *, void **));
ABI_AT(ncclNet_v10_t, connect, 40, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, connect, ncclResult_t (**)(int, ncclNetCommConfig_v10_t *, void *, void **, ncclNetDeviceHandle_v10_t **));
ABI_AT(ncclNet_v10_t, accept, 48, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, accept, ncclResult_t (**)(void *, void **, ncclNetDeviceHandle_v10_t **));
ABI_AT(ncclNet_v10_t, regMr, 56, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, regMr, ncclResult_t (**)(void *, void *, size_t, int, void **));
ABI_AT(ncclNet_v10_t, regMrDmaBuf, 64, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, regMrDmaBuf, ncclResult_t (**)(void *, void *, size_t, int, uint64_t, int, void **));
ABI_AT(ncclNet_v10_t, deregMr, 72, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, deregMr, ncclResult_t (**)(void *, void *));
ABI_AT(ncclNet_v10_t, isend, 80, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, isend, ncclResult_t (**)(void *, void *, size_t, int, void *, void *, void **));
ABI_AT(ncclNet_v10_t, irecv, 88, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, irecv, ncclResult_t (**)(void *, int, void **, size_t *, int *, void **, void **, void **));
ABI_AT(ncclNet_v10_t, iflush, 96, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, iflush, ncclResult_t (**)(void *, int, void **, int *, void **, void **));
ABI_AT(ncclNet_v10_t, test, 104, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, test, ncclResult_t (**)(void *, int *, int *));
ABI_AT(ncclNet_v10_t, closeSend, 112, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, closeSend, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v10_t, closeRecv, 120, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, closeRecv, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v10_t, closeListen, 128, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, closeListen, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v10_t, getDeviceMr, 136, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, getDeviceMr, ncclResult_t (**)(void *, void *, void **));
ABI_AT(ncclNet_v10_t, irecvConsumed, 144, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, irecvConsumed, ncclResult_t (**)(void *, int, void *));
ABI_AT(ncclNet_v10_t, makeVDevice, 152, 8);
ABI_FIELD_TYPE(ncclNet_v10_t, makeVDevice, ncclResult_t (**)(int *, ncclNetVDeviceProps_v10_t *));
#endif
