/* Programs that were read from files. Of those that name sizes the first one that fits an operation
 * is chosen, because its author said so; the others compete with the library's by their predicted
 * times. */
#include "cost.h"
#include "model.h"

static bool fits(const struct tt_tune_env *env, const struct tt_tune_query *query,
                 const struct tt_tune_lists *lists, const struct tt_tune_program *imported)
{
    const struct tt_program *program = imported->program;
    if (program->func != (int32_t)query->func || program->nranks != env->nranks) return false;
    if (program->root >= 0 && program->root != query->root) return false;
    if (query->bytes < imported->least_bytes || query->bytes > imported->most_bytes) return false;
    if (query->request.most && program->nchannels > query->request.most) return false;
    return lists->proto[query->func][program->proto];
}

/* Whether anything from a file may run it. */
static bool allowed(const struct tt_tune_env *env, const struct tt_tune_query *query,
                    const struct tt_tune_lists *lists)
{
    if (env->nprograms == 0 || tt_tune_lists_restrict(lists->algo[query->func], TT_ALGO_COUNT_))
        return false;
    if (!tt_tune_allows_unnamed(query->request)) return false;
    if (env->deterministic && tt_tune_order_shows(query)) return false;
    return !tt_tune_too_coarse(env, query);
}

const struct tt_tune_program *tt_tune_imported(const struct tt_tune_env *env,
                                               const struct tt_tune_query *query,
                                               const struct tt_tune_lists *lists)
{
    if (!allowed(env, query, lists)) return NULL;
    for (int k = 0; k < env->nprograms; k++) {
        const struct tt_tune_program *program = &env->programs[k];
        if (!program->load && fits(env, query, lists, program)) return program;
    }
    return NULL;
}

const struct tt_tune_program *tt_tune_faster(const struct tt_tune_env *env,
                                             const struct tt_tune_query *query,
                                             const struct tt_tune_lists *lists, double *time_usec)
{
    const struct tt_tune_program *fastest = NULL;
    if (!allowed(env, query, lists)) return NULL;
    for (int k = 0; k < env->nprograms; k++) {
        const struct tt_tune_program *program = &env->programs[k];
        if (!program->load || !fits(env, query, lists, program)) continue;
        double time = tt_tune_predict(env, query, program->program, program->load);
        if (!(time < *time_usec)) continue;
        fastest = program;
        *time_usec = time;
    }
    return fastest;
}
