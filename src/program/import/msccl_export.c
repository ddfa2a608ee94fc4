/* Writes a program as MSCCL's XML: a thread becomes a block, a transfer one or a few steps. What
 * the format cannot say is refused: other ranks' memory, several messages in one move, threads
 * with more than one peer in a direction. */
#include "msccl.h"

#include "base/mem.h"
#include "program/format/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPS = 256 };

/* Of the text that is written: step of each instruction's end, and the thread that needs it. */
struct awaited {
    int32_t step;
    bool needed;
};

struct export
{
    const struct tt_program *program;
    FILE *out; /* NULL: steps are counted */
    bool in_place;
    struct awaited *awaited; /* owned; of each instruction of the program */
    struct tt_move move;
    int rank, step;                        /* the step that comes next in its block */
    int send, recv;                        /* edges of the thread; -1: none yet */
    const char *fault;                     /* what cannot be said; NULL: nothing so far */
    uint32_t insn;                         /* that is written, */
    int cnt;                               /* chunks of it, */
    bool last;                             /* the last of them */
    const struct tt_insn *deps[MOST_DEPS]; /* awaits before the next step */
    int ndeps;
};

struct named { /* a chunk as the file calls it */
    char buffer;
    int chunk;
};

static struct named name_of(const struct export *export, const struct tt_location *location)
{
    const struct tt_program *program = export->program;
    bool out = location->space == TT_SPACE_OUT;
    if (location->space == TT_SPACE_SCRATCH) return (struct named){'s', location->chunk};
    if (!export->in_place) return (struct named){out ? 'o' : 'i', location->chunk};
    int own = tt_program_in_place_chunk(program, export->rank);
    bool small = out ? program->in_blocks : program->out_blocks;
    return (struct named){own >= 0 && program->out_blocks ? 'o' : 'i',
                          location->chunk + (own >= 0 && small ? own : 0)};
}

static bool refuse(struct export *export, const char *fault)
{
    if (!export->fault) export->fault = fault;
    return false;
}

/* ---- steps ---- */

/* The instruction of this rank that an await names. */
static struct awaited *target_of(const struct export *export, const struct tt_insn *await)
{
    const struct tt_text *text = tt_program_text(export->program, export->rank);
    const struct tt_thread *other =
        &tt_program_threads(export->program)[text->first + await->thread];
    return &export->awaited[other->first + (uint32_t)await->arg];
}

static void put_line(struct export *export, const char *type, struct named src, struct named dst,
                     int cnt, const struct tt_insn *dep)
{
    bool step = cnt > 0;
    struct awaited *own = &export->awaited[export->insn];
    if (export->out) {
        (void)fprintf(export->out,
                      "      <step s=\"%d\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%d\" dstbuf=\"%c\" "
                      "dstoff=\"%d\" cnt=\"%d\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n",
                      export->step, type, src.buffer, src.chunk, dst.buffer, dst.chunk, cnt,
                      dep ? dep->thread : -1, dep ? target_of(export, dep)->step : -1,
                      step && export->last && own->needed && own->step == export->step);
    } else if (step) {
        own->step = export->step;
    }
    export->step++;
}

/* One step, and before it a nop for each wait but the last, which is its own. */
static void put_step(struct export *export, const char *type, struct named src, struct named dst)
{
    const struct named none_in = {'i', -1}, none_out = {'o', -1};
    for (int k = 0; k + 1 < export->ndeps; k++)
        put_line(export, "nop", none_in, none_out, 0, export->deps[k]);
    put_line(export, type, src, dst, export->cnt,
             export->ndeps ? export->deps[export->ndeps - 1] : NULL);
    export->ndeps = 0;
}

/* ---- moves ---- */

static bool use_edge(struct export *export, int *edge, const struct tt_location *slot)
{
    if (*edge < 0) *edge = slot->edge;
    return *edge == slot->edge ||
           refuse(export, "a thread has more than one peer or channel in a direction");
}

struct sorted { /* locations of a move by kind; NULL: none */
    const struct tt_location *slot, *memory;
    int nslots, nmemory;
};

static bool sort_locations(struct export *export, const struct tt_location *locations, int count,
                           struct sorted *sorted)
{
    *sorted = (struct sorted){.slot = NULL};
    for (int k = 0; k < count; k++) {
        const struct tt_location *location = &locations[k];
        bool slot = location->space == TT_SPACE_SLOT;
        if (!slot && location->rank != export->rank)
            return refuse(export, "another rank's memory is read or written");
        if (slot && !sorted->nslots++) sorted->slot = location;
        if (!slot && !sorted->nmemory++) sorted->memory = location;
    }
    return sorted->nslots <= 1 || refuse(export, "a move has several messages in a direction");
}

/* dst += each source; the first one is what is added to, and brought there where it is not. */
static void put_sums(struct export *export, struct named dst)
{
    struct named first = name_of(export, &export->move.src[0]);
    bool last = export->last;
    export->last = false;
    if (first.buffer != dst.buffer || first.chunk != dst.chunk) put_step(export, "cpy", first, dst);
    for (int k = 1; k < export->move.nsrcs; k++) {
        export->last = last && k == export->move.nsrcs - 1;
        put_step(export, "re", name_of(export, &export->move.src[k]), dst);
    }
    export->last = last;
}

static bool put_local(struct export *export, const struct sorted *src, const struct sorted *dst)
{
    struct named from = name_of(export, src->memory);
    if (!dst->memory) {
        if (src->nmemory > 1) return refuse(export, "a sum is sent that is kept nowhere");
        put_step(export, "s", from, from);
        return true;
    }
    struct named to = name_of(export, dst->memory);
    if (src->nmemory > 1) {
        put_sums(export, to);
    } else {
        put_step(export, "cpy", from, to);
    }
    if (dst->slot) put_step(export, "s", to, to);
    return true;
}

static bool put_move(struct export *export)
{
    struct sorted src, dst;
    if (!sort_locations(export, export->move.src, export->move.nsrcs, &src) ||
        !sort_locations(export, export->move.dst, export->move.ndsts, &dst))
        return false;
    if (src.slot && !use_edge(export, &export->recv, src.slot)) return false;
    if (dst.slot && !use_edge(export, &export->send, dst.slot)) return false;
    if (dst.nmemory > 1 || (!src.slot && !src.memory) || (!dst.slot && !dst.memory))
        return refuse(export, "a move has no source, no destination or several of them");
    if (!src.slot && src.memory) return put_local(export, &src, &dst);
    if (src.nmemory > 1) return refuse(export, "a message is added to several chunks at once");
    if (!dst.memory && !src.memory) return refuse(export, "a message is passed on and not kept");
    struct named to = name_of(export, dst.memory ? dst.memory : src.memory);
    struct named from = src.memory ? name_of(export, src.memory) : to;
    static const char *const types[2][3] = {{"r", "rcs", "rcs"}, {"rrc", "rrcs", "rrs"}};
    put_step(export, types[src.nmemory][dst.slot ? (dst.memory ? 1 : 2) : 0], from, to);
    return true;
}

/* ---- threads and ranks ---- */

/* Whether all operands count on from a number, so that the chunks of the move follow each other. */
static bool counts_on(const struct export *export, const struct tt_insn *insn)
{
    const struct tt_operand *operands = tt_program_operands(export->program);
    bool plain = true;
    for (int k = 0; k < insn->nsrcs; k++)
        plain = plain && operands[insn->first_src + (uint32_t)k].chunk_by == TT_CHUNK_CONST;
    for (int k = 0; k < insn->ndsts; k++)
        plain = plain && operands[insn->first_dst + (uint32_t)k].chunk_by == TT_CHUNK_CONST;
    return plain;
}

static bool put_transfer(struct export *export, const struct tt_stepper *stepper)
{
    const struct tt_insn *insn = tt_stepper_insn(stepper);
    bool whole = counts_on(export, insn);
    if (whole && stepper->k > 0) return true;
    tt_stepper_move(stepper, &export->move);
    export->insn = (uint32_t)stepper->pc;
    export->cnt = whole ? insn->nchunks : 1;
    export->last = whole || stepper->k == insn->nchunks - 1;
    return put_move(export);
}

static bool put_steps(struct export *export, int thread)
{
    struct tt_stepper stepper;
    enum tt_next next;
    bool said = true;
    export->step = export->ndeps = 0;
    export->send = export->recv = -1;
    tt_stepper_start(&stepper, export->program, export->rank, thread, 1);
    for (; said && (next = tt_stepper_next(&stepper)) != TT_NEXT_OVER; tt_stepper_done(&stepper)) {
        const struct tt_insn *insn = tt_stepper_insn(&stepper);
        if (next == TT_NEXT_MOVE) {
            said = put_transfer(export, &stepper);
        } else if (next == TT_NEXT_AWAIT && export->ndeps < MOST_DEPS) {
            target_of(export, insn)->needed = true;
            export->deps[export->ndeps++] = insn;
        } else {
            said = refuse(export, next == TT_NEXT_AWAIT ? "a step has too many waits"
                                                        : "ranks meet at a barrier");
        }
    }
    return said && (!export->ndeps || refuse(export, "a thread ends with a wait"));
}

static bool put_thread(struct export *export, int thread)
{
    FILE *out = export->out;
    int n = export->program->nranks;
    export->out = NULL; /* the peers first */
    if (!put_steps(export, thread)) return false;
    int send = export->send, recv = export->recv;
    if (send >= 0 && recv >= 0 && send / n != recv / n)
        return refuse(export, "a thread sends and receives on different channels");
    export->out = out;
    if (!out) return true;
    (void)fprintf(out, "    <tb id=\"%d\" send=\"%d\" recv=\"%d\" chan=\"%d\">\n", thread,
                  send < 0 ? -1 : send % n, recv < 0 ? -1 : recv % n,
                  (send < 0 ? (recv < 0 ? 0 : recv) : send) / n);
    bool said = put_steps(export, thread);
    (void)fputs("    </tb>\n", out);
    return said;
}

static bool put_rank(struct export *export, FILE *out)
{
    const struct tt_program *program = export->program;
    int nthreads = tt_program_nthreads(program, export->rank);
    int in = tt_program_in_chunks(program), outs = tt_program_out_chunks(program);
    bool said = true;
    memset(export->awaited, 0, program->ninsns * sizeof(*export->awaited));
    export->out = NULL; /* which steps are awaited, then the lines */
    for (int t = 0; t < nthreads && said; t++)
        said = put_thread(export, t);
    if (!said) return false;
    export->out = out;
    if (export->in_place) {
        bool by_out = program->out_blocks && !program->in_blocks;
        if (by_out) in = 0;
        if (!by_out) outs = 0;
    }
    (void)fprintf(out, "  <gpu id=\"%d\" i_chunks=\"%d\" o_chunks=\"%d\" s_chunks=\"%d\">\n",
                  export->rank, in, outs, (int)program->scratch);
    for (int t = 0; t < nthreads && said; t++)
        said = put_thread(export, t);
    (void)fputs("  </gpu>\n", out);
    return said;
}

/* ---- the document ---- */

static const char *word_of(enum tt_func func)
{
    static const char *const words[TT_FUNC_COUNT_] = {[TT_FUNC_ALLREDUCE] = "allreduce",
                                                      [TT_FUNC_ALLGATHER] = "allgather",
                                                      [TT_FUNC_REDUCESCATTER] = "reducescatter",
                                                      [TT_FUNC_BROADCAST] = "broadcast",
                                                      [TT_FUNC_REDUCE] = "reduce",
                                                      [TT_FUNC_ALLTOALL] = "alltoall",
                                                      [TT_FUNC_GATHER] = "gather",
                                                      [TT_FUNC_SCATTER] = "scatter"};
    return (unsigned int)func < TT_FUNC_COUNT_ ? words[func] : NULL;
}

static void put_name(FILE *out, const char *name)
{
    for (; *name; name++) {
        switch (*name) {
        case '"': (void)fputs("&quot;", out); break;
        case '&': (void)fputs("&amp;", out); break;
        case '<': (void)fputs("&lt;", out); break;
        default: (void)fputc(*name, out); break;
        }
    }
}

static bool put_document(struct export *export, const struct tt_import *facts, FILE *out)
{
    static const char *const protos[] = {"LL", "LL128", "Simple"};
    const struct tt_program *program = export->program;
    const char *coll = word_of((enum tt_func)program->func);
    bool blocks = program->in_blocks || program->out_blocks, said = true;
    if (!coll || program->root > 0)
        return refuse(export, "the format has no such collective, or none of this root");
    (void)fputs("<algo name=\"", out);
    put_name(out, facts ? facts->name : tt_algo_name((enum tt_algo)program->algo));
    (void)fprintf(out,
                  "\" proto=\"%s\" nchannels=\"%d\" nchunksperloop=\"%d\" ngpus=\"%d\" "
                  "coll=\"%s\" inplace=\"%d\" outofplace=\"%d\" minBytes=\"%llu\" "
                  "maxBytes=\"%llu\">\n",
                  protos[program->proto], (int)program->nchannels,
                  (int)program->nparts * (blocks ? (int)program->nranks : 1), (int)program->nranks,
                  coll, facts ? facts->in_place : false, facts ? facts->out_of_place : true,
                  (unsigned long long)(facts ? facts->min_bytes : 0),
                  (unsigned long long)(facts ? facts->max_bytes : 0));
    for (int rank = 0; rank < program->nranks && said; rank++) {
        export->rank = rank;
        said = put_rank(export, out);
    }
    (void)fputs("</algo>\n", out);
    return said;
}

ncclResult_t tt_export_msccl(const struct tt_program *program, const struct tt_import *facts,
                             char **text_out, char *fault, size_t fault_bytes)
{
    struct export export = {.program = program,
                            .in_place = facts && facts->in_place && !facts->out_of_place};
    size_t locations = 1, bytes = 0;
    char *text = NULL;
    for (int rank = 0; rank < program->nranks; rank++)
        locations = tt_max_size(locations, tt_stepper_locations(program, rank));
    export.awaited = tt_calloc(program->ninsns, sizeof(*export.awaited));
    export.move.src = tt_calloc(locations, sizeof(struct tt_location));
    export.move.dst = tt_calloc(locations, sizeof(struct tt_location));
    FILE *out =
        export.awaited && export.move.src && export.move.dst ? open_memstream(&text, &bytes) : NULL;
    bool said = out && put_document(&export, facts, out);
    bool written = out && fclose(out) == 0;
    free(export.awaited);
    free(export.move.src);
    free(export.move.dst);
    if (said && written) {
        *text_out = text;
        return ncclSuccess;
    }
    free(text);
    if (export.fault) {
        (void)snprintf(fault, fault_bytes, "rank %d insn %u: %s", export.rank,
                       (unsigned int)export.insn, export.fault);
        return ncclInvalidUsage;
    }
    (void)snprintf(fault, fault_bytes, "out of memory");
    return ncclSystemError;
}
