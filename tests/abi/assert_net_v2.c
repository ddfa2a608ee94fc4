/* Facts, made from tables: compile-time checks of plugin kind net, interface v2.
 * Header under test: ABI_HEADER (define it as a quoted include name to override).
 */

#ifndef ABI_HEADER
#define ABI_HEADER "nccl/net.h"
#endif
#include "checks.h"

#include ABI_HEADER

/* ncclNet_v2_t */
#ifndef ABI_SKIP_ncclNet_v2_t
ABI_SIZE(ncclNet_v2_t, 136);
ABI_ALIGN(ncclNet_v2_t, 8);
ABI_AT(ncclNet_v2_t, name, 0, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, name, const char * *);
ABI_AT(ncclNet_v2_t, init, 8, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, init, ncclResult_t (**)(ncclDebugLogger_t));
ABI_AT(ncclNet_v2_t, devices, 16, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, devices, ncclResult_t (**)(int *));
ABI_AT(ncclNet_v2_t, pciPath, 24, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, pciPath, ncclResult_t (**)(int, char **));
ABI_AT(ncclNet_v2_t, ptrSupport, 32, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, ptrSupport, ncclResult_t (**)(int, int *));
ABI_AT(ncclNet_v2_t, listen, 40, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, listen, ncclResult_t (**)(int, void *, void **));
ABI_AT(ncclNet_v2_t, connect, 48, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, connect, ncclResult_t (**)(int, void *, void **));
ABI_AT(ncclNet_v2_t, accept, 56, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, accept, ncclResult_t (**)(void *, void **));
ABI_AT(ncclNet_v2_t, regMr, 64, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, regMr, ncclResult_t (**)(void *, void *, int, int, void **));
ABI_AT(ncclNet_v2_t, deregMr, 72, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, deregMr, ncclResult_t (**)(void *, void *));
ABI_AT(ncclNet_v2_t, isend, 80, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, isend, ncclResult_t (**)(void *, void *, int, void *, void **));
ABI_AT(ncclNet_v2_t, irecv, 88, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, irecv, ncclResult_t (**)(void *, void *, int, void *, void **));
ABI_AT(ncclNet_v2_t, flush, 96, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, flush, ncclResult_t (**)(void *, void *, int, void *));
ABI_AT(ncclNet_v2_t, test, 104, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, test, ncclResult_t (**)(void *, int *, int *));
ABI_AT(ncclNet_v2_t, closeSend, 112, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, closeSend, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v2_t, closeRecv, 120, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, closeRecv, ncclResult_t (**)(void *));
ABI_AT(ncclNet_v2_t, closeListen, 128, 8);
ABI_FIELD_TYPE(ncclNet_v2_t, closeListen, ncclResult_t (**)(void *));
#endif
