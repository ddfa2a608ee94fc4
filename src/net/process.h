/* The room's state of the process: one object, with a part for each network. Private to the room.
 */
#pragma once

#include "base/network/socket.h"

#include <pthread.h>

enum { SOCKET_DEVICES = 16 };

struct tt_ib;

struct tt_nets {
    struct { /* socket.c: the interfaces, found once */
        pthread_once_t once;
        struct tt_netif netifs[SOCKET_DEVICES];
        int count;
        ncclResult_t rc;
    } sockets;
    pthread_once_t ib_once;
    struct tt_ib *ib; /* ib/device.c: the adapters, found once; owned. NULL: not searched for
                         yet, or out of memory */
};

extern struct tt_nets tt_nets;
