/* What the CUDA faces need of the host device beside device.h: errors, host memory, memory facts.
 * Results are CUDA's numbers; none of these sets the thread's last error, the faces do. */
#pragma once

#include "device/device.h"

#pragma GCC visibility push(default)

/* ---- the thread's last error ---- */
int tuttiHostErrorSet(int error); /* stores it unless 0; returns it */
int tuttiHostErrorPeek(void);
int tuttiHostErrorGet(void); /* and resets */

/* ---- memory ---- */
/* Page-aligned memory that every device reaches. bytes 0: NULL for pinned, 1 for managed. */
int tuttiHostMallocHost(size_t bytes, unsigned flags, bool managed, void **ptr_out);
int tuttiHostFreeHost(void *ptr); /* base of pinned memory, or NULL */
int tuttiHostHostFlags(const void *ptr, unsigned *flags);
int tuttiHostMemInfo(int device, size_t *free_bytes, size_t *total_bytes);

#pragma GCC visibility pop
