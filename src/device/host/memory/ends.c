/* Notes of streams' ends. Who takes memory away cannot know which work uses it, so all that is
 * queued counts; and he does not wait for it, for it may be waiting for him. */
#include "ends.h"

#include "device/host/stream/stream.h"

#include <stdlib.h>

struct host_ends {
    size_t count;
    struct host_place places[];
};

static bool busy_end(size_t number, struct host_place *place_out)
{
    struct CUstream_st *stream = host_slab_object(&tt_host.streams.places, number);
    if (host_stream_idle(stream)) return false;
    *place_out = (struct host_place){stream, atomic_load(&stream->tail)};
    return true;
}

int host_ends_note(struct host_ends **ends_out)
{
    size_t made = atomic_load_explicit(&tt_host.streams.places.made, memory_order_acquire);
    struct host_ends *ends = calloc(1, sizeof(*ends) + made * sizeof(struct host_place));
    if (!ends) return HOST_OUT_OF_MEMORY;
    for (size_t i = 0; i < made; i++) {
        if (busy_end(i, &ends->places[ends->count])) ends->count++;
    }
    if (ends->count == 0) {
        free(ends);
        ends = NULL;
    }
    *ends_out = ends;
    return HOST_OK;
}

bool host_ends_reached(const struct host_ends *ends)
{
    bool reached = true;
    for (size_t i = 0; reached && ends && i < ends->count; i++) {
        reached = host_place_reached(&ends->places[i]);
    }
    return reached;
}

void host_ends_free(struct host_ends *ends)
{
    free(ends);
}
