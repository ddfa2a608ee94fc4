/* Bounce buffers for foreign memory. Programs with ENTER let peers read and write this rank's
 * buffers where they lie; a buffer that peers cannot address (malloc, stack) is copied into range
 * memory first and copied back at the end. The issue queue keeps that memory: only the work whose
 * turn it is uses it. */
#include "base/error.h"
#include "base/mem.h"
#include "exec/host/cursor.h"
#include "exec/host/reduce.h"

#define STAGE_SLICE_BYTES ((size_t)1 << 20)
#define STAGE_GRAIN_BYTES ((size_t)2 << 20)

/* Let *memory of the queue hold that many bytes; `what` they are for. */
static ncclResult_t reserve(const struct tt_work *work, size_t bytes, const char *what,
                            char **memory, size_t *memory_bytes)
{
    if (*memory_bytes >= bytes) return ncclSuccess;
    if (*memory) tuttiHostFree(*memory);
    *memory = NULL;
    *memory_bytes = 0;
    size_t want = tt_round_up(bytes, STAGE_GRAIN_BYTES);
    void *fresh = NULL;
    int code = tuttiHostMalloc(work->member->device, want, &fresh);
    if (code) {
        return tt_fail(ncclUnhandledCudaError,
                       "rank %d: no %zu bytes of device memory %s (code %d)", work->member->rank,
                       want, what, code);
    }
    if (tuttiHostChecks()) tuttiHostTouchNever(fresh); /* no stream orders its uses */
    *memory = fresh;
    *memory_bytes = want;
    return ncclSuccess;
}

static size_t scratch_of(const struct tt_frame *frame)
{
    size_t count = (size_t)frame->program->scratch * frame->geometry.scratch_stride;
    return tt_round_up(count * frame->elem_bytes, TT_LINE_BYTES);
}

ncclResult_t tt_stage_scratch(struct tt_work *work)
{
    struct tt_issue_queue *queue = work->queue;
    size_t bytes = 0;
    for (int k = 0; k < work->nframes; k++)
        bytes += scratch_of(&work->frames[k]);
    ncclResult_t rc =
        reserve(work, bytes, "for a program's scratch", &queue->scratch, &queue->scratch_bytes);
    char *at = queue->scratch;
    for (int k = 0; k < work->nframes && !rc; k++) {
        work->frames[k].scratch = at;
        at += scratch_of(&work->frames[k]);
    }
    return rc;
}

static void add_stage(struct tt_work *work, char *user, size_t bytes)
{
    if (tt_transport_reachable(work->transport, user, bytes)) return;
    work->stages[work->nstages++] = (struct tt_stage){.user = user, .bytes = bytes};
}

/* Where an address of the user lies in a bounce buffer, if it has one. */
static char *bounced(const struct tt_work *work, char *user)
{
    for (int k = 0; k < work->nstages; k++) {
        const struct tt_stage *stage = &work->stages[k];
        if (user >= stage->user && user < stage->user + stage->bytes) {
            return stage->range + (user - stage->user);
        }
    }
    return user;
}

/* In place, or overlapping: both buffers keep their distance in one bounce buffer. */
static void join_overlap(struct tt_work *work)
{
    if (work->nstages < 2) return;
    struct tt_stage *a = &work->stages[0], *b = &work->stages[1];
    if (a->user + a->bytes <= b->user || b->user + b->bytes <= a->user) return;
    char *lo = a->user < b->user ? a->user : b->user;
    char *hi = a->user + a->bytes > b->user + b->bytes ? a->user + a->bytes : b->user + b->bytes;
    *a = (struct tt_stage){.user = lo, .bytes = (size_t)(hi - lo)};
    work->nstages = 1;
}

ncclResult_t tt_stage_plan(struct tt_work *work)
{
    struct tt_frame *frame = &work->frames[0];
    char *in = (char *)(uintptr_t)frame->in;
    work->nstages = 0;
    work->staged_bytes = 0;
    add_stage(work, in, frame->in_bytes);
    add_stage(work, frame->out, frame->out_bytes);
    if (work->nstages == 0) return ncclSuccess;
    join_overlap(work);
    size_t bytes = 0;
    for (int k = 0; k < work->nstages; k++) {
        bytes += tt_round_up(work->stages[k].bytes, TT_LINE_BYTES);
    }
    struct tt_issue_queue *queue = work->queue;
    ncclResult_t rc = reserve(work, bytes, "to stage buffers that the peers cannot reach",
                              &queue->staging, &queue->staging_bytes);
    if (rc) return rc;
    char *at = queue->staging;
    for (int k = 0; k < work->nstages; k++) {
        work->stages[k].range = at;
        at += tt_round_up(work->stages[k].bytes, TT_LINE_BYTES);
    }
    for (int k = 0; k < work->nframes; k++) {
        work->frames[k].in = bounced(work, in);
        work->frames[k].out = bounced(work, work->user_out);
    }
    return ncclSuccess;
}

/* The part of a stage that holds the user's input (going in) or output (coming back). */
static struct tt_stage part_of(const struct tt_work *work, const struct tt_stage *stage, bool in)
{
    const struct tt_frame *frame = &work->frames[0];
    const char *user = in ? work->user_in : work->user_out;
    size_t bytes = in ? frame->in_bytes : frame->out_bytes;
    bool inside = user >= stage->user && user < stage->user + stage->bytes;
    if (!inside) return (struct tt_stage){.bytes = 0};
    size_t skip = (size_t)(user - stage->user);
    return (struct tt_stage){stage->user + skip, stage->range + skip, bytes};
}

bool tt_stage_copy(struct tt_work *work, bool in)
{
    size_t skip = work->staged_bytes; /* counts through all stages */
    for (int k = 0; k < work->nstages; k++) {
        struct tt_stage part = part_of(work, &work->stages[k], in);
        if (skip >= part.bytes) {
            skip -= part.bytes;
            continue;
        }
        size_t bytes = tt_min_size(part.bytes - skip, STAGE_SLICE_BYTES);
        char *user = part.user + skip, *range = part.range + skip;
        tt_copy_run(in ? range : user, in ? user : range, bytes, false);
        work->staged_bytes += bytes;
        return false;
    }
    work->staged_bytes = 0;
    return true;
}
