/* A tree of elements and attributes, as machine and graph files are. Text between elements is not
 * kept. Private to the room. */
#pragma once

#include "notes.h"

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TT_XML_ATTRS = 16,        /* attributes of an element that are kept */
    TT_XML_VALUE_BYTES = 254, /* longest value, with the final zero */
    TT_XML_DEPTH = 512,
    TT_XML_ELEMENTS = 65536,
    TT_XML_FILE_BYTES = 16 << 20,
};

struct tt_xml_attr {
    char *key, *value; /* owned */
};

struct tt_xml_node {
    char *name; /* owned */
    int line;   /* of its start; 0: not from a file */
    struct tt_xml_node *parent;
    struct tt_xml_node **children; /* owned, in order */
    int nchildren, capacity;
    struct tt_xml_attr attrs[TT_XML_ATTRS];
    int nattrs;
    bool kept; /* scratch of trimming: not to be removed */
};

/* Parse a document. name: its name in messages.
 * Errors: ncclInvalidUsage "NAME:LINE: ..." for anything that is not well-formed, has a DOCTYPE or
 * is beyond the limits above; ncclSystemError when memory is short. */
ncclResult_t tt_xml_parse(const char *name, const char *text, size_t text_bytes,
                          struct tt_topo_notes *notes, struct tt_xml_node **root_out);
void tt_xml_free(struct tt_xml_node *node); /* with its subtree; accepts NULL */

/* Value of an attribute, NULL when absent. */
const char *tt_xml_get(const struct tt_xml_node *node, const char *key);
/* Set or replace. False when memory is short or the element is full. */
bool tt_xml_set(struct tt_xml_node *node, const char *key, const char *value);
/* Add a new last child. name is copied. NULL: out of memory. */
struct tt_xml_node *tt_xml_add(struct tt_xml_node *parent, const char *name);
/* Deep copy; NULL when memory is short. */
struct tt_xml_node *tt_xml_copy(const struct tt_xml_node *node);
/* Make `child`, which has no parent, the last child of `parent`. False: out of memory. */
bool tt_xml_adopt(struct tt_xml_node *parent, struct tt_xml_node *child);
/* Remove child number `index` and free it. */
void tt_xml_drop(struct tt_xml_node *parent, int index);
/* The node itself or its nearest ancestor of that name; NULL: none. */
const struct tt_xml_node *tt_xml_above(const struct tt_xml_node *node, const char *name);

/* The document as text, two blanks per level. Caller frees. NULL when memory is short. */
char *tt_xml_print(const struct tt_xml_node *root);
