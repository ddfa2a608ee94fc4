/* Runs of the agreement test: what memory holds before and after, and the ranks' steps. */
#include "agreement.h"

#include "../check.h"

#include "base/mem.h"
#include "base/system/clock.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_SEC = 60 };

struct trial_proved trial_proved;
static struct world *worlds[RANDOM_RANKS + 1][KINDS];
static struct tt_edge *channel_edges[RANDOM_RANKS][CHANNELS][2][2 * RANDOM_RANKS];

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

void trial_abandon(const struct trial *trial)
{
    for (int r = 0; r < trial->set->nranks; r++)
        fake_stream_drop(&trial->world->rank[r].stream);
    world_destroy(trial->world);
    worlds[trial->set->nranks][trial->kind] = NULL;
}

void trial_destroy_worlds(void)
{
    for (int n = 0; n <= RANDOM_RANKS; n++) {
        for (int kind = 0; kind < KINDS; kind++)
            if (worlds[n][kind]) world_destroy(worlds[n][kind]);
    }
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

struct tt_geometry trial_geometry(const struct trial *trial, int channel)
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
            struct tt_geometry geometry = trial_geometry(trial, channel);
            uint64_t *memory = unit_memory(trial, unit, run, &geometry);
            struct numbers numbers = numbers_of(&unit->before, run, channel);
            for (size_t j = 0; j < unit->count; j++, numbers.next += numbers.step)
                memory[j] = numbers.next;
        }
    }
}

void trial_fail(const struct trial *trial, const char *what)
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
    struct tt_geometry geometry = trial_geometry(trial, channel);
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
        trial_fail(trial, what);
    }
}

static void compare_unit(const struct trial *trial, const struct tt_proof_unit *unit)
{
    for (int run = 0; run < trial->size.nruns; run++) {
        for (int channel = 0; channel < trial->size.nchannels; channel++)
            compare_run(trial, unit, run, channel);
    }
}

void trial_compare(const struct trial *trial)
{
    for (size_t k = 0; k < trial_proved.count; k++)
        compare_unit(trial, &trial_proved.unit[k]);
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
            .geometry = trial_geometry(trial, channel),
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
void trial_launch(const struct trial *trial)
{
    for (int r = 0; r < trial->set->nranks; r++) {
        struct tt_item *item = (struct tt_item *)(void *)replays[r].work;
        assert_int_equal(item->step(item, TT_ITEM_ISSUE), TT_STEP_DONE);
        tuttiHostSubmit(&trial->world->rank[r].stream, &replays[r].item, false);
    }
}

void trial_release(const struct trial *trial)
{
    for (int r = 0; r < trial->set->nranks; r++) {
        struct tt_item *item = (struct tt_item *)(void *)replays[r].work;
        item->step(item, TT_ITEM_RELEASE);
        assert_int_equal(atomic_load(&graph_refs[r]), 0);
    }
}

/* Step the ranks in random order; true when a rank came further. */
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

/* What is under way in sockets is waited for. */
bool trial_play(const struct trial *trial)
{
    uint64_t limit = (uint64_t)TIMEOUT_SEC * 1000000000;
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

bool trial_failed(const struct trial *trial)
{
    for (int r = 0; r < trial->set->nranks; r++) {
        if (atomic_load(&trial->world->rank[r].member.abort)) return true;
    }
    return false;
}

bool trial_left_full(const struct trial *trial)
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
uint64_t trial_word(const struct trial *trial, size_t rank, bool out, size_t k)
{
    return (trial->seed * 64 + 2 * rank + out + 1) * 0x9e3779b97f4a7c15ull ^ k << 20;
}

static void fill_with_words(const struct trial *trial)
{
    for (size_t r = 0; r < (size_t)trial->set->nranks; r++) {
        for (size_t k = 0; k < trial->in_count; k++)
            trial->in[0][r][k] = trial_word(trial, r, false, k);
        for (size_t k = 0; k < trial->out_count; k++)
            trial->out[0][r][k] = trial_word(trial, r, true, k);
    }
}

/* What was proved starts from what the proof says, all else from words of its own. */
void trial_fill(const struct trial *trial)
{
    if (!trial_proved.count) fill_with_words(trial);
    for (size_t k = 0; k < trial_proved.count; k++)
        fill_unit(trial, &trial_proved.unit[k]);
}

void trial_start(struct trial *trial)
{
    trial->world = world_of(trial->set->nranks, trial->kind);
    place_buffers(trial);
    trial_fill(trial);
    for (int run = 0; run < trial->size.nruns; run++) {
        for (int r = 0; r < trial->set->nranks; r++)
            submit(trial, r, run);
    }
}
