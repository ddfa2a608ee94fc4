/* What is chosen when variables, a plugin or the call itself ask for it. */
#include "situations.h"

#include "base/mem.h"
#include "base/param.h"
#include "tune/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
        {"Ring,", ",LL,,", TT_ALGO_RING, TT_PROTO_LL}, /* as NCCL reads them */
        {"^Direct,,OneShot,Tree", "^", TT_ALGO_RING, -1},
        {"allreduce:Tree;", "allreduce:^;", TT_ALGO_TREE, -1},
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
static void check_pat(enum tt_func func, char setting, bool spread)
{
    struct tt_tune_env env = two_hosts(16);
    struct tt_tune_query large = query_of(func, 1u << 30);
    struct tt_tune_choice choice;
    bool wins = false;
    if (spread) env.nnodes = 16;
    if (spread) env.ppn = 1;
    if (spread) env.oversubscribed = false;
    set_variable("NCCL_PAT_ENABLE", (const char[]){setting, '\0'});
    set_lists("^OneShot", NULL); /* which one phase favours where all are apart */
    print_message("%s, NCCL_PAT_ENABLE=%c, %d rank(s) a host\n", tt_func_name(func), setting,
                  env.ppn);
    for (size_t bytes = 16; bytes <= 1u << 30; bytes *= 2) {
        struct tt_tune_query query = query_of(func, bytes);
        wins |= chosen(&env, &query, NULL).algo == TT_ALGO_PAT;
    }
    assert_int_equal(wins, setting == '1' || (setting == '2' && spread));
    assert_int_equal(chosen(&env, &large, NULL).algo, TT_ALGO_RING);
    set_lists("PAT", NULL);
    bool named = tt_tune_choose(&env, &large, NULL, &choice) == ncclSuccess;
    assert_int_equal(named, setting != '0');
    if (named) assert_int_equal(choice.algo, TT_ALGO_PAT);
    env.deterministic = true;
    named = tt_tune_choose(&env, &large, NULL, &choice) == ncclSuccess;
    assert_int_equal(named, setting != '0' && func == TT_FUNC_ALLGATHER);
}

static void pat_is_for_one_rank_per_host(void **state)
{
    (void)state;
    for (char setting = '0'; setting <= '2'; setting++) {
        for (int spread = 0; spread < 2; spread++) {
            check_pat(TT_FUNC_ALLGATHER, setting, spread);
            check_pat(TT_FUNC_REDUCESCATTER, setting, spread);
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
        {"Rings", NULL},     {",", NULL},          {"allreduce:,", NULL}, {"allreduc:Ring", NULL},
        {"Ring;Tree", NULL}, {NULL, "LL256"},      {NULL, "LL;Simple"},   {"allreduce:", NULL},
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
    struct tt_tuner broken = silent(); /* fails half-way */
    broken.algo = TT_ALGO_RING;
    broken.answer = ncclInternalError;
    assert_int_equal(chosen(&env, &query, &broken).algo, TT_ALGO_DIRECT);
    struct tt_tuner negative = silent();
    negative.others = -7;
    negative.nchannels = -3;
    assert_int_equal(chosen(&env, &query, &negative).algo, TT_ALGO_DIRECT);
    set_lists("Ring", NULL);
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
        struct tt_tune_request request = {0};
        print_message("case: %s\n", cases[i].text ? cases[i].text : "NULL");
        assert_int_equal(tt_tune_select(cases[i].text, &request), cases[i].rc);
        if (cases[i].rc) continue;
        assert_int_equal(tt_tune_allows(request, TT_ALGO_RING, TT_PROTO_LL), cases[i].ring_ll);
        assert_int_equal(tt_tune_allows(request, TT_ALGO_RING, TT_PROTO_LL128),
                         cases[i].ring_ll128);
        assert_int_equal(tt_tune_allows(request, TT_ALGO_TREE, TT_PROTO_SIMPLE),
                         cases[i].tree_simple);
        assert_int_equal(tt_tune_allows(request, TT_ALGO_DIRECT, TT_PROTO_SIMPLE), cases[i].direct);
        assert_int_equal(tt_tune_allows_unnamed(request), cases[i].unnamed);
    }
}

static void a_call_selects(void **state)
{
    struct tt_tune_env env = one_host(4);
    struct tt_tune_query query = query_of(TT_FUNC_ALLREDUCE, 16u << 20);
    struct tt_tune_choice choice;
    (void)state;
    query.request.strict = 1;
    tt_tune_select("tree_simple", &query.request);
    assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_TREE);
    query.request.most = 2;
    assert_int_equal(chosen(&env, &query, NULL).nchannels, 2);
    query.request.most = 64; /* no more than the communicator has */
    assert_int_equal(chosen(&env, &query, NULL).nchannels, env.nchannels);
    query.bytes = 4096;
    query.request.least = 3;
    assert_int_equal(chosen(&env, &query, NULL).nchannels, 3);
    set_lists("allreduce:ring", NULL); /* the environment wins */
    assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_RING);
    set_lists("broadcast:ring", NULL); /* where it says something */
    assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_TREE);
    set_lists(NULL, NULL);
    tt_tune_select("COLLNET", &query.request);
    assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice), ncclInvalidUsage);
    query.request.strict = 0;
    assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_ONESHOT);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(forced_programs_run, clear_lists),
        cmocka_unit_test_setup(pat_is_for_one_rank_per_host, clear_lists),
        cmocka_unit_test_setup(lists_are_about_tuned_collectives, clear_lists),
        cmocka_unit_test_setup(bad_lists_are_refused, clear_lists),
        cmocka_unit_test_setup(nothing_left_is_reported, clear_lists),
        cmocka_unit_test_setup(a_preferred_entry_wins, clear_lists),
        cmocka_unit_test_setup(a_silent_plugin_changes_nothing, clear_lists),
        cmocka_unit_test_setup(nonsense_is_not_obeyed, clear_lists),
        cmocka_unit_test_setup(only_tuned_collectives_are_asked, clear_lists),
        cmocka_unit_test_setup(long_rings_of_bytes_are_avoided, clear_lists),
        cmocka_unit_test_setup(selections_are_read, clear_lists),
        cmocka_unit_test_setup(a_call_selects, clear_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
