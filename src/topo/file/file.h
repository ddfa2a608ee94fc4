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

/* Whole content of a file, at most one byte more than a document may have; *text_out is the
 * caller's. Errors: ncclSystemError naming the file. */
ncclResult_t tt_topo_file_text(const char *path, char **text_out, size_t *bytes_out);
