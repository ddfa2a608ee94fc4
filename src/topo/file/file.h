/* A machine file: its elements, and what was remarked about them. Private to the room; topo.h has
 * the functions that others may call. */
#pragma once

#include "notes.h"
#include "xml.h"

#include "topo/topo.h"

struct tt_topo_file {
    char *name; /* owned; stands for the file in messages */
    struct tt_xml_node *root;
    struct tt_topo_notes notes;
};

/* Drop what the schema does not know (with a warning), then check the rest: attributes that are
 * missing or out of range, numbers given twice, links without the way back.
 * Errors: ncclInvalidUsage "NAME:LINE: ...". */
ncclResult_t tt_topo_file_check(struct tt_topo_file *file);

/* The same without what tt_topo_complete() adds, and without what only whole files can show. */
ncclResult_t tt_topo_draft_check(struct tt_topo_file *file);

/* Whole content of a file, at most one byte more than a document may have; *text_out is the
 * caller's. Errors: ncclSystemError naming the file. */
ncclResult_t tt_topo_file_text(const char *path, char **text_out, size_t *bytes_out);

/* Attribute as number; only for files that were checked. */
int64_t tt_topo_int(const struct tt_xml_node *node, const char *key, int64_t fallback);
uint64_t tt_topo_busid(const struct tt_xml_node *node, const char *key);

/* What a run with one process per GPU has after all ranks gave their part: rank by rank, own GPU
 * and all NICs, merged. NULL when memory is short. */
struct tt_xml_node *tt_topo_fuse(const struct tt_xml_node *root);
/* Make host number `index` of an NVLink domain distinct: guids of equal files differ by host.
 * False when memory is short. */
bool tt_topo_distinct(struct tt_xml_node *node, int index);
