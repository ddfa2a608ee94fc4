/* Facts, made from tables: compile-time checks of plugin kind collnet, interface v7.
 * Header under test: ABI_HEADER (define it as a quoted include name to override).
 */

#ifndef ABI_HEADER
#define ABI_HEADER "nccl/net.h"
#endif
#include "checks.h"

#include ABI_HEADER

/* ncclNetProperties_v7_t (referenced) */
#ifndef ABI_SKIP_ncclNetProperties_v7_t
ABI_SIZE(ncclNetProperties_v7_t, 56);
ABI_ALIGN(ncclNetProperties_v7_t, 8);
ABI_AT(ncclNetProperties_v7_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNetProperties_v7_t, name, char * *);
ABI_AT(ncclNetProperties_v7_t, pciPath, 8, 8);
ABI_FIELD_TYPE(ncclNetProperties_v7_t, pciPath, char * *);
ABI_AT(ncclNetProperties_v7_t, guid, 16, 8);
ABI_FIELD_TYPE(ncclNetProperties_v7_t, guid, uint64_t *);
ABI_AT(ncclNetProperties_v7_t, ptrSupport, 24, 4);
ABI_FIELD_TYPE(ncclNetProperties_v7_t, ptrSupport, int *);
ABI_AT(ncclNetProperties_v7_t, speed, 28, 4);
ABI_FIELD_TYPE(ncclNetProperties_v7_t, speed, int *);
ABI_AT(ncclNetProperties_v7_t, port, 32, 4);
ABI_FIELD_TYPE(ncclNetProperties_v7_t, port, int *);
ABI_AT(ncclNetProperties_v7_t, latency, 36, 4);
ABI_FIELD_TYPE(ncclNetProperties_v7_t, latency, float *);
ABI_AT(ncclNetProperties_v7_t, maxComms, 40, 4);
ABI_FIELD_TYPE(ncclNetProperties_v7_t, maxComms, int *);
ABI_AT(ncclNetProperties_v7_t, maxRecvs, 44, 4);
ABI_FIELD_TYPE(ncclNetProperties_v7_t, maxRecvs, int *);
ABI_AT(ncclNetProperties_v7_t, netDeviceType, 48, 4);
ABI_FIELD_TYPE(ncclNetProperties_v7_t, netDeviceType, ncclNetDeviceType *);
ABI_AT(ncclNetProperties_v7_t, netDeviceVersion, 52, 4);
ABI_FIELD_TYPE(ncclNetProperties_v7_t, netDeviceVersion, int *);
#endif

/* ncclCollNet_v7_t */
#ifndef ABI_SKIP_ncclCollNet_v7_t
ABI_SIZE(ncclCollNet_v7_t, 120);
ABI_ALIGN(ncclCollNet_v7_t, 8);
ABI_AT(ncclCollNet_v7_t, name, 0, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, name, const char * *);
ABI_AT(ncclCollNet_v7_t, init, 8, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, init, ncclResult_t (**)(ncclDebugLogger_t));
ABI_AT(ncclCollNet_v7_t, devices, 16, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, devices, ncclResult_t (**)(int *));
ABI_AT(ncclCollNet_v7_t, getProperties, 24, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, getProperties, ncclResult_t (**)(int, ncclNetProperties_v7_t *));
ABI_AT(ncclCollNet_v7_t, listen, 32, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, listen, ncclResult_t (**)(int, void *, void **));
ABI_AT(ncclCollNet_v7_t, connect, 40, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, connect, ncclResult_t (**)(void *[], int, int, void *, void **));
ABI_AT(ncclCollNet_v7_t, reduceSupport, 48, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, reduceSupport, ncclResult_t (**)(ncclDataType_t, ncclRedOp_t, int *));
ABI_AT(ncclCollNet_v7_t, regMr, 56, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, regMr, ncclResult_t (**)(void *, void *, int, int, void **));
ABI_AT(ncclCollNet_v7_t, regMrDmaBuf, 64, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, regMrDmaBuf, ncclResult_t (**)(void *, void *, size_t, int, uint64_t, int, void **));
ABI_AT(ncclCollNet_v7_t, deregMr, 72, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, deregMr, ncclResult_t (**)(void *, void *));
ABI_AT(ncclCollNet_v7_t, iallreduce, 80, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, iallreduce, ncclResult_t (**)(void *, void *, void *, int, ncclDataType_t, ncclRedOp_t, void *, void *, void **));
ABI_AT(ncclCollNet_v7_t, iflush, 88, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, iflush, ncclResult_t (**)(void *, void *, int, void *, void **));
ABI_AT(ncclCollNet_v7_t, test, 96, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, test, ncclResult_t (**)(void *, int *, int *));
ABI_AT(ncclCollNet_v7_t, closeColl, 104, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, closeColl, ncclResult_t (**)(void *));
ABI_AT(ncclCollNet_v7_t, closeListen, 112, 8);
ABI_FIELD_TYPE(ncclCollNet_v7_t, closeListen, ncclResult_t (**)(void *));
#endif
