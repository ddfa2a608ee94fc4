/* Which programs there are, what a bad request gets, and properties that callers rely on. */
#include "unit/check.h"

#include "program_set.h"

#include <string.h>

static const int ring4[] = {2, 0, 3, 1};

static struct tt_shape shape4(void)
{
    return (struct tt_shape){.nranks = 4, .ring_rank = ring4};
}

static void bad_requests_are_refused(void **state)
{
    (void)state;
    struct tt_program *program = NULL;
    struct tt_shape good = shape4();
    struct tt_shape alone = good;
    alone.nranks = 1;
    static const int twice[] = {2, 0, 2, 1};
    struct tt_shape lost = good;
    lost.ring_rank = twice;
    struct tt_shape nowhere = good;
    nowhere.ring_rank = NULL;
    static const int first[] = {0, 3, 4};
    struct tt_shape uneven = good;
    uneven.by_host = ring4;
    uneven.host_first = first;
    uneven.nhosts = 2;
    const struct {
        const char *name;
        enum tt_func func;
        enum tt_algo algo;
        enum tt_proto proto;
        int root;
        const struct tt_shape *shape;
    } cases[] = {
        {"no tree for AllGather", TT_FUNC_ALLGATHER, TT_ALGO_TREE, TT_PROTO_LL, -1, &good},
        {"no chain of hosts", TT_FUNC_ALLREDUCE, TT_ALGO_COLLNET_CHAIN, TT_PROTO_SIMPLE, -1, &good},
        {"no tree of hosts", TT_FUNC_ALLREDUCE, TT_ALGO_NVLS_TREE, TT_PROTO_SIMPLE, -1, &good},
        {"uneven tree", TT_FUNC_ALLREDUCE, TT_ALGO_NVLS_TREE, TT_PROTO_SIMPLE, -1, &uneven},
        {"uneven network", TT_FUNC_ALLREDUCE, TT_ALGO_COLLNET_DIRECT, TT_PROTO_SIMPLE, -1, &uneven},
        {"multicast is Simple", TT_FUNC_ALLREDUCE, TT_ALGO_NVLS, TT_PROTO_LL, -1, &good},
        {"direct is Simple", TT_FUNC_ALLREDUCE, TT_ALGO_DIRECT, TT_PROTO_LL, -1, &good},
        {"protocol out of range", TT_FUNC_ALLREDUCE, TT_ALGO_RING, (enum tt_proto)7, -1, &good},
        {"one rank", TT_FUNC_ALLREDUCE, TT_ALGO_RING, TT_PROTO_LL, -1, &alone},
        {"no root", TT_FUNC_BROADCAST, TT_ALGO_RING, TT_PROTO_LL, -1, &good},
        {"root beyond", TT_FUNC_REDUCE, TT_ALGO_DIRECT, TT_PROTO_SIMPLE, 4, &good},
        {"not on the ring", TT_FUNC_ALLREDUCE, TT_ALGO_RING, TT_PROTO_LL, -1, &lost},
        {"no tree", TT_FUNC_ALLREDUCE, TT_ALGO_TREE, TT_PROTO_LL, -1, &good},
        {"no ring", TT_FUNC_ALLREDUCE, TT_ALGO_RING, TT_PROTO_LL, -1, &nowhere},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        print_message("case: %s\n", cases[k].name);
        assert_int_equal(tt_program_make(cases[k].func, cases[k].algo, cases[k].proto,
                                         cases[k].root, cases[k].shape, &program),
                         ncclInvalidArgument);
        assert_null(program);
    }
}

static void length_does_not_grow_with_ranks(void **state)
{
    (void)state;
    int ncases;
    const struct program_case *cases = program_cases(&ncases);
    for (int k = 0; k < ncases; k++) {
        struct program_set small = program_set_make(&cases[k], 1, 4, 4, 0);
        struct program_set large = program_set_make(&cases[k], 1, 40, 40, 0);
        bool steps = cases[k].algo == TT_ALGO_PAT || cases[k].algo == TT_ALGO_BRUCK ||
                     cases[k].algo == TT_ALGO_DOUBLING || cases[k].algo == TT_ALGO_HALVING;
        int per_step = cases[k].func == TT_FUNC_ALLTOALL ? 4 * 8 : 24; /* in pieces, of texts */
        if (steps) { /* 2 steps, 6 steps: a few moves and loops each */
            assert_in_range(large.blocks[0]->ninsns, small.blocks[0]->ninsns, 16 + per_step * 6);
        } else if (program_needs_hosts(cases[k].algo)) {
            /* for each rank of a host what it does with each of the others, three times and more */
            int locals = 40 / large.nhosts;
            assert_in_range(large.blocks[0]->ninsns, 0, 3 * locals * (3 * locals + 6));
        } else {
            assert_int_equal(small.blocks[0]->ninsns, large.blocks[0]->ninsns);
            assert_int_equal(small.blocks[0]->noperands, large.blocks[0]->noperands);
        }
        assert_int_equal(small.blocks[0]->needs_barrier, program_is_direct(cases[k].algo));
        program_set_free(&small);
        program_set_free(&large);
    }
}

static void links_agree_between_ranks(void **state)
{
    (void)state;
    enum { N = 9 };
    uint8_t links[N][N];
    int ncases;
    const struct program_case *cases = program_cases(&ncases);
    for (int k = 0; k < ncases; k++) {
        struct program_set set = program_set_make(&cases[k], 1, N, 2, 1);
        for (int r = 0; r < N; r++)
            tt_program_links(set.programs[r], r, links[r]);
        for (int r = 0; r < N * N; r++) {
            int sends = links[r / N][r % N] & TT_LINK_SENDS ? 1 : 0;
            int receives = links[r % N][r / N] & TT_LINK_RECEIVES ? 1 : 0;
            assert_int_equal(sends, receives);
            if (program_is_direct(cases[k].algo)) assert_int_equal(sends, 0);
        }
        program_set_free(&set);
    }
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(tt_func_name(TT_FUNC_ALLTOALL), "AlltoAll");
    assert_string_equal(tt_func_name((enum tt_func)5), "unknown function");
    assert_string_equal(tt_func_name((enum tt_func) - 1), "unknown function");
    assert_string_equal(tt_algo_name(TT_ALGO_NVLS_TREE), "NVLS_TREE");
    assert_string_equal(tt_algo_name(TT_ALGO_FILE), "FILE");
    assert_string_equal(tt_algo_name((enum tt_algo)(TT_ALGO_FILE + 1)), "unknown algorithm");
    assert_string_equal(tt_proto_name(TT_PROTO_LL128), "LL128");
    assert_string_equal(tt_proto_name(TT_PROTO_COUNT_), "unknown protocol");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(length_does_not_grow_with_ranks),
        cmocka_unit_test(links_agree_between_ranks),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
