/* The launch cache: bound calls by their arguments, and the submission of works to streams. Private
 * to the room; the caller has entered the plan. */
#pragma once

#include "plan/plan_state.h"

/* Index of calls with these arguments in the cache. */
static inline size_t tt_cache_index(size_t count, uint32_t func, uint32_t type, uint32_t op,
                                    uint32_t root)
{
    uint32_t shape = func + type * 16 + op * 256 + root * 4096;
    uint64_t hash = count * 0xd6e8feb86659fd93ull + shape;
    return (hash * 0x9e3779b97f4a7c15ull) >> (64 - TT_CACHE_BITS);
}
struct tt_cache_key tt_cache_key(const struct tt_task *task);
/* The cache entry of calls with that key; *known_out: it holds such a call. Calls with user
 * operators are never cached, as numbers of operators are reused. hot */
struct tt_bound *tt_cache_entry(struct tt_plan *plan, const struct tt_cache_key *key,
                                bool *known_out);
/* Launch the bound call with these buffers: with the work that the entry keeps when that is idle,
 * else with a new one. hot */
ncclResult_t tt_launch_bound(struct tt_plan *plan, struct tt_bound *bound,
                             const struct tt_task *task, struct CUstream_st *stream,
                             bool allow_inline);
/* 0, 1 and 2 stand for a default stream of the current device. */
static inline bool tt_stream_is_default(struct CUstream_st *stream)
{
    return (uintptr_t)stream <= 2;
}
/* The common part of a work's description. */
void tt_launch_spec(struct tt_plan *plan, struct tt_work_spec *spec);
/* Submit a work to a stream of the communicator's device. */
ncclResult_t tt_launch_work(struct tt_plan *plan, struct tt_work *work, struct CUstream_st *stream,
                            bool allow_inline);
/* Make a work and submit it to a stream of the communicator's device; exec frees it. */
ncclResult_t tt_launch_submit(struct tt_plan *plan, const struct tt_work_spec *spec,
                              struct CUstream_st *stream, bool allow_inline);

/* ---- extent.c ---- */

/* True when both buffers end within the allocations that they begin in, as far as the device knows
 * these. Also true for messages, whose buffers are checked elsewhere. */
bool tt_extent_is_live(const struct tt_task *task);
/* The same check, with a message. Errors: ncclInvalidArgument. */
ncclResult_t tt_extent_check(const struct tt_task *task);
/* Note that a call of this kind was checked, with the counter at `frees`. */
void tt_looked_note(struct tt_looked *looked, uint64_t frees);
/* Check a call of this kind again, as memory was freed since. Errors: ncclInvalidArgument. */
ncclResult_t tt_looked_again(struct tt_looked *looked, uint64_t frees, const struct tt_task *task);

/* ---- in_place.c ---- */

/* Whether calls of that function in place copy their input for a program from a file; func < 0: of
 * any. */
bool tt_in_place_copies(const struct tt_plan *plan, int func);
/* Reserve scratch memory for the inputs of a group's AlltoAlls in place; sets `staged` of each call
 * from `first` on. Errors: ncclSystemError (out of memory). */
ncclResult_t tt_in_place_reserve(struct tt_plan *plan, struct tt_group_call *first);
/* Copy the call's input to `staged`, unless that is NULL: on the launch stream, in issue order,
 * just before the call, which reads from there. */
ncclResult_t tt_in_place_stage(struct tt_plan *plan, struct tt_group_call *node,
                               const struct tt_group_launch *launch);
void tt_in_place_fini(struct tt_plan *plan);
