/* Older versions of the profiler interface: each is presented as the next newer one, so that an
 * emitter only knows the newest. One library per process, hence one table per version. Private to
 * the room. */
#pragma once

#include "nccl/profiler.h"
#include "plugin/process.h"

/* The loaded plugin of version N or older, as one of version N + 1. */
extern const ncclProfiler_v2_t tt_profiler_v1;
extern const ncclProfiler_v3_t tt_profiler_v2;
extern const ncclProfiler_v4_t tt_profiler_v3;
extern const ncclProfiler_v5_t tt_profiler_v4;
extern const ncclProfiler_v6_t tt_profiler_v5;
extern const ncclProfiler_v7_t tt_profiler_v6;

/* profiler_timers.c: the same plugin, each call measured; for use while there are timers. */
extern const ncclProfiler_v7_t tt_profiler_timed;
/* begin: before the init of a communicator's profiler; end: after its end. The last end writes the
 * measured times. Both do nothing without TUTTI_PROFILER_TIMERS. */
void tt_profiler_timers_begin(void);
void tt_profiler_timers_end(void);

/* Events that the plugin's version has, a bit each; the adapters drop others. */
uint32_t tt_profiler_known(void);
/* Write the names of the events of a mask, "Coll P2p"; cut when they do not fit. */
void tt_profiler_mask_names(uint32_t mask, char *names, size_t names_bytes);
/* Name of one event (one bit): "Coll". */
const char *tt_profiler_event_name(uint64_t type);

/* The plugin's own table when it is of that version, else `older`, which presents it as one. It has
 * a user, so it does not change.                                                              hot
 */
static inline const void *tt_profiler_below(int version, const void *older)
{
    const struct tt_plugin_found *found = &tt_plugins.profiler.slot.found;
    return found->version == version ? found->object : older;
}
