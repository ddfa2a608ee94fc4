/* Which network interfaces are used: NCCL's order, with NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY
 * as filters. The first address of a name counts; IPv6 loopback never does. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/network/socket.h"
#include "base/param.h"

#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_LIST_BYTES = 512, DEFAULT_SPEED_MBPS = 10000 };

/* A list of names as users write it: "eth,ib0:1", "=eth0", "^docker", "^=lo". */
struct name_filter {
    const char *list; /* comma separated, modifiers removed */
    bool exact;
    bool exclude;
};

static struct name_filter parse_filter(const char *text)
{
    struct name_filter filter = {.list = text};
    if (*filter.list == '^') {
        filter.exclude = true;
        filter.list++;
    }
    if (*filter.list == '=') {
        filter.exact = true;
        filter.list++;
    }
    return filter;
}

static bool filter_allows(const struct name_filter *filter, const char *name)
{
    bool listed = false;
    for (const char *item = filter->list; *item && !listed; item += strcspn(item, ",")) {
        item += strspn(item, ", ");
        const size_t len = strcspn(item, ",: "); /* a port after the name means nothing here */
        if (!len) continue;
        listed = !strncmp(name, item, len) && (!filter->exact || name[len] == '\0');
    }
    return listed != filter->exclude;
}

static bool is_usable(const struct ifaddrs *entry)
{
    const unsigned int need = IFF_UP | IFF_RUNNING;
    if (!entry->ifa_addr || (entry->ifa_flags & need) != need) return false;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) return false;
    const struct sockaddr_in6 *v6 = (const void *)entry->ifa_addr;
    if (family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)) return false;
    const char *wanted = tt_param_str("NCCL_SOCKET_FAMILY");
    if (!wanted) return true;
    return family == (!strcasecmp(wanted, "AF_INET6") ? AF_INET6 : AF_INET);
}

static int read_speed(const char *name)
{
    char text[64]; /* first the path, then what the file says */
    snprintf(text, sizeof(text), "/sys/class/net/%s/speed", name);
    FILE *file = fopen(text, "re");
    if (!file) return DEFAULT_SPEED_MBPS;
    const bool got = fgets(text, sizeof(text), file) != NULL; /* fails on virtual interfaces */
    fclose(file);
    const long speed_mbps = got ? strtol(text, NULL, 10) : 0;
    return speed_mbps > 0 && speed_mbps <= INT_MAX ? (int)speed_mbps : DEFAULT_SPEED_MBPS;
}

static void fill_netif(const struct ifaddrs *entry, struct tt_netif *netif)
{
    char link[64];
    char device[PATH_MAX];
    *netif = (struct tt_netif){0};
    snprintf(netif->name, sizeof(netif->name), "%s", entry->ifa_name);
    const bool is_v6 = entry->ifa_addr->sa_family == AF_INET6;
    memcpy(&netif->addr, entry->ifa_addr, is_v6 ? sizeof(netif->addr.v6) : sizeof(netif->addr.v4));
    netif->speed_mbps = read_speed(netif->name);
    snprintf(link, sizeof(link), "/sys/class/net/%s/device", netif->name);
    if (realpath(link, device) && strlen(device) < sizeof(netif->pci_path))
        memcpy(netif->pci_path, device, strlen(device) + 1);
}

static bool has_name(const struct tt_netif *netifs, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (!strcmp(netifs[i].name, name)) return true;
    }
    return false;
}

/* Usable interfaces that the filter allows, first address of each name; returns how many. */
static int collect(const struct ifaddrs *all, const char *filter_text, struct tt_netif *netifs,
                   int max)
{
    const struct name_filter filter = parse_filter(filter_text);
    int count = 0;
    for (const struct ifaddrs *entry = all; entry && count < max; entry = entry->ifa_next) {
        if (!is_usable(entry) || !filter_allows(&filter, entry->ifa_name)) continue;
        if (has_name(netifs, count, entry->ifa_name)) continue;
        fill_netif(entry, &netifs[count++]);
    }
    return count;
}

static bool same_subnet(const struct ifaddrs *entry, const union tt_addr *peer)
{
    if (!entry->ifa_netmask || entry->ifa_addr->sa_family != peer->sa.sa_family) return false;
    if (peer->sa.sa_family == AF_INET) {
        const struct sockaddr_in *own = (const void *)entry->ifa_addr;
        const struct sockaddr_in *mask = (const void *)entry->ifa_netmask;
        return ((own->sin_addr.s_addr ^ peer->v4.sin_addr.s_addr) & mask->sin_addr.s_addr) == 0;
    }
    const struct sockaddr_in6 *own = (const void *)entry->ifa_addr;
    const struct sockaddr_in6 *mask = (const void *)entry->ifa_netmask;
    for (size_t i = 0; i < sizeof(own->sin6_addr.s6_addr); i++) {
        const int differ = own->sin6_addr.s6_addr[i] ^ peer->v6.sin6_addr.s6_addr[i];
        if (differ & mask->sin6_addr.s6_addr[i]) return false;
    }
    return !IN6_IS_ADDR_LINKLOCAL(&own->sin6_addr) || !peer->v6.sin6_scope_id ||
           own->sin6_scope_id == peer->v6.sin6_scope_id;
}

static bool find_subnet(const struct ifaddrs *all, const union tt_addr *peer,
                        struct tt_netif *netif)
{
    for (const struct ifaddrs *entry = all; entry; entry = entry->ifa_next) {
        if (!is_usable(entry) || !same_subnet(entry, peer)) continue;
        fill_netif(entry, netif);
        return true;
    }
    return false;
}

/* Interfaces in NCCL's order of preference when the user asked for none. */
static int collect_automatic(const struct ifaddrs *all, struct tt_netif *netifs, int max)
{
    static const char *const steps[] = {"^docker,lo,virbr", "docker", "lo", "virbr"};
    const char *comm_id = tt_param_str("NCCL_COMM_ID");
    union tt_addr peer;
    int count = collect(all, "ib", netifs, max);
    if (!count && comm_id && !tt_addr_fault(comm_id, &peer))
        count = find_subnet(all, &peer, &netifs[0]);
    for (size_t i = 0; !count && i < TT_LEN(steps); i++) {
        count = collect(all, steps[i], netifs, max);
    }
    return count;
}

static ncclResult_t none_found(const struct ifaddrs *all, const char *filter)
{
    const union tt_addr loopback = {.v4 = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}}};
    char names[NAME_LIST_BYTES] = "";
    size_t len = 0;
    for (const struct ifaddrs *entry = all; entry; entry = entry->ifa_next) {
        if (!is_usable(entry) || strstr(names, entry->ifa_name)) continue;
        const int more = snprintf(names + len, sizeof(names) - len, " %s", entry->ifa_name);
        len = tt_min_size(len + (size_t)more, sizeof(names) - 1);
    }
    if (!filter) {
        return tt_fail(ncclSystemError, "no running network interface with an address was found%s",
                       tt_addr_is_cut(&loopback) ? "; lo is down (ip link set lo up)" : "");
    }
    return tt_fail(ncclInvalidUsage, "NCCL_SOCKET_IFNAME '%.100s' matches no interface; running:%s",
                   filter, len ? names : " none");
}

ncclResult_t tt_netif_list(struct tt_netif *netifs, int max, int *count_out)
{
    struct ifaddrs *all = NULL;
    const char *filter = tt_param_str("NCCL_SOCKET_IFNAME");
    ncclResult_t rc = ncclSuccess;
    if (max < 1) return tt_fail(ncclInvalidArgument, "interfaces: room for %d", max);
    int failed = getifaddrs(&all);
    if (failed && errno == EMFILE && tt_socket_more_descriptors()) failed = getifaddrs(&all);
    if (failed && errno == EMFILE) return tt_socket_exhausted("interfaces: getifaddrs");
    if (failed) return tt_fail(ncclSystemError, "interfaces: getifaddrs: %m");
    if (filter && !*filter) filter = NULL;
    const int count =
        filter ? collect(all, filter, netifs, max) : collect_automatic(all, netifs, max);
    if (count) {
        *count_out = count;
    } else {
        rc = none_found(all, filter);
    }
    freeifaddrs(all);
    return rc;
}
