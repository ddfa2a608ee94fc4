/* For the race checker: calls of one group on one communicator. NCCL runs them side by side in one
 * kernel, so that none may use what another one writes; here they may follow each other. */
#include "device/device.h"
#include "exec/exec.h"
#include "plan/batch.h"

struct calls {
    struct tt_item item;
    const struct tt_group_call *first; /* borrowed; by next */
    int rank;
};

/* Messages were looked at as one work (exec's): here they are one part. */
static enum tt_step tell_calls(struct tt_item *item, enum tt_item_call call)
{
    const struct calls *calls = (const struct calls *)item;
    int part = 1;
    for (const struct tt_group_call *node = calls->first; call == TT_ITEM_TOUCH && node;
         node = node->next) {
        const struct tt_task *task = &node->task;
        struct tt_touched touched = {.func = task->func,
                                     .root = task->root == calls->rank,
                                     .in = task->in,
                                     .out = task->out};
        tt_buffer_bytes(task, &touched.in_bytes, &touched.out_bytes);
        tuttiHostTouchPart(tt_func_is_message(task->func) ? 0 : part++);
        tt_touch_buffers(&touched);
    }
    tuttiHostTouchName("a group");
    return TT_STEP_DONE;
}

void tt_group_look(const struct tt_plan *plan, const struct tt_group_call *first,
                   struct CUstream_st *stream)
{
    struct calls calls = {.item = {.step = tell_calls, .tells_touches = true},
                          .first = first,
                          .rank = plan->comm->member.rank};
    if (first->next) tuttiHostCheckParts(stream, &calls.item);
}
