/* Facts, made from tables: compile-time checks of plugin kind net, interface v5.
 * Header under test: ABI_HEADER (define it as a quoted include name to override).
 */

#ifndef ABI_HEADER
#define ABI_HEADER "nccl/net.h"
#endif
#include "checks.h"

#include ABI_HEADER

/* ncclNetProperties_v5_t */
#ifndef ABI_SKIP_ncclNetProperties_v5_t
ABI_SIZE(ncclNetProperties_v5_t, 48);
ABI_ALIGN(ncclNetProperties_v5_t, 8);
ABI_AT(ncclNetProperties_v5_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNetProperties_v5_t, name, char * *);
ABI_AT(ncclNetProperties_v5_t, pciPath, 8, 8);
ABI_FIELD_TYPE(ncclNetProperties_v5_t, pciPath, char * *);
ABI_AT(ncclNetProperties_v5_t, guid, 16, 8);
ABI_FIELD_TYPE(ncclNetProperties_v5_t, guid, uint64_t *);
ABI_AT(ncclNetProperties_v5_t, ptrSupport, 24, 4);
ABI_FIELD_TYPE(ncclNetProperties_v5_t, ptrSupport, int *);
ABI_AT(ncclNetProperties_v5_t, speed, 28, 4);
ABI_FIELD_TYPE(ncclNetProperties_v5_t, speed, int *);
ABI_AT(ncclNetProperties_v5_t, port, 32, 4);
ABI_FIELD_TYPE(ncclNetProperties_v5_t, port, int *);
ABI_AT(ncclNetProperties_v5_t, latency, 36, 4);
ABI_FIELD_TYPE(ncclNetProperties_v5_t, latency, float *);
ABI_AT(ncclNetProperties_v5_t, maxComms, 40, 4);
ABI_FIELD_TYPE(ncclNetProperties_v5_t, maxComms, int *);
ABI_AT(ncclNetProperties_v5_t, maxRecvs, 44, 4);
ABI_FIELD_TYPE(ncclNetProperties_v5_t, maxRecvs, int *);
#endif

/* ncclNet_v5_t */
#ifndef ABI_SKIP_ncclNet_v5_t
ABI_SIZE(ncclNet_v5_t, 128);
ABI_ALIGN(ncclNet_v5_t, 8);
ABI_AT(ncclNet_v5_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, name, const char * *);
ABI_AT(ncclNet_v5_t, init, 8, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, init, ncclResult_t (**)(ncclDebugLogger_t));
ABI_AT(ncclNet_v5_t, devices, 16, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, devices, ncclResult_t (**)(int *));
ABI_AT(ncclNet_v5_t, getProperties, 24, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, getProperties, ncclResult_t (**)(int, ncclNetProperties_v5_t *));
ABI_AT(ncclNet_v5_t, listen, 32, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, listen, ncclResult_t (**)(int, void *, void **));
ABI_AT(ncclNet_v5_t, connect, 40, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, connect, ncclResult_t (**)(int, void *, void **));
ABI_AT(ncclNet_v5_t, accept, 48, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, accept, ncclResult_t (**)(void *, void **));
ABI_AT(ncclNet_v5_t, regMr, 56, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, regMr, ncclResult_t (**)(void *, void *, int, int, void **));
ABI_AT(ncclNet_v5_t, deregMr, 64, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, deregMr, ncclResult_t (**)(void *, void *));
ABI_AT(ncclNet_v5_t, isend, 72, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, isend, ncclResult_t (**)(void *, void *, int, int, void *, void **));
ABI_AT(ncclNet_v5_t, irecv, 80, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, irecv, ncclResult_t (**)(void *, int, void **, int *, int *, void **, void **));
ABI_AT(ncclNet_v5_t, iflush, 88, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, iflush, ncclResult_t (**)(void *, int, void **, int *, void **, void **));
ABI_AT(ncclNet_v5_t, test, 96, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, test, ncclResult_t (**)(void *, int *, int *));
ABI_AT(ncclNet_v5_t, closeSend, 104, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, closeSend, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v5_t, closeRecv, 112, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, closeRecv, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v5_t, closeListen, 120, 8);
ABI_FIELD_TYPE(ncclNet_v5_t, closeListen, ncclResult_t (**)(void *));
#endif
