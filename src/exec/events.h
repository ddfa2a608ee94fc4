/* Emission of a work's own profiler events. Call only when work->events.profiler is set. */
#pragma once

struct tt_work;

/* Begin the events of all frames: the work's turn has come. */
void tt_events_begin(struct tt_work *work);
/* Note that the frame is in a phase (1 compute, 2 final_sync). Only the first call for each phase
 * counts. Call only when work->events.phases is set. */
void tt_events_phase(struct tt_work *work, int frame_index, int phase_id);
/* End the frame's events. Once per frame; a work that was aborted ends all that are open by
 * tt_events_cut(), with 0 for the time of a kernel's end: a trace can tell them from others. */
void tt_events_end(struct tt_work *work, int frame_index);
void tt_events_cut(struct tt_work *work, int frame_index);
