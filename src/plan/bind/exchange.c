/* Which calls are made of messages, and which messages those are. */
#include "plan/bind/exchange.h"

#include "base/mem.h"
#include "plan/bind/choice.h"
#include "plan/plan_state.h"

/* To choose takes 16,000 instructions, and such calls come again. */
static bool is_of_messages(struct tt_plan *plan, const struct tt_task *task)
{
    struct tt_exchange_choice *latest = &plan->exchanges[task->func - TT_FUNC_ALLTOALL];
    if (task->count && task->count == latest->count && task->type == latest->type &&
        task->root == latest->root && !task->options)
        return latest->of_messages;
    struct tt_tune_choice choice;
    bool messages =
        tt_choice_estimate(plan, task, &choice) == ncclSuccess && choice.algo == TT_ALGO_P2P;
    if (!task->options)
        *latest = (struct tt_exchange_choice){task->count, task->type, task->root, messages};
    return messages;
}

bool tt_messages_expand(struct tt_plan *plan, const struct tt_task *task)
{
    switch (task->func) {
    case TT_FUNC_SEND:
    case TT_FUNC_RECV: return true;
    case TT_FUNC_ALLTOALL:
    case TT_FUNC_GATHER:
    case TT_FUNC_SCATTER: return !plan->comm->tune.all_direct && is_of_messages(plan, task);
    default: return false;
    }
}

struct tt_block_exchange tt_exchange_of(const struct tt_plan *plan, const struct tt_task *task)
{
    bool root = task->root == plan->comm->member.rank;
    bool both = task->func == TT_FUNC_ALLTOALL;
    bool gather = task->func == TT_FUNC_GATHER;
    bool scatter = task->func == TT_FUNC_SCATTER;
    return (struct tt_block_exchange){
        .in = task->in,
        .out = task->out,
        .bytes = task->count * tt_type_bytes(task->type),
        .to_all = both || (scatter && root),
        .from_all = both || (gather && root),
        .to_root = gather ? task->root : -1,
        .from_root = scatter ? task->root : -1,
    };
}
