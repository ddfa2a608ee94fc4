/* One transfer: finds the memory and the edges of its locations, waits for slots, moves slice by
 * slice in the order that program/format/step.h lays down. Memory that the program lets slots refer
 * to is posted as a reference where the edge can carry one: the cursor then drains at its end. */
#include "base/arch/arch.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/wait.h"
#include "exec/host/cursor.h"
#include "exec/host/reduce.h"

#include <string.h>

#define LOCAL_SLICE_BYTES ((size_t)256 << 10) /* without slots: how often a move can be left */
#define REF_MIN_BYTES ((size_t)8 << 10)       /* below, copying costs less than draining */
#define HELD_BYTES ((size_t)4 << 10)          /* beyond, what a message takes is its bytes */
#define JOINED 4                              /* long messages of a transfer in one call */
#define POLLS_BARE 100                        /* looks at a slot without a pause */

/* ---- where ---- */

static bool casts_parts(const struct tt_cursor *cursor)
{
    return cursor->frame->casts == TT_CASTS_PARTS;
}

/* The same message as another destination's. The whole input goes with the first block. */
static bool is_sent_already(const struct tt_cursor *cursor, const struct tt_location *location)
{
    const struct tt_frame *frame = cursor->frame;
    const struct tt_locations *dst = &cursor->dst;
    const int next = frame->rank + 1 < frame->program->nranks ? frame->rank + 1 : 0;
    if (casts_parts(cursor)) return location->rank != next;
    return dst->count > 0 && dst->edge[dst->count - 1] == frame->send_edges[location->edge];
}

/* The chunk's length becomes the transfer's. */
static void add_location(struct tt_work *work, struct tt_cursor *cursor,
                         struct tt_locations *locations, const struct tt_location *location)
{
    const struct tt_frame *frame = cursor->frame;
    int own = frame->rank;
    struct tt_extent extent =
        tt_geometry_extent(&frame->geometry, cursor->stepper.pass, location->chunk);
    bool scratch = location->space == TT_SPACE_SCRATCH;
    if (scratch) {
        extent = tt_geometry_scratch(&frame->geometry, cursor->stepper.pass, location->chunk);
    }
    size_t byte = extent.first * frame->elem_bytes;
    bool sends = locations == &cursor->dst;
    if (frame->casts && sends && tt_location_is_slot(location) && is_sent_already(cursor, location))
        return;
    int k = locations->count++;
    if (!scratch) cursor->total_count = extent.count;
    cursor->sized = cursor->sized || !scratch;
    locations->edge[k] = NULL;
    locations->base[k] = NULL;
    if (tt_location_is_slot(location)) {
        locations->edge[k] =
            sends ? frame->send_edges[location->edge] : frame->recv_edges[location->edge];
    } else if (scratch) {
        locations->base[k] = frame->scratch + byte;
    } else if (location->space == TT_SPACE_OUT) {
        char *out = location->rank == own ? frame->out : work->arrivals[location->rank].out;
        locations->base[k] = out + byte;
    } else {
        const char *in = location->rank == own ? frame->in : work->arrivals[location->rank].in;
        locations->base[k] = (char *)(uintptr_t)(in + byte);
    }
    if (sends || !frame->reduction.pre_mul) return;
    cursor->scalars[k] = location->space == TT_SPACE_IN && location->rank != own
                             ? (const void *)&work->arrivals[location->rank].word
                             : tt_reduce_scalar(&frame->reduction);
    if (!location->pre) return;
    cursor->pre_mask[k / 64] |= (uint64_t)1 << (k % 64);
    cursor->any_pre = true;
}

static bool has_slots(const struct tt_locations *locations)
{
    for (int k = 0; k < locations->count; k++) {
        if (locations->edge[k]) return true;
    }
    return false;
}

void tt_move_begin(struct tt_work *work, struct tt_cursor *cursor)
{
    struct tt_side src = {.sends = false}, dst = {.sends = true};
    struct tt_location location;
    cursor->src.count = cursor->src.ready = 0;
    cursor->dst.count = cursor->dst.ready = 0;
    if (cursor->any_pre) memset(cursor->pre_mask, 0, cursor->mask_bytes);
    cursor->any_pre = cursor->sized = false;
    while (tt_stepper_location(&cursor->stepper, &src, &location))
        add_location(work, cursor, &cursor->src, &location);
    while (tt_stepper_location(&cursor->stepper, &dst, &location))
        add_location(work, cursor, &cursor->dst, &location);
    if (!cursor->sized) {
        cursor->total_count = tt_geometry_extent(&cursor->frame->geometry, cursor->stepper.pass,
                                                 tt_stepper_like(&cursor->stepper))
                                  .count;
    }
    if (casts_parts(cursor) && cursor->dst.count > 0 && cursor->dst.edge[0]) {
        cursor->src.base[0] = (char *)(uintptr_t)cursor->frame->in;
        cursor->total_count = cursor->frame->in_bytes / cursor->frame->elem_bytes;
    }
    size_t slice = LOCAL_SLICE_BYTES;
    if (has_slots(&cursor->src) || has_slots(&cursor->dst)) slice = work->slice_bytes;
    cursor->slice_count = slice / cursor->frame->elem_bytes;
    cursor->done_count = 0;
    cursor->slot_bytes = cursor->slot_done = 0;
}

/* ---- one slice ---- */

static enum tt_run failed(struct tt_work *work, ncclResult_t rc)
{
    work->rc = rc;
    return TT_RUN_FAILED;
}

ncclResult_t tt_slot_size_error(const struct tt_work *work, struct tt_edge *edge, size_t got,
                                size_t want)
{
    char name[64];
    tt_edge_name(edge, name, sizeof(name));
    return tt_fail(ncclInternalError,
                   "rank %d: a slot from rank %d (%s) holds %zu bytes, expected %zu",
                   work->member->rank, tt_edge_peer(edge), name, got, want);
}

ncclResult_t tt_slot_poll(const struct tt_work *work, struct tt_edge *edge, uint64_t match,
                          const char **payload_out, size_t *bytes_out)
{
    for (int polls = 1;; polls++) {
        ncclResult_t rc = tt_edge_peek(edge, match, payload_out, bytes_out);
        if (rc != ncclInProgress || polls >= work->polls_now) return rc;
        if (polls >= POLLS_BARE) tt_cpu_pause();
    }
}

/* The only source of a message may be several slices of it in one slot, or its rest:
 * post_slices(). They are taken from there one after the other. */
static bool holds_slices(const struct tt_cursor *cursor, size_t got)
{
    size_t rest = (cursor->total_count - cursor->done_count) * cursor->frame->elem_bytes;
    size_t slice = cursor->slice_count * cursor->frame->elem_bytes;
    rest += cursor->slot_done;
    return cursor->frame->conn == TT_CONN_P2P && cursor->src.count == 1 &&
           (got == rest || (got < rest && slice && got % slice == 0));
}

/* The pre- or post-operation changes what is moved. */
static bool scales(const struct tt_cursor *cursor)
{
    bool post = tt_stepper_insn(&cursor->stepper)->flags & TT_MOVE_POST;
    return cursor->any_pre || (post && cursor->frame->reduction.post_div > 1);
}

/* What is copied from one slot to memory may come there without the slot. Of other slots it helps
 * to know how long they are. */
static void offer_landing(struct tt_cursor *cursor, struct tt_edge *edge, size_t bytes)
{
    const struct tt_locations *dst = &cursor->dst;
    size_t skip = cursor->done_count * cursor->frame->elem_bytes;
    size_t rest = (cursor->total_count - cursor->done_count) * cursor->frame->elem_bytes;
    if (rest < REF_MIN_BYTES || cursor->slot_bytes) return;
    bool copies = cursor->src.count == 1 && !scales(cursor);
    for (int k = 0; copies && k < dst->count; k++) {
        if (dst->edge[k]) continue;
        tt_edge_land(edge, cursor->frame->match, dst->base[k] + skip, rest);
        return;
    }
    tt_edge_land(edge, cursor->frame->match, NULL, bytes);
}

/* What is not there may not come before the peer has what was posted. Another rank of the host may
 * have sent it already; looking costs nothing then. */
static ncclResult_t look(struct tt_work *work, struct tt_cursor *cursor, struct tt_edge *edge,
                         const char **payload_out, size_t *got_out)
{
    uint64_t match = cursor->frame->match;
    if (cursor->held && !tt_edge_holds(edge)) {
        ncclResult_t rc = tt_edge_peek(edge, match, payload_out, got_out);
        if (rc != ncclInProgress) return rc;
    }
    if (cursor->held) tt_edge_push(cursor->held);
    cursor->held = NULL;
    return tt_slot_poll(work, edge, match, payload_out, got_out);
}

static enum tt_run await_sources(struct tt_work *work, struct tt_cursor *cursor, size_t bytes)
{
    struct tt_locations *src = &cursor->src;
    size_t skip = cursor->done_count * cursor->frame->elem_bytes;
    const bool parts = casts_parts(cursor);
    const size_t want = parts ? cursor->frame->in_bytes : bytes;
    for (; src->ready < src->count; src->ready++) {
        int k = src->ready;
        if (!src->edge[k]) {
            src->at[k] = src->base[k] + skip;
            continue;
        }
        size_t got = 0;
        const char *payload = NULL;
        offer_landing(cursor, src->edge[k], bytes);
        ncclResult_t rc = look(work, cursor, src->edge[k], &payload, &got);
        if (rc == ncclInProgress) {
            return tt_cursor_wait(cursor, tt_edge_peer(src->edge[k]), TT_WAIT_DATA);
        }
        if (rc) return failed(work, rc);
        bool several = got != want && holds_slices(cursor, got);
        if (got != want && !several && cursor->dst.count > 0)
            return failed(work, tt_slot_size_error(work, src->edge[k], got, want));
        cursor->slot_bytes = several ? got : 0;
        src->at[k] = (char *)(uintptr_t)payload +
                     (parts ? (size_t)cursor->frame->rank * bytes : cursor->slot_done);
    }
    return TT_RUN_PROGRESS;
}

static enum tt_run await_destinations(struct tt_cursor *cursor, size_t bytes)
{
    bool small = bytes <= TT_SLOT_INLINE_BYTES;
    struct tt_locations *dst = &cursor->dst;
    size_t skip = cursor->done_count * cursor->frame->elem_bytes;
    for (; dst->ready < dst->count; dst->ready++) {
        int k = dst->ready;
        if (!dst->edge[k]) {
            dst->at[k] = dst->base[k] + skip;
            continue;
        }
        char *payload = tt_edge_acquire(dst->edge[k], bytes);
        if (!payload) return tt_cursor_wait(cursor, tt_edge_peer(dst->edge[k]), "free slot of");
        dst->at[k] = small ? cursor->small : payload;
    }
    return TT_RUN_PROGRESS;
}

/* Short messages that follow each other to one peer are sent together; see tt_cursor_run(). */
static void hold(struct tt_cursor *cursor, struct tt_edge *edge, size_t bytes)
{
    if (cursor->held && cursor->held != edge) tt_edge_push(cursor->held);
    cursor->held = bytes <= HELD_BYTES && tt_edge_hold(edge) ? edge : NULL;
}

static void post(struct tt_cursor *cursor, int k, const void *small, size_t bytes)
{
    hold(cursor, cursor->dst.edge[k], bytes);
    if (small) {
        tt_edge_post_small(cursor->dst.edge[k], cursor->frame->match, small, bytes);
    } else {
        tt_edge_post(cursor->dst.edge[k], cursor->frame->match, bytes);
    }
}

/* The memory that holds what is posted and that the program lets slots refer to, or NULL. What
 * stays to the end suits all edges. */
static const char *referable(struct tt_cursor *cursor, size_t bytes)
{
    if (bytes < REF_MIN_BYTES || !cursor->frame->refs) return NULL;
    int refs = cursor->frame->refs[cursor->stepper.pc] >> cursor->ref_shift;
    bool copy = cursor->src.count == 1 && !cursor->src.edge[0] && !scales(cursor);
    cursor->ref_taken = !(refs & TT_REF_DST) && !(copy && (refs & TT_REF_SRC));
    if (cursor->ref_taken) refs /= TT_REF_SRC_TAKEN; /* the others' bits */
    if (copy && (refs & TT_REF_SRC)) return cursor->src.at[0];
    for (int k = 0; (refs & TT_REF_DST) && k < cursor->dst.count; k++) {
        if (!cursor->dst.edge[k]) return cursor->dst.at[k];
    }
    return NULL;
}

/* Of what lies in memory: a socket takes several messages in one call in less time than in as many,
 * as it handles what the peer has acknowledged meanwhile once. */
static void hold_long(struct tt_cursor *cursor, struct tt_edge *edge, size_t bytes)
{
    size_t end = cursor->done_count * cursor->frame->elem_bytes + bytes;
    bool follows = end < cursor->total_count * cursor->frame->elem_bytes && !cursor->src.edge[0];
    if (cursor->held && cursor->held != edge) tt_edge_push(cursor->held);
    cursor->joined = cursor->held == edge ? cursor->joined + 1 : 1;
    bool waits = follows && cursor->joined < JOINED;
    cursor->held = waits && tt_edge_hold_long(edge) ? edge : NULL;
}

/* Post a slot that refers to memory; false: the edge cannot. */
static bool post_ref(struct tt_cursor *cursor, struct tt_edge *edge, const char *refer,
                     size_t bytes)
{
    if (cursor->overwritten && tt_edge_wants_still(edge)) return false;
    if (cursor->ref_taken && !tt_edge_reads_once(edge)) return false;
    hold_long(cursor, edge, bytes);
    if (!tt_edge_post_ref(edge, cursor->frame->match, refer, bytes)) {
        cursor->held = NULL;
        return false;
    }
    if (!cursor->ref_edge) cursor->ref_edge = edge;
    cursor->ref_many = cursor->ref_many || cursor->ref_edge != edge;
    return true;
}

/* Fill and post the slots from memory that holds the result already. */
static void send_result(struct tt_cursor *cursor, const char *result, const char *refer,
                        size_t bytes)
{
    struct tt_locations *dst = &cursor->dst;
    bool small = bytes <= TT_SLOT_INLINE_BYTES;
    for (int k = 0; k < dst->count; k++) {
        if (!dst->edge[k]) continue;
        if (refer && post_ref(cursor, dst->edge[k], refer, bytes)) continue;
        if (!small && dst->at[k] != result) tt_copy_run(dst->at[k], result, bytes, false);
        post(cursor, k, small ? result : NULL, bytes);
    }
}

static void copy_slice(struct tt_work *work, struct tt_cursor *cursor, size_t bytes)
{
    struct tt_locations *dst = &cursor->dst;
    const char *src = cursor->src.at[0];
    for (int k = 0; k < dst->count; k++) {
        if (dst->edge[k] || dst->at[k] == src) continue;
        tt_copy_run(dst->at[k], src, bytes, work->stream);
    }
    send_result(cursor, src, referable(cursor, bytes), bytes);
}

/* Memory destinations first: what they hold is then sent on from there. */
static void reduce_slice(struct tt_work *work, struct tt_cursor *cursor, size_t count)
{
    struct tt_locations *dst = &cursor->dst;
    size_t bytes = count * cursor->frame->elem_bytes;
    void *small = cursor->small;
    struct tt_reduce_job job = {
        .reduction = &cursor->frame->reduction,
        .srcs = (const void *const *)cursor->src.at,
        .nsrcs = cursor->src.count,
        .pre_mask = cursor->any_pre ? cursor->pre_mask : NULL,
        .scalars = cursor->scalars,
        .dsts = dst->at,
        .ndsts = dst->count,
        .post = tt_stepper_insn(&cursor->stepper)->flags & TT_MOVE_POST,
        .count = count,
        .stream = work->stream,
    };
    const char *result = NULL;
    if (!has_slots(dst)) {
        tt_reduce_run(&job);
        return;
    }
    job.stream = false;
    for (int k = 0; k < dst->count && !result; k++) {
        if (!dst->edge[k]) result = dst->at[k];
    }
    if (!result) result = bytes <= TT_SLOT_INLINE_BYTES ? small : dst->at[0];
    void *const into = (void *)(uintptr_t)result;
    job.dsts = &into;
    job.ndsts = 1;
    tt_reduce_run(&job);
    for (int k = 0; k < dst->count; k++) {
        if (dst->edge[k] || dst->at[k] == result) continue;
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): has an address */
        memcpy(dst->at[k], result, bytes);
    }
    send_result(cursor, result, referable(cursor, bytes), bytes);
}

static void release_sources(struct tt_cursor *cursor, size_t bytes)
{
    cursor->slot_done += cursor->slot_bytes ? bytes : 0;
    if (cursor->slot_done < cursor->slot_bytes) return;
    cursor->slot_bytes = cursor->slot_done = 0;
    for (int k = 0; k < cursor->src.count; k++) {
        if (cursor->src.edge[k]) tt_edge_release(cursor->src.edge[k]);
    }
}

static void move_slice(struct tt_work *work, struct tt_cursor *cursor, size_t count)
{
    size_t bytes = count * cursor->frame->elem_bytes;
    if (cursor->src.count == 0) {
        send_result(cursor, cursor->small, NULL, 0);
    } else if (cursor->dst.count > 0 && (cursor->src.count > 1 || scales(cursor))) {
        reduce_slice(work, cursor, count);
    } else if (cursor->dst.count > 0) {
        copy_slice(work, cursor, bytes);
    }
    release_sources(cursor, bytes);
    cursor->done_count += count;
    cursor->src.ready = cursor->dst.ready = 0;
}

/* All that is left of a message, or as many slices as the edge takes at once, in one slot that
 * refers to them: the receiver then needs this rank once, not for every slice. False: it goes slice
 * by slice. */
static bool post_slices(struct tt_cursor *cursor)
{
    size_t count = cursor->total_count - cursor->done_count;
    size_t slice_bytes = cursor->slice_count * cursor->frame->elem_bytes;
    bool message =
        cursor->frame->conn == TT_CONN_P2P && cursor->src.count == 1 && cursor->dst.count == 1;
    if (!message || !cursor->dst.edge[0] || count <= cursor->slice_count) return false;
    size_t nslices = tt_edge_message_bytes(cursor->dst.edge[0]) / slice_bytes;
    if (nslices < 2) return false;
    count = tt_min_size(count, nslices * cursor->slice_count);
    size_t bytes = count * cursor->frame->elem_bytes;
    const char *refer = referable(cursor, bytes);
    if (!refer || !post_ref(cursor, cursor->dst.edge[0], refer, bytes)) return false;
    cursor->done_count += count;
    cursor->src.ready = cursor->dst.ready = 0;
    return true;
}

enum tt_run tt_move_step(struct tt_work *work, struct tt_cursor *cursor)
{
    size_t count = tt_min_size(cursor->total_count - cursor->done_count, cursor->slice_count);
    size_t bytes = count * cursor->frame->elem_bytes;
    enum tt_run run = await_sources(work, cursor, bytes);
    if (run != TT_RUN_PROGRESS) return run;
    run = await_destinations(cursor, cursor->src.count ? bytes : 0);
    if (run != TT_RUN_PROGRESS) return run;
    if (!post_slices(cursor)) move_slice(work, cursor, count);
    return cursor->done_count < cursor->total_count ? TT_RUN_PROGRESS : TT_RUN_DONE;
}
