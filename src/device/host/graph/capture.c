/* Stream capture: operations become nodes behind the stream's tips; events carry tips to other
 * streams. Several threads may add to one capture: its graph and the tips of its streams change
 * under the lock of all captures. */
#include "capture.h"

#include "graph.h"

#include <stdlib.h>
#include <string.h>

struct tt_host_capture {
    _Atomic int refs; /* origin, joined streams, positions */
    uint64_t id;
    int mode;
    _Atomic bool invalid, ended; /* other threads' unsafe calls read and set them */
    pthread_t owner;
    struct CUstream_st *origin;   /* borrowed */
    struct CUgraph_st *graph;     /* owned until the end, unless the program's */
    bool into;                    /* the program's own graph is recorded into */
    _Atomic int streams;          /* in it; the graph goes when the last one leaves */
    struct CUgraphNode_st **left; /* owned; last nodes of streams that were destroyed */
    size_t nleft;
};

/* Events own their positions, but lie where no leak checker looks: the list is what it finds. */
struct tt_host_capture_position {
    struct tt_host_capture_position *next, **link; /* in the list; link: what points here */
    struct tt_host_capture *capture;               /* counted */
    struct CUgraphNode_st **tips;                  /* owned array */
    size_t ntips;
};

static void capture_drop(struct tt_host_capture *capture)
{
    if (atomic_fetch_sub(&capture->refs, 1) != 1) return;
    free(capture->left);
    free(capture);
}

/* There is always room for one, so that a node can become the only tip without memory. */
static bool set_tips(struct CUstream_st *stream, struct CUgraphNode_st *const *tips, size_t ntips)
{
    struct CUgraphNode_st **copy = malloc((ntips + 1) * sizeof(*copy));
    if (!copy) return false;
    if (ntips) memcpy(copy, tips, ntips * sizeof(*copy));
    free(stream->tips);
    stream->tips = copy;
    stream->ntips = ntips;
    return true;
}

static bool has_tip(const struct CUstream_st *stream, const struct CUgraphNode_st *tip)
{
    for (size_t i = 0; i < stream->ntips; i++) {
        if (stream->tips[i] == tip) return true;
    }
    return false;
}

static bool add_tips(struct CUstream_st *stream, const struct tt_host_capture_position *position)
{
    struct CUgraphNode_st **all = malloc((stream->ntips + position->ntips + 1) * sizeof(*all));
    if (!all) return false;
    size_t n = stream->ntips;
    if (n) memcpy(all, stream->tips, n * sizeof(*all));
    for (size_t i = 0; i < position->ntips; i++) {
        if (!has_tip(stream, position->tips[i])) all[n++] = position->tips[i];
    }
    free(stream->tips);
    stream->tips = all;
    stream->ntips = n;
    return true;
}

static void enter(struct CUstream_st *stream, struct tt_host_capture *capture)
{
    atomic_fetch_add(&capture->refs, 1);
    atomic_fetch_add(&capture->streams, 1);
    atomic_fetch_add(&tt_host.captures.streams, 1);
    atomic_store(&stream->capture, capture);
}

/* The last one ends the capture: what no graph took goes, though events may still hold positions in
 * it.
 */
static void leave(struct CUstream_st *stream)
{
    pthread_mutex_lock(&tt_host.captures.lock);
    struct tt_host_capture *capture = atomic_exchange(&stream->capture, NULL);
    free(stream->tips);
    stream->tips = NULL;
    stream->ntips = 0;
    pthread_mutex_unlock(&tt_host.captures.lock); /* threads that looked have done so */
    if (!capture) return;
    atomic_fetch_sub(&tt_host.captures.streams, 1);
    if (atomic_fetch_sub(&capture->streams, 1) == 1) {
        capture->ended = true;
        if (!capture->into) tt_host_graph_free(capture->graph);
        capture->graph = NULL;
    }
    capture_drop(capture);
}

void tt_host_capture_invalidate(struct CUstream_st *stream)
{
    pthread_mutex_lock(&tt_host.captures.lock);
    struct tt_host_capture *capture = atomic_load(&stream->capture);
    if (capture) capture->invalid = true;
    pthread_mutex_unlock(&tt_host.captures.lock);
}

static bool keep_tips(struct tt_host_capture *capture, const struct CUstream_st *stream)
{
    size_t all = capture->nleft + stream->ntips;
    struct CUgraphNode_st **left = realloc(capture->left, (all + 1) * sizeof(*left));
    if (!left) return false;
    if (stream->ntips) memcpy(left + capture->nleft, stream->tips, stream->ntips * sizeof(*left));
    capture->left = left;
    capture->nleft = all;
    return true;
}

/* A stream that is destroyed leaves its capture; what was captured on it must still be joined. The
 * capture of a destroyed origin is lost. */
static void orphan(struct CUstream_st *stream)
{
    pthread_mutex_lock(&tt_host.captures.lock);
    struct tt_host_capture *capture = atomic_load(&stream->capture);
    if (capture && (capture->origin == stream || !keep_tips(capture, stream)))
        capture->invalid = true;
    pthread_mutex_unlock(&tt_host.captures.lock);
    leave(stream);
}

static const struct tt_host_capture_ops asked_by_streams = {
    .invalidate = tt_host_capture_invalidate, .orphan = orphan};

static int check_begin(const struct CUstream_st *stream, int mode)
{
    if (!stream) return TT_HOST_BAD_HANDLE;
    if (stream->legacy) return TT_HOST_CAPTURE_UNSUPPORTED;
    if (mode < 0 || mode > 2) return TT_HOST_INVALID_VALUE;
    return atomic_load(&stream->capture) ? TT_HOST_ILLEGAL_STATE : TT_HOST_OK;
}

/* graph: NULL for a new one. */
static int begin(struct CUstream_st *stream, struct CUgraph_st *graph,
                 struct CUgraphNode_st *const *tips, size_t ntips, int mode)
{
    struct tt_host_capture *capture = calloc(1, sizeof(*capture));
    if (!capture) return TT_HOST_OUT_OF_MEMORY;
    capture->into = graph != NULL;
    capture->graph = graph ? graph : tt_host_graph_make();
    if (!capture->graph || !set_tips(stream, tips, ntips)) {
        if (!graph) tt_host_graph_free(capture->graph);
        free(capture);
        return TT_HOST_OUT_OF_MEMORY;
    }
    capture->graph->capturing = true;
    capture->id = atomic_fetch_add(&tt_host.captures.begun, 1) + 1;
    capture->mode = mode;
    capture->owner = pthread_self();
    capture->origin = stream;
    atomic_store_explicit(&tt_host.captures.ops, &asked_by_streams, memory_order_release);
    enter(stream, capture);
    return TT_HOST_OK;
}

int tuttiHostCaptureBegin(struct CUstream_st *handle, int mode)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    int rc = check_begin(stream, mode);
    return rc ? rc : begin(stream, NULL, NULL, 0, mode);
}

int tuttiHostCaptureBeginInto(struct CUstream_st *handle, struct CUgraph_st *graph,
                              struct CUgraphNode_st *const *deps, size_t ndeps, int mode)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    int rc = check_begin(stream, mode);
    if (rc) return rc;
    if (!tt_host_graph_holds(graph) || graph->capturing || (ndeps && !deps) ||
        !tt_host_nodes_of(graph, deps, ndeps))
        return TT_HOST_INVALID_VALUE;
    return begin(stream, graph, deps, ndeps, mode);
}

/* Mark all that the tips depend on, in `seen` by index: nodes of a capture come behind what they
 * depend on, so one pass from the last to the first does. */
static void mark_ancestors(const struct CUgraph_st *graph, const struct CUstream_st *origin,
                           bool *seen)
{
    for (size_t i = 0; i < origin->ntips; i++) {
        seen[origin->tips[i]->index] = true;
    }
    for (size_t i = graph->nnodes; i-- > 0;) {
        const struct CUgraphNode_st *node = graph->nodes[i];
        for (size_t d = 0; seen[i] && d < node->ndeps; d++) {
            seen[node->deps[d]->index] = true;
        }
    }
}

struct joined_question {
    struct tt_host_capture *capture;
    const bool *seen; /* NULL: memory was short */
    bool all;
};

static bool check_joined(struct CUstream_st *stream, void *arg)
{
    struct joined_question *question = arg;
    if (atomic_load(&stream->capture) != question->capture || stream == question->capture->origin)
        return false;
    for (size_t i = 0; question->seen && i < stream->ntips; i++) {
        if (!question->seen[stream->tips[i]->index]) question->all = false;
    }
    leave(stream);
    return false;
}

/* Every other stream's last nodes must lie before the origin's; all streams leave the capture. 904,
 * 2. */
static int check_all_joined(struct tt_host_capture *capture, const struct CUstream_st *origin)
{
    bool *seen = calloc(capture->graph->nnodes + 1, sizeof(*seen));
    if (seen) mark_ancestors(capture->graph, origin, seen);
    struct joined_question question = {capture, seen, true};
    tt_host_streams_visit(check_joined, &question);
    pthread_mutex_lock(&tt_host.captures.lock);
    for (size_t i = 0; seen && i < capture->nleft; i++) {
        if (!seen[capture->left[i]->index]) question.all = false;
    }
    pthread_mutex_unlock(&tt_host.captures.lock);
    free(seen);
    if (!seen) return TT_HOST_OUT_OF_MEMORY;
    return question.all ? TT_HOST_OK : TT_HOST_CAPTURE_UNJOINED;
}

int tuttiHostCaptureEnd(struct CUstream_st *handle, struct CUgraph_st **graph_out)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (graph_out) *graph_out = NULL;
    if (!stream) return TT_HOST_BAD_HANDLE;
    struct tt_host_capture *capture = atomic_load(&stream->capture);
    if (!capture) return TT_HOST_ILLEGAL_STATE;
    if (capture->origin != stream) return TT_HOST_CAPTURE_UNMATCHED;
    if (capture->mode != 2 && !pthread_equal(capture->owner, pthread_self()))
        return TT_HOST_CAPTURE_WRONG_THREAD;
    int rc = check_all_joined(capture, stream);
    if (capture->invalid) rc = TT_HOST_CAPTURE_INVALIDATED;
    capture->ended = true;
    if (capture->into) capture->graph->capturing = false;
    if (!rc && graph_out) {
        *graph_out = capture->graph;
        capture->graph->capturing = false;
        if (!capture->into) capture->graph = NULL;
    }
    leave(stream);
    return rc;
}

static bool device_captures(int device)
{
    const struct CUstream_st *stream = tt_host_ordered_streams(device);
    while (stream && !atomic_load(&stream->capture)) {
        stream = stream->next_ordered;
    }
    return stream != NULL;
}

int tuttiHostCaptureStatus(struct CUstream_st *handle, enum tt_capture_status *status, uint64_t *id,
                           struct CUgraph_st **graph)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return TT_HOST_BAD_HANDLE;
    if (stream->legacy && device_captures(stream->device)) return TT_HOST_CAPTURE_IMPLICIT;
    struct tt_host_capture *capture = atomic_load(&stream->capture);
    *status = !capture           ? TT_CAPTURE_NONE
              : capture->invalid ? TT_CAPTURE_INVALIDATED
                                 : TT_CAPTURE_ACTIVE;
    *id = capture ? capture->id : 0;
    *graph = capture ? capture->graph : NULL;
    return TT_HOST_OK;
}

int tuttiHostCaptureTips(struct CUstream_st *handle, struct CUgraphNode_st *const **tips,
                         size_t *ntips)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return TT_HOST_BAD_HANDLE;
    *tips = stream->tips;
    *ntips = stream->ntips;
    return TT_HOST_OK;
}

/* Lock held. */
static int change_tips(struct CUstream_st *stream, struct CUgraphNode_st *const *nodes,
                       size_t count, bool replace)
{
    const struct tt_host_capture *capture = atomic_load(&stream->capture);
    if (!capture) return TT_HOST_ILLEGAL_STATE;
    if ((count && !nodes) || !tt_host_nodes_of(capture->graph, nodes, count))
        return TT_HOST_INVALID_VALUE;
    if (replace) return set_tips(stream, nodes, count) ? TT_HOST_OK : TT_HOST_OUT_OF_MEMORY;
    struct tt_host_capture_position more = {.ntips = count};
    more.tips = malloc((count + 1) * sizeof(*more.tips));
    if (!more.tips) return TT_HOST_OUT_OF_MEMORY;
    if (count) memcpy(more.tips, nodes, count * sizeof(*more.tips));
    bool good = add_tips(stream, &more);
    free(more.tips);
    return good ? TT_HOST_OK : TT_HOST_OUT_OF_MEMORY;
}

int tuttiHostCaptureSetTips(struct CUstream_st *handle, struct CUgraphNode_st *const *nodes,
                            size_t count, bool replace)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return TT_HOST_BAD_HANDLE;
    pthread_mutex_lock(&tt_host.captures.lock);
    int rc = change_tips(stream, nodes, count, replace);
    pthread_mutex_unlock(&tt_host.captures.lock);
    return rc;
}

int tuttiHostCaptureMode(int *mode)
{
    int before = tt_host_thread.capture_mode;
    if (*mode < 0 || *mode > 2) return TT_HOST_INVALID_VALUE;
    tt_host_thread.capture_mode = *mode;
    *mode = before;
    return TT_HOST_OK;
}

struct unsafe_question {
    bool hit;
};

static bool invalidate_mine(struct CUstream_st *stream, void *arg)
{
    struct unsafe_question *question = arg;
    struct tt_host_capture *capture = atomic_load(&stream->capture);
    if (!capture || capture->mode == 2 || capture->ended) return false;
    bool mine = pthread_equal(capture->owner, pthread_self());
    bool global = capture->mode == 0 && tt_host_thread.capture_mode == 0;
    if (!mine && !global) return false;
    capture->invalid = true;
    question->hit = true;
    return false;
}

int tuttiHostCaptureUnsafe(void)
{
    struct unsafe_question question = {false};
    if (!atomic_load_explicit(&tt_host.captures.streams, memory_order_relaxed) ||
        tt_host_thread.capture_mode == 2)
        return TT_HOST_OK;
    pthread_mutex_lock(&tt_host.captures.lock);
    tt_host_streams_visit(invalidate_mine, &question);
    pthread_mutex_unlock(&tt_host.captures.lock);
    return question.hit ? TT_HOST_CAPTURE_UNSUPPORTED : TT_HOST_OK;
}

struct device_question {
    int device;
    bool hit;
};

static bool invalidate_of_device(struct CUstream_st *stream, void *arg)
{
    struct device_question *question = arg;
    struct tt_host_capture *capture = atomic_load(&stream->capture);
    if (!capture || capture->ended || stream->device != question->device) return false;
    capture->invalid = true;
    question->hit = true;
    return false;
}

int tuttiHostCaptureOfDevice(int device)
{
    struct device_question question = {device, false};
    if (!atomic_load_explicit(&tt_host.captures.streams, memory_order_relaxed)) return TT_HOST_OK;
    pthread_mutex_lock(&tt_host.captures.lock);
    tt_host_streams_visit(invalidate_of_device, &question);
    pthread_mutex_unlock(&tt_host.captures.lock);
    return question.hit ? TT_HOST_CAPTURE_UNSUPPORTED : TT_HOST_OK;
}

/* Lock held. */
static int add_node(struct CUstream_st *stream, const struct tt_host_op *op,
                    struct tt_host_item_share *share, const struct tt_node *params)
{
    const struct tt_host_capture *capture = atomic_load(&stream->capture);
    if (!capture || capture->invalid) return TT_HOST_CAPTURE_INVALIDATED;
    struct CUgraphNode_st *node =
        tt_host_graph_add(capture->graph, stream->tips, stream->ntips, op, share);
    if (!node) return TT_HOST_OUT_OF_MEMORY;
    if (params) node->kind = params->kind;
    if (params) node->params = *params;
    stream->tips[0] = node;
    stream->ntips = 1;
    return TT_HOST_OK;
}

int tt_host_capture_add_node(struct CUstream_st *stream, const struct tt_host_op *op,
                             const struct tt_node *params)
{
    struct tt_host_item_share *share =
        op->kind == TT_HOST_OP_ITEM ? tt_host_share_make(op->item) : NULL;
    if (op->kind == TT_HOST_OP_ITEM && !share) return TT_HOST_OUT_OF_MEMORY;
    pthread_mutex_lock(&tt_host.captures.lock);
    int rc = add_node(stream, op, share, params);
    pthread_mutex_unlock(&tt_host.captures.lock);
    if (rc && share) free(share);                        /* the item stays the caller's */
    if (!rc && share) atomic_fetch_sub(&share->refs, 1); /* the node holds it now */
    return rc;
}

/* ---- events in captures ---- */

/* Lock held. */
static void list_position(struct tt_host_capture_position *position)
{
    position->next = tt_host.captures.positions;
    position->link = &tt_host.captures.positions;
    if (position->next) position->next->link = &position->next;
    tt_host.captures.positions = position;
}

static void unlist_position(const struct tt_host_capture_position *position)
{
    pthread_mutex_lock(&tt_host.captures.lock);
    *position->link = position->next;
    if (position->next) position->next->link = position->link;
    pthread_mutex_unlock(&tt_host.captures.lock);
}

/* Lock held. */
static bool note_position(struct CUstream_st *stream, struct tt_host_capture_position *position)
{
    struct tt_host_capture *capture = atomic_load(&stream->capture);
    position->tips = capture ? malloc((stream->ntips + 1) * sizeof(*position->tips)) : NULL;
    if (!position->tips) return false;
    if (stream->ntips)
        memcpy(position->tips, stream->tips, stream->ntips * sizeof(*position->tips));
    position->ntips = stream->ntips;
    position->capture = capture;
    atomic_fetch_add(&capture->refs, 1);
    list_position(position);
    return true;
}

struct tt_host_capture_position *tt_host_capture_position(struct CUstream_st *stream)
{
    struct tt_host_capture_position *position = calloc(1, sizeof(*position));
    if (!position) return NULL;
    pthread_mutex_lock(&tt_host.captures.lock);
    bool good = note_position(stream, position);
    pthread_mutex_unlock(&tt_host.captures.lock);
    if (good) return position;
    free(position);
    return NULL;
}

void tt_host_capture_position_drop(struct tt_host_capture_position *position)
{
    if (!position) return;
    unlist_position(position);
    capture_drop(position->capture);
    free(position->tips);
    free(position);
}

void tt_host_capture_position_spoil(const struct tt_host_capture_position *position)
{
    if (!position->capture->ended) position->capture->invalid = true;
}

/* Lock held. */
static int join(struct CUstream_st *stream, const struct tt_host_capture_position *position)
{
    struct tt_host_capture *capture = atomic_load(&stream->capture);
    if (position->capture->ended) return TT_HOST_CAPTURED_EVENT;
    if (capture && capture != position->capture) {
        capture->invalid = position->capture->invalid = true;
        return TT_HOST_CAPTURE_MERGE;
    }
    if (!capture) {
        if (stream->legacy) return TT_HOST_CAPTURE_IMPLICIT;
        if (!set_tips(stream, position->tips, position->ntips)) return TT_HOST_OUT_OF_MEMORY;
        enter(stream, position->capture);
        return TT_HOST_OK;
    }
    return add_tips(stream, position) ? TT_HOST_OK : TT_HOST_OUT_OF_MEMORY;
}

int tt_host_capture_join(struct CUstream_st *stream,
                         const struct tt_host_capture_position *position)
{
    pthread_mutex_lock(&tt_host.captures.lock);
    int rc = join(stream, position);
    pthread_mutex_unlock(&tt_host.captures.lock);
    return rc;
}
