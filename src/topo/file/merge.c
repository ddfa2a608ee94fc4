/* Several NICs as one virtual NIC: those that NCCL_NET_FORCE_MERGE names, then those that are as
 * near to each other as NCCL_NET_MERGE_LEVEL says. Without a network plugin only when one of the
 * two is set: whether the network of a machine file could do it, the file does not say. A plugin
 * makes the devices itself (tt_topo_join): then the members' rows name theirs. Members leave the
 * file, the virtual NIC hangs where their ways meet. Source: spec topology, section 1.7. */
#include "merge.h"

#include "complete.h"
#include "words.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NETS = 256, MOST_MEMBERS = TT_TOPO_MEMBERS, BUSID_TRIES = 100, WIDTH_UNKNOWN = 16 };

struct merge {
    const char *file; /* for messages */
    struct tt_xml_node *root;
    struct tt_xml_node *net[MOST_NETS]; /* rows with a number, in its order; NULL: placed */
    int count, next_dev;
    const struct tt_topo_joiner *joiner; /* NULL: the file alone decides */
    bool apart[MOST_NETS][MOST_NETS];    /* what the joiner does not join */
};

struct group {
    struct tt_xml_node *net[MOST_MEMBERS];
    int count;
};

/* ---- rows ---- */

static bool is(const struct tt_xml_node *node, const char *name)
{
    return node && strcmp(node->name, name) == 0;
}

static bool collect(struct merge *merge, struct tt_xml_node *node)
{
    int64_t dev =
        is(node, "net") && tt_topo_int(node, "net", 1) ? tt_topo_int(node, "dev", -1) : -1;
    if (dev >= merge->next_dev) merge->next_dev = (int)dev + 1;
    if (dev >= 0 && merge->count == MOST_NETS) return false;
    if (dev >= 0) {
        int at = merge->count++;
        for (; at > 0 && tt_topo_int(merge->net[at - 1], "dev", 0) > dev; at--)
            merge->net[at] = merge->net[at - 1];
        merge->net[at] = node;
    }
    for (int k = 0; k < node->nchildren; k++)
        if (!collect(merge, node->children[k])) return false;
    return true;
}

static struct tt_xml_node *above(struct tt_xml_node *node, const char *name)
{
    while (node && !is(node, name)) {
        node = node->parent;
    }
    return node;
}

/* Where two ways up meet; `node` itself may be it. */
static struct tt_xml_node *common(struct tt_xml_node *a, struct tt_xml_node *b)
{
    for (struct tt_xml_node *x = a; x; x = x->parent) {
        for (struct tt_xml_node *y = b; y; y = y->parent)
            if (x == y) return x;
    }
    return NULL;
}

/* ---- how far from each other ---- */

static bool same_but_last(const char *a, const char *b)
{
    size_t length = strlen(a);
    return length > 0 && strlen(b) == length && strncmp(a, b, length - 1) == 0;
}

/* NVL stands for ports of one NIC. */
static enum tt_path_type distance(struct tt_xml_node *a, struct tt_xml_node *b)
{
    struct tt_xml_node *one = above(a, "pci"), *two = above(b, "pci");
    if (a == b) return TT_PATH_LOC;
    if (a->parent == b->parent) return TT_PATH_NVL;
    if (one && two && same_but_last(tt_xml_get(one, "busid"), tt_xml_get(two, "busid")))
        return TT_PATH_NVL;
    struct tt_xml_node *ancestor = common(a, b);
    if (one && two && is(ancestor, "pci")) {
        bool children = one->parent == ancestor && two->parent == ancestor;
        return one == ancestor || two == ancestor || children ? TT_PATH_PIX : TT_PATH_PXB;
    }
    if (is(ancestor, "cpu")) return TT_PATH_PHB;
    const char *here = tt_xml_get(above(a, "cpu"), "host_hash");
    const char *there = tt_xml_get(above(b, "cpu"), "host_hash");
    bool same_host = (!here && !there) || (here && there && strcmp(here, there) == 0);
    return same_host ? TT_PATH_SYS : TT_PATH_DIS;
}

/* ---- the virtual NIC ---- */

static int64_t width_of(const struct tt_xml_node *pci)
{
    int64_t width = tt_topo_int(pci, "link_width", 0);
    return width > 0 ? width : WIDTH_UNKNOWN;
}

/* Lanes of all members, as many as the ways up to where they meet can carry. */
static int64_t lanes(const struct group *group, const struct tt_xml_node *ancestor)
{
    int64_t sum = 0;
    for (int k = 0; k < group->count; k++) {
        int64_t own = is(ancestor, "pci") ? width_of(ancestor) : INT64_MAX;
        for (struct tt_xml_node *at = above(group->net[k], "pci"); at != ancestor; at = at->parent)
            if (width_of(at) < own) own = width_of(at);
        sum += own;
    }
    bool capped = is(ancestor, "pci") && width_of(ancestor) < sum;
    return capped ? width_of(ancestor) : sum;
}

static bool is_taken(const struct tt_xml_node *node, uint64_t busid)
{
    bool taken = is(node, "pci") && tt_topo_busid(node, "busid") == busid;
    for (int k = 0; k < node->nchildren && !taken; k++)
        taken = is_taken(node->children[k], busid);
    return taken;
}

static bool free_busid(const struct merge *merge, const struct tt_xml_node *pci, char text[24])
{
    uint64_t busid = tt_topo_busid(pci, "busid");
    for (int k = 0; k < BUSID_TRIES; k++) {
        if (is_taken(merge->root, ++busid)) continue;
        tt_word_busid_text(busid, text);
        return true;
    }
    return false;
}

/* A pci element like the first member's, with a nic inside. NULL: no memory or no bus id. */
static struct tt_xml_node *add_pci(const struct merge *merge, const struct group *group,
                                   struct tt_xml_node *ancestor)
{
    const struct tt_xml_node *like = above(group->net[0], "pci");
    char busid[24], width[24];
    if (!free_busid(merge, like, busid)) return NULL;
    (void)snprintf(width, sizeof(width), "%lld", (long long)lanes(group, ancestor));
    struct tt_xml_node *pci = tt_xml_add(ancestor, "pci");
    for (int k = 0; pci && k < like->nattrs; k++)
        if (!tt_xml_set(pci, like->attrs[k].key, like->attrs[k].value)) return NULL;
    bool set = pci && tt_xml_set(pci, "busid", busid) && tt_xml_set(pci, "link_width", width);
    return set ? tt_xml_add(pci, "nic") : NULL;
}

static bool set_number(struct tt_xml_node *net, const char *key, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%lld", (long long)value);
    return tt_xml_set(net, key, text);
}

/* Speeds add up; it can what all members can; the rest is the first member's. */
static bool describe(const struct group *group, struct tt_xml_node *net, int dev)
{
    char name[TT_XML_VALUE_BYTES] = "";
    int64_t speed = 0, gdr = 1, coll = 1;
    const struct tt_xml_node *first = group->net[0];
    for (int k = 0; k < group->count; k++) {
        const char *own = tt_xml_get(group->net[k], "name");
        int64_t mbps = tt_topo_int(group->net[k], "speed", 0);
        size_t used = strlen(name);
        (void)snprintf(name + used, sizeof(name) - used, "%s%s", k ? "+" : "", own ? own : "net");
        speed += mbps > 0 ? mbps : 10000;
        if (!tt_topo_int(group->net[k], "gdr", 0)) gdr = 0;
        if (!tt_topo_int(group->net[k], "coll", 0)) coll = 0;
    }
    for (int k = 0; k < first->nattrs; k++)
        if (!tt_xml_set(net, first->attrs[k].key, first->attrs[k].value)) return false;
    int64_t made = tt_topo_int(first, "vspeed", 0);
    if (made > 0) speed = made;
    return tt_xml_set(net, "name", name) && set_number(net, "dev", dev) &&
           set_number(net, "speed", speed) && set_number(net, "gdr", gdr) &&
           set_number(net, "coll", coll);
}

/* Take a row out, and what it leaves empty above. */
static void drop(struct tt_xml_node *node)
{
    struct tt_xml_node *parent = node->parent;
    for (int k = 0; k < parent->nchildren; k++) {
        if (parent->children[k] != node) continue;
        tt_xml_drop(parent, k);
        break;
    }
    bool passes = is(parent, "nic") || is(parent, "pci");
    if (parent->nchildren == 0 && passes) drop(parent);
}

static const char *name_of(const struct tt_xml_node *net)
{
    const char *name = tt_xml_get(net, "name");
    return name ? name : "(without a name)";
}

static ncclResult_t join(struct merge *merge, const struct group *group, int dev)
{
    struct tt_xml_node *ancestor = group->net[0];
    for (int k = 1; k < group->count; k++)
        ancestor = common(ancestor, group->net[k]);
    if (!is(ancestor, "nic") && !is(ancestor, "pci") && !is(ancestor, "cpu")) {
        return tt_fail(ncclInvalidUsage,
                       "topology of %s: NICs %s and %s cannot be one: they hang on different NUMA "
                       "domains",
                       merge->file, name_of(group->net[0]), name_of(group->net[1]));
    }
    const struct tt_xml_node *first = above(group->net[0], "pci");
    struct tt_xml_node *nic = ancestor;
    if (!is(ancestor, "nic")) {
        bool new_pci = first && first != ancestor;
        nic = new_pci ? add_pci(merge, group, ancestor) : tt_xml_add(ancestor, "nic");
    }
    struct tt_xml_node *net = nic ? tt_xml_add(nic, "net") : NULL;
    if (!net || !describe(group, net, dev)) {
        return tt_fail(ncclSystemError,
                       "topology of %s: no memory or no free bus id for a virtual NIC of %s",
                       merge->file, name_of(group->net[0]));
    }
    for (int k = 0; k < group->count; k++)
        drop(group->net[k]);
    return ncclSuccess;
}

/* Have the group's device made, and remark it at the members. *refused_out: not of these. */
static ncclResult_t offer(const struct merge *merge, const struct group *group, bool *refused_out)
{
    int devs[MOST_MEMBERS], dev = -1, mbps = 0;
    bool set = true;
    for (int k = 0; k < group->count; k++)
        devs[k] = (int)tt_topo_int(group->net[k], "dev", -1);
    *refused_out = !merge->joiner->make(merge->joiner->arg, devs, group->count, &dev, &mbps);
    if (*refused_out) return ncclSuccess;
    for (int k = 0; k < group->count && set; k++)
        set = set_number(group->net[k], "vdev", dev);
    set = set && set_number(group->net[0], "vspeed", mbps);
    return set ? ncclSuccess : tt_fail(ncclSystemError, "topology: out of memory");
}

static ncclResult_t unite(struct merge *merge, const struct group *group, bool *refused_out)
{
    *refused_out = false;
    if (merge->joiner) return offer(merge, group, refused_out);
    return join(merge, group, merge->next_dev++);
}

static int most_members(const struct merge *merge)
{
    return merge->joiner && merge->joiner->most < MOST_MEMBERS ? merge->joiner->most : MOST_MEMBERS;
}

/* ---- by name ---- */

/* "mlx5_0", or "mlx5_0:1" for a port. */
static int find_named(const struct merge *merge, const char *wanted)
{
    char full[TT_XML_VALUE_BYTES + 24];
    for (int k = 0; k < merge->count; k++) {
        const char *name = merge->net[k] ? tt_xml_get(merge->net[k], "name") : NULL;
        if (!name) continue;
        (void)snprintf(full, sizeof(full), "%s:%lld", name,
                       (long long)tt_topo_int(merge->net[k], "port", 0));
        if (strcmp(name, wanted) == 0 || strcmp(full, wanted) == 0) return k;
    }
    return -1;
}

static ncclResult_t join_named(struct merge *merge, char *names)
{
    struct group group = {.count = 0};
    char *save = NULL;
    for (char *name = strtok_r(names, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
        int k = find_named(merge, name);
        if (k < 0) {
            return tt_fail(ncclInvalidUsage,
                           "NCCL_NET_FORCE_MERGE: %s has no NIC '%.64s' that is not yet part of "
                           "another",
                           merge->file, name);
        }
        if (group.count == most_members(merge)) {
            return tt_fail(ncclInvalidUsage, "NCCL_NET_FORCE_MERGE: more than %d NICs in one group",
                           most_members(merge));
        }
        group.net[group.count++] = merge->net[k];
        merge->net[k] = NULL;
    }
    bool refused = false;
    ncclResult_t rc = group.count > 1 ? unite(merge, &group, &refused) : ncclSuccess;
    if (!refused) return rc;
    return tt_fail(
        ncclInvalidUsage,
        "NCCL_NET_FORCE_MERGE: the network plugin does not make one device of the %d NICs "
        "from %.64s on",
        group.count, name_of(group.net[0]));
}

static ncclResult_t join_forced(struct merge *merge, const char *groups)
{
    ncclResult_t rc = ncclSuccess;
    char *copy = strdup(groups), *save = NULL;
    if (!copy) return tt_fail(ncclSystemError, "topology: out of memory");
    for (char *names = strtok_r(copy, ";", &save); names && !rc; names = strtok_r(NULL, ";", &save))
        rc = join_named(merge, names);
    free(copy);
    return rc;
}

/* ---- by distance ---- */

ncclResult_t tt_topo_merge_level(enum tt_path_type *level_out)
{
    const char *text = tt_param_str("NCCL_NET_MERGE_LEVEL");
    *level_out = TT_PATH_NVL;
    if (!text || !*text || strcmp(text, "PORT") == 0) return ncclSuccess;
    for (int type = TT_PATH_LOC; type <= TT_PATH_SYS; type++) {
        bool network = type != TT_PATH_NVL && type != TT_PATH_NVB && type != TT_PATH_C2C;
        if (!network || strcmp(text, tt_path_type_name((enum tt_path_type)type)) != 0) continue;
        *level_out = (enum tt_path_type)type;
        return ncclSuccess;
    }
    return tt_fail(ncclInvalidUsage,
                   "NCCL_NET_MERGE_LEVEL: unknown level '%.64s' (accepted: LOC, PORT, PIX, PXB, "
                   "P2C, PXN, PHB, SYS)",
                   text);
}

static bool may_join(const struct merge *merge, int i, int j, enum tt_path_type level, bool rail)
{
    struct tt_xml_node *a = merge->net[i], *b = merge->net[j];
    int64_t own = tt_topo_int(a, "rail", -1);
    if (merge->apart[i][j]) return false;
    if (rail && (own < 0 || own != tt_topo_int(b, "rail", -1))) return false;
    return distance(a, b) <= level;
}

/* The group of the i-th NIC; `at` has its members' places. */
static struct group group_of(const struct merge *merge, int i, enum tt_path_type level, bool rail,
                             int at[MOST_MEMBERS])
{
    struct group group = {{merge->net[i]}, 1};
    at[0] = i;
    for (int j = i + 1; j < merge->count && merge->net[i]; j++) {
        if (!merge->net[j] || group.count == most_members(merge)) continue;
        if (!may_join(merge, i, j, level, rail)) continue;
        at[group.count] = j;
        group.net[group.count++] = merge->net[j];
    }
    return group;
}

/* From the beginning again after a refusal: its members are far from each other now. */
static ncclResult_t join_near(struct merge *merge, enum tt_path_type level)
{
    const char *policy = tt_param_str("NCCL_NET_MERGE_POLICY");
    bool rail = policy && strcmp(policy, "RAIL") == 0;
    ncclResult_t rc = ncclSuccess;
    for (int i = 0; i < merge->count && !rc; i++) {
        int at[MOST_MEMBERS];
        bool refused = false;
        struct group group = group_of(merge, i, level, rail, at);
        if (group.count < 2) continue;
        rc = unite(merge, &group, &refused);
        for (int k = 0; k < group.count; k++) {
            for (int m = 0; m < k && refused; m++)
                merge->apart[at[m]][at[k]] = true;
            if (!refused && k) merge->net[at[k]] = NULL;
        }
        if (!refused) merge->net[i] = NULL;
        if (refused) i = -1;
    }
    return rc;
}

/* By the variables. */
static ncclResult_t join_requested(struct merge *merge)
{
    const char *groups = tt_param_str("NCCL_NET_FORCE_MERGE");
    enum tt_path_type level;
    ncclResult_t rc = tt_topo_merge_level(&level);
    if (!rc && groups && *groups) rc = join_forced(merge, groups);
    return rc ? rc : join_near(merge, level);
}

/* As the rows say. */
static ncclResult_t join_remarked(struct merge *merge)
{
    ncclResult_t rc = ncclSuccess;
    for (int i = 0; i < merge->count && !rc; i++) {
        int64_t dev = merge->net[i] ? tt_topo_int(merge->net[i], "vdev", -1) : -1;
        struct group group = {.count = 0};
        for (int j = i; j < merge->count && dev >= 0; j++) {
            if (!merge->net[j] || tt_topo_int(merge->net[j], "vdev", -1) != dev) continue;
            if (group.count == MOST_MEMBERS) continue;
            group.net[group.count++] = merge->net[j];
            merge->net[j] = NULL;
        }
        if (group.count > 1) rc = join(merge, &group, (int)dev);
    }
    return rc;
}

static ncclResult_t with_nics(const char *file, struct tt_xml_node *root,
                              const struct tt_topo_joiner *joiner,
                              ncclResult_t (*act)(struct merge *))
{
    ncclResult_t rc = ncclSuccess;
    struct merge *merge = tt_calloc(1, sizeof(*merge));
    if (!merge) return tt_fail(ncclSystemError, "topology of %s: out of memory", file);
    merge->file = file;
    merge->root = root;
    merge->joiner = joiner;
    if (!collect(merge, root)) {
        rc = tt_fail(ncclInvalidUsage, "topology of %s: more than %d NICs cannot be merged", file,
                     MOST_NETS);
    }
    if (!rc) rc = act(merge);
    free(merge);
    return rc;
}

ncclResult_t tt_topo_merge(const char *file, struct tt_xml_node *root)
{
    const char *groups = tt_param_str("NCCL_NET_FORCE_MERGE");
    if (tt_xml_get(root, "vnics")) return with_nics(file, root, NULL, join_remarked);
    if ((!groups || !*groups) && !tt_param_is_set("NCCL_NET_MERGE_LEVEL")) return ncclSuccess;
    return with_nics(file, root, NULL, join_requested);
}

ncclResult_t tt_topo_join(struct tt_topo_file *file, const struct tt_topo_joiner *joiner)
{
    if (!set_number(file->root, "vnics", joiner->most))
        return tt_fail(ncclSystemError, "topology of %s: out of memory", file->name);
    return joiner->most > 1 ? with_nics(file->name, file->root, joiner, join_requested)
                            : ncclSuccess;
}

static int joined_below(const struct tt_xml_node *node, int dev, int *devs, int count)
{
    bool member = is(node, "net") && tt_topo_int(node, "vdev", -1) == dev;
    if (member && count < MOST_MEMBERS) {
        int at = count++, own = (int)tt_topo_int(node, "dev", -1);
        for (; at > 0 && devs[at - 1] > own; at--)
            devs[at] = devs[at - 1];
        devs[at] = own;
    }
    for (int k = 0; k < node->nchildren; k++)
        count = joined_below(node->children[k], dev, devs, count);
    return count;
}

int tt_topo_joined(const struct tt_topo_file *file, int dev, int devs[TT_TOPO_MEMBERS])
{
    return joined_below(file->root, dev, devs, 0);
}
