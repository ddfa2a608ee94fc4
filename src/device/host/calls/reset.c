/* The end of all that a device holds. */
#include "reset.h"

#include "device/host/graph/graph.h"
#include "device/host/memory/held.h"
#include "device/host/memory/ipc.h"
#include "device/host/memory/memory.h"
#include "device/host/memory/registered.h"
#include "device/host/stream/stream.h"

static bool destroy_stream(struct CUstream_st *stream, void *arg)
{
    /* a thread's own default stream stays: its handle is no pointer and may be used again */
    if (stream->device == *(const int *)arg && !stream->legacy && !stream->is_own)
        tuttiHostStreamDestroy(stream);
    return false;
}

/* Graphs are of no device and stay, as do variables that were compiled in, which keep their
 * addresses; those of libraries that the program loaded are gone. */
int tuttiHostDeviceReset(int device)
{
    int rc = tuttiHostDeviceSynchronize(device);
    if (rc) return rc;
    tt_host_held_reset(device);
    tt_host_streams_visit(destroy_stream, &device);
    tt_host_events_reset(device);
    tt_host_pools_reset(device);
    tt_host_graph_memory_reset(device);
    tt_host_ipc_reset(device);
    tt_host_registrations_reset(device);
    tt_host_libraries_reset(device);
    tt_host_memory_reset(device);
    tt_host_settings_reset(device);
    return TT_HOST_OK;
}
