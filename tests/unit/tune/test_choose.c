/* What is chosen, by size, by variable and by plugin. The plugin stands in this file. */
#include "unit/check.h"

#include "base/mem.h"
#include "base/param.h"
#include "plugin/tuner.h"
#include "tune/model.h"
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the plugin ---- */

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

/* ---- situations ---- */

static struct tt_tune_env one_host(int nranks)
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

static struct tt_tune_env two_hosts(int nranks)
{
    struct tt_tune_env env = one_host(nranks);
    env.nnodes = 2;
    env.ppn = nranks / 2;
    env.all_direct = false;
    return env;
}

static struct tt_tune_query query_of(enum tt_func func, size_t bytes)
{
    return (struct tt_tune_query){
        .func = func, .type = ncclFloat32, .op = ncclSum, .bytes = bytes, .nops = 1};
}

static void set_variable(const char *name, const char *value)
{
    if (value) {
        setenv(name, value, 1);
    } else {
        unsetenv(name);
    }
}

static void set_lists(const char *algo, const char *proto)
{
    set_variable("NCCL_ALGO", algo);
    set_variable("NCCL_PROTO", proto);
    tt_param_forget();
}

static int clear_lists(void **state)
{
    (void)state;
    set_lists(NULL, NULL);
    return 0;
}

static struct tt_tune_choice chosen(const struct tt_tune_env *env,
                                    const struct tt_tune_query *query, struct tt_tuner *tuner)
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

/* ---- own choice ---- */

static void small_goes_through_slots(void **state)
{
    (void)state;
    static const enum tt_func funcs[] = {TT_FUNC_ALLREDUCE, TT_FUNC_BROADCAST,     TT_FUNC_REDUCE,
                                         TT_FUNC_ALLGATHER, TT_FUNC_REDUCESCATTER, TT_FUNC_ALLTOALL,
                                         TT_FUNC_GATHER,    TT_FUNC_SCATTER};
    static const int sizes[] = {2, 4, 8};
    for (size_t f = 0; f < sizeof(funcs) / sizeof(funcs[0]); f++) {
        for (size_t s = 0; s < 3; s++) {
            struct tt_tune_env env = one_host(sizes[s]);
            struct tt_tune_query small = query_of(funcs[f], 8 * (size_t)sizes[s]);
            struct tt_tune_query large = query_of(funcs[f], 16u << 20);
            assert_int_equal(chosen(&env, &small, NULL).algo, TT_ALGO_ONESHOT);
            assert_int_equal(chosen(&env, &large, NULL).algo, TT_ALGO_DIRECT);
            assert_int_equal(chosen(&env, &large, NULL).nchannels, 1);
        }
    }
}

/* Largest size, by powers of two, that still goes through slots. */
static size_t threshold(enum tt_func func, int nranks)
{
    struct tt_tune_env env = one_host(nranks);
    size_t bytes = 8;
    for (;; bytes *= 2) {
        struct tt_tune_query query = query_of(func, bytes);
        if (chosen(&env, &query, NULL).algo != TT_ALGO_ONESHOT) return bytes / 2;
    }
}

static void fewer_phases_win_longer_when_oversubscribed(void **state)
{
    (void)state;
    assert_in_range(threshold(TT_FUNC_ALLREDUCE, 2), 2048, 8192);
    assert_in_range(threshold(TT_FUNC_ALLREDUCE, 4), 2048, 8192);
    assert_in_range(threshold(TT_FUNC_ALLREDUCE, 8), 1024, 4096);
    assert_true(threshold(TT_FUNC_ALLGATHER, 4) > threshold(TT_FUNC_ALLGATHER, 2));
    assert_true(threshold(TT_FUNC_REDUCE, 4) > threshold(TT_FUNC_REDUCE, 2));
}

static void hosts_use_rings_and_trees(void **state)
{
    (void)state;
    struct tt_tune_env env = two_hosts(8);
    struct tt_tune_query large = query_of(TT_FUNC_ALLREDUCE, 64u << 20);
    struct tt_tune_choice choice = chosen(&env, &large, NULL);
    assert_true(choice.algo == TT_ALGO_RING || choice.algo == TT_ALGO_TREE);
    assert_int_equal(choice.proto, TT_PROTO_SIMPLE);
    assert_int_equal(choice.nchannels, 4);
    assert_true(choice.chunk_bytes <= 7 * env.slice_bytes);
    struct tt_tune_query gather = query_of(TT_FUNC_ALLGATHER, 64u << 20);
    assert_int_equal(chosen(&env, &gather, NULL).algo, TT_ALGO_RING);
    struct tt_tune_query all = query_of(TT_FUNC_ALLTOALL, 64u << 20);
    assert_int_equal(chosen(&env, &all, NULL).algo, TT_ALGO_P2P);
}

/* Several ranks on a host: reduced inside first, unless order must not show. */
static void hosts_are_hierarchical(void **state)
{
    (void)state;
    static const enum tt_func funcs[] = {TT_FUNC_ALLREDUCE, TT_FUNC_ALLGATHER,
                                         TT_FUNC_REDUCESCATTER, TT_FUNC_BROADCAST, TT_FUNC_REDUCE};
    struct tt_tune_env env = two_hosts(8);
    struct tt_tune_choice choice;
    for (size_t f = 0; f < sizeof(funcs) / sizeof(funcs[0]); f++) {
        struct tt_tune_query large = query_of(funcs[f], 64u << 20);
        env.least_local = 4;
        print_message("case: %s\n", tt_func_name(funcs[f]));
        assert_int_equal(chosen(&env, &large, NULL).algo, TT_ALGO_HIERARCHICAL);
        env.deterministic = true;
        bool sums = funcs[f] != TT_FUNC_ALLGATHER && funcs[f] != TT_FUNC_BROADCAST;
        assert_int_equal(chosen(&env, &large, NULL).algo,
                         sums ? TT_ALGO_ONESHOT : TT_ALGO_HIERARCHICAL);
        env = two_hosts(8);
        env.least_local = 3; /* a block for each rank cannot be dealt out to rails */
        bool blocks = funcs[f] == TT_FUNC_ALLGATHER || funcs[f] == TT_FUNC_REDUCESCATTER;
        assert_int_equal(chosen(&env, &large, NULL).algo == TT_ALGO_HIERARCHICAL, !blocks);
        if (!blocks) assert_int_equal(chosen(&env, &large, NULL).proto, TT_PROTO_SIMPLE);
        env.least_local = 0; /* not known */
        assert_int_not_equal(chosen(&env, &large, NULL).algo, TT_ALGO_HIERARCHICAL);
    }
    set_lists("allreduce:Hierarchical", NULL);
    struct tt_tune_query query = query_of(TT_FUNC_ALLREDUCE, 4096);
    assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice), ncclInvalidUsage);
}

/* What a list names, it gets, where these ranks can run it; nothing else is ever made of them. */
static void multicast_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        enum tt_algo algo;
        bool one_host;
    } cases[] = {
        {"NVLS", TT_ALGO_NVLS, true},
        {"allreduce:nvls", TT_ALGO_NVLS, true},
        {"NVLSTree", TT_ALGO_NVLS_TREE, false},
        {"allreduce:^Ring,Tree,NVLS,CollNetDirect,CollNetChain,PAT,Direct,OneShot,Doubling,"
         "Halving,Hierarchical",
         TT_ALGO_NVLS_TREE, false}};
    for (size_t k = 0; k < 2 * sizeof(cases) / sizeof(cases[0]); k++) {
        bool one = k % 2;
        struct tt_tune_env env = one ? one_host(4) : two_hosts(8);
        struct tt_tune_choice choice;
        struct tt_tune_query query = query_of(TT_FUNC_ALLREDUCE, 1u << 20);
        bool runs = cases[k / 2].one_host == one;
        print_message("case: %s, %s\n", cases[k / 2].list, one ? "one host" : "two hosts");
        env.least_local = 4;
        set_lists(NULL, NULL);
        assert_int_not_equal(chosen(&env, &query, NULL).algo, cases[k / 2].algo);
        set_lists(cases[k / 2].list, NULL);
        assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice),
                         runs ? ncclSuccess : ncclInvalidUsage);
        if (runs) assert_int_equal(choice.algo, cases[k / 2].algo);
        env.least_local = 3; /* uneven hosts have none of what is between hosts */
        if (!one) assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice), ncclInvalidUsage);
    }
    set_lists(NULL, NULL);
}

/* Recursive doubling and halving are for hosts with one rank; partners may keep different zeros of
 * a minimum. */
static void single_ranks_halve_and_double(void **state)
{
    (void)state;
    struct tt_tune_env env = two_hosts(8);
    bool doubles = false, halves = false;
    env.nnodes = 8;
    env.ppn = env.least_local = 1;
    env.oversubscribed = false;
    for (size_t bytes = 8; bytes <= 64u << 20; bytes *= 2) {
        struct tt_tune_query query = query_of(TT_FUNC_ALLREDUCE, bytes);
        enum tt_algo algo = chosen(&env, &query, NULL).algo;
        doubles |= algo == TT_ALGO_DOUBLING;
        halves |= algo == TT_ALGO_HALVING;
        query.op = ncclMin;
        assert_int_not_equal(chosen(&env, &query, NULL).algo, TT_ALGO_DOUBLING);
    }
    assert_true(doubles && halves);
}

static void messages_are_messages(void **state)
{
    (void)state;
    struct tt_tune_env env = one_host(2);
    struct tt_tune_query zero = query_of(TT_FUNC_SEND, 0);
    assert_int_equal(chosen(&env, &zero, NULL).algo, TT_ALGO_P2P);
    struct tt_tune_query large = query_of(TT_FUNC_RECV, 1u << 30);
    assert_int_equal(chosen(&env, &large, NULL).algo, TT_ALGO_P2P);
}

static void deterministic_avoids_rings(void **state)
{
    (void)state;
    struct tt_tune_env env = two_hosts(8);
    env.deterministic = true;
    struct tt_tune_query query = query_of(TT_FUNC_ALLREDUCE, 64u << 20);
    assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_ONESHOT);
    query.op = ncclMax;
    assert_int_not_equal(chosen(&env, &query, NULL).algo, TT_ALGO_ONESHOT);
    query = query_of(TT_FUNC_ALLREDUCE, 64u << 20);
    query.type = ncclInt32;
    assert_int_not_equal(chosen(&env, &query, NULL).algo, TT_ALGO_ONESHOT);
    set_lists("Ring", NULL);
    query.type = ncclFloat32;
    struct tt_tune_choice choice;
    assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice), ncclInvalidUsage);
}

/* ---- variables ---- */

static void forced_programs_run(void **state)
{
    (void)state;
    static const struct {
        const char *algo, *proto;
        enum tt_algo want_algo;
        int want_proto; /* -1: any */
    } cases[] = {
        {"Ring", NULL, TT_ALGO_RING, -1},
        {"RING", "LL", TT_ALGO_RING, TT_PROTO_LL},
        {"tree", "ll128", TT_ALGO_TREE, TT_PROTO_LL128},
        {"Tree", "Simple", TT_ALGO_TREE, TT_PROTO_SIMPLE},
        {"^Direct,OneShot,Tree", NULL, TT_ALGO_RING, -1},
        {"direct", NULL, TT_ALGO_DIRECT, TT_PROTO_SIMPLE},
        {"OneShot", NULL, TT_ALGO_ONESHOT, TT_PROTO_LL},
        {"Ring;allreduce:Tree", "^LL128;allreduce:LL128", TT_ALGO_TREE, TT_PROTO_LL128},
        {"broadcast:ring;allreduce:^ring,direct,oneshot", NULL, TT_ALGO_TREE, -1},
        {"Ring,Tree", "^LL,LL128", TT_ALGO_RING, TT_PROTO_SIMPLE},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        print_message("case: %s %s\n", cases[k].algo, cases[k].proto ? cases[k].proto : "");
        set_lists(cases[k].algo, cases[k].proto);
        struct tt_tune_env env = one_host(4);
        for (size_t bytes = 8; bytes <= 64u << 20; bytes *= 64) {
            struct tt_tune_query query = query_of(TT_FUNC_ALLREDUCE, bytes);
            struct tt_tune_choice choice = chosen(&env, &query, NULL);
            assert_int_equal(choice.algo, cases[k].want_algo);
            if (cases[k].want_proto >= 0) assert_int_equal(choice.proto, cases[k].want_proto);
        }
    }
}

/* What becomes of PAT on 16 hosts with one rank each (spread), or two hosts with 8. */
static void check_pat(enum tt_func func, char wish, bool spread)
{
    struct tt_tune_env env = two_hosts(16);
    struct tt_tune_query large = query_of(func, 1u << 30);
    struct tt_tune_choice choice;
    bool wins = false;
    if (spread) env.nnodes = 16;
    if (spread) env.ppn = 1;
    if (spread) env.oversubscribed = false;
    set_variable("NCCL_PAT_ENABLE", (const char[]){wish, '\0'});
    set_lists("^OneShot", NULL); /* which one phase favours where all are apart */
    print_message("%s, NCCL_PAT_ENABLE=%c, %d rank(s) a host\n", tt_func_name(func), wish, env.ppn);
    for (size_t bytes = 16; bytes <= 1u << 30; bytes *= 2) {
        struct tt_tune_query query = query_of(func, bytes);
        wins |= chosen(&env, &query, NULL).algo == TT_ALGO_PAT;
    }
    assert_int_equal(wins, wish == '1' || (wish == '2' && spread));
    assert_int_equal(chosen(&env, &large, NULL).algo, TT_ALGO_RING);
    set_lists("PAT", NULL);
    bool named = tt_tune_choose(&env, &large, NULL, &choice) == ncclSuccess;
    assert_int_equal(named, wish != '0');
    if (named) assert_int_equal(choice.algo, TT_ALGO_PAT);
    env.deterministic = true;
    named = tt_tune_choose(&env, &large, NULL, &choice) == ncclSuccess;
    assert_int_equal(named, wish != '0' && func == TT_FUNC_ALLGATHER);
}

static void pat_is_for_one_rank_per_host(void **state)
{
    (void)state;
    for (char wish = '0'; wish <= '2'; wish++) {
        for (int spread = 0; spread < 2; spread++) {
            check_pat(TT_FUNC_ALLGATHER, wish, spread);
            check_pat(TT_FUNC_REDUCESCATTER, wish, spread);
        }
    }
    set_variable("NCCL_PAT_ENABLE", NULL);
    set_lists(NULL, NULL);
}

static void lists_are_about_tuned_collectives(void **state)
{
    (void)state;
    struct tt_tune_env env = one_host(4);
    set_lists("Ring", "Simple");
    struct tt_tune_query all = query_of(TT_FUNC_ALLTOALL, 64);
    assert_int_equal(chosen(&env, &all, NULL).algo, TT_ALGO_ONESHOT);
    set_lists("Ring;alltoall:direct", NULL);
    assert_int_equal(chosen(&env, &all, NULL).algo, TT_ALGO_DIRECT);
}

static void bad_lists_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *algo, *proto;
    } cases[] = {
        {"Rings", NULL},     {"Ring,", NULL},      {"^", NULL},         {"allreduc:Ring", NULL},
        {"Ring;Tree", NULL}, {NULL, "LL256"},      {NULL, "LL;Simple"}, {"allreduce:", NULL},
        {"Ring Tree", NULL}, {NULL, "allreduce:"},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        print_message("case: %s %s\n", cases[k].algo ? cases[k].algo : "",
                      cases[k].proto ? cases[k].proto : "");
        set_lists(cases[k].algo, cases[k].proto);
        assert_int_equal(tt_tune_check(), ncclInvalidUsage);
    }
    set_lists("", "");
    assert_int_equal(tt_tune_check(), ncclSuccess);
}

static void nothing_left_is_reported(void **state)
{
    (void)state;
    struct tt_tune_env env = one_host(4);
    struct tt_tune_choice choice;
    struct tt_tune_query query = query_of(TT_FUNC_ALLGATHER, 1024);
    set_lists("Tree", NULL);
    assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice), ncclInvalidUsage);
    set_lists("NVLSTree", NULL);
    assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice), ncclInvalidUsage);
    set_lists("Direct", "LL");
    assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice), ncclInvalidUsage);
    set_lists("Direct", NULL);
    env.all_direct = false;
    assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice), ncclInvalidUsage);
}

/* ---- plugin ---- */

static struct tt_tuner silent(void)
{
    return (struct tt_tuner){.algo = -1, .others = NAN};
}

static void a_preferred_entry_wins(void **state)
{
    (void)state;
    struct tt_tune_env env = one_host(4);
    for (size_t bytes = 8; bytes <= 64u << 20; bytes *= 64) {
        struct tt_tune_query query = query_of(TT_FUNC_ALLREDUCE, bytes);
        struct tt_tuner tuner = silent();
        tuner.algo = TT_ALGO_TREE;
        tuner.proto = TT_PROTO_LL;
        tuner.nchannels = 3;
        struct tt_tune_choice choice = chosen(&env, &query, &tuner);
        assert_int_equal(choice.algo, TT_ALGO_TREE);
        assert_int_equal(choice.proto, TT_PROTO_LL);
        assert_int_equal(choice.nchannels, 3);
        assert_int_equal(tuner.asked.bytes, bytes);
        assert_int_equal(tuner.asked.func, 4);
        assert_true(tuner.seen[TT_ALGO_RING][TT_PROTO_LL] > 0);
        assert_true(tuner.seen[TT_ALGO_NVLS][TT_PROTO_SIMPLE] > 0);
        assert_true(tuner.seen[TT_ALGO_NVLS_TREE][TT_PROTO_SIMPLE] < 0); /* one host */
    }
}

static void a_silent_plugin_changes_nothing(void **state)
{
    (void)state;
    struct tt_tune_env env = one_host(4);
    struct tt_tune_query query = query_of(TT_FUNC_ALLREDUCE, 1u << 20);
    struct tt_tuner tuner = silent();
    assert_int_equal(chosen(&env, &query, &tuner).algo, TT_ALGO_DIRECT);
    assert_int_equal(tuner.calls, 1);
}

static void nonsense_is_not_obeyed(void **state)
{
    (void)state;
    struct tt_tune_env env = one_host(4);
    struct tt_tune_query query = query_of(TT_FUNC_ALLGATHER, 1u << 20);
    struct tt_tuner reviver = silent(); /* prefers what was impossible */
    reviver.algo = TT_ALGO_TREE;
    assert_int_equal(chosen(&env, &query, &reviver).algo, TT_ALGO_DIRECT);
    struct tt_tuner broken = silent(); /* fails half-way */
    broken.algo = TT_ALGO_RING;
    broken.answer = ncclInternalError;
    assert_int_equal(chosen(&env, &query, &broken).algo, TT_ALGO_DIRECT);
    struct tt_tuner negative = silent();
    negative.others = -7;
    negative.nchannels = -3;
    assert_int_equal(chosen(&env, &query, &negative).algo, TT_ALGO_DIRECT);
    struct tt_tuner forbidding = silent();
    forbidding.others = -1;
    set_lists("Ring", NULL);
    struct tt_tune_choice choice;
    assert_int_equal(tt_tune_choose(&env, &query, &forbidding, &choice), ncclInvalidUsage);
    struct tt_tuner strange = silent();
    strange.algo = TT_ALGO_RING;
    strange.proto = TT_PROTO_LL;
    strange.value = NAN;
    assert_int_not_equal(chosen(&env, &query, &strange).proto, TT_PROTO_LL);
    struct tt_tuner greedy = silent();
    greedy.nchannels = 1000000;
    assert_int_equal(chosen(&env, &query, &greedy).nchannels, env.nchannels);
}

static void only_tuned_collectives_are_asked(void **state)
{
    (void)state;
    struct tt_tune_env env = one_host(4);
    static const enum tt_func others[] = {TT_FUNC_SEND, TT_FUNC_RECV, TT_FUNC_ALLTOALL,
                                          TT_FUNC_GATHER, TT_FUNC_SCATTER};
    struct tt_tuner tuner = silent();
    for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
        struct tt_tune_query query = query_of(others[k], 4096);
        (void)chosen(&env, &query, &tuner);
    }
    assert_int_equal(tuner.calls, 0);
}

static void long_rings_of_bytes_are_avoided(void **state)
{
    (void)state;
    struct tt_tune_env env = two_hosts(16);
    struct tt_tune_query query = query_of(TT_FUNC_ALLREDUCE, 64u << 20);
    query.type = ncclFloat8e4m3;
    assert_int_not_equal(chosen(&env, &query, NULL).algo, TT_ALGO_RING);
}

/* ---- what one call selects ---- */

static void selections_are_read(void **state)
{
    static const struct {
        const char *text;
        ncclResult_t rc;
        bool ring_ll, ring_ll128, tree_simple, direct, unnamed;
    } cases[] = {
        {NULL, ncclSuccess, true, true, true, true, true},
        {"", ncclSuccess, true, true, true, true, true},
        {"ring", ncclSuccess, true, true, false, false, false},
        {"RING_LL", ncclSuccess, true, true, false, false, false},
        {"RING_LL128", ncclSuccess, false, true, false, false, false},
        {"RING+^RING_LL128", ncclSuccess, true, false, false, false, false},
        {"tree , ring_ll128", ncclSuccess, false, true, true, false, false},
        {"^RING", ncclSuccess, false, false, true, true, true},
        {"^RING+^TREE", ncclSuccess, false, false, false, true, true},
        {"SYMK_AG,DIRECT", ncclSuccess, false, false, false, true, false},
        {"RINGS", ncclSuccess, false, false, false, false, false},
        {"RING,,TREE", ncclInvalidArgument, false, false, false, false, false},
        {"RING+", ncclInvalidArgument, false, false, false, false, false},
        {"^", ncclInvalidArgument, false, false, false, false, false},
        {"(RING)", ncclInvalidArgument, false, false, false, false, false},
        {"RING TREE", ncclInvalidArgument, false, false, false, false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tt_tune_wish wish = {0};
        print_message("case: %s\n", cases[i].text ? cases[i].text : "NULL");
        assert_int_equal(tt_tune_select(cases[i].text, &wish), cases[i].rc);
        if (cases[i].rc) continue;
        assert_int_equal(tt_tune_allows(wish, TT_ALGO_RING, TT_PROTO_LL), cases[i].ring_ll);
        assert_int_equal(tt_tune_allows(wish, TT_ALGO_RING, TT_PROTO_LL128), cases[i].ring_ll128);
        assert_int_equal(tt_tune_allows(wish, TT_ALGO_TREE, TT_PROTO_SIMPLE), cases[i].tree_simple);
        assert_int_equal(tt_tune_allows(wish, TT_ALGO_DIRECT, TT_PROTO_SIMPLE), cases[i].direct);
        assert_int_equal(tt_tune_allows_unnamed(wish), cases[i].unnamed);
    }
}

static void a_call_selects(void **state)
{
    struct tt_tune_env env = one_host(4);
    struct tt_tune_query query = query_of(TT_FUNC_ALLREDUCE, 16u << 20);
    struct tt_tune_choice choice;
    (void)state;
    query.wish.strict = 1;
    tt_tune_select("tree_simple", &query.wish);
    assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_TREE);
    query.wish.most = 2;
    assert_int_equal(chosen(&env, &query, NULL).nchannels, 2);
    query.wish.most = 64; /* no more than the communicator has */
    assert_int_equal(chosen(&env, &query, NULL).nchannels, env.nchannels);
    query.bytes = 4096;
    query.wish.least = 3;
    assert_int_equal(chosen(&env, &query, NULL).nchannels, 3);
    set_lists("allreduce:ring", NULL); /* the environment wins */
    assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_RING);
    set_lists("broadcast:ring", NULL); /* where it says something */
    assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_TREE);
    set_lists(NULL, NULL);
    tt_tune_select("COLLNET", &query.wish);
    assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice), ncclInvalidUsage);
    query.wish.strict = 0;
    assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_ONESHOT);
}

/* ---- programs from files ---- */

struct imported_case {
    const char *name, *algo, *proto;
    enum tt_func func;
    size_t bytes;
    ncclDataType_t type;
    int root, nranks;
    const char *selection;
    bool deterministic;
    int want; /* which of the two; -1: neither */
};

static const struct imported_case imported_cases[] = {
    {"the first one in its range", NULL, NULL, TT_FUNC_ALLREDUCE, 4096, ncclFloat32, 0, 4, NULL,
     false, 0},
    {"both ends belong to the range", NULL, NULL, TT_FUNC_ALLREDUCE, 8192, ncclFloat32, 0, 4, NULL,
     false, 0},
    {"beyond it the second", NULL, NULL, TT_FUNC_ALLREDUCE, 8193, ncclFloat32, 0, 4, NULL, false,
     1},
    {"another function", NULL, NULL, TT_FUNC_ALLGATHER, 4096, ncclFloat32, 0, 4, NULL, false, -1},
    {"another number of ranks", NULL, NULL, TT_FUNC_ALLREDUCE, 4096, ncclFloat32, 0, 3, NULL, false,
     -1},
    {"NCCL_ALGO forces another", "Ring", NULL, TT_FUNC_ALLREDUCE, 4096, ncclFloat32, 0, 4, NULL,
     false, -1},
    {"NCCL_ALGO of another function", "Broadcast:Ring", NULL, TT_FUNC_ALLREDUCE, 4096, ncclFloat32,
     0, 4, NULL, false, 0},
    {"NCCL_PROTO of the first", NULL, "LL", TT_FUNC_ALLREDUCE, 4096, ncclFloat32, 0, 4, NULL, false,
     0},
    {"NCCL_PROTO of the second", NULL, "Simple", TT_FUNC_ALLREDUCE, 4096, ncclFloat32, 0, 4, NULL,
     false, 1},
    {"the call selects", NULL, NULL, TT_FUNC_ALLREDUCE, 4096, ncclFloat32, 0, 4, "RING", false, -1},
    {"the call excludes another", NULL, NULL, TT_FUNC_ALLREDUCE, 4096, ncclFloat32, 0, 4, "^RING",
     false, 0},
    {"order shows in floats", NULL, NULL, TT_FUNC_ALLREDUCE, 4096, ncclFloat32, 0, 4, NULL, true,
     -1},
    {"and not in integers", NULL, NULL, TT_FUNC_ALLREDUCE, 4096, ncclInt32, 0, 4, NULL, true, 0},
};

static void programs_of_files_win(void **state)
{
    (void)state;
    const struct tt_program first = {
        .func = TT_FUNC_ALLREDUCE, .proto = TT_PROTO_LL, .nranks = 4, .root = -1, .nchannels = 3};
    const struct tt_program second = {.func = TT_FUNC_ALLREDUCE,
                                      .proto = TT_PROTO_SIMPLE,
                                      .nranks = 4,
                                      .root = -1,
                                      .nchannels = 8};
    const struct tt_tune_program programs[] = {
        {.program = &first, .name = "first", .least_bytes = 8, .most_bytes = 8192},
        {.program = &second, .name = "second", .most_bytes = UINT64_MAX}};
    for (size_t k = 0; k < sizeof(imported_cases) / sizeof(imported_cases[0]); k++) {
        const struct imported_case *c = &imported_cases[k];
        struct tt_tune_env env = one_host(c->nranks);
        struct tt_tune_query query = query_of(c->func, c->bytes);
        struct tt_tune_choice choice;
        struct tt_tuner tuner = {.algo = TT_ALGO_RING, .proto = TT_PROTO_LL, .others = NAN};
        print_message("case: %s\n", c->name);
        set_lists(c->algo, c->proto);
        env.programs = programs;
        env.nprograms = 2;
        env.deterministic = c->deterministic;
        query.type = c->type;
        assert_int_equal(tt_tune_select(c->selection, &query.wish), ncclSuccess);
        assert_int_equal(tt_tune_choose(&env, &query, &tuner, &choice), ncclSuccess);
        assert_ptr_equal(choice.program, c->want < 0 ? NULL : &programs[c->want]);
        assert_int_equal(tuner.calls, c->want < 0);
    }
}

/* Those that name no sizes run where they are predicted to be faster than all others. */
static void programs_without_sizes_compete(void **state)
{
    (void)state;
    static const struct {
        const char *name, *algo;
        double steps, touched; /* of the first program; the second has one step and 40 blocks */
        size_t bytes;
        float plugin; /* what it sets Ring, LL to; NAN: there is none */
        int want;     /* -1: a generator's */
    } cases[] = {
        {"slower", NULL, 100, 100, 4096, NAN, -1},
        {"fewer steps than any", NULL, 0.01, 100, 64, NAN, 0},
        {"fewer bytes than any", NULL, 100, 0.01, 1 << 24, NAN, 0},
        {"the faster of two", NULL, 0.9, 0.01, 4096, NAN, 0},
        {"the faster of two, the second", NULL, 5, 90, 64, NAN, -1},
        {"NCCL_ALGO names another", "Ring", 0.01, 0.01, 4096, NAN, -1},
        {"a plugin insists", NULL, 0.01, 0.01, 4096, 0, -1},
        {"a plugin's time is beaten", NULL, 0.01, 0.01, 4096, 1e6F, 0},
    };
    const struct tt_program program = {.func = TT_FUNC_ALLREDUCE,
                                       .proto = TT_PROTO_LL,
                                       .nranks = 4,
                                       .root = -1,
                                       .nparts = 4,
                                       .nchannels = 1};
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        const struct tt_program_load loads[] = {
            {.steps = cases[k].steps, .messages = 1, .touched = cases[k].touched},
            {.steps = 1, .messages = 6, .touched = 40}};
        const struct tt_tune_program programs[] = {
            {.program = &program, .load = &loads[0], .most_bytes = UINT64_MAX},
            {.program = &program, .load = &loads[1], .most_bytes = UINT64_MAX}};
        struct tt_tune_env env = one_host(4);
        struct tt_tune_query query = query_of(TT_FUNC_ALLREDUCE, cases[k].bytes);
        struct tt_tuner tuner = {
            .algo = TT_ALGO_RING, .proto = TT_PROTO_LL, .value = cases[k].plugin, .others = NAN};
        print_message("case: %s\n", cases[k].name);
        set_lists(cases[k].algo, NULL);
        env.programs = programs;
        env.nprograms = 2;
        struct tt_tune_choice choice = chosen(&env, &query, isnan(tuner.value) ? NULL : &tuner);
        assert_ptr_equal(choice.program, cases[k].want < 0 ? NULL : &programs[cases[k].want]);
        assert_true(cases[k].want < 0 || choice.time_usec > 0);
    }
}

/* The library's own ring, judged as if it came from a file, costs about what its model says. */
static void rings_cost_the_same_from_files(void **state)
{
    (void)state;
    static const enum tt_func funcs[] = {TT_FUNC_ALLREDUCE, TT_FUNC_ALLGATHER,
                                         TT_FUNC_REDUCESCATTER};
    for (size_t k = 0; k < TT_LEN(funcs) * 7; k++) {
        int n = 2 + (int)(k % 7);
        int ring[8] = {0, 1, 2, 3, 4, 5, 6, 7};
        const struct tt_shape shape = {.nranks = n, .ring_rank = ring};
        struct tt_program *program = NULL;
        struct tt_program_load load;
        enum tt_func func = funcs[k / 7];
        assert_int_equal(tt_program_make(func, TT_ALGO_RING, TT_PROTO_SIMPLE, 0, &shape, &program),
                         ncclSuccess);
        assert_int_equal(tt_program_load(program, &load), ncclSuccess);
        const struct tt_tune_env env = one_host(n);
        for (size_t bytes = 64; bytes <= 16 << 20; bytes *= 64) {
            const struct tt_tune_query query = query_of(func, bytes);
            double own = tt_model_time(&env, &query, TT_ALGO_RING, TT_PROTO_SIMPLE);
            double other = tt_tune_predict(&env, &query, program, &load);
            print_message("%d, %d ranks, %zu bytes: %.1f us, as a file %.1f us\n", (int)func, n,
                          bytes, own, other);
            assert_true(other > own / 2 && other < own * 2);
        }
        free(program);
    }
}

/* A file's Broadcast has one root. */
static void programs_of_files_have_their_root(void **state)
{
    (void)state;
    const struct tt_program from_zero = {.func = TT_FUNC_BROADCAST, .nranks = 4, .nchannels = 3};
    const struct tt_tune_program row = {.program = &from_zero, .most_bytes = UINT64_MAX};
    struct tt_tune_env env = one_host(4);
    struct tt_tune_query query = query_of(TT_FUNC_BROADCAST, 100);
    env.programs = &row;
    env.nprograms = 1;
    assert_ptr_equal(chosen(&env, &query, NULL).program, &row);
    query.wish.most = 2; /* channels */
    assert_null(chosen(&env, &query, NULL).program);
    query.wish.most = 3;
    assert_non_null(chosen(&env, &query, NULL).program);
    query.root = 2;
    assert_null(chosen(&env, &query, NULL).program);
}

/* Only with the types and operators that the network reduces; a chain for each rank of a host. */
static void networks_that_reduce_are_chosen(void **state)
{
    static const struct {
        const char *algo;
        ncclDataType_t type;
        ncclRedOp_t op;
        ncclResult_t rc;
        int nchannels;
    } cases[] = {
        {"AllReduce:CollNetDirect", ncclFloat32, ncclSum, ncclSuccess, 1},
        {"AllReduce:CollNetDirect", ncclFloat32, ncclAvg, ncclSuccess, 1},
        {"AllReduce:CollNetChain", ncclFloat32, ncclMax, ncclSuccess, 2},
        {"AllReduce:CollNetChain", ncclFloat32, ncclProd, ncclInvalidUsage, 0},
        {"AllReduce:CollNetDirect", ncclInt8, ncclSum, ncclInvalidUsage, 0},
    };
    const uint8_t sums[ncclNumTypes] = {[ncclFloat32] = 1 << ncclSum | 1 << ncclMax};
    struct tt_tune_env env = two_hosts(4);
    env.network_sums = sums;
    (void)state;
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        struct tt_tune_choice choice = {.nchannels = 0};
        const struct tt_tune_query query = {.func = TT_FUNC_ALLREDUCE,
                                            .type = cases[k].type,
                                            .op = cases[k].op,
                                            .bytes = 8 << 20,
                                            .nops = 1};
        print_message("case: %s type %d op %d\n", cases[k].algo, (int)cases[k].type,
                      (int)cases[k].op);
        set_lists(cases[k].algo, NULL);
        assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice), cases[k].rc);
        assert_int_equal(choice.nchannels, cases[k].nchannels);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(small_goes_through_slots, clear_lists),
        cmocka_unit_test_setup(fewer_phases_win_longer_when_oversubscribed, clear_lists),
        cmocka_unit_test_setup(hosts_use_rings_and_trees, clear_lists),
        cmocka_unit_test_setup(hosts_are_hierarchical, clear_lists),
        cmocka_unit_test_setup(multicast_by_name, clear_lists),
        cmocka_unit_test_setup(single_ranks_halve_and_double, clear_lists),
        cmocka_unit_test_setup(messages_are_messages, clear_lists),
        cmocka_unit_test_setup(deterministic_avoids_rings, clear_lists),
        cmocka_unit_test_setup(forced_programs_run, clear_lists),
        cmocka_unit_test_setup(pat_is_for_one_rank_per_host, clear_lists),
        cmocka_unit_test_setup(lists_are_about_tuned_collectives, clear_lists),
        cmocka_unit_test_setup(bad_lists_are_refused, clear_lists),
        cmocka_unit_test_setup(nothing_left_is_reported, clear_lists),
        cmocka_unit_test_setup(a_preferred_entry_wins, clear_lists),
        cmocka_unit_test_setup(a_silent_plugin_changes_nothing, clear_lists),
        cmocka_unit_test_setup(nonsense_is_not_obeyed, clear_lists),
        cmocka_unit_test_setup(only_tuned_collectives_are_asked, clear_lists),
        cmocka_unit_test_setup(selections_are_read, clear_lists),
        cmocka_unit_test_setup(a_call_selects, clear_lists),
        cmocka_unit_test_setup(long_rings_of_bytes_are_avoided, clear_lists),
        cmocka_unit_test_setup(programs_of_files_win, clear_lists),
        cmocka_unit_test_setup(programs_without_sizes_compete, clear_lists),
        cmocka_unit_test_setup(rings_cost_the_same_from_files, clear_lists),
        cmocka_unit_test_setup(networks_that_reduce_are_chosen, clear_lists),
        cmocka_unit_test_setup(programs_of_files_have_their_root, clear_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
