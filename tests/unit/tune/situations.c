/* See situations.h. */
#include "situations.h"

#include "base/param.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t tt_tuner_chunk(struct tt_tuner *tuner, const struct tt_tuner_query *query,
                      const struct tt_tuner_layout *layout, size_t chunk_bytes)
{
    (void)tuner, (void)query, (void)layout;
    return chunk_bytes;
}

ncclResult_t tt_tuner_ask(struct tt_tuner *tuner, const struct tt_tuner_query *query,
                          float table[TT_TUNER_ALGOS][TT_TUNER_PROTOS], int *nchannels_out)
{
    tuner->calls++;
    tuner->asked = *query;
    memcpy(tuner->seen, table, sizeof(tuner->seen));
    for (int k = 0; k < TT_TUNER_ALGOS * TT_TUNER_PROTOS && !isnan(tuner->others); k++) {
        table[k / TT_TUNER_PROTOS][k % TT_TUNER_PROTOS] = tuner->others;
    }
    if (tuner->algo >= 0) table[tuner->algo][tuner->proto] = tuner->value;
    *nchannels_out = tuner->nchannels;
    return tuner->answer;
}

struct tt_tune_env one_host(int nranks)
{
    return (struct tt_tune_env){.nranks = nranks,
                                .nnodes = 1,
                                .ppn = nranks,
                                .nchannels = 4,
                                .ncores = 2,
                                .all_direct = true,
                                .oversubscribed = nranks > 2,
                                .slice_bytes = 65536,
                                .inline_bytes = 32};
}

struct tt_tune_env two_hosts(int nranks)
{
    struct tt_tune_env env = one_host(nranks);
    env.nnodes = 2;
    env.ppn = nranks / 2;
    env.all_direct = false;
    return env;
}

struct tt_tune_query query_of(enum tt_func func, size_t bytes)
{
    return (struct tt_tune_query){
        .func = func, .type = ncclFloat32, .op = ncclSum, .bytes = bytes, .nops = 1};
}

void set_variable(const char *name, const char *value)
{
    if (value) {
        setenv(name, value, 1);
    } else {
        unsetenv(name);
    }
}

void set_lists(const char *algo, const char *proto)
{
    set_variable("NCCL_ALGO", algo);
    set_variable("NCCL_PROTO", proto);
    tt_param_forget();
}

int clear_lists(void **state)
{
    (void)state;
    set_lists(NULL, NULL);
    return 0;
}

struct tt_tune_choice chosen(const struct tt_tune_env *env, const struct tt_tune_query *query,
                             struct tt_tuner *tuner)
{
    struct tt_tune_choice choice;
    assert_int_equal(tt_tune_choose(env, query, tuner, &choice), ncclSuccess);
    bool made = choice.program || choice.algo == TT_ALGO_P2P ||
                tt_program_exists(query->func, choice.algo, choice.proto);
    assert_true(made);
    assert_true(choice.nchannels >= 1 && choice.nchannels <= env->nchannels);
    assert_true(choice.chunk_bytes > 0 && (choice.program || choice.time_usec >= 0));
    return choice;
}
