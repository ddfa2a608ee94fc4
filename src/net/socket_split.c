/* NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD. */
#include "net/socket_split.h"

#include "base/log.h"
#include "base/network/socket.h"
#include "base/param.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 16, VENDOR_AMAZON = 0x1d0f, VENDOR_GOOGLE = 0x1ae0 };

static int vendor_of(const struct tt_netif *netif)
{
    char path[sizeof(netif->pci_path) + 16];
    char text[32] = "";
    if (!netif->pci_path[0]) return 0;
    snprintf(path, sizeof(path), "%s/vendor", netif->pci_path);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    if (!fgets(text, sizeof(text), file)) text[0] = '\0';
    fclose(file);
    return (int)strtol(text, NULL, 16);
}

struct socket_split tt_socket_split_of(const struct tt_netif *netif, bool reports)
{
    int64_t threads = tt_param_int("NCCL_SOCKET_NTHREADS");
    int64_t each = tt_param_int("NCCL_NSOCKS_PERTHREAD");
    const bool by_vendor = threads < 0;
    int vendor = threads < 0 || each < 0 ? vendor_of(netif) : 0;
    if (threads < 0) threads = vendor == VENDOR_AMAZON ? 2 : vendor == VENDOR_GOOGLE ? 4 : 0;
    if (each < 0) each = vendor == VENDOR_AMAZON ? 8 : 1;
    if (threads > MOST_THREADS) {
        if (reports) {
            tt_attn("NET/Socket : NCCL_SOCKET_NTHREADS is greater than the maximum allowed, "
                    "setting to %d",
                    MOST_THREADS);
        }
        threads = MOST_THREADS;
    }
    if (threads && each > SOCKET_SPLIT_MOST / threads) {
        each = SOCKET_SPLIT_MOST / threads;
        if (reports) {
            tt_attn("NET/Socket : the total number of sockets is greater than the maximum "
                    "allowed, setting NCCL_NSOCKS_PERTHREAD to %d",
                    (int)each);
        }
    }
    return (struct socket_split){(int)threads, (int)each, by_vendor};
}
