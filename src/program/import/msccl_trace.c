/* Follows all steps of all ranks, chunk by chunk. A step waits for one other step, and nothing is
 * chosen, so one order decides. That shows what the file leaves open and a program must say:
 * where a step reads input that no step has reduced yet (PRE), where a sum becomes whole (POST),
 * which chunk of the input a message is as long as, and, where input and output are one buffer,
 * which of the two a step means: input before the first write, output after it. */
#include "msccl.h"

#include "base/mem.h"

#include <stdlib.h>

#define NO_STEP UINT32_MAX

struct trace {
    struct msccl_file *file;
    struct msccl_value *values; /* owned, as all below */
    size_t *values_at;          /* of each rank: IN, OUT, scratch */
    uint32_t *next_step;        /* of each block */
    bool *done;                 /* steps */
    uint32_t *waiting;          /* of each step: the first block that waits for it */
    uint32_t *next_waiting;     /* of each block */
    uint32_t *ready;            /* blocks, a stack */
    size_t nready;
    int in, out, scratch; /* chunks at each rank, in our spaces */
    bool one;             /* IN and OUT are one buffer */
};

/* ---- locations ---- */

/* Number of a rank's first chunk of the smaller buffer in the larger one, where they are one. */
static int own_block(const struct trace *trace, int rank, bool smaller)
{
    return smaller && trace->one ? rank * trace->file->nparts : 0;
}

static bool has_out(const struct msccl_file *file, int rank)
{
    return rank == 0 || !tt_func_to_root(file->func);
}

/* Where what the file calls that chunk is kept. */
static struct msccl_value *value_at(const struct trace *trace, int rank, int buffer, int chunk)
{
    struct msccl_value *values = &trace->values[trace->values_at[rank]];
    if (buffer == MSCCL_SCRATCH) return &values[trace->in + trace->out + chunk];
    bool smaller = buffer == MSCCL_IN ? trace->in < trace->out : trace->out < trace->in;
    chunk += own_block(trace, rank, smaller);
    return &values[(buffer == MSCCL_OUT && !trace->one ? trace->in : 0) + chunk];
}

/* The same in our spaces. `raw`: read as input that no step has written. */
static struct msccl_location location_at(const struct trace *trace, int rank, int buffer, int chunk,
                                         bool raw)
{
    struct msccl_file *file = trace->file;
    if (buffer == MSCCL_SCRATCH) return (struct msccl_location){TT_SPACE_SCRATCH, chunk};
    if (!trace->one)
        return (struct msccl_location){buffer == MSCCL_IN ? TT_SPACE_IN : TT_SPACE_OUT, chunk};
    bool smaller = buffer == MSCCL_IN ? trace->in < trace->out : trace->out < trace->in;
    int whole = chunk + own_block(trace, rank, smaller);
    int in = whole - own_block(trace, rank, trace->in < trace->out);
    if (raw) return (struct msccl_location){TT_SPACE_IN, in};
    int out = whole - own_block(trace, rank, trace->out < trace->in);
    if (has_out(file, rank) && out >= 0 && out < trace->out)
        return (struct msccl_location){TT_SPACE_OUT, out};
    file->spill = trace->in > trace->out ? trace->in : trace->out;
    return (struct msccl_location){TT_SPACE_SCRATCH, trace->scratch + whole};
}

/* ---- steps ---- */

struct named { /* a chunk as the file calls it */
    int buffer, chunk;
};

static bool read_chunk(struct trace *trace, const struct msccl_block *block,
                       const struct msccl_step *step, struct named named,
                       struct msccl_location *location_out, struct msccl_value *value_out)
{
    static const char *const names[] = {"input", "output", "scratch"};
    *value_out = *value_at(trace, block->rank, named.buffer, named.chunk);
    *location_out = location_at(trace, block->rank, named.buffer, named.chunk, value_out->raw);
    value_out->raw = false;
    if (value_out->known) return true;
    return tt_msccl_refuse(
        trace->file, step->line, "gpu %d tb %d: %s reads chunk %d of the %s, which holds nothing",
        block->rank, block->id, tt_msccl_kinds[step->type].name, named.chunk, names[named.buffer]);
}

static bool write_chunk(struct trace *trace, const struct msccl_block *block,
                        const struct msccl_step *step, int chunk, struct msccl_move *move)
{
    if (step->dst_buffer == MSCCL_IN && !trace->one) {
        return tt_msccl_refuse(
            trace->file, step->line,
            "gpu %d tb %d: %s writes chunk %d of the input, which must stay as it "
            "was out of place",
            block->rank, block->id, tt_msccl_kinds[step->type].name, chunk);
    }
    struct msccl_value *value = value_at(trace, block->rank, step->dst_buffer, chunk);
    int from = step->src + chunk - step->dst;
    value->copied = !msccl_reduces(trace->file->func) && step->type == MSCCL_CPY && value->raw &&
                    value == value_at(trace, block->rank, step->src_buffer, from);
    if (!value->copied) *value = move->value;
    move->dst = location_at(trace, block->rank, step->dst_buffer, chunk, false);
    return true;
}

static void add(const struct msccl_file *file, struct msccl_value *sum,
                const struct msccl_value *value)
{
    sum->count += value->count;
    if (sum->count > file->nranks) sum->count = file->nranks + 1; /* too much: stays so */
    sum->finished = sum->finished || value->finished;
}

static bool run_move(struct trace *trace, const struct msccl_block *block,
                     const struct msccl_step *step, int k)
{
    struct msccl_file *file = trace->file;
    const struct msccl_kind *kind = &tt_msccl_kinds[step->type];
    struct msccl_move *move = &file->moves[step->first + (uint32_t)k];
    struct msccl_value local = {.known = false};
    if (kind->reads &&
        !read_chunk(trace, block, step, (struct named){step->src_buffer, step->src + k}, &move->src,
                    &local))
        return false;
    if (kind->receives) {
        move->value = file->moves[msccl_step(file, step->partner)->first + (uint32_t)k].value;
        if (kind->reads) add(file, &move->value, &local);
    } else if (step->type == MSCCL_RE) {
        if (!read_chunk(trace, block, step, (struct named){step->dst_buffer, step->dst + k},
                        &move->first, &move->value))
            return false;
        add(file, &move->value, &local);
    } else {
        move->value = local;
    }
    move->post =
        msccl_reduces(file->func) && move->value.count == file->nranks && !move->value.finished;
    move->value.finished = move->value.finished || move->post;
    return !kind->writes || write_chunk(trace, block, step, step->dst + k, move);
}

/* The step that this one has to wait for; NO_STEP: none, or it is done. */
static uint32_t awaited(const struct trace *trace, const struct msccl_block *block,
                        const struct msccl_step *step)
{
    const struct msccl_file *file = trace->file;
    if (step->dep_block >= 0) {
        const struct msccl_rank *rank = msccl_rank(file, block->rank);
        uint32_t other = msccl_block(file, rank->first + (uint32_t)step->dep_block)->first +
                         (uint32_t)step->dep_step;
        if (!trace->done[other]) return other;
    }
    bool receives = tt_msccl_kinds[step->type].receives;
    return receives && !trace->done[step->partner] ? step->partner : NO_STEP;
}

static void wake(struct trace *trace, uint32_t step)
{
    trace->done[step] = true;
    for (uint32_t b = trace->waiting[step]; b != NO_STEP; b = trace->next_waiting[b])
        trace->ready[trace->nready++] = b;
}

static bool run_block(struct trace *trace, uint32_t number)
{
    const struct msccl_block *block = msccl_block(trace->file, number);
    uint32_t *at = &trace->next_step[number];
    for (; *at < block->end; ++*at) {
        const struct msccl_step *step = msccl_step(trace->file, *at);
        uint32_t other = awaited(trace, block, step);
        if (other != NO_STEP) {
            trace->next_waiting[number] = trace->waiting[other];
            trace->waiting[other] = number;
            return true;
        }
        for (int k = 0; k < step->cnt; k++) {
            if (!run_move(trace, block, step, k)) return false;
        }
        wake(trace, *at);
    }
    return true;
}

static bool report_cycle(struct trace *trace)
{
    struct msccl_file *file = trace->file;
    for (uint32_t b = 0; b < file->blocks.count; b++) {
        const struct msccl_block *block = msccl_block(file, b);
        if (trace->next_step[b] == block->end) continue;
        const struct msccl_step *step = msccl_step(file, trace->next_step[b]);
        return tt_msccl_refuse(
            file, step->line, "gpu %d tb %d waits for ever: for line %d, which comes after it",
            block->rank, block->id, msccl_step(file, awaited(trace, block, step))->line);
    }
    return true;
}

/* ---- all of it ---- */

static void fill(struct trace *trace)
{
    const struct msccl_file *file = trace->file;
    size_t at = 0;
    for (int rank = 0; rank < file->nranks; rank++) {
        trace->values_at[rank] = at;
        at += (size_t)trace->in + (size_t)trace->out +
              (size_t)msccl_rank(file, rank)->chunks[MSCCL_SCRATCH];
        for (int k = 0; k < trace->in && (rank == 0 || !tt_func_from_root(file->func)); k++) {
            *value_at(trace, rank, MSCCL_IN, k) =
                (struct msccl_value){.chunk = k, .count = 1, .known = true, .raw = true};
        }
    }
}

static bool start(struct trace *trace)
{
    struct msccl_file *file = trace->file;
    size_t nblocks = file->blocks.count, nsteps = file->steps.count, n = (size_t)file->nranks;
    size_t nvalues = n * ((size_t)trace->in + (size_t)trace->out);
    for (int rank = 0; rank < file->nranks; rank++) {
        int scratch = msccl_rank(file, rank)->chunks[MSCCL_SCRATCH];
        nvalues += (size_t)scratch;
        trace->scratch = scratch > trace->scratch ? scratch : trace->scratch;
    }
    file->moves = tt_calloc(tt_max_size(file->nmoves, 1), sizeof(*file->moves));
    trace->values = tt_calloc(nvalues, sizeof(*trace->values));
    trace->values_at = tt_calloc(n, sizeof(*trace->values_at));
    trace->next_step = tt_calloc(nblocks, sizeof(*trace->next_step));
    trace->next_waiting = tt_calloc(nblocks, sizeof(*trace->next_waiting));
    trace->ready = tt_calloc(nblocks, sizeof(*trace->ready));
    trace->done = tt_calloc(tt_max_size(nsteps, 1), sizeof(*trace->done));
    trace->waiting = tt_calloc(tt_max_size(nsteps, 1), sizeof(*trace->waiting));
    if (!file->moves || !trace->values || !trace->values_at || !trace->next_step ||
        !trace->next_waiting || !trace->ready || !trace->done || !trace->waiting)
        return tt_msccl_no_memory(file);
    for (size_t s = 0; s < nsteps; s++)
        trace->waiting[s] = NO_STEP;
    for (uint32_t b = 0; b < nblocks; b++) {
        trace->next_step[b] = msccl_block(file, b)->first;
        trace->ready[trace->nready++] = b;
    }
    fill(trace);
    return true;
}

/* Of what is not reduced, input that lies where the result is to be, and that no step writes, is
 * the result: in place nothing has to be done, out of place it is copied. */
static bool keep(struct trace *trace)
{
    struct msccl_file *file = trace->file;
    if (!trace->one || msccl_reduces(file->func)) return true;
    for (int rank = 0; rank < file->nranks; rank++) {
        for (int k = 0; k < trace->out && has_out(file, rank); k++) {
            const struct msccl_value *value = value_at(trace, rank, MSCCL_OUT, k);
            if (!value->known || !value->raw || value->copied) continue;
            struct msccl_kept *kept = tt_msccl_append(&file->kept, sizeof(*kept));
            if (!kept) return tt_msccl_no_memory(file);
            *kept =
                (struct msccl_kept){rank, location_at(trace, rank, MSCCL_OUT, k, true).chunk, k};
        }
    }
    return true;
}

bool tt_msccl_trace(struct msccl_file *file)
{
    bool many_in = msccl_in_blocks(file->func), many_out = msccl_out_blocks(file->func);
    int blocks = file->nranks * file->nparts;
    struct trace trace = {.file = file,
                          .in = many_in ? blocks : file->nparts,
                          .out = many_out ? blocks : file->nparts,
                          .one = !file->out_of_place};
    bool right = start(&trace);
    while (right && trace.nready > 0)
        right = run_block(&trace, trace.ready[--trace.nready]);
    if (right) right = report_cycle(&trace) && keep(&trace);
    free(trace.values);
    free(trace.values_at);
    free(trace.next_step);
    free(trace.next_waiting);
    free(trace.ready);
    free(trace.done);
    free(trace.waiting);
    return right;
}
