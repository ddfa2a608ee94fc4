/* See flow.h. Threads run as far as they can, round after round; a thread that waits finds what it
 * waits for with the time at which it was there. */
#include "flow.h"

#include "step.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EDGES = 1 << 23, MOST_TIMES = 1 << 25, MOST_CELLS = 1 << 24 };

struct parcel { /* in a slot */
    int32_t time;
    int32_t chunk; /* as of a message; -1: unknown */
    uint64_t parts;
};

struct cell { /* what a chunk of memory holds */
    uint64_t parts;
    int32_t chunk;
};

struct edge { /* from one rank to another on a channel; grows */
    struct parcel *items;
    uint32_t head, tail, capacity;
};

struct lane { /* a thread of a rank */
    struct tt_stepper stepper;
    int rank;
    int32_t time;
    bool over;
};

struct follow {
    const struct tt_program *program;
    struct tt_flow *flow;
    int n, nlanes;
    size_t chunks;           /* of IN, OUT and scratch of a rank */
    struct lane *lanes;      /* owned, as all below */
    int *first_lane;         /* of each rank */
    struct edge *edges;      /* [channel][from][to] */
    int32_t *times;          /* [rank][insn]: when it was done */
    struct cell *cells;      /* [rank][chunk]; NULL: too many ranks */
    int32_t *entered, *left; /* of each rank: when; -1: not yet */
    struct tt_move move;
    size_t capacity; /* of messages */
    bool failed;     /* out of memory */
};

/* ---- memory ---- */

static struct cell *cell(const struct follow *follow, const struct tt_location *location)
{
    size_t in = (size_t)tt_program_in_chunks(follow->program);
    size_t out = (size_t)tt_program_out_chunks(follow->program);
    size_t at = (size_t)location->chunk;
    if (location->space != TT_SPACE_IN) at += in;
    if (location->space == TT_SPACE_SCRATCH) at += out;
    return &follow->cells[(size_t)location->rank * follow->chunks + at];
}

static bool push(struct follow *follow, struct edge *edge, struct parcel parcel)
{
    if (edge->tail == edge->capacity) {
        uint32_t capacity = edge->capacity ? 2 * edge->capacity : 4;
        struct parcel *items = realloc(edge->items, capacity * sizeof(*items));
        if (!items) {
            follow->failed = true;
            return false;
        }
        edge->items = items;
        edge->capacity = capacity;
    }
    edge->items[edge->tail++] = parcel;
    return true;
}

static void record(struct follow *follow, const struct tt_flow_message *message)
{
    struct tt_flow *flow = follow->flow;
    if (flow->nmessages == follow->capacity) {
        size_t capacity = follow->capacity ? 2 * follow->capacity : 256;
        struct tt_flow_message *messages =
            realloc(flow->messages, capacity * sizeof(*flow->messages));
        if (!messages) {
            follow->failed = true;
            return;
        }
        flow->messages = messages;
        follow->capacity = capacity;
    }
    flow->messages[flow->nmessages++] = *message;
    if (message->step > flow->nsteps) flow->nsteps = message->step;
}

static void report(struct follow *follow, const struct tt_flow_message *message)
{
    record(follow, message);
    follow->flow->sent[message->from]++;
    follow->flow->received[message->to]++;
}

/* ---- a move ---- */

static struct edge *edge_of(const struct follow *follow, const struct tt_location *location,
                            int from, int to)
{
    size_t n = (size_t)follow->n, channel = (size_t)location->edge / n;
    return &follow->edges[(channel * n + (size_t)from) * n + (size_t)to];
}

static bool is_far(const struct tt_location *location, int rank)
{
    return !tt_location_is_slot(location) && location->rank != rank;
}

/* ---- a network that reduces: what a rank gives it lies on the edge from the rank to itself, whose
 * head counts the sums that the rank has taken ---- */

/* Whether the message of a group's rank at place `member` is in the one that comes as number
 * `head`; in an AllGather it is one rank's. */
static bool is_part(const struct tt_network_call *call, uint32_t head, uint32_t member)
{
    return call->takes <= 1 || tt_network_part(call, member) == head % call->takes;
}

static void take_parcel(const struct parcel *parcel, struct tt_flow_message *message)
{
    message->parts |= parcel->parts;
    if (message->chunk < 0) message->chunk = parcel->chunk;
    if (parcel->time > message->step) message->step = parcel->time;
}

/* Whether all of the group have given what the next sum is made of. */
static bool take_sum(const struct follow *follow, const struct tt_location *src,
                     struct tt_flow_message *message)
{
    const struct tt_network_call call = tt_program_network(follow->program, src->rank);
    uint32_t head = edge_of(follow, src, src->rank, src->rank)->head, member = 0;
    uint32_t first = head / call.takes * call.gives;
    int r;
    for (int at = 0; (r = tt_network_member(follow->program, src->rank, &at)) >= 0;
         at++, member++) {
        const struct edge *edge = edge_of(follow, src, r, r);
        if (edge->tail < first + call.gives) return false;
        uint32_t part = call.gives > 1 ? tt_network_part(&call, member) : 0;
        if (is_part(&call, head, member)) take_parcel(&edge->items[first + part], message);
        for (uint32_t k = first; k < first + call.gives; k++)
            if (edge->items[k].time > message->step) message->step = edge->items[k].time;
    }
    return true;
}

/* To the reader a sum is a message from each of the others; it passes the rank's link once. Of what
 * is gathered the own message passes nothing. */
static void report_sum(struct follow *follow, const struct tt_location *src,
                       struct tt_flow_message message)
{
    const struct tt_network_call call = tt_program_network(follow->program, message.to);
    uint32_t head = edge_of(follow, src, src->rank, src->rank)->head - 1, member = 0;
    if (message.chunk < 0 || call.takes > 1) message.chunk = src->chunk;
    message.channel = src->edge / follow->n;
    follow->flow->received[message.to] += call.takes == 1 || !is_part(&call, head, call.own);
    for (int at = 0; (message.from = tt_network_member(follow->program, message.to, &at)) >= 0;
         at++) {
        bool part = is_part(&call, head, member++);
        if (message.from != message.to && part) record(follow, &message);
    }
}

/* When all sources are there, and what they hold together. False: one is not. */
static bool take(struct follow *follow, const struct lane *lane, struct tt_flow_message *message)
{
    for (int k = 0; k < follow->move.nsrcs; k++) {
        const struct tt_location *src = &follow->move.src[k];
        if (src->space == TT_SPACE_NETWORK) {
            if (!take_sum(follow, src, message)) return false;
            continue;
        }
        if (src->space != TT_SPACE_SLOT) {
            if (!follow->cells) continue;
            const struct cell *held = cell(follow, src);
            message->parts |= held->parts;
            if (message->chunk < 0) message->chunk = held->chunk;
            continue;
        }
        const struct edge *edge = edge_of(follow, src, src->rank, lane->rank);
        if (edge->head == edge->tail) return false;
        take_parcel(&edge->items[edge->head], message);
    }
    return true;
}

static void give(struct follow *follow, const struct lane *lane, struct tt_flow_message *message)
{
    for (int k = 0; k < follow->move.ndsts; k++) {
        const struct tt_location *dst = &follow->move.dst[k];
        if (tt_location_is_slot(dst)) {
            struct parcel parcel = {message->step + 1, message->chunk, message->parts};
            if (dst->space == TT_SPACE_NETWORK) follow->flow->sent[lane->rank]++;
            if (!push(follow, edge_of(follow, dst, lane->rank, dst->rank), parcel)) return;
            continue;
        }
        if (follow->cells) *cell(follow, dst) = (struct cell){message->parts, message->chunk};
        if (!is_far(dst, lane->rank)) continue;
        struct tt_flow_message written = *message;
        written.from = lane->rank;
        written.to = dst->rank;
        if (written.chunk < 0) written.chunk = dst->chunk;
        written.step++;
        report(follow, &written);
    }
}

static bool run_move(struct follow *follow, struct lane *lane)
{
    struct tt_flow_message message = {
        .to = lane->rank, .insn = (uint32_t)lane->stepper.pc, .step = lane->time, .chunk = -1};
    tt_stepper_move(&lane->stepper, &follow->move);
    if (!take(follow, lane, &message)) return false;
    lane->time = message.step;
    follow->flow->touched[lane->rank] += (uint64_t)(follow->move.nsrcs + follow->move.ndsts);
    for (int k = 0; k < follow->move.nsrcs; k++) {
        const struct tt_location *src = &follow->move.src[k];
        if (tt_location_is_slot(src)) edge_of(follow, src, src->rank, lane->rank)->head++;
        if (src->space == TT_SPACE_NETWORK) report_sum(follow, src, message);
        if (src->space != TT_SPACE_SLOT && !is_far(src, lane->rank)) continue;
        struct tt_flow_message taken = message;
        taken.from = src->rank;
        if (taken.chunk < 0) taken.chunk = src->chunk;
        taken.channel = src->space == TT_SPACE_SLOT ? src->edge / follow->n : 0;
        report(follow, &taken);
    }
    give(follow, lane, &message);
    follow->times[(size_t)lane->rank * follow->program->ninsns + message.insn] = lane->time;
    return !follow->failed;
}

/* ---- waits ---- */

/* Publish, and wait for `only` or all others; a barrier is a step. */
static bool barrier(const struct follow *follow, struct lane *lane, int32_t *times, int only)
{
    int32_t latest = lane->time;
    if (times[lane->rank] < 0) times[lane->rank] = lane->time;
    for (int p = 0; p < follow->n; p++) {
        if (only >= 0 && p != only) continue;
        if (times[p] < 0) return false;
        if (p != lane->rank && times[p] + 1 > latest) latest = times[p] + 1;
    }
    lane->time = latest;
    if (latest > follow->flow->nsteps) follow->flow->nsteps = latest;
    return true;
}

static bool run_await(const struct follow *follow, struct lane *lane)
{
    const struct tt_insn *insn = tt_stepper_insn(&lane->stepper);
    const struct lane *other = &follow->lanes[follow->first_lane[lane->rank] + insn->thread];
    if (!tt_stepper_awaited(&lane->stepper, &other->stepper)) return false;
    size_t at = (size_t)other->stepper.first + (size_t)insn->arg;
    int32_t time = follow->times[(size_t)lane->rank * follow->program->ninsns + at];
    if (time > lane->time) lane->time = time;
    return true;
}

static bool run_step(struct follow *follow, struct lane *lane)
{
    bool done = true;
    enum tt_next next = tt_stepper_next(&lane->stepper);
    const struct tt_insn *insn = tt_stepper_insn(&lane->stepper);
    switch (next) {
    case TT_NEXT_MOVE: done = run_move(follow, lane); break;
    case TT_NEXT_ENTER: done = barrier(follow, lane, follow->entered, insn->arg); break;
    case TT_NEXT_LEAVE:
        done = barrier(follow, lane, follow->left, insn->flags & TT_MOVE_NO_WAIT ? lane->rank : -1);
        break;
    case TT_NEXT_AWAIT: done = run_await(follow, lane); break;
    case TT_NEXT_OVER: lane->over = true; return false;
    }
    if (done) tt_stepper_done(&lane->stepper);
    return done;
}

/* Run all to the end; false: no thread comes further. */
static bool run(struct follow *follow)
{
    bool progress = true, open = true;
    while (progress && open && !follow->failed) {
        progress = open = false;
        for (int k = 0; k < follow->nlanes && !follow->failed; k++) {
            while (!follow->lanes[k].over && run_step(follow, &follow->lanes[k]))
                progress = true;
            open = open || !follow->lanes[k].over;
        }
    }
    return !open;
}

/* ---- all of it ---- */

static bool fits(const struct tt_program *program)
{
    size_t n = (size_t)program->nranks, chunks = (size_t)tt_program_in_chunks(program);
    chunks += (size_t)tt_program_out_chunks(program) + (size_t)program->scratch;
    bool masks = n <= TT_FLOW_MASK_RANKS;
    return n * n * (size_t)program->nchannels <= MOST_EDGES &&
           n * (size_t)program->ninsns <= MOST_TIMES && (!masks || n * chunks <= MOST_CELLS);
}

static void fill_inputs(struct follow *follow, int rank)
{
    const struct tt_program *program = follow->program;
    int gathered = program->out_blocks && !program->in_blocks ? rank * program->nparts : 0;
    for (int c = 0; c < tt_program_in_chunks(program); c++) {
        follow->cells[(size_t)rank * follow->chunks + (size_t)c] =
            (struct cell){(uint64_t)1 << rank, gathered + c};
    }
}

static void start_lanes(struct follow *follow)
{
    int k = 0;
    for (int rank = 0; rank < follow->n; rank++) {
        follow->first_lane[rank] = k;
        follow->entered[rank] = follow->left[rank] = -1;
        for (int t = 0; t < tt_program_nthreads(follow->program, rank); t++, k++) {
            follow->lanes[k].rank = rank;
            tt_stepper_start(&follow->lanes[k].stepper, follow->program, rank, t, 1);
        }
        if (follow->cells) fill_inputs(follow, rank);
    }
}

static bool start(struct follow *follow)
{
    const struct tt_program *program = follow->program;
    size_t n = (size_t)follow->n, locations = 1;
    follow->chunks = (size_t)tt_program_in_chunks(program) +
                     (size_t)tt_program_out_chunks(program) + (size_t)program->scratch;
    for (int rank = 0; rank < follow->n; rank++) {
        follow->nlanes += tt_program_nthreads(program, rank);
        locations = tt_max_size(locations, tt_stepper_locations(program, rank));
    }
    follow->lanes = tt_calloc((size_t)follow->nlanes, sizeof(*follow->lanes));
    follow->first_lane = tt_calloc(n, sizeof(*follow->first_lane));
    follow->edges = tt_calloc(n * n * (size_t)program->nchannels, sizeof(*follow->edges));
    follow->times = tt_calloc(n * program->ninsns, sizeof(*follow->times));
    follow->entered = tt_calloc(n, sizeof(*follow->entered));
    follow->left = tt_calloc(n, sizeof(*follow->left));
    follow->move.src = tt_calloc(locations, sizeof(struct tt_location));
    follow->move.dst = tt_calloc(locations, sizeof(struct tt_location));
    follow->flow->sent = tt_calloc(n, sizeof(uint64_t));
    follow->flow->received = tt_calloc(n, sizeof(uint64_t));
    follow->flow->touched = tt_calloc(n, sizeof(uint64_t));
    bool masks = n <= TT_FLOW_MASK_RANKS;
    if (masks) follow->cells = tt_calloc(n * follow->chunks, sizeof(*follow->cells));
    bool ready = follow->lanes && follow->first_lane && follow->edges && follow->times &&
                 follow->entered && follow->left && follow->move.src && follow->move.dst &&
                 follow->flow->sent && follow->flow->received && follow->flow->touched &&
                 (follow->cells || !masks);
    if (ready) start_lanes(follow);
    return ready;
}

static void finish(struct follow *follow)
{
    size_t n = (size_t)follow->n, nedges = n * n * (size_t)follow->program->nchannels;
    for (size_t k = 0; follow->edges && k < nedges; k++)
        free(follow->edges[k].items);
    free(follow->edges);
    free(follow->lanes);
    free(follow->first_lane);
    free(follow->times);
    free(follow->entered);
    free(follow->left);
    free(follow->move.src);
    free(follow->move.dst);
    free(follow->cells);
}

ncclResult_t tt_program_flow(const struct tt_program *program, struct tt_flow *flow, char *fault,
                             size_t fault_bytes)
{
    struct follow follow = {.program = program, .flow = flow, .n = program->nranks};
    memset(flow, 0, sizeof(*flow));
    if (!fits(program)) {
        (void)snprintf(fault, fault_bytes, "too large to be followed message by message");
        return ncclInvalidUsage;
    }
    bool started = start(&follow);
    bool ended = started && run(&follow);
    ncclResult_t rc = ended ? ncclSuccess : ncclInvalidUsage;
    if (!started || follow.failed) rc = ncclSystemError;
    finish(&follow);
    if (!rc) return rc;
    (void)snprintf(fault, fault_bytes, "%s",
                   rc == ncclSystemError ? "out of memory" : "some ranks wait for ever");
    tt_flow_fini(flow);
    return rc;
}

void tt_flow_fini(struct tt_flow *flow)
{
    free(flow->messages);
    free(flow->sent);
    free(flow->received);
    free(flow->touched);
    memset(flow, 0, sizeof(*flow));
}

ncclResult_t tt_program_load(const struct tt_program *program, struct tt_program_load *load_out)
{
    char fault[128];
    struct tt_flow flow;
    ncclResult_t rc = tt_program_flow(program, &flow, fault, sizeof(fault));
    if (rc) return rc;
    struct tt_program_load load = {.steps = flow.nsteps};
    for (int r = 0; r < program->nranks; r++) {
        double messages = (double)(flow.sent[r] + flow.received[r]);
        double touched = (double)flow.touched[r] / program->nparts;
        double sent = (double)flow.sent[r] / program->nparts;
        if (messages > load.messages) load.messages = messages;
        if (touched > load.touched) load.touched = touched;
        if (sent > load.sent) load.sent = sent;
    }
    tt_flow_fini(&flow);
    *load_out = load;
    return ncclSuccess;
}

/* ---- bounds ---- */

/* Of what other ranks get of a rank's input: parts in all, or with `ranks` how many they are. */
static double pairs_of(const struct tt_program *program, int rank, bool sends, bool ranks)
{
    double sum = 0;
    for (int other = 0; other < program->nranks; other++) {
        int from = sends ? rank : other, to = sends ? other : rank;
        int parts = tt_program_pair(program, from, to);
        if (other != rank) sum += ranks ? parts > 0 : parts;
    }
    return sum;
}

/* Of the rank that has most to give. */
static double least_sent_by_pairs(const struct tt_program *program)
{
    double most = 0;
    for (int rank = 0; rank < program->nranks; rank++) {
        double parts = pairs_of(program, rank, true, false);
        most = parts > most ? parts : most;
    }
    return most / program->nparts;
}

/* Chan and others, "Collective communication: theory, practice, and experience", section 4. */
double tt_flow_least_sent(const struct tt_program *program)
{
    double n = program->nranks;
    switch ((enum tt_func)program->func) {
    case TT_FUNC_ALLREDUCE: return 2 * (n - 1) / n;
    case TT_FUNC_BROADCAST: /* all of it leaves the root; in a Reduce or Gather all of each input */
    case TT_FUNC_REDUCE:
    case TT_FUNC_GATHER: return n > 1 ? 1 : 0;
    case TT_FUNC_ALLGATHER:
    case TT_FUNC_REDUCESCATTER:
    case TT_FUNC_ALLTOALL:
    case TT_FUNC_SCATTER: return n - 1;
    case TT_FUNC_ALLTOALLV: return least_sent_by_pairs(program);
    default: return 0;
    }
}

int tt_flow_least_steps(const struct tt_program *program)
{
    int steps = 0;
    double reached = program->nranks; /* ranks that one rank's input gets to, or comes from */
    if (program->counts_at) reached = 1;
    for (int k = 0; program->counts_at && k < 2 * program->nranks; k++) {
        double others = pairs_of(program, k / 2, k % 2, true);
        if (others + 1 > reached) reached = others + 1;
    }
    while ((double)((int64_t)1 << steps) < reached)
        steps++;
    return steps;
}
