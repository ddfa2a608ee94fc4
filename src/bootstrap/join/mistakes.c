/* Mistakes that an init can see in its environment: an id kept from an earlier run, a rank that
 * the program did not take from its launcher, and loopback addresses offered to other hosts. */
#include "bootstrap/join/mistakes.h"

#include "base/param.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tt_mistake_id(const struct tt_id_parts *id, char *text, size_t text_bytes)
{
    const char *here = tt_param_str("NCCL_COMM_ID");
    union tt_addr addr;
    char theirs[128], ours[128];
    text[0] = 0;
    if (!here || !id->fixed_address || tt_addr_fault(here, &addr)) return false;
    tt_addr_text(&id->addr, theirs, sizeof(theirs));
    tt_addr_text(&addr, ours, sizeof(ours));
    if (!strcmp(theirs, ours)) return false;
    snprintf(text, text_bytes,
             "holds another unique id than this run's: it names %s, where nobody listens, and "
             "NCCL_COMM_ID is %s; was it read from a file that an earlier run left?",
             theirs, ours);
    return true;
}

bool tt_mistake_far(int fd, const union tt_addr *peer)
{
    union tt_addr own;
    socklen_t len = sizeof(own);
    if (peer->sa.sa_family == AF_UNSPEC || tt_addr_is_loopback(peer)) return false;
    return getsockname(fd, &own.sa, &len) == 0 && !tt_addr_same_ip(&own, peer);
}

void tt_mistake_netif(char *text, size_t text_bytes)
{
    const char *named = tt_param_str("NCCL_SOCKET_IFNAME");
    if (named && *named) {
        snprintf(text, text_bytes,
                 "NCCL_SOCKET_IFNAME is '%.60s' there; name an interface that the others reach, or "
                 "unset it",
                 named);
    } else {
        snprintf(text, text_bytes,
                 "no other interface is up and running there (NCCL_SOCKET_IFNAME is not set)");
    }
}

void tt_mistake_rank(int rank, char *text, size_t text_bytes)
{
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
    text[0] = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && rank >= 0; i++) {
        const char *value = getenv(names[i]);
        if (!value || !*value) continue;
        if (strtol(value, NULL, 10) == rank) return;
        snprintf(text, text_bytes,
                 " This process called init as rank %d, and %s says that it is %s: was it read?",
                 rank, names[i], value);
        return;
    }
}
