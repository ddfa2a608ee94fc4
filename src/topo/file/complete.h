/* Partial files: machine files that say only what detection cannot see. A communicator completes
 * them with the devices that take part and with what the running machine says of them. Source:
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

enum { TT_TOPO_MEMBERS = 8 }; /* NICs that one virtual NIC has at most */

/* Who joins NICs to virtual ones: a network plugin. */
struct tt_topo_joiner {
    int most; /* in one; 0: it does not join any */
    /* One device of those with the numbers `devs`. False: not of these. */
    bool (*make)(void *arg, const int *devs, int count, int *dev_out, int *mbps_out);
    void *arg;
};

/* Decide which NICs of a completed file become one (NCCL_NET_FORCE_MERGE, NCCL_NET_MERGE_LEVEL, by
 * default ports of one adapter), and have them made. The file keeps them as they are, with a remark
 * that counts when a system is built of it. Errors: ncclInvalidUsage naming the variable. */
ncclResult_t tt_topo_join(struct tt_topo_file *file, const struct tt_topo_joiner *joiner);
/* The numbers of the NICs that were joined to `dev` in the file, in order; how many. 0: none. */
int tt_topo_joined(const struct tt_topo_file *file, int dev, int devs[TT_TOPO_MEMBERS]);

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
