/* The devices: what libfabric offers for reliable datagrams with tags, of one provider. Which one:
 * TUTTI_OFI_PROVIDER, or the first that reaches other hosts. libfabric names the best first. */
#include "ofi.h"

#include <limits.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_MBPS = 10000, SHM_MBPS = 100000 };

static struct fi_info *ask(const char *provider, int *rc_out)
{
    struct fi_info *found = NULL, *hints = fi_allocinfo();
    *rc_out = -FI_ENOMEM;
    if (!hints) return NULL;
    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL; /* idle costs nothing */
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->av_type = FI_AV_TABLE;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
    if (provider) hints->fabric_attr->prov_name = strdup(provider);
    *rc_out = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &found);
    fi_freeinfo(hints);
    return *rc_out ? NULL : found;
}

/* Does it reach other hosts, as a network must unless the user names it? Left out with those that
 * do not are those that are made for tests, or stand on another one that is listed, too. */
static bool is_network(const char *provider)
{
    static const char *const others[] = {"shm", "udp", "sockets", "ofi_rxd", "ofi_mrail"};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        if (!strncmp(provider, others[i], strlen(others[i]))) return false;
    }
    return !strstr(provider, "ofi_rxd");
}

/* libfabric's datagrams over TCP without its layer ofi_rxm: one line of messages for each pair of
 * processes. It is "net" in 1.17, and "tcp" has it later. */
static bool is_in_line(const char *provider)
{
    return !strcmp(provider, "net") || !strcmp(provider, "tcp");
}

static bool is_tcp(const char *provider)
{
    return !strncmp(provider, "tcp", 3) || is_in_line(provider);
}

static bool is_ip(const struct fi_info *info)
{
    const struct sockaddr *addr = info->src_addr;
    bool sockets = info->addr_format == FI_SOCKADDR || info->addr_format == FI_SOCKADDR_IN ||
                   info->addr_format == FI_SOCKADDR_IN6;
    return sockets && addr && info->src_addrlen <= sizeof(struct sockaddr_in6) &&
           (addr->sa_family == AF_INET || addr->sa_family == AF_INET6);
}

/* Where connections of the device are made. False: the device is not wanted. */
static bool control_of(const struct fi_info *info, struct ofi_address *control)
{
    const char *family = getenv("NCCL_SOCKET_FAMILY");
    if (!is_ip(info)) return ofi_interface_find(control);
    memset(control, 0, sizeof(*control));
    memcpy(&control->addr, info->src_addr, info->src_addrlen);
    control->bytes = (socklen_t)info->src_addrlen;
    bool six = control->addr.sin6_family == AF_INET6;
    if (six && IN6_IS_ADDR_LINKLOCAL(&control->addr.sin6_addr)) return false;
    return !family || strcmp(family, six ? "AF_INET" : "AF_INET6") != 0;
}

/* Lower is better, and only the best are taken; -1: not wanted. */
static int rank_of(const struct fi_info *info)
{
    const char *wanted = getenv("TUTTI_OFI_DEVICE");
    bool tcp = is_ip(info) && is_tcp(info->fabric_attr->prov_name);
    struct ofi_address control;
    if (!control_of(info, &control)) return -1;
    if (!wanted && tcp) wanted = getenv("NCCL_SOCKET_IFNAME");
    if (wanted && *wanted) return ofi_listed(wanted, info->domain_attr->name) ? 0 : -1;
    return is_ip(info) ? ofi_interface_rank(info->domain_attr->name) : 0;
}

static int speed_of(const struct fi_info *info)
{
    char path[PATH_MAX];
    int mbps = 0;
    if (info->nic && info->nic->link_attr && info->nic->link_attr->speed)
        return (int)(info->nic->link_attr->speed / 1000000);
    if (!strcmp(info->fabric_attr->prov_name, "shm")) return SHM_MBPS;
    snprintf(path, sizeof(path), "/sys/class/net/%s/speed", info->domain_attr->name);
    FILE *file = fopen(path, "re");
    char text[32] = "";
    if (file && fgets(text, sizeof(text), file)) mbps = (int)strtol(text, NULL, 10);
    if (file) fclose(file);
    return mbps > 0 ? mbps : DEFAULT_MBPS;
}

static char *pci_path_of(const struct fi_info *info)
{
    char path[PATH_MAX];
    const struct fi_bus_attr *bus = info->nic ? info->nic->bus_attr : NULL;
    snprintf(path, sizeof(path), "/sys/class/net/%s/device", info->domain_attr->name);
    if (bus && bus->bus_type == FI_BUS_PCI) {
        const struct fi_pci_attr *pci = &bus->attr.pci;
        snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.%x", pci->domain_id,
                 pci->bus_id, pci->device_id, pci->function_id);
    }
    return realpath(path, NULL);
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

static bool is_taken(const struct fi_info *info)
{
    for (int i = 0; i < ofi_process.ndevices; i++) {
        if (!strcmp(ofi_process.devices[i].name, info->domain_attr->name)) return true;
    }
    return false;
}

/* Nothing is taken when there is no memory. */
static void take(const struct fi_info *info)
{
    struct ofi_device *device = &ofi_process.devices[ofi_process.ndevices];
    char control[OFI_PEER_BYTES];
    *device = (struct ofi_device){.info = fi_dupinfo(info)};
    if (!device->info) return;
    ofi_process.ndevices++;
    device->pci_path = pci_path_of(info);
    snprintf(device->name, sizeof(device->name), "%s", info->domain_attr->name);
    snprintf(device->provider, sizeof(device->provider), "%s", info->fabric_attr->prov_name);
    device->guid = hash_of(device->pci_path ? device->pci_path : device->name);
    device->mbps = speed_of(info);
    device->in_line = is_in_line(device->provider);
    (void)control_of(info, &device->control);
    ofi_address_words(&device->control, control);
    ofi_say("device %d is %s of provider %s, %d Mb/s; connections are made at %s",
            ofi_process.ndevices - 1, device->name, device->provider, device->mbps, control);
}

/* The provider whose devices are taken, and how good the best of them are: of the first that
 * reaches other hosts, or of whichever was asked for. INT_MAX: none fits. */
static int choose(const struct fi_info *list, bool any, const char **provider)
{
    int best = INT_MAX;
    for (const struct fi_info *info = list; info; info = info->next) {
        if (!*provider && (any || is_network(info->fabric_attr->prov_name)))
            *provider = info->fabric_attr->prov_name;
        if (!*provider || strcmp(*provider, info->fabric_attr->prov_name) != 0) continue;
        int rank = rank_of(info);
        if (rank >= 0 && rank < best) best = rank;
    }
    return best;
}

/* Over TCP: that without ofi_rxm, which asks the receiver before each large message. */
static int prefer_in_line(const struct fi_info *list, int best, const char **provider)
{
    if (!*provider || !is_tcp(*provider)) return best;
    for (const struct fi_info *info = list; info; info = info->next) {
        const char *other = info->fabric_attr->prov_name;
        if (is_in_line(other) && choose(list, false, &other) == best) *provider = other;
    }
    return best;
}

ncclResult_t ofi_devices_find(void)
{
    const char *named = getenv("TUTTI_OFI_PROVIDER"), *provider = NULL;
    int rc = 0, count = 0;
    if (ofi_process.ndevices) return ncclSuccess;
    if (named && !*named) named = NULL;
    struct fi_info *list = ask(named, &rc);
    int best = choose(list, named != NULL, &provider);
    if (!named) best = prefer_in_line(list, best, &provider);
    for (const struct fi_info *info = list; info; info = info->next)
        count++;
    if (best == INT_MAX) {
        fi_freeinfo(list);
        return ofi_fail(ncclSystemError,
                        "libfabric has no device for %s that NCCL_SOCKET_IFNAME and "
                        "TUTTI_OFI_DEVICE take (%s; fi_info -l lists providers)",
                        named ? named : "reliable datagrams with tags",
                        rc ? fi_strerror(-rc) : "there are others");
    }
    free(ofi_process.devices); /* of an attempt that failed */
    ofi_process.devices = calloc((size_t)count, sizeof(*ofi_process.devices));
    for (const struct fi_info *info = list; ofi_process.devices && info; info = info->next) {
        if (!strcmp(provider, info->fabric_attr->prov_name) && rank_of(info) == best &&
            !is_taken(info)) {
            take(info);
        }
    }
    fi_freeinfo(list);
    return ofi_process.ndevices ? ncclSuccess : ofi_fail(ncclSystemError, "out of memory");
}
