/* Writes down what a plan moves as steps of MSCCL: a put is a message, a get is one the other way
 * round, a sum over remote chunks is a chain of received ones. Steps stand in the order in which
 * the plan was followed, each message is received right after it is sent, and a step waits for
 * those that wrote what it reads and touched what it writes. So a step waits only for earlier ones,
 * and none waits for ever, whatever the number of slots. */
#include "mscclpp_run.h"

#include "base/mem.h"

#include <stdlib.h>

/* ---- output blocks ---- */

/* Of a rank: those of its blocks, messages to each rank, messages from each rank, and one for what
 * others have it do. */
static uint32_t out_block_of(const struct mscclpp_follow *follow, uint32_t block, int rank)
{
    const struct mscclpp_block *own = mscclpp_block(follow->plan, block);
    if (own->rank == rank) return follow->out_blocks_at[rank] + (uint32_t)own->id;
    return follow->out_blocks_at[rank + 1] - 1;
}

static uint32_t out_block_to(const struct mscclpp_follow *follow, int rank, int peer, bool sends)
{
    const struct mscclpp_rank *its = &follow->plan->ranks[rank];
    uint32_t n = (uint32_t)follow->plan->file->nranks;
    return follow->out_blocks_at[rank] + (its->end - its->first) + (sends ? 0 : n) + (uint32_t)peer;
}

/* ---- where a sum is made ---- */

/* Chunks that both mean; `same`: all of them, one by one. */
static bool overlap(const struct mscclpp_follow *follow, const struct mscclpp_ref *a,
                    const struct mscclpp_ref *b, bool *same)
{
    if (a->rank != b->rank) return false;
    size_t at = mscclpp_location(follow, a->rank, a->buffer, a->chunk);
    size_t other = mscclpp_location(follow, b->rank, b->buffer, b->chunk);
    *same = at == other;
    return at < other + (size_t)b->size && other < at + (size_t)a->size;
}

/* The destination where the sources can be added up one after the other: it is none of them, or
 * one, which then comes first (*own_out). The block's own rank is preferred. NULL: none. */
static const struct mscclpp_ref *sum_location(const struct mscclpp_follow *follow, int rank,
                                              const struct mscclpp_op *op, uint32_t *own_out)
{
    const struct mscclpp_ref *best = NULL;
    for (uint32_t d = 0; d < op->ndst; d++) {
        const struct mscclpp_ref *dst = mscclpp_ref(follow->plan, op->dst + d);
        uint32_t own = UINT32_MAX;
        bool usable = !best || (best->rank != rank && dst->rank == rank);
        for (uint32_t k = 0; k < op->nsrc && usable; k++) {
            bool same = false;
            if (!overlap(follow, mscclpp_ref(follow->plan, op->src + k), dst, &same)) continue;
            usable = same && own == UINT32_MAX;
            own = k;
        }
        if (!usable) continue;
        best = dst;
        *own_out = own;
    }
    return best;
}

/* Scratch behind the plan's own, for the blocks that need some. */
static bool plan_spare(struct mscclpp_follow *follow)
{
    struct mscclpp_plan *plan = follow->plan;
    for (uint32_t b = 0; b < plan->blocks.count; b++) {
        const struct mscclpp_block *block = mscclpp_block(plan, b);
        int most = 0;
        for (uint32_t o = block->first; o < block->end; o++) {
            const struct mscclpp_op *op = mscclpp_op(plan, o);
            uint32_t own = 0;
            bool needs =
                op->kind->adds && !op->idle && !sum_location(follow, block->rank, op, &own);
            int size = needs ? mscclpp_ref(plan, op->src)->size : 0;
            most = size > most ? size : most;
        }
        follow->spare[b] = follow->scratch[block->rank];
        follow->scratch[block->rank] += most;
        if (follow->scratch[block->rank] > MSCCL_CHUNKS)
            return tt_msccl_refuse(plan->file, block->line, "too much scratch");
    }
    return true;
}

bool tt_mscclpp_steps_init(struct mscclpp_follow *follow)
{
    struct mscclpp_plan *plan = follow->plan;
    size_t n = (size_t)plan->file->nranks;
    follow->out_blocks_at = tt_calloc(n + 1, sizeof(*follow->out_blocks_at));
    follow->scratch = tt_calloc(n, sizeof(*follow->scratch));
    follow->spare = tt_calloc(tt_max_size(plan->blocks.count, 1), sizeof(*follow->spare));
    if (!follow->out_blocks_at || !follow->scratch || !follow->spare)
        return tt_msccl_no_memory(plan->file);
    for (size_t r = 0; r < n; r++) {
        const struct mscclpp_rank *rank = &plan->ranks[r];
        follow->out_blocks_at[r + 1] =
            follow->out_blocks_at[r] + (rank->end - rank->first) + 2 * (uint32_t)n + 1;
        follow->scratch[r] = rank->chunks[MSCCL_SCRATCH];
    }
    follow->out_blocks = tt_calloc(follow->out_blocks_at[n], sizeof(*follow->out_blocks));
    return follow->out_blocks ? plan_spare(follow) : tt_msccl_no_memory(plan->file);
}

void tt_mscclpp_steps_fini(struct mscclpp_follow *follow)
{
    for (uint32_t s = 0;
         follow->out_blocks && s < follow->out_blocks_at[follow->plan->file->nranks]; s++)
        free(follow->out_blocks[s].awaited);
    free(follow->out_blocks);
    free(follow->out_blocks_at);
    free(follow->steps.items);
    free(follow->scratch);
    free(follow->spare);
}

/* ---- one step ---- */

enum { DEPS_MOST = 64 };

struct open_step { /* a step, and the steps that it has to wait for, one per output block at most */
    uint32_t out_block;
    int rank;
    int32_t deps[DEPS_MOST];
    int ndeps;
    bool failed;
};

static struct mscclpp_step *step_at(const struct mscclpp_follow *follow, int32_t at)
{
    return (struct mscclpp_step *)follow->steps.items + at;
}

static bool add_step(struct mscclpp_follow *follow, uint32_t out_block, struct msccl_step step)
{
    struct mscclpp_step *added = tt_msccl_append(&follow->steps, sizeof(*added));
    if (!added) return tt_msccl_no_memory(follow->plan->file);
    struct mscclpp_out_block *its = &follow->out_blocks[out_block];
    *added = (struct mscclpp_step){.step = step, .out_block = out_block, .at = its->count++};
    if (!its->line) its->line = step.line;
    if (follow->steps.count <= MSCCL_STEPS) return true;
    return tt_msccl_refuse(follow->plan->file, step.line, "the plan is more than %d steps",
                           (int)MSCCL_STEPS);
}

/* A step that waits for another output block's step, and does nothing else. */
static bool add_wait(struct mscclpp_follow *follow, uint32_t out_block, int line, int32_t dep)
{
    struct mscclpp_step *awaited = step_at(follow, dep);
    awaited->step.has_dep = true;
    return add_step(follow, out_block,
                    (struct msccl_step){.line = line,
                                        .type = MSCCL_NOP,
                                        .dep_block = (int)awaited->out_block,
                                        .dep_step = (int)awaited->at});
}

/* Have the step wait for another one, unless its output block does already. */
static void depend(struct mscclpp_follow *follow, struct open_step *open_step, int line,
                   int32_t other)
{
    if (other == MSCCLPP_NONE || open_step->failed) return;
    const struct mscclpp_step *step = step_at(follow, other);
    struct mscclpp_out_block *own = &follow->out_blocks[open_step->out_block];
    uint32_t first = follow->out_blocks_at[open_step->rank];
    if (step->out_block == open_step->out_block) return;
    if (!own->awaited) {
        own->awaited =
            tt_calloc(follow->out_blocks_at[open_step->rank + 1] - first, sizeof(*own->awaited));
    }
    if (!own->awaited) {
        open_step->failed = !tt_msccl_no_memory(follow->plan->file);
        return;
    }
    int32_t *awaited = &own->awaited[step->out_block - first];
    if (*awaited > (int32_t)step->at) return;
    *awaited = (int32_t)step->at + 1;
    for (int k = 0; k < open_step->ndeps; k++) {
        if (step_at(follow, open_step->deps[k])->out_block != step->out_block) continue;
        open_step->deps[k] = other;
        return;
    }
    if (open_step->ndeps == DEPS_MOST) { /* wait for one now */
        open_step->failed =
            !add_wait(follow, open_step->out_block, line, open_step->deps[--open_step->ndeps]);
    }
    open_step->deps[open_step->ndeps++] = other;
}

static void depend_on_cells(struct mscclpp_follow *follow, struct open_step *open_step, int line,
                            const struct mscclpp_ref *ref, bool writes)
{
    for (int k = 0; k < ref->size; k++) {
        const struct mscclpp_cell *cell =
            mscclpp_cell(follow, ref->rank, ref->buffer, ref->chunk + k);
        depend(follow, open_step, line, cell->writer_step);
        for (int32_t r = writes ? cell->reader_steps : MSCCLPP_NONE; r != MSCCLPP_NONE;) {
            const struct mscclpp_reader *reader =
                (struct mscclpp_reader *)follow->readers.items + r;
            depend(follow, open_step, line, reader->step);
            r = reader->next;
        }
    }
}

/* A step that writes output waits for those that read the input that lies there in place, so that a
 * plan for out of place is right in place where it can be. (An AlltoAll in place has its input
 * copied.) */
static void depend_on_input(struct mscclpp_follow *follow, struct open_step *open_step, int line,
                            const struct mscclpp_ref *dst)
{
    const struct msccl_file *file = follow->plan->file;
    int parts = file->nchunks / file->nranks, shift = 0;
    if (file->in_place || dst->buffer != MSCCL_OUT) return;
    if (follow->in < follow->out) shift = -dst->rank * parts;
    if (follow->out < follow->in) shift = dst->rank * parts;
    for (int k = 0; k < dst->size; k++) {
        struct mscclpp_ref input = {dst->rank, dst->chunk + k + shift, 1, MSCCL_IN};
        if (input.chunk < 0 || input.chunk >= follow->in) continue;
        depend_on_cells(follow, open_step, line, &input, true);
    }
}

/* A later step of an output block stands for its earlier ones. */
static bool add_reader_step(struct mscclpp_follow *follow, struct mscclpp_cell *cell, int32_t step)
{
    for (int32_t r = cell->reader_steps; r != MSCCLPP_NONE;) {
        struct mscclpp_reader *reader = (struct mscclpp_reader *)follow->readers.items + r;
        if (step_at(follow, reader->step)->out_block == step_at(follow, step)->out_block) {
            reader->step = step;
            return true;
        }
        r = reader->next;
    }
    struct mscclpp_reader *reader = tt_msccl_append(&follow->readers, sizeof(*reader));
    if (!reader) return tt_msccl_no_memory(follow->plan->file);
    *reader = (struct mscclpp_reader){.step = step, .next = cell->reader_steps};
    cell->reader_steps = (int32_t)(follow->readers.count - 1);
    return true;
}

static bool touch_cells(struct mscclpp_follow *follow, int32_t step, const struct mscclpp_ref *ref,
                        bool writes)
{
    for (int k = 0; k < ref->size; k++) {
        struct mscclpp_cell *cell = mscclpp_cell(follow, ref->rank, ref->buffer, ref->chunk + k);
        if (writes) {
            cell->writer_step = step;
            cell->reader_steps = MSCCLPP_NONE;
            continue;
        }
        if (!add_reader_step(follow, cell, step)) return false;
    }
    return true;
}

/* A step of an output block that reads and writes chunks of its rank (NULL: none). */
static bool emit(struct mscclpp_follow *follow, uint32_t out_block, enum msccl_type type,
                 const struct mscclpp_ref *src, const struct mscclpp_ref *dst, int line)
{
    const struct mscclpp_ref none = {.size = 0}, *any = src ? src : dst ? dst : &none;
    struct open_step open_step = {.out_block = out_block, .rank = any->rank};
    struct msccl_step step = {.line = line,
                              .type = (uint8_t)type,
                              .src = -1,
                              .dst = -1,
                              .cnt = any->size,
                              .dep_block = -1,
                              .dep_step = -1};
    if (src) {
        depend_on_cells(follow, &open_step, line, src, false);
        step.src_buffer = src->buffer;
        step.src = src->chunk;
    }
    if (dst) {
        depend_on_cells(follow, &open_step, line, dst, true);
        if (follow->plan->file->func != TT_FUNC_ALLTOALL)
            depend_on_input(follow, &open_step, line, dst);
        step.dst_buffer = dst->buffer;
        step.dst = dst->chunk;
    }
    for (int k = 0; k + 1 < open_step.ndeps && !open_step.failed; k++)
        open_step.failed = !add_wait(follow, out_block, line, open_step.deps[k]);
    if (open_step.failed) return false;
    if (open_step.ndeps > 0) {
        struct mscclpp_step *awaited = step_at(follow, open_step.deps[open_step.ndeps - 1]);
        awaited->step.has_dep = true;
        step.dep_block = (int)awaited->out_block;
        step.dep_step = (int)awaited->at;
    }
    if (!add_step(follow, out_block, step)) return false;
    int32_t number = (int32_t)(follow->steps.count - 1);
    return (!src || touch_cells(follow, number, src, false)) &&
           (!dst || touch_cells(follow, number, dst, true));
}

/* ---- operations ---- */

static bool copy(struct mscclpp_follow *follow, uint32_t block, int line,
                 const struct mscclpp_ref *src, const struct mscclpp_ref *dst)
{
    bool same = false;
    if (overlap(follow, src, dst, &same) && same) return true;
    if (src->rank == dst->rank) {
        return emit(follow, out_block_of(follow, block, src->rank), MSCCL_CPY, src, dst, line);
    }
    return emit(follow, out_block_to(follow, src->rank, dst->rank, true), MSCCL_S, src, NULL,
                line) &&
           emit(follow, out_block_to(follow, dst->rank, src->rank, false), MSCCL_R, NULL, dst,
                line);
}

/* Add the source to what `sum` holds. */
static bool add(struct mscclpp_follow *follow, uint32_t block, int line,
                const struct mscclpp_ref *src, const struct mscclpp_ref *sum)
{
    if (src->rank == sum->rank) {
        return emit(follow, out_block_of(follow, block, src->rank), MSCCL_RE, src, sum, line);
    }
    return emit(follow, out_block_to(follow, src->rank, sum->rank, true), MSCCL_S, src, NULL,
                line) &&
           emit(follow, out_block_to(follow, sum->rank, src->rank, false), MSCCL_RRC, sum, sum,
                line);
}

/* All sources into each destination: added up at one of them, then copied to the others. */
static bool emit_sum(struct mscclpp_follow *follow, uint32_t block, const struct mscclpp_op *op)
{
    const struct mscclpp_plan *plan = follow->plan;
    int rank = mscclpp_block(plan, block)->rank;
    uint32_t own = UINT32_MAX;
    const struct mscclpp_ref *location = sum_location(follow, rank, op, &own);
    struct mscclpp_ref sum = location ? *location : *mscclpp_ref(plan, op->src);
    if (!location) {
        sum.rank = rank;
        sum.buffer = MSCCL_SCRATCH;
        sum.chunk = follow->spare[block];
    }
    bool begun = own != UINT32_MAX;
    for (uint32_t k = 0; k < op->nsrc; k++) {
        const struct mscclpp_ref *src = mscclpp_ref(plan, op->src + k);
        if (k == own) continue;
        bool added = begun ? add(follow, block, op->line, src, &sum)
                           : copy(follow, block, op->line, src, &sum);
        if (!added) return false;
        begun = true;
    }
    for (uint32_t d = 0; d < op->ndst; d++) {
        const struct mscclpp_ref *dst = mscclpp_ref(plan, op->dst + d);
        if (dst != location && !copy(follow, block, op->line, &sum, dst)) return false;
    }
    return true;
}

bool tt_mscclpp_emit(struct mscclpp_follow *follow, uint32_t block, const struct mscclpp_op *op)
{
    const struct mscclpp_plan *plan = follow->plan;
    if (op->kind->adds) return emit_sum(follow, block, op);
    for (uint32_t d = 0; d < op->ndst; d++) {
        const struct mscclpp_ref *src = mscclpp_ref(plan, op->src + (op->nsrc > 1 ? d : 0));
        if (!copy(follow, block, op->line, src, mscclpp_ref(plan, op->dst + d))) return false;
    }
    return true;
}

/* ---- what stays where it is ---- */

/* How many chunks of input from k on no operation has written. */
static int kept_chunks(const struct mscclpp_follow *follow, int rank, int k, int limit)
{
    int count = 0;
    for (; count < limit; count++) {
        const struct mscclpp_cell *cell = mscclpp_cell(follow, rank, MSCCL_IN, k + count);
        if (!cell->known || cell->writer_step != MSCCLPP_NONE) break;
    }
    return count;
}

/* What a plan for in place leaves where it lies, as output that is input, is copied once no thread
 * reads it any more: so the program is right out of place as well. */
static bool emit_kept(struct mscclpp_follow *follow, int rank)
{
    const struct mscclpp_rank *its = &follow->plan->ranks[rank];
    int n = follow->plan->file->nranks, in = follow->in, out = follow->out;
    int in_first = in > out ? rank * (in / n) : 0, out_first = in < out ? rank * (out / n) : 0;
    int both = in < out ? in : out; /* chunks that are input and output */
    for (int k = 0, size = 0; k < both; k += size ? size : 1) {
        size = kept_chunks(follow, rank, in_first + k, both - k);
        struct mscclpp_ref src = {rank, in_first + k, size, MSCCL_IN};
        struct mscclpp_ref dst = {rank, out_first + k, size, MSCCL_OUT};
        if (size && !emit(follow, follow->out_blocks_at[rank + 1] - 1, MSCCL_CPY, &src, &dst,
                          its->node->line))
            return false;
    }
    return true;
}

bool tt_mscclpp_emit_kept(struct mscclpp_follow *follow)
{
    const struct msccl_file *file = follow->plan->file;
    int nranks = tt_func_to_root(file->func) ? 1 : file->nranks; /* that have output */
    for (int r = 0; file->in_place && r < nranks; r++) {
        if (!emit_kept(follow, r)) return false;
    }
    return true;
}
