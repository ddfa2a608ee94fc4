/* Finds the ports: active ones of the adapters that NCCL_IB_HCA takes, in the order of their PCI
 * places, so that hosts of one kind agree; ports of one card become one device. */
#include "net/ib/device.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Megabits per second of a lane by the bit that says its speed, of all by the width's. */
static int speed_of(const struct ibv_port_attr *attr)
{
    static const struct {
        int bit, value;
    } widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}},
      speeds[] = {{1, 2500},   {2, 5000},   {4, 10000},  {8, 10000},
                  {16, 14000}, {32, 25000}, {64, 50000}, {128, 100000}};
    int width = 1, speed = 2500;
    for (size_t i = 0; i < TT_LEN(widths); i++) {
        if (attr->active_width & widths[i].bit) width = widths[i].value;
    }
    for (size_t i = 0; i < TT_LEN(speeds); i++) {
        if (attr->active_speed & speeds[i].bit) speed = speeds[i].value;
    }
    return width * speed;
}

static bool fill_port(struct ib_port *port, struct ibv_context *context,
                      const struct ibv_device_attr *device, int number)
{
    snprintf(port->name, sizeof(port->name), "%s", tt_ib()->verbs.get_device_name(context->device));
    snprintf(port->sysfs, sizeof(port->sysfs), "%s", context->device->ibdev_path);
    port->context = context;
    port->number = (uint8_t)number;
    port->guid = device->sys_image_guid;
    port->max_qp_wr = device->max_qp_wr;
    port->max_cqe = device->max_cqe;
    port->rail = port->plane = NCCL_NET_ID_UNDEF;
    port->stop_fd = -1;
    if (!tt_ib_port_taken(tt_param_str("NCCL_IB_HCA"), port)) return false;
    if (tt_ib()->verbs.query_port(context, port->number, &port->attr)) {
        tt_info(TT_LOG_NET, "NET/IB : port %s:%d cannot be queried: %m", port->name, number);
        return false;
    }
    port->ethernet = port->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    bool known = port->ethernet || port->attr.link_layer == IBV_LINK_LAYER_INFINIBAND;
    if (port->attr.state != IBV_PORT_ACTIVE || !known) {
        tt_info(TT_LOG_NET, "NET/IB : port %s:%d is not used: it is %s", port->name, number,
                known ? "not active" : "of an unknown link layer");
        return false;
    }
    union ibv_gid gid;
    int index;
    bool reliable = context->device->transport_type == IBV_TRANSPORT_IB; /* not iWARP */
    if (!reliable || (port->ethernet && !tt_ib_gid_choose(port, &index, &gid))) {
        tt_info(TT_LOG_NET, "NET/IB : port %s:%d is not used: %s", port->name, number,
                reliable ? "it has no address (GID) as NCCL_IB_ADDR_FAMILY, "
                           "NCCL_IB_ROCE_VERSION_NUM and NCCL_IB_ADDR_RANGE ask for; "
                           "NCCL_IB_GID_INDEX names one by its number"
                         : "its transport is not InfiniBand's");
        return false;
    }
    port->speed_mbps = speed_of(&port->attr);
    char path[sizeof(port->sysfs) + 16], real[PATH_MAX];
    snprintf(path, sizeof(path), "%s/device", port->sysfs);
    if (realpath(path, real) && strlen(real) < sizeof(port->pci_path))
        memcpy(port->pci_path, real, strlen(real) + 1);
    return true;
}

static void find_ports(struct ibv_device *device)
{
    struct ibv_device_attr attr;
    struct ibv_context *context = tt_ib()->verbs.open_device(device);
    bool used = false;
    memset(&attr, 0, sizeof(attr));
    if (!context || tt_ib()->verbs.query_device(context, &attr)) {
        tt_info(TT_LOG_NET, "NET/IB : adapter %s cannot be %s: %m",
                tt_ib()->verbs.get_device_name(device), context ? "queried" : "opened");
        if (context) tt_ib()->verbs.close_device(context);
        return;
    }
    for (int number = 1; number <= attr.phys_port_cnt && tt_ib()->nports < IB_PORTS; number++) {
        struct ib_port *port = &tt_ib()->ports[tt_ib()->nports];
        memset(port, 0, sizeof(*port));
        if (!fill_port(port, context, &attr, number)) continue;
        pthread_mutex_init(&port->lock, NULL);
        tt_ib()->nports++;
        used = true;
    }
    if (!used) tt_ib()->verbs.close_device(context);
}

static int by_path(const void *a, const void *b)
{
    const struct ib_port *first = a, *second = b;
    int order = strcmp(first->pci_path, second->pci_path);
    if (!order) order = strcmp(first->name, second->name);
    return order ? order : first->number - second->number;
}

/* ---- devices ---- */

/* Functions of one card differ in what follows the last dot of the place. */
static bool same_nic(const struct ib_port *a, const struct ib_port *b)
{
    const char *dot = strrchr(a->pci_path, '.');
    size_t bytes = dot ? (size_t)(dot - a->pci_path) : strlen(a->pci_path);
    const char *other = strrchr(b->pci_path, '.');
    size_t other_bytes = other ? (size_t)(other - b->pci_path) : strlen(b->pci_path);
    if (!bytes || a->ethernet != b->ethernet) return false;
    return bytes == other_bytes && !strncmp(a->pci_path, b->pci_path, bytes);
}

static void name_device(struct ib_device *device)
{
    size_t used = 0;
    for (int i = 0; i < device->nports && used < sizeof(device->name); i++) {
        const struct ib_port *port = device->ports[i];
        used += (size_t)snprintf(device->name + used, sizeof(device->name) - used, "%s%s",
                                 i ? "+" : "", port->name);
    }
}

static void make_devices(void)
{
    const char *level = tt_param_str("NCCL_NET_MERGE_LEVEL");
    bool merge = tt_param_bool("NCCL_IB_MERGE_NICS") && (!level || strcasecmp(level, "LOC") != 0);
    for (int i = 0; i < tt_ib()->nports; i++) {
        struct ib_port *port = &tt_ib()->ports[i];
        struct ib_device *last =
            tt_ib()->ndevices ? &tt_ib()->devices[tt_ib()->ndevices - 1] : NULL;
        bool joins = merge && last && last->nports < IB_MERGED && same_nic(last->ports[0], port);
        if (!joins) last = &tt_ib()->devices[tt_ib()->ndevices++];
        last->ports[last->nports++] = port;
    }
    for (int i = 0; i < tt_ib()->ndevices; i++)
        name_device(&tt_ib()->devices[i]);
}

bool tt_ib_relaxed_ordering(void)
{
    return tt_param_int("NCCL_IB_PCI_RELAXED_ORDERING") != 0 && tt_ib()->verbs.reg_mr_iova2;
}

static void report(void)
{
    char line[1024] = "";
    size_t used = 0;
    for (int i = 0; i < tt_ib()->ndevices && used < sizeof(line); i++) {
        const struct ib_device *device = &tt_ib()->devices[i];
        used +=
            (size_t)snprintf(line + used, sizeof(line) - used, " [%d]%s:%d/%s", i, device->name,
                             device->ports[0]->number, device->ports[0]->ethernet ? "RoCE" : "IB");
    }
    if (!tt_ib()->ndevices) {
        tt_info(TT_LOG_INIT | TT_LOG_NET, "NET/IB : No device found.");
        return;
    }
    tt_info(TT_LOG_INIT | TT_LOG_NET, "NET/IB : Using%s%s", line,
            tt_ib_relaxed_ordering() ? " [RO]" : "");
}

static void find_devices(void)
{
    int count = 0;
    tt_networks()->ib = tt_calloc(1, sizeof(struct tt_ib));
    if (!tt_ib()) {
        tt_info(TT_LOG_INIT | TT_LOG_NET, "NET/IB : out of memory");
        return;
    }
    tt_ib()->pid = getpid();
    if (tt_param_bool("NCCL_IB_DISABLE") || !tt_verbs_open(&tt_ib()->verbs)) return;
    /* else memory that is written after a fork is no more what the adapter knows */
    if (tt_ib()->verbs.fork_init && tt_ib()->verbs.fork_init())
        tt_info(TT_LOG_NET, "NET/IB : ibv_fork_init: %m; a process that forks may lose data");
    struct ibv_device **list = tt_ib()->verbs.get_device_list(&count);
    for (int i = 0; list && i < count; i++)
        find_ports(list[i]);
    if (list) tt_ib()->verbs.free_device_list(list);
    if (tt_param_bool("NCCL_IB_DEVICE_PCI_ORDER"))
        qsort(tt_ib()->ports, (size_t)tt_ib()->nports, sizeof(tt_ib()->ports[0]), by_path);
    make_devices();
    report();
}

int tt_ib_devices(void)
{
    pthread_once(&tt_networks()->ib_once, find_devices);
    return tt_ib() && tt_ib()->pid == getpid() ? tt_ib()->ndevices : 0;
}

struct ib_device *tt_ib_device(int dev)
{
    return tt_ib() && dev >= 0 && dev < tt_ib()->ndevices ? &tt_ib()->devices[dev] : NULL;
}

void tt_ib_adapter_failed(const struct ibv_context *context)
{
    for (int i = 0; i < tt_ib()->nports; i++) {
        if (tt_ib()->ports[i].context == context) /* pairs with the load in tt_ib_progress() */
            atomic_fetch_add_explicit(&tt_ib()->ports[i].fatal, 1, memory_order_release);
    }
}

void tt_ib_properties(int dev, ncclNetProperties_v12_t *props)
{
    struct ib_device *device = &tt_ib()->devices[dev];
    struct ib_port *first = device->ports[0];
    *props = (ncclNetProperties_v12_t){.name = device->name,
                                       .pciPath = first->pci_path[0] ? first->pci_path : NULL,
                                       .guid = first->guid,
                                       .ptrSupport = NCCL_PTR_HOST,
                                       .regIsGlobal = 1,
                                       .port = first->number,
                                       .maxComms = 131072,
                                       .maxRecvs = 8,
                                       .netDeviceType = NCCL_NET_DEVICE_HOST,
                                       .vProps = {.ndevs = 1, .devs = {dev}},
                                       .maxP2pBytes = MAX_NET_SIZE,
                                       .maxCollBytes = MAX_NET_SIZE,
                                       .maxMultiRequestSize = 1,
                                       .railId = first->rail,
                                       .planeId = first->plane};
    for (int i = 0; i < device->nports; i++)
        props->speed += device->ports[i]->speed_mbps;
}
