/* Stream capture: operations become nodes behind the stream's tips; events carry tips to other
 * streams. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

struct host_capture {
    _Atomic int refs; /* origin, joined streams, places */
    uint64_t id;
    int mode;
    bool invalid, ended;
    pthread_t owner;
    struct CUstream_st *origin; /* borrowed */
    struct CUgraph_st *graph;   /* owned until the end */
    int joined;                 /* streams beside the origin that are in it */
};

struct host_capture_place {
    struct host_capture *capture; /* counted */
    struct CUgraphNode_st **tips; /* owned array */
    size_t ntips;
};

static _Atomic uint64_t next_capture = 1;

static void capture_drop(struct host_capture *capture)
{
    if (atomic_fetch_sub(&capture->refs, 1) != 1) return;
    host_graph_free(capture->graph);
    free(capture);
}

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

static void enter(struct CUstream_st *stream, struct host_capture *capture)
{
    atomic_fetch_add(&capture->refs, 1);
    atomic_store(&stream->capture, capture);
}

void host_capture_leave(struct CUstream_st *stream)
{
    struct host_capture *capture = atomic_exchange(&stream->capture, NULL);
    free(stream->tips);
    stream->tips = NULL;
    stream->ntips = 0;
    if (capture) capture_drop(capture);
}

int tuttiHostCaptureBegin(struct CUstream_st *handle, int mode)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return HOST_BAD_HANDLE;
    if (stream->legacy) return HOST_CAPTURE_UNSUPPORTED;
    if (mode < 0 || mode > 2 || atomic_load(&stream->capture)) return HOST_INVALID_VALUE;
    struct host_capture *capture = calloc(1, sizeof(*capture));
    if (!capture) return HOST_OUT_OF_MEMORY;
    capture->graph = host_graph_make();
    if (!capture->graph || !set_tips(stream, NULL, 0)) {
        host_graph_free(capture->graph);
        free(capture);
        return HOST_OUT_OF_MEMORY;
    }
    capture->graph->capturing = true;
    capture->id = atomic_fetch_add(&next_capture, 1);
    capture->mode = mode;
    capture->owner = pthread_self();
    capture->origin = stream;
    enter(stream, capture);
    return HOST_OK;
}

void host_capture_invalidate(struct CUstream_st *stream)
{
    struct host_capture *capture = atomic_load(&stream->capture);
    if (capture) capture->invalid = true;
}

/* Mark all that `node` depends on, in `seen` by index. */
static void mark_ancestors(const struct CUgraphNode_st *node, bool *seen)
{
    if (seen[node->index]) return;
    seen[node->index] = true;
    for (size_t i = 0; i < node->ndeps; i++) {
        mark_ancestors(node->deps[i], seen);
    }
}

struct joined_question {
    struct host_capture *capture;
    const bool *seen;
    bool all;
};

static bool check_joined(struct CUstream_st *stream, void *arg)
{
    struct joined_question *question = arg;
    if (atomic_load(&stream->capture) != question->capture || stream == question->capture->origin)
        return false;
    for (size_t i = 0; i < stream->ntips; i++) {
        if (!question->seen[stream->tips[i]->index]) question->all = false;
    }
    host_capture_leave(stream);
    return false;
}

/* Every other stream's last nodes must lie before the origin's; all streams leave the capture. */
static bool all_joined(struct host_capture *capture, const struct CUstream_st *origin)
{
    bool *seen = calloc(capture->graph->nnodes + 1, sizeof(*seen));
    if (!seen) return false;
    for (size_t i = 0; i < origin->ntips; i++) {
        mark_ancestors(origin->tips[i], seen);
    }
    struct joined_question question = {capture, seen, true};
    host_streams_visit(check_joined, &question);
    free(seen);
    return question.all;
}

int tuttiHostCaptureEnd(struct CUstream_st *handle, struct CUgraph_st **graph_out)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (graph_out) *graph_out = NULL;
    if (!stream) return HOST_BAD_HANDLE;
    struct host_capture *capture = atomic_load(&stream->capture);
    if (!capture) return HOST_INVALID_VALUE;
    if (capture->origin != stream) return HOST_CAPTURE_UNMATCHED;
    if (capture->mode != 2 && !pthread_equal(capture->owner, pthread_self()))
        return HOST_CAPTURE_WRONG_THREAD;
    bool joined = all_joined(capture, stream);
    int rc = capture->invalid ? HOST_CAPTURE_INVALIDATED : joined ? HOST_OK : HOST_CAPTURE_UNJOINED;
    capture->ended = true;
    if (!rc && graph_out) {
        *graph_out = capture->graph;
        capture->graph->capturing = false;
        capture->graph = NULL;
    }
    host_capture_leave(stream);
    return rc;
}

int tuttiHostCaptureStatus(struct CUstream_st *handle, enum tt_capture_status *status, uint64_t *id,
                           struct CUgraph_st **graph)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return HOST_BAD_HANDLE;
    struct host_capture *capture = atomic_load(&stream->capture);
    *status = !capture           ? TT_CAPTURE_NONE
              : capture->invalid ? TT_CAPTURE_INVALIDATED
                                 : TT_CAPTURE_ACTIVE;
    *id = capture ? capture->id : 0;
    *graph = capture ? capture->graph : NULL;
    return HOST_OK;
}

int tuttiHostCaptureMode(int *mode)
{
    int before = host_thread.capture_mode;
    if (*mode < 0 || *mode > 2) return HOST_INVALID_VALUE;
    host_thread.capture_mode = *mode;
    *mode = before;
    return HOST_OK;
}

struct unsafe_question {
    bool hit;
};

static bool invalidate_mine(struct CUstream_st *stream, void *arg)
{
    struct unsafe_question *question = arg;
    struct host_capture *capture = atomic_load(&stream->capture);
    if (!capture || capture->mode == 2 || capture->ended) return false;
    bool mine = pthread_equal(capture->owner, pthread_self());
    bool global = capture->mode == 0 && host_thread.capture_mode == 0;
    if (!mine && !global) return false;
    capture->invalid = true;
    question->hit = true;
    return false;
}

int tuttiHostCaptureUnsafe(void)
{
    struct unsafe_question question = {false};
    if (atomic_load_explicit(&next_capture, memory_order_relaxed) == 1 ||
        host_thread.capture_mode == 2)
        return HOST_OK;
    host_streams_visit(invalidate_mine, &question);
    return question.hit ? HOST_CAPTURE_UNSUPPORTED : HOST_OK;
}

int host_capture_add(struct CUstream_st *stream, const struct host_op *op)
{
    struct host_capture *capture = atomic_load(&stream->capture);
    struct host_item_share *share = NULL;
    if (capture->invalid) return HOST_CAPTURE_INVALIDATED;
    if (op->kind == HOST_OP_ITEM) share = host_share_make(op->item);
    if (op->kind == HOST_OP_ITEM && !share) return HOST_OUT_OF_MEMORY;
    struct CUgraphNode_st *node =
        host_graph_add(capture->graph, stream->tips, stream->ntips, op, share);
    if (!node && share) free(share); /* the item stays the caller's */
    if (!node) return HOST_OUT_OF_MEMORY;
    if (share) atomic_fetch_sub(&share->refs, 1); /* the node holds it now */
    return set_tips(stream, &node, 1) ? HOST_OK : HOST_OUT_OF_MEMORY;
}

/* ---- events in captures ---- */

struct host_capture_place *host_capture_place(struct CUstream_st *stream)
{
    struct host_capture *capture = atomic_load(&stream->capture);
    struct host_capture_place *place = calloc(1, sizeof(*place));
    if (!place) return NULL;
    place->tips = malloc((stream->ntips + 1) * sizeof(*place->tips));
    if (!place->tips) {
        free(place);
        return NULL;
    }
    if (stream->ntips) memcpy(place->tips, stream->tips, stream->ntips * sizeof(*place->tips));
    place->ntips = stream->ntips;
    place->capture = capture;
    atomic_fetch_add(&capture->refs, 1);
    return place;
}

void host_capture_place_drop(struct host_capture_place *place)
{
    if (!place) return;
    capture_drop(place->capture);
    free(place->tips);
    free(place);
}

static bool has_tip(const struct CUstream_st *stream, const struct CUgraphNode_st *tip)
{
    for (size_t i = 0; i < stream->ntips; i++) {
        if (stream->tips[i] == tip) return true;
    }
    return false;
}

int host_capture_join(struct CUstream_st *stream, const struct host_capture_place *place)
{
    struct host_capture *capture = atomic_load(&stream->capture);
    if (place->capture->ended) return HOST_CAPTURED_EVENT;
    if (capture && capture != place->capture) {
        capture->invalid = place->capture->invalid = true;
        return HOST_CAPTURE_MERGE;
    }
    if (!capture) {
        if (stream->legacy) return HOST_CAPTURE_IMPLICIT;
        enter(stream, place->capture);
        return set_tips(stream, place->tips, place->ntips) ? HOST_OK : HOST_OUT_OF_MEMORY;
    }
    struct CUgraphNode_st **all = malloc((stream->ntips + place->ntips + 1) * sizeof(*all));
    if (!all) return HOST_OUT_OF_MEMORY;
    size_t n = stream->ntips;
    if (n) memcpy(all, stream->tips, n * sizeof(*all));
    for (size_t i = 0; i < place->ntips; i++) {
        if (!has_tip(stream, place->tips[i])) all[n++] = place->tips[i];
    }
    free(stream->tips);
    stream->tips = all;
    stream->ntips = n;
    return HOST_OK;
}
