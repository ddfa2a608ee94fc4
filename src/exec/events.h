/* Emission of a work's own profiler events. Call only when work->events.profiler is set. */
#pragma once

struct tt_work;

/* The work's turn has come: all its frames begin. */
void tt_events_begin(struct tt_work *work);
/* That frame goes on to the phase (1 compute, 2 final_sync); once for each, later calls are
 * ignored. Call only when work->events.phases is set. */
void tt_events_phase(struct tt_work *work, int frame_index, int phase_id);
/* That frame ended. Once per frame; a work that was aborted ends all that are open. */
void tt_events_end(struct tt_work *work, int frame_index);
