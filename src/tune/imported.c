/* Programs that were read from files: the first one that fits an operation is chosen, because the
 * user put it there; nothing is predicted for it. */
#include "cost.h"
#include "model.h"

static bool fits(const struct tt_tune_env *env, const struct tt_tune_query *query,
                 const struct tt_tune_lists *lists, const struct tt_tune_program *imported)
{
    const struct tt_program *program = imported->program;
    if (program->func != (int32_t)query->func || program->nranks != env->nranks) return false;
    if (program->root >= 0 && program->root != query->root) return false;
    if (query->bytes < imported->least_bytes || query->bytes > imported->most_bytes) return false;
    if (query->wish.most && program->nchannels > query->wish.most) return false;
    return lists->proto[query->func][program->proto];
}

const struct tt_tune_program *tt_tune_imported(const struct tt_tune_env *env,
                                               const struct tt_tune_query *query,
                                               const struct tt_tune_lists *lists)
{
    if (env->nprograms == 0 || tt_tune_lists_restrict(lists->algo[query->func], TT_ALGO_COUNT_))
        return NULL;
    if (!tt_tune_allows_unnamed(query->wish)) return NULL;
    if (env->deterministic && tt_tune_order_shows(query)) return NULL;
    if (tt_tune_too_coarse(env, query)) return NULL;
    for (int k = 0; k < env->nprograms; k++) {
        if (fits(env, query, lists, &env->programs[k])) return &env->programs[k];
    }
    return NULL;
}
