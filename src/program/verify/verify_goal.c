/* What each collective starts from and must end with. */
#include "verify_state.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>

static bool is_reduction(const struct tt_program *program)
{
    enum tt_func func = (enum tt_func)program->func;
    return func == TT_FUNC_ALLREDUCE || func == TT_FUNC_REDUCE || func == TT_FUNC_REDUCESCATTER;
}

/* Does the collective read IN of this rank? */
static bool reads_in(const struct tt_program *program, int rank)
{
    bool root_only = program->func == TT_FUNC_BROADCAST || program->func == TT_FUNC_SCATTER;
    if (program->func == TT_FUNC_RECV) return false;
    return !root_only || rank == program->root;
}

static bool writes_out(const struct tt_program *program, int rank)
{
    bool root_only = program->func == TT_FUNC_REDUCE || program->func == TT_FUNC_GATHER;
    if (program->func == TT_FUNC_SEND) return false;
    return !root_only || rank == program->root;
}

/* Chunks of a buffer, by number. */
static int chunk_count(const struct tt_verify *verify, const struct tt_verify_location *location)
{
    const struct tt_program *program = verify->programs[location->rank];
    return location->buffer == TT_VERIFY_IN ? tt_program_in_chunks(program)
                                            : tt_program_out_chunks(program);
}

/* Whether the collective has that chunk: of an AlltoAllv's blocks those parts that the pair has. */
static bool is_there(const struct tt_verify *verify, const struct tt_verify_location *location)
{
    const struct tt_program *program = verify->programs[location->rank];
    int block = location->chunk / program->nparts, part = location->chunk % program->nparts;
    if (!program->counts_at) return true;
    bool in = location->buffer == TT_VERIFY_IN;
    return part < (in ? tt_program_pair(program, location->rank, block)
                      : tt_program_pair(program, block, location->rank));
}

bool tt_verify_next_unit(const struct tt_verify *verify, struct tt_verify_units *units)
{
    int nchunks = chunk_count(verify, &units->location);
    for (;;) {
        bool fresh = units->location.chunk < 0;
        if (!fresh) units->slice++;
        if (fresh || units->slice >= verify->nslices) {
            units->slice = 0;
            units->location.chunk++;
        }
        if (units->location.chunk >= nchunks) {
            units->location.chunk = 0;
            units->pass++;
        }
        if (units->pass >= verify->geometry.npasses) return false;
        struct tt_extent extent =
            tt_geometry_extent(&verify->geometry, units->pass, units->location.chunk);
        units->location.unit =
            tt_verify_unit(verify, units->pass, units->location.chunk, units->slice);
        if (!is_there(verify, &units->location)) continue;
        if (units->slice * verify->slice < extent.count) return true;
    }
}

struct tt_verify_units tt_verify_units(int rank, enum tt_verify_buffer buffer)
{
    return (struct tt_verify_units){.location = {.buffer = buffer, .rank = rank, .chunk = -1}};
}

static void fill(struct tt_verify *verify, int rank, enum tt_verify_buffer buffer)
{
    struct tt_verify_units units = tt_verify_units(rank, buffer);
    while (tt_verify_next_unit(verify, &units)) {
        struct tt_verify_cell *cell = tt_verify_cell(verify, &units.location);
        if (cell->value.known) continue; /* in place: of the other buffer */
        cell->value = tt_verify_value_input(rank, buffer, units.location.unit);
        cell->initial = cell->value;
    }
}

bool tt_verify_begin(struct tt_verify *verify)
{
    size_t per_rank = verify->per_rank;
    for (int rank = 0; rank < verify->nranks; rank++) {
        struct tt_verify_cell *cells = &verify->cells[(size_t)rank * per_rank];
        int owner = verify->main_thread[rank];
        for (size_t k = 0; k < per_rank; k++) {
            cells[k].writer = cells[k].reader = owner;
            cells[k].write_clock = 1;
            cells[k].write_pc = -1;
        }
        bool all = verify->options->any_result;
        if (all || reads_in(verify->programs[rank], rank)) fill(verify, rank, TT_VERIFY_IN);
        if (all) fill(verify, rank, TT_VERIFY_OUT);
    }
    return true;
}

/* Which rank's IN, and which chunk of it, must be in a unit of OUT that is only copied. */
static int source_rank(const struct tt_program *program, int chunk)
{
    switch ((enum tt_func)program->func) {
    case TT_FUNC_ALLGATHER:
    case TT_FUNC_GATHER:
    case TT_FUNC_ALLTOALL:
    case TT_FUNC_ALLTOALLV: return chunk / program->nparts;
    default: return program->root; /* Broadcast, Scatter; Recv: the peer */
    }
}

static int source_chunk(const struct tt_program *program, int rank, int chunk)
{
    int part = chunk % program->nparts;
    switch ((enum tt_func)program->func) {
    case TT_FUNC_ALLTOALL:
    case TT_FUNC_ALLTOALLV:
    case TT_FUNC_SCATTER:
    case TT_FUNC_REDUCESCATTER: return rank * program->nparts + part;
    case TT_FUNC_ALLGATHER:
    case TT_FUNC_GATHER: return part;
    default: return chunk;
    }
}

/* The sum of all ranks' inputs at that unit, pre-operations applied; the same for all outputs of
 * it.
 */
static struct tt_verify_value sum_of(struct tt_verify *verify, size_t unit)
{
    struct tt_verify_value *sum = &verify->sums[unit];
    for (int rank = 0; !sum->known && rank < verify->nranks; rank++) {
        struct tt_verify_value input = tt_verify_value_input(rank, TT_VERIFY_IN, unit);
        tt_verify_value_scale(&input, rank);
        tt_verify_value_add(sum, &input);
    }
    sum->known = true;
    sum->post = 1;
    return *sum;
}

/* What is wrong with `have`, for whose input: the one change of `want` that explains it. */
static const char *explain(const struct tt_verify *verify, struct tt_verify_value have,
                           struct tt_verify_value want, size_t unit, int *rank_out)
{
    have.post = want.post = 0;
    for (int rank = 0; rank < verify->nranks; rank++) {
        struct tt_verify_value plain = tt_verify_value_input(rank, TT_VERIFY_IN, unit);
        struct tt_verify_value scaled = plain, without = want, doubled = want;
        tt_verify_value_scale(&scaled, rank);
        *rank_out = rank;
        tt_verify_value_take(&without, &scaled);
        if (tt_verify_value_equal(&have, &without)) return "misses";
        tt_verify_value_add(&doubled, &scaled);
        if (tt_verify_value_equal(&have, &doubled)) return "contains too much of";
        tt_verify_value_add(&without, &plain);
        if (tt_verify_value_equal(&have, &without)) return "has the wrong pre-operation on";
    }
    *rank_out = -1;
    return NULL;
}

/* Report it for the instruction that wrote the unit last. Returns false. */
static bool __attribute__((format(printf, 4, 5)))
fail_output(struct tt_verify *verify, const struct tt_verify_units *units,
            const struct tt_verify_cell *cell, const char *fmt, ...)
{
    char what[128];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    const struct tt_verify_location *location = &units->location;
    struct tt_verify_cursor writer = verify->cursors[cell->writer];
    writer.stepper.pc = cell->write_pc;
    writer.stepper.pass = units->pass;
    return tt_verify_fail(verify, &writer, "wrote OUT chunk %d of rank %d, which %s",
                          location->chunk, location->rank, what);
}

/* What a unit that nothing wrote should hold, and where that is instead: an offset may be wrong. */
static bool fail_unwritten(struct tt_verify *verify, const struct tt_verify_units *units,
                           const struct tt_verify_value *want)
{
    const struct tt_verify_location *location = &units->location;
    const struct tt_program *program = verify->programs[location->rank];
    const int chunk = source_chunk(program, location->rank, location->chunk);
    struct tt_verify_units other = tt_verify_units(location->rank, TT_VERIFY_OUT);
    char whose[48] = "the sum of all ranks'", instead[64] = "";
    if (!is_reduction(program))
        (void)snprintf(whose, sizeof(whose), "rank %d's", source_rank(program, location->chunk));
    while (!instead[0] && tt_verify_next_unit(verify, &other)) {
        const struct tt_verify_cell *cell = tt_verify_cell(verify, &other.location);
        if (cell->write_pc < 0 || !cell->value.known || !tt_verify_value_equal(&cell->value, want))
            continue;
        (void)snprintf(instead, sizeof(instead), "; OUT chunk %d holds that", other.location.chunk);
    }
    return tt_verify_fail(verify, NULL,
                          "rank %d: OUT chunk %d of pass %u was never written, and should hold %s "
                          "IN chunk %d%s",
                          location->rank, location->chunk, (unsigned int)units->pass, whose, chunk,
                          instead);
}

static bool check_output(struct tt_verify *verify, const struct tt_verify_units *units)
{
    const struct tt_verify_location *location = &units->location;
    const struct tt_program *program = verify->programs[location->rank];
    const struct tt_verify_cell *cell = tt_verify_cell(verify, location);
    const struct tt_verify_value have = cell->value;
    bool sum = is_reduction(program);
    size_t origin = tt_verify_unit(
        verify, units->pass, source_chunk(program, location->rank, location->chunk), units->slice);
    struct tt_verify_value want =
        sum ? sum_of(verify, origin)
            : tt_verify_value_input(source_rank(program, location->chunk), TT_VERIFY_IN, origin);
    if (have.known && tt_verify_value_equal(&have, &want)) return true;
    if (cell->write_pc < 0) return fail_unwritten(verify, units, &want);
    int from;
    struct tt_verify_value unfinished = have;
    unfinished.post = want.post;
    if (tt_verify_value_equal(&unfinished, &want))
        return fail_output(verify, units, cell, "was finished %d times", (int)have.post);
    const char *wrong = explain(verify, have, want, origin, &from);
    if (!wrong) return fail_output(verify, units, cell, "is another value");
    return fail_output(verify, units, cell, "%s rank %d's input", wrong, from);
}

static bool check_outputs(struct tt_verify *verify, int rank)
{
    struct tt_verify_units units = tt_verify_units(rank, TT_VERIFY_OUT);
    if (!verify->sums) verify->sums = tt_calloc(verify->nunits, sizeof(*verify->sums));
    if (!verify->sums) return tt_verify_fail(verify, NULL, "out of memory to verify");
    if (!writes_out(verify->programs[rank], rank)) return true;
    while (tt_verify_next_unit(verify, &units)) {
        if (!check_output(verify, &units)) return false;
        tt_verify_cell(verify, &units.location)->wanted = true;
    }
    return true;
}

/* What is not part of the result is as before; where any result will do, that is IN. */
static bool check_untouched(struct tt_verify *verify, int rank)
{
    bool any = verify->options->any_result;
    size_t first = (size_t)rank * verify->per_rank;
    size_t count = 2 * verify->nunits;
    if (any) count = tt_verify_shares(verify, rank) ? 0 : verify->nunits;
    for (size_t k = 0; k < count; k++) {
        const struct tt_verify_cell *cell = &verify->cells[first + k];
        if (cell->wanted || tt_verify_value_equal(&cell->value, &cell->initial)) continue;
        return tt_verify_fail(verify, NULL, "rank %d: %s was written where nothing may change",
                              rank, k < verify->nunits ? "IN" : "OUT");
    }
    return true;
}

/* No rank touches the buffers of one whose program ended. */
static bool check_over(struct tt_verify *verify, int rank)
{
    int first = verify->main_thread[rank];
    struct tt_verify_clock *end = &verify->clocks[first];
    for (int t = 1; t < tt_program_nthreads(verify->programs[rank], rank); t++) {
        if (!tt_verify_join(verify, end, &verify->clocks[first + t])) return false;
    }
    size_t begin = (size_t)rank * verify->per_rank;
    for (size_t k = 0; k < 2 * verify->nunits; k++) {
        if (tt_verify_over(verify, &verify->cells[begin + k], end)) continue;
        return tt_verify_fail(verify, NULL, "rank %d: returns while others may still use its %s",
                              rank, k < verify->nunits ? "IN" : "OUT");
    }
    return true;
}

static bool check_slots(struct tt_verify *verify)
{
    size_t n = (size_t)verify->nranks;
    for (size_t k = 0; k < (size_t)verify->nchannels * n * n; k++) {
        const struct tt_verify_edge *edge = &verify->edges[k];
        bool network = k / n % n == k % n;
        struct tt_network_call call = {.gives = 1, .takes = 1};
        if (network) call = tt_program_network(verify->programs[k % n], (int)(k % n));
        if (edge->head * call.gives == edge->tail * call.takes) continue;
        if (network) {
            return tt_verify_fail(verify, NULL,
                                  "%u sums of the network are left that rank %zu does not take",
                                  (unsigned int)(edge->tail - edge->head), k % n);
        }
        return tt_verify_fail(verify, NULL, "%u slots from rank %zu to rank %zu are left full",
                              (unsigned int)(edge->tail - edge->head), k / n % n, k % n);
    }
    return true;
}

bool tt_verify_end(struct tt_verify *verify)
{
    for (int rank = 0; rank < verify->nranks; rank++) {
        bool right = verify->options->any_result || check_outputs(verify, rank);
        if (!right || !check_untouched(verify, rank)) return false;
    }
    if (!check_slots(verify)) return false;
    for (int rank = 0; rank < verify->nranks; rank++) {
        if (!check_over(verify, rank)) return false;
    }
    return true;
}
