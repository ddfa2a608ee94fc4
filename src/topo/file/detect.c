/* This machine as a machine file: NUMA domains by hwloc, GPUs by NVML, networks and the PCI
 * elements above both from /sys. PCI is read from /sys directly, not from hwloc: which levels count
 * is defined by the kernel's paths, and hwloc with I/O objects takes ten times as long.
 * What cannot be seen is left out; nothing of it is an error. */
#include "detect_nvml.h"
#include "detect_sysfs.h"
#include "file.h"
#include "words.h"

#include "base/error.h"
#include "base/text/number.h"

#include <hwloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORTS = 64, IB_MAX_CONNECTIONS = 131072, SOCKET_MAX_CONNECTIONS = 65536 };

struct detection {
    struct tt_xml_node *root;
    hwloc_topology_t topology;
    struct tt_sysfs_chain chain; /* of the device in work */
    bool peer_memory;            /* a module that lets NICs reach GPU memory is loaded */
    bool full;                   /* out of memory */
    int nnets, nnumas;
};

/* ---- elements ---- */

static struct tt_xml_node *add(struct detection *d, struct tt_xml_node *parent, const char *name)
{
    struct tt_xml_node *node = parent ? tt_xml_add(parent, name) : NULL;
    if (!node) d->full = true;
    return node;
}

static void __attribute__((format(printf, 4, 5)))
set(struct detection *d, struct tt_xml_node *node, const char *key, const char *fmt, ...)
{
    char value[TT_XML_VALUE_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(value, sizeof(value), fmt, args);
    va_end(args);
    if (!node || !tt_xml_set(node, key, value)) d->full = true;
}

static struct tt_xml_node *find(struct tt_xml_node *parent, const char *name, const char *key,
                                const char *value)
{
    for (int k = 0; parent && k < parent->nchildren; k++) {
        struct tt_xml_node *child = parent->children[k];
        const char *has = tt_xml_get(child, key);
        if (strcmp(child->name, name) == 0 && has && strcmp(has, value) == 0) return child;
    }
    return NULL;
}

/* ---- CPUs ---- */

/* Words of 32 bits, the highest first. At most what an attribute holds: 28 words, 896 CPUs. */
static void mask_text(hwloc_const_bitmap_t set, char text[TT_XML_VALUE_BYTES])
{
    int last = hwloc_bitmap_last(set);
    int words = last < 0 ? 1 : last / 32 + 1;
    size_t used = 0;
    if (words > 28) words = 28;
    for (int word = words - 1; word >= 0; word--) {
        unsigned int bits = 0;
        for (unsigned int bit = 0; bit < 32; bit++)
            bits |= (unsigned int)hwloc_bitmap_isset(set, (unsigned int)word * 32 + bit) << bit;
        used += (size_t)snprintf(text + used, TT_XML_VALUE_BYTES - used, "%08x%s", bits,
                                 word ? "," : "");
    }
}

static void describe_cpu(struct detection *d, struct tt_xml_node *cpu)
{
    struct tt_sysfs_cpu here;
    tt_sysfs_cpu(&here);
    set(d, cpu, "arch", "%s", here.arch);
    if (strcmp(here.arch, "ppc64") == 0 || strcmp(here.arch, "arm64") == 0) return;
    set(d, cpu, "vendor", "%s", here.vendor);
    set(d, cpu, "familyid", "%s", here.family);
    set(d, cpu, "modelid", "%s", here.model);
}

static struct tt_xml_node *add_cpu(struct detection *d, int numa, hwloc_const_bitmap_t cpus)
{
    char mask[TT_XML_VALUE_BYTES];
    struct tt_xml_node *cpu = add(d, d->root, "cpu");
    mask_text(cpus, mask);
    set(d, cpu, "numaid", "%d", numa);
    set(d, cpu, "affinity", "%s", mask);
    if (cpu) describe_cpu(d, cpu);
    return cpu;
}

/* NUMA domains with CPUs; memory alone (of a GPU, say) is none. */
static void add_cpus(struct detection *d)
{
    hwloc_obj_t numa = NULL;
    while ((numa = hwloc_get_next_obj_by_type(d->topology, HWLOC_OBJ_NUMANODE, numa)) != NULL) {
        if (hwloc_bitmap_iszero(numa->cpuset)) continue;
        (void)add_cpu(d, (int)numa->os_index, numa->cpuset);
        d->nnumas++;
    }
}

/* Element of a domain. Unknown (virtual machines say so) is the only one where there is one. */
static struct tt_xml_node *cpu_of(struct detection *d, int numa)
{
    char number[16];
    if (numa < 0 && d->nnumas == 1) return d->root->children[0];
    (void)snprintf(number, sizeof(number), "%d", numa);
    struct tt_xml_node *cpu = find(d->root, "cpu", "numaid", number);
    return cpu ? cpu : add_cpu(d, numa, hwloc_topology_get_complete_cpuset(d->topology));
}

/* ---- PCI elements ---- */

static void describe_pci(struct detection *d, struct tt_xml_node *pci, const char *path)
{
    static const char *const ids[] = {"vendor", "device", "subsystem_vendor", "subsystem_device"};
    char text[TT_SYSFS_TEXT];
    tt_sysfs_text(path, "class", text);
    set(d, pci, "class", "%s", text[0] ? text : "0x060400");
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        tt_sysfs_text(path, ids[i], text);
        set(d, pci, ids[i], "%s", text[0] ? text : "0x0000");
    }
    struct tt_sysfs_link link;
    tt_sysfs_link(path, &link);
    set(d, pci, "link_speed", "%s", link.speed);
    set(d, pci, "link_width", "%ld", link.width);
}

/* Element of a device with all above it; NULL when /sys does not know it. */
static struct tt_xml_node *pci_of(struct detection *d, const char *path)
{
    if (!tt_sysfs_chain(path, &d->chain)) return NULL;
    struct tt_xml_node *at = cpu_of(d, d->chain.numa);
    for (int level = d->chain.count - 1; level >= 0 && at; level--) {
        const char *step = d->chain.path[level];
        const char *busid = strrchr(step, '/') + 1;
        struct tt_xml_node *pci = find(at, "pci", "busid", busid);
        if (!pci) {
            pci = add(d, at, "pci");
            set(d, pci, "busid", "%s", busid);
            if (pci) describe_pci(d, pci, step);
        }
        at = pci;
    }
    return at;
}

static int by_busid(const void *a, const void *b)
{
    const char *first = tt_xml_get(*(struct tt_xml_node *const *)a, "busid");
    const char *second = tt_xml_get(*(struct tt_xml_node *const *)b, "busid");
    return strcmp(first ? first : "", second ? second : "");
}

static void sort_pci(struct tt_xml_node *node)
{
    bool all = node->nchildren > 1;
    for (int k = 0; k < node->nchildren; k++) {
        sort_pci(node->children[k]);
        all = all && strcmp(node->children[k]->name, "pci") == 0;
    }
    if (all) qsort(node->children, (size_t)node->nchildren, sizeof(node->children[0]), by_busid);
}

/* ---- GPUs ---- */

static const char *const generations[] = {"",
                                          "2.5 GT/s PCIe",
                                          "5.0 GT/s PCIe",
                                          "8.0 GT/s PCIe",
                                          "16.0 GT/s PCIe",
                                          "32.0 GT/s PCIe",
                                          "64.0 GT/s PCIe"};

static void device_path(const char *busid, char path[PATH_MAX])
{
    char relative[PATH_MAX];
    (void)snprintf(relative, sizeof(relative), "/sys/bus/pci/devices/%s", busid);
    if (!tt_sysfs_real(relative, path)) path[0] = 0;
}

/* Far ends that /sys does not know are NVSwitches. */
static void add_nvlink(struct detection *d, struct tt_xml_node *gpu, const char *target)
{
    char path[PATH_MAX], class[TT_SYSFS_TEXT];
    struct tt_xml_node *row = find(gpu, "nvlink", "target", target);
    if (row) {
        set(d, row, "count", "%d", (int)tt_topo_int(row, "count", 0) + 1);
        return;
    }
    device_path(target, path);
    tt_sysfs_text(path, "class", class);
    row = add(d, gpu, "nvlink");
    set(d, row, "target", "%s", target);
    set(d, row, "count", "1");
    set(d, row, "tclass", "%s", path[0] && class[0] ? class : "0x068000");
}

static void add_gpu(void *context, int index, const struct tt_nvml_gpu *gpu)
{
    struct detection *d = context;
    char path[PATH_MAX];
    int known = (int)(sizeof(generations) / sizeof(generations[0]));
    device_path(gpu->busid, path);
    struct tt_xml_node *pci = path[0] ? pci_of(d, path) : NULL;
    if (!pci) { /* no rights to see it: under an unknown domain */
        pci = add(d, cpu_of(d, -1), "pci");
        set(d, pci, "busid", "%s", gpu->busid);
        set(d, pci, "class", "0x030200");
        set(d, pci, "link_speed", "%s", "");
        set(d, pci, "link_width", "0");
    }
    if (gpu->link_generation > 0 && gpu->link_generation < known)
        set(d, pci, "link_speed", "%s", generations[gpu->link_generation]);
    if (gpu->link_width > 0) set(d, pci, "link_width", "%d", gpu->link_width);
    struct tt_xml_node *row = add(d, pci, "gpu");
    set(d, row, "dev", "%d", index);
    set(d, row, "sm", "%d", gpu->sm);
    set(d, row, "rank", "%d", index);
    set(d, row, "gdr", "%d", d->peer_memory);
    for (int link = 0; link < gpu->nnvlinks && row; link++)
        add_nvlink(d, row, gpu->nvlink[link]);
    if (gpu->c2c_count == 0) return;
    struct tt_xml_node *c2c = add(d, row, "c2c");
    set(d, c2c, "bw", "%d", gpu->c2c_mbps);
    set(d, c2c, "count", "%d", gpu->c2c_count);
}

/* ---- networks ---- */

struct net { /* what a network says of one port */
    const char *name;
    long mbps;
    int port;
    unsigned long long guid;
    int max_connections;
    bool gdr;
};

static void add_net(struct detection *d, const char *device, const struct net *net)
{
    char path[PATH_MAX];
    struct tt_xml_node *parent = NULL;
    if (tt_sysfs_real(device, path) && tt_sysfs_is_pci(path)) {
        path[strlen(path) - 1] = '0'; /* ports of one NIC are its functions */
        parent = pci_of(d, path);
    }
    if (!parent) parent = d->nnumas ? d->root->children[0] : cpu_of(d, -1);
    struct tt_xml_node *nic = NULL;
    for (int k = 0; parent && k < parent->nchildren && !nic; k++)
        if (strcmp(parent->children[k]->name, "nic") == 0) nic = parent->children[k];
    if (!nic) nic = add(d, parent, "nic");
    struct tt_xml_node *row = add(d, nic, "net");
    set(d, row, "name", "%s", net->name);
    set(d, row, "dev", "%d", d->nnets++);
    set(d, row, "speed", "%ld", net->mbps);
    set(d, row, "port", "%d", net->port);
    set(d, row, "latency", "0.000000");
    set(d, row, "guid", "0x%llx", net->guid);
    set(d, row, "maxconn", "%d", net->max_connections);
    set(d, row, "gdr", "%d", net->gdr);
}

/* "1070:fd03:0000:1000" is what the adapter calls 0x0010000003fd7010: its bytes, lowest first. */
static unsigned long long guid_number(const char *text)
{
    unsigned int part[4] = {0};
    unsigned long long guid = 0;
    /* NOLINTNEXTLINE(cert-err34-c): four digits cannot be too many */
    if (sscanf(text, "%4x:%4x:%4x:%4x", &part[0], &part[1], &part[2], &part[3]) != 4) return 0;
    for (int i = 3; i >= 0; i--)
        guid = guid << 16 | (part[i] & 0xff) << 8 | part[i] >> 8;
    return guid;
}

/* Ports of InfiniBand and RoCE adapters that are up. */
static void add_adapter(void *context, const char *name)
{
    struct detection *d = context;
    char device[PATH_MAX], base[PATH_MAX], port[PATH_MAX], text[TT_SYSFS_TEXT], real[PATH_MAX];
    (void)snprintf(base, sizeof(base), "%s/sys/class/infiniband/%s", tt_sysfs_root(), name);
    (void)snprintf(device, sizeof(device), "/sys/class/infiniband/%s/device", name);
    tt_sysfs_text(base, "sys_image_guid", text);
    unsigned long long guid = guid_number(text);
    int function = tt_sysfs_real(device, real) ? real[strlen(real) - 1] - '0' : 0;
    for (int number = 1; number <= PORTS; number++) {
        int length = snprintf(port, sizeof(port), "%s/ports/%d", base, number);
        if (length >= (int)sizeof(port)) return;
        tt_sysfs_text(port, "state", text);
        if (!text[0]) return; /* no such port */
        if (!strstr(text, "ACTIVE")) continue;
        tt_sysfs_text(port, "rate", text);
        struct net net = {name,
                          (long)(tt_number_read(text, NULL) * 1000),
                          number + function,
                          guid,
                          IB_MAX_CONNECTIONS,
                          d->peer_memory};
        add_net(d, device, &net);
    }
}

static void add_interface(void *context, const char *name)
{
    struct detection *d = context;
    char base[PATH_MAX], device[PATH_MAX], text[TT_SYSFS_TEXT], real[PATH_MAX];
    (void)snprintf(base, sizeof(base), "%s/sys/class/net/%s", tt_sysfs_root(), name);
    (void)snprintf(device, sizeof(device), "/sys/class/net/%s/device", name);
    tt_sysfs_text(base, "operstate", text);
    if (strcmp(text, "up") != 0 || !tt_sysfs_real(device, real)) return; /* down, or software */
    long mbps = tt_sysfs_number(base, "speed", 0);
    struct net net = {name, mbps > 0 ? mbps : 10000, 0, 0, SOCKET_MAX_CONNECTIONS, false};
    net.guid = (unsigned long long)d->nnets;
    add_net(d, device, &net);
}

/* ---- all together ---- */

static bool load_topology(struct detection *d)
{
    if (hwloc_topology_init(&d->topology)) return false;
    (void)hwloc_topology_set_all_types_filter(d->topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    (void)hwloc_topology_set_type_filter(d->topology, HWLOC_OBJ_PACKAGE,
                                         HWLOC_TYPE_FILTER_KEEP_ALL);
    (void)hwloc_topology_set_type_filter(d->topology, HWLOC_OBJ_GROUP,
                                         HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    (void)hwloc_topology_set_flags(d->topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    /* what the kernel says will do; asking every core by cpuid takes longer */
    (void)hwloc_topology_set_components(d->topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                        "x86");
    return hwloc_topology_load(d->topology) == 0;
}

static struct tt_xml_node *new_root(struct detection *d)
{
    struct tt_topo_notes notes = {0};
    static const char empty[] = "<system version=\"1\"></system>";
    ncclResult_t rc = tt_xml_parse("this machine", empty, sizeof(empty) - 1, &notes, &d->root);
    tt_topo_notes_fini(&notes);
    return rc ? NULL : d->root;
}

ncclResult_t tt_topo_detect(struct tt_topo_file **file_out)
{
    struct detection *d = calloc(1, sizeof(*d));
    char path[PATH_MAX], *text = NULL;
    int silent = 0;
    ncclResult_t rc = ncclSuccess;
    if (!d || !load_topology(d) || !new_root(d)) {
        rc = tt_fail(ncclSystemError, "this machine: hwloc cannot read its CPUs: %m");
        goto out;
    }
    d->peer_memory = tt_sysfs_real("/sys/module/nvidia_peermem", path) ||
                     tt_sysfs_real("/sys/module/nv_peer_mem", path);
    add_cpus(d);
    (void)tt_nvml_each(add_gpu, d, &silent);
    tt_sysfs_each("/sys/class/infiniband", add_adapter, d);
    if (d->nnets == 0) tt_sysfs_each("/sys/class/net", add_interface, d);
    sort_pci(d->root);
    text = d->full ? NULL : tt_xml_print(d->root);
    rc = text ? tt_topo_file_parse("this machine", text, strlen(text), file_out)
              : tt_fail(ncclSystemError, "this machine: out of memory");
    if (!rc && silent) {
        tt_topo_note(&(*file_out)->notes, "this machine", 0,
                     "%d GPUs do not answer NVML and are left out", silent);
    }
out:
    free(text);
    if (d && d->topology) hwloc_topology_destroy(d->topology);
    if (d) tt_xml_free(d->root);
    free(d);
    return rc;
}
