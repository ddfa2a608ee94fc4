/* Facts, made from tables: compile-time checks of plugin kind net, interface v8.
 * Header under test: ABI_HEADER (define it as a quoted include name to override).
 */

#ifndef ABI_HEADER
#define ABI_HEADER "nccl/net.h"
#endif
#include "checks.h"

#include ABI_HEADER

/* ncclNetProperties_v8_t */
#ifndef ABI_SKIP_ncclNetProperties_v8_t
ABI_SIZE(ncclNetProperties_v8_t, 64);
ABI_ALIGN(ncclNetProperties_v8_t, 8);
ABI_AT(ncclNetProperties_v8_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNetProperties_v8_t, name, char * *);
ABI_AT(ncclNetProperties_v8_t, pciPath, 8, 8);
ABI_FIELD_TYPE(ncclNetProperties_v8_t, pciPath, char * *);
ABI_AT(ncclNetProperties_v8_t, guid, 16, 8);
ABI_FIELD_TYPE(ncclNetProperties_v8_t, guid, uint64_t *);
ABI_AT(ncclNetProperties_v8_t, ptrSupport, 24, 4);
ABI_FIELD_TYPE(ncclNetProperties_v8_t, ptrSupport, int *);
ABI_AT(ncclNetProperties_v8_t, regIsGlobal, 28, 4);
ABI_FIELD_TYPE(ncclNetProperties_v8_t, regIsGlobal, int *);
ABI_AT(ncclNetProperties_v8_t, speed, 32, 4);
ABI_FIELD_TYPE(ncclNetProperties_v8_t, speed, int *);
ABI_AT(ncclNetProperties_v8_t, port, 36, 4);
ABI_FIELD_TYPE(ncclNetProperties_v8_t, port, int *);
ABI_AT(ncclNetProperties_v8_t, latency, 40, 4);
ABI_FIELD_TYPE(ncclNetProperties_v8_t, latency, float *);
ABI_AT(ncclNetProperties_v8_t, maxComms, 44, 4);
ABI_FIELD_TYPE(ncclNetProperties_v8_t, maxComms, int *);
ABI_AT(ncclNetProperties_v8_t, maxRecvs, 48, 4);
ABI_FIELD_TYPE(ncclNetProperties_v8_t, maxRecvs, int *);
ABI_AT(ncclNetProperties_v8_t, netDeviceType, 52, 4);
ABI_FIELD_TYPE(ncclNetProperties_v8_t, netDeviceType, ncclNetDeviceType *);
ABI_AT(ncclNetProperties_v8_t, netDeviceVersion, 56, 4);
ABI_FIELD_TYPE(ncclNetProperties_v8_t, netDeviceVersion, int *);
#endif

/* ncclNetDeviceHandle_v8_t */
#ifndef ABI_SKIP_ncclNetDeviceHandle_v8_t
ABI_SIZE(ncclNetDeviceHandle_v8_t, 32);
ABI_ALIGN(ncclNetDeviceHandle_v8_t, 8);
ABI_AT(ncclNetDeviceHandle_v8_t, netDeviceType, 0, 4);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v8_t, netDeviceType, ncclNetDeviceType *);
ABI_AT(ncclNetDeviceHandle_v8_t, netDeviceVersion, 4, 4);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v8_t, netDeviceVersion, int *);
ABI_AT(ncclNetDeviceHandle_v8_t, handle, 8, 8);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v8_t, handle, void * *);
ABI_AT(ncclNetDeviceHandle_v8_t, size, 16, 8);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v8_t, size, size_t *);
ABI_AT(ncclNetDeviceHandle_v8_t, needsProxyProgress, 24, 4);
ABI_FIELD_TYPE(ncclNetDeviceHandle_v8_t, needsProxyProgress, int *);
#endif

/* ncclNet_v8_t */
#ifndef ABI_SKIP_ncclNet_v8_t
ABI_SIZE(ncclNet_v8_t, 152);
ABI_ALIGN(ncclNet_v8_t, 8);
ABI_AT(ncclNet_v8_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, name, const char * *);
ABI_AT(ncclNet_v8_t, init, 8, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, init, ncclResult_t (**)(ncclDebugLogger_t));
ABI_AT(ncclNet_v8_t, devices, 16, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, devices, ncclResult_t (**)(int *));
ABI_AT(ncclNet_v8_t, getProperties, 24, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, getProperties, ncclResult_t (**)(int, ncclNetProperties_v8_t *));
ABI_AT(ncclNet_v8_t, listen, 32, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, listen, ncclResult_t (**)(int, void *, void **));
ABI_AT(ncclNet_v8_t, connect, 40, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, connect, ncclResult_t (**)(int, void *, void **, ncclNetDeviceHandle_v8_t **));
ABI_AT(ncclNet_v8_t, accept, 48, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, accept, ncclResult_t (**)(void *, void **, ncclNetDeviceHandle_v8_t **));
ABI_AT(ncclNet_v8_t, regMr, 56, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, regMr, ncclResult_t (**)(void *, void *, size_t, int, void **));
ABI_AT(ncclNet_v8_t, regMrDmaBuf, 64, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, regMrDmaBuf, ncclResult_t (**)(void *, void *, size_t, int, uint64_t, int, void **));
ABI_AT(ncclNet_v8_t, deregMr, 72, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, deregMr, ncclResult_t (**)(void *, void *));
ABI_AT(ncclNet_v8_t, isend, 80, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, isend, ncclResult_t (**)(void *, void *, int, int, void *, void **));
ABI_AT(ncclNet_v8_t, irecv, 88, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, irecv, ncclResult_t (**)(void *, int, void **, int *, int *, void **, void **));
ABI_AT(ncclNet_v8_t, iflush, 96, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, iflush, ncclResult_t (**)(void *, int, void **, int *, void **, void **));
ABI_AT(ncclNet_v8_t, test, 104, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, test, ncclResult_t (**)(void *, int *, int *));
ABI_AT(ncclNet_v8_t, closeSend, 112, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, closeSend, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v8_t, closeRecv, 120, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, closeRecv, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v8_t, closeListen, 128, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, closeListen, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v8_t, getDeviceMr, 136, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, getDeviceMr, ncclResult_t (**)(void *, void *, void **));
ABI_AT(ncclNet_v8_t, irecvConsumed, 144, 8);
ABI_FIELD_TYPE(ncclNet_v8_t, irecvConsumed, ncclResult_t (**)(void *, int, void *));
#endif
