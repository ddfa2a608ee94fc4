/* Programs from files beside the library's own. */
#include "situations.h"

#include "base/mem.h"
#include "tune/host.h"
#include "tune/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
        assert_int_equal(tt_tune_select(c->selection, &query.request), ncclSuccess);
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

/* What `tutti tune` measured on this host counts in place of predictions and of the file's sizes.
 */
static void measured_times_decide(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t bytes;
        double usec[2][2]; /* of both programs at 64 and 4096 bytes; the library's own takes 10 */
        int nnodes;
        bool forced;
        int want; /* -1: a generator's */
    } cases[] = {
        {"faster at both ends", 1000, {{5, 5}, {20, 20}}, 1, false, 0},
        {"slower at one end", 1000, {{5, 11}, {20, 20}}, 1, false, -1},
        {"at a measured size its own time counts", 64, {{5, 11}, {20, 20}}, 1, false, 0},
        {"hardly faster", 1000, {{9.8, 9.8}, {20, 20}}, 1, false, -1},
        {"the faster of two", 1000, {{5, 5}, {4, 4}}, 1, false, 1},
        {"beyond what was measured", 4097, {{5, 5}, {4, 4}}, 1, false, -1},
        {"below it", 63, {{5, 5}, {4, 4}}, 1, false, -1},
        {"other hosts were not measured", 1000, {{20, 20}, {20, 20}}, 2, false, 1},
        {"forced", 1000, {{20, 20}, {20, 20}}, 1, true, 0},
    };
    const struct tt_program program = {.func = TT_FUNC_ALLREDUCE,
                                       .proto = TT_PROTO_LL,
                                       .nranks = 4,
                                       .root = -1,
                                       .nparts = 4,
                                       .nchannels = 1};
    const struct tt_program_load slow = {.steps = 100, .messages = 1, .touched = 100};
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        struct tt_tune_host host = tt_tune_host_default;
        struct tt_tune_program programs[] = {
            {.program = &program, .hash = 7, .load = &slow, .most_bytes = UINT64_MAX},
            {.program = &program, .hash = 8, .most_bytes = UINT64_MAX}};
        struct tt_tune_env env = one_host(4);
        struct tt_tune_query query = query_of(TT_FUNC_ALLREDUCE, cases[k].bytes);
        print_message("case: %s\n", cases[k].name);
        for (uint64_t row = 0; row < 4; row++) {
            host.measured[host.nmeasured++] =
                (struct tt_tune_measured){.hash = 7 + row / 2,
                                          .bytes = row % 2 ? 4096 : 64,
                                          .usec = cases[k].usec[row / 2][row % 2],
                                          .own_usec = 10};
        }
        if (cases[k].forced) programs[0].load = NULL;
        programs[0].forced = cases[k].forced;
        env.host = &host;
        env.nnodes = cases[k].nnodes;
        env.programs = programs;
        env.nprograms = 2;
        struct tt_tune_choice choice = chosen(&env, &query, NULL);
        assert_ptr_equal(choice.program, cases[k].want < 0 ? NULL : &programs[cases[k].want]);
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
    query.request.most = 2; /* channels */
    assert_null(chosen(&env, &query, NULL).program);
    query.request.most = 3;
    assert_non_null(chosen(&env, &query, NULL).program);
    query.root = 2;
    assert_null(chosen(&env, &query, NULL).program);
}

/* Any rank takes the root's place where all are equal. */
static void programs_of_files_turn(void **state)
{
    static const struct {
        int nnodes, ppn;
        bool turns, fits;
    } cases[] = {{1, 4, true, true}, {1, 4, false, false}, {4, 1, true, true}, {2, 2, true, false}};
    (void)state;
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        const struct tt_program from_zero = {
            .func = TT_FUNC_BROADCAST, .nranks = 4, .nchannels = 1};
        const struct tt_tune_program row = {
            .program = &from_zero, .most_bytes = UINT64_MAX, .turns = cases[k].turns};
        struct tt_tune_env env = one_host(4);
        struct tt_tune_query query = query_of(TT_FUNC_BROADCAST, 100);
        print_message("case: %zu\n", k);
        env.nnodes = cases[k].nnodes;
        env.ppn = cases[k].ppn;
        env.programs = &row;
        env.nprograms = 1;
        query.root = 3;
        assert_int_equal(chosen(&env, &query, NULL).program == &row, cases[k].fits);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(programs_of_files_win, clear_lists),
        cmocka_unit_test_setup(programs_without_sizes_compete, clear_lists),
        cmocka_unit_test_setup(measured_times_decide, clear_lists),
        cmocka_unit_test_setup(rings_cost_the_same_from_files, clear_lists),
        cmocka_unit_test_setup(programs_of_files_have_their_root, clear_lists),
        cmocka_unit_test_setup(programs_of_files_turn, clear_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
