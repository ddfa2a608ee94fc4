/* Emission of a work's own profiler events. Call only when work->events.profiler is set. */
#pragma once

struct tt_work;

/* The work's turn has come: all its frames begin. */
void tt_events_begin(struct tt_work *work);
/* That frame ended. Once per frame; a work that was aborted ends all that are open. */
void tt_events_end(struct tt_work *work, int frame_index);
