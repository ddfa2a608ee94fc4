/* What a profiler is told of running works: a KernelCh per frame with the times of its start and
 * end, and, through the edges, which operation a network step belongs to. Without a profiler this
 * file is never entered. */
#include "exec/events.h"

#include "base/clock.h"
#include "exec/host/cursor.h"
#include "plugin/profiler.h"

/* Slots that a frame moves over one edge: one per slice of each chunk, in every pass. */
static int slot_count(const struct tt_work *work, const struct tt_frame *frame)
{
    size_t chunk = frame->geometry.chunk * frame->elem_bytes;
    size_t slices = chunk / work->slice_bytes + (chunk % work->slice_bytes != 0);
    size_t count = frame->geometry.npasses * (slices ? slices : 1);
    return count < INT32_MAX ? (int)count : INT32_MAX;
}

static void *parent_of(const struct tt_work *work, const struct tt_frame *frame)
{
    return frame->event ? frame->event : work->events.parent;
}

static void track_edges(const struct tt_work *work, const struct tt_frame *frame,
                        const struct tt_edge_track *track)
{
    uint8_t *links = work->links;
    if (!frame->send_edges) return; /* within one rank */
    tt_program_links(frame->program, links);
    for (int rank = 0; rank < work->member->nranks; rank++) {
        if (links[rank] & TT_LINK_SENDS) tt_edge_track(frame->send_edges[rank], track);
        if (links[rank] & TT_LINK_RECEIVES) tt_edge_track(frame->recv_edges[rank], track);
    }
}

static void begin_frame(struct tt_work *work, int f)
{
    const struct tt_frame *frame = &work->frames[f];
    const struct tt_work_events *events = &work->events;
    struct tt_edge_track track = {.profiler = events->profiler,
                                  .parent = parent_of(work, frame),
                                  .mask = events->mask,
                                  .nsteps = slot_count(work, frame)};
    work->channel_events[f] = NULL;
    if (!track.parent) return;
    if (frame->after == 0) track_edges(work, frame, &track);
    if (!events->channel_times) return;
    ncclProfilerEventDescr_v6_t descr = {
        .type = ncclProfileKernelCh, .parentObj = track.parent, .rank = work->member->rank};
    descr.kernelCh.channelId = (uint8_t)frame->channel;
    descr.kernelCh.pTimer = tt_now_nsec();
    work->channel_events[f] = tt_prof_start(events->profiler, events->mask, &descr);
}

void tt_events_begin(struct tt_work *work)
{
    work->events_open = true;
    for (int f = 0; f < work->nframes; f++)
        begin_frame(work, f);
}

/* Messages that follow one another share an edge: the next one takes it over. */
static void hand_over(struct tt_work *work, int ended)
{
    for (int f = 0; f < work->nframes; f++) {
        const struct tt_frame *frame = &work->frames[f];
        struct tt_edge_track track = {.profiler = work->events.profiler,
                                      .parent = parent_of(work, frame),
                                      .mask = work->events.mask,
                                      .nsteps = slot_count(work, frame)};
        if (frame->after == ended + 1 && track.parent) track_edges(work, frame, &track);
    }
}

void tt_events_end(struct tt_work *work, int f)
{
    const struct tt_frame *frame = &work->frames[f];
    if (!parent_of(work, frame)) return;
    track_edges(work, frame, NULL);
    hand_over(work, f);
    void *event = work->channel_events[f];
    if (!event) return;
    ncclProfilerEventStateArgs_v6_t args = {.kernelCh = {.pTimer = tt_now_nsec()}};
    tt_prof_state(work->events.profiler, event, ncclProfilerKernelChStop, &args);
    tt_prof_stop(work->events.profiler, event);
    work->channel_events[f] = NULL;
}
