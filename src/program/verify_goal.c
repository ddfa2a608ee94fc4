/* What each collective starts from and must end with. */
#include "verify_state.h"

static bool is_reduction(enum tt_func func)
{
    return func == TT_FUNC_ALLREDUCE || func == TT_FUNC_REDUCE || func == TT_FUNC_REDUCESCATTER;
}

/* Does the collective read IN of this rank? */
static bool reads_in(const struct tt_program *program)
{
    bool root_only = program->func == TT_FUNC_BROADCAST || program->func == TT_FUNC_SCATTER;
    if (program->func == TT_FUNC_RECV) return false;
    return !root_only || program->rank == program->root;
}

static bool writes_out(const struct tt_program *program)
{
    bool root_only = program->func == TT_FUNC_REDUCE || program->func == TT_FUNC_GATHER;
    if (program->func == TT_FUNC_SEND) return false;
    return !root_only || program->rank == program->root;
}

/* Chunks of a buffer, by number. */
static int chunk_count(const struct tt_verify *verify, bool blocks)
{
    if (verify->geometry.kind == TT_GEOMETRY_SPLIT) return verify->geometry.nchunks;
    return blocks ? verify->nranks : 1;
}

struct unit { /* walks over the units of one rank's buffer */
    struct tt_verify_place place;
    uint32_t pass;
    size_t slice;
};

/* Next unit with elements in it; false after the last. Starts from {.place.chunk = -1}. */
static bool next_unit(const struct tt_verify *verify, int nchunks, struct unit *unit)
{
    for (;;) {
        bool fresh = unit->place.chunk < 0;
        if (!fresh) unit->slice++;
        if (fresh || unit->slice >= verify->nslices) {
            unit->slice = 0;
            unit->place.chunk++;
        }
        if (unit->place.chunk >= nchunks) {
            unit->place.chunk = 0;
            unit->pass++;
        }
        if (unit->pass >= verify->geometry.npasses) return false;
        struct tt_extent extent =
            tt_geometry_extent(&verify->geometry, unit->pass, unit->place.chunk);
        unit->place.unit = tt_verify_unit(verify, unit->pass, unit->place.chunk, unit->slice);
        if (unit->slice * verify->slice < extent.count) return true;
    }
}

static struct unit first_unit(int rank, enum tt_verify_buffer buffer)
{
    return (struct unit){.place = {.buffer = buffer, .rank = rank, .chunk = -1}};
}

bool tt_verify_begin(struct tt_verify *verify)
{
    size_t ncells = (size_t)verify->nranks * TT_VERIFY_BUFFERS_ * verify->nunits;
    for (size_t k = 0; k < ncells; k++) {
        size_t rank = k / (TT_VERIFY_BUFFERS_ * verify->nunits);
        verify->cells[k] = (struct tt_verify_cell){.value = TT_VERIFY_NOTHING,
                                                   .initial = TT_VERIFY_NOTHING,
                                                   .writer = verify->main_thread[rank],
                                                   .write_clock = 1};
    }
    for (int rank = 0; rank < verify->nranks; rank++) {
        const struct tt_program *program = &verify->programs[rank];
        struct unit unit = first_unit(rank, TT_VERIFY_IN);
        if (!reads_in(program)) continue;
        while (next_unit(verify, chunk_count(verify, program->in_blocks), &unit)) {
            struct tt_verify_cell *cell = tt_verify_cell(verify, &unit.place);
            cell->value = tt_verify_value_input(verify, rank, unit.place.unit);
            if (cell->value < 0) return false;
            tt_verify_value_hold(verify, cell->value);
            cell->initial = cell->value;
        }
    }
    return true;
}

/* Which rank's IN, and which chunk of it, must be in a unit of OUT that is only copied. */
static int source_rank(const struct tt_program *program, int chunk)
{
    switch (program->func) {
    case TT_FUNC_ALLGATHER:
    case TT_FUNC_GATHER:
    case TT_FUNC_ALLTOALL: return chunk;
    default: return program->root; /* Broadcast, Scatter; Recv: the peer */
    }
}

static int source_chunk(const struct tt_program *program, int chunk)
{
    switch (program->func) {
    case TT_FUNC_ALLTOALL:
    case TT_FUNC_SCATTER:
    case TT_FUNC_REDUCESCATTER: return program->rank;
    case TT_FUNC_ALLGATHER:
    case TT_FUNC_GATHER: return 0;
    default: return chunk;
    }
}

static bool check_atom(struct tt_verify *verify, const struct unit *unit, int from,
                       struct tt_verify_atom want)
{
    const struct tt_verify_cell *cell = tt_verify_cell(verify, &unit->place);
    struct tt_verify_atom have = tt_verify_atoms(verify, cell->value)[from];
    const char *wrong = NULL;
    if (have.times != want.times) {
        wrong = have.times ? "contains too much of" : "misses";
    } else if (have.times && have.unit != want.unit) {
        wrong = "has another part of";
    } else if (have.times && have.pre != want.pre) {
        wrong = "has the wrong pre-operation on";
    }
    if (!wrong) return true;
    return tt_verify_fail(verify, NULL, "rank %d: OUT chunk %d of pass %u %s rank %d's input",
                          unit->place.rank, unit->place.chunk, (unsigned int)unit->pass, wrong,
                          from);
}

static bool check_output(struct tt_verify *verify, const struct unit *unit)
{
    const struct tt_program *program = &verify->programs[unit->place.rank];
    const struct tt_verify_cell *cell = tt_verify_cell(verify, &unit->place);
    if (cell->value < 0) {
        return tt_verify_fail(verify, NULL, "rank %d: OUT chunk %d of pass %u was never written",
                              unit->place.rank, unit->place.chunk, (unsigned int)unit->pass);
    }
    bool sum = is_reduction(program->func);
    int source = source_rank(program, unit->place.chunk);
    int chunk = source_chunk(program, unit->place.chunk);
    size_t origin = tt_verify_unit(verify, unit->pass, chunk, unit->slice);
    for (int from = 0; from < verify->nranks; from++) {
        bool part = sum || from == source;
        struct tt_verify_atom want = {.unit = (int32_t)origin, .times = part, .pre = sum ? 1 : 0};
        if (!check_atom(verify, unit, from, want)) return false;
    }
    if (verify->values[cell->value].post == (sum ? 1 : 0)) return true;
    return tt_verify_fail(verify, NULL, "rank %d: OUT chunk %d of pass %u was finished %d times",
                          unit->place.rank, unit->place.chunk, (unsigned int)unit->pass,
                          (int)verify->values[cell->value].post);
}

/* Units of OUT that the collective must fill are marked by dropping their initial value, so that
 * all others can be compared with it. */
static bool check_outputs(struct tt_verify *verify, int rank)
{
    const struct tt_program *program = &verify->programs[rank];
    struct unit unit = first_unit(rank, TT_VERIFY_OUT);
    if (!writes_out(program)) return true;
    while (next_unit(verify, chunk_count(verify, program->out_blocks), &unit)) {
        if (!check_output(verify, &unit)) return false;
        struct tt_verify_cell *cell = tt_verify_cell(verify, &unit.place);
        tt_verify_value_drop(verify, cell->initial);
        tt_verify_value_hold(verify, cell->value);
        cell->initial = cell->value;
    }
    return true;
}

static bool check_untouched(struct tt_verify *verify, int rank)
{
    size_t first = (size_t)rank * TT_VERIFY_BUFFERS_ * verify->nunits;
    for (size_t k = 0; k < TT_VERIFY_BUFFERS_ * verify->nunits; k++) {
        const struct tt_verify_cell *cell = &verify->cells[first + k];
        if (cell->value == cell->initial) continue;
        return tt_verify_fail(verify, NULL, "rank %d: %s was written where nothing may change",
                              rank, k < verify->nunits ? "IN" : "OUT");
    }
    return true;
}

/* Nobody touches a rank's buffers after its program ended. */
static bool check_over(struct tt_verify *verify, int rank)
{
    size_t nthreads = (size_t)verify->nthreads;
    int first = verify->main_thread[rank];
    uint32_t *end = tt_verify_clock(verify, first);
    for (int t = 1; t < verify->programs[rank].nthreads; t++) {
        tt_verify_join(verify, end, tt_verify_clock(verify, first + t));
    }
    size_t begin = (size_t)rank * TT_VERIFY_BUFFERS_ * verify->nunits;
    for (size_t k = 0; k < TT_VERIFY_BUFFERS_ * verify->nunits; k++) {
        const struct tt_verify_cell *cell = &verify->cells[begin + k];
        const uint32_t *reads = &verify->read_clocks[(begin + k) * nthreads];
        bool late = cell->write_clock > end[cell->writer];
        size_t by = (size_t)cell->writer;
        for (size_t t = 0; t < nthreads && !late; t++) {
            by = t;
            late = reads[t] > end[t];
        }
        if (!late) continue;
        return tt_verify_fail(verify, NULL, "rank %d: returns while rank %d may still use its %s",
                              rank, verify->cursors[by].program->rank,
                              k < verify->nunits ? "IN" : "OUT");
    }
    return true;
}

static bool check_slots(struct tt_verify *verify)
{
    for (int k = 0; k < verify->nranks * verify->nranks; k++) {
        const struct tt_verify_edge *edge = &verify->edges[k];
        if (edge->head == edge->tail) continue;
        return tt_verify_fail(verify, NULL, "%u slots from rank %d to rank %d are left full",
                              (unsigned int)(edge->tail - edge->head), k / verify->nranks,
                              k % verify->nranks);
    }
    return true;
}

bool tt_verify_end(struct tt_verify *verify)
{
    for (int rank = 0; rank < verify->nranks; rank++) {
        if (!check_outputs(verify, rank) || !check_untouched(verify, rank)) return false;
    }
    if (!check_slots(verify)) return false;
    for (int rank = 0; rank < verify->nranks; rank++) {
        if (!check_over(verify, rank)) return false;
    }
    return true;
}
