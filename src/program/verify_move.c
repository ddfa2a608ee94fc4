/* One transfer, symbolically: slice by slice, and a slice waits until all its slots are there
 * before anything changes. Where it goes from and to is the stepper's word. */
#include "verify_state.h"

#include "base/mem.h"

#include <stdlib.h>

/* ---- slots ---- */

static bool block(struct tt_verify_cursor *cursor, enum tt_verify_wait wait, int peer)
{
    cursor->wait = wait;
    cursor->wait_peer = peer;
    return false;
}

static bool own_end(struct tt_verify *verify, struct tt_verify_cursor *cursor, int32_t *owner)
{
    if (*owner < 0) *owner = cursor->thread;
    if (*owner == cursor->thread) return true;
    return tt_verify_fail(verify, cursor, "two threads use one end of an edge");
}

static bool source_ready(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                         const struct tt_place *place)
{
    if (place->space != TT_SPACE_SLOT) return true;
    struct tt_verify_edge *edge = tt_verify_edge(verify, place->rank, cursor->program->rank);
    if (!edge || !own_end(verify, cursor, &edge->receiver)) return false;
    return edge->tail != edge->head || block(cursor, TT_WAIT_FULL, place->rank);
}

static bool destination_ready(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                              const struct tt_place *place)
{
    if (place->space != TT_SPACE_SLOT) return true;
    struct tt_verify_edge *edge = tt_verify_edge(verify, cursor->program->rank, place->rank);
    if (!edge || !own_end(verify, cursor, &edge->sender)) return false;
    bool room = edge->tail - edge->head < (uint32_t)verify->options->nslots;
    return room || block(cursor, TT_WAIT_FREE, place->rank);
}

/* Take a full slot: its value (reference passes to the caller). */
static int32_t receive(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                       const struct tt_place *place, size_t count)
{
    struct tt_verify_edge *edge = tt_verify_edge(verify, place->rank, cursor->program->rank);
    size_t k = edge->head % (uint32_t)verify->options->nslots;
    size_t at = k * (size_t)verify->nthreads;
    if (edge->slots[k].count != count && verify->move.ndsts > 0) {
        tt_verify_fail(verify, cursor, "expects %zu elements from rank %d and gets %zu", count,
                       place->rank, edge->slots[k].count);
    }
    tt_verify_join(verify, tt_verify_clock(verify, cursor->thread), &edge->posted[at]);
    tt_verify_release(verify, cursor->thread, &edge->freed[at]);
    edge->head++;
    return edge->slots[k].value;
}

static void post(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                 const struct tt_place *place, struct tt_verify_slot content)
{
    struct tt_verify_edge *edge = tt_verify_edge(verify, cursor->program->rank, place->rank);
    size_t k = edge->tail % (uint32_t)verify->options->nslots;
    size_t at = k * (size_t)verify->nthreads;
    tt_verify_join(verify, tt_verify_clock(verify, cursor->thread), &edge->freed[at]);
    tt_verify_release(verify, cursor->thread, &edge->posted[at]);
    tt_verify_value_hold(verify, content.value);
    edge->slots[k] = content;
    edge->tail++;
}

/* ---- values ---- */

static const struct tt_insn *insn_of(const struct tt_verify_cursor *cursor)
{
    return tt_stepper_insn(&cursor->stepper);
}

/* Elements of the slice that the cursor is at, of a chunk of `count`. */
static size_t slice_count(const struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                          size_t count)
{
    return tt_min_size(verify->slice, count - cursor->slice * verify->slice);
}

/* The unit of memory behind a place at the cursor's slice. */
static struct tt_verify_place unit_at(const struct tt_verify *verify,
                                      const struct tt_verify_cursor *cursor,
                                      const struct tt_place *place)
{
    return (struct tt_verify_place){
        .buffer = place->space == TT_SPACE_OUT ? TT_VERIFY_OUT : TT_VERIFY_IN,
        .rank = place->rank,
        .chunk = place->chunk,
        .unit = tt_verify_unit(verify, cursor->stepper.pass, place->chunk, cursor->slice),
    };
}

/* Add `value` to `sum`, with the pre-operation if asked. */
static bool add(struct tt_verify *verify, struct tt_verify_cursor *cursor, int32_t sum,
                int32_t value, bool pre)
{
    struct tt_verify_atom *into = tt_verify_atoms(verify, sum);
    const struct tt_verify_atom *from = tt_verify_atoms(verify, value);
    bool combines = insn_of(cursor)->flags & TT_MOVE_FOLD;
    if (verify->values[value].post && (combines || pre)) {
        return tt_verify_fail(verify, cursor, "goes on computing with a finished value");
    }
    verify->values[sum].post += verify->values[value].post;
    for (int r = 0; r < verify->nranks; r++) {
        if (!from[r].times) continue;
        if (into[r].times && into[r].unit != from[r].unit) into[r].unit = -2;
        if (!into[r].times) into[r].unit = from[r].unit;
        int times = into[r].times + from[r].times;
        into[r].times = (uint8_t)(times < 200 ? times : 200);
        into[r].pre = (uint8_t)(into[r].pre + from[r].pre + (pre ? 1 : 0));
    }
    return true;
}

static int32_t source_value(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                            const struct tt_place *place, size_t count)
{
    if (place->space == TT_SPACE_SLOT) {
        return receive(verify, cursor, place, slice_count(verify, cursor, count));
    }
    if (!count) return TT_VERIFY_NOTHING;
    const struct tt_verify_place unit = unit_at(verify, cursor, place);
    const struct tt_verify_cell *cell = tt_verify_access(verify, cursor, &unit, false);
    if (!cell) return TT_VERIFY_NOTHING;
    if (cell->value < 0) {
        tt_verify_fail(verify, cursor, "reads %s of rank %d, chunk %d, which holds nothing",
                       place->space == TT_SPACE_IN ? "IN" : "OUT", place->rank, place->chunk);
    }
    tt_verify_value_hold(verify, cell->value);
    return cell->value;
}

/* The folded (or copied) value of one slice; reference to the caller. */
static int32_t combine(struct tt_verify *verify, struct tt_verify_cursor *cursor, size_t count)
{
    const struct tt_move *move = &verify->move;
    bool result = count && move->nsrcs && move->ndsts;
    int32_t sum = result ? tt_verify_value_new(verify) : TT_VERIFY_NOTHING;
    for (int k = 0; k < move->nsrcs; k++) {
        const struct tt_place *place = &move->src[k];
        int32_t value = source_value(verify, cursor, place, count);
        if (!verify->failed && result) add(verify, cursor, sum, value, place->pre);
        tt_verify_value_drop(verify, value);
    }
    if (sum >= 0 && (insn_of(cursor)->flags & TT_MOVE_POST)) verify->values[sum].post++;
    return sum;
}

/* A copy onto itself (in place) touches nothing. */
static bool same_place(const struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                       const struct tt_place *dst)
{
    const struct tt_place *src = &verify->move.src[0];
    if (insn_of(cursor)->flags || verify->move.nsrcs != 1 || src->space == TT_SPACE_SLOT)
        return false;
    const struct tt_verify_place from = unit_at(verify, cursor, src);
    const struct tt_verify_place to = unit_at(verify, cursor, dst);
    return tt_verify_cell(verify, &from) == tt_verify_cell(verify, &to);
}

/* Slots of this transfer may refer to that memory. */
static void refer(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                  const struct tt_place *place)
{
    const struct tt_verify_place unit = unit_at(verify, cursor, place);
    tt_verify_cell(verify, &unit)->referred = true;
}

static void refer_all(struct tt_verify *verify, const struct tt_verify_cursor *cursor)
{
    const struct tt_move *move = &verify->move;
    bool in_place = tt_verify_shares(verify, cursor->program->rank);
    int refs = insn_of(cursor)->refs >> (in_place ? TT_REF_IN_PLACE_ : 0);
    bool one = move->nsrcs == 1 && move->src[0].space != TT_SPACE_SLOT;
    if (one && (refs & TT_REF_SRC)) refer(verify, cursor, &move->src[0]);
    for (int k = 0; k < move->ndsts && (refs & TT_REF_DST); k++) {
        if (move->dst[k].space == TT_SPACE_SLOT) continue;
        refer(verify, cursor, &move->dst[k]);
        return;
    }
}

static void store(struct tt_verify *verify, struct tt_verify_cursor *cursor, int32_t value,
                  size_t count)
{
    const struct tt_move *move = &verify->move;
    struct tt_verify_slot content = {.value = value};
    if (move->nsrcs > 0) content.count = slice_count(verify, cursor, count);
    for (int k = 0; k < move->ndsts && !verify->failed; k++) {
        const struct tt_place *place = &move->dst[k];
        if (place->space == TT_SPACE_SLOT) {
            post(verify, cursor, place, content);
            continue;
        }
        if (!content.count || same_place(verify, cursor, place)) continue;
        const struct tt_verify_place unit = unit_at(verify, cursor, place);
        struct tt_verify_cell *cell = tt_verify_access(verify, cursor, &unit, true);
        if (!cell) return;
        tt_verify_value_hold(verify, value);
        tt_verify_value_drop(verify, cell->value);
        cell->value = value;
    }
    if (content.count && !verify->failed) refer_all(verify, cursor);
}

/* ---- the transfer ---- */

/* No edge is used twice: its slots are waited for all at once, and a second one is behind the
 * first. */
static bool distinct(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                     const struct tt_place *places, int count)
{
    for (int k = 0; k < count; k++) {
        for (int j = 0; j < k && places[k].space == TT_SPACE_SLOT; j++) {
            if (places[j].space != TT_SPACE_SLOT || places[j].rank != places[k].rank) continue;
            return tt_verify_fail(verify, cursor, "uses the edge with rank %d twice in one move",
                                  places[k].rank);
        }
    }
    return true;
}

/* All places mean as many elements, *count_out. */
static bool measure(struct tt_verify *verify, struct tt_verify_cursor *cursor, size_t *count_out)
{
    const struct tt_move *move = &verify->move;
    int bound =
        verify->geometry.kind == TT_GEOMETRY_SPLIT ? verify->geometry.nchunks : verify->nchunks;
    for (int k = 0; k < move->nsrcs + move->ndsts; k++) {
        const struct tt_place *place =
            k < move->nsrcs ? &move->src[k] : &move->dst[k - move->nsrcs];
        if (place->chunk < 0 || place->chunk >= bound) {
            return tt_verify_fail(verify, cursor, "there is no chunk %d", place->chunk);
        }
        struct tt_extent extent =
            tt_geometry_extent(&verify->geometry, cursor->stepper.pass, place->chunk);
        if (k > 0 && extent.count != *count_out) {
            return tt_verify_fail(verify, cursor, "moves %zu elements to or from a place of %zu",
                                  *count_out, extent.count);
        }
        *count_out = extent.count;
    }
    return distinct(verify, cursor, move->src, move->nsrcs) &&
           distinct(verify, cursor, move->dst, move->ndsts);
}

static bool run_slice(struct tt_verify *verify, struct tt_verify_cursor *cursor, size_t count)
{
    const struct tt_move *move = &verify->move;
    for (int k = 0; k < move->nsrcs; k++) {
        if (!source_ready(verify, cursor, &move->src[k])) return false;
    }
    for (int k = 0; k < move->ndsts; k++) {
        if (!destination_ready(verify, cursor, &move->dst[k])) return false;
    }
    int32_t value = combine(verify, cursor, count);
    if (!verify->failed) store(verify, cursor, value, count);
    tt_verify_value_drop(verify, value);
    return !verify->failed;
}

bool tt_verify_move(struct tt_verify *verify, struct tt_verify_cursor *cursor)
{
    size_t count = 0;
    tt_stepper_move(&cursor->stepper, &verify->move);
    if (!measure(verify, cursor, &count)) return false;
    do {
        if (!run_slice(verify, cursor, count)) return false;
        cursor->slice++;
    } while (cursor->slice * verify->slice < count);
    cursor->slice = 0;
    return true;
}
