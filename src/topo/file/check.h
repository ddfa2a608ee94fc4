/* The schema of machine files. Private to the room. */
#pragma once

#include "file.h"

/* Drop what the schema does not know (with a warning), then check the rest: attributes that are
 * missing or out of range, numbers given twice, links without the way back.
 * Errors: ncclInvalidUsage "NAME:LINE: ...". */
ncclResult_t tt_topo_file_check(struct tt_topo_file *file);

/* The same without what tt_topo_complete() adds, and without what only whole files can show. */
ncclResult_t tt_topo_partial_check(struct tt_topo_file *file);
