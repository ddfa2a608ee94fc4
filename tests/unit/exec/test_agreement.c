/* What the verifier proves is what the executor does: random programs are proved for the very sizes
 * that they then run with, over every kind of edge, and memory must end with what the proof says.
 * What the verifier refuses is run as well where that is safe, and must get stuck, fail, leave
 * slots full or write into IN as it said. usage: test-exec-agreement [PROGRAMS [FIRST-SEED]]   a
 * failing line prints the seed */
#include "../check.h"
#include "coverage.h"
#include "misuse.h"
#include "random_program.h"
#include "ranks.h"
#include "schedules.h"

#include "base/clock.h"
#include "base/mem.h"
#include "program/step.h"
#include "program/verify.h"

#include <malloc.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- random programs ---- */

enum { SLICE_BYTES = 16384, ELEM_BYTES = 8, KINDS = 4, RUNS = 2, CHANNELS = 2, POST_DIV = 3 };
enum { MANY_SLOTS = 256 }; /* of an edge, as far as order goes */
enum {
    NET_SHARE = 10,
    ORDER_SHARE = 4,
    PATIENCE_SEC = 60
}; /* one set in ten runs over sockets, too */

struct size { /* of one trial, in elements */
    size_t chunk, count, grain;
    bool in_place;
    bool captured; /* each rank's work is made once and launched RUNS times, as graphs do */
    int nchannels, nruns;
};

struct trial {
    const struct random_set *set;
    const struct tt_program *program; /* with the flags that are in force */
    const uint8_t *refs[RANDOM_RANKS];
    const char *mode; /* what of the flags is in force */
    bool scales;      /* PRE and POST do something */
    bool keep_order;  /* of the proof */
    struct size size;
    uint64_t seed;
    enum world_kind kind;
    struct world *world;
    uint64_t *in[RUNS][RANDOM_RANKS], *out[RUNS][RANDOM_RANKS];
    size_t in_count, out_count;
};

static struct world *worlds[RANDOM_RANKS + 1][KINDS];
static struct tt_edge *channel_edges[RANDOM_RANKS][CHANNELS][2][2 * RANDOM_RANKS];

enum outcome { PROVED, DEADLOCK, MISFIT, LEFT_FULL, WROTE_IN, RACE, MEANINGLESS, OUTCOMES };
static const char *const outcome_names[OUTCOMES] = {
    "proved", "deadlock", "misfit", "slots left full", "IN written", "race", "meaningless"};

static struct {
    long sets[OUTCOMES], replayed[OUTCOMES], rescheduled[OUTCOMES], runs[KINDS], captured;
} tally;

static struct { /* what the set that runs was proved to do */
    struct tt_proof_unit *unit;
    size_t count, capacity;
} proved;

struct replay { /* stands for a captured work in a stream, which must not release it */
    struct tt_item item;
    struct tt_work *work;
};
static struct replay replays[RANDOM_RANKS];
static _Atomic uint32_t graph_refs[RANDOM_RANKS];

static struct world *world_of(int n, enum world_kind kind)
{
    struct world **world = &worlds[n][kind];
    if (!*world) *world = world_create(n, kind, SLICE_BYTES);
    return *world;
}

/* A world in which something got stuck is not used again. */
static void abandon(const struct trial *trial)
{
    for (int r = 0; r < trial->set->nranks; r++)
        fake_stream_drop(&trial->world->rank[r].stream);
    world_destroy(trial->world);
    worlds[trial->set->nranks][trial->kind] = NULL;
}

/* ---- contents ---- */

/* The elements of a unit: one number after the other, each `step` more. */
struct numbers {
    uint64_t next, step;
};

static struct numbers numbers_of(const struct tt_verify_value *value, int run, int channel)
{
    const uint64_t spread = 0x9e3779b97f4a7c15ull;
    uint64_t first = spread + (uint64_t)(run * 2 + channel) * 0x1234567ull;
    return (struct numbers){value->lane[0] + first * value->lane[1], spread * value->lane[1]};
}

static uint64_t finished(uint64_t word, int times)
{
    for (int k = 0; k < times; k++)
        word /= POST_DIV;
    return word;
}

static struct tt_geometry geometry_of(const struct trial *trial, int channel)
{
    const struct size *size = &trial->size;
    const struct tt_program *program = trial->program;
    struct tt_geometry geometry;
    size_t lo = channel ? size->count : 0;
    tt_geometry_init(&geometry, program, size->count * (size_t)size->nchannels,
                     (struct tt_extent){lo, size->count}, size->chunk, size->grain);
    return geometry;
}

static uint64_t *unit_memory(const struct trial *trial, const struct tt_proof_unit *unit, int run,
                             const struct tt_geometry *geometry)
{
    struct tt_extent extent = tt_geometry_extent(geometry, unit->pass, unit->chunk);
    uint64_t *base = unit->is_out ? trial->out[run][unit->rank] : trial->in[run][unit->rank];
    return base + extent.first + unit->first;
}

/* Give all memory what the proof started from. */
static void fill_unit(const struct trial *trial, const struct tt_proof_unit *unit)
{
    for (int run = 0; run < trial->size.nruns; run++) {
        for (int channel = 0; channel < trial->size.nchannels; channel++) {
            struct tt_geometry geometry = geometry_of(trial, channel);
            uint64_t *memory = unit_memory(trial, unit, run, &geometry);
            struct numbers numbers = numbers_of(&unit->before, run, channel);
            for (size_t j = 0; j < unit->count; j++, numbers.next += numbers.step)
                memory[j] = numbers.next;
        }
    }
}

static void tell(const struct trial *trial, const char *what)
{
    static char text[65536];
    tt_program_print(trial->program, text, sizeof(text));
    print_message("%s", text);
    fail_msg("seed %llu (%s): %s; %d ranks, kind %d, chunk %zu, count %zu, %d channels, %s",
             (unsigned long long)trial->seed, trial->mode, what, trial->set->nranks,
             (int)trial->kind, trial->size.chunk, trial->size.count, trial->size.nchannels,
             trial->size.in_place ? "in place" : "out of place");
}

static bool all_equal(const uint64_t *memory, size_t count, struct numbers numbers)
{
    uint64_t differ = 0;
    for (size_t j = 0; j < count; j++)
        differ |= memory[j] ^ (numbers.next + j * numbers.step);
    return !differ;
}

static void compare_run(const struct trial *trial, const struct tt_proof_unit *unit, int run,
                        int channel)
{
    struct tt_geometry geometry = geometry_of(trial, channel);
    const uint64_t *memory = unit_memory(trial, unit, run, &geometry);
    struct numbers numbers = numbers_of(&unit->after, run, channel);
    int times = trial->scales ? unit->after.post : 0;
    if (!times && all_equal(memory, unit->count, numbers)) return;
    for (size_t j = 0; j < unit->count; j++, numbers.next += numbers.step) {
        char what[160];
        if (memory[j] == finished(numbers.next, times)) continue;
        snprintf(what, sizeof(what),
                 "rank %d, %s, pass %u, chunk %d, element %zu is not what was proved", unit->rank,
                 unit->is_out ? "OUT" : "IN", unit->pass, unit->chunk, unit->first + j);
        tell(trial, what);
    }
}

static void compare_unit(const struct trial *trial, const struct tt_proof_unit *unit)
{
    for (int run = 0; run < trial->size.nruns; run++) {
        for (int channel = 0; channel < trial->size.nchannels; channel++)
            compare_run(trial, unit, run, channel);
    }
}

/* ---- running ---- */

static void place_rank(struct trial *trial, int run, size_t r)
{
    const struct tt_program *program = trial->program;
    size_t count = trial->size.count * (size_t)trial->size.nchannels;
    size_t most = tt_max_size(trial->in_count, trial->out_count);
    uint64_t *in = (void *)world_memory(trial->world, most * ELEM_BYTES, 0);
    uint64_t *out = in;
    if (!trial->size.in_place) {
        out = (void *)world_memory(trial->world, trial->out_count * ELEM_BYTES, 0);
    } else if (program->in_blocks && !program->out_blocks) {
        out = in + r * count;
    } else if (program->out_blocks && !program->in_blocks) {
        in = out + r * count;
    }
    trial->in[run][r] = in;
    trial->out[run][r] = out;
}

static void place_buffers(struct trial *trial)
{
    const struct tt_program *program = trial->program;
    size_t n = (size_t)trial->set->nranks;
    size_t count = trial->size.count * (size_t)trial->size.nchannels;
    trial->in_count = count * (program->in_blocks ? n : 1);
    trial->out_count = count * (program->out_blocks ? n : 1);
    world_reset(trial->world);
    for (int run = 0; run < trial->size.nruns; run++) {
        for (size_t r = 0; r < n; r++)
            place_rank(trial, run, r);
    }
}

/* Part `channel` of the data has as many channels as the program. */
static void bind_edges(struct world *world, int r, int channel, const struct tt_program *program)
{
    uint8_t links[2 * RANDOM_RANKS];
    tt_program_links(program, r, links);
    for (int k = 0; k < program->nchannels * world->n; k++) {
        struct tt_edge_key key = {.peer = k % world->n,
                                  .channel = channel * program->nchannels + k / world->n};
        struct tt_edge **recv = &channel_edges[r][channel][0][k];
        struct tt_edge **send = &channel_edges[r][channel][1][k];
        *recv = *send = NULL;
        if (links[k] & TT_LINK_RECEIVES)
            assert_int_equal(tt_transport_edge(world->rank[r].transport, &key, recv), 0);
        key.sending = true;
        if (links[k] & TT_LINK_SENDS)
            assert_int_equal(tt_transport_edge(world->rank[r].transport, &key, send), 0);
    }
}

static enum tt_step replay_step(struct tt_item *item, enum tt_item_call call)
{
    struct tt_item *work = (struct tt_item *)(void *)((struct replay *)(void *)item)->work;
    return call == TT_ITEM_RELEASE ? TT_STEP_DONE : work->step(work, call);
}

static void submit(struct trial *trial, int r, int run)
{
    const struct tt_program *program = trial->program;
    struct tt_frame frames[CHANNELS];
    struct tt_work *work;
    for (int channel = 0; channel < trial->size.nchannels; channel++) {
        bind_edges(trial->world, r, channel, program);
        frames[channel] = (struct tt_frame){
            .program = program,
            .refs = trial->refs[r],
            .rank = r,
            .geometry = geometry_of(trial, channel),
            .reduction = {.type = ncclUint64,
                          .op = ncclSum,
                          .pre_mul = trial->scales,
                          .post_div = trial->scales ? POST_DIV : 0,
                          .scalar_bits = tt_verify_scalar(r)},
            .in = (const char *)trial->in[run][r],
            .out = (char *)trial->out[run][r],
            .in_bytes = trial->in_count * ELEM_BYTES,
            .out_bytes = trial->out_count * ELEM_BYTES,
            .elem_bytes = ELEM_BYTES,
            .fingerprint = 77,
            .channel = channel,
            .send_edges = channel_edges[r][channel][1],
            .recv_edges = channel_edges[r][channel][0],
        };
    }
    struct tt_work_spec spec = world_spec(trial->world, r, frames, trial->size.nchannels);
    spec.captured = trial->size.captured;
    spec.graph_refs = spec.captured ? &graph_refs[r] : NULL;
    assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
    replays[r] = (struct replay){.item.step = replay_step, .work = work};
    if (spec.captured) return;
    assert_int_equal(tt_exec_submit(work, &trial->world->rank[r].stream), ncclSuccess);
}

/* What a launch of a graph does: each rank's work takes its place and is put on the stream. */
static void launch(const struct trial *trial)
{
    for (int r = 0; r < trial->set->nranks; r++) {
        struct tt_item *item = (struct tt_item *)(void *)replays[r].work;
        assert_int_equal(item->step(item, TT_ITEM_ISSUE), TT_STEP_DONE);
        tuttiHostSubmit(&trial->world->rank[r].stream, &replays[r].item, false);
    }
}

static void release(const struct trial *trial)
{
    for (int r = 0; r < trial->set->nranks; r++) {
        struct tt_item *item = (struct tt_item *)(void *)replays[r].work;
        item->step(item, TT_ITEM_RELEASE);
        assert_int_equal(atomic_load(&graph_refs[r]), 0);
    }
}

/* Step the ranks in random order; true when somebody came further. */
static bool step_some(const struct trial *trial, unsigned *seed)
{
    int n = trial->set->nranks;
    bool progress = trial->kind == WORLD_NET && world_serve(trial->world);
    for (int k = 0; k < 8; k++) {
        int r = rand_r(seed) % n;
        progress = fake_stream_step(&trial->world->rank[r].stream) || progress;
    }
    for (int round = 0; round < 2; round++) { /* a whole round of nothing twice: nothing moves */
        for (int r = 0; r < n && !progress; r++)
            progress = fake_stream_step(&trial->world->rank[r].stream);
    }
    return progress;
}

static bool all_idle(const struct trial *trial)
{
    int idle = 0;
    for (int r = 0; r < trial->set->nranks; r++)
        idle += fake_stream_idle(&trial->world->rank[r].stream);
    return idle == trial->set->nranks;
}

/* False: nobody comes further; what is under way in sockets is waited for. */
static bool play(const struct trial *trial)
{
    uint64_t limit = (uint64_t)PATIENCE_SEC * 1000000000;
    uint64_t last = tt_now_nsec();
    unsigned seed = (unsigned)trial->seed;
    while (!all_idle(trial)) {
        bool net = trial->kind == WORLD_NET;
        if (step_some(trial, &seed)) {
            if (net) last = tt_now_nsec();
        } else if (!net || tt_now_nsec() - last > limit) {
            return all_idle(trial);
        } else {
            sched_yield();
        }
    }
    return true;
}

static bool any_failed(const struct trial *trial)
{
    for (int r = 0; r < trial->set->nranks; r++) {
        if (atomic_load(&trial->world->rank[r].member.abort)) return true;
    }
    return false;
}

static bool any_left_full(const struct trial *trial)
{
    const char *payload;
    size_t bytes;
    for (int r = 0; r < trial->set->nranks; r++) {
        int n = trial->set->nranks;
        for (int k = 0; k < trial->program->nchannels * n; k++) {
            struct tt_edge_key key = {.peer = k % n, .channel = k / n};
            struct tt_edge *edge = channel_edges[r][0][0][k];
            if (k % n == r) continue;
            if (!edge) tt_transport_edge(trial->world->rank[r].transport, &key, &edge);
            if (tt_edge_peek(edge, 0, &payload, &bytes) != ncclInProgress) return true;
        }
    }
    return false;
}

/* No two words of memory are alike. */
static uint64_t own_word(const struct trial *trial, size_t rank, bool out, size_t k)
{
    return (trial->seed * 64 + 2 * rank + out + 1) * 0x9e3779b97f4a7c15ull ^ k << 20;
}

static void fill_with_words(const struct trial *trial)
{
    for (size_t r = 0; r < (size_t)trial->set->nranks; r++) {
        for (size_t k = 0; k < trial->in_count; k++)
            trial->in[0][r][k] = own_word(trial, r, false, k);
        for (size_t k = 0; k < trial->out_count; k++)
            trial->out[0][r][k] = own_word(trial, r, true, k);
    }
}

/* What was proved starts from what the proof says, all else from words of its own. */
static void fill(const struct trial *trial)
{
    if (!proved.count) fill_with_words(trial);
    for (size_t k = 0; k < proved.count; k++)
        fill_unit(trial, &proved.unit[k]);
}

static void start(struct trial *trial)
{
    trial->world = world_of(trial->set->nranks, trial->kind);
    place_buffers(trial);
    fill(trial);
    for (int run = 0; run < trial->size.nruns; run++) {
        for (int r = 0; r < trial->set->nranks; r++)
            submit(trial, r, run);
    }
    tally.runs[trial->kind]++;
}

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
    proved.count = 0;
    while (proof && tt_proof_next(proof, &unit)) {
        if (proved.count == proved.capacity) {
            proved.capacity = 2 * proved.capacity + 64;
            proved.unit = realloc(proved.unit, proved.capacity * sizeof(unit));
            assert_non_null(proved.unit);
        }
        proved.unit[proved.count++] = unit;
    }
}

static void check_run(const struct trial *trial)
{
    if (!play(trial)) tell(trial, "was proved and gets stuck");
    if (any_failed(trial)) tell(trial, "was proved and fails");
    for (size_t k = 0; k < proved.count; k++)
        compare_unit(trial, &proved.unit[k]);
}

/* Run what was proved, over every kind of edge. */
static void confirm(struct trial *trial)
{
    bool barrier = trial->program->needs_barrier;
    for (int kind = 0; kind < KINDS; kind++) {
        trial->kind = (enum world_kind)kind;
        if (barrier && kind >= WORLD_SHM) continue;
        if (kind == WORLD_NET && trial->seed % NET_SHARE) continue;
        start(trial);
        for (int k = 0; trial->size.captured && k < RUNS; k++) {
            fill(trial);
            launch(trial);
            check_run(trial);
            tally.captured++;
        }
        if (trial->size.captured) {
            release(trial);
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
 * proved. */
static bool all_payload(const struct trial *trial)
{
    if (any_empty(trial->program)) return false;
    const struct tt_geometry geometry = geometry_of(trial, 0);
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
        uint64_t before = own_word(trial, (size_t)where.rank, false, k);
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
    start(trial);
    bool ended = play(trial), failed = any_failed(trial);
    if (why == DEADLOCK && ended) tell(trial, "was refused for a deadlock and ends");
    if (why == MISFIT && ended && !failed) tell(trial, "was refused for a misfit and ends");
    if (why == LEFT_FULL && (!ended || !any_left_full(trial)))
        tell(trial, "was refused for slots left full and leaves none");
    if (why == WROTE_IN && (!ended || !in_changed(trial, fault)))
        tell(trial, "was refused for writing into IN and does not");
    tally.replayed[why]++;
    abandon(trial);
}

/* Show what was refused for a race or a deadlock by schedules, for a misuse by what is written. */
static void reschedule(const struct trial *trial, enum outcome why, const char *fault)
{
    const struct schedules_set set = {.program = trial->program,
                                      .refs = trial->refs,
                                      .geometry = geometry_of(trial, 0),
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
        tell(trial, "was refused, and nothing shows why");
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
    if (!same) tell(trial, "is judged otherwise with clocks");
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
    free(proved.unit);
    if (nsets >= 10000 && coverage_missing()) fail_msg("no program with %s", coverage_missing());
    if (nsets >= 1000) {
        assert_true(tally.sets[PROVED] > nsets / 4);
        for (int k = DEADLOCK; k < MEANINGLESS; k++)
            assert_true(tally.sets[k] > 0);
    }
    for (int n = 0; n <= RANDOM_RANKS; n++) {
        for (int kind = 0; kind < KINDS; kind++)
            if (worlds[n][kind]) world_destroy(worlds[n][kind]);
    }
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
