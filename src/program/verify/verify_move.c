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

static struct tt_verify_edge *edge_from(struct tt_verify *verify,
                                        const struct tt_verify_cursor *cursor,
                                        const struct tt_location *location)
{
    return tt_verify_edge(verify, location->edge / verify->nranks, location->rank, cursor->rank);
}

static struct tt_verify_edge *edge_to(struct tt_verify *verify,
                                      const struct tt_verify_cursor *cursor,
                                      const struct tt_location *location)
{
    return tt_verify_edge(verify, location->edge / verify->nranks, cursor->rank, location->rank);
}

/* ---- the network's slots ----
 * An edge from each rank of a group to itself. A message that a rank gave stays in its slot until
 * all of the group have taken what the network makes of it. What it does at once is a call. */

/* The edge of the group's next rank from place *at on, on the location's channel; *rank is that
 * rank. NULL: no more, or memory is short. */
static struct tt_verify_edge *next_of_group(struct tt_verify *verify,
                                            const struct tt_verify_cursor *cursor,
                                            const struct tt_location *location, int *at, int *rank)
{
    *rank = tt_network_member(cursor->program, cursor->rank, at);
    if (*rank < 0) return NULL;
    return tt_verify_edge(verify, location->edge / verify->nranks, *rank, *rank);
}

/* All of the group gave what the cursor would take next. */
static bool sum_ready(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                      const struct tt_location *location)
{
    const struct tt_network_call call = tt_program_network(cursor->program, cursor->rank);
    const struct tt_verify_edge *edge, *own = edge_to(verify, cursor, location);
    int r;
    for (int at = 0; own && (edge = next_of_group(verify, cursor, location, &at, &r)); at++) {
        if (edge->tail / call.gives <= own->head / call.takes)
            return block(cursor, TT_WAIT_FULL, r);
    }
    return own && !verify->failed;
}

/* The slot that comes next is no longer part of a call of which a rank of the group will take. */
static bool network_free(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                         const struct tt_location *location)
{
    const struct tt_network_call call = tt_program_network(cursor->program, cursor->rank);
    const struct tt_verify_edge *edge, *own = edge_to(verify, cursor, location);
    int r;
    for (int at = 0; own && (edge = next_of_group(verify, cursor, location, &at, &r)); at++) {
        if (own->tail / call.gives - edge->head / call.takes >= own->nslots / call.gives)
            return block(cursor, TT_WAIT_FREE, r);
    }
    return own && !verify->failed;
}

static const struct tt_verify_slot *given(const struct tt_verify_edge *edge, uint32_t number)
{
    return &edge->slots[number % edge->nslots];
}

static bool learn_sum(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                      const struct tt_location *location)
{
    const struct tt_network_call call = tt_program_network(cursor->program, cursor->rank);
    const struct tt_verify_edge *edge;
    uint32_t number = edge_to(verify, cursor, location)->head / call.takes * call.gives;
    int r;
    for (int at = 0; (edge = next_of_group(verify, cursor, location, &at, &r)); at++) {
        for (uint32_t k = 0; k < call.gives; k++) {
            const struct tt_verify_clock *posted = &given(edge, number + k)->posted;
            if (!tt_verify_join(verify, &verify->clocks[cursor->thread], posted)) return false;
        }
    }
    return !verify->failed;
}

static bool source_ready(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                         const struct tt_location *location)
{
    if (!tt_location_is_slot(location)) return true;
    if (location->space == TT_SPACE_NETWORK) return sum_ready(verify, cursor, location);
    struct tt_verify_edge *edge = edge_from(verify, cursor, location);
    if (!edge) return false;
    return edge->tail != edge->head || block(cursor, TT_WAIT_FULL, location->rank);
}

static bool destination_ready(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                              const struct tt_location *location)
{
    if (!tt_location_is_slot(location)) return true;
    if (location->space == TT_SPACE_NETWORK) return network_free(verify, cursor, location);
    struct tt_verify_edge *edge = edge_to(verify, cursor, location);
    if (!edge) return false;
    bool room = edge->tail - edge->head < (uint32_t)verify->options->nslots;
    return room || block(cursor, TT_WAIT_FREE, location->rank);
}

/* The message is here: what its slot referred to may be written after this moment. */
static bool take_refs(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                      struct tt_verify_slot *slot)
{
    for (size_t k = 0; k < TT_LEN(slot->refers); k++) {
        if (slot->refers[k] && !tt_verify_cell_take(verify, cursor, slot->refers[k])) return false;
        slot->refers[k] = NULL;
    }
    return true;
}

/* What the sender did before it posted comes before all that the transfer does. That there is room
 * orders nothing: an edge may have more slots than are asked for. */
static bool learn(struct tt_verify *verify, struct tt_verify_cursor *cursor)
{
    for (int k = 0; k < verify->move.nsrcs; k++) {
        if (!tt_location_is_slot(&verify->move.src[k])) continue;
        if (verify->move.src[k].space == TT_SPACE_NETWORK) {
            if (!learn_sum(verify, cursor, &verify->move.src[k])) return false;
            continue;
        }
        const struct tt_verify_edge *edge = edge_from(verify, cursor, &verify->move.src[k]);
        struct tt_verify_slot *slot = &edge->slots[edge->head % edge->nslots];
        if (!tt_verify_join(verify, &verify->clocks[cursor->thread], &slot->posted)) return false;
        if (!take_refs(verify, cursor, slot)) return false;
    }
    return true;
}

/* A slot that is free again. */
static void give_back(struct tt_verify_edge *edge, bool network)
{
    if (!network) tt_verify_clock_drop(&edge->slots[edge->head % edge->nslots].posted);
    edge->head++; /* what the network holds is dropped when its slot is used again */
}

/* What is in a slot has the length and the part of a window that the transfer is about. */
static void check_slot(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                       const struct tt_verify_slot *slot, int from, size_t count)
{
    if (verify->move.ndsts == 0) return;
    if (slot->count != count) {
        tt_verify_fail(verify, cursor, "expects %zu elements from rank %d and gets %zu", count,
                       from, slot->count);
    } else if (slot->part != verify->part) {
        tt_verify_fail(verify, cursor, "expects part %d of a window from rank %d and gets part %d",
                       verify->part, from, slot->part);
    }
}

/* What the network has made of what the group gave: the sum, or the message of one of it. */
static struct tt_verify_value receive_sum(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                                          const struct tt_location *location, size_t count)
{
    const struct tt_network_call call = tt_program_network(cursor->program, cursor->rank);
    struct tt_verify_value sum = {.known = count > 0};
    const struct tt_verify_edge *edge;
    uint32_t head = edge_to(verify, cursor, location)->head, member = 0;
    int r;
    for (int at = 0; (edge = next_of_group(verify, cursor, location, &at, &r)); at++) {
        uint32_t part = tt_network_part(&call, member++), number = head / call.takes * call.gives;
        const struct tt_verify_slot *slot = given(edge, number + (call.gives > 1 ? part : 0));
        if (verify->failed || (call.takes > 1 && part != head % call.takes)) continue;
        check_slot(verify, cursor, slot, r, count);
        if (slot->value.post && call.takes == 1) {
            tt_verify_fail(verify, cursor, "lets the network reduce a finished value of rank %d",
                           r);
        }
        if (count) tt_verify_value_add(&sum, &slot->value);
    }
    return sum;
}

/* Take a full slot: its value. */
static struct tt_verify_value receive(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                                      const struct tt_location *location, size_t count)
{
    struct tt_verify_edge *edge = edge_from(verify, cursor, location);
    struct tt_verify_slot *slot = &edge->slots[edge->head % edge->nslots];
    check_slot(verify, cursor, slot, location->rank, count);
    return slot->value;
}

static void post(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                 const struct tt_location *location, struct tt_verify_value value, size_t count)
{
    struct tt_verify_edge *edge = edge_to(verify, cursor, location);
    struct tt_verify_slot *slot = &edge->slots[edge->tail % edge->nslots];
    tt_verify_release(verify, cursor->thread, &slot->posted);
    slot->value = value;
    slot->count = count;
    slot->part = verify->part;
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

/* The unit of memory behind a location at the cursor's slice. */
static struct tt_verify_location unit_at(const struct tt_verify *verify,
                                         const struct tt_verify_cursor *cursor,
                                         const struct tt_location *location)
{
    struct tt_verify_location unit = {
        .buffer = location->space == TT_SPACE_OUT ? TT_VERIFY_OUT : TT_VERIFY_IN,
        .rank = location->rank,
        .chunk = location->chunk,
    };
    uint32_t pass = cursor->stepper.pass;
    if (location->space != TT_SPACE_SCRATCH) {
        unit.unit = tt_verify_unit(verify, pass, location->chunk, cursor->slice);
        return unit;
    }
    size_t row = (size_t)pass * (size_t)cursor->program->scratch + (size_t)location->chunk;
    unit.buffer = TT_VERIFY_SCRATCH;
    unit.unit = row * verify->nslices + cursor->slice;
    return unit;
}

/* Add `value` to `sum`, with the pre-operation of rank `location->rank` if asked. */
static void add(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                struct tt_verify_value *sum, struct tt_verify_value value,
                const struct tt_location *location)
{
    bool combines = insn_of(cursor)->flags & TT_MOVE_REDUCE;
    if (value.post && (combines || location->pre)) {
        tt_verify_fail(verify, cursor, "goes on computing with a finished value");
        return;
    }
    if (location->pre) tt_verify_value_scale(&value, location->rank);
    tt_verify_value_add(sum, &value);
    sum->post += value.post;
    sum->known = true;
}

static struct tt_verify_value source_value(struct tt_verify *verify,
                                           struct tt_verify_cursor *cursor,
                                           const struct tt_location *location, size_t count)
{
    const struct tt_verify_value none = {.known = false};
    if (location->space == TT_SPACE_NETWORK)
        return receive_sum(verify, cursor, location, slice_count(verify, cursor, count));
    if (location->space == TT_SPACE_SLOT) {
        return receive(verify, cursor, location, slice_count(verify, cursor, count));
    }
    if (!count || verify->move.ndsts == 0) return none; /* nothing is read */
    const struct tt_verify_location unit = unit_at(verify, cursor, location);
    const struct tt_verify_cell *cell = tt_verify_access(verify, cursor, &unit, false);
    if (!cell) return none;
    if (!cell->value.known) {
        static const char *const names[] = {
            [TT_SPACE_IN] = "IN", [TT_SPACE_OUT] = "OUT", [TT_SPACE_SCRATCH] = "scratch"};
        tt_verify_fail(verify, cursor, "reads %s of rank %d, chunk %d, which holds nothing",
                       names[location->space], location->rank, location->chunk);
    } else if (location->space == TT_SPACE_SCRATCH &&
               cell->count < slice_count(verify, cursor, count)) {
        tt_verify_fail(verify, cursor, "reads %zu elements of scratch chunk %d, which holds %u",
                       slice_count(verify, cursor, count), location->chunk,
                       (unsigned int)cell->count);
    } else if (location->space == TT_SPACE_SCRATCH && cell->part != verify->part) {
        tt_verify_fail(verify, cursor,
                       "reads part %d of a window from scratch chunk %d, which holds part %d",
                       verify->part, location->chunk, (int)cell->part);
    }
    return cell->value;
}

/* The reduced (or copied) value of one slice. */
static struct tt_verify_value combine(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                                      size_t count)
{
    const struct tt_move *move = &verify->move;
    bool result = count && move->nsrcs && move->ndsts;
    struct tt_verify_value sum = {.known = false};
    for (int k = 0; k < move->nsrcs; k++) {
        const struct tt_location *location = &move->src[k];
        struct tt_verify_value value = source_value(verify, cursor, location, count);
        if (!verify->failed && result) add(verify, cursor, &sum, value, location);
    }
    if (result && (insn_of(cursor)->flags & TT_MOVE_POST)) sum.post++;
    return sum;
}

/* A copy onto itself (in place) touches nothing. */
static bool same_location(const struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                          const struct tt_location *dst)
{
    const struct tt_location *src = &verify->move.src[0];
    if (insn_of(cursor)->flags || verify->move.nsrcs != 1 || tt_location_is_slot(src)) return false;
    const struct tt_verify_location from = unit_at(verify, cursor, src);
    const struct tt_verify_location to = unit_at(verify, cursor, dst);
    return tt_verify_cell(verify, &from) == tt_verify_cell(verify, &to);
}

/* The slots that this transfer posted refer to the memory until they are taken. */
static void refer_until_taken(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                              struct tt_verify_cell *cell)
{
    for (int k = 0; k < verify->move.ndsts; k++) {
        const struct tt_location *location = &verify->move.dst[k];
        if (location->space != TT_SPACE_SLOT) continue;
        const struct tt_verify_edge *edge = edge_to(verify, cursor, location);
        struct tt_verify_slot *slot = &edge->slots[(edge->tail - 1) % edge->nslots];
        slot->refers[slot->refers[0] != NULL] = cell;
        tt_verify_cell_post(cell);
    }
}

/* Slots of this transfer may refer to that memory, to its owner's end, or until they are taken. */
static void refer(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                  const struct tt_location *location, bool always)
{
    const struct tt_verify_location unit = unit_at(verify, cursor, location);
    struct tt_verify_cell *cell = tt_verify_cell(verify, &unit);
    if (always) {
        cell->referred = true;
    } else {
        refer_until_taken(verify, cursor, cell);
    }
}

static void refer_all(struct tt_verify *verify, const struct tt_verify_cursor *cursor)
{
    const struct tt_move *move = &verify->move;
    bool in_place = tt_verify_shares(verify, cursor->rank);
    int refs = verify->refs[tt_verify_insn(verify, cursor->rank, cursor->stepper.pc)] >>
               (in_place ? TT_REF_IN_PLACE_ : 0);
    bool one = move->nsrcs == 1 && !tt_location_is_slot(&move->src[0]);
    if (one && (refs & (TT_REF_SRC | TT_REF_SRC_TAKEN)))
        refer(verify, cursor, &move->src[0], refs & TT_REF_SRC);
    for (int k = 0; k < move->ndsts && (refs & (TT_REF_DST | TT_REF_DST_TAKEN)); k++) {
        if (tt_location_is_slot(&move->dst[k])) continue;
        refer(verify, cursor, &move->dst[k], refs & TT_REF_DST);
        return;
    }
}

static void store(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                  struct tt_verify_value value, size_t chunk_count)
{
    const struct tt_move *move = &verify->move;
    size_t count = move->nsrcs > 0 ? slice_count(verify, cursor, chunk_count) : 0;
    for (int k = 0; k < move->ndsts && !verify->failed; k++) {
        const struct tt_location *location = &move->dst[k];
        if (tt_location_is_slot(location) || !count || same_location(verify, cursor, location))
            continue;
        const struct tt_verify_location unit = unit_at(verify, cursor, location);
        struct tt_verify_cell *cell = tt_verify_access(verify, cursor, &unit, true);
        if (!cell) return;
        cell->value = value;
        cell->count = (uint32_t)count;
        cell->part = verify->part;
    }
    for (int k = 0; k < move->ndsts && !verify->failed; k++) {
        const struct tt_location *location = &move->dst[k];
        if (tt_location_is_slot(location)) post(verify, cursor, location, value, count);
    }
    if (count && !verify->failed) refer_all(verify, cursor);
}

/* ---- the transfer ---- */

/* No edge is used twice: its slots are waited for all at once, and a second one is behind the
 * first. */
static bool distinct(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                     const struct tt_location *locations, int count)
{
    verify->transfers++;
    for (int k = 0; k < count; k++) {
        if (!tt_location_is_slot(&locations[k])) continue;
        if (locations[k].space == TT_SPACE_SLOT && locations[k].rank == cursor->rank)
            return tt_verify_fail(verify, cursor, "names itself as the other end of an edge");
        if (verify->seen[locations[k].edge] == verify->transfers) {
            return tt_verify_fail(verify, cursor, "uses the edge with rank %d twice in one move",
                                  locations[k].rank);
        }
        verify->seen[locations[k].edge] = verify->transfers;
    }
    return true;
}

/* The part of a window that a chunk is, where parts are distinguished. */
static int part_of(const struct tt_verify *verify, int chunk)
{
    return verify->options->parts_apart ? chunk % verify->geometry.nparts : -1;
}

/* The location means as many elements as those before it, and the same part; `sized`: there were
 * any.
 */
static bool fits(struct tt_verify *verify, const struct tt_verify_cursor *cursor, int chunk,
                 bool sized, size_t *count)
{
    struct tt_extent extent = tt_geometry_extent(&verify->geometry, cursor->stepper.pass, chunk);
    int part = part_of(verify, chunk);
    if (sized && extent.count != *count) {
        return tt_verify_fail(verify, cursor,
                              "chunk %d has %zu elements, another chunk of the move %zu: they must "
                              "be equally long at every count",
                              chunk, extent.count, *count);
    }
    if (sized && part != verify->part) {
        return tt_verify_fail(verify, cursor,
                              "moves part %d of a window to or from a location of part %d",
                              verify->part, part);
    }
    *count = extent.count;
    verify->part = part;
    return true;
}

/* All locations mean as many elements, *count_out. */
static bool measure(struct tt_verify *verify, struct tt_verify_cursor *cursor, size_t *count_out)
{
    const struct tt_move *move = &verify->move;
    bool sized = false;
    for (int k = 0; k < move->nsrcs + move->ndsts; k++) {
        const struct tt_location *location =
            k < move->nsrcs ? &move->src[k] : &move->dst[k - move->nsrcs];
        bool scratch = location->space == TT_SPACE_SCRATCH;
        int bound = scratch ? cursor->program->scratch : verify->nchunks;
        if (location->chunk < 0 || location->chunk >= bound) {
            return tt_verify_fail(verify, cursor, "there is no chunk %d", location->chunk);
        }
        if (scratch) continue; /* as long as what comes there */
        if (!fits(verify, cursor, location->chunk, sized, count_out)) return false;
        sized = true;
    }
    if (!sized) {
        int like = tt_stepper_like(&cursor->stepper);
        if (like >= verify->nchunks)
            return tt_verify_fail(verify, cursor, "there is no chunk %d", like);
        if (!fits(verify, cursor, like, false, count_out)) return false;
    }
    return distinct(verify, cursor, move->src, move->nsrcs) &&
           distinct(verify, cursor, move->dst, move->ndsts);
}

/* Addresses in other ranks are looked up when the transfer begins: what its own messages bring is
 * too late. */
static bool addressed(struct tt_verify *verify, const struct tt_verify_cursor *cursor, size_t count)
{
    const struct tt_move *move = &verify->move;
    const struct tt_verify_clock *clock = &verify->clocks[cursor->thread];
    bool begins = cursor->slice == 0 && count && move->nsrcs && move->ndsts;
    for (int k = 0; begins && k < move->nsrcs + move->ndsts; k++) {
        const struct tt_location *location =
            k < move->nsrcs ? &move->src[k] : &move->dst[k - move->nsrcs];
        if (tt_location_is_slot(location) || location->rank == cursor->rank) continue;
        size_t pair = (size_t)cursor->rank * (size_t)verify->nranks + (size_t)location->rank;
        const struct tt_verify_sight *sight = &verify->sights[pair];
        if (sight->moment && tt_verify_knows(clock, sight->thread, sight->moment)) continue;
        return tt_verify_fail(verify, cursor, "touches %s of rank %d without having seen it enter",
                              location->space == TT_SPACE_IN ? "IN" : "OUT", location->rank);
    }
    return true;
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
    if (!addressed(verify, cursor, count) || !learn(verify, cursor)) return false;
    struct tt_verify_value value = combine(verify, cursor, count);
    if (!verify->failed) store(verify, cursor, value, count);
    for (int k = 0; k < move->nsrcs && !verify->failed; k++) {
        const struct tt_location *location = &move->src[k];
        if (!tt_location_is_slot(location)) continue;
        give_back(edge_from(verify, cursor, location), location->space == TT_SPACE_NETWORK);
    }
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
