/* Facts, made from tables: compile-time checks of plugin kind collnet, interface v6.
 * Header under test: ABI_HEADER (define it as a quoted include name to override).
 */

#ifndef ABI_HEADER
#define ABI_HEADER "nccl/net.h"
#endif
#include "checks.h"

#include ABI_HEADER

/* ncclNetProperties_v6_t (referenced) */
#ifndef ABI_SKIP_ncclNetProperties_v6_t
ABI_SIZE(ncclNetProperties_v6_t, 48);
ABI_ALIGN(ncclNetProperties_v6_t, 8);
ABI_AT(ncclNetProperties_v6_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNetProperties_v6_t, name, char * *);
ABI_AT(ncclNetProperties_v6_t, pciPath, 8, 8);
ABI_FIELD_TYPE(ncclNetProperties_v6_t, pciPath, char * *);
ABI_AT(ncclNetProperties_v6_t, guid, 16, 8);
ABI_FIELD_TYPE(ncclNetProperties_v6_t, guid, uint64_t *);
ABI_AT(ncclNetProperties_v6_t, ptrSupport, 24, 4);
ABI_FIELD_TYPE(ncclNetProperties_v6_t, ptrSupport, int *);
ABI_AT(ncclNetProperties_v6_t, speed, 28, 4);
ABI_FIELD_TYPE(ncclNetProperties_v6_t, speed, int *);
ABI_AT(ncclNetProperties_v6_t, port, 32, 4);
ABI_FIELD_TYPE(ncclNetProperties_v6_t, port, int *);
ABI_AT(ncclNetProperties_v6_t, latency, 36, 4);
ABI_FIELD_TYPE(ncclNetProperties_v6_t, latency, float *);
ABI_AT(ncclNetProperties_v6_t, maxComms, 40, 4);
ABI_FIELD_TYPE(ncclNetProperties_v6_t, maxComms, int *);
ABI_AT(ncclNetProperties_v6_t, maxRecvs, 44, 4);
ABI_FIELD_TYPE(ncclNetProperties_v6_t, maxRecvs, int *);
#endif

/* ncclCollNet_v6_t */
#ifndef ABI_SKIP_ncclCollNet_v6_t
ABI_SIZE(ncclCollNet_v6_t, 120);
ABI_ALIGN(ncclCollNet_v6_t, 8);
ABI_AT(ncclCollNet_v6_t, name, 0, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, name, const char * *);
ABI_AT(ncclCollNet_v6_t, init, 8, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, init, ncclResult_t (**)(ncclDebugLogger_t));
ABI_AT(ncclCollNet_v6_t, devices, 16, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, devices, ncclResult_t (**)(int *));
ABI_AT(ncclCollNet_v6_t, getProperties, 24, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, getProperties, ncclResult_t (**)(int, ncclNetProperties_v6_t *));
ABI_AT(ncclCollNet_v6_t, listen, 32, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, listen, ncclResult_t (**)(int, void *, void **));
ABI_AT(ncclCollNet_v6_t, connect, 40, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, connect, ncclResult_t (**)(void *[], int, int, void *, void **));
ABI_AT(ncclCollNet_v6_t, reduceSupport, 48, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, reduceSupport, ncclResult_t (**)(ncclDataType_t, ncclRedOp_t, int *));
ABI_AT(ncclCollNet_v6_t, regMr, 56, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, regMr, ncclResult_t (**)(void *, void *, int, int, void **));
ABI_AT(ncclCollNet_v6_t, regMrDmaBuf, 64, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, regMrDmaBuf, ncclResult_t (**)(void *, void *, size_t, int, uint64_t, int, void **));
ABI_AT(ncclCollNet_v6_t, deregMr, 72, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, deregMr, ncclResult_t (**)(void *, void *));
ABI_AT(ncclCollNet_v6_t, iallreduce, 80, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, iallreduce, ncclResult_t (**)(void *, void *, void *, int, ncclDataType_t, ncclRedOp_t, void *, void *, void **));
ABI_AT(ncclCollNet_v6_t, iflush, 88, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, iflush, ncclResult_t (**)(void *, void *, int, void *, void **));
ABI_AT(ncclCollNet_v6_t, test, 96, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, test, ncclResult_t (**)(void *, int *, int *));
ABI_AT(ncclCollNet_v6_t, closeColl, 104, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, closeColl, ncclResult_t (**)(void *));
ABI_AT(ncclCollNet_v6_t, closeListen, 112, 8);
ABI_FIELD_TYPE(ncclCollNet_v6_t, closeListen, ncclResult_t (**)(void *));
#endif

#ifdef NCCL_NET_MAX_REQUESTS_V6
ABI_VALUE(NCCL_NET_MAX_REQUESTS_V6, 8);
#endif
