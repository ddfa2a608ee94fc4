/* Network plugins, version 4 (NCCL 2.8): a library exports ncclNetPlugin_v4. Flushes are requests.
 */
#ifndef TUTTI_NCCL_NET_V4_H_
#define TUTTI_NCCL_NET_V4_H_

#include "common.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *name;
    char *pciPath;
    uint64_t guid;
    int ptrSupport;
    int speed;
    int port;
    int maxComms;
} ncclNetProperties_v4_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(ncclDebugLogger_t logFunction);
    ncclResult_t (*devices)(int *ndev);
    ncclResult_t (*getProperties)(int dev, ncclNetProperties_v4_t *props);
    ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
    ncclResult_t (*connect)(int dev, void *handle, void **sendComm);
    ncclResult_t (*accept)(void *listenComm, void **recvComm);
    ncclResult_t (*regMr)(void *comm, void *data, int size, int type, void **mhandle);
    ncclResult_t (*deregMr)(void *comm, void *mhandle);
    ncclResult_t (*isend)(void *sendComm, void *data, int size, void *mhandle, void **request);
    ncclResult_t (*irecv)(void *recvComm, void *data, int size, void *mhandle, void **request);
    ncclResult_t (*iflush)(void *recvComm, void *data, int size, void *mhandle, void **request);
    ncclResult_t (*test)(void *request, int *done, int *size);
    ncclResult_t (*closeSend)(void *sendComm);
    ncclResult_t (*closeRecv)(void *recvComm);
    ncclResult_t (*closeListen)(void *listenComm);
} ncclNet_v4_t;

#endif
