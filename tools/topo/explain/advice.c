/* What would make a machine's channels faster: the parts that are full, links below what they could
 * be, and settings. */
#include "explain.h"

#include "base/param.h"

#include <stdio.h>
#include <string.h>

/* ---- what is full ---- */

static const char *const remedies[PARTS] = {
    [PART_PORT] = "network ports are full: more or faster NICs raise what nodes exchange",
    [PART_NIC] = "PCI links of NICs are full: more NICs or a newer PCI generation raise what nodes "
                 "exchange, faster ports alone do not",
    [PART_GPU] = "PCI links of GPUs are full: a newer PCI generation would help",
    [PART_UPLINK] = "PCI links between switches and CPUs are full: GPUs that talk to each other, "
                    "and their NICs, are better off below one switch",
    [PART_CPUS] = "links between CPUs are full: GPUs and NICs that work together below one CPU "
                  "would spare them",
    [PART_C2C] = "chip-to-chip links are full: NICs beside the GPUs would spare them",
};

static const char of_nics[] = "PCI links between switches and CPUs are full with what NICs "
                              "exchange with GPUs: NICs below the "
                              "GPUs' own switches, or wider links, would spare them";

/* Do all GPUs talk by NVLink, so that PCI links carry what NICs exchange? */
static bool all_linked(const struct box *box)
{
    bool all = true;
    for (int k = 0; k < box->count; k++)
        all = all && (box->node[k].kind != BOX_GPU || box->node[k].nvlink > 0);
    return all;
}

/* What NVLinks would change where some GPUs have none; "": nothing. */
static const char *of_nvlinks(const struct box *box, int part)
{
    if (all_linked(box) || (part != PART_GPU && part != PART_CPUS)) return "";
    return part == PART_GPU ? ", and so would NVLink" : ", and so would NVLink between GPUs";
}

static bool has(const struct load_group *group, const char *kind)
{
    return !strcmp(group->from, kind) || !strcmp(group->to, kind);
}

static enum part part_of(const struct load_group *group)
{
    if (!*group->to || has(group, "port")) return PART_PORT;
    switch (group->first.type) {
    case TT_PATH_NVL: return PART_NVLINK;
    case TT_PATH_C2C: return PART_C2C;
    case TT_PATH_SYS: return PART_CPUS;
    default: break;
    }
    if (has(group, "NIC")) return PART_NIC;
    return has(group, "GPU") ? PART_GPU : PART_UPLINK;
}

void explain_full(struct full_parts *full, const struct tt_topo_loads loads[TT_GRAPH_COUNT_])
{
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++) {
        struct load_group groups[LOAD_GROUPS];
        int count = load_groups_of(&loads[kind], groups);
        for (int g = count - 1; g >= 0; g--) { /* the fullest last: its speed is named */
            if (!load_group_is_full(&groups[g])) continue;
            enum part part = part_of(&groups[g]);
            full->part[part].graph[kind] = true;
            full->part[part].bw = (double)groups[g].first.bw;
        }
    }
}

/* "In ring, tree" for the graphs where a part is full, but for those of `less` (NULL: none). False
 * when there are none. */
static bool add_graphs(struct text *text, const bool graph[TT_GRAPH_COUNT_], const bool *less)
{
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++) {
        if (!graph[kind] || (less && less[kind])) continue;
        text_add(text, "%s%s", text->bytes ? ", " : "In ",
                 tt_graph_kind_name((enum tt_graph_kind)kind));
    }
    return text->bytes > 0;
}

/* Where ports and the PCI links of their NICs are full alike, only both together help. */
static bool advise_full(const struct report *report, const struct full_parts *full)
{
    bool any = false;
    bool both[TT_GRAPH_COUNT_];
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++)
        both[kind] = full->part[PART_PORT].graph[kind] && full->part[PART_NIC].graph[kind];
    struct text graphs = {0};
    if (add_graphs(&graphs, both, NULL)) {
        report_add(report, "advice",
                   "%s, network ports (%.4g GB/s each) and the PCI links of their NICs (%.4g) are "
                   "full alike: more NICs raise what nodes exchange; faster ones need faster PCI.",
                   text_get(&graphs), full->part[PART_PORT].bw, full->part[PART_NIC].bw);
        any = true;
    }
    text_free(&graphs);
    for (int part = 0; part < PARTS; part++) {
        if (part == PART_NVLINK) continue; /* nothing is to be done about it */
        bool paired = part == PART_PORT || part == PART_NIC;
        if (add_graphs(&graphs, full->part[part].graph, paired ? both : NULL)) {
            bool nics = part == PART_UPLINK && all_linked(report->box);
            report_add(report, "advice", "%s, %s%s (%.4g GB/s each).", text_get(&graphs),
                       nics ? of_nics : remedies[part], of_nvlinks(report->box, part),
                       full->part[part].bw);
            any = true;
        }
        text_free(&graphs);
    }
    return any;
}

/* ---- links below what they could be ---- */

static bool advise_gpu_links(const struct report *report)
{
    const struct box *box = report->box;
    double best = 0;
    bool any = false;
    for (int k = 0; k < box->count; k++) {
        if (box->node[k].kind == BOX_GPU && box->node[k].up_bw > best) best = box->node[k].up_bw;
    }
    for (int k = 0; k < box->count; k++) {
        const struct box_node *node = &box->node[k];
        if (node->kind != BOX_GPU || node->up_bw >= 0.9 * best) continue;
        any = true;
        report_add(
            report, "advice",
            "GPU %d has a PCI link of %.4g GB/s where others have %.4g: look at its slot and "
            "at the link's training (lspci -vv, LnkSta).",
            node->gpu, node->up_bw, best);
    }
    return any;
}

/* ---- ports that have the same fault, in one sentence ---- */

enum fault { FAULT_NARROW, FAULT_DRIVER, FAULT_FAR, FAULTS };

static const char *const faults[FAULTS] = {
    [FAULT_NARROW] = "the port gives more than the PCI link of its NIC carries: a wider or newer "
                     "slot would let it. (In a virtual machine: PCI links that are not shown count "
                     "as slow; a machine file with the true ones, NCCL_TOPO_FILE, helps.)",
    [FAULT_DRIVER] = "no GPU-direct, so data takes a detour through the CPU's memory; drivers that "
                     "can (nvidia-peermem, DMA-BUF) remove it.",
    [FAULT_FAR] = "no PCI switch in common with any GPU, so data crosses a CPU and its memory; a "
                  "slot below a GPU's switch, where there is one, and drivers for GPU-direct would "
                  "be faster.",
};

static int nearest(const struct box *box, int net)
{
    int best = TT_PATH_DIS;
    for (int g = 0; g < box_count(box, "gpus"); g++) {
        int type = path_type_of(box_path_type(box, "gpu_net", g, net));
        if (type < best) best = type;
    }
    return best;
}

/* GPU-direct needs both: drivers, and a path that is at most P2C. */
static bool has_fault(const struct box *box, int net, enum fault fault)
{
    int node = box_find(box, BOX_NET, net);
    bool far = nearest(box, net) > TT_PATH_P2C;
    if (fault == FAULT_DRIVER) return !far && !box_int(box, "nets", net, "gdr");
    if (fault == FAULT_FAR) return far;
    if (node < 0 || box->node[node].parent < 0) return false;
    const struct box_node *nic = &box->node[box->node[node].parent];
    return nic->kind == BOX_NIC && nic->up_bw < 0.9 * box->node[node].up_bw;
}

static bool advise_ports(const struct report *report)
{
    bool any = false;
    for (int fault = 0; fault < FAULTS; fault++) {
        struct text ports = {0};
        for (int n = 0; n < box_count(report->box, "nets"); n++) {
            char name[BOX_NAME_BYTES];
            if (!has_fault(report->box, n, (enum fault)fault)) continue;
            box_net_name(report->box, n, name);
            text_add(&ports, "%s%s", ports.bytes ? ", " : "", name);
        }
        if (ports.bytes) report_add(report, "advice", "%s: %s", text_get(&ports), faults[fault]);
        any = any || ports.bytes;
        text_free(&ports);
    }
    return any;
}

/* ---- settings ---- */

/* Pairs of one node that use shared memory although a path is there. */
static int blocked_pairs(const struct box *box)
{
    int blocked = 0;
    int gpus = box_count(box, "gpus");
    for (int a = 0; a < gpus; a++) {
        for (int b = 0; b < gpus; b++) {
            int type = path_type_of(box_path_type(box, "gpu_gpu", a, b));
            blocked += a != b && type < TT_PATH_NET && !box_access(box, "p2p", a, b);
        }
    }
    return blocked;
}

static bool advise_settings(const struct report *report, const struct topo_scenario *scenario)
{
    static const char *const shaping[] = {
        "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL",   "NCCL_NET_GDR_LEVEL", "NCCL_CROSS_NIC",
        "NCCL_SHM_DISABLE", "NCCL_NVB_DISABLE", "NCCL_PXN_DISABLE",   "NCCL_NVLS_ENABLE",
        "NCCL_MIN_CTAS",    "NCCL_MAX_CTAS",    "NCCL_GRAPH_FILE"};
    int blocked = blocked_pairs(report->box);
    bool any = blocked > 0 || scenario->ndomains > 1;
    bool chosen = tt_param_is_set("NCCL_P2P_DISABLE") || tt_param_is_set("NCCL_P2P_LEVEL");
    if (blocked && chosen) {
        report_add(report, "advice",
                   "%d ordered pairs have no direct access, data goes through the CPU's memory; "
                   "without the settings named below, rules decide what is allowed.",
                   blocked);
    } else if (blocked) {
        report_add(report, "advice",
                   "%d ordered pairs have no direct access, data goes through the CPU's memory; "
                   "NCCL_P2P_LEVEL=SYS would allow it where the hardware can.%s",
                   blocked,
                   *of_nvlinks(report->box, PART_GPU)
                       ? " NVLink or a common PCI switch would be faster than either."
                       : "");
    }
    if (scenario->ndomains > 1) {
        report_add(report, "advice",
                   "The NICs are faster than the paths between GPUs, so the machine falls into %d "
                   "nodes joined by the network; NCCL_NET_DISABLE_INTRA=1 keeps it together.",
                   scenario->ndomains);
    }
    for (size_t k = 0; k < sizeof(shaping) / sizeof(shaping[0]); k++) {
        const char *value = tt_param_is_set(shaping[k]) ? tt_param_str(shaping[k]) : NULL;
        if (!value || !*value) continue;
        any = true;
        report_add(report, "advice", "%s=%s is set, and shapes what stands above.", shaping[k],
                   value);
    }
    return any;
}

static bool full_of(const struct full_parts *full, enum part part)
{
    bool any = false;
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++)
        any = any || full->part[part].graph[kind];
    return any;
}

void explain_advice(const struct report *report, const struct topo_scenario *scenario,
                    const struct full_parts *full)
{
    bool any = advise_full(report, full);
    any = advise_gpu_links(report) || any;
    any = advise_ports(report) || any;
    any = advise_settings(report, scenario) || any;
    if (!any) {
        report_add(
            report, "advice",
            full_of(full, PART_NVLINK)
                ? "Nothing stands out: NVLinks are the limit, which is all that GPUs have."
                : "Nothing stands out: no link is full, none is slower than its neighbours.");
    }
}
