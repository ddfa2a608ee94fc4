/* Devices as /sys describes them: attributes, and the path from a PCI device up to its CPU. With
 * hwloc's variable HWLOC_FSROOT a recorded tree is read in place of /. Private to the room. Nothing
 * here fails: what is missing or not permitted is unknown. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { TT_SYSFS_TEXT = 256, TT_SYSFS_LEVELS = 32 };

struct tt_sysfs_chain { /* PCI elements from a device up to its CPU, one for every two levels */
    char path[TT_SYSFS_LEVELS][PATH_MAX]; /* [0]: the device itself */
    int count;
    int numa; /* of the root; -1 unknown */
};

/* Prefix of every path: HWLOC_FSROOT, or "". */
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
/* The lower speed and width of a PCI device and of the port above it. */
void tt_sysfs_link(const char *path, struct tt_sysfs_link *link_out);

struct tt_sysfs_cpu { /* in the form of machine files; family and model: "0" when unknown */
    char arch[TT_SYSFS_TEXT], vendor[TT_SYSFS_TEXT], family[TT_SYSFS_TEXT], model[TT_SYSFS_TEXT];
};
void tt_sysfs_cpu(struct tt_sysfs_cpu *cpu_out);

/* Call `call` for every name in ROOT/directory, sorted, with numbers in names compared by value. */
void tt_sysfs_each(const char *directory, void (*call)(void *context, const char *name),
                   void *context);
