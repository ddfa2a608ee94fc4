/* Counted objects of the program that graphs keep alive. The thread that drops the last reference
 * may hold what the destructor takes, so that runs on a worker, from a queue that no thread waits
 * for. */
#include "graph.h"

#include <stdlib.h>

enum { OBJECT_MAGIC = 0x75736572, MAX_OBJECTS = 1 << 16, OBJECT_BYTES = 64 };

struct CUuserObject_st {
    uint32_t magic;
    _Atomic uint64_t refs;
    void (*destroy)(void *);
    void *arg;
};

_Static_assert(sizeof(struct CUuserObject_st) <= OBJECT_BYTES,
               "an object fits its slot of the slab");

static bool is_object(const struct CUuserObject_st *object)
{
    return tt_host_slab_holds(&tt_host.graphs.objects, object, OBJECT_MAGIC);
}

static void end_object(void *arg)
{
    struct CUuserObject_st *object = arg;
    object->destroy(object->arg);
    tt_host_slab_give(&tt_host.graphs.objects, object);
}

static void make_endings(void)
{
    tt_host_workers_prepare(); /* it may be the first stream of all */
    tt_host.graphs.endings = tt_host_timeline_take();
}

static void end_later(struct CUuserObject_st *object)
{
    const struct tt_host_op op = {.kind = TT_HOST_OP_CALL, .call = {end_object, object}};
    pthread_once(&tt_host.graphs.endings_once, make_endings);
    struct CUstream_st *endings = tt_host.graphs.endings;
    if (!endings || tt_host_stream_append(endings, &op)) end_object(object); /* better than never */
}

int tuttiHostUserCreate(void (*fn)(void *), void *arg, unsigned count,
                        struct CUuserObject_st **object_out)
{
    if (!fn || count == 0) return TT_HOST_INVALID_VALUE;
    struct CUuserObject_st *object =
        tt_host_slab_take(&tt_host.graphs.objects, OBJECT_BYTES, MAX_OBJECTS);
    if (!object) return TT_HOST_OUT_OF_MEMORY;
    object->destroy = fn;
    object->arg = arg;
    atomic_store(&object->refs, count);
    object->magic = OBJECT_MAGIC;
    *object_out = object;
    return TT_HOST_OK;
}

int tuttiHostUserRetain(struct CUuserObject_st *object, unsigned count)
{
    if (!is_object(object) || count == 0) return TT_HOST_INVALID_VALUE;
    atomic_fetch_add(&object->refs, count);
    return TT_HOST_OK;
}

int tuttiHostUserRelease(struct CUuserObject_st *object, unsigned count)
{
    if (!is_object(object) || count == 0) return TT_HOST_INVALID_VALUE;
    uint64_t before = atomic_load(&object->refs);
    do {
        if (before < count) return TT_HOST_INVALID_VALUE;
    } while (!atomic_compare_exchange_weak(&object->refs, &before, before - count));
    if (before != count) return TT_HOST_OK;
    object->magic = 0;
    end_later(object);
    return TT_HOST_OK;
}

/* ---- what graphs keep ---- */

int tuttiHostGraphRetainUser(struct CUgraph_st *graph, struct CUuserObject_st *object,
                             unsigned count, bool move)
{
    if (!tt_host_graph_holds(graph) || !is_object(object) || count == 0)
        return TT_HOST_INVALID_VALUE;
    struct tt_host_kept *kept = calloc(1, sizeof(*kept));
    if (!kept) return TT_HOST_OUT_OF_MEMORY;
    if (!move) tuttiHostUserRetain(object, count);
    kept->object = object;
    kept->count = count;
    kept->next = graph->kept;
    graph->kept = kept;
    return TT_HOST_OK;
}

static unsigned count_kept(const struct tt_host_kept *kept, const struct CUuserObject_st *object)
{
    unsigned count = 0;
    for (; kept; kept = kept->next) {
        if (kept->object == object) count += kept->count;
    }
    return count;
}

int tuttiHostGraphReleaseUser(struct CUgraph_st *graph, struct CUuserObject_st *object,
                              unsigned count)
{
    unsigned left = count;
    if (!tt_host_graph_holds(graph) || count == 0 || count_kept(graph->kept, object) < count)
        return TT_HOST_INVALID_VALUE;
    for (struct tt_host_kept **link = &graph->kept; left && *link;) {
        struct tt_host_kept *kept = *link;
        if (kept->object == object) {
            unsigned taken = kept->count < left ? kept->count : left;
            kept->count -= taken;
            left -= taken;
        }
        if (kept->count) {
            link = &kept->next;
            continue;
        }
        *link = kept->next;
        free(kept);
    }
    return tuttiHostUserRelease(object, count);
}

bool tt_host_kept_copy(const struct tt_host_kept *from, struct tt_host_kept **to_out)
{
    struct tt_host_kept *first = NULL;
    for (; from; from = from->next) {
        struct tt_host_kept *kept = calloc(1, sizeof(*kept));
        if (!kept) {
            tt_host_kept_free(first);
            return false;
        }
        kept->object = from->object;
        kept->count = 1;
        tuttiHostUserRetain(kept->object, 1);
        kept->next = first;
        first = kept;
    }
    *to_out = first;
    return true;
}

void tt_host_kept_free(struct tt_host_kept *kept)
{
    while (kept) {
        struct tt_host_kept *next = kept->next;
        tuttiHostUserRelease(kept->object, kept->count);
        free(kept);
        kept = next;
    }
}
