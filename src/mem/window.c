/* Registration of a window: every rank sends all others where its part lies, once. A rank that
 * refuses its part sends that instead, so that no rank has a window that another one lacks. */
#include "base/error.h"
#include "base/mem.h"
#include "base/member.h"
#include "base/param.h"
#include "device/device.h"
#include "mem/mem.h"

#include <stdlib.h>

#define OUTSIDE UINT64_MAX

enum {
    KNOWN_FLAGS = NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_STRICT_ORDERING | NCCL_WIN_GIN_ONLY |
                  NCCL_WIN_CFT_COUNTED,
};

struct window_note { /* what each rank sends to the others */
    uint64_t bytes;
    uint64_t address; /* in its own process */
    uint64_t offset;  /* from the start of its range; OUTSIDE: no other process can reach it */
    int32_t rc;       /* ncclResult_t: one rank's refusal counts for all */
    int32_t flags;
};

static ncclResult_t note_fill(const struct tt_window_request *request, struct window_note *note)
{
    struct tt_pointer pointer;
    const struct tt_range *range = tuttiHostRange();
    *note = (struct window_note){.bytes = request->bytes,
                                 .address = (uint64_t)(uintptr_t)request->buff,
                                 .flags = request->flags};
    if (request->rc) return request->rc;
    if ((request->flags & ~KNOWN_FLAGS) && tt_param_bool("TUTTI_STRICT")) {
        return tt_fail(ncclInvalidArgument,
                       "ncclCommWindowRegister: winFlags %#x has bits without a meaning (%#x), "
                       "which NCCL ignores (TUTTI_STRICT)",
                       (unsigned)request->flags, (unsigned)(request->flags & ~KNOWN_FLAGS));
    }
    if (!range || tuttiHostLocate(request->buff, &pointer) || pointer.kind == TT_MEMORY_FOREIGN ||
        !pointer.base) {
        return tt_fail(ncclUnhandledCudaError,
                       "ncclCommWindowRegister: buff %p is no memory of a device", request->buff);
    }
    const uint64_t offset = (uint64_t)((char *)request->buff - range->base);
    note->offset = offset < range->bytes ? offset : OUTSIDE;
    size_t into = (size_t)((char *)request->buff - pointer.base);
    if (into % NCCL_WIN_REQUIRED_ALIGNMENT != 0) {
        return tt_fail(ncclInvalidArgument,
                       "ncclCommWindowRegister: buff %p lies %zu bytes into its allocation, not at "
                       "a multiple of %d",
                       request->buff, into, NCCL_WIN_REQUIRED_ALIGNMENT);
    }
    if (request->bytes > pointer.bytes - into) {
        return tt_fail(ncclInvalidArgument,
                       "ncclCommWindowRegister: %zu bytes at %p run over the end of the allocation "
                       "(%zu bytes at %p)",
                       request->bytes, request->buff, pointer.bytes, (void *)pointer.base);
    }
    return ncclSuccess;
}

/* A rank's part as addressable here; NULL where it is not. */
static char *part_of(const struct tt_window_request *request, int rank,
                     const struct window_note *note)
{
    const struct tt_window_peer *peer = &request->peers[rank];
    if (rank == request->member->rank) return request->buff;
    if (peer->same_process) return (char *)(uintptr_t)note->address;
    return peer->range_base && note->offset != OUTSIDE ? peer->range_base + note->offset : NULL;
}

/* What NCCL asks of the ranks and does not look at: one size and the same flags. */
static ncclResult_t check_same(const struct tt_window_request *request,
                               const struct window_note *notes)
{
    if (!tt_param_bool("TUTTI_STRICT")) return ncclSuccess;
    for (int r = 1; r < request->member->nranks; r++) {
        if (notes[r].flags != notes[0].flags) {
            return tt_fail(ncclInvalidArgument,
                           "ncclCommWindowRegister: rank 0 gave winFlags %#x, rank %d %#x: all "
                           "ranks give the same (TUTTI_STRICT)",
                           (unsigned)notes[0].flags, r, (unsigned)notes[r].flags);
        }
        if (notes[r].bytes != notes[0].bytes && (notes[0].flags & NCCL_WIN_COLL_SYMMETRIC)) {
            return tt_fail(ncclInvalidArgument,
                           "ncclCommWindowRegister: rank 0 gave %llu bytes, rank %d %llu: a window "
                           "of NCCL_WIN_COLL_SYMMETRIC has one size on all ranks (TUTTI_STRICT)",
                           (unsigned long long)notes[0].bytes, r,
                           (unsigned long long)notes[r].bytes);
        }
    }
    return ncclSuccess;
}

/* All that a window needs, before the ranks meet: what fails afterwards would fail here alone. */
static struct tt_window *window_alloc(const struct tt_window_request *request)
{
    int nranks = request->member->nranks;
    struct tt_window *window = tt_calloc(1, sizeof(*window));
    if (!window) return NULL;
    window->parts = tt_calloc((size_t)nranks, sizeof(*window->parts));
    window->sizes = tt_calloc((size_t)nranks, sizeof(*window->sizes));
    window->buff = request->buff;
    window->bytes = request->bytes;
    window->flags = request->flags;
    window->rank = request->member->rank;
    window->nranks = nranks;
    if (window->parts && window->sizes) return window;
    tt_window_free(window);
    return NULL;
}

ncclResult_t tt_window_register(struct tt_registry *registry,
                                const struct tt_window_request *request,
                                struct tt_window **window_out)
{
    int nranks = request->member->nranks;
    struct window_note own;
    ncclResult_t exchanged = ncclSuccess, rc = note_fill(request, &own);
    struct tt_window *window = window_alloc(request);
    struct window_note *notes = tt_calloc((size_t)nranks, sizeof(*notes));
    if (!rc && !window) rc = tt_fail(ncclSystemError, "ncclCommWindowRegister: out of memory");
    own.rc = rc;
    if (!notes) { /* what the others say has no place, and they wait */
        rc = tt_fail(ncclSystemError, "rank %d: ncclCommWindowRegister: out of memory",
                     request->member->rank);
        tt_bootstrap_fail_all(request->bootstrap, rc, tt_last_error());
    } else if (nranks > 1) {
        exchanged = tt_bootstrap_allgather(request->bootstrap, &own, sizeof(own), notes);
    } else {
        notes[0] = own;
    }
    for (int r = 0; r < nranks && !exchanged && !rc; r++) {
        if (notes[r].rc == ncclSuccess) continue;
        rc = tt_fail((ncclResult_t)notes[r].rc,
                     "ncclCommWindowRegister: rank %d refused its part (its log says why)", r);
    }
    if (!rc) rc = exchanged;
    if (!rc) rc = check_same(request, notes);
    for (int r = 0; r < nranks && !rc; r++) {
        window->parts[r] = part_of(request, r, &notes[r]);
        window->sizes[r] = notes[r].bytes;
    }
    free(notes);
    if (rc) {
        tt_window_free(window);
        return rc;
    }
    tt_registry_window_add(registry, window);
    *window_out = window;
    return ncclSuccess;
}
