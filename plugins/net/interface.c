/* Interfaces of the host: which of them NCCL's variables take. */
#include "control.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ofi_listed(const char *list, const char *name)
{
    bool all_but = *list == '^';
    list += all_but;
    bool exact = *list == '=';
    list += exact;
    bool found = false;
    for (const char *at = list; *at && !found; at += strcspn(at, ",")) {
        at += strspn(at, ",");
        size_t len = strcspn(at, ",");
        found = len && !strncmp(at, name, len) && (!exact || !name[len]);
    }
    return found != all_but;
}

int ofi_interface_rank(const char *name)
{
    if (!strncmp(name, "lo", 2)) return 2;
    return !strncmp(name, "docker", 6) || !strncmp(name, "virbr", 5);
}

static bool takes_family(const struct sockaddr *addr)
{
    const char *wanted = getenv("NCCL_SOCKET_FAMILY");
    if (!addr) return false;
    if (addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const void *)addr;
        return !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) &&
               (!wanted || strcmp(wanted, "AF_INET") != 0);
    }
    return addr->sa_family == AF_INET && (!wanted || strcmp(wanted, "AF_INET6") != 0);
}

bool ofi_interface_find(struct ofi_address *address)
{
    const char *wanted = getenv("NCCL_SOCKET_IFNAME");
    struct ifaddrs *all = NULL;
    int best = 3;
    if (getifaddrs(&all)) return false;
    for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
        bool listed = wanted && *wanted ? ofi_listed(wanted, one->ifa_name) : true;
        if (!(one->ifa_flags & IFF_RUNNING) || !listed || !takes_family(one->ifa_addr)) continue;
        if (ofi_interface_rank(one->ifa_name) >= best) continue;
        best = ofi_interface_rank(one->ifa_name);
        memset(address, 0, sizeof(*address));
        address->bytes = one->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                             : sizeof(struct sockaddr_in6);
        memcpy(&address->addr, one->ifa_addr, address->bytes);
    }
    freeifaddrs(all);
    return best < 3;
}

void ofi_address_words(const struct ofi_address *address, char words[OFI_PEER_BYTES])
{
    char host[INET6_ADDRSTRLEN] = "?";
    const struct sockaddr_in *four = (const void *)&address->addr;
    const struct sockaddr_in6 *six = &address->addr;
    bool is_four = four->sin_family == AF_INET;
    (void)inet_ntop(four->sin_family, is_four ? (const void *)&four->sin_addr : &six->sin6_addr,
                    host, sizeof(host));
    snprintf(words, OFI_PEER_BYTES, is_four ? "%s:%d" : "[%s]:%d", host, ntohs(four->sin_port));
}
