/* The events of running works for a profiler: a KernelCh per frame with the times of its start and
 * end, its phases between barriers, and, through the edges, which operation a network step belongs
 * to. Without a profiler this file is never entered. */
#include "exec/events.h"

#include "base/system/clock.h"
#include "exec/host/cursor.h"
#include "plugin/profiler/profiler.h"

static void *parent_of(const struct tt_work *work, const struct tt_frame *frame)
{
    return frame->event ? frame->event : work->events.parent;
}

/* ---- edges ---- */

static void track_edge(struct tt_edge *edge, const struct tt_edge_track *track, uint64_t nslots)
{
    if (nslots == 0) return;
    if (!track) {
        tt_edge_track(edge, NULL);
        return;
    }
    struct tt_edge_track own = *track;
    own.nsteps = nslots < INT32_MAX ? (int)nslots : INT32_MAX;
    tt_edge_track(edge, &own);
}

/* `track` NULL: the frame is done with its edges. */
static void track_edges(const struct tt_work *work, const struct tt_frame *frame,
                        const struct tt_edge_track *track)
{
    struct tt_slot_counts *counts = work->slot_counts;
    if (!work->tracks || !frame->send_edges) return; /* within memory, or one rank */
    tt_program_slots(frame->program, frame->rank, &frame->geometry,
                     work->slice_bytes / frame->elem_bytes, counts);
    for (int k = 0; k < frame->program->nchannels * frame->program->nranks; k++) {
        track_edge(frame->send_edges[k], track, counts[k].sends);
        track_edge(frame->recv_edges[k], track, counts[k].receives);
    }
}

/* ---- phases ---- */

static void end_phase(struct tt_work *work, int f, uint64_t now_nsec)
{
    struct tt_channel_events *own = &work->channel_events[f];
    ncclProfilerEventStateArgs_v7_t args = {.kernelCh = {.pTimer = now_nsec}};
    if (!own->phase) return;
    tt_prof_state(work->events.profiler, own->phase, ncclProfilerKernelPhaseStop, &args);
    tt_prof_stop(work->events.profiler, own->phase);
    own->phase = NULL;
}

static void begin_phase(struct tt_work *work, int f, int phase_id, uint64_t now_nsec)
{
    static const char *const names[] = {"initial_sync", "compute", "final_sync"};
    struct tt_channel_events *own = &work->channel_events[f];
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileKernelPhase, .parentObj = own->kernel};
    own->phase_id = phase_id;
    if (!own->kernel) return; /* the plugin has no handle for the parent */
    descr.kernelPhase.channelId = (uint8_t)work->frames[f].channel;
    descr.kernelPhase.phaseId = (uint8_t)phase_id;
    descr.kernelPhase.phaseName = names[phase_id];
    descr.kernelPhase.pTimer = now_nsec;
    own->phase = tt_prof_start(work->events.profiler, work->events.mask, &descr);
}

void tt_events_phase(struct tt_work *work, int f, int phase_id)
{
    if (!work->events_open || work->channel_events[f].phase_id >= phase_id) return;
    uint64_t now_nsec = tt_now_nsec();
    end_phase(work, f, now_nsec);
    begin_phase(work, f, phase_id, now_nsec);
}

/* ---- frames ---- */

static void begin_frame(struct tt_work *work, int f)
{
    const struct tt_frame *frame = &work->frames[f];
    const struct tt_work_events *events = &work->events;
    struct tt_edge_track track = {
        .profiler = events->profiler, .parent = parent_of(work, frame), .mask = events->mask};
    track_edges(work, frame, &track);
    if (!events->channel_times) return;
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileKernelCh, .parentObj = track.parent};
    descr.kernelCh.channelId = (uint8_t)frame->channel;
    uint64_t now_nsec = tt_now_nsec();
    descr.kernelCh.pTimer = now_nsec;
    work->channel_events[f].kernel = tt_prof_start(events->profiler, events->mask, &descr);
    if (events->phases) begin_phase(work, f, 0, now_nsec);
}

/* ---- replays ---- */

static void begin_call(struct tt_work *work, struct tt_prof_replay *replay, void *group)
{
    struct tt_profiler *profiler = work->events.profiler;
    ncclProfilerEventDescr_v7_t descr = replay->descr; /* the plugin may write into what it gets */
    if (descr.type == ncclProfileColl) {
        descr.coll.parentGroup = group;
        descr.coll.seqNumber = atomic_fetch_add_explicit(replay->sequence, 1, memory_order_relaxed);
    } else {
        descr.p2p.parentGroup = group;
    }
    void *event = tt_prof_start(profiler, work->events.mask, &descr);
    for (int f = 0; f < replay->nframes; f++)
        work->frames[replay->first_frame + f].event = event;
    tt_prof_stop(profiler, event);
}

/* A graph launch has the events of its calls, as the calls themselves; their parents are of the
 * capture.
 */
static void begin_replay(struct tt_work *work)
{
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileGroup};
    void *group = tt_prof_start(work->events.profiler, work->events.mask, &descr);
    for (int k = 0; k < work->events.nreplays; k++)
        begin_call(work, &work->replays[k], group);
    tt_prof_stop(work->events.profiler, group);
}

void tt_events_begin(struct tt_work *work)
{
    work->events_open = true;
    if (work->events.nreplays > 0) begin_replay(work);
    for (int f = 0; f < work->nframes; f++) {
        work->channel_events[f] = (struct tt_channel_events){0};
        if (work->eager) work->frame_live[f] = 1;
        if (work->frames[f].after == 0) begin_frame(work, f);
    }
}

/* Messages that follow one another share an edge: the next one takes it over and begins. In a work
 * that ends before its time nothing begins any more. */
static void hand_over(struct tt_work *work, int ended)
{
    if (!work->events_open) return;
    for (int f = ended + 1; f < work->nframes; f++) {
        if (work->frames[f].after == ended + 1) begin_frame(work, f);
    }
}

/* The time is 0 where an abort stopped it: it has no end of its own. */
static void end_channel(struct tt_work *work, int f, uint64_t now_nsec)
{
    void *event = work->channel_events[f].kernel;
    if (!event) return;
    ncclProfilerEventStateArgs_v7_t args = {.kernelCh = {.pTimer = now_nsec}};
    end_phase(work, f, now_nsec);
    tt_prof_state(work->events.profiler, event, ncclProfilerKernelChStop, &args);
    tt_prof_stop(work->events.profiler, event);
    work->channel_events[f].kernel = NULL;
}

void tt_events_end(struct tt_work *work, int f)
{
    if (work->channel_events[f].kernel) /* before the next one on its edge begins */
        end_channel(work, f, tt_now_nsec());
    track_edges(work, &work->frames[f], NULL);
    hand_over(work, f);
}

void tt_events_cut(struct tt_work *work, int f)
{
    end_channel(work, f, 0);
    track_edges(work, &work->frames[f], NULL);
}
