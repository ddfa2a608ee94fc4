/* What is chosen by itself, by size and by machine. */
#include "situations.h"

#include "base/error.h"
#include "base/mem.h"
#include "tune/host.h"
#include "tune/model.h"

#include <string.h>

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
        env.least_local = 3; /* uneven hosts */
        assert_int_equal(chosen(&env, &large, NULL).algo, TT_ALGO_HIERARCHICAL);
        assert_int_equal(chosen(&env, &large, NULL).proto, TT_PROTO_SIMPLE);
        env.least_local = 0; /* not known */
        assert_int_not_equal(chosen(&env, &large, NULL).algo, TT_ALGO_HIERARCHICAL);
    }
    /* hosts of anything from `least` to 96 ranks: of very different ones the program is too large
     */
    set_lists("allgather:Hierarchical", NULL);
    struct tt_tune_query query = query_of(TT_FUNC_ALLGATHER, 64u << 20);
    for (int least = 1; least <= 95; least += 94) {
        env = two_hosts(90 * 95);
        env.nnodes = 90;
        env.ppn = 96;
        env.least_local = least;
        assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice),
                         least == 1 ? ncclInvalidUsage : ncclSuccess);
    }
    env = two_hosts(8);
    env.least_local = 0;
    set_lists("allreduce:Hierarchical", NULL);
    query = query_of(TT_FUNC_ALLREDUCE, 4096);
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

/* Channels use the devices of the network in turn: of one device a second channel is no use. */
static void exchanges_use_all_devices(void **state)
{
    static const struct {
        const char *algo;
        enum tt_func func;
        int ndevs;
        size_t bytes;
        int nchannels;
    } cases[] = {
        {"AllReduce:Halving", TT_FUNC_ALLREDUCE, 0, 8 << 20, 1},
        {"AllReduce:Halving", TT_FUNC_ALLREDUCE, 1, 8 << 20, 1},
        {"AllReduce:Halving", TT_FUNC_ALLREDUCE, 2, 8 << 20, 2},
        {"AllReduce:Halving", TT_FUNC_ALLREDUCE, 2, 65536, 1},
        {"AllReduce:Halving", TT_FUNC_ALLREDUCE, 64, 8 << 20, 4},
        {"AllReduce:Doubling", TT_FUNC_ALLREDUCE, 2, 65536, 1},
        {"AllReduce:Doubling", TT_FUNC_ALLREDUCE, 2, 65544, 2},
        {"AllGather:Bruck", TT_FUNC_ALLGATHER, 2, 1 << 20, 2},
        {"ReduceScatter:PAT", TT_FUNC_REDUCESCATTER, 2, 1 << 20, 2},
        {"AlltoAll:Bruck", TT_FUNC_ALLTOALL, 2, 1 << 20, 2},
        {"AlltoAll:Pairwise", TT_FUNC_ALLTOALL, 2, 1 << 20, 2},
        {"AllReduce:Oneshot", TT_FUNC_ALLREDUCE, 2, 1 << 20, 1},
    };
    struct tt_tune_env env = two_hosts(8);
    (void)state;
    env.nnodes = 8;
    env.ppn = env.least_local = 1;
    env.nchannels = 4;
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        struct tt_tune_query query = query_of(cases[k].func, cases[k].bytes);
        set_lists(cases[k].algo, NULL);
        env.ndevs = cases[k].ndevs;
        print_message("case: %s, %d devices, %zu bytes\n", cases[k].algo, cases[k].ndevs,
                      cases[k].bytes);
        assert_int_equal(chosen(&env, &query, NULL).nchannels, cases[k].nchannels);
    }
}

/* Connections within a host share what carries them. */
static void one_channel_until_it_is_full(void **state)
{
    static const struct {
        const char *algo;
        enum tt_func func;
        int nnodes, ndevs;
        bool net_only;
        size_t bytes;
        int nchannels;
    } cases[] = {
        {"AllGather:Ring", TT_FUNC_ALLGATHER, 1, 1, true, 1 << 20, 1},
        {"AllGather:Ring", TT_FUNC_ALLGATHER, 1, 1, true, 4 << 20, 2},
        {"AllGather:Ring", TT_FUNC_ALLGATHER, 1, 1, true, 64 << 20, 4},
        {"AllGather:Ring", TT_FUNC_ALLGATHER, 1, 2, true, 1 << 20, 4},
        {"AllGather:Ring", TT_FUNC_ALLGATHER, 1, 1, false, 1 << 20, 4},
        {"AllGather:Ring", TT_FUNC_ALLGATHER, 2, 1, true, 1 << 20, 4},
        {"ReduceScatter:Ring", TT_FUNC_REDUCESCATTER, 1, 1, true, 1 << 20, 1},
        {"AllReduce:Ring", TT_FUNC_ALLREDUCE, 1, 1, true, 1 << 20, 1},
        {"AllReduce:Ring", TT_FUNC_ALLREDUCE, 1, 1, true, 8 << 20, 4},
        {"Broadcast:Ring", TT_FUNC_BROADCAST, 1, 1, true, 1 << 20, 4},
    };
    struct tt_tune_env env = one_host(2);
    (void)state;
    env.all_direct = false;
    env.nchannels = 4;
    env.slice_bytes = 512 << 10;
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        struct tt_tune_query query = query_of(cases[k].func, cases[k].bytes);
        set_lists(cases[k].algo, NULL);
        env.nnodes = cases[k].nnodes;
        env.ppn = env.least_local = 2 / env.nnodes;
        env.ndevs = cases[k].ndevs;
        env.net_only = cases[k].net_only;
        print_message("case: %s, %d hosts, %d devices, %zu bytes\n", cases[k].algo, env.nnodes,
                      env.ndevs, cases[k].bytes);
        assert_int_equal(chosen(&env, &query, NULL).nchannels, cases[k].nchannels);
    }
}

/* Who sends to a root, or is one, does not wait for the other: slices in one call where they go
 * over a network, else one. */
static void rooted_slices_follow_each_other(void **state)
{
    static const struct {
        enum tt_func func;
        bool net_only;
        size_t nslices;
    } cases[] = {
        {TT_FUNC_BROADCAST, true, 4},
        {TT_FUNC_REDUCE, true, 4},
        {TT_FUNC_BROADCAST, false, 1},
        {TT_FUNC_ALLREDUCE, true, 1},
    };
    struct tt_tune_env env = one_host(2);
    (void)state;
    env.all_direct = false;
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        struct tt_tune_query query = query_of(cases[k].func, 1 << 20);
        set_lists(cases[k].func == TT_FUNC_ALLREDUCE   ? "AllReduce:OneShot"
                  : cases[k].func == TT_FUNC_BROADCAST ? "Broadcast:OneShot"
                                                       : "Reduce:OneShot",
                  NULL);
        env.net_only = cases[k].net_only;
        print_message("case: %s, %d\n", tt_func_name(cases[k].func), env.net_only);
        assert_int_equal(chosen(&env, &query, NULL).chunk_bytes,
                         cases[k].nslices * env.slice_bytes);
    }
}

/* What would go over one of two devices gives way to what goes over both: where their rate is what
 * counts, in half of the time. */
static void the_choice_counts_devices(void **state)
{
    static const enum tt_func funcs[] = {TT_FUNC_ALLREDUCE, TT_FUNC_BROADCAST, TT_FUNC_REDUCE,
                                         TT_FUNC_ALLGATHER, TT_FUNC_REDUCESCATTER};
    struct tt_tune_host limited = tt_tune_host_default;
    struct tt_tune_env env = two_hosts(2);
    (void)state;
    limited.net_bytes_usec = 50;
    env.host = &limited;
    env.nchannels = 2;
    env.slice_bytes = 512 << 10;
    for (size_t f = 0; f < TT_LEN(funcs); f++) {
        for (size_t bytes = 256 << 10; bytes <= 64u << 20; bytes *= 2) {
            struct tt_tune_query query = query_of(funcs[f], bytes);
            print_message("case: %s, %zu bytes\n", tt_func_name(funcs[f]), bytes);
            env.ndevs = 1;
            double one_usec = chosen(&env, &query, NULL).time_usec;
            env.ndevs = 2;
            struct tt_tune_choice choice = chosen(&env, &query, NULL);
            assert_int_equal(choice.nchannels, 2);
            assert_true(choice.time_usec < 0.55 * one_usec);
        }
    }
    env.ndevs = 1;
    struct tt_tune_query query = query_of(TT_FUNC_BROADCAST, 8 << 20);
    assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_ONESHOT);
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

/* Over a network: up to 16 KiB from rank to rank and 64 ranks. */
static void short_exchanges_are_programs(void **state)
{
    (void)state;
    static const enum tt_func funcs[] = {TT_FUNC_ALLTOALL, TT_FUNC_GATHER, TT_FUNC_SCATTER};
    for (size_t f = 0; f < sizeof(funcs) / sizeof(funcs[0]); f++) {
        struct tt_tune_env env = two_hosts(8);
        struct tt_tune_query query = query_of(funcs[f], 8 * (16u << 10));
        print_message("case: %s\n", tt_func_name(funcs[f]));
        assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_ONESHOT);
        query.bytes += 64;
        assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_P2P);
        env = two_hosts(2);
        env.slice_bytes = 512 << 10;
        query.bytes = 2 * (128u << 10);
        assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_ONESHOT);
        query.bytes += 64;
        assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_P2P);
        env = two_hosts(66);
        query.bytes = 1 << 10;
        assert_int_equal(chosen(&env, &query, NULL).algo, TT_ALGO_P2P);
    }
}

/* Several ranks on each of the hosts: the shortest blocks are sorted inside a host first, so that
 * fewer messages go between them; whatever the number of ranks. */
static void shortest_alltoalls_are_sorted(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int nranks, nhosts, least_local;
        size_t block_bytes;
        enum tt_algo algo;
    } cases[] = {
        {"short", 8, 2, 4, 64, TT_ALGO_HIERARCHICAL},
        {"one rank a host", 8, 8, 1, 64, TT_ALGO_ONESHOT},
        {"uneven hosts", 7, 2, 3, 64, TT_ALGO_HIERARCHICAL},
        {"one rank beside others", 5, 2, 1, 64, TT_ALGO_ONESHOT},
        {"longer", 8, 2, 4, 16 << 10, TT_ALGO_ONESHOT},
        {"long", 8, 2, 4, 1 << 20, TT_ALGO_P2P},
        {"many ranks", 128, 16, 8, 8, TT_ALGO_HIERARCHICAL},
        {"many ranks, longer", 128, 16, 8, 16 << 10, TT_ALGO_P2P},
    };
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        struct tt_tune_env env = two_hosts(cases[k].nranks);
        env.nnodes = cases[k].nhosts;
        env.ppn = cases[k].nranks - cases[k].least_local * (cases[k].nhosts - 1);
        env.least_local = cases[k].least_local;
        struct tt_tune_query query =
            query_of(TT_FUNC_ALLTOALL, cases[k].block_bytes * (size_t)cases[k].nranks);
        print_message("case: %s\n", cases[k].name);
        struct tt_tune_choice choice = chosen(&env, &query, NULL);
        assert_int_equal(choice.algo, cases[k].algo);
        if (choice.algo != TT_ALGO_HIERARCHICAL) continue;
        assert_int_equal(choice.proto, TT_PROTO_LL);
        assert_int_equal(choice.nchannels, 1);
        assert_int_equal(choice.chunk_bytes, env.slice_bytes); /* a block takes a slot */
    }
}

/* Programs in which each rank has its own text are for as many uneven hosts as memory allows. */
static void many_uneven_hosts_go_round(void **state)
{
    (void)state;
    static const struct {
        enum tt_func func;
        const char *algo, *proto;
    } cases[] = {{TT_FUNC_ALLTOALL, "alltoall:Hierarchical", NULL},
                 {TT_FUNC_ALLREDUCE, "allreduce:Hierarchical", "LL"},
                 {TT_FUNC_ALLGATHER, "allgather:Hierarchical", "LL"}};
    for (size_t k = 0; k < 2 * TT_LEN(cases); k++) {
        int nhosts = k % 2 ? 512 : 16;
        struct tt_tune_env env = two_hosts(8 * nhosts - 1);
        struct tt_tune_query query = query_of(cases[k / 2].func, 1 << 16);
        struct tt_tune_choice choice;
        env.nnodes = nhosts;
        env.ppn = 8;
        env.least_local = 7;
        set_lists(cases[k / 2].algo, cases[k / 2].proto);
        print_message("case: %s, %d hosts\n", cases[k / 2].algo, nhosts);
        assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice),
                         nhosts == 512 ? ncclInvalidUsage : ncclSuccess);
        if (nhosts == 512) assert_non_null(strstr(tt_last_error(), "many and uneven"));
    }
    set_lists(NULL, NULL);
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

/* Only with the types and operators that the network reduces; a chain for each rank of a host. */
static void networks_that_reduce_are_chosen(void **state)
{
    static const struct {
        const char *algo;
        ncclDataType_t type;
        ncclRedOp_t op;
        ncclResult_t rc;
        int nchannels;
        enum tt_func func;
    } cases[] = {
        {"AllReduce:CollNetDirect", ncclFloat32, ncclSum, ncclSuccess, 1, TT_FUNC_ALLREDUCE},
        {"AllReduce:CollNetDirect", ncclFloat32, ncclAvg, ncclSuccess, 1, TT_FUNC_ALLREDUCE},
        {"AllReduce:CollNetChain", ncclFloat32, ncclMax, ncclSuccess, 2, TT_FUNC_ALLREDUCE},
        {"AllReduce:CollNetChain", ncclFloat32, ncclProd, ncclInvalidUsage, 0, TT_FUNC_ALLREDUCE},
        {"AllReduce:CollNetDirect", ncclInt8, ncclSum, ncclInvalidUsage, 0, TT_FUNC_ALLREDUCE},
        {"AllGather:CollNetDirect", ncclInt8, ncclSum, ncclSuccess, 1, TT_FUNC_ALLGATHER},
        {"AllGather:CollNetChain", ncclInt8, ncclSum, ncclInvalidUsage, 0, TT_FUNC_ALLGATHER},
        {"ReduceScatter:CollNetDirect", ncclFloat32, ncclSum, ncclInvalidUsage, 0,
         TT_FUNC_REDUCESCATTER}, /* it has no ireducescatter */
    };
    const uint8_t sums[ncclNumTypes] = {[ncclFloat32] = 1 << ncclSum | 1 << ncclMax};
    struct tt_tune_env env = two_hosts(4);
    env.network_sums = sums;
    env.network_gathers = true;
    (void)state;
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        struct tt_tune_choice choice = {.nchannels = 0};
        const struct tt_tune_query query = {.func = cases[k].func,
                                            .type = cases[k].type,
                                            .op = cases[k].op,
                                            .bytes = 8 << 20,
                                            .nops = 1};
        print_message("case: %s type %d op %d\n", cases[k].algo, (int)cases[k].type,
                      (int)cases[k].op);
        set_lists(cases[k].algo, NULL);
        assert_int_equal(tt_tune_choose(&env, &query, NULL, &choice), cases[k].rc);
        assert_int_equal(choice.nchannels, cases[k].nchannels);
        if (cases[k].func == TT_FUNC_ALLGATHER && choice.nchannels)
            assert_int_equal(choice.chunk_bytes, env.slice_bytes / 2); /* one for each host */
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
        cmocka_unit_test_setup(exchanges_use_all_devices, clear_lists),
        cmocka_unit_test_setup(one_channel_until_it_is_full, clear_lists),
        cmocka_unit_test_setup(rooted_slices_follow_each_other, clear_lists),
        cmocka_unit_test_setup(the_choice_counts_devices, clear_lists),
        cmocka_unit_test_setup(messages_are_messages, clear_lists),
        cmocka_unit_test_setup(short_exchanges_are_programs, clear_lists),
        cmocka_unit_test_setup(shortest_alltoalls_are_sorted, clear_lists),
        cmocka_unit_test_setup(many_uneven_hosts_go_round, clear_lists),
        cmocka_unit_test_setup(deterministic_avoids_rings, clear_lists),
        cmocka_unit_test_setup(networks_that_reduce_are_chosen, clear_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
