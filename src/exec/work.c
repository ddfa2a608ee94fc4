/* Work items: programs bound to buffers and edges, in one allocation, used again by the issue queue
 * that they ran in. Making one touches no lock; a spare of the queue is taken when it is large
 * enough.
 */
#include "base/error.h"
#include "base/mem.h"
#include "base/system/cpu.h"
#include "exec/exec.h"
#include "exec/host/cursor.h"
#include "exec/host/reduce.h"
#include "exec/step.h"
#include "plugin/profiler/profiler.h"
#include "transport/barrier.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define POLLS_ALONE 200 /* looks at a slot in one step: the cores suffice for all ranks */
#define EAGER_OPS 8192  /* of a flat list */
#define SPARE_BYTES ((size_t)64 << 10) /* larger works are not kept as spares */

struct bump { /* parts of one allocation; base NULL: only counting */
    char *base;
    size_t bytes;
};

static void *take(struct bump *bump, size_t count, size_t size)
{
    size_t at = bump->bytes;
    bump->bytes += tt_round_up(count * size, TT_LINE_BYTES);
    return bump->base ? bump->base + at : NULL;
}

static void take_locations(struct bump *bump, struct tt_locations *locations, size_t count)
{
    struct tt_edge **edge = take(bump, count, sizeof(struct tt_edge *));
    char **base = take(bump, count, sizeof(char *));
    void **at = take(bump, count, sizeof(void *));
    if (!bump->base) return;
    locations->edge = edge;
    locations->base = base;
    locations->at = at;
}

static void bind_cursors(struct bump *bump, struct tt_work *work, const struct tt_work_spec *spec)
{
    struct tt_cursor none; /* stands in while counting */
    int at = 0;
    for (int f = 0; f < spec->nframes; f++) {
        const struct tt_program *program = spec->frames[f].program;
        int rank = spec->frames[f].rank;
        int nthreads = tt_program_nthreads(program, rank);
        size_t count = tt_stepper_locations(program, rank);
        size_t mask_words = count / 64 + 1;
        for (int t = 0; t < nthreads; t++, at++) {
            /* cppcheck-suppress uninitvar ; without a base nothing of `none` is read or written */
            struct tt_cursor *cursor = bump->base ? &work->cursors[at] : &none;
            take_locations(bump, &cursor->src, count);
            take_locations(bump, &cursor->dst, count);
            uint64_t *mask = take(bump, mask_words, sizeof(uint64_t));
            size_t nscalars = spec->frames[f].reduction.pre_mul ? count : 0;
            const void **scalars = take(bump, nscalars, sizeof(void *));
            if (cursor == &none) continue;
            cursor->pre_mask = mask;
            cursor->scalars = nscalars ? scalars : NULL;
            cursor->frame = &work->frames[f];
            cursor->frame_index = f;
            cursor->thread = t;
            cursor->mask_bytes = mask_words * sizeof(uint64_t);
            memset(mask, 0, cursor->mask_bytes);
            cursor->any_pre = false;
        }
    }
}

static int cursor_count(const struct tt_work_spec *spec)
{
    int count = 0;
    for (int f = 0; f < spec->nframes; f++)
        count += tt_program_nthreads(spec->frames[f].program, spec->frames[f].rank);
    return count;
}

/* Every frame of a list begins with it: a profiler is to see messages to one peer one after
 * another. */
static bool begins_at_once(const struct tt_work_spec *spec)
{
    int f = 0;
    while (f < spec->nframes && spec->frames[f].after == 0)
        f++;
    return f == spec->nframes;
}

/* Operations of the flat list of a work; 0: it has none. One that runs once is flattened only if it
 * is of one frame. */
static size_t eager_op_count(const struct tt_work_spec *spec, int ncursors)
{
    size_t count = 0;
    bool again =
        spec->events.profiler ? spec->kept && begins_at_once(spec) : spec->kept || spec->captured;
    if (ncursors != spec->nframes || (ncursors > 1 && !again)) return 0;
    for (int f = 0; f < spec->nframes; f++) {
        size_t more = tt_eager_op_limit(&spec->frames[f], spec->member->nranks);
        if (more == 0 || count + more > EAGER_OPS) return 0;
        count += more;
    }
    return ncursors > 1 ? 2 * count : count; /* bundles */
}

static struct tt_eager *take_eager(struct bump *bump, const struct tt_work_spec *spec, size_t nops)
{
    struct tt_eager *eager = take(bump, 1, sizeof(*eager));
    struct tt_eager_op *ops = take(bump, nops, sizeof(*ops));
    struct tt_eager_part *parts = take(bump, 2 * (size_t)spec->nframes, sizeof(*parts));
    if (!bump->base) return NULL;
    eager->limit = (int)nops;
    eager->ops = ops;
    eager->parts = parts;
    return eager;
}

/* Of the frame with most channels. */
static size_t edge_count(const struct tt_work_spec *spec)
{
    int nchannels = 1;
    for (int f = 0; f < spec->nframes; f++) {
        int own = spec->frames[f].program->nchannels;
        nchannels = own > nchannels ? own : nchannels;
    }
    return (size_t)nchannels * (size_t)spec->member->nranks;
}

static int arrival_count(const struct tt_work_spec *spec)
{
    for (int f = 0; f < spec->nframes; f++) {
        if (spec->frames[f].program->needs_barrier) return spec->member->nranks;
    }
    return 0;
}

static bool expects(const struct tt_work_spec *spec)
{
    return spec->transport && tt_transport_expects(spec->transport);
}

/* Lay the parts of a work out; with base NULL this only counts. */
static void layout(struct bump *bump, struct tt_work *work, const struct tt_work_spec *spec)
{
    int ncursors = cursor_count(spec);
    take(bump, 1, sizeof(struct tt_work));
    struct tt_frame *frames = take(bump, (size_t)spec->nframes, sizeof(struct tt_frame));
    struct tt_cursor *cursors = take(bump, (size_t)ncursors, sizeof(struct tt_cursor));
    int *frame_live = take(bump, (size_t)spec->nframes, sizeof(int));
    struct tt_arrival *arrivals =
        take(bump, (size_t)arrival_count(spec), sizeof(struct tt_arrival));
    struct tt_channel_events *channel_events = NULL;
    struct tt_slot_counts *slot_counts = NULL;
    struct tt_prof_replay *replays = NULL;
    if (spec->events.profiler) {
        channel_events = take(bump, (size_t)spec->nframes, sizeof(*channel_events));
        replays = take(bump, (size_t)spec->events.nreplays, sizeof(*replays));
    }
    if (spec->events.profiler || expects(spec))
        slot_counts = take(bump, edge_count(spec), sizeof(*slot_counts));
    size_t nops = eager_op_count(spec, ncursors);
    struct tt_eager *eager = nops ? take_eager(bump, spec, nops) : NULL;
    if (bump->base) {
        work->channel_events = channel_events;
        work->slot_counts = slot_counts;
        work->replays = replays;
        work->events_open = false;
        work->eager = eager;
        work->frames = frames;
        work->nframes = spec->nframes;
        work->cursors = cursors;
        work->ncursors = ncursors;
        work->frame_live = frame_live;
        work->arrivals = arrivals;
    }
    bind_cursors(bump, work, spec);
}

/* ---- spares: single slots, each taken or filled with one exchange ---- */

static struct tt_work *take_spare(struct tt_issue_queue *queue, size_t bytes)
{
    for (size_t k = 0; k < TT_LEN(queue->spare); k++) {
        if (!atomic_load_explicit(&queue->spare[k], memory_order_relaxed)) continue;
        /* pairs with the release in keep_spare() */
        struct tt_work *work =
            atomic_exchange_explicit(&queue->spare[k], NULL, memory_order_acquire);
        if (!work) continue;
        if (work->capacity_bytes >= bytes) return work;
        free(work);
    }
    return NULL;
}

static void keep_spare(struct tt_issue_queue *queue, struct tt_work *work)
{
    for (size_t k = 0; work->capacity_bytes <= SPARE_BYTES && k < TT_LEN(queue->spare); k++) {
        struct tt_work *none = NULL;
        if (atomic_load_explicit(&queue->spare[k], memory_order_relaxed)) continue;
        if (atomic_compare_exchange_strong_explicit(&queue->spare[k], &none, work,
                                                    memory_order_release, memory_order_relaxed)) {
            return;
        }
    }
    free(work);
}

void tt_work_recycle(struct tt_work *work)
{
    if (work->captured || work->kept) {
        free(work);
    } else {
        keep_spare(work->queue, work);
    }
}

void tt_issue_queue_fini(struct tt_issue_queue *queue)
{
    for (size_t k = 0; k < TT_LEN(queue->spare); k++) {
        free(atomic_exchange_explicit(&queue->spare[k], NULL, memory_order_acquire));
    }
    if (queue->staging) tuttiHostFree(queue->staging);
    queue->staging = NULL;
    queue->staging_bytes = 0;
    if (queue->scratch) tuttiHostFree(queue->scratch);
    queue->scratch = NULL;
    queue->scratch_bytes = 0;
}

/* ---- binding ---- */

static bool meets(const struct tt_frame *reader, const struct tt_frame *writer)
{
    const char *in = reader->in, *out = writer->out;
    if (!in || !out) return false;
    return in < out + writer->out_bytes && out < in + reader->in_bytes;
}

/* All memory that messages of the work are received into lies within it. */
struct span {
    const char *low, *end;
};

static struct span received(const struct tt_work *work)
{
    struct span span = {NULL, NULL};
    for (int f = 0; f < work->nframes; f++) {
        const struct tt_frame *frame = &work->frames[f];
        if (frame->conn != TT_CONN_P2P || frame->out_bytes == 0) continue;
        if (!span.end || frame->out < span.low) span.low = frame->out;
        if (frame->out + frame->out_bytes > span.end) span.end = frame->out + frame->out_bytes;
    }
    return span;
}

/* A message of the work is received into what this one sends. */
static bool is_overwritten(const struct tt_work *work, const struct span *span,
                           const struct tt_frame *frame)
{
    if (frame->conn != TT_CONN_P2P || frame->in_bytes == 0 || !span->end) return false;
    if (frame->in >= span->end || frame->in + frame->in_bytes <= span->low) return false;
    for (int f = 0; f < work->nframes; f++) {
        if (work->frames[f].conn == TT_CONN_P2P && meets(frame, &work->frames[f])) return true;
    }
    return false;
}

/* The buffers lie as NCCL's in place has it: what the program's references were derived for. */
static bool in_place(const struct tt_frame *frame)
{
    const struct tt_program *program = frame->program;
    size_t block_bytes = frame->geometry.block_stride * frame->elem_bytes;
    bool smaller = tt_program_in_place_chunk(program, frame->rank) >= 0;
    size_t skip = smaller ? (size_t)frame->rank * block_bytes : 0;
    return program->in_blocks ? frame->out == frame->in + skip : frame->in == frame->out + skip;
}

/* Which of the derived references hold for these buffers; none where they overlap otherwise. */
static void allow_refs(struct tt_work *work)
{
    enum { NONE = 8 }; /* shifts all bits out */
    const struct span span = received(work);
    for (int k = 0; k < work->ncursors; k++) {
        struct tt_cursor *cursor = &work->cursors[k];
        const struct tt_frame *frame = cursor->frame;
        cursor->overwritten = is_overwritten(work, &span, frame);
        cursor->ref_shift = 0;
        if (meets(frame, frame)) cursor->ref_shift = in_place(frame) ? TT_REF_IN_PLACE_ : NONE;
    }
}

/* Of how many frames from each on the calls are the same but for buffers. */
static void count_same(struct tt_work *work)
{
    for (int f = work->nframes - 1; f >= 0; f--) {
        struct tt_frame *frame = &work->frames[f], *next = frame + 1;
        bool more = f + 1 < work->nframes && next->fingerprint == frame->fingerprint &&
                    memcmp(&next->call, &frame->call, sizeof(frame->call)) == 0;
        frame->nsame = more ? next->nsame + 1 : 1;
    }
}

static void survey_frames(struct tt_work *work)
{
    size_t touched = 0;
    work->nentered = 0;
    work->uses_transport = work->has_scratch = false;
    work->each_counts = true;
    for (int f = 0; f < work->nframes; f++) {
        const struct tt_frame *frame = &work->frames[f];
        bool enters = frame->program->needs_barrier;
        if (enters) work->nentered++;
        if (frame->program->scratch) work->has_scratch = true;
        /* A rank that has no part in an operation counts it as the others do. */
        bool counts = frame->conn == TT_CONN_COLL && frame->program->nranks > 1;
        if (counts) work->uses_transport = true;
        if (!counts || (f > 0 && !frame->begins)) work->each_counts = false;
        touched = tt_max_size(touched, frame->in_bytes + frame->out_bytes);
    }
    count_same(work);
    work->stream = touched * (size_t)work->member->nranks > tt_cpu_cache_bytes() / 4 * 3;
    work->user_in = work->frames[0].in;
    work->user_out = work->frames[0].out;
    work->item.asks_one =
        work->nframes == 1 && tt_func_is_message((enum tt_func)work->frames[0].program->func);
}

static bool tracks(const struct tt_edge *const *edges, int count)
{
    int k = 0;
    while (k < count && !(edges[k] && tt_edge_tracks(edges[k])))
        k++;
    return k < count;
}

/* What a profiler has to do for every run. */
static void survey_edges(struct tt_work *work)
{
    work->tracks = false;
    for (int f = 0; work->events.profiler && f < work->nframes && !work->tracks; f++) {
        const struct tt_frame *frame = &work->frames[f];
        int count = frame->program->nchannels * frame->program->nranks;
        if (!frame->send_edges) continue; /* within one rank */
        work->tracks = tracks((const struct tt_edge *const *)frame->send_edges, count) ||
                       tracks((const struct tt_edge *const *)frame->recv_edges, count);
    }
}

static void fill(struct tt_work *work, const struct tt_work_spec *spec)
{
    work->item.wants_issue = spec->captured;
    work->item.reports_touches = true;
    if (spec->captured) tt_launch_seqs_init(&work->seqs);
    work->member = spec->member;
    work->transport = spec->transport;
    work->queue = spec->queue;
    work->events = spec->events;
    if (work->replays && spec->events.nreplays > 0) {
        memcpy(work->replays, spec->events.replays,
               (size_t)spec->events.nreplays * sizeof(struct tt_prof_replay));
    }
    work->graph_refs = spec->graph_refs;
    work->oversubscribed = spec->oversubscribed;
    work->captured = spec->captured;
    work->kept = spec->kept;
    work->phase = TT_WORK_IDLE;
    work->rc = ncclSuccess;
    work->wait_slot = -1;
    work->polls = 0;
    work->nstages = 0;
    atomic_store_explicit(&work->in_flight, 0, memory_order_relaxed);
    memcpy(work->frames, spec->frames, (size_t)spec->nframes * sizeof(struct tt_frame));
    work->slice_bytes = work->transport ? tt_transport_slice(work->transport) : TT_LINE_BYTES;
    work->expects = expects(spec);
    work->announced = work->expects || work->events.profiler;
    work->polls_per_step = !spec->oversubscribed && work->ncursors == 1 ? POLLS_ALONE : 1;
    work->polls_now = work->polls_per_step;
    survey_frames(work);
    survey_edges(work);
    allow_refs(work);
    if (work->eager && !tt_eager_compile(work)) work->eager = NULL;
}

ncclResult_t tt_work_make(const struct tt_work_spec *spec, struct tt_work **work_out)
{
    assert(spec->nframes > 0 && spec->frames);
    struct bump bump = {NULL, 0};
    layout(&bump, NULL, spec);
    bool reuse = !spec->captured && !spec->kept;
    struct tt_work *work = reuse ? take_spare(spec->queue, bump.bytes) : NULL;
    if (!work) {
        work = tt_calloc(1, bump.bytes);
        if (!work) return tt_fail(ncclSystemError, "work of %zu bytes: out of memory", bump.bytes);
        work->capacity_bytes = bump.bytes;
    }
    bump = (struct bump){(char *)work, 0};
    layout(&bump, work, spec);
    fill(work, spec);
    if (work->captured && work->graph_refs) {
        atomic_fetch_add_explicit(work->graph_refs, 1, memory_order_relaxed);
    }
    *work_out = work;
    return ncclSuccess;
}

void tt_work_destroy(struct tt_work *work)
{
    if (!work) return;
    /* pairs with the acquire load of the thread that waits for the last graph to go */
    if (work->captured && work->graph_refs) {
        atomic_fetch_sub_explicit(work->graph_refs, 1, memory_order_release);
    }
    if (work->captured) tt_launch_seqs_fini(&work->seqs);
    free(work);
}

bool tt_work_idle(const struct tt_work *work)
{
    /* pairs with the release store in step.c */
    return atomic_load_explicit(&work->in_flight, memory_order_acquire) == 0;
}

bool tt_work_is_flat(const struct tt_work *work)
{
    return work->eager != NULL;
}

void tt_work_set_events(struct tt_work *work, const struct tt_work_events *events)
{
    assert(work->events.profiler && events->profiler && events->nreplays == 0);
    work->events = *events;
}

void tt_work_set_event(struct tt_work *work, int frame, void *event)
{
    work->frames[frame].event = event;
}

bool tt_work_rebind(struct tt_work *work, const void *in, void *out)
{
    /* pairs with the release store in step.c */
    if (atomic_load_explicit(&work->in_flight, memory_order_acquire)) return false;
    work->user_in = work->frames[0].in = in;
    work->user_out = work->frames[0].out = out;
    for (int f = 1; f < work->nframes; f++) {
        work->frames[f].in = in;
        work->frames[f].out = out;
    }
    if (!work->eager) allow_refs(work);
    return true;
}

void tt_work_rebind_each(struct tt_work *work, const struct tt_buffers *buffers)
{
    for (int f = 0; f < work->nframes; f++) {
        work->frames[f].in = buffers[f].in;
        work->frames[f].out = buffers[f].out;
    }
    work->user_in = work->frames[0].in;
    work->user_out = work->frames[0].out;
    if (!work->eager) allow_refs(work);
}
