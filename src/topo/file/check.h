/* The schema of machine files. Private to the room. */
#pragma once

#include "file.h"

/* Drop unknown elements and attributes (with a warning), then check the rest: missing attributes,
 * values out of range, duplicate numbers, links without a link in the other direction.
 * Errors: ncclInvalidUsage "NAME:LINE: ...". */
ncclResult_t tt_topo_file_check(struct tt_topo_file *file);

/* The same for a partial file: attributes that tt_topo_complete() adds may be missing, and checks
 * that need a whole file are left out. */
ncclResult_t tt_topo_partial_check(struct tt_topo_file *file);
