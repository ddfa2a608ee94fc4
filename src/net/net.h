/* Networks: the newest net ABI (nccl/net.h) is the only interface; a built-in and a plugin enter
 * alike. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>

struct tt_net; /* one network as used by communicators: table + context + devices; counted */

struct tt_net_props { /* the part of the properties that the house uses */
    char name[64];
    int speed_mbps;
    int port;
    float lat_usec;
    int max_comms, max_recvs;
    bool device_memory; /* registers CUDA memory too */
    const char *pci_path;
};
