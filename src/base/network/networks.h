/* What a process has found of its machine's networks. Networks are asked for their devices without
 * a context, so it is found once, by the room net/; this room has only the place for it. */
#pragma once

#include "base/network/socket.h"

#include <pthread.h>

enum { TT_INTERFACES_MOST = 16 };

struct tt_ib;

struct tt_networks {
    struct tt_interfaces { /* net/socket.c */
        pthread_once_t once;
        struct tt_netif netifs[TT_INTERFACES_MOST];
        int count;
        ncclResult_t rc;
    } interfaces;
    pthread_once_t ib_once;
    struct tt_ib *ib; /* net/ib/device.c: the adapters; owned. NULL: not searched for yet, or out of
                         memory */
};

struct tt_networks *tt_networks(void); /* process.c */
