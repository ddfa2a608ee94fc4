/* What would make a machine's channels faster: the parts that are full, links below what they could
 * be, and settings. */
#include "explain.h"

#include "base/param.h"

#include <stdio.h>
#include <string.h>

/* ---- what is full ---- */

enum part { PART_PORT, PART_NIC, PART_GPU, PART_UPLINK, PART_CPUS, PART_NVLINK, PART_C2C, PARTS };

static const char *const remedies[PARTS] = {
    [PART_PORT] = "network ports are full: more or faster NICs raise what nodes exchange",
    [PART_NIC] = "PCI links of NICs are full: a faster port alone changes nothing there; more NICs "
                 "or a newer PCI generation would",
    [PART_GPU] = "PCI links of GPUs are full: a newer PCI generation would help, or NVLink where "
                 "GPUs have none",
    [PART_UPLINK] = "PCI links between switches and CPUs are full: GPUs that talk to each other, "
                    "and their NICs, are better off below one switch",
    [PART_CPUS] = "links between CPUs are full: NVLink between GPUs of different CPUs, or all GPUs "
                  "below one CPU, would spare them",
    [PART_NVLINK] = "NVLinks are full: the GPUs already give what they have",
    [PART_C2C] = "chip-to-chip links are full: NICs beside the GPUs would spare them",
};

static bool has(const struct tale_group *group, const char *kind)
{
    return !strcmp(group->from, kind) || !strcmp(group->to, kind);
}

static enum part part_of(const struct tale_group *group)
{
    if (!*group->to || has(group, "port")) return PART_PORT;
    switch (group->first.type) {
    case TT_WAY_NVL: return PART_NVLINK;
    case TT_WAY_C2C: return PART_C2C;
    case TT_WAY_SYS: return PART_CPUS;
    default: break;
    }
    if (has(group, "NIC")) return PART_NIC;
    return has(group, "GPU") ? PART_GPU : PART_UPLINK;
}

struct full {
    struct words graphs; /* owned; their names */
    double bw;           /* GB/s of such a link */
};

static void find_full(const struct tt_topo_loads loads[TT_GRAPH_COUNT_], struct full full[PARTS])
{
    struct tale_group groups[TALE_GROUPS];
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++) {
        bool told[PARTS] = {false};
        int count = tale_groups(&loads[kind], groups);
        for (int g = 0; g < count && tale_is_full(&groups[g]); g++) {
            enum part part = part_of(&groups[g]);
            if (told[part]) continue;
            told[part] = true;
            full[part].bw = (double)groups[g].first.bw;
            words_add(&full[part].graphs, "%s%s", full[part].graphs.bytes ? ", " : "",
                      tt_graph_kind_name((enum tt_graph_kind)kind));
        }
    }
}

static bool advise_full(const struct tale *tale, const struct tt_topo_loads loads[TT_GRAPH_COUNT_])
{
    struct full full[PARTS] = {{{0}, 0}};
    bool any = false;
    find_full(loads, full);
    for (int part = 0; part < PARTS; part++) {
        if (full[part].graphs.bytes) {
            tale_say(tale, "advice", "In %s, %s (%.4g GB/s each).", words_text(&full[part].graphs),
                     remedies[part], full[part].bw);
            any = true;
        }
        words_free(&full[part].graphs);
    }
    return any;
}

/* ---- links below what they could be ---- */

static bool advise_gpu_links(const struct tale *tale)
{
    const struct box *box = tale->box;
    double best = 0;
    bool any = false;
    for (int k = 0; k < box->count; k++) {
        if (box->node[k].kind == BOX_GPU && box->node[k].up_bw > best) best = box->node[k].up_bw;
    }
    for (int k = 0; k < box->count; k++) {
        const struct box_node *node = &box->node[k];
        if (node->kind != BOX_GPU || node->up_bw >= 0.9 * best) continue;
        any = true;
        tale_say(tale, "advice",
                 "GPU %d has a PCI link of %.4g GB/s where others have %.4g: look at its slot and "
                 "at the link's training (lspci -vv, LnkSta).",
                 node->gpu, node->up_bw, best);
    }
    return any;
}

/* ---- ports that have the same fault, in one sentence ---- */

enum fault { FAULT_NARROW, FAULT_INDIRECT, FAULT_FAR, FAULTS };

static const char *const faults[FAULTS] = {
    [FAULT_NARROW] = "%s: the port gives more than the PCI link of its NIC carries: a wider or "
                     "newer slot would let it. (In a virtual machine: PCI links that are not shown "
                     "count as slow; a machine file with the true ones, NCCL_TOPO_FILE, helps.)",
    [FAULT_INDIRECT] = "%s: no GPU-direct, so data takes a detour through the CPU's memory; "
                       "drivers that can (nvidia-peermem, DMA-BUF) remove it.",
    [FAULT_FAR] = "%s: no PCI switch in common with any GPU, so data crosses a CPU; a slot below a "
                  "GPU's switch would be faster.",
};

static int nearest(const struct box *box, int net)
{
    int best = TT_WAY_DIS;
    for (int g = 0; g < tale_count(box, "gpus"); g++) {
        int way = tale_way(box_way(box, "gpu_net", g, net));
        if (way < best) best = way;
    }
    return best;
}

static bool has_fault(const struct box *box, int net, enum fault fault)
{
    int node = box_find(box, BOX_NET, net);
    if (fault == FAULT_INDIRECT) return !box_int(box, "nets", net, "gdr");
    if (fault == FAULT_FAR)
        return nearest(box, net) >= TT_WAY_PHB && box_int(box, "nets", net, "gdr");
    if (node < 0 || box->node[node].parent < 0) return false;
    const struct box_node *nic = &box->node[box->node[node].parent];
    return nic->kind == BOX_NIC && nic->up_bw < 0.9 * box->node[node].up_bw;
}

static bool advise_ports(const struct tale *tale)
{
    bool any = false;
    for (int fault = 0; fault < FAULTS; fault++) {
        struct words ports = {0};
        for (int n = 0; n < tale_count(tale->box, "nets"); n++) {
            if (!has_fault(tale->box, n, (enum fault)fault)) continue;
            words_add(&ports, "%s%d", ports.bytes ? ", " : "NET ",
                      box_int(tale->box, "nets", n, "dev"));
        }
        any = any || ports.bytes;
        switch (ports.bytes ? fault : FAULTS) {
        case FAULT_NARROW:
            tale_say(tale, "advice", faults[FAULT_NARROW], words_text(&ports));
            break;
        case FAULT_INDIRECT:
            tale_say(tale, "advice", faults[FAULT_INDIRECT], words_text(&ports));
            break;
        case FAULT_FAR: tale_say(tale, "advice", faults[FAULT_FAR], words_text(&ports)); break;
        default: break;
        }
        words_free(&ports);
    }
    return any;
}

/* ---- settings ---- */

/* Pairs of one node that use shared memory although a path is there. */
static int blocked_pairs(const struct box *box)
{
    int blocked = 0;
    int gpus = tale_count(box, "gpus");
    for (int a = 0; a < gpus; a++) {
        for (int b = 0; b < gpus; b++) {
            int way = tale_way(box_way(box, "gpu_gpu", a, b));
            blocked += a != b && way < TT_WAY_NET && !tale_access(box, "p2p", a, b);
        }
    }
    return blocked;
}

static bool advise_settings(const struct tale *tale, const struct topo_scenario *scenario)
{
    static const char *const shaping[] = {
        "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL",   "NCCL_NET_GDR_LEVEL", "NCCL_CROSS_NIC",
        "NCCL_SHM_DISABLE", "NCCL_NVB_DISABLE", "NCCL_PXN_DISABLE",   "NCCL_NVLS_ENABLE",
        "NCCL_MIN_CTAS",    "NCCL_MAX_CTAS",    "NCCL_GRAPH_FILE"};
    int blocked = blocked_pairs(tale->box);
    bool any = blocked > 0 || scenario->ndomains > 1;
    if (blocked) {
        tale_say(tale, "advice",
                 "%d ordered pairs have no direct access, data goes through the CPU's memory; "
                 "NCCL_P2P_LEVEL=SYS would allow it where the hardware can. NVLink or a common PCI "
                 "switch would be faster than either.",
                 blocked);
    }
    if (scenario->ndomains > 1) {
        tale_say(tale, "advice",
                 "The NICs are faster than the ways between GPUs, so the machine falls into %d "
                 "nodes joined by the network; NCCL_NET_DISABLE_INTRA=1 keeps it together.",
                 scenario->ndomains);
    }
    for (size_t k = 0; k < sizeof(shaping) / sizeof(shaping[0]); k++) {
        const char *value = tt_param_is_set(shaping[k]) ? tt_param_str(shaping[k]) : NULL;
        if (!value || !*value) continue;
        any = true;
        tale_say(tale, "advice", "%s=%s is set, and shapes what stands above.", shaping[k], value);
    }
    return any;
}

void explain_advice(const struct tale *tale, const struct topo_scenario *scenario,
                    const struct tt_topo_loads loads[TT_GRAPH_COUNT_])
{
    bool any = advise_full(tale, loads);
    any = advise_gpu_links(tale) || any;
    any = advise_ports(tale) || any;
    any = advise_settings(tale, scenario) || any;
    if (!any) {
        tale_say(tale, "advice",
                 "Nothing stands out: no link is full, none is slower than its neighbours.");
    }
}
