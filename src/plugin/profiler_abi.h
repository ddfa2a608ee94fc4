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

/* The plugin's own table when it is of that version, else `older`, which presents it as one. It has
 * a user, so it does not change.                                                              hot
 */
static inline const void *tt_profiler_below(int version, const void *older)
{
    const struct tt_plugin_found *found = &tt_plugins.profiler.slot.found;
    return found->version == version ? found->object : older;
}
