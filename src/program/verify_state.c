/* Memory of a symbolic execution: values, cells, edges and clocks. Every reference to a value that
 * a cell or a slot holds is counted; the pool grows by doubling. */
#include "verify_state.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tt_verify_fail(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                    const char *fmt, ...)
{
    if (verify->failed) return false;
    verify->failed = true;
    int at = 0;
    if (cursor) {
        at = snprintf(verify->fault, verify->fault_bytes,
                      "rank %d insn %d, pass %u: ", cursor->program->rank, cursor->stepper.pc,
                      (unsigned int)cursor->stepper.pass);
    }
    if (at < 0 || (size_t)at >= verify->fault_bytes) return false;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(verify->fault + at, verify->fault_bytes - (size_t)at, fmt, args);
    va_end(args);
    return false;
}

size_t tt_verify_unit(const struct tt_verify *verify, uint32_t pass, int chunk, size_t slice)
{
    size_t row = (size_t)pass * (size_t)verify->nchunks + (size_t)chunk;
    return row * verify->nslices + slice;
}

/* ---- values ---- */

static bool grow_values(struct tt_verify *verify)
{
    int32_t want = verify->nvalues ? verify->nvalues * 2 : 256;
    size_t n = (size_t)verify->nranks;
    struct tt_verify_value *values = realloc(verify->values, (size_t)want * sizeof(*values));
    if (values) verify->values = values;
    struct tt_verify_atom *atoms = realloc(verify->atoms, (size_t)want * n * sizeof(*atoms));
    if (atoms) verify->atoms = atoms;
    if (!values || !atoms || want > INT32_MAX / 4) {
        return tt_verify_fail(verify, NULL, "out of memory for %d values", (int)want);
    }
    for (int32_t k = verify->nvalues; k < want; k++) {
        verify->values[k].refs = k + 1 < want ? k + 1 : -1;
    }
    verify->free_value = verify->nvalues;
    verify->nvalues = want;
    return true;
}

int32_t tt_verify_value_new(struct tt_verify *verify)
{
    if (verify->free_value < 0 && !grow_values(verify)) return TT_VERIFY_NOTHING;
    int32_t value = verify->free_value;
    verify->free_value = verify->values[value].refs;
    verify->values[value] = (struct tt_verify_value){.refs = 1};
    memset(tt_verify_atoms(verify, value), 0,
           (size_t)verify->nranks * sizeof(struct tt_verify_atom));
    return value;
}

int32_t tt_verify_value_input(struct tt_verify *verify, int rank, size_t unit)
{
    int32_t value = tt_verify_value_new(verify);
    if (value < 0) return value;
    tt_verify_atoms(verify, value)[rank] =
        (struct tt_verify_atom){.unit = (int32_t)unit, .times = 1};
    return value;
}

void tt_verify_value_hold(struct tt_verify *verify, int32_t value)
{
    if (value >= 0) verify->values[value].refs++;
}

void tt_verify_value_drop(struct tt_verify *verify, int32_t value)
{
    if (value < 0 || --verify->values[value].refs > 0) return;
    verify->values[value].refs = verify->free_value;
    verify->free_value = value;
}

/* ---- clocks ---- */

uint32_t *tt_verify_clock(const struct tt_verify *verify, int thread)
{
    return &verify->clocks[(size_t)thread * (size_t)verify->nthreads];
}

void tt_verify_join(const struct tt_verify *verify, uint32_t *clock, const uint32_t *other)
{
    for (int t = 0; t < verify->nthreads; t++) {
        if (other[t] > clock[t]) clock[t] = other[t];
    }
}

void tt_verify_release(const struct tt_verify *verify, int thread, uint32_t *clock_out)
{
    uint32_t *clock = tt_verify_clock(verify, thread);
    memcpy(clock_out, clock, (size_t)verify->nthreads * sizeof(*clock));
    clock[thread]++;
}

/* ---- cells ---- */

/* In place: where the OUT (or IN) of `rank` lies inside its other buffer. */
static bool aliases(const struct tt_program *program)
{
    switch (program->func) {
    case TT_FUNC_ALLREDUCE:
    case TT_FUNC_BROADCAST:
    case TT_FUNC_ALLGATHER:
    case TT_FUNC_REDUCESCATTER:
    case TT_FUNC_ALLTOALL: return true;
    case TT_FUNC_REDUCE:
    case TT_FUNC_GATHER:
    case TT_FUNC_SCATTER: return program->rank == program->root;
    default: return false;
    }
}

bool tt_verify_shares(const struct tt_verify *verify, int rank)
{
    return verify->options->in_place && aliases(&verify->programs[rank]);
}

struct tt_verify_cell *tt_verify_cell(const struct tt_verify *verify,
                                      const struct tt_verify_place *place)
{
    const struct tt_program *program = &verify->programs[place->rank];
    enum tt_verify_buffer buffer = place->buffer;
    size_t unit = place->unit;
    if (tt_verify_shares(verify, place->rank)) {
        enum tt_verify_buffer whole = program->out_blocks ? TT_VERIFY_OUT : TT_VERIFY_IN;
        int own = tt_program_in_place_chunk(program); /* what chunk 0 of the smaller one is */
        if (buffer != whole && own >= 0) unit += (size_t)own * verify->nslices;
        buffer = whole;
    }
    size_t row = (size_t)place->rank * TT_VERIFY_BUFFERS_ + (size_t)buffer;
    return &verify->cells[row * verify->nunits + unit];
}

static bool ordered(const struct tt_verify *verify, const struct tt_verify_cell *cell,
                    const uint32_t *clock, bool write)
{
    if (cell->write_clock > clock[cell->writer]) return false;
    if (!write) return true;
    size_t number = (size_t)(cell - verify->cells);
    const uint32_t *reads = &verify->read_clocks[number * (size_t)verify->nthreads];
    for (int t = 0; t < verify->nthreads; t++) {
        if (reads[t] > clock[t]) return false;
    }
    return true;
}

static bool reachable(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                      const struct tt_verify_place *place)
{
    static const char *const names[] = {"IN", "OUT"};
    const struct tt_program *owner = &verify->programs[place->rank];
    bool in = place->buffer == TT_VERIFY_IN;
    int nblocks = (in ? owner->in_blocks : owner->out_blocks) ? verify->nranks : 1;
    if (verify->geometry.kind == TT_GEOMETRY_SPLIT) nblocks = verify->geometry.nchunks;
    if (place->chunk < 0 || place->chunk >= nblocks) {
        return tt_verify_fail(verify, cursor, "chunk %d is outside of %s of rank %d", place->chunk,
                              names[place->buffer], place->rank);
    }
    int me = cursor->program->rank;
    if (place->rank == me || verify->knows[me * verify->nranks + place->rank]) return true;
    return tt_verify_fail(verify, cursor, "touches %s of rank %d without having seen it enter",
                          names[place->buffer], place->rank);
}

struct tt_verify_cell *tt_verify_access(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                                        const struct tt_verify_place *place, bool write)
{
    if (!reachable(verify, cursor, place)) return NULL;
    struct tt_verify_cell *cell = tt_verify_cell(verify, place);
    const uint32_t *clock = tt_verify_clock(verify, cursor->thread);
    if (!ordered(verify, cell, clock, write)) {
        tt_verify_fail(verify, cursor, "%s of %s of rank %d, chunk %d, races with another access",
                       write ? "write" : "read", place->buffer == TT_VERIFY_IN ? "IN" : "OUT",
                       place->rank, place->chunk);
        return NULL;
    }
    if (write && cell->referred) {
        tt_verify_fail(verify, cursor,
                       "writes %s of rank %d, chunk %d, which a slot may still refer to",
                       place->buffer == TT_VERIFY_IN ? "IN" : "OUT", place->rank, place->chunk);
        return NULL;
    }
    if (write) {
        cell->writer = cursor->thread;
        cell->write_clock = clock[cursor->thread];
    } else {
        size_t number = (size_t)(cell - verify->cells);
        verify->read_clocks[number * (size_t)verify->nthreads + (size_t)cursor->thread] =
            clock[cursor->thread];
    }
    return cell;
}

/* ---- edges ---- */

struct tt_verify_edge *tt_verify_edge(struct tt_verify *verify, int from, int to)
{
    struct tt_verify_edge *edge = &verify->edges[from * verify->nranks + to];
    if (edge->slots) return edge;
    size_t k = (size_t)verify->options->nslots;
    size_t clock_count = k * (size_t)verify->nthreads;
    edge->slots = tt_calloc(1, k * sizeof(*edge->slots) + 2 * clock_count * sizeof(uint32_t));
    if (!edge->slots) {
        tt_verify_fail(verify, NULL, "out of memory for slots");
        return NULL;
    }
    edge->posted = (uint32_t *)(void *)(edge->slots + k);
    edge->freed = edge->posted + clock_count;
    edge->sender = -1;
    edge->receiver = -1;
    return edge;
}

/* ---- life ---- */

static bool count_threads(struct tt_verify *verify)
{
    verify->main_thread = tt_calloc((size_t)verify->nranks, sizeof(int));
    if (!verify->main_thread) return false;
    for (int r = 0; r < verify->nranks; r++) {
        verify->main_thread[r] = verify->nthreads;
        verify->nthreads += verify->programs[r].nthreads;
    }
    verify->cursors = tt_calloc((size_t)verify->nthreads, sizeof(*verify->cursors));
    return verify->cursors != NULL;
}

static void start_threads(struct tt_verify *verify)
{
    for (int r = 0; r < verify->nranks; r++) {
        const struct tt_program *program = &verify->programs[r];
        for (int t = 0; t < program->nthreads; t++) {
            int thread = verify->main_thread[r] + t;
            verify->cursors[thread] = (struct tt_verify_cursor){
                .program = program,
                .thread = thread,
            };
            tt_stepper_start(&verify->cursors[thread].stepper, program, t,
                             verify->geometry.npasses);
            /* The first epoch of a rank is the moment before it enters. */
            tt_verify_clock(verify, thread)[verify->main_thread[r]] = 1;
            tt_verify_clock(verify, thread)[thread] = 1;
        }
    }
}

static bool alloc_move(struct tt_verify *verify)
{
    size_t most = 0;
    for (int r = 0; r < verify->nranks; r++)
        most = tt_max_size(most, tt_stepper_places(&verify->programs[r]));
    verify->move.src = tt_calloc(most, sizeof(struct tt_place));
    verify->move.dst = tt_calloc(most, sizeof(struct tt_place));
    return verify->move.src && verify->move.dst;
}

bool tt_verify_state_init(struct tt_verify *verify)
{
    size_t n = (size_t)verify->nranks;
    verify->free_value = -1;
    bool ready = count_threads(verify);
    size_t t = (size_t)verify->nthreads;
    size_t ncells = n * TT_VERIFY_BUFFERS_ * verify->nunits;
    if (ready && ncells > ((size_t)1 << 28) / t) {
        return tt_verify_fail(verify, NULL, "too many units to verify: cut the count down");
    }
    if (ready) {
        verify->clocks = tt_calloc(t * t, sizeof(uint32_t));
        verify->enter_clocks = tt_calloc(n * t, sizeof(uint32_t));
        verify->leave_clocks = tt_calloc(n * t, sizeof(uint32_t));
        verify->entered = tt_calloc(n, sizeof(bool));
        verify->left = tt_calloc(n, sizeof(bool));
        verify->knows = tt_calloc(n * n, sizeof(bool));
        verify->cells = tt_calloc(ncells, sizeof(*verify->cells));
        verify->read_clocks = tt_calloc(ncells * t, sizeof(uint32_t));
        verify->edges = tt_calloc(n * n, sizeof(*verify->edges));
        ready = alloc_move(verify);
        ready = ready && verify->clocks && verify->enter_clocks && verify->leave_clocks &&
                verify->entered && verify->left && verify->knows && verify->cells &&
                verify->read_clocks && verify->edges;
    }
    if (!ready) return tt_verify_fail(verify, NULL, "out of memory to verify");
    start_threads(verify);
    return true;
}

void tt_verify_state_fini(struct tt_verify *verify)
{
    if (verify->edges) {
        for (int k = 0; k < verify->nranks * verify->nranks; k++)
            free(verify->edges[k].slots);
    }
    free(verify->move.src);
    free(verify->move.dst);
    free(verify->main_thread);
    free(verify->cursors);
    free(verify->clocks);
    free(verify->enter_clocks);
    free(verify->leave_clocks);
    free(verify->entered);
    free(verify->left);
    free(verify->knows);
    free(verify->cells);
    free(verify->read_clocks);
    free(verify->edges);
    free(verify->values);
    free(verify->atoms);
}
