/* Profiler plugins: one plugin per process, one context per communicator. Each room emits the
 * events of its own work: plan/ those of calls and operations, exec/ of channels, transport/ of
 * network steps, proxy/ of its states. Without a plugin emitting costs one load and a branch.
 *
 * How to emit: sample the mask where NCCL does (when a call is appended; proxy control events when
 * they happen), keep it with the operation, and pass it to every start. A handle of NULL is "not
 * tracked": stop and state do nothing with it, and children begin with a NULL parent, as in NCCL: a
 * plugin may count steps and give no handle to anything else. */
#pragma once

#include "nccl/profiler_v7.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tt_member;
struct tt_plugin_refusal;

/* Fields are the plugin room's, and those of `tutti plugin check`, which wants the table's results;
 * others read `mask` through tt_prof_mask(). */
struct tt_profiler {
    const ncclProfiler_v7_t *table;
    void *context;
    const struct tt_member *member; /* borrowed */
    const int *mask; /* the process's activation mask; plugins change it at any time */
};

struct tt_profiler_config {
    const struct tt_member *member; /* borrowed for the profiler's life */
    int nnodes;
    const char *net_library;           /* tt_net_library(), or NULL */
    struct tt_plugin_refusal *refusal; /* borrowed; NULL: not wanted */
    bool unloads;                      /* the library goes with its last context, as in NCCL */
    bool at_once;                      /* inits do not wait for each other, as in NCCL */
};

/* Load the plugin that NCCL_PROFILER_PLUGIN names (once per process) and make a context for the
 * communicator. *profiler_out is NULL when there is none, its init failed (logged), or it gave no
 * context and asked for nothing: the communicator works without. Call before the proxy exists. */
void tt_profiler_open(const struct tt_profiler_config *config, struct tt_profiler **profiler_out);
/* End the context, after the communicator's last event. Accepts NULL. Returns what the plugin's
 * finalize did, which is no matter for the communicator. */
ncclResult_t tt_profiler_close(struct tt_profiler *profiler);

/* Read a mask: "none", "all", a number, or names of events separated by commas, in any case. False:
 * it is none of these. */
bool tt_profiler_read_mask(const char *text, uint32_t *mask_out);
/* Set the mask of this process, as far as its plugin has such events; operations that are called
 * from now on go by it. Without a plugin nothing happens. Any thread. */
void tt_profiler_set_mask(uint32_t mask);

/* The version that the plugin was found to have, and its name ("" without one). */
int tt_profiler_version(const struct tt_profiler *profiler);
const char *tt_profiler_name(const struct tt_profiler *profiler);

/* The mask now; 0 without profiler.                                                          hot */
static inline uint32_t tt_prof_mask(const struct tt_profiler *profiler)
{
    return profiler ? (uint32_t)__atomic_load_n(profiler->mask, __ATOMIC_RELAXED) : 0;
}

/* Is an event of that type (one ncclProfile* bit) emitted under that mask? True as well when the
 * mask asks for a descendant of it: a child needs its parents.                               hot */
bool tt_prof_wants(uint32_t mask, uint64_t type);

/* Start an event if the mask wants it. The caller fills `descr`: type, parentObj and the type's
 * part of the union; the rank is the profiler's (NCCL up to 2.31 leaves it 0 in events of calls,
 * groups and launches). Returns the handle, or NULL. */
void *tt_prof_start(struct tt_profiler *profiler, uint32_t mask,
                    ncclProfilerEventDescr_v7_t *descr);
void tt_prof_stop(struct tt_profiler *profiler, void *handle);
/* `args` NULL: the state has none (the plugin gets a zeroed one). */
void tt_prof_state(struct tt_profiler *profiler, void *handle, ncclProfilerEventState_v7_t state,
                   ncclProfilerEventStateArgs_v7_t *args);

/* Coll or P2p of one call of a captured work: started anew, and stopped, whenever the work runs. */
struct tt_prof_replay {
    ncclProfilerEventDescr_v7_t descr; /* but for parentGroup and the number */
    int first_frame, nframes;          /* of the work: those that belong to the call */
    _Atomic uint64_t *sequence;        /* borrowed: where a Coll takes its number from */
};

/* Name of a data type in events: "ncclFloat32"; "Unknown" for those without one. */
const char *tt_prof_type_name(ncclDataType_t type);

/* A network step while the network may report events of its own under it; the address is what
 * isend and irecv get as phandle. */
struct tt_prof_step {
    struct tt_profiler *profiler; /* NULL: no step */
    void *event;                  /* ProxyStep; NULL not tracked */
    uint32_t mask;
};
/* The one function ever handed to networks (ncclProfilerCallback_t). Any thread. */
ncclResult_t tt_prof_net_event(void **handle, int what, void *step, int64_t id, void *data);
