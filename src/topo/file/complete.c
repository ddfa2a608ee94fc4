/* A partial file made whole. What the file says stays; what it leaves open comes from /sys and
 * /proc, and what is not known reads as NCCL reads it (a link of Gen3 x16). The file may describe a
 * machine that is not here: /sys is believed for an element only when it has a device of that kind
 * there. */
#include "complete.h"

#include "check.h"
#include "detect_sysfs.h"
#include "file.h"
#include "nic.h"
#include "words.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct partial {
    struct tt_topo_file *file;
    const struct tt_topo_local *local;
    struct tt_sysfs_chain chain; /* of the device in work */
    bool recorded;               /* /sys is a recorded tree: of this very machine */
    bool full;                   /* out of memory */
    int spare;                   /* number for the next GPU that no rank uses */
};

static bool is(const struct tt_xml_node *node, const char *name)
{
    return strcmp(node->name, name) == 0;
}

static void __attribute__((format(printf, 4, 5)))
put(struct partial *partial, struct tt_xml_node *node, const char *key, const char *fmt, ...)
{
    char value[TT_XML_VALUE_BYTES];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(value, sizeof(value), fmt, args);
    va_end(args);
    if (!tt_xml_set(node, key, value)) partial->full = true;
}

/* Only what the file leaves open. */
static void __attribute__((format(printf, 4, 5)))
fill(struct partial *partial, struct tt_xml_node *node, const char *key, const char *fmt, ...)
{
    char value[TT_XML_VALUE_BYTES];
    va_list args;
    if (tt_xml_get(node, key)) return;
    va_start(args, fmt);
    (void)vsnprintf(value, sizeof(value), fmt, args);
    va_end(args);
    put(partial, node, key, "%s", value);
}

static struct tt_xml_node *child_of(const struct tt_xml_node *node, const char *name)
{
    for (int k = 0; k < node->nchildren; k++)
        if (is(node->children[k], name)) return node->children[k];
    return NULL;
}

static struct tt_xml_node *find_pci(struct tt_xml_node *node, uint64_t busid)
{
    bool here =
        is(node, "pci") && tt_xml_get(node, "busid") && tt_topo_busid(node, "busid") == busid;
    struct tt_xml_node *found = here ? node : NULL;
    for (int k = 0; k < node->nchildren && !found; k++)
        found = find_pci(node->children[k], busid);
    return found;
}

static struct tt_xml_node *find_net(struct tt_xml_node *node, const char *name)
{
    const char *own = is(node, "net") ? tt_xml_get(node, "name") : NULL;
    struct tt_xml_node *found = own && strcmp(own, name) == 0 ? node : NULL;
    for (int k = 0; k < node->nchildren && !found; k++)
        found = find_net(node->children[k], name);
    return found;
}

/* ---- what the kernel knows ---- */

/* What an element is for; a class that is not there yet follows from what hangs below. */
static enum tt_topo_role role_of(const struct tt_xml_node *pci)
{
    const char *class = tt_xml_get(pci, "class");
    if (class) return tt_word_role(class, NULL);
    if (child_of(pci, "gpu")) return TT_ROLE_GPU;
    return child_of(pci, "nic") ? TT_ROLE_NIC : TT_ROLE_BRIDGE;
}

/* Directory of an element; false when /sys does not have it, or another device in its place. */
static bool known_path(const struct partial *partial, uint64_t busid, enum tt_topo_role role,
                       char path[PATH_MAX])
{
    char name[24], relative[PATH_MAX], class[TT_SYSFS_TEXT];
    tt_word_busid_text(busid, name);
    (void)snprintf(relative, sizeof(relative), "/sys/bus/pci/devices/%s", name);
    if (!tt_sysfs_real(relative, path)) return false;
    tt_sysfs_text(path, "class", class);
    return partial->recorded || (class[0] && tt_word_role(class, NULL) == role);
}

/* The smaller of what the device and the port above it can do; empty: unknown. */
static void fill_link(struct partial *partial, struct tt_xml_node *pci, const char *path)
{
    struct tt_sysfs_link link = {.speed = ""};
    if (path) tt_sysfs_link(path, &link);
    fill(partial, pci, "link_speed", "%s", link.speed);
    if (link.width > 0) fill(partial, pci, "link_width", "%ld", link.width);
    fill(partial, pci, "link_width", "%s", "");
}

static void fill_pci(struct partial *partial, struct tt_xml_node *pci)
{
    static const char *const ids[] = {"vendor", "device", "subsystem_vendor", "subsystem_device"};
    char path[PATH_MAX], text[TT_SYSFS_TEXT];
    enum tt_topo_role role = role_of(pci);
    bool open = !tt_xml_get(pci, "class") || !tt_xml_get(pci, "link_speed") ||
                !tt_xml_get(pci, "link_width");
    bool known =
        (open || partial->recorded) && known_path(partial, tt_topo_busid(pci, "busid"), role, path);
    if (known) {
        tt_sysfs_text(path, "class", text);
        if (text[0]) put(partial, pci, "class", "%s", text); /* the one thing it knows better */
    }
    for (size_t i = 0; known && i < sizeof(ids) / sizeof(ids[0]); i++) {
        tt_sysfs_text(path, ids[i], text);
        if (text[0]) fill(partial, pci, ids[i], "%s", text);
    }
    fill(partial, pci, "class", "%s",
         role == TT_ROLE_GPU   ? "0x03"
         : role == TT_ROLE_NIC ? "0x02"
                               : "0x060400");
    fill_link(partial, pci, known ? path : NULL);
}

static void fill_cpu(struct partial *partial, struct tt_xml_node *cpu)
{
    char path[PATH_MAX], mask[TT_SYSFS_TEXT];
    struct tt_sysfs_cpu here;
    tt_sysfs_cpu(&here);
    fill(partial, cpu, "arch", "%s", here.arch);
    bool x86 = tt_word_arch(tt_xml_get(cpu, "arch")) == TT_ARCH_X86;
    if (x86) fill(partial, cpu, "vendor", "%s", here.vendor);
    if (x86) fill(partial, cpu, "familyid", "%s", here.family);
    if (x86) fill(partial, cpu, "modelid", "%s", here.model);
    if (tt_xml_get(cpu, "affinity")) return;
    (void)snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%lld", tt_sysfs_root(),
                   (long long)tt_topo_int(cpu, "numaid", -1));
    tt_sysfs_text(path, "cpumap", mask);
    if (mask[0] && strlen(mask) < TT_XML_VALUE_BYTES) put(partial, cpu, "affinity", "%s", mask);
}

/* ---- elements that are missing ---- */

static struct tt_xml_node *add(struct partial *partial, struct tt_xml_node *parent,
                               const char *name)
{
    struct tt_xml_node *node = parent ? tt_xml_add(parent, name) : NULL;
    if (!node) partial->full = true;
    return node;
}

/* Children of a switch stand in the order of their bus ids. */
static void sort_last(struct tt_xml_node *parent)
{
    int at = parent->nchildren - 1;
    struct tt_xml_node *last = parent->children[at];
    for (; at > 0; at--) {
        struct tt_xml_node *before = parent->children[at - 1];
        if (!is(before, "pci") || tt_topo_busid(before, "busid") <= tt_topo_busid(last, "busid"))
            break;
        parent->children[at] = before;
    }
    parent->children[at] = last;
}

static struct tt_xml_node *cpu_of(struct partial *partial, int numa)
{
    struct tt_xml_node *root = partial->file->root;
    for (int k = 0; k < root->nchildren; k++) {
        struct tt_xml_node *cpu = root->children[k];
        if (is(cpu, "cpu") && tt_topo_int(cpu, "numaid", -1) == numa) return cpu;
    }
    struct tt_xml_node *cpu = add(partial, root, "cpu");
    if (cpu) put(partial, cpu, "numaid", "%d", numa);
    return cpu;
}

/* Virtual machines do not say where a device is; with one domain that is no question. */
static struct tt_xml_node *only_cpu(const struct tt_xml_node *root)
{
    struct tt_xml_node *only = NULL;
    int count = 0;
    for (int k = 0; k < root->nchildren; k++) {
        if (!is(root->children[k], "cpu")) continue;
        only = root->children[k];
        count++;
    }
    return count == 1 ? only : NULL;
}

/* The element of a device, with those above it as /sys has them; without, under an unknown domain.
 */
static struct tt_xml_node *pci_of(struct partial *partial, uint64_t busid, enum tt_topo_role role)
{
    struct tt_xml_node *at = find_pci(partial->file->root, busid);
    char path[PATH_MAX], name[24];
    if (at) return at;
    struct tt_sysfs_chain *chain = &partial->chain;
    bool known = known_path(partial, busid, role, path) && tt_sysfs_chain(path, chain);
    int level = 0; /* the lowest that the file has, or all levels */
    int top = known ? chain->count : 1;
    for (level = 1; level < top && !at; level++) {
        uint64_t above = 0;
        (void)tt_word_busid(strrchr(chain->path[level], '/') + 1, &above);
        at = find_pci(partial->file->root, above);
    }
    if (at) level--;
    if (!at && known && chain->numa < 0) at = only_cpu(partial->file->root);
    if (!at) at = cpu_of(partial, known ? chain->numa : -1);
    while (level-- > 0 && at) {
        struct tt_xml_node *parent = at;
        at = add(partial, parent, "pci");
        if (!at) break;
        tt_word_busid_text(busid, name);
        put(partial, at, "busid", "%s", level ? strrchr(chain->path[level], '/') + 1 : name);
        sort_last(parent);
    }
    return at;
}

static void add_device(struct partial *partial, const struct tt_topo_device *device)
{
    uint64_t busid = 0;
    if (!tt_word_busid(device->bus_id, &busid)) return;
    struct tt_xml_node *pci = pci_of(partial, busid, TT_ROLE_GPU);
    if (pci && !child_of(pci, "gpu")) (void)add(partial, pci, "gpu");
    for (int k = 0; pci && k < pci->nchildren; k++) {
        struct tt_xml_node *row = pci->children[k];
        if (!is(row, "gpu")) continue;
        fill(partial, row, "dev", "%d", device->number);
        fill(partial, row, "sm", "%d", device->cc);
        fill(partial, row, "rank", "%d", device->number);
    }
}

/* ---- NICs of a plugin ---- */

static struct tt_xml_node *nic_parent(struct partial *partial, const struct tt_topo_nic *nic)
{
    const char *name = nic->path ? strrchr(nic->path, '/') : NULL;
    uint64_t busid = 0;
    char path[PATH_MAX];
    struct tt_xml_node *root = partial->file->root;
    if (name && tt_sysfs_is_busid(name + 1) && tt_word_busid(name + 1, &busid)) {
        struct tt_xml_node *own = find_pci(root, busid);
        if (own) return own;
        busid &= ~0xfull; /* ports of one NIC are its functions */
        own = find_pci(root, busid);
        if (own) return own;
        bool real = tt_sysfs_real(nic->path, path) && tt_sysfs_is_pci(path);
        if (real) return pci_of(partial, busid, TT_ROLE_NIC);
    }
    struct tt_xml_node *cpu = child_of(root, "cpu");
    return cpu ? cpu : cpu_of(partial, -1);
}

static void place_nic(struct partial *partial, const struct tt_topo_nic *nic)
{
    struct tt_xml_node *net = find_net(partial->file->root, nic->name);
    if (!net) {
        struct tt_xml_node *parent = nic_parent(partial, nic);
        struct tt_xml_node *row = parent ? child_of(parent, "nic") : NULL;
        if (!row) row = add(partial, parent, "nic");
        net = add(partial, row, "net");
        if (!net) return;
        put(partial, net, "name", "%s", nic->name);
    }
    if (tt_xml_get(net, "dev") && tt_topo_int(net, "dev", -1) != nic->number) {
        tt_topo_note(&partial->file->notes, partial->file->name, net->line,
                     "<net> dev %.16s of %.64s is number %d of the network plugin",
                     tt_xml_get(net, "dev"), nic->name, nic->number);
    }
    net->kept = true;
    put(partial, net, "dev", "%d", nic->number);
    fill(partial, net, "latency", "%f", (double)(nic->latency_usec > 0 ? nic->latency_usec : 0));
    fill(partial, net, "speed", "%d", nic->mbps);
    fill(partial, net, "port", "%d", nic->port);
    fill(partial, net, "guid", "0x%llx", (unsigned long long)nic->guid);
    fill(partial, net, "maxconn", "%d", nic->max_connections > 0 ? nic->max_connections : 64);
    fill(partial, net, "gdr", "%d", nic->gdr);
    if (nic->rail >= 0) fill(partial, net, "rail", "%d", nic->rail);
    if (nic->plane >= 0) fill(partial, net, "plane", "%d", nic->plane);
    put(partial, net, "net", "1");
}

/* NICs of the file that the plugin does not know. */
static void drop_strangers(struct partial *partial, struct tt_xml_node *node)
{
    for (int k = node->nchildren - 1; k >= 0; k--) {
        struct tt_xml_node *child = node->children[k];
        if (!is(child, "net")) {
            drop_strangers(partial, child);
        } else if (!child->kept) {
            tt_topo_note(&partial->file->notes, partial->file->name, child->line,
                         "<net> %.64s is not known to the network plugin and is left out",
                         tt_xml_get(child, "name") ? tt_xml_get(child, "name") : "without name");
            tt_xml_drop(node, k);
        } else {
            child->kept = false;
        }
    }
}

/* ---- all of it ---- */

/* Far ends that are not in the file are NVSwitches. */
static void fill_nvlink(struct partial *partial, struct tt_xml_node *row)
{
    char path[PATH_MAX], class[TT_SYSFS_TEXT] = "";
    uint64_t target = tt_topo_busid(row, "target");
    if (tt_xml_get(row, "tclass")) return;
    const struct tt_xml_node *pci = find_pci(partial->file->root, target);
    if (pci && role_of(pci) == TT_ROLE_GPU) {
        put(partial, row, "tclass", "0x030200");
        return;
    }
    if (known_path(partial, target, TT_ROLE_NVSWITCH, path)) tt_sysfs_text(path, "class", class);
    put(partial, row, "tclass", "%s", class[0] ? class : "0x068000");
}

static void fill_all(struct partial *partial, struct tt_xml_node *node)
{
    if (is(node, "cpu")) fill_cpu(partial, node);
    if (is(node, "pci")) fill_pci(partial, node);
    if (is(node, "gpu")) {
        /* GPUs that no rank uses are left out later, and must not be in the way until then */
        if (!tt_xml_get(node, "dev")) put(partial, node, "dev", "%d", partial->spare++);
        if (partial->local->ndevices)
            fill(partial, node, "sm", "%d", partial->local->devices[0].cc);
        fill(partial, node, "gdr", "0");
    }
    if (is(node, "nvlink")) fill_nvlink(partial, node);
    for (int k = 0; k < node->nchildren && !partial->full; k++)
        fill_all(partial, node->children[k]);
}

struct tt_topo_nic tt_topo_nic_of(int number, const ncclNetProperties_v12_t *props)
{
    return (struct tt_topo_nic){
        .name = props->name,
        .path = props->pciPath,
        .guid = props->guid,
        .number = number,
        .mbps = props->speed,
        .port = props->port,
        .max_connections = props->maxComms,
        .rail = props->railId,
        .plane = props->planeId,
        .latency_usec = props->latency,
        .gdr = (props->ptrSupport & (NCCL_PTR_CUDA | NCCL_PTR_DMABUF)) != 0,
    };
}

ncclResult_t tt_topo_complete(struct tt_topo_file *file, const struct tt_topo_local *local)
{
    enum { BEYOND_DEVICES = 1 << 20 };
    struct partial *partial = calloc(1, sizeof(*partial)); /* a chain is too much for a stack */
    if (!partial) return tt_fail(ncclSystemError, "%s: out of memory", file->name);
    *partial = (struct partial){.file = file, .local = local, .spare = BEYOND_DEVICES};
    partial->recorded = tt_sysfs_root()[0] != 0;
    for (int k = 0; k < local->ndevices; k++)
        add_device(partial, &local->devices[k]);
    for (int k = 0; local->nics && k < local->nnics; k++)
        place_nic(partial, &local->nics[k]);
    if (local->nics) drop_strangers(partial, file->root);
    fill_all(partial, file->root);
    bool full = partial->full;
    free(partial);
    if (full)
        return tt_fail(ncclSystemError, "%s: out of memory, or too many attributes", file->name);
    return tt_topo_file_check(file);
}
