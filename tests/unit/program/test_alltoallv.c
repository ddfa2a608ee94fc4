/* AlltoAllv: programs of counts by pair are right for all kinds of counts, and those that move
 * something else than the counts say are refused. */
#include "unit/check.h"

#include "program/format/flow.h"
#include "program/verify/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 17, PAIRS = MOST_RANKS * MOST_RANKS, GRAIN = 4, SLOTS = 8 };

static const struct {
    enum tt_algo algo;
    enum tt_proto proto;
} algos[] = {{TT_ALGO_PAIRWISE, TT_PROTO_SIMPLE}, {TT_ALGO_BRUCK, TT_PROTO_LL}};

static struct tt_program *make(size_t algo, int n, const int *counts)
{
    const struct tt_shape shape = {.nranks = n, .counts = counts};
    struct tt_program *program;
    assert_int_equal(tt_program_make(TT_FUNC_ALLTOALLV, algos[algo].algo, algos[algo].proto, -1,
                                     &shape, &program),
                     ncclSuccess);
    return program;
}

static ncclResult_t verify(const struct tt_program *program, size_t count, char fault[256])
{
    const struct tt_program *programs[MOST_RANKS];
    for (int r = 0; r < program->nranks; r++)
        programs[r] = program;
    struct tt_verify_options options = {
        .count = count, .chunk_limit = GRAIN, .grain = GRAIN, .slice = GRAIN, .nslots = SLOTS};
    return tt_program_verify(programs, program->nranks, &options, fault, 256);
}

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static void draw_counts(int n, uint32_t seed, int most, int *counts)
{
    uint32_t state = seed;
    for (int k = 0; k < n * n; k++)
        counts[k] = draw(&state) % 3 ? (int)(draw(&state) % (uint32_t)(most + 1)) : 0;
}

static void all_counts_are_right(void **state)
{
    (void)state;
    int counts[PAIRS];
    char fault[256];
    for (size_t k = 0; k < 2 * (MOST_RANKS - 1) * 6; k++) {
        size_t algo = k % 2, turn = k / 2 % 6;
        int n = 2 + (int)(k / 12), most = turn == 5 ? 40 : 1 << turn;
        draw_counts(n, (uint32_t)k + 1, turn ? most : 0, counts);
        struct tt_program *program = make(algo, n, counts);
        size_t window = (size_t)program->nparts * GRAIN;
        for (size_t count = 1; count <= 2 * window + 3; count += window / 2 + 1) {
            if (verify(program, count, fault))
                fail_msg("%s n %d count %zu: %s", tt_algo_name(algos[algo].algo), n, count, fault);
        }
        free(program);
    }
}

/* Counts that are changed behind the program's back: what it moves is no longer what they say. */
static void other_counts_are_refused(void **state)
{
    (void)state;
    int counts[PAIRS];
    char fault[256];
    for (size_t k = 0; k < 2 * 60; k++) {
        int n = 2 + (int)(k / 2 % 7);
        draw_counts(n, (uint32_t)k + 7, 5, counts);
        struct tt_program *program = make(k % 2, n, counts);
        uint32_t *theirs = (void *)((char *)program + program->counts_at);
        uint32_t *one = &theirs[k / 2 % (size_t)(n * n)];
        bool more = *one < (uint32_t)program->nparts;
        *one += more ? 1 : (uint32_t)-1;
        size_t window = (size_t)program->nparts * GRAIN;
        if (!verify(program, window, fault)) fail_msg("case %zu: proved", k);
        print_message("%s\n", fault);
        assert_non_null(strstr(fault, "rank "));
        free(program);
    }
}

static void bad_counts_are_refused(void **state)
{
    (void)state;
    static const int counts[4] = {1, 2, 3, 0};
    char fault[256];
    struct tt_program *program = make(0, 2, counts);
    uint32_t *theirs = (void *)((char *)program + program->counts_at), at = program->counts_at;
    theirs[1] = 4;
    assert_false(tt_program_check(program, program->bytes, fault, sizeof(fault)));
    assert_string_equal(fault, "rank 0 has 4 parts for rank 1, of 3");
    theirs[1] = 2;
    program->counts_at = program->bytes - 4;
    assert_false(tt_program_check(program, program->bytes, fault, sizeof(fault)));
    program->counts_at = 0;
    assert_false(tt_program_check(program, program->bytes, fault, sizeof(fault)));
    program->counts_at = at;
    program->func = TT_FUNC_ALLTOALL;
    assert_false(tt_program_check(program, program->bytes, fault, sizeof(fault)));
    assert_string_equal(fault, "an AlltoAllv and counts of pairs go together");
    free(program);
    const struct tt_shape none = {.nranks = 2};
    assert_int_equal(
        tt_program_make(TT_FUNC_ALLTOALLV, TT_ALGO_PAIRWISE, TT_PROTO_SIMPLE, -1, &none, &program),
        ncclInvalidArgument);
}

/* The least that has to be sent, and in how many steps, follows from the counts. */
static void bounds_follow_from_counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int counts[16];
        double sent;
        int steps;
    } cases[] = {
        {"nothing", {0}, 0, 0},
        {"to itself", {3, 0, 0, 0, 0, 2}, 0, 0},
        {"one pair", {0, 4}, 1, 1},
        {"one gives to all", {0, 2, 4, 2}, 2, 2},
        {"all give to one", {0, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 2}, 1, 2},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct tt_program *program = make(0, 4, cases[k].counts);
        print_message("case: %s\n", cases[k].name);
        assert_true(tt_flow_least_sent(program) == cases[k].sent);
        assert_int_equal(tt_flow_least_steps(program), cases[k].steps);
        free(program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_counts_are_right),
        cmocka_unit_test(other_counts_are_refused),
        cmocka_unit_test(bad_counts_are_refused),
        cmocka_unit_test(bounds_follow_from_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
