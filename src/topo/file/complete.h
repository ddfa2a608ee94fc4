/* Partial files: machine files that contain only what cannot be detected. A communicator completes
 * them with its devices and with what is detected on the running machine. Source: spec topology,
 * section 1.4. */
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

struct tt_topo_local { /* the communicator's devices on this host; all borrowed */
    const struct tt_topo_device *devices;
    int ndevices;
    const struct tt_topo_nic *nics; /* NULL: the file's own NICs stay as they are */
    int nnics;
};

enum { TT_TOPO_MEMBERS = 8 }; /* most NICs of a virtual NIC */

/* Makes virtual NICs: a network plugin's makeVDevice. */
struct tt_topo_joiner {
    int most; /* NICs in one; 0: it makes none */
    /* Make one device of those with the numbers `devs`. False: not possible. */
    bool (*make)(void *arg, const int *devs, int count, int *dev_out, int *mbps_out);
    void *arg;
};

/* Decide which NICs of a completed file are merged (NCCL_NET_FORCE_MERGE, NCCL_NET_MERGE_LEVEL; by
 * default the ports of one adapter), and have the virtual NICs made. The file keeps the NICs and
 * gets a mark for tt_topo_merge(). Errors: ncclInvalidUsage naming the variable. */
ncclResult_t tt_topo_join(struct tt_topo_file *file, const struct tt_topo_joiner *joiner);
/* Set devs to the numbers of the NICs that were merged into `dev`, in order. Returns their number.
 */
int tt_topo_joined(const struct tt_topo_file *file, int dev, int devs[TT_TOPO_MEMBERS]);

/* Read a file of which attributes, GPUs and NICs may be missing. Errors: as tt_topo_file_parse()
 * and tt_topo_file_read(), but for what tt_topo_complete() adds. */
ncclResult_t tt_topo_partial_parse(const char *name, const char *text, size_t text_bytes,
                                   struct tt_topo_file **file_out);
ncclResult_t tt_topo_partial_read(const char *path, struct tt_topo_file **file_out);

/* Add devices and NICs that the file lacks, below PCI elements from /sys; fill missing attributes;
 * remove NICs that the plugin does not have. Then the whole file is checked: errors as
 * tt_topo_file_parse(). Warnings are added to the file's. With HWLOC_FSROOT a recorded tree is
 * read, whose device classes replace the file's. Any thread. */
ncclResult_t tt_topo_complete(struct tt_topo_file *file, const struct tt_topo_local *local);
