/* A machine file: its elements, and warnings about them. Private to the room; topo.h has the public
 * functions. */
#pragma once

#include "notes.h"
#include "xml.h"

#include "topo/topo.h"

struct tt_topo_file {
    char *name; /* owned; name of the file in messages */
    struct tt_xml_node *root;
    struct tt_topo_notes notes;
};

/* Read a whole file, but at most one byte more than TT_XML_FILE_BYTES. The caller owns *text_out.
 * Errors: ncclSystemError naming the file. */
ncclResult_t tt_topo_file_text(const char *path, char **text_out, size_t *bytes_out);
