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
    struct tt_fd_name served; /* where to ask for the descriptor */
    uint64_t process_id;      /* random, unique */
    uint64_t probe;           /* random word that lies at offset probe_offset */
    uint64_t probe_offset;
    uint64_t bytes;            /* 0: there is nothing to map */
    uint64_t fs_device, inode; /* of the memfd: distinguish it from another file with the same fd */
    int32_t pid, fd;           /* of the process, in its own namespace */
};

/* Let peers map this process's segment. Counted: ends with as many calls of tt_segment_unpublish().
 * Errors: ncclSystemError. */
ncclResult_t tt_segment_publish(struct tt_segment_record *record_out);
void tt_segment_unpublish(void);

/* Map a peer's segment here and compare its probe word. A segment is mapped once per process and
 * counted; the last tt_segment_unmap() unmaps it.
 * *base_out  where it is mapped; NULL when it cannot be reached (other namespace, forbidden, ...):
 *            this is no error, the reason is in the log
 * Errors: ncclSystemError (out of memory). */
ncclResult_t tt_segment_map(const struct tt_segment_record *peer, char **base_out);
void tt_segment_unmap(const struct tt_segment_record *peer);

/* ---- registered buffers ---- */

/* Make a communicator's registry; from now on tt_window_find() looks into it. `member` is borrowed
 * until tt_registry_destroy(). Errors: ncclSystemError (out of memory). */
ncclResult_t tt_registry_create(const struct tt_member *member, struct tt_registry **registry_out);
/* Free the registry with all buffers' entries and windows. Accepts NULL. */
void tt_registry_destroy(struct tt_registry *registry);

/* Register a buffer. When a registration covers it already, that one is counted once more and its
 * handle returned. Errors: ncclSystemError (out of memory). */
ncclResult_t tt_registry_add(struct tt_registry *registry, void *buff, size_t bytes,
                             void **handle_out);
/* Undo one registration of the handle. Errors: ncclInvalidUsage when the handle is unknown. */
ncclResult_t tt_registry_remove(struct tt_registry *registry, void *handle);

/* True when one registered buffer or window holds every byte; true for 0 bytes. */
bool tt_registry_covers(struct tt_registry *registry, const void *at, size_t bytes);
/* True when one window of NCCL_WIN_COLL_SYMMETRIC holds every byte. */
bool tt_registry_is_symmetric(struct tt_registry *registry, const void *at, size_t bytes);
/* How far into that window they begin, plus 1; 0: there is none. */
size_t tt_registry_symmetric_place(struct tt_registry *registry, const void *at, size_t bytes);

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

struct tt_window_peer { /* what windows need to know of a rank */
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
    ncclResult_t
        rc; /* an error of this rank so far, which fails at all; the registry may be NULL */
};

/* Exchange where every rank's part lies and make the window, which the registry owns. Collective,
 * blocking; an error of one rank is returned at all ranks.
 * Errors: ncclUnhandledCudaError (not memory of a device), ncclInvalidArgument (alignment, end of
 * the allocation), ncclSystemError (out of memory), those of tt_bootstrap_allgather(). */
ncclResult_t tt_window_register(struct tt_registry *registry,
                                const struct tt_window_request *request,
                                struct tt_window **window_out);

/* Free a window that is in no registry. Accepts NULL and half-built ones. */
void tt_window_free(struct tt_window *window);

/* Add a window, which the registry owns from now on. The window, its parts and its sizes were
 * allocated with tt_calloc(). */
void tt_registry_window_add(struct tt_registry *registry, struct tt_window *window);
/* The window of that handle in this registry; NULL: unknown, or of another communicator. */
struct tt_window *tt_registry_window(struct tt_registry *registry, ncclWindow_t handle);
/* The window of that handle in any registry of the process; NULL: there is none. */
struct tt_window *tt_window_find(ncclWindow_t handle);
/* Forget and free the window. */
void tt_registry_window_remove(struct tt_registry *registry, struct tt_window *window);
