/* Writes a followed file as a program: a text per rank, a thread per block, a move per run of
 * chunks that lie alike. Sums that follow each other in one chunk (`re`) become one move. */
#include "msccl.h"

#include "base/mem.h"
#include "program/format/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SOURCES = 16 }; /* that are added up in one move */

struct writer {
    struct msccl_file *file;
    struct tt_builder *builder; /* NULL: positions are counted */
    int32_t *last_insn;         /* of each step: its last instruction, from the thread's start */
    int32_t *lines;             /* of each instruction of the program */
    struct tt_import_place *places; /* the same */
    struct tt_import_place at;      /* of what is written */
    uint32_t ninsns;                /* so far: of the program, */
    int32_t in_thread;              /* of the thread */
};

static void note_insn(struct writer *writer, int line)
{
    if (writer->lines) writer->lines[writer->ninsns] = line;
    if (writer->places) writer->places[writer->ninsns] = writer->at;
    writer->ninsns++;
    writer->in_thread++;
}

/* ---- runs of chunks ---- */

static bool follows(const struct msccl_location *before, const struct msccl_location *after)
{
    return before->space == after->space && (!before->space || before->chunk + 1 == after->chunk);
}

/* Whether the step's next chunk lies behind this one, wherever it comes from and goes to. */
static bool goes_on(const struct msccl_move *move)
{
    const struct msccl_move *next = move + 1;
    return follows(&move->first, &next->first) && follows(&move->src, &next->src) &&
           follows(&move->dst, &next->dst) && move->post == next->post &&
           move->value.chunk + 1 == next->value.chunk;
}

/* Steps from `s` on that are one move: `re` after `re` to the same chunks. */
static uint32_t fused_steps(const struct msccl_file *file, const struct msccl_block *block,
                            uint32_t s)
{
    const struct msccl_step *head = msccl_step(file, s);
    uint32_t count = 1;
    if (head->type != MSCCL_RE) return 1;
    for (; count < MOST_SOURCES && s + count < block->end; count++) {
        const struct msccl_step *step = msccl_step(file, s + count);
        bool same = step->type == MSCCL_RE && step->cnt == head->cnt && step->dst == head->dst &&
                    step->dst_buffer == head->dst_buffer && step->src_buffer == head->src_buffer;
        if (!same || step->dep_block >= 0 || msccl_step(file, s + count - 1)->has_dep) break;
    }
    return count;
}

/* Chunks from k on that are one move in all of these steps. */
static int run_chunks(const struct msccl_file *file, uint32_t s, uint32_t nsteps, int k)
{
    int cnt = msccl_step(file, s)->cnt, length = 1;
    for (; k + length < cnt; length++) {
        for (uint32_t j = 0; j < nsteps; j++) {
            const struct msccl_step *step = msccl_step(file, s + j);
            if (!goes_on(&file->moves[step->first + (uint32_t)(k + length - 1)])) return length;
        }
    }
    return length;
}

/* ---- moves ---- */

static struct tt_operand memory(const struct msccl_location *location)
{
    return tt_gen_own((enum tt_space)location->space, tt_gen_number(location->chunk));
}

static struct tt_operand slot(const struct msccl_block *block, int peer, int chunk)
{
    struct tt_operand operand = tt_gen_at(TT_SPACE_SLOT, peer, tt_gen_number(chunk));
    operand.channel = (uint16_t)block->channel;
    return operand;
}

static void build_move(struct writer *writer, const struct msccl_block *block, uint32_t s,
                       uint32_t nsteps, int k)
{
    const struct msccl_file *file = writer->file;
    const struct msccl_step *step = msccl_step(file, s);
    const struct msccl_kind *kind = &tt_msccl_kinds[step->type];
    const struct msccl_move *move = &file->moves[step->first + (uint32_t)k];
    const struct msccl_move *last =
        &file->moves[msccl_step(file, s + nsteps - 1)->first + (uint32_t)k];
    struct tt_builder *builder = writer->builder;
    bool pre = move->first.space == TT_SPACE_IN;
    for (uint32_t j = 0; j < nsteps; j++) {
        const struct msccl_step *other = msccl_step(file, s + j);
        pre = pre || file->moves[other->first + (uint32_t)k].src.space == TT_SPACE_IN;
    }
    pre = pre && msccl_reduces(file->func);
    tt_build_move(builder, (uint8_t)((kind->reduces ? TT_MOVE_REDUCE : 0) |
                                     (pre ? TT_MOVE_PRE : 0) | (last->post ? TT_MOVE_POST : 0)));
    if (kind->receives) tt_build_src(builder, slot(block, block->recv, move->value.chunk));
    if (move->first.space) tt_build_src(builder, memory(&move->first));
    for (uint32_t j = 0; kind->reads && j < nsteps; j++) {
        const struct msccl_step *other = msccl_step(file, s + j);
        tt_build_src(builder, memory(&file->moves[other->first + (uint32_t)k].src));
    }
    bool buffers = kind->sends || kind->receives || last->dst.space != TT_SPACE_SCRATCH ||
                   (move->first.space && move->first.space != TT_SPACE_SCRATCH);
    for (uint32_t j = 0; j < nsteps; j++) {
        const struct msccl_step *other = msccl_step(file, s + j);
        buffers = buffers || file->moves[other->first + (uint32_t)k].src.space != TT_SPACE_SCRATCH;
    }
    if (!buffers) tt_build_like(builder, move->value.chunk);
    if (kind->writes) tt_build_dst(builder, memory(&last->dst));
    if (kind->sends) tt_build_dst(builder, slot(block, block->send, move->value.chunk));
}

/* ---- steps and blocks ---- */

static void write_await(struct writer *writer, const struct msccl_block *block,
                        const struct msccl_step *step)
{
    const struct msccl_file *file = writer->file;
    if (step->dep_block < 0) return;
    const struct msccl_rank *rank = msccl_rank(file, block->rank);
    const struct msccl_block *other = msccl_block(file, rank->first + (uint32_t)step->dep_block);
    if (writer->builder) {
        tt_build_await(writer->builder, step->dep_block,
                       writer->last_insn[other->first + (uint32_t)step->dep_step]);
    }
    note_insn(writer, step->line);
}

/* The moves of `nsteps` steps from s on. */
static void write_moves(struct writer *writer, const struct msccl_block *block, uint32_t s,
                        uint32_t nsteps)
{
    const struct msccl_step *step = msccl_step(writer->file, s);
    for (int k = 0, length; k < step->cnt; k += length) {
        length = run_chunks(writer->file, s, nsteps, k);
        if (writer->builder) {
            build_move(writer, block, s, nsteps, k);
            tt_build_range(writer->builder, length);
        }
        note_insn(writer, step->line);
    }
    for (uint32_t j = 0; j < nsteps; j++)
        writer->last_insn[s + j] = writer->in_thread - 1;
}

static void write_block(struct writer *writer, const struct msccl_block *block)
{
    writer->in_thread = 0;
    if (writer->builder) tt_build_thread(writer->builder);
    for (uint32_t s = block->first, nsteps; s < block->end; s += nsteps) {
        nsteps = fused_steps(writer->file, block, s);
        const int step = writer->file->plan ? -1 : (int)(s - block->first);
        writer->at = (struct tt_import_place){block->rank, block->id, step};
        write_await(writer, block, msccl_step(writer->file, s));
        write_moves(writer, block, s, nsteps);
    }
    writer->at.step = -1;
    if (writer->builder) tt_build_stop(writer->builder);
    note_insn(writer, block->line);
}

/* A thread that copies what the rank's file leaves, of the kept ones from *at on. */
static void write_kept(struct writer *writer, const struct msccl_rank *rank, int number, size_t *at)
{
    const struct msccl_file *file = writer->file;
    const struct msccl_kept *kept = file->kept.items;
    bool any = false;
    for (; *at < file->kept.count && kept[*at].rank == number; ++*at) {
        if (writer->builder && !any) tt_build_thread(writer->builder);
        if (writer->builder) {
            tt_build_copy(writer->builder, tt_gen_own(TT_SPACE_IN, tt_gen_number(kept[*at].in)),
                          tt_gen_own(TT_SPACE_OUT, tt_gen_number(kept[*at].out)));
        }
        note_insn(writer, rank->line);
        any = true;
    }
    if (!any) return;
    if (writer->builder) tt_build_stop(writer->builder);
    note_insn(writer, rank->line);
}

static void write_ranks(struct writer *writer)
{
    const struct msccl_file *file = writer->file;
    size_t kept = 0;
    writer->ninsns = 0;
    for (int r = 0; r < file->nranks; r++) {
        const struct msccl_rank *rank = msccl_rank(file, r);
        if (writer->builder) tt_build_assign(writer->builder, r, tt_build_text(writer->builder));
        for (uint32_t b = rank->first; b < rank->end; b++)
            write_block(writer, msccl_block(file, b));
        write_kept(writer, rank, r, &kept);
    }
}

static void set_head(struct msccl_file *file, struct tt_program *head)
{
    int scratch = 0;
    for (int r = 0; r < file->nranks; r++) {
        int chunks = msccl_rank(file, r)->chunks[MSCCL_SCRATCH];
        scratch = chunks > scratch ? chunks : scratch;
    }
    head->func = (int32_t)file->func;
    head->algo = (int32_t)TT_ALGO_FILE;
    head->proto = (int32_t)file->proto;
    if (tt_func_from_root(file->func) || tt_func_to_root(file->func)) head->root = 0;
    head->nparts = file->nparts;
    head->scratch = scratch + file->spill;
    head->nchannels = file->nchannels;
    head->in_blocks = msccl_in_blocks(file->func);
    head->out_blocks = msccl_out_blocks(file->func);
}

static bool note_ranks(const struct msccl_file *file, struct tt_import *import)
{
    import->rank_lines = tt_calloc((size_t)file->nranks, sizeof(*import->rank_lines));
    for (int r = 0; import->rank_lines && r < file->nranks; r++)
        import->rank_lines[r] = msccl_rank(file, r)->line;
    return import->rank_lines != NULL;
}

bool tt_msccl_build(struct msccl_file *file, struct tt_import *import)
{
    struct tt_builder builder;
    struct writer writer = {.file = file};
    writer.last_insn = tt_calloc(tt_max_size(file->steps.count, 1), sizeof(*writer.last_insn));
    if (!writer.last_insn) return tt_msccl_no_memory(file);
    if (!note_ranks(file, import)) {
        free(writer.last_insn);
        return tt_msccl_no_memory(file);
    }
    write_ranks(&writer);
    writer.lines = tt_calloc(writer.ninsns, sizeof(*writer.lines));
    writer.places = tt_calloc(writer.ninsns, sizeof(*writer.places));
    import->lines = writer.lines;
    import->places = writer.places;
    if (writer.lines && writer.places) {
        tt_build_begin(&builder, file->nranks);
        set_head(file, &builder.head);
        writer.builder = &builder;
        write_ranks(&writer);
        ncclResult_t rc = tt_build_end(&builder, &import->program);
        if (rc == ncclInvalidArgument) tt_msccl_refuse(file, file->line, "%s", builder.fault);
    }
    free(writer.last_insn);
    return (import->program || file->rc) ? !file->rc : tt_msccl_no_memory(file);
}
