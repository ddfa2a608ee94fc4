/* Which slots may refer to memory. A reference is read when the receiver gets to it, a copy holds
 * what was there when it was posted; so a slot may refer to memory that stays as it is until the
 * sender's references are read, which the executor waits for at the program's end, not before.
 * Hence the rule: after the posting transfer no thread of the rank writes there, and no other
 * thread of the rank writes there at all. Passes do not matter: they never touch each other's
 * elements. Where other ranks write into this one's memory (ENTER) nothing is referred to. */
#include "step.h"

#include "base/mem.h"

#include <stdlib.h>

enum { THREAD_NONE = -1, THREADS_SEVERAL = -2 };

struct written { /* one chunk of memory */
    int thread;
    uint32_t last; /* the last transfer that writes it, counted in its thread from 1 */
};

struct survey {
    struct tt_program *program;
    struct tt_move move;
    struct written *chunks; /* [buffer][chunk] */
    int nchunks;
    bool in_place;
};

int tt_program_in_place_chunk(const struct tt_program *program)
{
    bool same = program->geometry == TT_GEOMETRY_SPLIT || program->in_blocks == program->out_blocks;
    return same ? -1 : program->rank;
}

/* In place there is one buffer: chunk numbers of the larger one. */
static struct written *chunk_at(const struct survey *survey, const struct tt_place *place)
{
    const struct tt_program *program = survey->program;
    bool mine = place->space != TT_SPACE_SLOT && place->rank == program->rank;
    if (!mine || place->chunk < 0 || place->chunk >= survey->nchunks) return NULL;
    bool out = place->space == TT_SPACE_OUT;
    int chunk = place->chunk;
    if (survey->in_place) {
        int whole = tt_program_in_place_chunk(program);
        bool small = out ? program->in_blocks : program->out_blocks;
        if (whole >= 0 && small) chunk = whole;
        out = false;
    }
    return &survey->chunks[(out ? survey->nchunks : 0) + chunk];
}

static void note_writes(const struct survey *survey, int thread, uint32_t number)
{
    for (int k = 0; k < survey->move.ndsts; k++) {
        struct written *chunk = chunk_at(survey, &survey->move.dst[k]);
        if (!chunk) continue;
        bool other = chunk->thread != THREAD_NONE && chunk->thread != thread;
        chunk->thread = other ? THREADS_SEVERAL : thread;
        chunk->last = number;
    }
}

static bool stays(const struct written *chunk, int thread, uint32_t number)
{
    if (!chunk) return false;
    return chunk->thread == THREAD_NONE || (chunk->thread == thread && chunk->last <= number);
}

/* The transfer's own writes come before its posts; where its source is what it writes, it is a copy
 * onto itself, or what it posts is the result. */
static uint8_t refs_of(const struct survey *survey, int thread, uint32_t number)
{
    const struct tt_move *move = &survey->move;
    uint8_t refs = 0;
    if (move->nsrcs == 1 && stays(chunk_at(survey, &move->src[0]), thread, number)) {
        refs |= TT_REF_SRC;
    }
    for (int k = 0; k < move->ndsts; k++) {
        if (move->dst[k].space == TT_SPACE_SLOT) continue;
        if (stays(chunk_at(survey, &move->dst[k]), thread, number)) refs |= TT_REF_DST;
        break;
    }
    return refs;
}

/* Every transfer of one pass of a thread; with `settle` each takes what it must not refer to from
 * its instruction, else its writes are noted. */
static void walk(struct survey *survey, int thread, bool settle)
{
    int shift = survey->in_place ? TT_REF_IN_PLACE_ : 0;
    struct tt_stepper stepper;
    enum tt_next next;
    uint32_t number = 0;
    tt_stepper_start(&stepper, survey->program, thread, 1);
    for (; (next = tt_stepper_next(&stepper)) != TT_NEXT_OVER; tt_stepper_done(&stepper)) {
        if (next != TT_NEXT_MOVE) continue;
        tt_stepper_move(&stepper, &survey->move);
        number++;
        if (!settle) {
            note_writes(survey, thread, number);
            continue;
        }
        uint8_t refs = refs_of(survey, thread, number);
        uint8_t others = (uint8_t) ~(3 << shift);
        survey->program->insns[stepper.pc].refs &= (uint8_t)(refs << shift | others);
    }
}

static void survey_mode(struct survey *survey, bool in_place)
{
    survey->in_place = in_place;
    for (int k = 0; k < 2 * survey->nchunks; k++)
        survey->chunks[k] = (struct written){.thread = THREAD_NONE};
    for (int settle = 0; settle < 2; settle++) {
        for (int thread = 0; thread < survey->program->nthreads; thread++)
            walk(survey, thread, settle);
    }
}

static bool posts_slots(const struct tt_insn *insn)
{
    for (int k = 0; k < insn->ndsts; k++) {
        if (insn->dst[k].space == TT_SPACE_SLOT) return true;
    }
    return false;
}

void tt_program_find_refs(struct tt_program *program)
{
    bool any = false;
    for (int pc = 0; pc < program->ninsns; pc++) {
        struct tt_insn *insn = &program->insns[pc];
        bool posts = insn->op == TT_OP_MOVE && !program->needs_board && posts_slots(insn);
        insn->refs = posts ? UINT8_MAX : 0;
        any = any || posts;
    }
    if (!any) return;
    struct survey survey = {.program = program};
    survey.nchunks = program->nchunks > program->nranks ? program->nchunks : program->nranks;
    size_t places = tt_stepper_places(program);
    survey.chunks = tt_calloc(2 * (size_t)survey.nchunks, sizeof(*survey.chunks));
    survey.move.src = tt_calloc(2 * places, sizeof(struct tt_place));
    bool ready = survey.chunks && survey.move.src;
    survey.move.dst = ready ? survey.move.src + places : NULL;
    if (ready) {
        survey_mode(&survey, false);
        survey_mode(&survey, true);
    }
    for (int pc = 0; pc < program->ninsns; pc++)
        program->insns[pc].refs &= ready ? 15 : 0;
    free(survey.move.src);
    free(survey.chunks);
}
