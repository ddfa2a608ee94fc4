/* The schema of machine files as a table, and the faults that a table cannot say. After this,
 * readers of the tree may rely on every required attribute being there and in range. */
#include "check.h"

#include "words.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/text/spelling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- elements and attributes ---- */

struct nesting {
    const char *element;
    const char *parents[2];
};

static const struct nesting nestings[] = {
    {"cpu", {"system", NULL}}, {"pci", {"cpu", "pci"}},    {"gpu", {"pci", NULL}},
    {"nvlink", {"gpu", NULL}}, {"c2c", {"gpu", NULL}},     {"nic", {"pci", "cpu"}},
    {"net", {"nic", NULL}},    {"pcilink", {"pci", NULL}},
};

enum kind { KIND_TEXT, KIND_INT, KIND_INT_OR_EMPTY, KIND_BUSID, KIND_HEX, KIND_FLOAT };

#define MOST INT32_MAX

struct rule {
    const char *element, *attr;
    enum kind kind;
    bool required;
    int64_t min, max;
};

static const struct rule rules[] = {
    {"cpu", "numaid", KIND_INT, true, -1, MOST},
    {"cpu", "host_hash", KIND_HEX, false, 0, 0},
    {"cpu", "arch", KIND_TEXT, true, 0, 0},
    {"cpu", "familyid", KIND_INT, false, 0, MOST},
    {"cpu", "modelid", KIND_INT, false, 0, MOST},
    {"pci", "busid", KIND_BUSID, true, 0, 0},
    {"pci", "class", KIND_HEX, true, 0, 0},
    {"pci", "link_speed", KIND_TEXT, true, 0, 0},
    {"pci", "link_width", KIND_INT_OR_EMPTY, true, 0, 1024},
    {"pci", "vendor", KIND_HEX, false, 0, 0},
    {"pci", "device", KIND_HEX, false, 0, 0},
    {"pci", "subsystem_vendor", KIND_HEX, false, 0, 0},
    {"pci", "subsystem_device", KIND_HEX, false, 0, 0},
    {"gpu", "dev", KIND_INT, true, 0, MOST},
    {"gpu", "sm", KIND_INT, true, 1, 10000},
    {"gpu", "gdr", KIND_INT, true, 0, 1},
    {"gpu", "rank", KIND_INT, false, 0, MOST},
    {"gpu", "mlopart", KIND_INT, false, -1, 7},
    {"nvlink", "target", KIND_BUSID, true, 0, 0},
    {"nvlink", "count", KIND_INT, true, 0, 1024},
    {"nvlink", "tclass", KIND_HEX, true, 0, 0},
    {"c2c", "bw", KIND_INT, true, 0, MOST},
    {"c2c", "count", KIND_INT, true, 0, 1024},
    {"pcilink", "target", KIND_BUSID, true, 0, 0},
    {"net", "dev", KIND_INT, false, 0, MOST},
    {"net", "speed", KIND_INT, false, -MOST, MOST},
    {"net", "latency", KIND_FLOAT, false, 0, 0},
    {"net", "port", KIND_INT, false, -1, MOST},
    {"net", "guid", KIND_HEX, false, 0, 0},
    {"net", "gdr", KIND_INT, false, 0, 1},
    {"net", "maxconn", KIND_INT, false, 0, MOST},
    {"net", "coll", KIND_INT, false, 0, 1},
    {"net", "net", KIND_INT, false, 0, 1},
    {"net", "gin", KIND_INT, false, 0, 1},
    {"net", "rma", KIND_INT, false, 0, 1},
    {"net", "rail", KIND_INT, false, -MOST, MOST},
    {"net", "plane", KIND_INT, false, -MOST, MOST},
};

#undef MOST

static bool knows_nesting(const struct tt_xml_node *node)
{
    for (size_t k = 0; k < TT_LEN(nestings); k++) {
        if (strcmp(nestings[k].element, node->name) != 0) continue;
        for (int p = 0; p < 2; p++) {
            const char *parent = nestings[k].parents[p];
            if (parent && strcmp(parent, node->parent->name) == 0) return true;
        }
    }
    return false;
}

/* "; did you mean nvlink?" of those that may stand there; "" for an element that is no slip of the
 * pen, as it is known elsewhere. */
static void name_near(const struct tt_xml_node *node, char *near, size_t bytes)
{
    char words[64] = "";
    size_t at = 0;
    near[0] = '\0';
    for (size_t k = 0; k < TT_LEN(nestings); k++) {
        if (strcmp(nestings[k].element, node->name) == 0) return;
        for (int p = 0; p < 2; p++) {
            const char *parent = nestings[k].parents[p];
            if (!parent || strcmp(parent, node->parent->name) != 0 || at >= sizeof(words)) continue;
            at += (size_t)snprintf(words + at, sizeof(words) - at, "%s,", nestings[k].element);
        }
    }
    tt_param_suggest(words, node->name, strlen(node->name), near, bytes);
}

static void prune(struct tt_topo_file *file, struct tt_xml_node *node)
{
    for (int k = 0; k < node->nchildren; k++) {
        struct tt_xml_node *child = node->children[k];
        if (knows_nesting(child)) {
            prune(file, child);
            continue;
        }
        char near[64];
        name_near(child, near, sizeof(near));
        tt_topo_note(&file->notes, file->name, child->line,
                     "element <%.64s> is not known inside <%.64s> and is skipped%s", child->name,
                     node->name, near);
        tt_xml_drop(node, k--);
    }
}

static ncclResult_t bad_value(const struct tt_topo_file *file, const struct tt_xml_node *node,
                              const struct rule *rule, const char *value)
{
    static const char *const wants[] = {"a text",   "a whole number",       "a whole number",
                                        "a bus id", "a hexadecimal number", "a finite number"};
    bool ranged = rule->kind == KIND_INT || rule->kind == KIND_INT_OR_EMPTY;
    if (ranged) {
        return tt_fail(ncclInvalidUsage,
                       "%s:%d: <%s> attribute %s: '%.64s' is out of range or not a number "
                       "(accepted: %lld to %lld)",
                       file->name, node->line, node->name, rule->attr, value, (long long)rule->min,
                       (long long)rule->max);
    }
    return tt_fail(ncclInvalidUsage, "%s:%d: <%s> attribute %s: bad %s: '%.64s' is not %s",
                   file->name, node->line, node->name, rule->attr, rule->attr, value,
                   wants[rule->kind]);
}

static bool value_ok(const struct rule *rule, const char *value)
{
    int64_t number = 0;
    uint64_t bits;
    double real;
    switch (rule->kind) {
    case KIND_TEXT: return true;
    case KIND_INT_OR_EMPTY:
        if (!value[0]) return true;
        return tt_word_int(value, &number) && number >= rule->min && number <= rule->max;
    case KIND_INT: return tt_word_int(value, &number) && number >= rule->min && number <= rule->max;
    case KIND_BUSID: return tt_word_busid(value, &bits);
    case KIND_HEX: return tt_word_hex(value, &bits);
    case KIND_FLOAT: return tt_word_float(value, &real) && real >= 0;
    }
    return false;
}

static ncclResult_t missing(const struct tt_topo_file *file, const struct tt_xml_node *node,
                            const char *attr)
{
    return tt_fail(ncclInvalidUsage, "%s:%d: <%s>: missing attribute %s", file->name, node->line,
                   node->name, attr);
}

static ncclResult_t check_cpu(struct tt_topo_file *file, const struct tt_xml_node *node)
{
    const char *vendor = tt_xml_get(node, "vendor");
    enum tt_topo_arch arch = tt_word_arch(tt_xml_get(node, "arch"));
    if (arch == TT_ARCH_NONE) {
        tt_topo_note(&file->notes, file->name, node->line,
                     "<cpu> arch '%.32s' is not known: no limit between its CPUs",
                     tt_xml_get(node, "arch"));
    }
    const char *affinity = tt_xml_get(node, "affinity");
    if (affinity && affinity[strspn(affinity, "0123456789abcdefABCDEF,")]) {
        tt_topo_note(&file->notes, file->name, node->line,
                     "<cpu> affinity '%.32s' is not hexadecimal words with commas and is ignored",
                     affinity);
    }
    if (arch != TT_ARCH_X86) return ncclSuccess;
    if (!vendor) return missing(file, node, "vendor");
    enum tt_topo_vendor known = tt_word_vendor(vendor);
    bool models = known == TT_VENDOR_INTEL || known == TT_VENDOR_ZHAOXIN;
    if (models && !tt_xml_get(node, "familyid")) return missing(file, node, "familyid");
    if (models && !tt_xml_get(node, "modelid")) return missing(file, node, "modelid");
    return ncclSuccess;
}

static void remark_pci(struct tt_topo_file *file, const struct tt_xml_node *node)
{
    bool known;
    const char *device_class = tt_xml_get(node, "class");
    (void)tt_word_role(device_class, &known);
    bool bridge = strncmp(device_class, "0x06", 4) == 0; /* of whatever kind */
    if (!known && !bridge) {
        tt_topo_note(&file->notes, file->name, node->line,
                     "<pci> class '%.32s' is not known and counts as a PCI switch", device_class);
    }
    const char *speed = tt_xml_get(node, "link_speed");
    (void)tt_word_link_units(speed, &known);
    if (!known && speed[0]) {
        tt_topo_note(&file->notes, file->name, node->line,
                     "<pci> link_speed '%.32s' is not known and counts as Gen3", speed);
    }
}

static void remark_net(struct tt_topo_file *file, const struct tt_xml_node *node)
{
    if (!tt_xml_get(node, "dev")) {
        tt_topo_note(&file->notes, file->name, node->line, "<net> without dev is ignored");
    }
    if (tt_xml_get(node, "speed") && tt_topo_int(node, "speed", 1) <= 0) {
        tt_topo_note(&file->notes, file->name, node->line,
                     "<net> speed %.32s is not known and counts as 10 Gb/s",
                     tt_xml_get(node, "speed"));
    }
}

/* What a partial file may leave open. */
static bool comes_later(const struct rule *rule)
{
    static const char *const names[] = {"arch", "class", "link_speed", "link_width",
                                        "dev",  "sm",    "gdr",        "tclass"};
    bool later = false;
    for (size_t k = 0; k < TT_LEN(names) && !later; k++)
        later = strcmp(rule->attr, names[k]) == 0;
    return later;
}

static ncclResult_t check_values(const struct tt_topo_file *file, const struct tt_xml_node *node,
                                 bool partial)
{
    for (size_t k = 0; k < TT_LEN(rules); k++) {
        if (strcmp(rules[k].element, node->name) != 0) continue;
        const char *value = tt_xml_get(node, rules[k].attr);
        bool later = partial && comes_later(&rules[k]);
        if (!value && rules[k].required && !later) return missing(file, node, rules[k].attr);
        if (value && !value_ok(&rules[k], value)) return bad_value(file, node, &rules[k], value);
    }
    return ncclSuccess;
}

static ncclResult_t check_nodes(struct tt_topo_file *file, const struct tt_xml_node *node)
{
    ncclResult_t rc = check_values(file, node, false);
    if (!rc && strcmp(node->name, "cpu") == 0) rc = check_cpu(file, node);
    if (!rc && strcmp(node->name, "pci") == 0) remark_pci(file, node);
    if (!rc && strcmp(node->name, "net") == 0) remark_net(file, node);
    for (int k = 0; k < node->nchildren && !rc; k++)
        rc = check_nodes(file, node->children[k]);
    return rc;
}

/* ---- numbers that may occur once ---- */

struct entry {
    uint64_t host; /* files of several hosts: numbers are per host */
    uint64_t key;
    const struct tt_xml_node *node;
};

struct entries {
    struct entry *all; /* owned */
    size_t count, capacity;
    bool failed;
};

static void append(struct entries *entries, struct entry entry)
{
    if (entries->count == entries->capacity) {
        size_t capacity = entries->capacity ? 2 * entries->capacity : 64;
        struct entry *grown = realloc(entries->all, capacity * sizeof(*grown));
        entries->failed = entries->failed || !grown;
        if (!grown) return;
        entries->all = grown;
        entries->capacity = capacity;
    }
    entries->all[entries->count++] = entry;
}

static uint64_t host_of(const struct tt_xml_node *node)
{
    const struct tt_xml_node *cpu = tt_xml_above(node, "cpu");
    const char *text = cpu ? tt_xml_get(cpu, "host_hash") : NULL;
    uint64_t host = 0;
    return text && tt_word_hex(text, &host) ? host : 0;
}

struct number { /* what must be unique: an attribute of an element */
    const char *element, *attr, *what;
};

static void collect(const struct tt_xml_node *node, const struct number *number,
                    struct entries *entries)
{
    const char *value =
        strcmp(node->name, number->element) == 0 ? tt_xml_get(node, number->attr) : NULL;
    if (value) {
        bool busid = strcmp(number->attr, "busid") == 0;
        uint64_t key = busid ? tt_topo_busid(node, number->attr)
                             : (uint64_t)tt_topo_int(node, number->attr, 0);
        append(entries, (struct entry){host_of(node), key, node});
    }
    for (int k = 0; k < node->nchildren; k++)
        collect(node->children[k], number, entries);
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    if (x->host != y->host) return x->host < y->host ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->node->line > y->node->line) - (x->node->line < y->node->line);
}

static ncclResult_t gather(const struct tt_topo_file *file, const struct number *number,
                           struct entries *entries)
{
    collect(file->root, number, entries);
    if (entries->failed) return tt_fail(ncclSystemError, "%s: out of memory", file->name);
    if (entries->count) qsort(entries->all, entries->count, sizeof(struct entry), compare_entries);
    return ncclSuccess;
}

static ncclResult_t check_unique(const struct tt_topo_file *file, const struct number *number)
{
    struct entries entries = {0};
    ncclResult_t rc = gather(file, number, &entries);
    for (size_t k = 1; k < entries.count && !rc; k++) {
        const struct entry *one = &entries.all[k - 1];
        const struct entry *two = &entries.all[k];
        bool same = one->host == two->host && one->key == two->key;
        /* Several gpu rows of one pci element are ranks of one device. */
        bool shared = strcmp(number->what, "dev") == 0 && one->node->parent == two->node->parent;
        if (!same || shared) continue;
        rc = tt_fail(ncclInvalidUsage, "%s:%d: duplicate %s %.64s, first seen in line %d",
                     file->name, two->node->line, number->what, tt_xml_get(two->node, number->attr),
                     one->node->line);
    }
    free(entries.all);
    return rc;
}

/* ---- links ---- */

struct pair { /* an NVLink row from one known GPU to another */
    uint64_t host, from, to;
    const struct tt_xml_node *row;
};

struct pairs {
    struct pair *all; /* owned */
    size_t count;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a;
    const struct pair *y = b;
    if (x->host != y->host) return x->host < y->host ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

static bool known_device(const struct entries *devices, uint64_t host, uint64_t busid)
{
    struct tt_xml_node last = {.line = INT32_MAX};
    struct entry wanted = {host, busid, &last};
    size_t low = 0;
    size_t high = devices->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_entries(&devices->all[middle], &wanted) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && devices->all[low - 1].host == host && devices->all[low - 1].key == busid;
}

/* Rows between GPUs that are in the file into pairs (room for all elements is there). */
static void collect_pairs(struct tt_topo_file *file, const struct tt_xml_node *node,
                          const struct entries *devices, struct pairs *pairs)
{
    for (int k = 0; k < node->nchildren; k++) {
        collect_pairs(file, node->children[k], devices, pairs);
    }
    if (strcmp(node->name, "nvlink") != 0) return;
    if (tt_word_role(tt_xml_get(node, "tclass"), NULL) != TT_ROLE_GPU) return;
    uint64_t host = host_of(node);
    uint64_t target = tt_topo_busid(node, "target");
    if (!known_device(devices, host, target)) {
        tt_topo_note(&file->notes, file->name, node->line,
                     "<nvlink> target %.64s is not in the file; the row is ignored",
                     tt_xml_get(node, "target"));
        return;
    }
    uint64_t own = tt_topo_busid(tt_xml_above(node, "pci"), "busid");
    pairs->all[pairs->count++] = (struct pair){host, own, target, node};
}

static int count_nodes(const struct tt_xml_node *node)
{
    int count = 1;
    for (int k = 0; k < node->nchildren; k++)
        count += count_nodes(node->children[k]);
    return count;
}

/* " (<name>:<line>: warning: ...)": the first row that was left out, from `notes`; "" without. */
static void name_left_out(const char *notes, char *text, size_t text_bytes)
{
    text[0] = '\0';
    for (const char *at = notes; at && *at; at += strcspn(at, "\n"), at += *at == '\n') {
        const size_t len = strcspn(at, "\n");
        char line[512];
        snprintf(line, sizeof(line), "%.*s", (int)len, at);
        if (!strstr(line, "is skipped") && !strstr(line, "is ignored")) continue;
        snprintf(text, text_bytes, " (%s)", line);
        return;
    }
}

static int64_t links_of(const struct pairs *pairs, const struct pair *way)
{
    int64_t links = 0;
    for (size_t k = 0; k < pairs->count; k++) {
        if (compare_pairs(&pairs->all[k], way) == 0)
            links += tt_topo_int(pairs->all[k].row, "count", 0);
    }
    return links;
}

/* Each way has as many links; said once, at the first row of the two. */
static void remark_counts(struct tt_topo_file *file, const struct pairs *pairs, size_t k)
{
    const struct pair *pair = &pairs->all[k];
    const struct pair back = {pair->host, pair->to, pair->from, NULL};
    const bool again = k > 0 && compare_pairs(pair, &pairs->all[k - 1]) == 0;
    if (again || pair->from >= pair->to) return;
    const int64_t links = links_of(pairs, pair), links_back = links_of(pairs, &back);
    if (links == links_back) return;
    tt_topo_note(&file->notes, file->name, pair->row->line,
                 "<nvlink> from %.64s to %.64s: count %lld, the way back has %lld",
                 tt_xml_get(tt_xml_above(pair->row, "pci"), "busid"),
                 tt_xml_get(pair->row, "target"), (long long)links, (long long)links_back);
}

static ncclResult_t check_nvlinks(struct tt_topo_file *file, const struct entries *devices)
{
    ncclResult_t rc = ncclSuccess;
    struct pairs pairs = {.all = calloc((size_t)count_nodes(file->root), sizeof(struct pair))};
    if (!pairs.all) return tt_fail(ncclSystemError, "%s: out of memory", file->name);
    collect_pairs(file, file->root, devices, &pairs);
    qsort(pairs.all, pairs.count, sizeof(struct pair), compare_pairs);
    for (size_t k = 0; k < pairs.count && !rc; k++) {
        const struct pair *pair = &pairs.all[k];
        struct pair back = {pair->host, pair->to, pair->from, NULL};
        if (bsearch(&back, pairs.all, pairs.count, sizeof(back), compare_pairs)) {
            remark_counts(file, &pairs, k);
            continue;
        }
        char left_out[560];
        name_left_out(file->notes.text, left_out, sizeof(left_out));
        rc = tt_fail(ncclInvalidUsage, "%s:%d: <nvlink> from %.64s to %.64s: no reverse link%s",
                     file->name, pair->row->line,
                     tt_xml_get(tt_xml_above(pair->row, "pci"), "busid"),
                     tt_xml_get(pair->row, "target"), left_out);
    }
    free(pairs.all);
    return rc;
}

static void remark_pcilinks(struct tt_topo_file *file, const struct tt_xml_node *node,
                            const struct entries *devices)
{
    for (int k = 0; k < node->nchildren; k++)
        remark_pcilinks(file, node->children[k], devices);
    if (strcmp(node->name, "pcilink") != 0) return;
    uint64_t target = tt_topo_busid(node, "target");
    const char *text = tt_xml_get(node, "target");
    if (target == tt_topo_busid(node->parent, "busid")) {
        tt_topo_note(&file->notes, file->name, node->line,
                     "<pcilink> of %.64s to itself is ignored", text);
    } else if (!known_device(devices, host_of(node), target)) {
        tt_topo_note(&file->notes, file->name, node->line,
                     "<pcilink> target %.64s is not in the file; the row is ignored", text);
    }
}

static ncclResult_t check_links(struct tt_topo_file *file)
{
    static const struct number busids = {"pci", "busid", "busid"};
    struct entries devices = {0};
    ncclResult_t rc = gather(file, &busids, &devices);
    if (!rc) rc = check_nvlinks(file, &devices);
    if (!rc) remark_pcilinks(file, file->root, &devices);
    free(devices.all);
    return rc;
}

/* ---- the whole ---- */

static ncclResult_t check_root(const struct tt_topo_file *file)
{
    const struct tt_xml_node *root = file->root;
    int64_t number = 0;
    if (strcmp(root->name, "system") != 0) {
        return tt_fail(ncclInvalidUsage, "%s:%d: no system element: the file begins with <%.64s>",
                       file->name, root->line, root->name);
    }
    const char *version = tt_xml_get(root, "version");
    if (!version) return missing(file, root, "version");
    if (tt_word_int(version, &number) && number == 1) return ncclSuccess;
    return tt_fail(ncclInvalidUsage, "%s:%d: <system> version %.32s is not supported; 1 is",
                   file->name, root->line, version);
}

static ncclResult_t check_partial(const struct tt_topo_file *file, const struct tt_xml_node *node)
{
    ncclResult_t rc = check_values(file, node, true);
    for (int k = 0; k < node->nchildren && !rc; k++)
        rc = check_partial(file, node->children[k]);
    return rc;
}

ncclResult_t tt_topo_partial_check(struct tt_topo_file *file)
{
    ncclResult_t rc = check_root(file);
    if (rc) return rc;
    prune(file, file->root);
    return check_partial(file, file->root);
}

ncclResult_t tt_topo_file_check(struct tt_topo_file *file)
{
    static const struct number numbers[] = {
        {"cpu", "numaid", "numaid"}, {"pci", "busid", "busid"}, {"gpu", "dev", "dev"},
        {"gpu", "rank", "rank"},     {"net", "dev", "net dev"},
    };
    ncclResult_t rc = check_root(file);
    if (rc) return rc;
    prune(file, file->root);
    rc = check_nodes(file, file->root);
    for (size_t k = 0; k < TT_LEN(numbers) && !rc; k++)
        rc = check_unique(file, &numbers[k]);
    return rc ? rc : check_links(file);
}
