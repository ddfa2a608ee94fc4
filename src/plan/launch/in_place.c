/* AlltoAll in place: peers still read blocks that others already write, so the input is copied into
 * scratch memory first and the operation reads from there. So is the input of a call in place whose
 * function has a program from a file that is right out of place alone, whatever runs it. The
 * communicator's order runs the copy after whatever used the scratch before; blocks are kept until
 * the end, for captured works. */
#include "base/error.h"
#include "base/mem.h"
#include "comm/comm.h"
#include "device/device.h"
#include "plan/launch/launch_cache.h"
#include "plan/plan_state.h"

#include <stdlib.h>

#define SCRATCH_GRAIN_BYTES ((size_t)1 << 20)

struct tt_scratch {
    struct tt_scratch *older;
    char *memory; /* owned, on the communicator's device: peers can address it */
    size_t bytes;
};

bool tt_in_place_copies(const struct tt_plan *plan, int func)
{
    const struct tt_tune_env *env = &plan->comm->tune;
    bool copies = false;
    for (int k = 0; k < env->nprograms; k++) {
        const struct tt_tune_program *program = &env->programs[k];
        copies = copies || (program->copies && (func < 0 || program->program->func == func));
    }
    return copies;
}

static size_t staged_bytes(const struct tt_plan *plan, const struct tt_group_call *node)
{
    size_t in_bytes, out_bytes;
    const struct tt_task *task = &node->task;
    bool alltoall = task->func == TT_FUNC_ALLTOALL;
    if (alltoall ? task->in != task->out : !tt_in_place_copies(plan, (int)task->func)) return 0;
    tt_buffer_bytes(task, &in_bytes, &out_bytes);
    const char *in = task->in, *out = task->out;
    if (!alltoall && (in >= out + out_bytes || out >= in + in_bytes)) return 0;
    return tt_round_up(in_bytes, TT_LINE_BYTES);
}

/* The newest block when it is large enough, else a new one of at least twice its size. */
static ncclResult_t reserve(struct tt_plan *plan, size_t bytes)
{
    struct tt_scratch *newest = plan->scratch;
    if (newest && newest->bytes >= bytes) return ncclSuccess;
    struct tt_scratch *block = tt_calloc(1, sizeof(*block));
    if (!block) return tt_fail(ncclSystemError, "scratch: out of memory");
    size_t twice = newest ? 2 * newest->bytes : 0;
    block->bytes = tt_round_up(tt_max_size(bytes, twice), SCRATCH_GRAIN_BYTES);
    void *memory = NULL;
    int code = tuttiHostMalloc(plan->comm->member.device, block->bytes, &memory);
    if (code) {
        size_t wanted = block->bytes;
        free(block);
        return tt_fail(
            ncclUnhandledCudaError,
            "rank %d: no %zu bytes of device memory for the input of a call in place (code %d)",
            plan->comm->member.rank, wanted, code);
    }
    block->memory = memory;
    if (tuttiHostChecks()) tuttiHostTouchNever(memory); /* the queue orders its uses, not streams */
    block->older = newest;
    plan->scratch = block;
    return ncclSuccess;
}

ncclResult_t tt_in_place_reserve(struct tt_plan *plan, struct tt_group_call *first)
{
    size_t bytes = 0;
    for (const struct tt_group_call *node = first; node; node = node->next) {
        bytes += staged_bytes(plan, node);
    }
    if (bytes == 0) return ncclSuccess;
    ncclResult_t rc = reserve(plan, bytes);
    char *to = rc ? NULL : plan->scratch->memory;
    for (struct tt_group_call *node = first; node && !rc; node = node->next) {
        size_t own = staged_bytes(plan, node);
        if (own) node->staged = to;
        to += own;
    }
    return rc;
}

ncclResult_t tt_in_place_stage(struct tt_plan *plan, struct tt_group_call *node,
                               const struct tt_group_launch *launch)
{
    if (!node->staged) return ncclSuccess;
    struct tt_frame frame = {.program = plan->local,
                             .reduction = {.type = ncclInt8, .op = ncclSum},
                             .in = node->task.in,
                             .out = node->staged,
                             .elem_bytes = 1,
                             .call.func = (uint8_t)node->task.func,
                             .conn = TT_CONN_P2P}; /* not an operation that all ranks count */
    size_t out_bytes;
    tt_buffer_bytes(&node->task, &frame.in_bytes, &out_bytes);
    frame.out_bytes = frame.in_bytes;
    tt_geometry_init(&frame.geometry, plan->local, frame.in_bytes,
                     (struct tt_extent){0, frame.in_bytes}, SIZE_MAX, 1);
    struct tt_work_spec spec;
    tt_launch_spec(plan, &spec);
    spec.frames = &frame;
    spec.nframes = 1;
    spec.captured = launch->captured;
    if (launch->captured) spec.graph_refs = &plan->comm->graph_refs;
    node->task.in = node->staged;
    return tt_launch_submit(plan, &spec, launch->stream, launch->allow_inline);
}

void tt_in_place_fini(struct tt_plan *plan)
{
    while (plan->scratch) {
        struct tt_scratch *block = plan->scratch;
        plan->scratch = block->older;
        tuttiHostFree(block->memory);
        free(block);
    }
}
