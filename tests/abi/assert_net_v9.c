/* Facts, made from tables: compile-time checks of plugin kind net, interface v9.
 * Header under test: ABI_HEADER (define it as a quoted include name to override).
 */

#ifndef ABI_HEADER
#define ABI_HEADER "nccl/net.h"
#endif
#include "checks.h"

#include ABI_HEADER

/* ncclNetVDeviceProps_v9_t */
#ifndef ABI_SKIP_ncclNetVDeviceProps_v9_t
ABI_SIZE(ncclNetVDeviceProps_v9_t, 20);
ABI_ALIGN(ncclNetVDeviceProps_v9_t, 4);
ABI_AT(ncclNetVDeviceProps_v9_t, ndevs, 0, 4);
ABI_FIELD_TYPE(ncclNetVDeviceProps_v9_t, ndevs, int *);
ABI_AT(ncclNetVDeviceProps_v9_t, devs, 4, 16);
ABI_FIELD_TYPE(ncclNetVDeviceProps_v9_t, devs, int (*)[4]);
#endif

/* ncclNetProperties_v9_t */
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

/* ncclNetDeviceHandle_v9_t */
#ifndef ABI_SKIP_ncclNetDeviceHandle_v9_t
ABI_SIZE(ncclNetDeviceHandle_v9_t, 32);
ABI_ALIGN(ncclNetDeviceHandle_v9_t, 8);
ABI_AT(ncclNetDeviceHandle_v9_t, netDeviceType, 0, 4);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v9_t, netDeviceType, ncclNetDeviceType *);
ABI_AT(ncclNetDeviceHandle_v9_t, netDeviceVersion, 4, 4);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v9_t, netDeviceVersion, int *);
ABI_AT(ncclNetDeviceHandle_v9_t, handle, 8, 8);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v9_t, handle, void * *);
ABI_AT(ncclNetDeviceHandle_v9_t, size, 16, 8);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v9_t, size, size_t *);
ABI_AT(ncclNetDeviceHandle_v9_t, needsProxyProgress, 24, 4);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v9_t, needsProxyProgress, int *);
#endif

/* ncclNet_v9_t */
#ifndef ABI_SKIP_ncclNet_v9_t
ABI_SIZE(ncclNet_v9_t, 160);
ABI_ALIGN(ncclNet_v9_t, 8);
ABI_AT(ncclNet_v9_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, name, const char * *);
ABI_AT(ncclNet_v9_t, init, 8, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, init, ncclResult_t (**)(ncclDebugLogger_t));
ABI_AT(ncclNet_v9_t, devices, 16, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, devices, ncclResult_t (**)(int *));
ABI_AT(ncclNet_v9_t, getProperties, 24, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, getProperties, ncclResult_t (**)(int, ncclNetProperties_v9_t *));
ABI_AT(ncclNet_v9_t, listen, 32, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, listen, ncclResult_t (**)(int, void *, void **));
ABI_AT(ncclNet_v9_t, connect, 40, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, connect, ncclResult_t (**)(int, void *, void **, ncclNetDeviceHandle_v9_t **));
ABI_AT(ncclNet_v9_t, accept, 48, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, accept, ncclResult_t (**)(void *, void **, ncclNetDeviceHandle_v9_t **));
ABI_AT(ncclNet_v9_t, regMr, 56, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, regMr, ncclResult_t (**)(void *, void *, size_t, int, void **));
ABI_AT(ncclNet_v9_t, regMrDmaBuf, 64, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, regMrDmaBuf, ncclResult_t (**)(void *, void *, size_t, int, uint64_t, int, void **));
ABI_AT(ncclNet_v9_t, deregMr, 72, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, deregMr, ncclResult_t (**)(void *, void *));
ABI_AT(ncclNet_v9_t, isend, 80, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, isend, ncclResult_t (**)(void *, void *, size_t, int, void *, void **));
ABI_AT(ncclNet_v9_t, irecv, 88, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, irecv, ncclResult_t (**)(void *, int, void **, size_t *, int *, void **, void **));
ABI_AT(ncclNet_v9_t, iflush, 96, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, iflush, ncclResult_t (**)(void *, int, void **, int *, void **, void **));
ABI_AT(ncclNet_v9_t, test, 104, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, test, ncclResult_t (**)(void *, int *, int *));
ABI_AT(ncclNet_v9_t, closeSend, 112, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, closeSend, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v9_t, closeRecv, 120, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, closeRecv, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v9_t, closeListen, 128, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, closeListen, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v9_t, getDeviceMr, 136, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, getDeviceMr, ncclResult_t (**)(void *, void *, void **));
ABI_AT(ncclNet_v9_t, irecvConsumed, 144, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, irecvConsumed, ncclResult_t (**)(void *, int, void *));
ABI_AT(ncclNet_v9_t, makeVDevice, 152, 8);
ABI_FIELD_TYPE(ncclNet_v9_t, makeVDevice, ncclResult_t (**)(int *, ncclNetVDeviceProps_v9_t *));
#endif
