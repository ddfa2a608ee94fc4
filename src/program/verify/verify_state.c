/* Memory of a symbolic execution: cells and what was done to them, edges and their slots. */
#include "verify_state.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CELLS ((size_t)8 << 20) /* some 700 MB */

size_t tt_verify_unit(const struct tt_verify *verify, uint32_t pass, int chunk, size_t slice)
{
    size_t row = (size_t)pass * (size_t)verify->nchunks + (size_t)chunk;
    return row * verify->nslices + slice;
}

struct tt_verify_clock *tt_verify_end_of(const struct tt_verify *verify, int rank, uint32_t pass,
                                         int pc)
{
    size_t ninsns = verify->refs_at[verify->nranks]; /* of all ranks */
    return verify->ends ? &verify->ends[pass * ninsns + tt_verify_insn(verify, rank, pc)] : NULL;
}

size_t tt_verify_insn(const struct tt_verify *verify, int rank, int pc)
{
    return verify->refs_at[rank] + (size_t)pc - tt_text_insns(verify->programs[rank], rank).first;
}

static const char *name_of(enum tt_verify_buffer buffer)
{
    static const char *const names[] = {"IN", "OUT", "scratch"};
    return names[buffer];
}

/* ---- cells ---- */

/* In place: where the OUT (or IN) of `rank` lies inside its other buffer. */
static bool aliases(const struct tt_program *program, int rank)
{
    switch ((enum tt_func)program->func) {
    case TT_FUNC_ALLREDUCE:
    case TT_FUNC_BROADCAST:
    case TT_FUNC_ALLGATHER:
    case TT_FUNC_REDUCESCATTER:
    case TT_FUNC_ALLTOALL:
    case TT_FUNC_ALLTOALLV: return true;
    case TT_FUNC_REDUCE:
    case TT_FUNC_GATHER:
    case TT_FUNC_SCATTER: return rank == program->root;
    default: return false;
    }
}

bool tt_verify_shares(const struct tt_verify *verify, int rank)
{
    return verify->options->in_place && aliases(verify->programs[rank], rank);
}

struct tt_verify_cell *tt_verify_cell(const struct tt_verify *verify,
                                      const struct tt_verify_location *location)
{
    const struct tt_program *program = verify->programs[location->rank];
    enum tt_verify_buffer buffer = location->buffer;
    size_t unit = location->unit;
    if (buffer != TT_VERIFY_SCRATCH && tt_verify_shares(verify, location->rank)) {
        enum tt_verify_buffer whole = program->out_blocks ? TT_VERIFY_OUT : TT_VERIFY_IN;
        int own = tt_program_in_place_chunk(program, location->rank);
        if (buffer != whole && own >= 0) unit += (size_t)own * verify->nslices;
        buffer = whole;
    }
    size_t first = (size_t)location->rank * verify->per_rank + (size_t)buffer * verify->nunits;
    return &verify->cells[first + unit];
}

/* Whose last write of the cell, or with `write` one of whose reads, does not come before what the
 * clock knows. */
struct rival {
    int thread; /* -1: there is none */
    int pc;     /* of a write; -1: a read, or what was before the program */
};

static struct rival find_rival(const struct tt_verify *verify, const struct tt_verify_cell *cell,
                               const struct tt_verify_clock *clock, bool write)
{
    if (!tt_verify_knows(clock, cell->writer, cell->write_clock))
        return (struct rival){cell->writer, cell->write_pc};
    if (!write) return (struct rival){-1, -1};
    if (!tt_verify_knows(clock, cell->reader, cell->read_clock))
        return (struct rival){cell->reader, -1};
    for (uint32_t k = cell->reads; k; k = verify->reads[k].next) {
        const struct tt_verify_read *read = &verify->reads[k];
        if (!tt_verify_knows(clock, read->thread, read->clock))
            return (struct rival){read->thread, -1};
    }
    return (struct rival){-1, -1};
}

static void fail_race(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                      const struct tt_verify_location *location, bool write, struct rival rival)
{
    int rank = verify->cursors[rival.thread].rank,
        thread = rival.thread - verify->main_thread[rank];
    char other[64];
    if (rival.pc >= 0) {
        (void)snprintf(other, sizeof(other), "the write by insn %d of rank %d", rival.pc, rank);
    } else {
        (void)snprintf(other, sizeof(other), "one by thread %d of rank %d", thread, rank);
    }
    tt_verify_fail(verify, cursor, "%s of %s of rank %d, chunk %d, races with another access: %s",
                   write ? "write" : "read", name_of(location->buffer), location->rank,
                   location->chunk, other);
}

bool tt_verify_over(const struct tt_verify *verify, const struct tt_verify_cell *cell,
                    const struct tt_verify_clock *clock)
{
    return find_rival(verify, cell, clock, true).thread < 0;
}

/* Put it before a list. */
static bool list_read(struct tt_verify *verify, int thread, uint32_t clock, uint32_t *list)
{
    if (verify->nreads >= verify->reads_capacity) {
        uint32_t want = verify->reads_capacity ? verify->reads_capacity * 2 : 256;
        struct tt_verify_read *reads = realloc(verify->reads, want * sizeof(*reads));
        if (!reads) return tt_verify_fail(verify, NULL, "out of memory for reads");
        verify->reads = reads;
        verify->reads_capacity = want;
        if (verify->nreads == 0) verify->nreads = 1; /* 0 ends a list */
    }
    verify->reads[verify->nreads] = (struct tt_verify_read){thread, clock, *list};
    *list = verify->nreads++;
    return true;
}

/* Keep a read: it stands for the one before when it comes after it, else both count. */
static bool note_read(struct tt_verify *verify, struct tt_verify_cell *cell, int thread)
{
    const struct tt_verify_clock *clock = &verify->clocks[thread];
    if (!tt_verify_knows(clock, cell->reader, cell->read_clock) &&
        !list_read(verify, cell->reader, cell->read_clock, &cell->reads))
        return false;
    cell->reader = thread;
    cell->read_clock = clock->own;
    return true;
}

void tt_verify_cell_post(struct tt_verify_cell *cell)
{
    cell->nposted++;
}

bool tt_verify_cell_take(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                         struct tt_verify_cell *cell)
{
    cell->nposted--;
    return list_read(verify, cursor->thread, verify->clocks[cursor->thread].own, &cell->takes);
}

/* Slots may still refer to it when it is written at that time. */
static bool is_referred(const struct tt_verify *verify, const struct tt_verify_cell *cell,
                        const struct tt_verify_clock *clock)
{
    if (cell->referred || cell->nposted) return true;
    for (uint32_t k = cell->takes; k; k = verify->reads[k].next) {
        if (!tt_verify_knows(clock, verify->reads[k].thread, verify->reads[k].clock)) return true;
    }
    return false;
}

static bool inside(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                   const struct tt_verify_location *location)
{
    const struct tt_program *owner = verify->programs[location->rank];
    bool in = location->buffer == TT_VERIFY_IN;
    int nchunks = in ? tt_program_in_chunks(owner) : tt_program_out_chunks(owner);
    if (location->buffer == TT_VERIFY_SCRATCH) nchunks = owner->scratch;
    if (location->chunk < 0 || location->chunk >= nchunks) {
        return tt_verify_fail(verify, cursor, "chunk %d is outside of %s of rank %d",
                              location->chunk, name_of(location->buffer), location->rank);
    }
    return true;
}

struct tt_verify_cell *tt_verify_access(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                                        const struct tt_verify_location *location, bool write)
{
    if (!inside(verify, cursor, location)) return NULL;
    struct tt_verify_cell *cell = tt_verify_cell(verify, location);
    const struct tt_verify_clock *clock = &verify->clocks[cursor->thread];
    struct rival rival = find_rival(verify, cell, clock, write);
    if (rival.thread >= 0) {
        fail_race(verify, cursor, location, write, rival);
        return NULL;
    }
    if (write && is_referred(verify, cell, clock)) {
        tt_verify_fail(verify, cursor,
                       "writes %s of rank %d, chunk %d, which a slot may still refer to",
                       name_of(location->buffer), location->rank, location->chunk);
        return NULL;
    }
    if (!write) return note_read(verify, cell, cursor->thread) ? cell : NULL;
    cell->writer = cell->reader = cursor->thread; /* after all reads: they need not be kept */
    cell->write_clock = cell->read_clock = clock->own;
    cell->write_pc = cursor->stepper.pc;
    cell->reads = cell->takes = 0;
    return cell;
}

/* ---- edges ---- */

static struct tt_verify_edge *edge_at(const struct tt_verify *verify, size_t channel, size_t from,
                                      size_t to)
{
    size_t n = (size_t)verify->nranks;
    return &verify->edges[(channel * n + from) * n + to];
}

struct tt_verify_edge *tt_verify_edge(struct tt_verify *verify, int channel, int from, int to)
{
    struct tt_verify_edge *edge = edge_at(verify, (size_t)channel, (size_t)from, (size_t)to);
    if (edge->slots) return edge;
    edge->slots = tt_calloc(edge->nslots, sizeof(*edge->slots));
    if (!edge->slots) {
        tt_verify_fail(verify, NULL, "out of memory for slots");
        return NULL;
    }
    return edge;
}

/* ---- life ---- */

static bool count_threads(struct tt_verify *verify)
{
    verify->main_thread = tt_calloc((size_t)verify->nranks, sizeof(int));
    if (!verify->main_thread) return false;
    verify->alone = !verify->options->keep_order; /* without ENTER no memory of others is reached */
    for (int r = 0; r < verify->nranks; r++) {
        int nthreads = tt_program_nthreads(verify->programs[r], r);
        verify->main_thread[r] = verify->nthreads;
        verify->nthreads += nthreads;
        verify->alone = verify->alone && nthreads == 1 && !verify->programs[r]->needs_barrier;
    }
    verify->cursors = tt_calloc((size_t)verify->nthreads, sizeof(*verify->cursors));
    return verify->cursors != NULL;
}

/* Moment 1 of a rank is before it enters: its threads know it, others learn it from its ENTER. */
static bool start_threads(struct tt_verify *verify)
{
    for (int r = 0; r < verify->nranks; r++) {
        const struct tt_program *program = verify->programs[r];
        int nthreads = tt_program_nthreads(program, r);
        for (int t = 0; t < nthreads; t++) {
            int thread = verify->main_thread[r] + t;
            verify->cursors[thread] = (struct tt_verify_cursor){
                .program = program,
                .rank = r,
                .thread = thread,
            };
            tt_stepper_start(&verify->cursors[thread].stepper, program, r, t,
                             verify->geometry.npasses);
            verify->clocks[thread] = (struct tt_verify_clock){.thread = thread, .own = 1};
            const struct tt_verify_clock *main = &verify->clocks[verify->main_thread[r]];
            if (t > 0 && !tt_verify_join(verify, &verify->clocks[thread], main)) return false;
        }
        verify->clocks[verify->main_thread[r]].own++; /* what it does is not known to them */
    }
    return true;
}

/* How many slots of which edges are used. */
static bool count_slots(struct tt_verify *verify)
{
    size_t n = (size_t)verify->nranks;
    size_t nedges = (size_t)verify->nchannels * n;
    struct tt_slot_counts *counts = tt_calloc(nedges, sizeof(*counts));
    for (size_t from = 0; counts && from < n; from++) {
        tt_program_slots(verify->programs[from], (int)from, &verify->geometry, verify->slice,
                         counts);
        for (size_t to = 0; to < nedges; to++) {
            struct tt_verify_edge *edge = edge_at(verify, to / n, from, to % n);
            size_t used = tt_max_size(counts[to].sends, 1);
            size_t most = (size_t)verify->options->nslots;
            if (to % n == from) /* the network's: so many calls */
                most *= tt_program_network(verify->programs[from], (int)from).gives;
            edge->nslots = (uint32_t)tt_min_size(used, most);
        }
    }
    free(counts);
    return counts != NULL;
}

static bool awaits(const struct tt_verify *verify)
{
    for (int r = 0; r < verify->nranks; r++) {
        const struct tt_program *program = verify->programs[r];
        if (r > 0 && program == verify->programs[r - 1]) continue;
        for (uint32_t pc = 0; pc < program->ninsns; pc++) {
            if (tt_program_insns(program)[pc].op == TT_OP_AWAIT) return true;
        }
    }
    return false;
}

/* Memory that is written once it was taken: others' moments count. */
static bool refers_until_taken(int refs)
{
    const int always = refs & (TT_REF_SRC | TT_REF_DST);
    return (refs & TT_REF_SRC_TAKEN && !(always & TT_REF_SRC)) ||
           (refs & TT_REF_DST_TAKEN && !(always & TT_REF_DST));
}

/* Derived for each rank, as the executor does; room for the ends of what is awaited. */
static bool find_refs(struct tt_verify *verify)
{
    size_t bytes = 0;
    verify->refs_at = tt_calloc((size_t)verify->nranks + 1, sizeof(size_t));
    for (int r = 0; verify->refs_at && r < verify->nranks; r++) {
        verify->refs_at[r] = bytes;
        const struct tt_thread insns = tt_text_insns(verify->programs[r], r);
        bytes += insns.end - insns.first;
    }
    verify->refs = tt_calloc(bytes, 1);
    if (!verify->refs_at || !verify->refs) return false;
    verify->refs_at[verify->nranks] = bytes;
    if (awaits(verify)) {
        verify->ends = tt_calloc(verify->geometry.npasses * bytes, sizeof(*verify->ends));
        if (!verify->ends) return false;
    }
    for (int r = 0; r < verify->nranks; r++) {
        tt_text_find_refs(verify->programs[r], r, verify->refs + verify->refs_at[r]);
        int shift = tt_verify_shares(verify, r) ? TT_REF_IN_PLACE_ : 0;
        for (size_t k = verify->refs_at[r]; k < verify->refs_at[r + 1]; k++)
            verify->alone = verify->alone && !refers_until_taken(verify->refs[k] >> shift);
    }
    return true;
}

static bool alloc_move(struct tt_verify *verify)
{
    size_t most = 0;
    for (int r = 0; r < verify->nranks; r++)
        most = tt_max_size(most, tt_stepper_locations(verify->programs[r], r));
    verify->move.src = tt_calloc(most, sizeof(struct tt_location));
    verify->move.dst = tt_calloc(most, sizeof(struct tt_location));
    return verify->move.src && verify->move.dst;
}

bool tt_verify_state_init(struct tt_verify *verify)
{
    size_t n = (size_t)verify->nranks;
    bool ready = count_threads(verify);
    size_t ncells = n * verify->per_rank;
    if (ready && (verify->per_rank > MOST_CELLS || ncells > MOST_CELLS)) {
        return tt_verify_fail(verify, NULL,
                              "too many units to verify: take fewer ranks or a smaller count");
    }
    if (ready) {
        verify->clocks = tt_calloc((size_t)verify->nthreads, sizeof(*verify->clocks));
        verify->enter_clocks = tt_calloc(n, sizeof(*verify->enter_clocks));
        verify->leave_clocks = tt_calloc(n, sizeof(*verify->leave_clocks));
        verify->entered = tt_calloc(n, sizeof(bool));
        verify->left = tt_calloc(n, sizeof(bool));
        verify->sights = tt_calloc(n * n, sizeof(*verify->sights));
        verify->cells = tt_calloc(ncells, sizeof(*verify->cells));
        verify->edges = tt_calloc((size_t)verify->nchannels * n * n, sizeof(*verify->edges));
        verify->seen = tt_calloc((size_t)verify->nchannels * n, sizeof(*verify->seen));
        ready = alloc_move(verify);
        ready = ready && verify->clocks && verify->enter_clocks && verify->leave_clocks &&
                verify->entered && verify->left && verify->sights && verify->cells &&
                verify->edges && verify->seen && count_slots(verify) && find_refs(verify);
    }
    if (!ready) return tt_verify_fail(verify, NULL, "out of memory to verify");
    return start_threads(verify);
}

static void free_edges(struct tt_verify *verify)
{
    size_t n = (size_t)verify->nranks;
    for (size_t k = 0; verify->edges && k < (size_t)verify->nchannels * n * n; k++) {
        struct tt_verify_edge *edge = &verify->edges[k];
        for (uint32_t j = 0; edge->slots && j < edge->nslots; j++)
            tt_verify_clock_drop(&edge->slots[j].posted);
        free(edge->slots);
    }
    free(verify->edges);
}

static void free_clocks(struct tt_verify_clock *clocks, size_t count)
{
    for (size_t k = 0; clocks && k < count; k++)
        tt_verify_clock_drop(&clocks[k]);
    free(clocks);
}

void tt_verify_state_fini(struct tt_verify *verify)
{
    free_edges(verify);
    size_t nends = verify->ends ? verify->geometry.npasses * verify->refs_at[verify->nranks] : 0;
    free_clocks(verify->ends, nends);
    free_clocks(verify->clocks, (size_t)verify->nthreads);
    tt_verify_clock_drop(&verify->all_entered);
    tt_verify_clock_drop(&verify->all_left);
    free_clocks(verify->enter_clocks, (size_t)verify->nranks);
    free_clocks(verify->leave_clocks, (size_t)verify->nranks);
    free(verify->move.src);
    free(verify->move.dst);
    free(verify->refs);
    free(verify->refs_at);
    free(verify->main_thread);
    free(verify->cursors);
    free(verify->entered);
    free(verify->left);
    free(verify->sights);
    free(verify->cells);
    free(verify->seen);
    free(verify->sums);
    free(verify->reads);
}
