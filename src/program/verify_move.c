/* One MOVE, symbolically. A move is a list of steps (one for a fold or a plain copy, one per peer
 * for independent copies); each step is done slice by slice, and each slice waits until all its
 * slots are there before anything changes. */
#include "operand.h"
#include "verify.h"

#include "base/mem.h"

#include <stdlib.h>

struct spot { /* an operand at one peer */
    bool slot;
    struct tt_verify_place place; /* slot: rank is the other end */
};

struct step { /* sources and destinations of one fold or copy; at most 4 sets */
    int nsrcs, ndsts;
    size_t count; /* elements */
    struct spot *src, *dst;
};

/* The operand where it stands for `peer` (own rank for SELF). */
static struct spot spot_at(const struct tt_verify_cursor *cursor, const struct tt_operand *operand,
                           int peer)
{
    int me = cursor->program->rank;
    struct spot spot = {.slot = operand->space == TT_SPACE_SLOT};
    spot.place.rank = operand->peer == TT_PEER_SELF ? me : peer;
    spot.place.chunk = tt_operand_chunk(cursor->program, operand, peer, cursor->i);
    spot.place.buffer = operand->space == TT_SPACE_OUT ? TT_VERIFY_OUT : TT_VERIFY_IN;
    if (spot.slot && spot.place.rank == me) spot.slot = false; /* stands for the own IN */
    return spot;
}

static int flatten(const struct tt_verify_cursor *cursor, const struct tt_operand *operands,
                   int noperands, struct spot *spots)
{
    int me = cursor->program->rank;
    int count = 0;
    for (int k = 0; k < noperands; k++) {
        if (!tt_operand_is_set(&operands[k])) {
            int peer = operands[k].peer == TT_PEER_RANK ? operands[k].peer_rank : me;
            spots[count++] = spot_at(cursor, &operands[k], peer);
            continue;
        }
        for (int p = 0; p < cursor->program->nranks; p++) {
            if (operands[k].peer == TT_PEER_OTHERS && p == me) continue;
            spots[count++] = spot_at(cursor, &operands[k], p);
        }
    }
    return count;
}

/* Independent copies: the operands at one peer of the walk. */
static void stand_at(const struct tt_verify_cursor *cursor, const struct tt_insn *insn, int peer,
                     struct step *step)
{
    int me = cursor->program->rank;
    const struct tt_operand *src = &insn->src[0];
    step->nsrcs = insn->nsrcs;
    step->ndsts = insn->ndsts;
    for (int k = 0; k < insn->nsrcs + insn->ndsts; k++) {
        const struct tt_operand *operand = k < insn->nsrcs ? src : &insn->dst[k - insn->nsrcs];
        int at = operand->peer == TT_PEER_RANK ? operand->peer_rank : peer;
        struct spot spot = spot_at(cursor, operand, at);
        if (operand->chunk_by == TT_CHUNK_PEER) spot.place.chunk = peer;
        if (operand->peer == TT_PEER_SELF) spot.place.rank = me;
        if (k < insn->nsrcs) {
            step->src[k] = spot;
        } else {
            step->dst[k - insn->nsrcs] = spot;
        }
    }
}

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
                         const struct spot *spot)
{
    if (!spot->slot) return true;
    struct tt_verify_edge *edge = tt_verify_edge(verify, spot->place.rank, cursor->program->rank);
    if (!edge || !own_end(verify, cursor, &edge->receiver)) return false;
    return edge->tail != edge->head || block(cursor, TT_WAIT_FULL, spot->place.rank);
}

static bool destination_ready(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                              const struct spot *spot)
{
    if (!spot->slot) return true;
    struct tt_verify_edge *edge = tt_verify_edge(verify, cursor->program->rank, spot->place.rank);
    if (!edge || !own_end(verify, cursor, &edge->sender)) return false;
    bool room = edge->tail - edge->head < (uint32_t)verify->options->nslots;
    return room || block(cursor, TT_WAIT_FREE, spot->place.rank);
}

/* Take a full slot: its value (reference passes to the caller). */
static int32_t receive(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                       const struct spot *spot, size_t count)
{
    struct tt_verify_edge *edge = tt_verify_edge(verify, spot->place.rank, cursor->program->rank);
    size_t k = edge->head % (uint32_t)verify->options->nslots;
    size_t at = k * (size_t)verify->nthreads;
    if (edge->slots[k].count != count) {
        tt_verify_fail(verify, cursor, "expects %zu elements from rank %d and gets %zu", count,
                       spot->place.rank, edge->slots[k].count);
    }
    tt_verify_join(verify, tt_verify_clock(verify, cursor->thread), &edge->posted[at]);
    tt_verify_release(verify, cursor->thread, &edge->freed[at]);
    edge->head++;
    return edge->slots[k].value;
}

static void post(struct tt_verify *verify, struct tt_verify_cursor *cursor, const struct spot *spot,
                 struct tt_verify_slot content)
{
    struct tt_verify_edge *edge = tt_verify_edge(verify, cursor->program->rank, spot->place.rank);
    size_t k = edge->tail % (uint32_t)verify->options->nslots;
    size_t at = k * (size_t)verify->nthreads;
    tt_verify_join(verify, tt_verify_clock(verify, cursor->thread), &edge->freed[at]);
    tt_verify_release(verify, cursor->thread, &edge->posted[at]);
    tt_verify_value_hold(verify, content.value);
    edge->slots[k] = content;
    edge->tail++;
}

/* ---- values ---- */

/* Add `value` to `sum`, with the pre-operation if asked. */
static bool add(struct tt_verify *verify, struct tt_verify_cursor *cursor, int32_t sum,
                int32_t value, bool pre)
{
    struct tt_verify_atom *into = tt_verify_atoms(verify, sum);
    const struct tt_verify_atom *from = tt_verify_atoms(verify, value);
    bool combines = cursor->program->insns[cursor->pc].flags & TT_MOVE_FOLD;
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
                            const struct spot *spot, const struct step *step)
{
    size_t first = cursor->slice * verify->slice;
    size_t count = tt_min_size(verify->slice, step->count - first);
    if (spot->slot) return receive(verify, cursor, spot, count);
    if (!step->count) return TT_VERIFY_NOTHING;
    const struct tt_verify_cell *cell = tt_verify_access(verify, cursor, &spot->place, false);
    if (!cell) return TT_VERIFY_NOTHING;
    if (cell->value < 0) {
        tt_verify_fail(verify, cursor, "reads %s of rank %d, chunk %d, which holds nothing",
                       spot->place.buffer == TT_VERIFY_IN ? "IN" : "OUT", spot->place.rank,
                       spot->place.chunk);
    }
    tt_verify_value_hold(verify, cell->value);
    return cell->value;
}

/* The folded (or copied) value of one slice; reference to the caller. */
static int32_t combine(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                       const struct step *step)
{
    uint8_t flags = cursor->program->insns[cursor->pc].flags;
    int32_t sum = step->count && step->nsrcs ? tt_verify_value_new(verify) : TT_VERIFY_NOTHING;
    for (int k = 0; k < step->nsrcs; k++) {
        const struct spot *spot = &step->src[k];
        int32_t value = source_value(verify, cursor, spot, step);
        bool from_in = !spot->slot && spot->place.buffer == TT_VERIFY_IN;
        if (verify->failed || !step->count) continue;
        if (value < 0) {
            tt_verify_fail(verify, cursor, "gets an empty slot from rank %d", spot->place.rank);
            continue;
        }
        add(verify, cursor, sum, value, (flags & TT_MOVE_PRE) && from_in);
        tt_verify_value_drop(verify, value);
    }
    if (sum >= 0 && (flags & TT_MOVE_POST)) verify->values[sum].post++;
    return sum;
}

/* A copy onto itself (in place) touches nothing. */
static bool same_place(const struct tt_verify *verify, const struct step *step,
                       const struct spot *dst)
{
    if (step->nsrcs != 1 || step->src[0].slot || dst->slot) return false;
    return tt_verify_cell(verify, &step->src[0].place) == tt_verify_cell(verify, &dst->place);
}

static void store(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                  const struct step *step, int32_t value)
{
    bool plain = cursor->program->insns[cursor->pc].flags == 0;
    size_t first = cursor->slice * verify->slice;
    struct tt_verify_slot content = {.value = value,
                                     .count = tt_min_size(verify->slice, step->count - first)};
    for (int k = 0; k < step->ndsts && !verify->failed; k++) {
        const struct spot *spot = &step->dst[k];
        if (spot->slot) {
            post(verify, cursor, spot, content);
            continue;
        }
        if (!step->count || (plain && same_place(verify, step, spot))) continue;
        struct tt_verify_cell *cell = tt_verify_access(verify, cursor, &spot->place, true);
        if (!cell) return;
        tt_verify_value_hold(verify, value);
        tt_verify_value_drop(verify, cell->value);
        cell->value = value;
    }
}

/* ---- steps ---- */

/* All operands mean as many elements; where they lie. */
static bool measure(struct tt_verify *verify, struct tt_verify_cursor *cursor, struct step *step)
{
    for (int k = 0; k < step->nsrcs + step->ndsts; k++) {
        struct spot *spot = k < step->nsrcs ? &step->src[k] : &step->dst[k - step->nsrcs];
        int chunk = spot->place.chunk;
        int bound =
            verify->geometry.kind == TT_GEOMETRY_SPLIT ? verify->geometry.nchunks : verify->nchunks;
        if (chunk < 0 || chunk >= bound) {
            return tt_verify_fail(verify, cursor, "there is no chunk %d", chunk);
        }
        struct tt_extent extent = tt_geometry_extent(&verify->geometry, cursor->pass, chunk);
        if (k > 0 && extent.count != step->count) {
            return tt_verify_fail(verify, cursor, "moves %zu elements to or from a place of %zu",
                                  step->count, extent.count);
        }
        step->count = extent.count;
        spot->place.unit = tt_verify_unit(verify, cursor->pass, chunk, cursor->slice);
    }
    return true;
}

static bool run_slice(struct tt_verify *verify, struct tt_verify_cursor *cursor, struct step *step)
{
    for (int k = 0; k < step->nsrcs; k++) {
        if (!source_ready(verify, cursor, &step->src[k])) return false;
    }
    for (int k = 0; k < step->ndsts; k++) {
        if (!destination_ready(verify, cursor, &step->dst[k])) return false;
    }
    int32_t value = combine(verify, cursor, step);
    if (!verify->failed) store(verify, cursor, step, value);
    tt_verify_value_drop(verify, value);
    return !verify->failed;
}

static bool run_step(struct tt_verify *verify, struct tt_verify_cursor *cursor, struct step *step)
{
    do {
        if (!measure(verify, cursor, step) || !run_slice(verify, cursor, step)) return false;
        cursor->slice++;
    } while (cursor->slice * verify->slice < step->count);
    cursor->slice = 0;
    return true;
}

/* True when the copy is one per peer. */
static bool walks(const struct tt_insn *insn)
{
    if ((insn->flags & TT_MOVE_FOLD) || insn->nsrcs == 0) return false;
    return tt_operand_is_set(&insn->src[0]) || insn->src[0].chunk_by == TT_CHUNK_PEER;
}

static bool walks_others(const struct tt_insn *insn)
{
    bool others = insn->src[0].peer == TT_PEER_OTHERS;
    for (int k = 0; k < insn->ndsts; k++)
        others = others || insn->dst[k].peer == TT_PEER_OTHERS;
    return others;
}

static bool run_walk(struct tt_verify *verify, struct tt_verify_cursor *cursor, struct step *step)
{
    const struct tt_insn *insn = &cursor->program->insns[cursor->pc];
    int me = cursor->program->rank;
    for (; cursor->walked < verify->nranks; cursor->walked++) {
        int peer = (me + 1 + cursor->walked) % verify->nranks;
        if (peer == me && walks_others(insn)) continue;
        stand_at(cursor, insn, peer, step);
        if (!run_step(verify, cursor, step)) return false;
    }
    cursor->walked = 0;
    return true;
}

bool tt_verify_move(struct tt_verify *verify, struct tt_verify_cursor *cursor)
{
    const struct tt_insn *insn = &cursor->program->insns[cursor->pc];
    size_t most = TT_MAX_OPERANDS * (size_t)verify->nranks;
    struct spot *spots = tt_calloc(2 * most, sizeof(*spots));
    if (!spots) return tt_verify_fail(verify, cursor, "out of memory");
    struct step step = {.src = spots, .dst = spots + most};
    bool done;
    if (walks(insn)) {
        done = run_walk(verify, cursor, &step);
    } else {
        step.nsrcs = flatten(cursor, insn->src, insn->nsrcs, step.src);
        step.ndsts = flatten(cursor, insn->dst, insn->ndsts, step.dst);
        done = run_step(verify, cursor, &step);
    }
    free(spots);
    return done;
}
