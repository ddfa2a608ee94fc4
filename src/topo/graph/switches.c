/* Some switch chips show two levels of bridges though they are one crossbar: the lower ones are
 * dissolved into the upper, so that paths see one switch. Source: spec topology, section 2.3. */
#include "switches.h"

#include <string.h>

struct chip {
    uint64_t upper, lower; /* PCI ids without their low 12 bits */
};

static const struct chip chips[] = {
    {0x1000c0101000a000ull, 0x1000c0101000a000ull},
    {0x1000c03010000000ull, 0x1000c03010001000ull},
};

static const struct chip *chip_of(const struct tt_topo_node *node, bool upper)
{
    uint64_t id = node->pci_id & ~0xfffull;
    for (size_t k = 0; k < sizeof(chips) / sizeof(chips[0]); k++) {
        if (id == (upper ? chips[k].upper : chips[k].lower)) return &chips[k];
    }
    return NULL;
}

static bool append(struct tt_topo_node *node, struct tt_topo_link link)
{
    /* At the end, whatever the bandwidth: added as zero it stays there. */
    if (!tt_topo_link_add(node, link.peer, link.type, 0)) return false;
    for (int k = 0; k < node->nlinks; k++) {
        if (node->links[k].peer != link.peer || node->links[k].type != link.type) continue;
        node->links[k].bw += link.bw;
        return true;
    }
    return false;
}

/* The lower switch's other links become the upper's; no link leads to the lower one any more. */
static bool dissolve(struct tt_topo_system *system, struct tt_topo_node *upper,
                     struct tt_topo_node *lower)
{
    for (int k = 0; k < lower->nlinks; k++) {
        struct tt_topo_link link = lower->links[k];
        if (link.peer == upper) continue;
        if (!append(upper, link)) return false;
        for (int back = 0; back < link.peer->nlinks; back++) {
            struct tt_topo_link *other = &link.peer->links[back];
            if (other->peer == lower) other->peer = upper;
        }
    }
    tt_topo_node_drop(system, lower);
    return true;
}

/* Unlink the lower switches that hang on the upper one now; those further down stay. */
static int take_lower(struct tt_topo_node *upper, const struct chip *chip,
                      struct tt_topo_node **lower)
{
    int taken = 0;
    int kept = 0;
    for (int k = 0; k < upper->nlinks; k++) {
        struct tt_topo_node *peer = upper->links[k].peer;
        bool below = peer->type == TT_NODE_PCI && peer != upper && chip_of(peer, false) == chip;
        if (below) {
            lower[taken++] = peer;
        } else {
            upper->links[kept++] = upper->links[k];
        }
    }
    upper->nlinks = kept;
    return taken;
}

static bool flatten_one(struct tt_topo_system *system, struct tt_topo_node *upper,
                        const struct chip *chip)
{
    struct tt_topo_node *lower[TT_TOPO_LINKS];
    int count = take_lower(upper, chip, lower);
    for (int k = 0; k < count; k++) {
        if (!dissolve(system, upper, lower[k])) return false;
    }
    upper->pci_id |= 0xffff; /* not again */
    return true;
}

bool tt_topo_flatten(struct tt_topo_system *system)
{
    const struct tt_topo_list *switches = &system->list[TT_NODE_PCI];
    for (int k = 0; k < switches->count;) {
        struct tt_topo_node *upper = switches->node[k];
        const struct chip *chip = chip_of(upper, true);
        if (!chip) {
            k++;
            continue;
        }
        if (!flatten_one(system, upper, chip)) return false;
        k = 0;
    }
    return true;
}
