/* The element order of a running communicator. Every rank has its own GPU and all NICs; the first
 * rank's elements come first, the others' are merged behind, so a switch lists [first rank's GPU,
 * NICs, further GPUs] whatever the file said. Node numbers, and rings, follow that order. */
#include "fuse.h"

#include "words.h"
#include "xml.h"

#include <stdlib.h>
#include <string.h>

static bool is(const struct tt_xml_node *node, const char *name)
{
    return strcmp(node->name, name) == 0;
}

/* Mark what rank `rank` keeps; true when something below was marked. */
static bool mark(struct tt_xml_node *node, int64_t rank)
{
    node->kept = is(node, "net") || (is(node, "gpu") && tt_topo_int(node, "rank", -1) == rank);
    bool below = false;
    for (int k = 0; k < node->nchildren; k++)
        below = mark(node->children[k], rank) || below;
    return node->kept || below;
}

static bool prunable(const struct tt_xml_node *node)
{
    return is(node, "pci") || is(node, "cpu") || is(node, "nic") || is(node, "net") ||
           is(node, "gpu");
}

static bool holds_kept(const struct tt_xml_node *node)
{
    bool held = node->kept;
    for (int k = 0; k < node->nchildren && !held; k++)
        held = holds_kept(node->children[k]);
    return held;
}

static void trim(struct tt_xml_node *node)
{
    if (node->kept) return; /* with all that is below */
    for (int k = node->nchildren - 1; k >= 0; k--) {
        struct tt_xml_node *child = node->children[k];
        if (prunable(child) && !holds_kept(child)) {
            tt_xml_drop(node, k);
        } else {
            trim(child);
        }
    }
}

static bool equal(const struct tt_xml_node *a, const struct tt_xml_node *b)
{
    if (strcmp(a->name, b->name) != 0 || a->nattrs != b->nattrs) return false;
    for (int k = 0; k < a->nattrs; k++) {
        const char *other = tt_xml_get(b, a->attrs[k].key);
        if (!other || strcmp(other, a->attrs[k].value) != 0) return false;
    }
    return true;
}

/* Everything of `from` into `into`; equal elements are one. False when memory is short. */
static bool merge(struct tt_xml_node *into, const struct tt_xml_node *from)
{
    for (int k = 0; k < from->nchildren; k++) {
        const struct tt_xml_node *child = from->children[k];
        struct tt_xml_node *same = NULL;
        for (int m = 0; m < into->nchildren && !same; m++) {
            if (equal(into->children[m], child)) same = into->children[m];
        }
        if (same) {
            if (!merge(same, child)) return false;
            continue;
        }
        struct tt_xml_node *copy = tt_xml_copy(child);
        if (!copy) return false;
        if (!tt_xml_adopt(into, copy)) {
            tt_xml_free(copy);
            return false;
        }
    }
    return true;
}

static int64_t last_rank(const struct tt_xml_node *node)
{
    int64_t last = is(node, "gpu") ? tt_topo_int(node, "rank", -1) : -1;
    for (int k = 0; k < node->nchildren; k++) {
        int64_t below = last_rank(node->children[k]);
        if (below > last) last = below;
    }
    return last;
}

static bool has_rank(const struct tt_xml_node *node, int64_t rank)
{
    if (is(node, "gpu") && tt_topo_int(node, "rank", -1) == rank) return true;
    bool found = false;
    for (int k = 0; k < node->nchildren && !found; k++)
        found = has_rank(node->children[k], rank);
    return found;
}

/* The part of one rank. NULL when memory is short. */
static struct tt_xml_node *part_of(const struct tt_xml_node *root, int64_t rank)
{
    struct tt_xml_node *part = tt_xml_copy(root);
    if (!part) return NULL;
    (void)mark(part, rank);
    trim(part);
    return part;
}

enum { MOST_RANKS = 4096 }; /* a file that numbers its ranks beyond is read up to here */

struct tt_xml_node *tt_topo_fuse(const struct tt_xml_node *root)
{
    struct tt_xml_node *fused = NULL;
    int64_t last = last_rank(root);
    for (int64_t rank = 0; rank <= last && rank < MOST_RANKS; rank++) {
        if (!has_rank(root, rank)) continue;
        struct tt_xml_node *part = part_of(root, rank);
        if (!fused) {
            fused = part;
            if (!fused) return NULL;
            continue;
        }
        bool merged = part && merge(fused, part);
        tt_xml_free(part);
        if (merged) continue;
        tt_xml_free(fused);
        return NULL;
    }
    return fused ? fused : tt_xml_copy(root);
}
