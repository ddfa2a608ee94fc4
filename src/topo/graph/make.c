/* From a machine file to a graph with paths: copies of the machine for an NVLink domain, the order
 * of a running communicator if asked, then nodes, then paths. */
#include "make.h"

#include "build.h"
#include "env.h"
#include "paths.h"
#include "system.h"

#include "base/error.h"
#include "topo/file/file.h"
#include "topo/file/fuse.h"
#include "topo/file/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t count_gpus(const struct tt_xml_node *node)
{
    int64_t count = strcmp(node->name, "gpu") == 0 && tt_xml_get(node, "rank") ? 1 : 0;
    for (int k = 0; k < node->nchildren; k++)
        count += count_gpus(node->children[k]);
    return count;
}

static bool set_number(struct tt_xml_node *node, const char *key, const char *format,
                       uint64_t value)
{
    char text[32];
    if (strcmp(format, "hex") == 0) {
        (void)snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
    } else {
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    }
    return tt_xml_set(node, key, text);
}

struct copy { /* one host of a domain */
    uint64_t host;
    int64_t gpus_before;
};

static bool move_guid(struct tt_xml_node *net, uint64_t host)
{
    uint64_t guid = 0;
    if (!tt_xml_get(net, "guid")) return true;
    (void)tt_word_hex(tt_xml_get(net, "guid"), &guid);
    return set_number(net, "guid", "hex", guid + (host << 56));
}

bool tt_topo_distinct(struct tt_xml_node *node, int index)
{
    bool done = strcmp(node->name, "net") != 0 || move_guid(node, (uint64_t)index);
    for (int k = 0; k < node->nchildren && done; k++)
        done = tt_topo_distinct(node->children[k], index);
    return done;
}

/* Ranks, guids and host hash of one more host. */
static bool renumber(struct tt_xml_node *node, const struct copy *copy)
{
    bool done = true;
    if (strcmp(node->name, "cpu") == 0) {
        done = set_number(node, "host_hash", "hex", copy->host + 1);
    } else if (strcmp(node->name, "gpu") == 0 && tt_xml_get(node, "rank")) {
        int64_t rank = tt_topo_int(node, "rank", 0) + copy->gpus_before;
        done = set_number(node, "rank", "decimal", (uint64_t)rank);
    } else if (strcmp(node->name, "net") == 0) {
        done = move_guid(node, copy->host);
    }
    for (int k = 0; k < node->nchildren && done; k++)
        done = renumber(node->children[k], copy);
    return done;
}

static bool append_host(struct tt_xml_node *all, const struct tt_xml_node *one,
                        const struct copy *copy)
{
    for (int k = 0; k < one->nchildren; k++) {
        struct tt_xml_node *child = tt_xml_copy(one->children[k]);
        bool added = child && renumber(child, copy) && tt_xml_adopt(all, child);
        if (added) continue;
        tt_xml_free(child);
        return false;
    }
    return true;
}

/* ---- ranks: 0 to n - 1, whatever numbers the file has (a dump of a second host begins later) ----
 */

struct rows { /* gpu rows with a rank, ascending; equal ones in the order of the file */
    struct tt_xml_node **row; /* owned */
    int count;
};

static void collect_rows(struct tt_xml_node *node, struct rows *rows)
{
    if (strcmp(node->name, "gpu") == 0 && tt_xml_get(node, "rank")) {
        int64_t rank = tt_topo_int(node, "rank", 0);
        int at = rows->count++;
        for (; at > 0 && tt_topo_int(rows->row[at - 1], "rank", 0) > rank; at--)
            rows->row[at] = rows->row[at - 1];
        rows->row[at] = node;
    }
    for (int k = 0; k < node->nchildren; k++)
        collect_rows(node->children[k], rows);
}

/* False when memory is short. */
static bool count_anew(struct tt_xml_node *root)
{
    struct rows rows = {.row = calloc((size_t)count_gpus(root) + 1, sizeof(struct tt_xml_node *))};
    bool done = rows.row != NULL;
    if (done) collect_rows(root, &rows);
    for (int k = 0; k < rows.count && done; k++) {
        if (tt_topo_int(rows.row[k], "rank", 0) != k)
            done = set_number(rows.row[k], "rank", "decimal", (uint64_t)k);
    }
    free(rows.row);
    return done;
}

/* All hosts of a domain; NULL when memory is short. Takes `one` over. */
static struct tt_xml_node *copies(struct tt_xml_node *one, int hosts)
{
    struct tt_xml_node *all = tt_xml_add(NULL, "system");
    int64_t gpus = count_gpus(one);
    bool complete = all != NULL;
    for (int host = 0; host < hosts && complete; host++) {
        struct copy copy = {(uint64_t)host, host * gpus};
        complete = append_host(all, one, &copy);
    }
    tt_xml_free(one);
    if (complete) return all;
    tt_xml_free(all);
    return NULL;
}

/* The elements to build from. NICs are joined before ranks' parts are fused, as in each rank. */
static ncclResult_t elements(const struct tt_topo_file *file, const struct tt_topo_options *options,
                             struct tt_xml_node **root_out)
{
    struct tt_xml_node *root = tt_xml_copy(file->root);
    if (root && !options->as_is && !count_anew(root)) {
        tt_xml_free(root);
        root = NULL;
    }
    ncclResult_t rc = root && !options->as_is ? tt_topo_merge(file->name, root) : ncclSuccess;
    if (!rc && root && options->fused) {
        struct tt_xml_node *fused = tt_topo_fuse(root);
        tt_xml_free(root);
        root = fused;
    }
    if (!rc && root && options->hosts > 1) root = copies(root, options->hosts);
    if (!rc && !root) rc = tt_fail(ncclSystemError, "topology of %s: out of memory", file->name);
    if (rc) tt_xml_free(root);
    if (!rc) *root_out = root;
    return rc;
}

ncclResult_t tt_topo_system_make(const struct tt_topo_file *file,
                                 const struct tt_topo_options *options,
                                 struct tt_topo_system **system_out)
{
    struct tt_topo_system *system = calloc(1, sizeof(*system));
    struct tt_xml_node *root = NULL;
    ncclResult_t rc = ncclSuccess;
    if (!system) rc = tt_fail(ncclSystemError, "topology of %s: out of memory", file->name);
    if (!rc) rc = elements(file, options, &root);
    if (rc) goto out;
    rc = tt_topo_env_read(&system->env);
    if (rc) goto out;
    rc = tt_topo_build(system, root);
    if (rc) goto out;
    rc = tt_topo_paths_make(system);
    if (rc) goto out;
    *system_out = system;
    system = NULL;
out:
    tt_xml_free(root);
    tt_topo_system_free(system);
    return rc;
}
