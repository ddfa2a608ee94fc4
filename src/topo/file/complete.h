/* Partial files: machine files that say only what detection cannot see. A communicator completes
 * them with the devices that take part and with what the running machine tells of them. Source:
 * spec topology, section 1.4. */
#pragma once

#include "topo/topo.h"

struct tt_topo_device { /* a rank's GPU */
    const char *bus_id; /* borrowed */
    int number;         /* among the host's devices */
    int cc;             /* compute capability, times ten */
};

struct tt_topo_nic {         /* a device of a network plugin */
    const char *name, *path; /* borrowed; directory under /sys, NULL: none */
    uint64_t guid;
    int number, mbps, port, max_connections;
    int rail, plane; /* -1: undefined */
    float latency_usec;
    bool gdr; /* reaches GPU memory */
};

struct tt_topo_local { /* what takes part on this host; all borrowed */
    const struct tt_topo_device *devices;
    int ndevices;
    const struct tt_topo_nic *nics; /* NULL: the file's own NICs stay as they are */
    int nnics;
};

/* Read a file of which attributes, GPUs and NICs may be missing. Errors: as tt_topo_file_parse()
 * and tt_topo_file_read(), but for what tt_topo_complete() adds. */
ncclResult_t tt_topo_partial_parse(const char *name, const char *text, size_t text_bytes,
                                   struct tt_topo_file **file_out);
ncclResult_t tt_topo_partial_read(const char *path, struct tt_topo_file **file_out);

/* Add devices and NICs that the file does not have, below the PCI elements that /sys knows; fill
 * attributes that are missing; take out NICs that the plugin does not know. Afterwards the file is
 * checked in full: errors as tt_topo_file_parse(). Remarks go to the file's warnings.
 * HWLOC_FSROOT reads a recorded tree, which then also has the last word on classes. Any thread. */
ncclResult_t tt_topo_complete(struct tt_topo_file *file, const struct tt_topo_local *local);
