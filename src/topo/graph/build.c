/* From elements to nodes: depth first in file order, a node before its children, its link to the
 * parent after them. NVLink, C2C and switch-to-switch rows follow in walks of their own, then CPUs
 * are joined, and last every node's link upwards goes to the end of its list. The order decides
 * ties everywhere later. Source: spec topology, section 2. */
#include "build.h"

#include "switches.h"

#include "base/error.h"
#include "base/mem.h"
#include "topo/file/file.h"

#include <stdlib.h>
#include <string.h>

#define SIBLING_BW 2618.0f /* GB/s between partitions of a GPU */

struct builder {
    struct tt_topo_system *system;
    int host;                 /* number of the host of the current cpu */
    struct tt_topo_node *cpu; /* the current one */
    bool full;                /* too many nodes or links, or memory short */
};

static bool is(const struct tt_xml_node *node, const char *name)
{
    return strcmp(node->name, name) == 0;
}

static bool has_child(const struct tt_xml_node *node, const char *name)
{
    for (int k = 0; k < node->nchildren; k++) {
        if (is(node->children[k], name)) return true;
    }
    return false;
}

static struct tt_topo_node *make(struct builder *builder, enum tt_topo_type type, uint64_t local)
{
    struct tt_topo_node *node =
        tt_topo_node_new(builder->system, type, tt_topo_id(builder->host, local));
    if (!node) builder->full = true;
    return node;
}

static struct tt_topo_node *find(struct builder *builder, enum tt_topo_type type, uint64_t local)
{
    return tt_topo_node_find(builder->system, type, tt_topo_id(builder->host, local));
}

static void join(struct builder *builder, struct tt_topo_node *a, struct tt_topo_node *b,
                 enum tt_path_type type, float bw)
{
    if (!tt_topo_link_both(a, b, type, bw)) builder->full = true;
}

/* ---- NICs ---- */

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 5381;
    for (; *text; text++)
        hash = hash * 33 ^ (uint64_t)(unsigned char)*text;
    return hash;
}

/* Whatever a file holds can be printed in a line. */
static char *plain_copy(const char *text)
{
    char *copy = text && *text ? strdup(text) : NULL;
    for (char *at = copy; at && *at; at++) {
        if ((unsigned char)*at < ' ' || *at == 127) *at = '?';
    }
    return copy;
}

static void fill_net(struct builder *builder, const struct tt_xml_node *row,
                     struct tt_topo_node *net)
{
    double latency = 0;
    const char *text = tt_xml_get(row, "latency");
    if (text) (void)tt_word_float(text, &latency);
    text = tt_xml_get(row, "guid");
    net->guid = tt_topo_id(builder->host, (uint64_t)net->dev_number);
    if (text) (void)tt_word_hex(text, &net->guid);
    const struct tt_xml_node *pci = tt_xml_above(row, "pci");
    net->slot = pci ? hash_text(tt_xml_get(pci, "busid")) : net->guid;
    free(net->name);
    net->name = plain_copy(tt_xml_get(row, "name"));
    net->latency = (float)latency;
    net->port = (int)tt_topo_int(row, "port", 0);
    net->gdr = (int)tt_topo_int(row, "gdr", 0);
    net->max_conn = (int)tt_topo_int(row, "maxconn", 64);
    net->coll = (int)tt_topo_int(row, "coll", 0);
    net->rail = (int)tt_topo_int(row, "rail", -1);
    net->plane = (int)tt_topo_int(row, "plane", -1);
}

static void add_net(struct builder *builder, const struct tt_xml_node *row,
                    struct tt_topo_node *nic)
{
    static const struct {
        const char *attr;
        enum tt_topo_type type;
        int64_t fallback;
    } kinds[] = {{"net", TT_NODE_NET, 1}, {"gin", TT_NODE_GIN, 0}, {"rma", TT_NODE_RMA, 0}};
    int64_t dev = tt_topo_int(row, "dev", -1);
    int64_t mbps = tt_topo_int(row, "speed", 10000);
    for (size_t k = 0; k < TT_LEN(kinds) && dev >= 0; k++) {
        if (!tt_topo_int(row, kinds[k].attr, kinds[k].fallback)) continue;
        struct tt_topo_node *net = make(builder, kinds[k].type, (uint64_t)dev);
        if (!net) return;
        net->dev_number = (int)dev;
        net->bw = (float)(mbps > 0 ? mbps : 10000) / 8000.0f;
        fill_net(builder, row, net);
        join(builder, nic, net, TT_PATH_NET, net->bw);
    }
}

static void add_nets(struct builder *builder, const struct tt_xml_node *nic_row,
                     struct tt_topo_node *nic)
{
    for (int k = 0; k < nic_row->nchildren; k++) {
        if (is(nic_row->children[k], "net")) add_net(builder, nic_row->children[k], nic);
    }
}

/* ---- GPUs ---- */

static float pci_bw(const struct tt_xml_node *pci)
{
    int64_t width = tt_topo_int(pci, "link_width", 0);
    int units = tt_word_link_units(tt_xml_get(pci, "link_speed"), NULL);
    return (float)((width ? width : 16) * units) / 80.0f;
}

static uint64_t pci_id(const struct tt_xml_node *pci)
{
    static const char *const parts[] = {"vendor", "device", "subsystem_vendor", "subsystem_device"};
    uint64_t id = 0;
    for (size_t k = 0; k < TT_LEN(parts); k++) {
        const char *text = tt_xml_get(pci, parts[k]);
        uint64_t part = 0;
        if (text) (void)tt_word_hex(text, &part);
        id = id << 16 | (part & 0xffff);
    }
    return id;
}

/* Partitions of a GPU are devices of their own, with numbers beside its bus id. */
static int part_of(const struct builder *builder, const struct tt_xml_node *row)
{
    return builder->system->env.split_parts ? (int)tt_topo_int(row, "mlopart", -1) : -1;
}

static uint64_t dev_number(uint64_t busid, int part)
{
    return part < 0 ? busid : (busid & ~0xfull) + 2 * (uint64_t)part + 1;
}

/* The device after `after` (NULL: the first) with a bus id, partitions one by one; NULL: none. */
static struct tt_topo_node *next_dev(const struct builder *builder, uint64_t busid,
                                     const struct tt_topo_node *after)
{
    const struct tt_topo_list *devs = &builder->system->list[TT_NODE_DEV];
    for (int k = after ? after->index + 1 : 0; k < devs->count; k++) {
        bool here = tt_topo_host(devs->node[k]) == builder->host;
        if (here && devs->node[k]->busid == busid) return devs->node[k];
    }
    return NULL;
}

static int count_devs(const struct builder *builder, uint64_t busid)
{
    int count = 0;
    const struct tt_topo_node *dev = NULL;
    while ((dev = next_dev(builder, busid, dev)) != NULL) {
        count++;
    }
    return count;
}

static struct tt_topo_node *add_dev(struct builder *builder, uint64_t busid, int part)
{
    struct tt_topo_node *dev = find(builder, TT_NODE_DEV, dev_number(busid, part));
    if (dev) return dev;
    dev = make(builder, TT_NODE_DEV, dev_number(busid, part));
    if (!dev) return NULL;
    dev->busid = busid;
    for (struct tt_topo_node *other = next_dev(builder, busid, NULL); other && other != dev;
         other = next_dev(builder, busid, other))
        join(builder, other, dev, TT_PATH_LOC, SIBLING_BW);
    return dev;
}

static void add_gpu(struct builder *builder, const struct tt_xml_node *row, uint64_t busid)
{
    struct tt_topo_node *dev = add_dev(builder, busid, part_of(builder, row));
    if (!dev) return;
    uint64_t local = dev->id & 0xffffffffffffffull;
    struct tt_topo_node *gpu = make(builder, TT_NODE_GPU, (uint64_t)dev->ngpus << 40 | local);
    if (!gpu) return;
    dev->ngpus++;
    dev->pci_id = pci_id(row->parent);
    dev->cc = (int)tt_topo_int(row, "sm", 0);
    gpu->dev = dev;
    gpu->rank = (int)tt_topo_int(row, "rank", -1);
    gpu->dev_number = (int)tt_topo_int(row, "dev", 0);
    gpu->cc = dev->cc;
    gpu->gdr = (int)tt_topo_int(row, "gdr", 0);
    gpu->is_part = tt_topo_int(row, "mlopart", -1) >= 0;
    join(builder, gpu, dev, TT_PATH_LOC, TT_TOPO_LOC_BW);
}

/* The gpu rows of one pci element: ranks on one device, or on its partitions. */
static void add_gpus(struct builder *builder, const struct tt_xml_node *pci,
                     struct tt_topo_node *parent)
{
    uint64_t busid = tt_topo_busid(pci, "busid");
    for (int k = 0; k < pci->nchildren && !builder->full; k++) {
        const struct tt_xml_node *row = pci->children[k];
        if (!is(row, "gpu")) continue;
        if (!tt_xml_get(row, "rank")) break; /* this one and the rest belong to no rank */
        add_gpu(builder, row, busid);
    }
    struct tt_topo_node *dev = NULL;
    while ((dev = next_dev(builder, busid, dev)) != NULL && !builder->full) {
        join(builder, dev, parent, TT_PATH_PIX, pci_bw(pci));
    }
}

/* ---- the PCI tree ---- */

static void add_pci(struct builder *builder, const struct tt_xml_node *pci,
                    struct tt_topo_node *parent);

static struct tt_topo_node *add_switch(struct builder *builder, const struct tt_xml_node *pci)
{
    struct tt_topo_node *node = make(builder, TT_NODE_PCI, tt_topo_busid(pci, "busid"));
    if (!node) return NULL;
    node->pci_id = pci_id(pci);
    for (int k = 0; k < pci->nchildren && !builder->full; k++) {
        if (is(pci->children[k], "pci")) add_pci(builder, pci->children[k], node);
    }
    return node;
}

static struct tt_topo_node *add_pci_nic(struct builder *builder, const struct tt_xml_node *pci)
{
    uint64_t busid = tt_topo_busid(pci, "busid");
    struct tt_topo_node *nic = find(builder, TT_NODE_NIC, busid);
    if (!nic) nic = make(builder, TT_NODE_NIC, busid);
    for (int k = 0; k < pci->nchildren && nic; k++) {
        if (is(pci->children[k], "nic")) add_nets(builder, pci->children[k], nic);
    }
    return nic;
}

static void add_pci(struct builder *builder, const struct tt_xml_node *pci,
                    struct tt_topo_node *parent)
{
    struct tt_topo_node *node = NULL;
    if (has_child(pci, "gpu")) {
        add_gpus(builder, pci, parent);
    } else if (has_child(pci, "nic")) {
        node = add_pci_nic(builder, pci);
    } else if (tt_word_role(tt_xml_get(pci, "class"), NULL) == TT_ROLE_BRIDGE) {
        node = add_switch(builder, pci);
    }
    if (node) join(builder, node, parent, TT_PATH_PIX, pci_bw(pci));
}

/* ---- CPUs ---- */

static int host_number(struct tt_topo_system *system, const struct tt_xml_node *cpu)
{
    const char *text = tt_xml_get(cpu, "host_hash");
    uint64_t hash = 0;
    if (text) (void)tt_word_hex(text, &hash);
    for (int k = 0; k < system->nhosts; k++) {
        if (system->hosts[k] == hash) return k;
    }
    if (system->nhosts == (int)TT_LEN(system->hosts)) return -1;
    system->hosts[system->nhosts] = hash;
    return system->nhosts++;
}

/* A NIC that is no PCI device hangs on the CPU itself. */
static void add_cpu_nic(struct builder *builder, const struct tt_xml_node *row,
                        struct tt_topo_node *cpu)
{
    uint64_t local = (cpu->id & 0xffffffffffffffull) ^ 1ull
                                                           << 55; /* not a bus id, which may be 0 */
    struct tt_topo_node *nic = find(builder, TT_NODE_NIC, local);
    if (!nic) {
        nic = make(builder, TT_NODE_NIC, local);
        if (!nic) return;
        join(builder, cpu, nic, TT_PATH_PIX, TT_TOPO_LOC_BW);
    }
    add_nets(builder, row, nic);
}

static void add_cpu(struct builder *builder, const struct tt_xml_node *row)
{
    builder->host = host_number(builder->system, row);
    struct tt_topo_node *cpu =
        builder->host < 0 ? NULL
                          : make(builder, TT_NODE_CPU, (uint64_t)tt_topo_int(row, "numaid", 0));
    if (!cpu) {
        builder->full = true;
        return;
    }
    const char *vendor = tt_xml_get(row, "vendor");
    cpu->arch = tt_word_arch(tt_xml_get(row, "arch"));
    if (cpu->arch == TT_ARCH_X86 && vendor) cpu->vendor = tt_word_vendor(vendor);
    cpu->model =
        tt_word_model(cpu->vendor, tt_topo_int(row, "familyid", 0), tt_topo_int(row, "modelid", 0));
    for (int k = 0; k < row->nchildren && !builder->full; k++) {
        if (is(row->children[k], "pci")) add_pci(builder, row->children[k], cpu);
        if (is(row->children[k], "nic")) add_cpu_nic(builder, row->children[k], cpu);
    }
}

/* Between the CPUs of a host, by the CPU where the link begins. */
static float cpu_bw(const struct tt_topo_node *cpu)
{
    static const float by_model[] = {
        [TT_MODEL_NONE] = 6,       [TT_MODEL_INTEL_BDW] = 6,  [TT_MODEL_INTEL_SKL] = 10,
        [TT_MODEL_INTEL_SRP] = 22, [TT_MODEL_INTEL_ERP] = 40, [TT_MODEL_YONGFENG] = 9};
    if (cpu->arch == TT_ARCH_POWER) return 32;
    if (cpu->arch == TT_ARCH_ARM) return 6;
    if (cpu->arch != TT_ARCH_X86 || cpu->vendor == TT_VENDOR_NONE) return TT_TOPO_LOC_BW;
    if (cpu->vendor == TT_VENDOR_AMD) return 16;
    return by_model[cpu->model];
}

static void join_cpus(struct builder *builder)
{
    const struct tt_topo_list *cpus = &builder->system->list[TT_NODE_CPU];
    for (int a = 0; a < cpus->count; a++) {
        for (int b = 0; b < cpus->count; b++) {
            struct tt_topo_node *from = cpus->node[a];
            struct tt_topo_node *to = cpus->node[b];
            if (a == b || tt_topo_host(from) != tt_topo_host(to)) continue;
            if (!tt_topo_link_add(from, to, TT_PATH_SYS, cpu_bw(from))) builder->full = true;
        }
    }
}

/* ---- rows that join what the tree does not ---- */

float tt_topo_nvlink_bw(int cc)
{
    if (cc >= 100) return 40.1f;
    if (cc >= 90) return 20.6f;
    if (cc == 86) return 12.0f;
    if (cc >= 80) return 20.0f;
    if (cc >= 70) return 20.0f;
    return cc >= 60 ? 18.0f : 20.0f;
}

static void add_nvlink(struct builder *builder, const struct tt_xml_node *row,
                       struct tt_topo_node *dev)
{
    float bw = (float)tt_topo_int(row, "count", 0) * tt_topo_nvlink_bw(dev->cc) /
               (float)count_devs(builder, dev->busid);
    enum tt_topo_role role = tt_word_role(tt_xml_get(row, "tclass"), NULL);
    if (role == TT_ROLE_GPU) {
        uint64_t target = tt_topo_busid(row, "target");
        int parts = count_devs(builder, target);
        struct tt_topo_node *to = NULL;
        while ((to = next_dev(builder, target, to)) != NULL) {
            bool added = tt_topo_link_add(dev, to, TT_PATH_NVL, bw / (float)parts);
            if (!added) builder->full = true;
        }
        return;
    }
    if (role == TT_ROLE_CPU) {
        join(builder, dev, builder->cpu, TT_PATH_NVL, bw);
        return;
    }
    /* One switch stands for all, also of several hosts: that is how NVLink spans them. */
    struct tt_topo_node *nvs = tt_topo_node_find(builder->system, TT_NODE_NVS, 0);
    if (!nvs) nvs = tt_topo_node_new(builder->system, TT_NODE_NVS, 0);
    if (nvs) {
        join(builder, dev, nvs, TT_PATH_NVL, bw);
    } else {
        builder->full = true;
    }
}

/* Partitions share what their GPU has: each may use all of it, a node in between carries it. */
static void add_c2c(struct builder *builder, const struct tt_xml_node *row,
                    struct tt_topo_node *dev)
{
    float bw = (float)(tt_topo_int(row, "count", 0) * tt_topo_int(row, "bw", 0)) / 1000.0f;
    if (count_devs(builder, dev->busid) < 2) {
        join(builder, dev, builder->cpu, TT_PATH_C2C, bw);
        return;
    }
    struct tt_topo_node *shared = find(builder, TT_NODE_CXB, dev->busid);
    if (!shared) {
        shared = make(builder, TT_NODE_CXB, dev->busid);
        if (!shared) return;
        join(builder, shared, builder->cpu, TT_PATH_C2C, bw);
    }
    join(builder, dev, shared, TT_PATH_C2C, bw);
}

/* Only the first gpu row of a device has its links. */
static void walk_gpu(struct builder *builder, const struct tt_xml_node *pci, const char *name)
{
    uint64_t busid = tt_topo_busid(pci, "busid");
    struct tt_topo_node *last = NULL;
    for (int g = 0; g < pci->nchildren; g++) {
        const struct tt_xml_node *gpu = pci->children[g];
        if (!is(gpu, "gpu") || !tt_xml_get(gpu, "rank")) continue;
        struct tt_topo_node *dev =
            find(builder, TT_NODE_DEV, dev_number(busid, part_of(builder, gpu)));
        if (!dev || (last && dev->index <= last->index)) continue;
        last = dev;
        for (int k = 0; k < gpu->nchildren; k++) {
            const struct tt_xml_node *row = gpu->children[k];
            if (is(row, name) && is(row, "nvlink")) add_nvlink(builder, row, dev);
            if (is(row, name) && is(row, "c2c")) add_c2c(builder, row, dev);
        }
    }
}

static void walk_switch(struct builder *builder, const struct tt_xml_node *pci)
{
    struct tt_topo_node *from = find(builder, TT_NODE_PCI, tt_topo_busid(pci, "busid"));
    for (int k = 0; k < pci->nchildren && from; k++) {
        if (!is(pci->children[k], "pcilink")) continue;
        struct tt_topo_node *to =
            find(builder, TT_NODE_PCI, tt_topo_busid(pci->children[k], "target"));
        if (!to || to == from) continue;
        if (!tt_topo_link_add(from, to, TT_PATH_LOC, TT_TOPO_LOC_BW)) builder->full = true;
    }
}

static void walk_rows(struct builder *builder, const struct tt_xml_node *node, const char *name)
{
    for (int k = 0; k < node->nchildren && !builder->full; k++) {
        const struct tt_xml_node *child = node->children[k];
        if (!is(child, "pci")) continue;
        if (is(child, "pci") && strcmp(name, "pcilink") == 0) {
            walk_switch(builder, child);
        } else {
            walk_gpu(builder, child, name);
        }
        walk_rows(builder, child, name);
    }
}

static void add_rows(struct builder *builder, const struct tt_xml_node *root, const char *name)
{
    for (int k = 0; k < root->nchildren && !builder->full; k++) {
        const struct tt_xml_node *row = root->children[k];
        if (!is(row, "cpu")) continue;
        builder->host = host_number(builder->system, row);
        builder->cpu = find(builder, TT_NODE_CPU, (uint64_t)tt_topo_int(row, "numaid", 0));
        if (builder->cpu) walk_rows(builder, row, name);
    }
}

/* ---- final order ---- */

static void order_links(struct tt_topo_node *node, const struct tt_topo_node *up)
{
    for (int k = 0; k < node->nlinks && up; k++) {
        struct tt_topo_link link = node->links[k];
        if (link.peer != up || link.type != TT_PATH_PIX) continue;
        memmove(&node->links[k], &node->links[k + 1],
                (size_t)(node->nlinks - k - 1) * sizeof(link));
        node->links[node->nlinks - 1] = link;
        break;
    }
    for (int k = 0; k < node->nlinks; k++) {
        const struct tt_topo_link *link = &node->links[k];
        if (link->type == TT_PATH_PIX && link->peer != up) order_links(link->peer, node);
    }
}

ncclResult_t tt_topo_build(struct tt_topo_system *system, const struct tt_xml_node *root)
{
    struct builder builder = {.system = system};
    for (int k = 0; k < root->nchildren && !builder.full; k++) {
        if (is(root->children[k], "cpu")) add_cpu(&builder, root->children[k]);
    }
    add_rows(&builder, root, "nvlink");
    add_rows(&builder, root, "c2c");
    add_rows(&builder, root, "pcilink");
    if (!builder.full && !tt_topo_flatten(system)) builder.full = true;
    if (!builder.full) join_cpus(&builder);
    if (builder.full) return tt_topo_too_large(system);
    for (int k = 0; k < system->list[TT_NODE_CPU].count; k++) {
        order_links(system->list[TT_NODE_CPU].node[k], NULL);
    }
    return ncclSuccess;
}
