/* For the race checker: calls of one group. NCCL runs those on one communicator side by side in one
 * kernel, and puts those on several ones on their streams in an order of its own, so that none may
 * use what another one writes; here they may follow each other. */
#include "device/device.h"
#include "exec/exec.h"
#include "plan/launch/batch.h"

struct calls {
    struct tt_item item;
    const struct tt_group_call *first; /* borrowed; by next */
    int rank;
};

static void report_call(const struct tt_task *task, int rank)
{
    struct tt_touched touched = {
        .func = task->func, .root = task->root == rank, .in = task->in, .out = task->out};
    tt_buffer_bytes(task, &touched.in_bytes, &touched.out_bytes);
    tt_touch_buffers(&touched);
}

/* Messages were looked at as one work (exec's): here they are one part. */
static enum tt_step report_calls(struct tt_item *item, enum tt_item_call call)
{
    const struct calls *calls = (const struct calls *)item;
    int part = 1, number = 1;
    for (const struct tt_group_call *node = calls->first; call == TT_ITEM_TOUCH && node;
         node = node->next) {
        tuttiHostTouchPart(tt_func_is_message(node->task.func) ? 0 : part++);
        tuttiHostTouchCall(tt_func_name(node->task.func), number++);
        report_call(&node->task, calls->rank);
    }
    tuttiHostTouchName("a group");
    return TT_STEP_DONE;
}

void tt_group_look(const struct tt_plan *plan, const struct tt_group_call *first,
                   struct CUstream_st *stream)
{
    struct calls calls = {.item = {.step = report_calls, .reports_touches = true},
                          .first = first,
                          .rank = plan->comm->member.rank};
    if (first->next) tuttiHostCheckParts(stream, &calls.item);
}

struct plans {
    struct tt_item item;
    const struct tt_plan *first; /* borrowed; by next_in_group, those on its stream */
};

/* The calls on one communicator are one part: they were looked at already. */
static enum tt_step report_plans(struct tt_item *item, enum tt_item_call call)
{
    const struct tt_plan *first = ((const struct plans *)item)->first;
    int part = 1, number = 1;
    for (const struct tt_plan *plan = first; call == TT_ITEM_TOUCH && plan;
         plan = plan->next_in_group) {
        if (plan->launch.stream != first->launch.stream) continue;
        tuttiHostTouchPart(part++);
        for (const struct tt_group_call *node = plan->first; node; node = node->next) {
            tuttiHostTouchCall(tt_func_name(node->task.func), number++);
            report_call(&node->task, plan->comm->member.rank);
        }
    }
    tuttiHostTouchName("a group");
    return TT_STEP_DONE;
}

void tt_group_look_across(const struct tt_plan *plans)
{
    for (const struct tt_plan *plan = plans; plan; plan = plan->next_in_group) {
        struct plans those = {.item = {.step = report_plans, .reports_touches = true},
                              .first = plan};
        const struct tt_plan *before = plans, *other = plan->next_in_group;
        while (before != plan && before->launch.stream != plan->launch.stream)
            before = before->next_in_group;
        while (other && other->launch.stream != plan->launch.stream)
            other = other->next_in_group;
        if (before == plan && other) tuttiHostCheckParts(plan->launch.stream, &those.item);
    }
}
