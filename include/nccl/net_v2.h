/* Network plugins, version 2 (NCCL 2.4): a library exports ncclNetPlugin_v2. The first of its kind:
 * one path and one set of memory types per device, connections that block. */
#ifndef TUTTI_NCCL_NET_V2_H_
#define TUTTI_NCCL_NET_V2_H_

#include "common.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name;
    ncclResult_t (*init)(ncclDebugLogger_t logFunction);
    ncclResult_t (*devices)(int *ndev);
    ncclResult_t (*pciPath)(int dev, char **path);
    ncclResult_t (*ptrSupport)(int dev, int *supportedTypes);
    ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
    ncclResult_t (*connect)(int dev, void *handle, void **sendComm);
    ncclResult_t (*accept)(void *listenComm, void **recvComm);
    ncclResult_t (*regMr)(void *comm, void *data, int size, int type, void **mhandle);
    ncclResult_t (*deregMr)(void *comm, void *mhandle);
    ncclResult_t (*isend)(void *sendComm, void *data, int size, void *mhandle, void **request);
    ncclResult_t (*irecv)(void *recvComm, void *data, int size, void *mhandle, void **request);
    ncclResult_t (*flush)(void *recvComm, void *data, int size, void *mhandle);
    ncclResult_t (*test)(void *request, int *done, int *size);
    ncclResult_t (*closeSend)(void *sendComm);
    ncclResult_t (*closeRecv)(void *recvComm);
    ncclResult_t (*closeListen)(void *listenComm);
} ncclNet_v2_t;

#endif
