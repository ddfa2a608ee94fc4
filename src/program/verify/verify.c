/* Symbolic execution of the programs of all ranks. Waits block and consume deterministically (no
 * test, no any-source), so with a bound on the slots the outcome does not depend on scheduling and
 * one execution decides: threads that cannot go on when none can are deadlocked. */
#include "verify_state.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>

static bool await(struct tt_verify_cursor *cursor, enum tt_verify_wait wait, int peer)
{
    cursor->wait = wait;
    cursor->wait_peer = peer;
    return false;
}

static bool run_enter(struct tt_verify *verify, struct tt_verify_cursor *cursor)
{
    int me = cursor->rank;
    int only = tt_stepper_insn(&cursor->stepper)->arg;
    struct tt_verify_clock *clock = &verify->clocks[cursor->thread];
    if (!verify->entered[me]) {
        tt_verify_release(verify, cursor->thread, &verify->enter_clocks[me]);
        verify->entered[me] = true;
    }
    for (int p = 0; p < verify->nranks; p++) {
        if (only >= 0 && p != only) continue;
        if (!verify->entered[p]) return await(cursor, TT_WAIT_ENTER, p);
        struct tt_verify_sight *sight =
            &verify->sights[(size_t)me * (size_t)verify->nranks + (size_t)p];
        if (!sight->moment) *sight = (struct tt_verify_sight){cursor->thread, clock->own};
    }
    if (only >= 0) return tt_verify_join(verify, clock, &verify->enter_clocks[only]);
    return tt_verify_join_all(verify, clock, verify->enter_clocks, &verify->all_entered);
}

static bool run_leave(struct tt_verify *verify, struct tt_verify_cursor *cursor)
{
    int me = cursor->rank;
    bool one_way = tt_stepper_insn(&cursor->stepper)->flags & TT_MOVE_NO_WAIT;
    struct tt_verify_clock *clock = &verify->clocks[cursor->thread];
    if (!verify->left[me]) {
        tt_verify_release(verify, cursor->thread, &verify->leave_clocks[me]);
        verify->left[me] = true;
    }
    for (int p = 0; p < verify->nranks && !one_way; p++) {
        if (!verify->left[p]) return await(cursor, TT_WAIT_LEAVE, p);
    }
    if (one_way) return true;
    return tt_verify_join_all(verify, clock, verify->leave_clocks, &verify->all_left);
}

static bool run_await(struct tt_verify *verify, struct tt_verify_cursor *cursor)
{
    const struct tt_stepper *stepper = &cursor->stepper;
    const struct tt_insn *insn = tt_stepper_insn(stepper);
    int thread = verify->main_thread[cursor->rank] + insn->thread;
    const struct tt_stepper *other = &verify->cursors[thread].stepper;
    if (!tt_stepper_awaited(stepper, other)) return await(cursor, TT_WAIT_THREAD, cursor->rank);
    const struct tt_verify_clock *end =
        tt_verify_end_of(verify, cursor->rank, stepper->pass, other->first + insn->arg);
    return tt_verify_join(verify, &verify->clocks[cursor->thread], end);
}

/* Go on; a move that is done may be awaited by other threads of the rank. */
static void step_done(struct tt_verify *verify, struct tt_verify_cursor *cursor)
{
    int pc = cursor->stepper.pc;
    tt_stepper_done(&cursor->stepper);
    struct tt_verify_clock *end = tt_verify_end_of(verify, cursor->rank, cursor->stepper.pass, pc);
    bool over = end && cursor->stepper.pc != pc && cursor->stepper.insns[pc].op == TT_OP_MOVE;
    if (over) tt_verify_release(verify, cursor->thread, end);
}

/* What the stepper says next. False: blocked, failed or ended. */
static bool run_step(struct tt_verify *verify, struct tt_verify_cursor *cursor)
{
    bool done = true;
    switch (tt_stepper_next(&cursor->stepper)) {
    case TT_NEXT_MOVE: done = tt_verify_move(verify, cursor); break;
    case TT_NEXT_ENTER: done = run_enter(verify, cursor); break;
    case TT_NEXT_LEAVE: done = run_leave(verify, cursor); break;
    case TT_NEXT_AWAIT: done = run_await(verify, cursor); break;
    case TT_NEXT_OVER: cursor->ended = true; return false;
    }
    if (done) step_done(verify, cursor);
    return done;
}

/* Run every thread as far as it goes. True: a thread came further. */
static bool run_round(struct tt_verify *verify)
{
    bool progress = false;
    for (int t = 0; t < verify->nthreads && !verify->failed; t++) {
        struct tt_verify_cursor *cursor = &verify->cursors[t];
        size_t slice = cursor->slice;
        while (!cursor->ended && run_step(verify, cursor))
            progress = true;
        progress = progress || cursor->slice != slice;
    }
    return progress && !verify->failed;
}

static bool report_stuck(struct tt_verify *verify)
{
    static const char *const waits[] = {
        [TT_WAIT_NONE] = "nothing of",        [TT_WAIT_FULL] = "a full slot from",
        [TT_WAIT_FREE] = "a free slot to",    [TT_WAIT_ENTER] = "the arrival of",
        [TT_WAIT_LEAVE] = "the departure of", [TT_WAIT_THREAD] = "another thread of",
    };
    for (int t = 0; t < verify->nthreads; t++) {
        const struct tt_verify_cursor *cursor = &verify->cursors[t];
        if (cursor->ended) continue;
        return tt_verify_fail(verify, cursor, "deadlock with %d slots: waits for %s rank %d",
                              verify->options->nslots, waits[cursor->wait], cursor->wait_peer);
    }
    return true;
}

static void measure(struct tt_verify *verify)
{
    const struct tt_verify_options *options = verify->options;
    const struct tt_program *model = verify->programs[0];
    tt_geometry_init(&verify->geometry, model, options->count,
                     (struct tt_extent){0, options->count}, options->chunk_limit, options->grain);
    size_t chunk = tt_max_size(verify->geometry.chunk, verify->geometry.tail_chunk);
    verify->nchannels = model->nchannels;
    int in = tt_program_in_chunks(model), out = tt_program_out_chunks(model);
    verify->nchunks = in > out ? in : out;
    verify->slice = options->slice ? options->slice : tt_max_size(chunk, 1);
    verify->nslices = tt_max_size(tt_round_up(chunk, verify->slice) / verify->slice, 1);
    verify->nunits = verify->geometry.npasses * (size_t)verify->nchunks * verify->nslices;
    verify->per_rank = 2 * verify->nunits;
    verify->per_rank += verify->geometry.npasses * (size_t)model->scratch * verify->nslices;
}

static bool run(struct tt_verify *verify)
{
    if (!tt_verify_wellformed(verify)) return false;
    measure(verify);
    if (!tt_verify_cover(verify) || !tt_verify_ends(verify)) return false;
    if (!tt_verify_state_init(verify) || !tt_verify_begin(verify)) return false;
    while (run_round(verify)) {
    }
    return !verify->failed && report_stuck(verify) && tt_verify_end(verify);
}

/* ---- the proof ---- */

struct tt_proof {
    struct tt_verify verify;
    struct tt_verify_units units; /* of tt_proof_next() */
    int rank;
    enum tt_verify_buffer buffer;
};

void tt_proof_destroy(struct tt_proof *proof)
{
    if (!proof) return;
    tt_verify_state_fini(&proof->verify);
    free(proof);
}

ncclResult_t tt_program_prove(const struct tt_program *const *programs, int nranks,
                              const struct tt_verify_options *options, char *fault,
                              size_t fault_bytes, struct tt_proof **proof_out)
{
    struct tt_proof *proof = tt_calloc(1, sizeof(*proof));
    if (!proof) return tt_fail(ncclSystemError, "proof: out of memory");
    struct tt_verify *verify = &proof->verify;
    *verify = (struct tt_verify){.programs = programs,
                                 .options = options,
                                 .nranks = nranks,
                                 .fault = fault,
                                 .fault_bytes = fault_bytes};
    if (fault_bytes) fault[0] = '\0';
    bool usable = nranks > 0 && options->nslots > 0 && options->grain > 0 && options->count > 0 &&
                  options->chunk_limit > 0;
    bool right =
        usable ? run(verify) : tt_verify_fail(verify, NULL, "options leave nothing to verify");
    if (right && proof_out) {
        *proof_out = proof;
        proof->units = tt_verify_units(0, TT_VERIFY_IN);
        proof = NULL;
    }
    tt_proof_destroy(proof);
    return right ? ncclSuccess : ncclInternalError;
}

ncclResult_t tt_program_verify(const struct tt_program *const *programs, int nranks,
                               const struct tt_verify_options *options, char *fault,
                               size_t fault_bytes)
{
    return tt_program_prove(programs, nranks, options, fault, fault_bytes, NULL);
}

bool tt_proof_next(struct tt_proof *proof, struct tt_proof_unit *unit_out)
{
    const struct tt_verify *verify = &proof->verify;
    while (!tt_verify_next_unit(verify, &proof->units)) {
        if (proof->buffer == TT_VERIFY_OUT) proof->rank++;
        proof->buffer = proof->buffer == TT_VERIFY_IN ? TT_VERIFY_OUT : TT_VERIFY_IN;
        if (proof->rank >= verify->nranks) return false;
        proof->units = tt_verify_units(proof->rank, proof->buffer);
    }
    const struct tt_verify_units *units = &proof->units;
    const struct tt_verify_cell *cell = tt_verify_cell(verify, &units->location);
    struct tt_extent extent =
        tt_geometry_extent(&verify->geometry, units->pass, units->location.chunk);
    size_t skip = units->slice * verify->slice;
    *unit_out = (struct tt_proof_unit){.rank = units->location.rank,
                                       .is_out = units->location.buffer == TT_VERIFY_OUT,
                                       .pass = units->pass,
                                       .chunk = units->location.chunk,
                                       .first = skip,
                                       .count = tt_min_size(verify->slice, extent.count - skip),
                                       .before = cell->initial,
                                       .after = cell->value};
    return true;
}
