/* Bound calls and their way onto streams: the launch cache keeps by a call's shape what was bound
 * for it and a finished work that only gets new buffers. The caller has entered the plan. */
#include "plan/launch/launch_cache.h"

#include "device/device.h"
#include "transport/transport.h"

#include <string.h>

/* ---- the cache ---- */

struct tt_cache_key tt_cache_key(const struct tt_task *task)
{
    struct tt_cache_key key = {.count = task->count,
                               .func = (int32_t)task->func,
                               .type = (int32_t)task->type,
                               .op = (int32_t)task->op,
                               .root = task->root};
    if (task->options) memcpy(&key.request, &task->options->request, sizeof(key.request));
    return key;
}

/* Where calls of that key are bound; *known_out: the last one was. User operators never are, as
 * they come and go under the same number. hot */
struct tt_bound *tt_cache_entry(struct tt_plan *plan, const struct tt_cache_key *key,
                                bool *known_out)
{
    struct tt_bound *bound =
        &plan->cache[tt_cache_index(key->count, (uint32_t)key->func, (uint32_t)key->type,
                                    (uint32_t)key->op, (uint32_t)key->root)];
    const struct tt_cache_key *own = &bound->key;
    *known_out = bound->valid && key->count == own->count && key->func == own->func &&
                 key->type == own->type && key->op == own->op && key->root == own->root &&
                 key->bundle_bytes == own->bundle_bytes && key->nops == own->nops &&
                 key->request == own->request;
    return bound;
}

/* The bound work with these buffers: the cache's own when it is idle, else another. */
ncclResult_t tt_launch_bound(struct tt_plan *plan, struct tt_bound *bound,
                             const struct tt_task *task, struct CUstream_st *stream,
                             bool allow_inline)
{
    if (bound->work && tt_work_rebind(bound->work, task->in, task->out))
        return tt_launch_work(plan, bound->work, stream, allow_inline);
    tt_bound_set_buffers(bound, task);
    return tt_launch_submit(plan, &bound->spec, stream, allow_inline);
}

/* ---- putting a work on a stream ---- */

void tt_launch_spec(struct tt_plan *plan, struct tt_work_spec *spec)
{
    struct tt_comm *comm = plan->comm;
    *spec = (struct tt_work_spec){.member = &comm->member,
                                  .transport = comm->transport,
                                  .queue = comm->queue_used,
                                  .oversubscribed = comm->tune.oversubscribed};
}

/* The default streams are those of the communicator's device, whatever the thread's is. */
ncclResult_t tt_launch_work(struct tt_plan *plan, struct tt_work *work, struct CUstream_st *stream,
                            bool allow_inline)
{
    ncclResult_t rc = ncclSuccess;
    int device = -1, own = plan->comm->member.device;
    if (tt_stream_is_default(stream)) device = tuttiHostGetDevice();
    if (device >= 0 && device != own) tuttiHostSetDevice(own);
    if (!allow_inline || tt_exec_launch(work, stream, &rc) > TT_CLAIM_BUSY)
        rc = tt_exec_submit(work, stream);
    if (device >= 0 && device != own) tuttiHostSetDevice(device);
    return rc;
}

ncclResult_t tt_launch_submit(struct tt_plan *plan, const struct tt_work_spec *spec,
                              struct CUstream_st *stream, bool allow_inline)
{
    struct tt_work *work = NULL;
    ncclResult_t rc = tt_work_create(spec, &work);
    return rc ? rc : tt_launch_work(plan, work, stream, allow_inline);
}
