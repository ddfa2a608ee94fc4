/* What the tests of tt_tune_choose() share: machines, queries, and the plugin, which stands here.
 */
#pragma once

#include "unit/check.h"

#include "plugin/tuner/tuner.h"
#include "tune/tune.h"

struct tt_tuner {
    int calls;
    struct tt_tuner_query asked;
    float seen[TT_TUNER_ALGOS][TT_TUNER_PROTOS];
    ncclResult_t answer;
    int algo, proto; /* entry to set; algo < 0: none */
    float value;
    float others; /* for all other entries, unless NAN */
    int nchannels;
};

/* Ranks of one host with 2 cores, which reach each other's memory. */
struct tt_tune_env one_host(int nranks);
struct tt_tune_env two_hosts(int nranks);
/* One float32 operation. */
struct tt_tune_query query_of(enum tt_func func, size_t bytes);
/* NULL: unset it. */
void set_variable(const char *name, const char *value);
/* NCCL_ALGO and NCCL_PROTO, read anew; NULL: unset. */
void set_lists(const char *algo, const char *proto);
/* The set-up of each test. */
int clear_lists(void **state);
/* What is chosen, which must be possible. */
struct tt_tune_choice chosen(const struct tt_tune_env *env, const struct tt_tune_query *query,
                             struct tt_tuner *tuner);
