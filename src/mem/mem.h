/* Registered buffers and windows of one communicator: whose, where, reachable by whom. On a host
 * device all memory of devices is mapped by the peers anyway, so registering is bookkeeping with
 * real handles; a window adds where every peer's part lies. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_member;
struct tt_registry; /* opaque; any thread */

/* Make a communicator's registry, known to the process from now on; `member` is borrowed until
 * tt_registry_destroy(). Errors: ncclSystemError (out of memory). */
ncclResult_t tt_registry_create(const struct tt_member *member, struct tt_registry **registry_out);
/* Frees what is left. Accepts NULL. */
void tt_registry_destroy(struct tt_registry *registry);

/* A covering registration is counted and its handle returned again.
 * Errors: ncclSystemError (memory). */
ncclResult_t tt_registry_add(struct tt_registry *registry, void *buff, size_t bytes,
                             void **handle_out);
/* ncclInvalidUsage when the handle is unknown. */
ncclResult_t tt_registry_remove(struct tt_registry *registry, void *handle);

/* True when every byte lies in one registered buffer or window; so do no bytes. */
bool tt_registry_covers(struct tt_registry *registry, const void *at, size_t bytes);

struct tt_window {
    struct tt_window *next;
    struct tt_registry *owner;
    char *buff; /* the user's; borrowed */
    size_t bytes;
    int flags;
    int rank, nranks;
    char **parts;  /* owned: every rank's part as addressable here; NULL where it is not */
    size_t *sizes; /* owned: its size */
};

/* Take a window over (allocated with tt_calloc, parts and sizes too). */
void tt_registry_window_add(struct tt_registry *registry, struct tt_window *window);
/* The window of that handle, or NULL: unknown here, or of another communicator. */
struct tt_window *tt_registry_window(struct tt_registry *registry, ncclWindow_t handle);
/* Any registry's live window of that handle, or NULL. */
struct tt_window *tt_window_find(ncclWindow_t handle);
/* Forget and free the window. */
void tt_registry_window_remove(struct tt_registry *registry, struct tt_window *window);
