/* Kernels and device variables that compiled programs register, and the host implementations that
 * stand in for kernels. Results are CUDA's numbers. Any thread; registration may come before main()
 * and starts nothing. */
#pragma once

#include "device/device.h"

#pragma GCC visibility push(default)

struct tt_kernel; /* a registered kernel: its address is CUDA's function and kernel handle */

/* A module is what one translation unit registers. `code`: its device code or NULL; borrowed until
 * Close. Open returns NULL when out of memory. Call Ready when all is registered: variables then
 * get their initial values from the device code. Close frees the module with all its entries. */
void *tuttiHostModuleOpen(const void *code);
void tuttiHostModuleReady(void *module);
void tuttiHostModuleClose(void *module); /* accepts any other pointer */
/* `function` is the host stub, or NULL, `name` the mangled name (copied). */
void tuttiHostKernelAdd(void *module, const void *function, const char *name);
/* `shadow` is the host variable that stands for the device's; it is the storage. */
void tuttiHostVariableAdd(void *module, const void *shadow, const char *name, size_t bytes);
/* Add a managed variable: *slot is the address that the program uses. It is the program's own
 * memory until tuttiHostManagedInit(), and managed memory with the same contents afterwards. */
void tuttiHostManagedAdd(void *module, void **slot, const char *name, size_t bytes);
void tuttiHostManagedInit(void *module);
bool tuttiHostVariable(const void *shadow, size_t *bytes);
bool tuttiHostInVariable(const void *ptr); /* any byte of one; a load when there are none */

/* Kernels of a module: one by its name, or NULL; all of them: returns their number and stores
 * `room` at most. */
const struct tt_kernel *tuttiHostModuleKernel(const void *module, const char *name);
size_t tuttiHostModuleKernels(const void *module, const struct tt_kernel **kernels, size_t room);

/* ---- device code that a program loads by itself ---- */
struct tt_host_library; /* opaque: laid out in library.c */
struct tt_span {
    void *ptr;
    size_t bytes;
};
/* Load device code of at most `limit` bytes (SIZE_MAX: its own headers give the size). The caller
 * may free it afterwards. Variables get memory of the current device. Errors: 200 (the reason is
 * printed), 2. */
int tuttiHostLibraryLoad(const void *code, size_t limit, struct tt_host_library **library_out);
/* The other functions return 400 when the handle is no library, 500 for an unknown name. */
int tuttiHostLibraryUnload(struct tt_host_library *library);
int tuttiHostLibraryKernel(struct tt_host_library *library, const char *name,
                           const struct tt_kernel **kernel_out);
int tuttiHostLibraryKernels(struct tt_host_library *library, const struct tt_kernel **kernels,
                            size_t room, size_t *count_out);
int tuttiHostLibraryVariable(struct tt_host_library *library, const char *name, bool managed,
                             struct tt_span *span_out);
struct tt_host_library *tuttiHostLibraryOf(const struct tt_kernel *kernel); /* NULL: compiled in */

/* Link device code from pieces, each as for tuttiHostLibraryLoad(). 400 when the handle is no link.
 * Add: 200 (the reason is printed); 1 when the link is complete already. Complete: 1 without
 * pieces; the code is valid until the link is destroyed. */
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
/* Largest dynamic shared memory of a launch, in bytes: 48 KiB unless the program sets more. Set: 1
 * for more than a block can have, 98 when `function` is no kernel. */
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
/* Make an item that runs the kernel's host implementation over the grid. Errors: 9 (grid or block),
 * 98 (not registered, or without implementation: printed once per kernel), 1 (shared memory), 2. */
int tuttiHostKernelItem(const struct tt_launch *launch, struct tt_item **item_out);
/* The launch of a kernel item; its arguments are the item's copies. False for other items. */
bool tuttiHostKernelOf(const struct tt_item *item, struct tt_launch *launch_out);
/* Make such an item and put it on a stream. 400: the stream is not of the current device. */
int tuttiHostLaunch(struct CUstream_st *stream, const struct tt_launch *launch);

#pragma GCC visibility pop
