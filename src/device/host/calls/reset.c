/* The end of all that a device holds. */
#include "device/host/memory/memory.h"
#include "device/host/stream/stream.h"

static bool destroy_stream(struct CUstream_st *stream, void *arg)
{
    /* a thread's own default stream stays: its handle is no pointer and may be used again */
    if (stream->device == *(const int *)arg && !stream->legacy && !stream->is_own)
        tuttiHostStreamDestroy(stream);
    return false;
}

int tuttiHostDeviceReset(int device)
{
    int rc = tuttiHostDeviceSynchronize(device);
    if (rc) return rc;
    host_streams_visit(destroy_stream, &device);
    host_events_reset(device);
    struct host_arena *arena = host_arena_device(device);
    if (arena) host_arena_clear(arena);
    return HOST_OK;
}
