/* What block.h says of moves, case by case: programs that were once proved and ran otherwise. */
#include "../check.h"
#include "ranks.h"
#include "schedules.h"

#include "program/format/build.h"
#include "program/verify/verify.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* IN to OUT; OUT to the other rank; what comes from there and IN to OUT. The slot must hold OUT as
 * it was when it was posted, however large it is. */
static struct tt_program *copy_then_reduce(void)
{
    struct tt_builder builder;
    struct tt_program *program;
    struct tt_operand in = tt_gen_own(TT_SPACE_IN, tt_gen_number(0));
    struct tt_operand out = tt_gen_own(TT_SPACE_OUT, tt_gen_number(0));
    struct tt_operand slot = tt_gen_by(TT_SPACE_SLOT, TT_PEER_XOR, 1, tt_gen_number(0));
    tt_build_begin(&builder, 2);
    builder.head.func = TT_FUNC_ALLREDUCE;
    tt_build_thread(&builder);
    tt_build_copy(&builder, in, out);
    tt_build_copy(&builder, out, slot);
    tt_build_move(&builder, TT_MOVE_REDUCE);
    tt_build_src(&builder, slot);
    tt_build_src(&builder, in);
    tt_build_dst(&builder, out);
    tt_build_stop(&builder);
    assert_int_equal(tt_build_end(&builder, &program), ncclSuccess);
    return program;
}

static void run_copy_then_reduce(enum world_kind kind, size_t count)
{
    struct world *world = world_create(2, kind, 65536);
    char *out[2];
    for (int r = 0; r < 2; r++) {
        struct tt_frame frame;
        struct tt_work *work;
        char *in = world_memory(world, count * 4, 0);
        out[r] = world_memory(world, count * 4, 0);
        for (size_t i = 0; i < count; i++)
            ((int32_t *)(void *)in)[i] = (int32_t)i * 7 + r;
        world_program(world, r, copy_then_reduce());
        struct world_call call = {.count = count,
                                  .chunk_limit = 16384,
                                  .type = ncclInt32,
                                  .op = ncclSum,
                                  .in = in,
                                  .out = out[r],
                                  .in_bytes = count * 4,
                                  .out_bytes = count * 4};
        world_bind(world, r, &call, &frame);
        struct tt_work_spec spec = world_spec(world, r, &frame, 1);
        assert_int_equal(tt_work_create(&spec, &work), ncclSuccess);
        assert_int_equal(tt_exec_submit(work, &world->rank[r].stream), ncclSuccess);
    }
    world_run(world, 5);
    for (int r = 0; r < 2; r++) {
        for (size_t i = 0; i < count; i++)
            assert_int_equal(((int32_t *)(void *)out[r])[i], (int32_t)i * 14 + 1);
    }
    world_destroy(world);
}

static void a_slot_holds_what_was_posted(void **state)
{
    (void)state;
    for (int kind = WORLD_PROCESS; kind <= WORLD_SHM; kind++) {
        run_copy_then_reduce((enum world_kind)kind, 1024);
        run_copy_then_reduce((enum world_kind)kind, 16384);
        run_copy_then_reduce((enum world_kind)kind, 100000);
    }
}

enum { MANY_SLOTS = 256, ELEMENTS = 4 };

static const struct tt_verify_options few_elements = {
    .count = ELEMENTS, .chunk_limit = ELEMENTS, .grain = 1, .nslots = TT_SLOTS, .any_result = true};

static struct schedules_where refuse(const struct tt_program *program, const char *reason)
{
    const struct tt_program *programs[2] = {program, program};
    struct schedules_where where;
    char fault[160];
    assert_int_equal(tt_program_verify(programs, 2, &few_elements, fault, sizeof(fault)),
                     ncclInternalError);
    if (!strstr(fault, reason)) fail_msg("%s", fault);
    assert_true(schedules_where(fault, &where));
    return where;
}

static struct schedules_set few_schedules(const struct tt_program *program, int nslots)
{
    static const uint8_t none[32]; /* no slot refers to memory: programs with ENTER */
    static const uint8_t *const refs[2] = {none, none};
    struct schedules_set set = {
        .program = program, .refs = refs, .slice = ELEMENTS, .nslots = nslots};
    assert_true(program->needs_barrier && program->ninsns <= sizeof(none));
    tt_geometry_init(&set.geometry, program, ELEMENTS, (struct tt_extent){0, ELEMENTS}, ELEMENTS,
                     1);
    return set;
}

static void begin_pair(struct tt_builder *builder)
{
    tt_build_begin(builder, 2);
    builder->head.func = TT_FUNC_ALLREDUCE;
    builder->head.scratch = 2;
    builder->head.needs_barrier = true;
}

static void begin_rank(struct tt_builder *builder, int rank)
{
    tt_build_assign(builder, rank, tt_build_text(builder));
    tt_build_thread(builder);
    tt_build_insn(builder, TT_OP_ENTER, 0, -1);
}

static void end_rank(struct tt_builder *builder)
{
    tt_build_insn(builder, TT_OP_LEAVE, 0, -1);
    tt_build_stop(builder);
}

/* Chunk 0 of a buffer of the own rank, or of the edge with the other one. */
static struct tt_operand own(enum tt_space space)
{
    return tt_gen_own(space, tt_gen_number(0));
}
static struct tt_operand at(enum tt_space space, int rank)
{
    return tt_gen_at(space, rank, tt_gen_number(0));
}

/* Rank 1 reads its OUT before it takes the first of nine messages; rank 0 writes there after it has
 * posted the ninth. With eight slots that would be in order, but edges may have more: in memory,
 * small messages do. */
static void room_orders_nothing(void **state)
{
    struct tt_builder builder;
    struct tt_program *program;
    (void)state;
    begin_pair(&builder);
    begin_rank(&builder, 0);
    tt_build_insn(&builder, TT_OP_LOOP, 0, TT_SLOTS + 1);
    tt_build_copy(&builder, own(TT_SPACE_IN), at(TT_SPACE_SLOT, 1));
    tt_build_insn(&builder, TT_OP_NEXT, 0, 0);
    tt_build_copy(&builder, own(TT_SPACE_IN), at(TT_SPACE_OUT, 1));
    end_rank(&builder);
    begin_rank(&builder, 1);
    tt_build_copy(&builder, own(TT_SPACE_OUT), own(TT_SPACE_SCRATCH));
    tt_build_insn(&builder, TT_OP_LOOP, 0, TT_SLOTS + 1);
    tt_build_copy(&builder, at(TT_SPACE_SLOT, 0), own(TT_SPACE_SCRATCH));
    tt_build_insn(&builder, TT_OP_NEXT, 0, 0);
    end_rank(&builder);
    assert_int_equal(tt_build_end(&builder, &program), ncclSuccess);
    const struct schedules_where where = refuse(program, "races with another access");
    struct schedules_set set = few_schedules(program, MANY_SLOTS);
    assert_true(schedules_flip(&set, where.rank, where.pc, where.pass));
    set = few_schedules(program, TT_SLOTS);
    assert_false(schedules_flip(&set, where.rank, where.pc, where.pass));
    free(program);
}

/* Rank 1's second thread writes into rank 0; that its own rank has seen rank 0 enter it learns from
 * the very message that it adds to. The executor has looked up the address before that came. */
static void addresses_are_looked_up_first(void **state)
{
    struct tt_builder builder;
    struct tt_program *program;
    (void)state;
    begin_pair(&builder);
    begin_rank(&builder, 0);
    tt_build_copy(&builder, at(TT_SPACE_SLOT, 1), own(TT_SPACE_SCRATCH));
    tt_build_copy(&builder, own(TT_SPACE_IN), at(TT_SPACE_SLOT, 1));
    end_rank(&builder);
    begin_rank(&builder, 1);
    tt_build_copy(&builder, own(TT_SPACE_IN), at(TT_SPACE_SLOT, 0));
    tt_build_await(&builder, 1, 0);
    end_rank(&builder);
    tt_build_thread(&builder);
    tt_build_copy(&builder, at(TT_SPACE_SLOT, 0), at(TT_SPACE_OUT, 0));
    tt_build_stop(&builder);
    assert_int_equal(tt_build_end(&builder, &program), ncclSuccess);
    const struct schedules_where where = refuse(program, "without having seen it enter");
    assert_int_equal(where.rank, 1);
    const struct schedules_set set = few_schedules(program, TT_SLOTS);
    assert_true(schedules_touch_early(&set, where.rank, where.pc, where.pass));
    free(program);
}

/* What comes with a message is known to the whole move that takes it: rank 0 writes into rank 1's
 * OUT before it posts, and rank 1 adds that to what it takes. */
static void messages_order_the_whole_move(void **state)
{
    const struct tt_program *programs[2];
    struct tt_builder builder;
    struct tt_program *program;
    char fault[160];
    (void)state;
    begin_pair(&builder);
    begin_rank(&builder, 0);
    tt_build_copy(&builder, own(TT_SPACE_IN), at(TT_SPACE_OUT, 1));
    tt_build_copy(&builder, own(TT_SPACE_IN), at(TT_SPACE_SLOT, 1));
    end_rank(&builder);
    begin_rank(&builder, 1);
    tt_build_move(&builder, TT_MOVE_REDUCE);
    tt_build_src(&builder, own(TT_SPACE_OUT));
    tt_build_src(&builder, at(TT_SPACE_SLOT, 0));
    tt_build_dst(&builder, own(TT_SPACE_SCRATCH));
    end_rank(&builder);
    assert_int_equal(tt_build_end(&builder, &program), ncclSuccess);
    programs[0] = programs[1] = program;
    ncclResult_t rc = tt_program_verify(programs, 2, &few_elements, fault, sizeof(fault));
    if (rc) fail_msg("%s", fault);
    free(program);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_holds_what_was_posted),
        cmocka_unit_test(room_orders_nothing),
        cmocka_unit_test(addresses_are_looked_up_first),
        cmocka_unit_test(messages_order_the_whole_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
