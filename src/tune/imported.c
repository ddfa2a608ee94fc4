/* Programs that were read from files. Of those that `tutti tune` has measured here the one runs
 * that was fastest in comparison with what the library chose by itself, and none where it was not
 * faster. Of the others that name sizes the first one that fits an operation is chosen, because its
 * author said so; those without sizes compete with the library's by their predicted times. */
#include "cost.h"
#include "model.h"

#include "tune/host.h"

#include <math.h>

/* Of the library's own time: less is noise. */
static const double faster_ratio = 0.95;

/* A file's root is rank 0. Another one may take its place where all ranks are equal: on one host,
 * or each on its own. */
static bool has_root(const struct tt_tune_env *env, const struct tt_tune_query *query,
                     const struct tt_tune_program *imported)
{
    const bool equal = !env->gpu && (env->nnodes == 1 || env->ppn == 1);
    if (imported->program->root < 0 || imported->program->root == query->root) return true;
    return imported->turns && equal;
}

static bool fits(const struct tt_tune_env *env, const struct tt_tune_query *query,
                 const struct tt_tune_lists *lists, const struct tt_tune_program *imported)
{
    const struct tt_program *program = imported->program;
    if (program->func != (int32_t)query->func || program->nranks != env->nranks) return false;
    if (!has_root(env, query, imported)) return false;
    if (query->bytes < imported->least_bytes || query->bytes > imported->most_bytes) return false;
    if (query->request.most && program->nchannels > query->request.most) return false;
    return lists->proto[query->func][program->proto];
}

/* The measured time of a program in that of the library's own choice, at the sizes around the
 * operation's: the worse. Infinite beyond them; 0: it was not measured, or not in this situation.
 */
static double measured_ratio(const struct tt_tune_env *env, const struct tt_tune_query *query,
                             const struct tt_tune_program *imported)
{
    const struct tt_tune_host *host = env->host;
    const struct tt_tune_measured *below = NULL, *above = NULL;
    bool measured = false;
    if (!host || env->gpu || env->nnodes > 1 || imported->forced) return 0;
    for (uint64_t k = 0; k < host->nmeasured; k++) {
        const struct tt_tune_measured *row = &host->measured[k];
        if (row->hash != imported->hash) continue;
        measured = true;
        if (row->bytes <= query->bytes && (!below || row->bytes > below->bytes)) below = row;
        if (row->bytes >= query->bytes && (!above || row->bytes < above->bytes)) above = row;
    }
    if (!measured) return 0;
    if (!below || !above) return HUGE_VAL;
    double small = below->usec / below->own_usec, large = above->usec / above->own_usec;
    return small > large ? small : large;
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
        if (program->load || measured_ratio(env, query, program) > 0) continue;
        if (fits(env, query, lists, program)) return program;
    }
    return NULL;
}

const struct tt_tune_program *tt_tune_faster(const struct tt_tune_env *env,
                                             const struct tt_tune_query *query,
                                             const struct tt_tune_lists *lists, double *time_usec,
                                             bool *measured_out)
{
    const struct tt_tune_program *fastest = NULL;
    double least = faster_ratio;
    *measured_out = false;
    if (!allowed(env, query, lists)) return NULL;
    for (int k = 0; *time_usec > 0 && k < env->nprograms; k++) {
        double ratio = measured_ratio(env, query, &env->programs[k]);
        if (!(ratio > 0 && ratio < least) || !fits(env, query, lists, &env->programs[k])) continue;
        fastest = &env->programs[k];
        least = ratio;
    }
    if (fastest) {
        *time_usec *= least;
        *measured_out = true;
        return fastest;
    }
    for (int k = 0; k < env->nprograms; k++) {
        const struct tt_tune_program *program = &env->programs[k];
        if (!program->load || measured_ratio(env, query, program) > 0) continue;
        if (!fits(env, query, lists, program)) continue;
        double time = tt_tune_predict(env, query, program->program, program->load);
        if (!(time < *time_usec)) continue;
        fastest = program;
        *time_usec = time;
    }
    return fastest;
}
