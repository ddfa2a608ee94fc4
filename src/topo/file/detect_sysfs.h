/* What the kernel says of devices: texts under /sys, and the way from a PCI device up to its CPU.
 * HWLOC_FSROOT, hwloc's variable, names another root, so that recorded trees can be read. Private
 * to the room. Nothing here fails: what is missing or forbidden reads as unknown. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { TT_SYSFS_TEXT = 256, TT_SYSFS_LEVELS = 32 };

struct tt_sysfs_chain { /* PCI elements from a device up to below its CPU, one per two levels */
    char path[TT_SYSFS_LEVELS][PATH_MAX]; /* [0]: the device itself */
    int count;
    int numa; /* of the root; -1 unknown */
};

/* Root in front of every path, "" without. */
const char *tt_sysfs_root(void);
/* First line of directory/name into `text`, without the newline; "" when it cannot be read. */
void tt_sysfs_text(const char *directory, const char *name, char text[TT_SYSFS_TEXT]);
long tt_sysfs_number(const char *directory, const char *name, long fallback);
/* Real path of ROOT/relative, false when there is none. */
bool tt_sysfs_real(const char *relative, char path[PATH_MAX]);
bool tt_sysfs_is_pci(const char *path);
bool tt_sysfs_is_busid(const char *name);
/* chain_out  some 128 KiB: not for the stack. False when path is no PCI device. */
bool tt_sysfs_chain(const char *path, struct tt_sysfs_chain *chain_out);
struct tt_sysfs_link {
    char speed[TT_SYSFS_TEXT]; /* "16.0 GT/s PCIe"; "" unknown */
    long width;                /* lanes; 0 unknown */
};
/* The smaller of what a PCI device and the port above it can do. */
void tt_sysfs_link(const char *path, struct tt_sysfs_link *link_out);

struct tt_sysfs_cpu { /* as machine files have it; family and model "0" when unknown */
    char arch[TT_SYSFS_TEXT], vendor[TT_SYSFS_TEXT], family[TT_SYSFS_TEXT], model[TT_SYSFS_TEXT];
};
void tt_sysfs_cpu(struct tt_sysfs_cpu *cpu_out);

/* Call for every name in ROOT/directory, names in order, numbers in them by value. */
void tt_sysfs_each(const char *directory, void (*call)(void *context, const char *name),
                   void *context);
