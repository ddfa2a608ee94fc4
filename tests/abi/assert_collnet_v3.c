/* Facts, made from tables: compile-time checks of plugin kind collnet, interface v3.
 * Header under test: ABI_HEADER (define it as a quoted include name to override).
 */

#ifndef ABI_HEADER
#define ABI_HEADER "nccl/net.h"
#endif
#include "checks.h"

#include ABI_HEADER

/* ncclNetProperties_v3_t (referenced) */
#ifndef ABI_SKIP_ncclNetProperties_v3_t
ABI_SIZE(ncclNetProperties_v3_t, 40);
ABI_ALIGN(ncclNetProperties_v3_t, 8);
ABI_AT(ncclNetProperties_v3_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNetProperties_v3_t, name, char * *);
ABI_AT(ncclNetProperties_v3_t, pciPath, 8, 8);
ABI_FIELD_TYPE(ncclNetProperties_v3_t, pciPath, char * *);
ABI_AT(ncclNetProperties_v3_t, guid, 16, 8);
ABI_FIELD_TYPE(ncclNetProperties_v3_t, guid, uint64_t *);
ABI_AT(ncclNetProperties_v3_t, ptrSupport, 24, 4);
ABI_FIELD_TYPE(ncclNetProperties_v3_t, ptrSupport, int *);
ABI_AT(ncclNetProperties_v3_t, speed, 28, 4);
ABI_FIELD_TYPE(ncclNetProperties_v3_t, speed, int *);
ABI_AT(ncclNetProperties_v3_t, port, 32, 4);
ABI_FIELD_TYPE(ncclNetProperties_v3_t, port, int *);
ABI_AT(ncclNetProperties_v3_t, maxComms, 36, 4);
ABI_FIELD_TYPE(ncclNetProperties_v3_t, maxComms, int *);
#endif

/* ncclCollNet_v3_t */
#ifndef ABI_SKIP_ncclCollNet_v3_t
ABI_SIZE(ncclCollNet_v3_t, 112);
ABI_ALIGN(ncclCollNet_v3_t, 8);
ABI_AT(ncclCollNet_v3_t, name, 0, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, name, const char * *);
ABI_AT(ncclCollNet_v3_t, init, 8, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, init, ncclResult_t (**)(ncclDebugLogger_t));
ABI_AT(ncclCollNet_v3_t, devices, 16, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, devices, ncclResult_t (**)(int *));
ABI_AT(ncclCollNet_v3_t, getProperties, 24, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, getProperties, ncclResult_t (**)(int, ncclNetProperties_v3_t *));
ABI_AT(ncclCollNet_v3_t, listen, 32, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, listen, ncclResult_t (**)(int, void *, void **));
ABI_AT(ncclCollNet_v3_t, connect, 40, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, connect, ncclResult_t (**)(void *[], int, int, void *, void **));
ABI_AT(ncclCollNet_v3_t, reduceSupport, 48, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, reduceSupport, ncclResult_t (**)(ncclDataType_t, ncclRedOp_t, int *));
ABI_AT(ncclCollNet_v3_t, regMr, 56, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, regMr, ncclResult_t (**)(void *, void *, int, int, void **));
ABI_AT(ncclCollNet_v3_t, deregMr, 64, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, deregMr, ncclResult_t (**)(void *, void *));
ABI_AT(ncclCollNet_v3_t, iallreduce, 72, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, iallreduce, ncclResult_t (**)(void *, void *, void *, int, ncclDataType_t, ncclRedOp_t, void *, void *, void **));
ABI_AT(ncclCollNet_v3_t, flush, 80, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, flush, ncclResult_t (**)(void *, void *, int, void *));
ABI_AT(ncclCollNet_v3_t, test, 88, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, test, ncclResult_t (**)(void *, int *, int *));
ABI_AT(ncclCollNet_v3_t, closeColl, 96, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, closeColl, ncclResult_t (**)(void *));
ABI_AT(ncclCollNet_v3_t, closeListen, 104, 8);
ABI_FIELD_TYPE(ncclCollNet_v3_t, closeListen, ncclResult_t (**)(void *));
#endif
