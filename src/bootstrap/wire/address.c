/* One form for all messages: little-endian, IPv4 in the first four of sixteen bytes. */
#include "bootstrap/wire/address.h"

#include "base/error.h"
#include "base/log.h"
#include "bootstrap/wire/service.h"
#include "bootstrap/wire/wire.h"

#include <arpa/inet.h>
#include <string.h>

void tt_addr_put(struct tt_wire *wire, const union tt_addr *addr)
{
    bool v6 = addr->sa.sa_family == AF_INET6;
    uint16_t port = ntohs(v6 ? addr->v6.sin6_port : addr->v4.sin_port);
    unsigned char ip[16] = {0};
    memcpy(ip, v6 ? (const void *)&addr->v6.sin6_addr : (const void *)&addr->v4.sin_addr,
           v6 ? 16 : 4);
    uint32_t family = addr->sa.sa_family == AF_UNSPEC ? 0 : v6 ? 6 : 4;
    tt_wire_put32(wire, family | (uint32_t)port << 16);
    tt_wire_put(wire, ip, sizeof(ip));
    tt_wire_put32(wire, v6 ? addr->v6.sin6_scope_id : 0);
}

void tt_addr_get(struct tt_wire *wire, union tt_addr *addr)
{
    unsigned char ip[16];
    uint32_t word = tt_wire_get32(wire);
    tt_wire_get(wire, ip, sizeof(ip));
    uint32_t scope = tt_wire_get32(wire);
    uint16_t port = htons((uint16_t)(word >> 16));
    memset(addr, 0, sizeof(*addr));
    if ((word & 0xff) == 6) {
        addr->v6.sin6_family = AF_INET6;
        addr->v6.sin6_port = port;
        addr->v6.sin6_scope_id = scope;
        memcpy(&addr->v6.sin6_addr, ip, 16);
    } else if (word & 0xff) {
        addr->v4.sin_family = AF_INET;
        addr->v4.sin_port = port;
        memcpy(&addr->v4.sin_addr, ip, 4);
    }
}

/* The first usable interface, if it is another than the one known, and the second one. */
static ncclResult_t choose_netif(struct tt_service *service)
{
    struct tt_netif netifs[2];
    int count = 0;
    char text[128];
    ncclResult_t rc = tt_netif_list(netifs, 2, &count);
    if (rc) return rc;
    if (count < 1) return tt_fail(ncclInvalidUsage, "bootstrap: no usable network interface");
    if (tt_addr_same_ip(&netifs[0].addr, &service->netif)) return ncclSuccess;
    service->netif = netifs[0].addr;
    bool spare = count > 1 && netifs[1].addr.sa.sa_family == netifs[0].addr.sa.sa_family;
    service->spare_netif = spare ? netifs[1].addr : (union tt_addr){.sa.sa_family = AF_UNSPEC};
    tt_info(TT_LOG_BOOTSTRAP, "Bootstrap: Using %s:%s", netifs[0].name,
            tt_addr_text(&netifs[0].addr, text, sizeof(text)));
    return ncclSuccess;
}

ncclResult_t tt_bootstrap_netif(union tt_addr *addr_out)
{
    struct tt_service *service = tt_service();
    union tt_addr *known = &service->netif;
    ncclResult_t rc = ncclSuccess;
    pthread_mutex_lock(&service->netif_lock);
    bool first = known->sa.sa_family == AF_UNSPEC;
    if (first || tt_addr_is_loopback(known)) rc = choose_netif(service);
    if (!first) rc = ncclSuccess;
    *addr_out = *known;
    pthread_mutex_unlock(&service->netif_lock);
    return rc;
}

void tt_bootstrap_spare_netif(union tt_addr *addr_out)
{
    struct tt_service *service = tt_service();
    pthread_mutex_lock(&service->netif_lock);
    *addr_out = service->spare_netif;
    pthread_mutex_unlock(&service->netif_lock);
}

static bool is_at(int fd, const union tt_addr *netif)
{
    union tt_addr own = {.sa.sa_family = AF_UNSPEC};
    socklen_t len = sizeof(own);
    return !getsockname(fd, &own.sa, &len) && tt_addr_same_ip(&own, netif);
}

bool tt_bootstrap_at_netif(int fd)
{
    union tt_addr netif;
    return !tt_bootstrap_netif(&netif) && is_at(fd, &netif);
}

bool tt_bootstrap_at_spare(int fd)
{
    union tt_addr netif;
    tt_bootstrap_spare_netif(&netif);
    return netif.sa.sa_family != AF_UNSPEC && is_at(fd, &netif);
}
