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
/* A communicator has a profiler, before its init; it has one no longer. The last one's end writes
 * what was measured. Nothing without TUTTI_PROFILER_TIMERS. */
void tt_profiler_timers_begin(void);
void tt_profiler_timers_end(void);

/* Which events the plugin's version has; others end in the adapters. */
uint32_t tt_profiler_known(void);
/* "Coll P2p"; cut where there is no room. */
void tt_profiler_mask_names(uint32_t mask, char *names, size_t names_bytes);
/* "Coll"; for one bit. */
const char *tt_profiler_event_name(uint64_t type);

/* The plugin's own table when it is of that version, else `older`, which presents it as one. It has
 * a user, so it does not change.                                                              hot
 */
static inline const void *tt_profiler_below(int version, const void *older)
{
    const struct tt_plugin_found *found = &tt_plugins.profiler.slot.found;
    return found->version == version ? found->object : older;
}
