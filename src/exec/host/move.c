/* One fused move: finds the places its operands stand for, waits for slots, moves slice by slice.
 *
 * A slice waits until all its source slots are full and all its destination slots are free; then
 * data moves, destinations are posted, sources are given back. Copies that walk over ranks (each
 * its own source and destination) are taken rank by rank. Memory that outlives the operation's
 * reads is posted as a reference where the edge can carry one: the cursor then drains at its end.
 */
#include "base/arch/arch.h"
#include "base/error.h"
#include "base/mem.h"
#include "exec/host/cursor.h"
#include "exec/host/fold.h"
#include "program/operand.h"

#include <string.h>

#define LOCAL_SLICE_BYTES ((size_t)256 << 10) /* without slots: how often a move can be left */
#define REF_MIN_BYTES ((size_t)8 << 10)       /* below, copying costs less than draining */
#define POLLS_BARE 100                        /* looks at a slot without a pause */

/* ---- what an operand stands for ---- */

/* tt_operand_chunk() without a division: it is asked for every place of every move. */
static int chunk_of(const struct tt_cursor *cursor, const struct tt_operand *operand, int peer)
{
    const struct tt_program *program = cursor->frame->program;
    int n = program->nranks;
    if (operand->chunk_by == TT_CHUNK_CONST) return operand->chunk;
    if (operand->chunk_by == TT_CHUNK_ME) return program->rank;
    if (operand->chunk_by == TT_CHUNK_PEER) return peer;
    int position = program->ring_pos + operand->chunk + operand->coef * cursor->i;
    while (position < 0)
        position += n;
    while (position >= n)
        position -= n;
    if (operand->chunk_by == TT_CHUNK_RING) return position;
    return program->ring_rank[position];
}

static int rank_of(const struct tt_cursor *cursor, const struct tt_operand *operand, int peer)
{
    if (operand->peer == TT_PEER_SELF) return cursor->frame->program->rank;
    if (operand->peer == TT_PEER_RANK) return operand->peer_rank;
    return peer;
}

/* Add the place of `operand` at `peer`; the chunk's length becomes the move's. */
static void add_place(struct tt_work *work, struct tt_cursor *cursor, struct tt_places *places,
                      const struct tt_operand *operand, int peer)
{
    const struct tt_frame *frame = cursor->frame;
    int rank = rank_of(cursor, operand, peer), own = frame->program->rank;
    struct tt_extent extent =
        tt_geometry_extent(&frame->geometry, cursor->pass, chunk_of(cursor, operand, peer));
    size_t byte = extent.first * frame->elem_bytes;
    int k = places->count++;
    if (cursor->scalars && places == &cursor->src) {
        cursor->scalars[k] = operand->space == TT_SPACE_IN && rank != own
                                 ? (const void *)&work->arrivals[rank].word
                                 : tt_fold_scalar(&frame->fold);
    }
    cursor->total_count = extent.count;
    places->edge[k] = NULL;
    if (operand->space == TT_SPACE_SLOT && (rank != own || !tt_operand_is_set(operand))) {
        bool sends = places == &cursor->dst;
        places->edge[k] = sends ? frame->send_edges[rank] : frame->recv_edges[rank];
        places->base[k] = NULL;
    } else if (operand->space == TT_SPACE_OUT) {
        char *out = rank == own ? frame->out : work->arrivals[rank].out;
        places->base[k] = out + byte;
    } else {
        const char *in = rank == own ? frame->in : work->arrivals[rank].in;
        places->base[k] = (char *)(uintptr_t)(in + byte);
    }
}

static void add_operand(struct tt_work *work, struct tt_cursor *cursor, struct tt_places *places,
                        const struct tt_operand *operand)
{
    int n = cursor->frame->program->nranks, own = cursor->frame->program->rank;
    if (operand->peer == TT_PEER_EACH) {
        for (int rank = 0; rank < n; rank++)
            add_place(work, cursor, places, operand, rank);
    } else if (operand->peer == TT_PEER_OTHERS && places == &cursor->dst) {
        for (int k = 1; k < n; k++) {
            add_place(work, cursor, places, operand, own + k < n ? own + k : own + k - n);
        }
    } else if (operand->peer == TT_PEER_OTHERS) {
        for (int rank = 0; rank < n; rank++) {
            if (rank != own) add_place(work, cursor, places, operand, rank);
        }
    } else {
        add_place(work, cursor, places, operand, own);
    }
}

/* Sources taken from a user's IN get the pre-operation, the own place among slots too. */
static void mark_pre(struct tt_cursor *cursor, const struct tt_operand *operand, int from)
{
    for (int k = from; k < cursor->src.count; k++) {
        bool in = operand->space == TT_SPACE_IN ||
                  (operand->space == TT_SPACE_SLOT && !cursor->src.edge[k]);
        if (!in) continue;
        cursor->pre_mask[k / 64] |= (uint64_t)1 << (k % 64);
        cursor->any_pre = true;
    }
}

static void add_sources(struct tt_work *work, struct tt_cursor *cursor, const struct tt_insn *insn,
                        int peer)
{
    bool pre = (insn->flags & TT_MOVE_PRE) && cursor->frame->fold.pre_mul;
    for (int k = 0; k < insn->nsrcs; k++) {
        int from = cursor->src.count;
        if (peer >= 0) {
            add_place(work, cursor, &cursor->src, &insn->src[k], peer);
        } else {
            add_operand(work, cursor, &cursor->src, &insn->src[k]);
        }
        if (pre) mark_pre(cursor, &insn->src[k], from);
    }
}

static void add_destinations(struct tt_work *work, struct tt_cursor *cursor,
                             const struct tt_insn *insn, int peer)
{
    for (int k = 0; k < insn->ndsts; k++) {
        if (peer >= 0) {
            add_place(work, cursor, &cursor->dst, &insn->dst[k], peer);
        } else {
            add_operand(work, cursor, &cursor->dst, &insn->dst[k]);
        }
    }
}

static bool has_slots(const struct tt_places *places)
{
    for (int k = 0; k < places->count; k++) {
        if (places->edge[k]) return true;
    }
    return false;
}

/* Expand the operands, all of them or (peer >= 0) as they stand at one rank. */
static void expand(struct tt_work *work, struct tt_cursor *cursor, const struct tt_insn *insn,
                   int peer)
{
    cursor->src.count = cursor->src.ready = 0;
    cursor->dst.count = cursor->dst.ready = 0;
    if (cursor->any_pre) {
        memset(cursor->pre_mask, 0, tt_mask_words(cursor->frame->program->nranks) * 8);
        cursor->any_pre = false;
    }
    add_sources(work, cursor, insn, peer);
    add_destinations(work, cursor, insn, peer);
    size_t slice = LOCAL_SLICE_BYTES;
    if (has_slots(&cursor->src) || has_slots(&cursor->dst)) slice = work->slice_bytes;
    cursor->slice_count = slice / cursor->frame->elem_bytes;
    cursor->done_count = 0;
    cursor->slot_bytes = cursor->slot_done = 0;
}

/* ---- walking over ranks ---- */

static bool walks(const struct tt_insn *insn)
{
    if ((insn->flags & TT_MOVE_FOLD) || insn->nsrcs == 0 || insn->ndsts == 0) return false;
    const struct tt_operand *src = &insn->src[0];
    return insn->nsrcs > 1 || tt_operand_is_set(src) || src->chunk_by == TT_CHUNK_PEER;
}

static bool over_others(const struct tt_insn *insn)
{
    for (int k = 0; k < insn->nsrcs; k++) {
        if (tt_operand_is_set(&insn->src[k])) return insn->src[k].peer == TT_PEER_OTHERS;
    }
    for (int k = 0; k < insn->ndsts; k++) {
        if (tt_operand_is_set(&insn->dst[k])) return insn->dst[k].peer == TT_PEER_OTHERS;
    }
    return false;
}

/* Start at the next rank, so that all ranks do not read the same one at the same time. */
static int walk_rank(const struct tt_cursor *cursor)
{
    int n = cursor->frame->program->nranks;
    int rank = cursor->frame->program->rank + cursor->walk;
    return rank < n ? rank : rank - n;
}

void tt_move_begin(struct tt_work *work, struct tt_cursor *cursor, const struct tt_insn *insn)
{
    cursor->moving = true;
    cursor->by_peer = walks(insn);
    if (!cursor->by_peer) {
        expand(work, cursor, insn, -1);
        return;
    }
    cursor->nwalk = cursor->frame->program->nranks;
    cursor->walk = over_others(insn) ? 1 : 0;
    if (cursor->walk < cursor->nwalk) expand(work, cursor, insn, walk_rank(cursor));
}

/* ---- one slice ---- */

static enum tt_run failed(struct tt_work *work, ncclResult_t rc)
{
    work->rc = rc;
    return TT_RUN_FAILED;
}

ncclResult_t tt_slot_misfit(const struct tt_work *work, struct tt_edge *edge, size_t got,
                            size_t want)
{
    char name[64];
    tt_edge_name(edge, name, sizeof(name));
    return tt_fail(ncclInternalError,
                   "rank %d: a slot from rank %d (%s) holds %zu bytes, expected %zu",
                   work->member->rank, tt_edge_peer(edge), name, got, want);
}

ncclResult_t tt_slot_poll(const struct tt_work *work, struct tt_edge *edge, uint64_t stamp,
                          const char **payload_out, size_t *bytes_out)
{
    for (int polls = 1;; polls++) {
        ncclResult_t rc = tt_edge_peek(edge, stamp, payload_out, bytes_out);
        if (rc != ncclInProgress || polls >= work->polls_now) return rc;
        if (polls >= POLLS_BARE) tt_cpu_pause();
    }
}

/* The only source of a message may be the rest of it in one slot: post_rest(). Its slices are taken
 * from there one after the other. */
static bool holds_slices(const struct tt_cursor *cursor, size_t got)
{
    size_t rest = (cursor->total_count - cursor->done_count) * cursor->frame->elem_bytes;
    return cursor->frame->conn == TT_CONN_P2P && cursor->src.count == 1 &&
           got == rest + cursor->slot_done;
}

static enum tt_run await_sources(struct tt_work *work, struct tt_cursor *cursor, size_t bytes)
{
    struct tt_places *src = &cursor->src;
    size_t skip = cursor->done_count * cursor->frame->elem_bytes;
    for (; src->ready < src->count; src->ready++) {
        int k = src->ready;
        if (!src->edge[k]) {
            src->at[k] = src->base[k] + skip;
            continue;
        }
        size_t got = 0;
        const char *payload = NULL;
        ncclResult_t rc = tt_slot_poll(work, src->edge[k], cursor->stamp, &payload, &got);
        if (rc == ncclInProgress) {
            return tt_cursor_wait(cursor, tt_edge_peer(src->edge[k]), "data of");
        }
        if (rc) return failed(work, rc);
        if (got != bytes && !holds_slices(cursor, got))
            return failed(work, tt_slot_misfit(work, src->edge[k], got, bytes));
        cursor->slot_bytes = got == bytes ? 0 : got;
        src->at[k] = (char *)(uintptr_t)payload + cursor->slot_done;
    }
    return TT_RUN_PROGRESS;
}

static enum tt_run await_destinations(struct tt_cursor *cursor, size_t bytes)
{
    bool small = bytes <= TT_SLOT_INLINE_BYTES;
    struct tt_places *dst = &cursor->dst;
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

static void post(struct tt_cursor *cursor, int k, const void *small, size_t bytes)
{
    if (small) {
        tt_edge_post_small(cursor->dst.edge[k], cursor->stamp, small, bytes);
    } else {
        tt_edge_post(cursor->dst.edge[k], cursor->stamp, bytes);
    }
}

/* The place whose bytes the destinations' slots may refer to, or NULL. */
static const char *referable(const struct tt_cursor *cursor, size_t bytes)
{
    if (bytes < REF_MIN_BYTES) return NULL;
    if (cursor->src.count == 1 && !cursor->src.edge[0] && !cursor->any_pre) {
        return cursor->ref_in ? cursor->src.at[0] : NULL;
    }
    for (int k = 0; cursor->ref_out && k < cursor->dst.count; k++) {
        if (!cursor->dst.edge[k]) return cursor->dst.at[k];
    }
    return NULL;
}

/* Post a slot that refers to memory; false: the edge cannot. */
static bool post_ref(struct tt_cursor *cursor, struct tt_edge *edge, const char *refer,
                     size_t bytes)
{
    if (!tt_edge_post_ref(edge, cursor->stamp, refer, bytes)) return false;
    if (!cursor->ref_edge) cursor->ref_edge = edge;
    cursor->ref_many = cursor->ref_many || cursor->ref_edge != edge;
    return true;
}

/* Fill and post the slots from memory that holds the result already. */
static void send_result(struct tt_cursor *cursor, const char *result, const char *refer,
                        size_t bytes)
{
    struct tt_places *dst = &cursor->dst;
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
    struct tt_places *dst = &cursor->dst;
    const char *src = cursor->src.at[0];
    for (int k = 0; k < dst->count; k++) {
        if (dst->edge[k] || dst->at[k] == src) continue;
        tt_copy_run(dst->at[k], src, bytes, work->stream);
    }
    send_result(cursor, src, referable(cursor, bytes), bytes);
}

/* Memory destinations first: what they hold is then sent on from there. */
static void fold_slice(struct tt_work *work, struct tt_cursor *cursor, const struct tt_insn *insn,
                       size_t count)
{
    struct tt_places *dst = &cursor->dst;
    size_t bytes = count * cursor->frame->elem_bytes;
    void *small = cursor->small;
    struct tt_fold_job job = {
        .fold = &cursor->frame->fold,
        .srcs = (const void *const *)cursor->src.at,
        .nsrcs = cursor->src.count,
        .pre_mask = cursor->any_pre ? cursor->pre_mask : NULL,
        .scalars = cursor->scalars,
        .dsts = dst->at,
        .ndsts = dst->count,
        .post = insn->flags & TT_MOVE_POST,
        .count = count,
        .stream = work->stream,
    };
    const char *result = NULL;
    if (!has_slots(dst)) {
        tt_fold_run(&job);
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
    tt_fold_run(&job);
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

static void move_slice(struct tt_work *work, struct tt_cursor *cursor, const struct tt_insn *insn,
                       size_t count)
{
    size_t bytes = count * cursor->frame->elem_bytes;
    bool scales =
        cursor->any_pre || ((insn->flags & TT_MOVE_POST) && cursor->frame->fold.post_div > 1);
    if (cursor->src.count == 0) {
        send_result(cursor, cursor->small, NULL, 0);
    } else if (cursor->dst.count > 0 && (cursor->src.count > 1 || scales)) {
        fold_slice(work, cursor, insn, count);
    } else if (cursor->dst.count > 0) {
        copy_slice(work, cursor, bytes);
    }
    release_sources(cursor, bytes);
    cursor->done_count += count;
    cursor->src.ready = cursor->dst.ready = 0;
}

/* All that is left of a message, in one slot that refers to it: the receiver then needs this rank
 * once, not for every slice. False: it goes slice by slice. */
static bool post_rest(struct tt_cursor *cursor)
{
    size_t count = cursor->total_count - cursor->done_count;
    size_t bytes = count * cursor->frame->elem_bytes;
    bool message =
        cursor->frame->conn == TT_CONN_P2P && cursor->src.count == 1 && cursor->dst.count == 1;
    if (!message || !cursor->dst.edge[0] || count <= cursor->slice_count) return false;
    const char *refer = referable(cursor, bytes);
    if (!refer || !post_ref(cursor, cursor->dst.edge[0], refer, bytes)) return false;
    cursor->done_count = cursor->total_count;
    return true;
}

bool tt_move_advance(struct tt_work *work, struct tt_cursor *cursor, const struct tt_insn *insn)
{
    if (!cursor->by_peer || cursor->walk + 1 >= cursor->nwalk) return false;
    cursor->walk++;
    expand(work, cursor, insn, walk_rank(cursor));
    return true;
}

enum tt_run tt_move_step(struct tt_work *work, struct tt_cursor *cursor, const struct tt_insn *insn)
{
    if (cursor->by_peer && cursor->walk >= cursor->nwalk) return TT_RUN_DONE;
    size_t count = tt_min_size(cursor->total_count - cursor->done_count, cursor->slice_count);
    size_t bytes = count * cursor->frame->elem_bytes;
    enum tt_run run = await_sources(work, cursor, bytes);
    if (run != TT_RUN_PROGRESS) return run;
    run = await_destinations(cursor, bytes);
    if (run != TT_RUN_PROGRESS) return run;
    if (!post_rest(cursor)) move_slice(work, cursor, insn, count);
    if (cursor->done_count < cursor->total_count) return TT_RUN_PROGRESS;
    return tt_move_advance(work, cursor, insn) ? TT_RUN_PROGRESS : TT_RUN_DONE;
}
