/* See events.h. */
#include "plan/events.h"

#include "plan/plan_state.h"

void tt_events_call(struct tt_plan *plan, struct tt_group_events *events, int depth,
                    struct tt_node *node)
{
    (void)plan, (void)events, (void)depth, (void)node;
}
void tt_events_group_ends(struct tt_group_events *events)
{
    (void)events;
}
void tt_events_group_over(struct tt_group_events *events)
{
    (void)events;
}
void tt_events_collective(struct tt_plan *plan, struct tt_node *node, const struct tt_bound *bound,
                          struct tt_op_events *events)
{
    (void)plan, (void)node, (void)bound, (void)events;
}
void tt_events_messages(struct tt_plan *plan, struct tt_node *first, struct tt_op_events *events)
{
    (void)plan, (void)first, (void)events;
}
void tt_events_launched(struct tt_op_events *events)
{
    (void)events;
}
