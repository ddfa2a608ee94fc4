/* What the tables of several versions have in common: net_v<N>.c says in what version N differs
 * from N + 1, and takes the rest from it. */
#pragma once

#include "nccl/net.h"
#include "nccl/net_v10.h"
#include "nccl/net_v7.h"
#include "nccl/net_v8.h"

#define OFI_EXPORTED __attribute__((visibility("default")))
extern const char ofi_name[];

/* net_v12.c */
ncclResult_t ofi_v12_devices(int *ndev);
ncclResult_t ofi_v12_properties(int dev, ncclNetProperties_v12_t *props);
ncclResult_t ofi_v12_connect(void *ctx, int dev, void *handle, void **send_comm,
                             ncclNetDeviceHandle_v7_t **offload);
ncclResult_t ofi_v12_accept(void *listen_comm, void **recv_comm,
                            ncclNetDeviceHandle_v7_t **offload);
ncclResult_t ofi_v12_isend(void *comm, void *data, size_t bytes, int tag, void *mhandle,
                           void *event, void **request);
ncclResult_t ofi_v12_irecv(void *comm, int n, void **data, size_t *sizes, int *tags,
                           void **mhandles, void **events, void **request);
ncclResult_t ofi_v12_iflush(void *comm, int n, void **data, int *sizes, void **mhandles,
                            void **request);
ncclResult_t ofi_v12_close(void *comm);
/* Once in a process and per communicator. */
ncclResult_t ofi_v12_begin(ncclDebugLogger_t log, void **ctx);
ncclResult_t ofi_v12_finalize(void *ctx);

/* net_v11.c */
ncclResult_t ofi_v10_properties(int dev, ncclNetProperties_v10_t *props);

/* net_v10.c: the process's one context takes the place of the communicator's */
ncclResult_t ofi_v9_init(ncclDebugLogger_t log);
ncclResult_t ofi_v10_listen(int dev, void *handle, void **listen_comm);

/* net_v9.c */
ncclResult_t ofi_v9_connect(int dev, void *handle, void **send_comm,
                            ncclNetDeviceHandle_v7_t **offload);

/* net_v8.c */
ncclResult_t ofi_v8_properties(int dev, ncclNetProperties_v8_t *props);
ncclResult_t ofi_v8_isend(void *comm, void *data, int bytes, int tag, void *mhandle,
                          void **request);
ncclResult_t ofi_v8_irecv(void *comm, int n, void **data, int *sizes, int *tags, void **mhandles,
                          void **request);

/* net_v7.c */
ncclResult_t ofi_v7_reg(void *comm, void *data, int bytes, int type, void **mhandle);
