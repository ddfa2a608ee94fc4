/* What both versions do in the same way behind signatures or layouts that differ. */
#include "shared.h"

#include "device/host/host_face.h"
#include "device/host/host_vmm.h"

#include <string.h>

int tt_face_pointer(const void *ptr, struct tt_face_pointer *found)
{
    struct tt_pointer where;
    void *address = (void *)(uintptr_t)ptr;
    int rc = tuttiHostPointer(ptr, &where);
    if (rc) return rc;
    if (where.base == NULL) tuttiHostIpcMapped(ptr, &where);
    struct tt_mapped mapped;
    struct tt_registered registered;
    *found = (struct tt_face_pointer){cudaMemoryTypeHost, where.device, address, address};
    if (where.base == NULL && tuttiHostMapped(ptr, &mapped)) {
        if (mapped.info.on_host) return cudaSuccess; /* as set above */
        *found = (struct tt_face_pointer){cudaMemoryTypeDevice, mapped.info.device, address, NULL};
    } else if (where.base == NULL && tuttiHostRegistered(ptr, &registered)) {
        found->device = registered.device; /* host memory, as set above */
    } else if (where.base == NULL || where.kind == TT_MEMORY_CONTROL) {
        *found = (struct tt_face_pointer){cudaMemoryTypeUnregistered, cudaInvalidDeviceId, NULL,
                                          address};
    } else if (where.kind == TT_MEMORY_DEVICE) {
        found->type = cudaMemoryTypeDevice;
        found->host_pointer = NULL;
    } else if (where.kind == TT_MEMORY_MANAGED) {
        found->type = cudaMemoryTypeManaged;
    }
    return cudaSuccess;
}

/* ---- capture ---- */

enum { MAX_PLAIN_EDGES = 4096 };
static const cudaGraphEdgeData plain_edges[MAX_PLAIN_EDGES]; /* every edge is a plain one */

int tt_face_capture_info(struct CUstream_st *stream, const struct tt_face_capture *out)
{
    enum tt_capture_status status = TT_CAPTURE_NONE;
    struct CUgraphNode_st *const *tips = NULL;
    struct CUgraph_st *graph = NULL;
    size_t count = 0;
    uint64_t id = 0;
    if (!out->status) return cudaErrorInvalidValue;
    int rc = tuttiHostCaptureStatus(stream, &status, &id, &graph);
    if (!rc && status == TT_CAPTURE_ACTIVE) rc = tuttiHostCaptureTips(stream, &tips, &count);
    if (rc) return rc;
    *out->status = (enum cudaStreamCaptureStatus)status;
    if (status != TT_CAPTURE_ACTIVE) return cudaSuccess;
    if (out->id) *out->id = id;
    if (out->graph) *out->graph = graph;
    if (out->tips) *out->tips = tips;
    if (out->edges) *out->edges = count <= MAX_PLAIN_EDGES ? plain_edges : NULL;
    if (out->count) *out->count = count;
    return cudaSuccess;
}

/* ---- hints about memory: checked and kept, without effect ---- */

int tt_face_location(const struct cudaMemLocation *location)
{
    switch (location->type) {
    case cudaMemLocationTypeDevice: return location->id;
    case cudaMemLocationTypeHost:
    case cudaMemLocationTypeHostNuma:
    case cudaMemLocationTypeHostNumaCurrent: return cudaCpuDeviceId;
    default: return cudaInvalidDeviceId;
    }
}

static int check_hinted(const void *ptr, size_t len, int device)
{
    struct tt_pointer found;
    struct tt_mapped mapped;
    int rc = device == cudaCpuDeviceId ? 0 : tt_face_device(device);
    if (!rc) rc = tuttiHostPointer(ptr, &found);
    if (!rc && (!ptr || !len)) rc = cudaErrorInvalidValue;
    if (rc) return rc;
    bool good = found.kind == TT_MEMORY_MANAGED && found.base &&
                len <= found.bytes - (size_t)((const char *)ptr - found.base);
    if (!good && found.kind == TT_MEMORY_FOREIGN) {
        good = !tuttiHostIpcMapped(ptr, &found) && !tuttiHostMapped(ptr, &mapped) &&
               tuttiHostIsThere(ptr, len);
    }
    return good ? cudaSuccess : cudaErrorInvalidValue;
}

int tt_face_prefetch(struct CUstream_st *stream, const void *ptr, size_t len, int device)
{
    const struct tt_hint hint = {TT_HINT_PREFETCHED, device, true};
    int rc = check_hinted(ptr, len, device);
    if (!rc) rc = tuttiHostStreamAllows(stream); /* 900 in a capture: graphs have no such node */
    return rc ? rc : tuttiHostHint(ptr, len, &hint);
}

int tt_face_advise(const void *ptr, size_t len, int advice, int device)
{
    struct tt_hint hint = {.location = device, .on = advice % 2 == 1}; /* the others take back */
    bool about_device = advice == cudaMemAdviseSetPreferredLocation ||
                        advice == cudaMemAdviseSetAccessedBy ||
                        advice == cudaMemAdviseUnsetAccessedBy;
    int rc = check_hinted(ptr, len, about_device ? device : cudaCpuDeviceId);
    if (rc) return rc;
    switch (advice) {
    case cudaMemAdviseUnsetReadMostly:
    case cudaMemAdviseSetReadMostly: hint.kind = TT_HINT_READ_MOSTLY; break;
    case cudaMemAdviseUnsetPreferredLocation:
    case cudaMemAdviseSetPreferredLocation: hint.kind = TT_HINT_PREFERRED; break;
    case cudaMemAdviseUnsetAccessedBy:
    case cudaMemAdviseSetAccessedBy: hint.kind = TT_HINT_ACCESSED_BY; break;
    default: return cudaErrorInvalidValue;
    }
    return tuttiHostHint(ptr, len, &hint);
}

/* The devices that were said to use it, then cudaInvalidDeviceId up to its end. */
static void list_access(const struct tt_hints *hints, int *values, size_t count)
{
    size_t found = 0;
    if (hints->accessed_by_host) values[found++] = cudaCpuDeviceId;
    for (int d = 0; d < tuttiHostDeviceCount() && found < count; d++) {
        if (hints->accessed_by[d / 64] >> d % 64 & 1) values[found++] = d;
    }
    while (found < count) {
        values[found++] = cudaInvalidDeviceId;
    }
}

static int type_of(int location)
{
    if (location == cudaInvalidDeviceId) return cudaMemLocationTypeInvalid;
    return location == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
}

static int range_attribute(const struct tt_hints *hints, int attr, int *values, size_t count)
{
    int preferred = hints->preferred;
    int prefetched = hints->prefetched;
    switch (attr) {
    case cudaMemRangeAttributeReadMostly: values[0] = hints->read_mostly; break;
    case cudaMemRangeAttributePreferredLocation: values[0] = preferred; break;
    case cudaMemRangeAttributeLastPrefetchLocation: values[0] = prefetched; break;
    case cudaMemRangeAttributePreferredLocationType: values[0] = type_of(preferred); break;
    case cudaMemRangeAttributeLastPrefetchLocationType: values[0] = type_of(prefetched); break;
    case cudaMemRangeAttributePreferredLocationId: values[0] = preferred > 0 ? preferred : 0; break;
    case cudaMemRangeAttributeLastPrefetchLocationId:
        values[0] = prefetched > 0 ? prefetched : 0;
        break;
    case cudaMemRangeAttributeAccessedBy: list_access(hints, values, count); break;
    default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

static int range_get(void *value, size_t value_len, int attr, const struct tt_hints *hints)
{
    bool fits = value_len && value_len % sizeof(int) == 0 &&
                (attr == (int)cudaMemRangeAttributeAccessedBy || value_len == sizeof(int));
    if (!value || !fits) return cudaErrorInvalidValue;
    return range_attribute(hints, attr, value, value_len / sizeof(int));
}

cudaError_t cudaMemRangeGetAttribute(void *value, size_t value_len, enum cudaMemRangeAttribute attr,
                                     const void *ptr, size_t len)
{
    struct tt_hints hints;
    int rc = check_hinted(ptr, len, cudaCpuDeviceId);
    if (rc) return tt_face_done(rc);
    tuttiHostHints(ptr, len, &hints);
    return tt_face_done(range_get(value, value_len, (int)attr, &hints));
}

cudaError_t cudaMemRangeGetAttributes(void **values, size_t *value_lens,
                                      enum cudaMemRangeAttribute *attrs, size_t count,
                                      const void *ptr, size_t len)
{
    struct tt_hints hints;
    int rc = values && value_lens && attrs && count ? check_hinted(ptr, len, cudaCpuDeviceId)
                                                    : (int)cudaErrorInvalidValue;
    if (rc) return tt_face_done(rc);
    tuttiHostHints(ptr, len, &hints);
    for (size_t i = 0; !rc && i < count; i++) {
        rc = range_get(values[i], value_lens[i], (int)attrs[i], &hints);
    }
    return tt_face_done(rc);
}

/* ---- edges ---- */

static void finish_list(cudaGraphNode_t *nodes, cudaGraphEdgeData *edges, size_t room,
                        size_t *count)
{
    for (size_t i = *count; nodes && i < room; i++) {
        nodes[i] = NULL;
    }
    if (edges && nodes) memset(edges, 0, room * sizeof(*edges));
    if (nodes && *count > room) *count = room;
}

int tt_face_neighbours(cudaGraphNode_t node, enum tt_face_side side, cudaGraphNode_t *nodes,
                       cudaGraphEdgeData *edges, size_t *count)
{
    size_t room = count ? *count : 0;
    if (!count || (edges && !nodes)) return cudaErrorInvalidValue;
    int rc = side == TT_FACE_BEFORE ? tuttiHostNodeBefore(node, nodes, count)
                                    : tuttiHostNodeAfter(node, nodes, count);
    if (!rc) finish_list(nodes, edges, room, count);
    return rc;
}

int tt_face_edges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                  cudaGraphEdgeData *edges, size_t *count)
{
    size_t room = count ? *count : 0;
    if (!count || (from == NULL) != (to == NULL)) return cudaErrorInvalidValue;
    int rc = tuttiHostGraphEdges(graph, from, to, count);
    if (rc) return rc;
    size_t found = *count;
    finish_list(from, edges, room, &found);
    finish_list(to, NULL, room, count);
    return cudaSuccess;
}

int tt_face_edges_add(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                      size_t count)
{
    int rc = count && (!from || !to) ? cudaErrorInvalidValue : cudaSuccess;
    for (size_t i = 0; !rc && i < count; i++) {
        rc = tuttiHostGraphAddEdge(graph, from[i], to[i]);
    }
    return rc;
}

int tt_face_edges_remove(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                         size_t count)
{
    int rc = count && (!from || !to) ? cudaErrorInvalidValue : cudaSuccess;
    for (size_t i = 0; !rc && i < count; i++) {
        rc = tuttiHostGraphRemoveEdge(graph, from[i], to[i]);
    }
    return rc;
}

/* ---- copies in a list ---- */

/* Sources that the caller may change when the call is over, or give back. */
static int wait_for_sources(struct CUstream_st *stream, const struct tt_face_batch *batch)
{
    enum tt_capture_status status;
    struct CUgraph_st *graph;
    uint64_t id;
    bool waits = false;
    for (size_t i = 0; i < batch->nattrs; i++) {
        waits = waits || batch->attrs[i].srcAccessOrder == cudaMemcpySrcAccessOrderDuringApiCall;
    }
    if (!waits) return cudaSuccess;
    int rc = tuttiHostCaptureStatus(stream, &status, &id, &graph);
    return rc || status ? rc : tuttiHostStreamSynchronize(stream);
}

struct batch_item {
    struct tt_item item;
    const struct tt_face_batch *batch;
};

static enum tt_step report_batch(struct tt_item *item, enum tt_item_call call)
{
    const struct tt_face_batch *batch = ((const struct batch_item *)item)->batch;
    for (size_t i = 0; call == TT_ITEM_TOUCH && i < batch->count; i++) {
        tuttiHostTouchPart((int)i);
        tuttiHostTouch(batch->srcs[i], batch->lens[i], false);
        tuttiHostTouch(batch->dsts[i], batch->lens[i], true);
    }
    tuttiHostTouchName("a batch of copies");
    return TT_STEP_DONE;
}

/* CUDA makes them in any order, here they follow each other. */
static void check_batch(struct CUstream_st *stream, const struct tt_face_batch *batch)
{
    struct batch_item item = {.item = {.step = report_batch, .reports_touches = true},
                              .batch = batch};
    if (batch->count > 1) tuttiHostCheckParts(stream, &item.item);
}

/* Each copy has attributes: those of the last start that is not behind it. */
static bool good_batch(struct CUstream_st *stream, const struct tt_face_batch *batch)
{
    const size_t *starts = batch->attr_starts;
    if (!batch->nattrs || !batch->attrs || !starts || starts[0] != 0) return false;
    for (size_t i = 1; i < batch->nattrs; i++) {
        if (starts[i] <= starts[i - 1] || starts[i] >= batch->count) return false;
    }
    for (size_t i = 0; i < batch->nattrs; i++) {
        int order = (int)batch->attrs[i].srcAccessOrder;
        if (order < cudaMemcpySrcAccessOrderStream || order > cudaMemcpySrcAccessOrderAny)
            return false;
    }
    if (!stream || stream == cudaStreamLegacy) return false;
    return batch->count && batch->dsts && batch->srcs && batch->lens;
}

int tt_face_copy_batch(struct CUstream_st *stream, const struct tt_face_batch *batch,
                       size_t *failed)
{
    int rc = cudaSuccess;
    if (failed) *failed = SIZE_MAX;
    if (!good_batch(stream, batch)) return cudaErrorInvalidValue;
    for (size_t i = 0; !rc && i < batch->count; i++) {
        struct tt_copy copy = {
            .dst = batch->dsts[i], .src = batch->srcs[i], .width = batch->lens[i], .height = 1};
        if (!copy.dst || !copy.src || !copy.width) rc = cudaErrorInvalidValue;
        if (!rc) rc = tuttiHostCopy(stream, &copy);
        if (rc && failed) *failed = i;
    }
    if (!rc && tuttiHostChecks()) check_batch(stream, batch);
    return rc ? rc : wait_for_sources(stream, batch);
}

/* ---- fills ---- */

int tt_face_fill_seen(const void *ptr, struct CUstream_st *stream)
{
    struct tt_pointer where;
    tuttiHostLocate(ptr, &where);
    bool seen = where.kind == TT_MEMORY_PINNED || where.kind == TT_MEMORY_MANAGED;
    return seen ? tuttiHostStreamSynchronize(stream) : (int)cudaSuccess;
}
