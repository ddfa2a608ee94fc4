/* Which slots may refer to memory. A reference is read when the receiver gets to it, a copy holds
 * what was there when it was posted; so a slot may refer to memory that stays as it is until the
 * sender's references are read, which the executor waits for at the program's end, not before.
 * Hence the rule: after the posting transfer no thread of the rank writes there, and no other
 * thread of the rank writes there at all. Passes do not matter: they never touch each other's
 * elements. Where other ranks write into this one's memory (ENTER) nothing is referred to.
 *
 * Over a network that takes the bytes from where they lie and puts them into the receiver's memory,
 * they may change once the message was taken. In place a ring sends its input first and writes the
 * result there when it has gone round: that comes after all that took it. */
#include "after.h"
#include "step.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { THREAD_NONE = -1, THREADS_SEVERAL = -2 };

struct written { /* one chunk of memory */
    int thread;
    uint32_t last; /* the last transfer that writes it, counted in its thread from 1 */
};

struct survey {
    const struct tt_program *program;
    int rank;
    uint8_t *refs; /* of the rank's text */
    int first;     /* instruction of it */
    struct tt_move move;
    struct written *chunks[2]; /* of IN, of OUT, of scratch; out of place and in place */
    int nchunks;
    struct tt_after *after; /* owned; made when it is first of use, */
    bool followed;          /* once; NULL then: nothing is known */
};

int tt_program_in_place_chunk(const struct tt_program *program, int rank)
{
    return program->in_blocks == program->out_blocks ? -1 : rank * program->nparts;
}

/* In place there is one buffer: chunk numbers of the larger one. */
static struct written *chunk_at(const struct survey *survey, bool in_place,
                                const struct tt_location *location)
{
    struct written *chunks = survey->chunks[in_place];
    const struct tt_program *program = survey->program;
    bool mine = !tt_location_is_slot(location) && location->rank == survey->rank;
    if (location->space == TT_SPACE_SCRATCH) {
        bool there = location->chunk >= 0 && location->chunk < survey->program->scratch;
        return there ? &chunks[2 * survey->nchunks + location->chunk] : NULL;
    }
    if (!mine || location->chunk < 0 || location->chunk >= survey->nchunks) return NULL;
    bool out = location->space == TT_SPACE_OUT;
    int chunk = location->chunk;
    if (in_place) {
        int block = tt_program_in_place_chunk(program, survey->rank);
        bool small = out ? program->in_blocks : program->out_blocks;
        if (block >= 0 && small) chunk += block;
        if (chunk >= survey->nchunks) return NULL;
        out = false;
    }
    return &chunks[(out ? survey->nchunks : 0) + chunk];
}

static void note_writes(const struct survey *survey, int thread, uint32_t number)
{
    for (int k = 0; k < 2 * survey->move.ndsts; k++) {
        struct written *chunk = chunk_at(survey, k % 2, &survey->move.dst[k / 2]);
        if (!chunk) continue;
        bool other = chunk->thread != THREAD_NONE && chunk->thread != thread;
        chunk->thread = other ? THREADS_SEVERAL : thread;
        chunk->last = number;
    }
}

static bool writes(const struct survey *survey, const struct tt_stepper *stepper, bool in_place,
                   const struct written *chunk)
{
    struct tt_side side = {.sends = true};
    struct tt_location location;
    while (tt_stepper_location(stepper, &side, &location)) {
        if (chunk_at(survey, in_place, &location) == chunk) return true;
    }
    return false;
}

/* The first transfer of the thread behind that one which writes the chunk; there is one. */
static uint32_t next_write(const struct survey *survey, bool in_place, const struct written *chunk,
                           uint32_t number)
{
    struct tt_stepper stepper;
    uint32_t at = 0;
    tt_stepper_start(&stepper, survey->program, survey->rank, chunk->thread, 1);
    for (; at < chunk->last; tt_stepper_done(&stepper)) {
        if (tt_stepper_next(&stepper) != TT_NEXT_MOVE) continue;
        if (++at > number && writes(survey, &stepper, in_place, chunk)) break;
    }
    return at;
}

enum lasts { LASTS_NOT, LASTS_UNTIL_TAKEN, LASTS };

/* How long what that transfer posts of the memory stays as it is. */
static enum lasts lasts(struct survey *survey, bool in_place, const struct tt_location *location,
                        const struct tt_after_transfer *transfer)
{
    const struct written *chunk = chunk_at(survey, in_place, location);
    if (!chunk) return LASTS_NOT;
    if (chunk->thread == THREAD_NONE) return LASTS;
    if (chunk->thread != transfer->thread) return LASTS_NOT;
    if (chunk->last <= transfer->number) return LASTS;
    if (!survey->followed) survey->after = tt_after_create(survey->program);
    survey->followed = true;
    if (!survey->after) return LASTS_NOT;
    uint32_t later = next_write(survey, in_place, chunk, transfer->number);
    return tt_after_taken(survey->after, transfer, later) ? LASTS_UNTIL_TAKEN : LASTS_NOT;
}

static uint8_t bits_of(enum lasts how, uint8_t always, uint8_t taken)
{
    return (uint8_t)((how == LASTS ? always : 0) | (how != LASTS_NOT ? taken : 0));
}

/* The transfer's own writes come before its posts; where its source is what it writes, it is a copy
 * onto itself, or what it posts is the result. */
static uint8_t refs_of(struct survey *survey, bool in_place,
                       const struct tt_after_transfer *transfer)
{
    const struct tt_move *move = &survey->move;
    uint8_t refs = 0;
    if (move->nsrcs == 1) {
        refs |=
            bits_of(lasts(survey, in_place, &move->src[0], transfer), TT_REF_SRC, TT_REF_SRC_TAKEN);
    }
    for (int k = 0; k < move->ndsts; k++) {
        if (tt_location_is_slot(&move->dst[k])) continue;
        refs |=
            bits_of(lasts(survey, in_place, &move->dst[k], transfer), TT_REF_DST, TT_REF_DST_TAKEN);
        break;
    }
    return refs;
}

/* Every transfer of one pass of a thread; with `mark` each takes what it must not refer to from
 * its instruction, else its writes are noted. */
static void walk(struct survey *survey, int thread, bool mark)
{
    struct tt_stepper stepper;
    enum tt_next next;
    uint32_t number = 0;
    tt_stepper_start(&stepper, survey->program, survey->rank, thread, 1);
    for (; (next = tt_stepper_next(&stepper)) != TT_NEXT_OVER; tt_stepper_done(&stepper)) {
        if (next != TT_NEXT_MOVE) continue;
        tt_stepper_move(&stepper, &survey->move);
        number++;
        if (!mark) {
            note_writes(survey, thread, number);
            continue;
        }
        uint8_t *known = &survey->refs[stepper.pc - survey->first];
        if (!*known) continue;
        const struct tt_after_transfer transfer = {survey->rank, thread, number};
        uint8_t refs = refs_of(survey, false, &transfer);
        refs |= (uint8_t)(refs_of(survey, true, &transfer) << TT_REF_IN_PLACE_);
        *known &= refs;
    }
}

static void survey_all(struct survey *survey, size_t count)
{
    int nthreads = tt_program_nthreads(survey->program, survey->rank);
    for (size_t k = 0; k < 2 * count; k++)
        survey->chunks[0][k] = (struct written){.thread = THREAD_NONE};
    survey->chunks[1] = survey->chunks[0] + count;
    for (int mark = 0; mark < 2; mark++) {
        for (int thread = 0; thread < nthreads; thread++)
            walk(survey, thread, mark);
    }
}

static bool posts_slots(const struct tt_program *program, const struct tt_insn *insn)
{
    const struct tt_operand *dst = &tt_program_operands(program)[insn->first_dst];
    for (int k = 0; insn->op == TT_OP_MOVE && k < insn->ndsts; k++) {
        if (dst[k].space == TT_SPACE_SLOT) return true;
    }
    return false;
}

void tt_text_find_refs(const struct tt_program *program, int rank, uint8_t *refs)
{
    struct tt_thread insns = tt_text_insns(program, rank);
    bool any = false;
    for (uint32_t pc = insns.first; pc < insns.end; pc++) {
        bool posts =
            !program->needs_barrier && posts_slots(program, &tt_program_insns(program)[pc]);
        refs[pc - insns.first] = posts ? UINT8_MAX : 0;
        any = any || posts;
    }
    if (!any) return;
    struct survey survey = {
        .program = program, .rank = rank, .refs = refs, .first = (int)insns.first};
    int in = tt_program_in_chunks(program), out = tt_program_out_chunks(program);
    survey.nchunks = in > out ? in : out;
    size_t locations = tt_stepper_locations(program, rank);
    size_t count = 2 * (size_t)survey.nchunks + (size_t)program->scratch;
    survey.chunks[0] = tt_calloc(2 * count, sizeof(*survey.chunks[0]));
    survey.move.src = tt_calloc(2 * locations, sizeof(struct tt_location));
    bool ready = survey.chunks[0] && survey.move.src;
    survey.move.dst = ready ? survey.move.src + locations : NULL;
    if (ready) survey_all(&survey, count);
    for (uint32_t pc = insns.first; pc < insns.end; pc++)
        refs[pc - insns.first] &= ready ? UINT8_MAX : 0;
    tt_after_destroy(survey.after);
    free(survey.move.src);
    free(survey.chunks[0]);
}

void tt_program_find_refs(const struct tt_program *program, int rank, uint8_t *refs)
{
    memset(refs, 0, program->ninsns);
    tt_text_find_refs(program, rank, refs + tt_text_insns(program, rank).first);
}
