/* Memory that ranks share: the segments that the processes of a host map of each other, and
 * registered buffers and windows of one communicator. On a host device all memory of devices lies
 * in segments, so registering is bookkeeping with real handles; a window adds where every peer's
 * part lies. */
#pragma once

#include "bootstrap/bootstrap.h"
#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_member;
struct tt_registry; /* opaque; any thread */

/* ---- segments: one per process, behind all its device memory; any thread ---- */

/* What a peer must know to map this process's segment; goes into the record of a rank. */
struct tt_segment_record {
    struct tt_fd_name served; /* by whom the descriptor is handed over */
    uint64_t process_id;      /* random, unique */
    uint64_t probe;           /* random word that lies at offset probe_offset */
    uint64_t probe_offset;
    uint64_t bytes;            /* 0: there is nothing to map */
    uint64_t fs_device, inode; /* of the memfd: distinguish it from another file with its number */
    int32_t pid, fd;           /* as the process itself sees them */
};

/* Let peers map this process's segment; counted, undone by as many tt_segment_unpublish().
 * Errors: ncclSystemError. */
ncclResult_t tt_segment_publish(struct tt_segment_record *record_out);
void tt_segment_unpublish(void);

/* Map a peer's segment here (once per process, shared by communicators) and compare the probe word.
 * ncclSuccess with *base_out NULL: not reachable (other namespace, forbidden, ...), why in the log.
 * The last tt_segment_unmap() unmaps. Errors: ncclSystemError (out of memory). */
ncclResult_t tt_segment_map(const struct tt_segment_record *peer, char **base_out);
void tt_segment_unmap(const struct tt_segment_record *peer);

/* ---- registered buffers ---- */

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
/* True when every byte lies in one window of NCCL_WIN_COLL_SYMMETRIC. */
bool tt_registry_is_symmetric(struct tt_registry *registry, const void *at, size_t bytes);

/* ---- windows ---- */

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

struct tt_window_peer { /* a rank as windows see it */
    bool same_process;
    char *range_base; /* borrowed: where its device memory is mapped here; NULL: nowhere */
};

struct tt_window_request { /* all borrowed */
    const struct tt_member *member;
    struct tt_bootstrap *bootstrap;
    const struct tt_window_peer *peers; /* by rank */
    void *buff;
    size_t bytes;
    int flags;
    ncclResult_t rc; /* why this rank refuses its part already; then the registry may be NULL */
};

/* Let all ranks know where every rank's part lies; the window is the registry's. What one rank
 * refuses fails at all. Collective, blocking. Errors: ncclUnhandledCudaError (no memory of a
 * device), ncclInvalidArgument (alignment, end of the allocation), ncclSystemError (memory), those
 * of other ranks and of tt_bootstrap_allgather(). */
ncclResult_t tt_window_register(struct tt_registry *registry,
                                const struct tt_window_request *request,
                                struct tt_window **window_out);

/* Accepts NULL and half-built ones; it is in no registry. */
void tt_window_free(struct tt_window *window);

/* Take a window over (allocated with tt_calloc, parts and sizes too). */
void tt_registry_window_add(struct tt_registry *registry, struct tt_window *window);
/* The window of that handle, or NULL: unknown here, or of another communicator. */
struct tt_window *tt_registry_window(struct tt_registry *registry, ncclWindow_t handle);
/* Any registry's live window of that handle, or NULL. */
struct tt_window *tt_window_find(ncclWindow_t handle);
/* Forget and free the window. */
void tt_registry_window_remove(struct tt_registry *registry, struct tt_window *window);
