/* Binds a choice to channels, edges and sizes: everything of a work item but the two buffers.
 * All ranks of a communicator come to the same channels and chunk sizes from the same call. */
#include "base/error.h"
#include "base/mem.h"
#include "plan/bind/operator.h"
#include "plan/plan_state.h"
#include "transport/small.h"
#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

#define GRAIN_BYTES 64 /* chunk and channel boundaries: a cache line */

/* Blocks of `count` elements in the send and receive buffer of this rank; 0: the pointer is not
 * looked at. */
static void buffer_blocks(const struct tt_task *task, size_t *in_blocks, size_t *out_blocks)
{
    size_t n = (size_t)task->comm->member.nranks;
    bool root = task->root == task->comm->member.rank;
    *in_blocks = *out_blocks = 1;
    switch (task->func) {
    case TT_FUNC_REDUCE: *out_blocks = root ? 1 : 0; break;
    case TT_FUNC_BROADCAST: *in_blocks = root ? 1 : 0; break;
    case TT_FUNC_ALLGATHER: *out_blocks = n; break;
    case TT_FUNC_REDUCESCATTER: *in_blocks = n; break;
    case TT_FUNC_ALLTOALL: *in_blocks = *out_blocks = n; break;
    case TT_FUNC_GATHER: *out_blocks = root ? n : 0; break;
    case TT_FUNC_SCATTER: *in_blocks = root ? n : 0; break;
    case TT_FUNC_SEND: *out_blocks = 0; break;
    case TT_FUNC_RECV: *in_blocks = 0; break;
    default: break;
    }
}

void tt_buffer_bytes(const struct tt_task *task, size_t *in_bytes_out, size_t *out_bytes_out)
{
    size_t bytes = task->count * tt_type_bytes(task->type);
    size_t in_blocks, out_blocks;
    buffer_blocks(task, &in_blocks, &out_blocks);
    *in_bytes_out = in_blocks * bytes;
    *out_bytes_out = out_blocks * bytes;
}

size_t tt_operation_bytes(const struct tt_task *task)
{
    size_t bytes = task->count * tt_type_bytes(task->type);
    switch (task->func) {
    case TT_FUNC_ALLGATHER:
    case TT_FUNC_REDUCESCATTER:
    case TT_FUNC_ALLTOALL:
    case TT_FUNC_GATHER:
    case TT_FUNC_SCATTER: return bytes * (size_t)task->comm->member.nranks;
    default: return bytes;
    }
}

struct tt_call tt_call_of(const struct tt_task *task, const struct tt_tune_choice *choice)
{
    return (struct tt_call){
        .count = task->count,
        .root = task->root,
        .func = (uint8_t)task->func,
        .type = (uint8_t)task->type,
        .op = task->op < ncclNumOps ? (uint8_t)task->op : TT_CALL_OWN_OP,
        .known = 1,
        .algo = (uint8_t)choice->algo,
        .proto = (uint8_t)choice->proto,
        .nchannels = (uint8_t)choice->nchannels,
    };
}

uint32_t tt_call_fingerprint(const struct tt_plan *plan, const uint64_t *words, int nwords)
{
    if (plan->comm->no_match) return 0;
    uint64_t hash = 0x243f6a8885a308d3ull;
    for (int k = 0; k < nwords; k++) {
        hash = (hash ^ words[k]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash >> 32) | 1u;
}

ncclResult_t tt_bound_reserve(struct tt_bound *bound, int nframes)
{
    if (nframes <= bound->capacity) return ncclSuccess;
    struct tt_frame *grown = tt_calloc((size_t)nframes, sizeof(*grown));
    if (!grown) return tt_fail(ncclSystemError, "plan: out of memory for %d frames", nframes);
    free(bound->frames);
    bound->frames = grown;
    bound->capacity = nframes;
    return ncclSuccess;
}

void tt_bound_set_buffers(struct tt_bound *bound, const struct tt_task *task)
{
    for (int k = 0; k < bound->nframes; k++) {
        bound->frames[k].in = task->in;
        bound->frames[k].out = task->out;
    }
}

void tt_bound_fini(struct tt_bound *bound)
{
    /* A work that an abort left on a stream that no thread runs still refers to itself. */
    if (bound->work && tt_work_idle(bound->work)) tt_work_destroy(bound->work);
    if (bound->watched && tt_work_idle(bound->watched)) tt_work_destroy(bound->watched);
    bound->work = bound->watched = NULL;
    free(bound->frames);
    bound->frames = NULL;
    bound->capacity = 0;
    bound->valid = bound->plain = false;
}

/* ---- edges ---- */

static ncclResult_t edge_table(struct tt_plan *plan, int conn, struct tt_edge_table **table_out)
{
    struct tt_edge_table *table = &plan->edges[conn];
    if (!table->send) {
        size_t nedges = (size_t)plan->comm->edge_channels * (size_t)plan->comm->member.nranks;
        table->send = tt_calloc(2 * nedges, sizeof(struct tt_edge *));
        if (!table->send) return tt_fail(ncclSystemError, "plan: out of memory for edges");
        table->recv = table->send + nedges;
    }
    *table_out = table;
    return ncclSuccess;
}

/* What the program does on each of its channels with each peer, in plan->links. */
static ncclResult_t find_links(struct tt_plan *plan, const struct tt_frame *frame)
{
    size_t nlinks = (size_t)plan->comm->edge_channels * (size_t)plan->comm->member.nranks;
    if (!plan->links) plan->links = tt_calloc(nlinks, 1);
    if (!plan->links) return tt_fail(ncclSystemError, "plan: out of memory for links");
    tt_program_links(frame->program, frame->rank, plan->links);
    return ncclSuccess;
}

static ncclResult_t edge_fill(struct tt_plan *plan, struct tt_edge **edge_out,
                              const struct tt_edge_key *key)
{
    return *edge_out ? ncclSuccess : tt_transport_edge(plan->comm->transport, key, edge_out);
}

static int edge_conn(const struct tt_frame *frame)
{
    if (frame->ahead) return TT_CONN_AHEAD;
    if (!frame->casts) return frame->conn;
    return tt_func_from_root((enum tt_func)frame->program->func) ? TT_CONN_STREAM : TT_CONN_CAST;
}

ncclResult_t tt_bind_edges(struct tt_plan *plan, struct tt_frame *frame)
{
    const int n = plan->comm->member.nranks, nchannels = frame->program->nchannels;
    const int first = frame->channel * nchannels;
    struct tt_edge_table *table = NULL;
    if (first + nchannels > plan->comm->edge_channels) {
        return tt_fail(ncclInternalError,
                       "plan: a program needs channels %d to %d of %d that the communicator has",
                       first, first + nchannels - 1, plan->comm->edge_channels);
    }
    const int conn = edge_conn(frame);
    ncclResult_t rc = edge_table(plan, conn, &table);
    if (!rc) rc = find_links(plan, frame);
    if (rc) return rc;
    frame->send_edges = table->send + (ptrdiff_t)first * n;
    frame->recv_edges = table->recv + (ptrdiff_t)first * n;
    for (int k = 0; k < nchannels * n && !rc; k++) {
        struct tt_edge_key key = {
            .peer = k % n, .channel = first + k / n, .conn = conn, .sending = false};
        if (plan->links[k] & TT_LINK_RECEIVES) rc = edge_fill(plan, &frame->recv_edges[k], &key);
        key.sending = true;
        if (frame->casts) key.peer = frame->rank;
        if (!rc && (plan->links[k] & TT_LINK_SENDS))
            rc = edge_fill(plan, &frame->send_edges[k], &key);
    }
    return rc;
}

/* ---- collectives ---- */

struct channel_part {
    int channel;
    size_t lo, hi; /* elements of the buffer or of each block */
};

/* A program in which a rank sends to all others, and these take it; so short that where it lies in
 * memory decides. What each gets of its own must be one slot. Two ranks gain nothing. Equal on all
 * ranks. */
static enum tt_casts casts_of(const struct tt_plan *plan, const struct tt_task *task,
                              const struct tt_tune_choice *choice, struct channel_part part)
{
    const struct tt_comm *comm = plan->comm;
    const size_t bytes = task->count * tt_type_bytes(task->type);
    const size_t most = tt_min_size(TT_CAST_BYTES, comm->tune.slice_bytes);
    const bool fits = part.hi - part.lo == task->count && bytes <= TT_CAST_BLOCK_BYTES &&
                      bytes * (size_t)comm->member.nranks <= most &&
                      choice->chunk_bytes >= TT_CAST_BLOCK_BYTES;
    if (choice->algo != TT_ALGO_ONESHOT || !comm->all_memory || comm->member.nranks <= 2 ||
        bytes > TT_CAST_BYTES)
        return TT_CASTS_NONE;
    switch (task->func) {
    case TT_FUNC_BROADCAST:
    case TT_FUNC_ALLREDUCE:
    case TT_FUNC_ALLGATHER: return TT_CASTS_SAME;
    case TT_FUNC_ALLTOALL:
    case TT_FUNC_REDUCESCATTER: return fits ? TT_CASTS_PARTS : TT_CASTS_NONE;
    default: return TT_CASTS_NONE;
    }
}

/* Ranks that only give run ahead, and where several are on a core that saves switches. Equal on all
 * ranks. */
static bool is_ahead(const struct tt_plan *plan, const struct tt_task *task,
                     const struct tt_tune_choice *choice)
{
    return task->func == TT_FUNC_REDUCE && choice->algo == TT_ALGO_ONESHOT &&
           plan->comm->all_memory && plan->comm->member.nranks > 2 &&
           task->count * tt_type_bytes(task->type) <= TT_SLOT_INLINE_BYTES;
}

static ncclResult_t frame_fill(struct tt_plan *plan, const struct tt_group_call *node,
                               const struct tt_tune_choice *choice, struct channel_part part,
                               struct tt_frame *frame)
{
    const struct tt_task *task = &node->task;
    size_t elem = tt_type_bytes(task->type);
    size_t grain = tt_max_size(1, GRAIN_BYTES / elem);
    size_t limit = tt_max_size(grain, choice->chunk_bytes / elem / grain * grain);
    *frame = (struct tt_frame){.reduction = node->reduction,
                               .elem_bytes = elem,
                               .channel = part.channel,
                               .conn = TT_CONN_COLL,
                               .ahead = is_ahead(plan, task, choice),
                               .casts = (uint8_t)casts_of(plan, task, choice, part)};
    ncclResult_t rc = tt_program_get(plan, choice, task->func, task->root, part.channel, frame);
    if (rc) return rc;
    tt_buffer_bytes(task, &frame->in_bytes, &frame->out_bytes);
    tt_operator_adapt(&frame->reduction, task, plan->comm->member.nranks, choice->algo);
    tt_geometry_init(&frame->geometry, frame->program, task->count,
                     (struct tt_extent){part.lo, part.hi - part.lo}, limit, grain);
    const uint64_t words[] = {
        (uint64_t)task->func,
        task->count,
        (uint64_t)task->type,
        (uint64_t)(task->op < ncclNumOps ? task->op : ncclNumOps), /* numbers differ by rank */
        (uint64_t)(unsigned)task->root,
        choice->program ? choice->program->hash
                        : (uint64_t)choice->algo << 16 | (uint64_t)choice->proto << 8 |
                              (uint64_t)choice->nchannels,
    };
    frame->fingerprint = tt_call_fingerprint(plan, words, (int)TT_LEN(words));
    frame->call = tt_call_of(task, choice);
    return tt_bind_edges(plan, frame);
}

ncclResult_t tt_bind_alone(struct tt_plan *plan, const struct tt_group_call *node,
                           struct tt_bound *bound)
{
    const struct tt_task *task = &node->task;
    size_t elem = tt_type_bytes(task->type);
    bound->nframes = 0;
    ncclResult_t rc = tt_bound_reserve(bound, 1);
    if (rc) return rc;
    bound->nframes = 1;
    bound->frames[0] = (struct tt_frame){.program = plan->local,
                                         .reduction = node->reduction,
                                         .elem_bytes = elem,
                                         .in_bytes = task->count * elem,
                                         .out_bytes = task->count * elem,
                                         .call.func = (uint8_t)task->func};
    tt_geometry_init(&bound->frames[0].geometry, plan->local, task->count,
                     (struct tt_extent){0, task->count}, SIZE_MAX, 1);
    return ncclSuccess;
}

ncclResult_t tt_bind_collective(struct tt_plan *plan, const struct tt_group_call *node,
                                struct tt_bound *bound)
{
    const struct tt_task *task = &node->task;
    const struct tt_tune_choice *choice = &bound->choice;
    size_t nchannels = (size_t)choice->nchannels;
    size_t grain = tt_max_size(1, GRAIN_BYTES / tt_type_bytes(task->type));
    size_t share = tt_round_up(task->count / nchannels + (task->count % nchannels != 0), grain);
    ncclResult_t rc = tt_bound_reserve(bound, choice->nchannels);
    bound->nframes = 0;
    for (int c = 0; c < choice->nchannels && !rc; c++) {
        struct channel_part part = {.channel = c};
        part.lo = tt_min_size((size_t)c * share, task->count);
        part.hi = tt_min_size(part.lo + share, task->count);
        if (part.lo == part.hi) break; /* nothing left: the same on all ranks */
        rc = frame_fill(plan, node, choice, part, &bound->frames[bound->nframes]);
        if (!rc) bound->nframes++;
    }
    return rc;
}
