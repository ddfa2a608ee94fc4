/* What the verifier proves is what the executor does: random programs are proved for the very sizes
 * that they then run with, over every kind of edge, and memory must end with what the proof says.
 * What the verifier refuses is run as well where that is safe, and must get stuck, fail, leave
 * slots full or write into IN as it said. usage: test-exec-agreement [PROGRAMS [FIRST-SEED]]   a
 * failing line prints the seed */
#include "../check.h"
#include "agreement.h"
#include "coverage.h"
#include "misuse.h"
#include "schedules.h"

#include "base/mem.h"
#include "program/format/step.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY_SLOTS = 256 };                /* of an edge, as far as order goes */
enum { NET_SHARE = 10, ORDER_SHARE = 4 }; /* one set in ten over sockets, in four with clocks */

enum outcome { PROVED, DEADLOCK, MISFIT, LEFT_FULL, WROTE_IN, RACE, MEANINGLESS, OUTCOMES };
static const char *const outcome_names[OUTCOMES] = {
    "proved", "deadlock", "misfit", "slots left full", "IN written", "race", "meaningless"};

static struct {
    long sets[OUTCOMES], replayed[OUTCOMES], rescheduled[OUTCOMES], runs[KINDS], captured;
} tally;

/* ---- judging ---- */

static enum outcome judge(const char *fault)
{
    static const struct {
        const char *part;
        enum outcome outcome;
    } rows[] = {
        {"deadlock", DEADLOCK},
        {"elements from rank", MISFIT},
        {"left full", LEFT_FULL},
        {"written where nothing may change", WROTE_IN},
        {"races", RACE},
        {"may still", RACE},
        {"without having seen", RACE},
    };
    for (size_t k = 0; k < TT_LEN(rows); k++) {
        if (strstr(fault, rows[k].part)) return rows[k].outcome;
    }
    return MEANINGLESS;
}

static ncclResult_t prove(const struct trial *trial, char *fault, size_t fault_bytes,
                          struct tt_proof **proof_out)
{
    const struct size *size = &trial->size;
    const struct tt_verify_options options = {
        .count = size->count,
        .chunk_limit = size->chunk,
        .grain = size->grain,
        .slice = SLICE_BYTES / ELEM_BYTES,
        .nslots = TT_SLOTS,
        .in_place = size->in_place,
        .keep_order = trial->keep_order,
        .any_result = true,
    };
    static struct tt_verify_options kept;                   /* outlives the proof */
    static const struct tt_program *programs[RANDOM_RANKS]; /* likewise */
    kept = options;
    for (int r = 0; r < trial->set->nranks; r++)
        programs[r] = trial->program;
    return tt_program_prove(programs, trial->set->nranks, &kept, fault, fault_bytes, proof_out);
}

/* What all memory starts with and must end with. */
static void keep_units(struct tt_proof *proof)
{
    struct tt_proof_unit unit;
    trial_proved.count = 0;
    while (proof && tt_proof_next(proof, &unit)) {
        if (trial_proved.count == trial_proved.capacity) {
            trial_proved.capacity = 2 * trial_proved.capacity + 64;
            trial_proved.unit = realloc(trial_proved.unit, trial_proved.capacity * sizeof(unit));
            assert_non_null(trial_proved.unit);
        }
        trial_proved.unit[trial_proved.count++] = unit;
    }
}

static void check_run(const struct trial *trial)
{
    if (!trial_play(trial)) trial_fail(trial, "was proved and gets stuck");
    if (trial_failed(trial)) trial_fail(trial, "was proved and fails");
    trial_compare(trial);
}

/* Run what was proved, over every kind of edge. */
static void confirm(struct trial *trial)
{
    bool barrier = trial->program->needs_barrier;
    for (int kind = 0; kind < KINDS; kind++) {
        trial->kind = (enum world_kind)kind;
        if (barrier && kind >= WORLD_SHM) continue;
        if (kind == WORLD_NET && trial->seed % NET_SHARE) continue;
        trial_start(trial);
        tally.runs[kind]++;
        for (int k = 0; trial->size.captured && k < RUNS; k++) {
            trial_fill(trial);
            trial_launch(trial);
            check_run(trial);
            tally.captured++;
        }
        if (trial->size.captured) {
            trial_release(trial);
        } else {
            check_run(trial);
        }
    }
}

/* Every place of the transfer is a chunk that there is, of the own memory, or another rank's slot.
 */
static bool transfer_inside(const struct tt_stepper *stepper)
{
    const struct tt_program *program = stepper->program;
    for (int sends = 0; sends < 2; sends++) {
        struct tt_side side = {.sends = sends};
        struct tt_location location;
        while (tt_stepper_location(stepper, &side, &location)) {
            bool slot = location.space == TT_SPACE_SLOT;
            int in = tt_program_in_chunks(program), out = tt_program_out_chunks(program);
            int bound = location.space == TT_SPACE_IN ? in : out;
            if (location.space == TT_SPACE_SCRATCH) bound = program->scratch;
            if (slot && in > out) bound = in;
            if (location.chunk < 0 || location.chunk >= bound) return false;
            if (slot == (location.rank == stepper->rank)) return false;
        }
    }
    return true;
}

static bool thread_inside(const struct tt_program *program, int rank, int thread)
{
    struct tt_stepper stepper;
    enum tt_next next;
    tt_stepper_start(&stepper, program, rank, thread, 1);
    for (; (next = tt_stepper_next(&stepper)) != TT_NEXT_OVER; tt_stepper_done(&stepper)) {
        if (next == TT_NEXT_MOVE && !transfer_inside(&stepper)) return false;
    }
    return true;
}

/* No operand leads out of its buffer: what is refused for another reason may be run. */
static bool stays_inside(const struct trial *trial)
{
    for (int r = 0; r < trial->set->nranks; r++) {
        for (int t = 0; t < tt_program_nthreads(trial->program, r); t++)
            if (!thread_inside(trial->program, r, t)) return false;
    }
    return true;
}

/* Some message has no source, and so no bytes. */
static bool any_empty(const struct tt_program *program)
{
    const struct tt_insn *insns =
        (const struct tt_insn *)(const void *)((const char *)program + program->insns_at);
    for (uint32_t k = 0; k < program->ninsns; k++) {
        if (insns[k].op == TT_OP_MOVE && insns[k].nsrcs == 0) return true;
    }
    return false;
}

/* Every message needs a slot with room for its bytes: of small ones more are under way than was
 * trial_proved. */
static bool all_payload(const struct trial *trial)
{
    if (any_empty(trial->program)) return false;
    const struct tt_geometry geometry = trial_geometry(trial, 0);
    size_t slice = SLICE_BYTES / ELEM_BYTES;
    for (uint32_t pass = 0; pass < geometry.npasses; pass++) {
        for (int chunk = 0; chunk < geometry.nparts; chunk++) {
            size_t count = tt_geometry_extent(&geometry, pass, chunk).count;
            size_t last = count % slice ? count % slice : tt_min_size(count, slice);
            if (last * ELEM_BYTES <= TT_SLOT_INLINE_BYTES) return false;
        }
    }
    return true;
}

static bool in_changed(const struct trial *trial, const char *fault)
{
    struct schedules_where where;
    (void)schedules_where(fault, &where);
    for (size_t k = 0; k < trial->in_count; k++) {
        uint64_t before = trial_word(trial, (size_t)where.rank, false, k);
        if (trial->in[0][where.rank][k] != before) return true;
    }
    return false;
}

/* Run what was refused, for the reason that was given, in the executor: where that is safe, and
 * through slots alone, as references need none. */
static void replay(struct trial *trial, enum outcome why, const char *fault)
{
    trial->kind = WORLD_SHM;
    trial->size.nruns = trial->size.nchannels = 1;
    trial->size.captured = false;
    if (trial->program->needs_barrier || (why != WROTE_IN && !all_payload(trial))) return;
    if (why != DEADLOCK && why != MISFIT && why != LEFT_FULL && why != WROTE_IN) return;
    if (!stays_inside(trial)) return;
    trial_start(trial);
    tally.runs[trial->kind]++;
    bool ended = trial_play(trial), failed = trial_failed(trial);
    if (why == DEADLOCK && ended) trial_fail(trial, "was refused for a deadlock and ends");
    if (why == MISFIT && ended && !failed) trial_fail(trial, "was refused for a misfit and ends");
    if (why == LEFT_FULL && (!ended || !trial_left_full(trial)))
        trial_fail(trial, "was refused for slots left full and leaves none");
    if (why == WROTE_IN && (!ended || !in_changed(trial, fault)))
        trial_fail(trial, "was refused for writing into IN and does not");
    tally.replayed[why]++;
    trial_abandon(trial);
}

/* Show what was refused for a race or a deadlock by schedules, for a misuse by what is written. */
static void reschedule(const struct trial *trial, enum outcome why, const char *fault)
{
    const struct schedules_set set = {.program = trial->program,
                                      .refs = trial->refs,
                                      .geometry = trial_geometry(trial, 0),
                                      .slice = SLICE_BYTES / ELEM_BYTES,
                                      .nslots = why == DEADLOCK ? TT_SLOTS : MANY_SLOTS,
                                      .in_place = trial->size.in_place};
    struct schedules_where where;
    if (why != RACE && why != DEADLOCK && why != MEANINGLESS) return;
    (void)schedules_where(fault, &where);
    bool shown;
    if (why == MEANINGLESS) {
        enum misuse misuse = misuse_find(&set, fault);
        if (misuse == MISUSE_NONE) return;
        shown = misuse == MISUSE_SHOWN;
    } else if (why == DEADLOCK) {
        shown = !schedules_end(&set);
    } else if (strstr(fault, "without having seen")) {
        shown = schedules_touch_early(&set, where.rank, where.pc, where.pass);
    } else if (strstr(fault, "may still use")) {
        shown = schedules_touch_late(&set, where.rank);
    } else {
        shown = schedules_flip(&set, where.rank, where.pc, where.pass);
    }
    if (!shown) {
        print_message("%s\n", fault);
        trial_fail(trial, "was refused, and nothing shows why");
    }
    tally.rescheduled[why]++;
}

static struct size some_size(const struct tt_program *program, unsigned *seed)
{
    static const size_t chunks[] = {1, 11, 12, 13, 200, 1023, 1024, 1025, 2048, 2049, 4500};
    struct size size = {.chunk = chunks[(unsigned)rand_r(seed) % TT_LEN(chunks)],
                        .grain = 1,
                        .nchannels = 1 + rand_r(seed) % CHANNELS,
                        .nruns = rand_r(seed) % 4 ? 1 : RUNS};
    if (rand_r(seed) % 500 == 0) size.chunk = 40000; /* more than a slice of memory alone */
    size_t window = size.chunk * (size_t)program->nparts;
    size.count = window * (size.chunk < 2000 ? 1 + (size_t)rand_r(seed) % 3 : 1);
    if (rand_r(seed) % 5 == 0) size.count -= (size_t)rand_r(seed) % window;
    size.in_place = rand_r(seed) % 3 == 0;
    size.captured = rand_r(seed) % 4 == 0;
    if (size.captured) size.nruns = 1;
    return size;
}

/* Without PRE and POST in force a program means what it means without those flags. */
static struct tt_program *stripped(const struct tt_program *block)
{
    struct tt_program *program = malloc(block->bytes);
    assert_non_null(program);
    memcpy(program, block, block->bytes);
    struct tt_insn *insns = (struct tt_insn *)(void *)((char *)program + program->insns_at);
    for (uint32_t k = 0; k < program->ninsns; k++) {
        if (insns[k].op == TT_OP_MOVE) insns[k].flags &= TT_MOVE_REDUCE;
    }
    return program;
}

/* With clocks the verdict is the same, and the first fault. */
static void check_order(struct trial *trial, ncclResult_t rc, const char *fault)
{
    char other[256];
    trial->keep_order = true;
    bool same = prove(trial, other, sizeof(other), NULL) == rc && !strcmp(fault, other);
    trial->keep_order = false;
    if (!same) print_message("without clocks: %s\nwith clocks: %s\n", fault, other);
    if (!same) trial_fail(trial, "is judged otherwise with clocks");
}

static void try_program(struct trial *trial, unsigned *draw)
{
    static uint8_t refs[RANDOM_RANKS][RANDOM_RANKS * 64];
    struct tt_proof *proof = NULL;
    char fault[256];
    assert_true(trial->program->ninsns <= sizeof(refs[0]));
    for (int r = 0; r < trial->set->nranks; r++) {
        tt_program_find_refs(trial->program, r, refs[r]);
        trial->refs[r] = refs[r];
    }
    trial->size = some_size(trial->program, draw);
    ncclResult_t rc = prove(trial, fault, sizeof(fault), &proof);
    keep_units(rc ? NULL : proof);
    tt_proof_destroy(proof);
    if (trial->seed % ORDER_SHARE == 0) check_order(trial, rc, fault);
    enum outcome outcome = rc ? judge(fault) : PROVED;
    tally.sets[outcome]++;
    if (outcome == PROVED) {
        coverage_count(trial->program);
        confirm(trial);
    } else {
        reschedule(trial, outcome, fault);
        replay(trial, outcome, fault);
    }
}

static void try_set(uint64_t seed)
{
    static struct random_set set;
    unsigned draw = (unsigned)seed * 2654435761u;
    random_set_make(seed, &set);
    if (!set.block) {
        tally.sets[MEANINGLESS] += 2;
        return;
    }
    struct tt_program *plain = stripped(set.block);
    struct trial trial = {.set = &set, .seed = seed};
    for (int k = 0; k < 2; k++) {
        trial.scales = k == 0;
        trial.mode = trial.scales ? "scaled" : "plain";
        trial.program = trial.scales ? set.block : plain;
        try_program(&trial, &draw);
    }
    free(plain);
    free(set.block);
}

static long nsets = 10000;
static uint64_t first_seed = 1;

static void proofs_and_runs_agree(void **state)
{
    (void)state;
    for (long k = 0; k < nsets; k++)
        try_set(first_seed + (uint64_t)k);
    for (int k = 0; k < OUTCOMES; k++) {
        print_message("%s: %ld, replayed %ld, shown otherwise %ld\n", outcome_names[k],
                      tally.sets[k], tally.replayed[k], tally.rescheduled[k]);
    }
    print_message("runs: %ld pointers, %ld mappings, %ld slots, %ld sockets; %ld launches\n",
                  tally.runs[WORLD_PROCESS], tally.runs[WORLD_MAPPED], tally.runs[WORLD_SHM],
                  tally.runs[WORLD_NET], tally.captured);
    coverage_print();
    free(trial_proved.unit);
    if (nsets >= 10000 && coverage_missing()) fail_msg("no program with %s", coverage_missing());
    if (nsets >= 1000) {
        assert_true(tally.sets[PROVED] > nsets / 4);
        for (int k = DEADLOCK; k < MEANINGLESS; k++)
            assert_true(tally.sets[k] > 0);
    }
    trial_destroy_worlds();
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(proofs_and_runs_agree),
    };
    if (argc > 1) nsets = strtol(argv[1], NULL, 10);
    if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
    /* what a set takes, the next one takes again: the allocator keeps it */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most it takes */
    mallopt(M_TOP_PAD, 16 << 20);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
