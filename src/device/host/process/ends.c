/* Notes of streams' ends. A thread that frees memory cannot know which work uses it, so all that is
 * queued counts; and the caller does not wait for it, as it may be waiting for the caller. */
#include "ends.h"

#include "runnable.h"
#include "state.h"
#include "timeline.h"

#include <stdlib.h>

struct tt_host_ends {
    size_t count, room;
    struct tt_host_position positions[];
};

struct noting {
    struct tt_host_ends *ends; /* NULL: none yet */
    bool failed;
};

static void note_end(struct CUstream_st *stream, void *arg)
{
    struct noting *noting = arg;
    struct tt_host_ends *ends = noting->ends;
    const struct tt_host_position end = {stream, atomic_load(&tt_host_timeline_of(stream)->tail)};
    if (noting->failed || tt_host_position_reached(&end)) return;
    if (!ends || ends->count == ends->room) {
        size_t room = ends ? 2 * ends->room : 8;
        size_t count = ends ? ends->count : 0;
        ends = realloc(ends, sizeof(*ends) + room * sizeof(struct tt_host_position));
        noting->failed = !ends;
        if (!ends) return;
        noting->ends = ends;
        ends->count = count;
        ends->room = room;
    }
    ends->positions[ends->count++] = end;
}

int tt_host_ends_note(struct tt_host_ends **ends_out)
{
    struct noting noting = {NULL, false};
    tt_host_busy_visit(note_end, &noting);
    if (noting.failed) {
        free(noting.ends);
        return TT_HOST_OUT_OF_MEMORY;
    }
    *ends_out = noting.ends;
    return TT_HOST_OK;
}

bool tt_host_ends_reached(const struct tt_host_ends *ends)
{
    bool reached = true;
    for (size_t i = 0; reached && ends && i < ends->count; i++) {
        reached = tt_host_position_reached(&ends->positions[i]);
    }
    return reached;
}

void tt_host_ends_free(struct tt_host_ends *ends)
{
    free(ends);
}
