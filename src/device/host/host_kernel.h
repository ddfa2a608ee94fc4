/* Kernels and device variables that compiled programs register, and the host implementations that
 * stand in for kernels. Results are CUDA's numbers. Any thread; registration may come before main()
 * and starts nothing. */
#pragma once

#include "device/device.h"

#pragma GCC visibility push(default)

struct tt_kernel; /* a registered kernel: its address is CUDA's function and kernel handle */

/* A module is what one translation unit registers, with its device code or NULL, which must live as
 * long; Close frees it with all its entries. NULL when out of memory. Ready: all is registered, so
 * variables get what the device code says that they start with. */
void *tuttiHostModuleOpen(const void *code);
void tuttiHostModuleReady(void *module);
void tuttiHostModuleClose(void *module); /* accepts what is no module */
/* `function` is the host stub, or NULL, `name` the mangled name (copied). */
void tuttiHostKernelAdd(void *module, const void *function, const char *name);
/* `shadow` is the host variable that stands for the device's; it is the storage. */
void tuttiHostVariableAdd(void *module, const void *shadow, const char *name, size_t bytes);
/* A managed variable: *slot is where the program finds its memory. Memory of the program's own
 * until tuttiHostManagedInit(), managed memory with the same bytes afterwards. */
void tuttiHostManagedAdd(void *module, void **slot, const char *name, size_t bytes);
void tuttiHostManagedInit(void *module);
bool tuttiHostVariable(const void *shadow, size_t *bytes);
bool tuttiHostInVariable(const void *ptr); /* any byte of one; a load when there are none */

/* Kernels of a module: one by its name, or NULL; all of them, `room` at most put down. */
const struct tt_kernel *tuttiHostModuleKernel(const void *module, const char *name);
size_t tuttiHostModuleKernels(const void *module, const struct tt_kernel **kernels, size_t room);

/* ---- device code that a program loads by itself ---- */
struct tt_host_library; /* opaque: laid out in library.c */
struct tt_span {
    void *ptr;
    size_t bytes;
};
/* Device code of at most `limit` bytes (SIZE_MAX: its own headers say), not needed afterwards.
 * Variables get memory of the current device. Errors: 200, with a line that says why, and 2. */
int tuttiHostLibraryLoad(const void *code, size_t limit, struct tt_host_library **library_out);
/* The rest: 400 for what is no library, 500 for a name that it does not have. */
int tuttiHostLibraryUnload(struct tt_host_library *library);
int tuttiHostLibraryKernel(struct tt_host_library *library, const char *name,
                           const struct tt_kernel **kernel_out);
int tuttiHostLibraryKernels(struct tt_host_library *library, const struct tt_kernel **kernels,
                            size_t room, size_t *count_out);
int tuttiHostLibraryVariable(struct tt_host_library *library, const char *name, bool managed,
                             struct tt_span *span_out);
struct tt_host_library *tuttiHostLibraryOf(const struct tt_kernel *kernel); /* NULL: compiled in */

/* Device code that is linked from pieces, each as of tuttiHostLibraryLoad(). 400 for what is no
 * link; Add: 200, with a line that says why; 1 when it is complete already. Complete: 1 without
 * pieces; the code lives until the link is destroyed. */
struct tt_host_link; /* opaque: laid out in link.c */
int tuttiHostLinkCreate(struct tt_host_link **link_out);
int tuttiHostLinkAdd(struct tt_host_link *link, const void *code, size_t bytes);
int tuttiHostLinkComplete(struct tt_host_link *link, const void **code_out, size_t *bytes_out);
int tuttiHostLinkDestroy(struct tt_host_link *link);

/* The kernel behind a host stub or a handle, or NULL. */
const struct tt_kernel *tuttiHostKernelFind(const void *function);
const char *tuttiHostKernelName(const struct tt_kernel *kernel);
const void *tuttiHostKernelFunction(const struct tt_kernel *kernel);
const void *tuttiHostKernelModule(const struct tt_kernel *kernel);
/* Dynamic shared memory that a launch may ask for: 48 KiB unless the program wants more. Set: 1 for
 * more than a block can have, 98 for what is no kernel. */
size_t tuttiHostKernelShared(const struct tt_kernel *kernel);
int tuttiHostKernelSharedSet(const void *function, size_t bytes);

struct tt_launch {
    const void *function; /* stub or handle */
    unsigned grid[3], block[3];
    size_t shared_bytes;
    void **args; /* addresses of the arguments, read during the call; NULL: they are packed */
    const void *packed; /* all of them as the kernel's parameters lie, read during the call */
    size_t packed_bytes;
};
/* An item that runs the kernel's host implementation over the grid. Errors: 9 (grid or block), 98
 * (not registered, or without implementation: said once per kernel), 1 (shared memory), 2. */
int tuttiHostKernelItem(const struct tt_launch *launch, struct tt_item **item_out);
/* The item's launch, arguments as the item keeps them; false for other items. */
bool tuttiHostKernelOf(const struct tt_item *item, struct tt_launch *launch_out);
/* The same put on a stream, which must be of the current device: 400. */
int tuttiHostLaunch(struct CUstream_st *stream, const struct tt_launch *launch);

#pragma GCC visibility pop
