/* What is chosen for a call: alone, or together with others of its group. A tuner plugin is asked
 * once for calls of one function, operator, type and selection whose sizes are within a factor of
 * four, as NCCL bundles them; so is the model of a machine that the devices emulate. Flat hosts
 * choose for each call, whatever stands beside it. */
#include "plan/bind/choice.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"
#include "mem/mem.h"
#include "plan/plan_state.h"

#include <stdlib.h>
#include <string.h>

enum { BUNDLE_FACTOR = 4 };

static bool is_registered(const struct tt_plan *plan, const struct tt_task *task)
{
    struct tt_registry *registry = plan->comm->registry;
    size_t in_bytes, out_bytes;
    if (!registry) return false;
    tt_buffer_bytes(task, &in_bytes, &out_bytes);
    return tt_registry_covers(registry, task->in, in_bytes) &&
           tt_registry_covers(registry, task->out, out_bytes);
}

static struct tt_tune_query query_of(const struct tt_task *task)
{
    return (struct tt_tune_query){.func = task->func,
                                  .type = task->type,
                                  .op = task->op,
                                  .bytes = tt_operation_bytes(task),
                                  .nops = 1,
                                  .root = task->root,
                                  .request = task->options ? task->options->request
                                                           : (struct tt_tune_request){0}};
}

ncclResult_t tt_choice_call(struct tt_plan *plan, const struct tt_group_call *node,
                            const struct tt_group_launch *launch, struct tt_tune_choice *choice_out)
{
    struct tt_comm *comm = plan->comm;
    struct tt_tune_query query = query_of(&node->task);
    if (node->bundle_bytes) {
        *choice_out = node->choice;
        return ncclSuccess;
    }
    if (comm->tuner) query.registered = launch->registers || is_registered(plan, &node->task);
    return tt_tune_choose(&comm->tune, &query, comm->tuner, choice_out);
}

ncclResult_t tt_choice_estimate(const struct tt_plan *plan, const struct tt_task *task,
                                struct tt_tune_choice *choice_out)
{
    const struct tt_tune_query query = query_of(task);
    return tt_tune_choose(&plan->comm->tune, &query, NULL, choice_out);
}

/* ---- bundles ---- */

static bool is_tuned(const struct tt_group_call *node)
{
    return node->task.func <= TT_FUNC_ALLREDUCE && node->task.count > 0;
}

static int order_of_kinds(const struct tt_task *a, const struct tt_task *b)
{
    if (a->func != b->func) return a->func < b->func ? -1 : 1;
    if (a->op != b->op) return a->op < b->op ? -1 : 1;
    if (a->type != b->type) return a->type < b->type ? -1 : 1;
    const struct tt_tune_request none = {0};
    return memcmp(a->options ? &a->options->request : &none,
                  b->options ? &b->options->request : &none, sizeof(none));
}

static int by_kind_and_bytes(const void *left, const void *right)
{
    const struct tt_task *a = &(*(struct tt_group_call *const *)left)->task;
    const struct tt_task *b = &(*(struct tt_group_call *const *)right)->task;
    int order = order_of_kinds(a, b);
    size_t a_bytes = tt_operation_bytes(a), b_bytes = tt_operation_bytes(b);
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* How many of the sorted calls go with the first. */
static size_t bundle_length(struct tt_group_call *const *nodes, size_t count)
{
    size_t most = BUNDLE_FACTOR * tt_operation_bytes(&nodes[0]->task), n = 1;
    while (n < count && order_of_kinds(&nodes[n]->task, &nodes[0]->task) == 0 &&
           tt_operation_bytes(&nodes[n]->task) < most)
        n++;
    return n;
}

static ncclResult_t choose_together(struct tt_plan *plan, struct tt_group_call *const *nodes,
                                    size_t count, const struct tt_group_launch *launch)
{
    struct tt_comm *comm = plan->comm;
    struct tt_tune_query query = query_of(&nodes[0]->task);
    struct tt_tune_choice choice;
    int nchannels = comm->tune.nchannels > 0 ? comm->tune.nchannels : 1;
    query.nops = (launch->ncollectives + nchannels - 1) / nchannels;
    query.registered = comm->tuner != NULL;
    query.bytes = 0;
    for (size_t i = 0; i < count; i++) {
        query.bytes += tt_operation_bytes(&nodes[i]->task);
        if (query.registered && !launch->registers)
            query.registered = is_registered(plan, &nodes[i]->task);
    }
    ncclResult_t rc = tt_tune_choose(&comm->tune, &query, comm->tuner, &choice);
    for (size_t i = 0; i < count && !rc; i++) {
        const struct tt_program *imported = choice.program ? choice.program->program : NULL;
        /* a program from a file has a root of its own: calls with another one choose alone */
        if (imported && imported->root >= 0 && imported->root != nodes[i]->task.root) continue;
        nodes[i]->choice = choice;
        nodes[i]->bundle_bytes = query.bytes;
        nodes[i]->nops = query.nops;
    }
    return rc;
}

ncclResult_t tt_choice_group(struct tt_plan *plan, struct tt_group_call *first,
                             const struct tt_group_launch *launch)
{
    size_t count = 0;
    if (launch->ncollectives < 2 || !(plan->comm->tuner || plan->comm->gpu)) return ncclSuccess;
    struct tt_group_call **nodes =
        tt_calloc((size_t)launch->ncollectives, sizeof(struct tt_group_call *));
    if (!nodes) {
        return tt_fail(ncclSystemError, "rank %d: out of memory for a group of %d calls",
                       plan->comm->member.rank, launch->ncollectives);
    }
    for (struct tt_group_call *node = first; node; node = node->next) {
        if (is_tuned(node)) nodes[count++] = node;
    }
    if (count) qsort(nodes, count, sizeof(struct tt_group_call *), by_kind_and_bytes);
    ncclResult_t rc = ncclSuccess;
    for (size_t at = 0, n = 0; at < count && !rc; at += n) {
        n = bundle_length(nodes + at, count - at);
        rc = choose_together(plan, nodes + at, n, launch);
    }
    free(nodes);
    return rc;
}
