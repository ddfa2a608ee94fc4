/* What slots may refer to: memory that stays, and memory that is written only when all who were
 * sent it have taken it, which the messages of all ranks must show. */
#include "unit/check.h"

#include "base/mem.h"
#include "program/format/build.h"
#include "program/verify/verify.h"
#include "program_set.h"

#include <stdlib.h>

static struct tt_operand own(enum tt_space space, int number)
{
    return tt_gen_own(space, tt_gen_number(number));
}

static struct tt_operand slot(int rank, int number)
{
    return tt_gen_at(TT_SPACE_SLOT, rank, tt_gen_number(number));
}

static void begin(struct tt_builder *builder, int rank)
{
    tt_build_assign(builder, rank, tt_build_text(builder));
    tt_build_thread(builder);
}

/* Each rank sends its half before it takes the other's. */
static void swap(struct tt_builder *builder)
{
    builder->head.func = TT_FUNC_ALLTOALL;
    builder->head.in_blocks = builder->head.out_blocks = true;
    for (int me = 0; me < 2; me++) {
        int peer = 1 - me;
        begin(builder, me);
        tt_build_copy(builder, own(TT_SPACE_IN, peer), slot(peer, peer));
        tt_build_copy(builder, own(TT_SPACE_IN, me), own(TT_SPACE_OUT, me));
        tt_build_copy(builder, slot(peer, me), own(TT_SPACE_OUT, peer));
        tt_build_stop(builder);
    }
}

static void give(struct tt_builder *builder, int rank)
{
    tt_build_move(builder, TT_MOVE_PRE);
    tt_build_src(builder, own(TT_SPACE_IN, 0));
    tt_build_dst(builder, slot(rank, 0));
}

/* Rank 0 sends; rank 1 adds and answers. */
static void answer(struct tt_builder *builder)
{
    begin(builder, 0);
    give(builder, 1);
    tt_build_copy(builder, slot(1, 0), own(TT_SPACE_OUT, 0));
    tt_build_stop(builder);
    begin(builder, 1);
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE | TT_MOVE_POST);
    tt_build_src(builder, slot(0, 0));
    tt_build_src(builder, own(TT_SPACE_IN, 0));
    tt_build_dst(builder, own(TT_SPACE_OUT, 0));
    tt_build_dst(builder, slot(0, 0));
    tt_build_stop(builder);
}

static void drop(struct tt_builder *builder, int rank)
{
    tt_build_move(builder, 0);
    tt_build_src(builder, slot(rank, 0));
}

/* Rank 0 sends to both others and hears of rank 1 alone, which has heard of rank 2. */
static void answer_for_both(struct tt_builder *builder, bool late)
{
    begin(builder, 0);
    give(builder, 1);
    tt_build_dst(builder, slot(2, 0));
    tt_build_copy(builder, slot(1, 0), own(TT_SPACE_OUT, 0));
    tt_build_stop(builder);
    begin(builder, 1);
    tt_build_move(builder, TT_MOVE_REDUCE | TT_MOVE_PRE | TT_MOVE_POST);
    tt_build_src(builder, slot(0, 0));
    tt_build_src(builder, own(TT_SPACE_IN, 0));
    tt_build_src(builder, slot(2, 0));
    tt_build_dst(builder, own(TT_SPACE_OUT, 0));
    tt_build_dst(builder, slot(0, 0));
    tt_build_dst(builder, slot(2, 0));
    tt_build_stop(builder);
    begin(builder, 2);
    if (!late) drop(builder, 0);
    give(builder, 1);
    tt_build_copy(builder, slot(1, 0), own(TT_SPACE_OUT, 0));
    if (late) drop(builder, 0);
    tt_build_stop(builder);
}

static void both_take_first(struct tt_builder *builder)
{
    answer_for_both(builder, false);
}

static void one_takes_last(struct tt_builder *builder)
{
    answer_for_both(builder, true);
}

/* In place, and out of place, what rank 0's first instruction posts. */
static void some_wait_for_the_reader(void **state)
{
    static const struct {
        const char *name;
        void (*write)(struct tt_builder *builder);
        int nranks, in_place;
    } rows[] = {
        {"swap", swap, 2, 0},
        {"answer", answer, 2, TT_REF_SRC_TAKEN},
        {"both take it first", both_take_first, 3, TT_REF_SRC_TAKEN},
        {"one takes it last", one_takes_last, 3, 0},
    };
    (void)state;
    for (size_t k = 0; k < TT_LEN(rows); k++) {
        struct tt_program *program = NULL;
        struct tt_builder builder;
        char fault[256] = "";
        uint8_t refs[16];
        print_message("case: %s\n", rows[k].name);
        tt_build_begin(&builder, rows[k].nranks);
        builder.head.algo = TT_ALGO_RING;
        builder.head.proto = TT_PROTO_SIMPLE;
        builder.head.func = TT_FUNC_ALLREDUCE;
        rows[k].write(&builder);
        assert_int_equal(tt_build_end(&builder, &program), ncclSuccess);
        assert_true(program->ninsns <= TT_LEN(refs));
        tt_program_find_refs(program, 0, refs);
        assert_int_equal(refs[0] & (TT_REF_SRC | TT_REF_SRC_TAKEN), TT_REF_SRC | TT_REF_SRC_TAKEN);
        assert_int_equal(refs[0] >> TT_REF_IN_PLACE_, rows[k].in_place);
        const struct tt_program *programs[] = {program, program, program};
        const struct tt_verify_options options = {
            .count = 40, .chunk_limit = 20, .grain = 1, .slice = 3, .nslots = 8, .in_place = true};
        tt_program_verify(programs, rows[k].nranks, &options, fault, sizeof(fault));
        assert_string_equal(fault, "");
        free(program);
    }
}

/* A ring in place writes the input that it sent first when the sum has gone round; of many ranks
 * the messages are not followed. */
static void rings_wait_for_the_reader(void **state)
{
    static const struct program_case ring = {TT_FUNC_ALLREDUCE, TT_ALGO_RING, TT_PROTO_SIMPLE,
                                             false};
    (void)state;
    for (int n = 2; n <= 100; n += n < 17 ? 1 : 83) {
        struct program_set set = program_set_make(&ring, 0, n, n, 0);
        uint8_t refs[16];
        assert_true(set.programs[0]->ninsns <= TT_LEN(refs));
        for (int rank = 0; rank < n; rank++) {
            tt_program_find_refs(set.programs[rank], rank, refs);
            assert_int_equal(refs[0] & ((1 << TT_REF_BITS_) - 1), TT_REF_SRC | TT_REF_SRC_TAKEN);
            assert_int_equal(refs[0] >> TT_REF_IN_PLACE_, n < 100 ? TT_REF_SRC_TAKEN : 0);
        }
        program_set_free(&set);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_wait_for_the_reader),
        cmocka_unit_test(rings_wait_for_the_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
