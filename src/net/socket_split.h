/* How many sockets and threads a connection has. Private to the room. */
#pragma once

#include <stdbool.h>

struct tt_netif;

enum { SOCKET_SPLIT_MOST = 64 }; /* threads times sockets, as in NCCL */

struct socket_split {
    int threads, each; /* each thread's sockets */
    bool by_vendor;    /* the user has not said how many threads */
};

/* What the variables, or the vendor of the adapter, say for connections of that interface. The
 * listener's product is the number of data lanes at both ends.
 * reports  whether to report values that are out of bounds */
struct socket_split tt_socket_split_of(const struct tt_netif *netif, bool reports);
