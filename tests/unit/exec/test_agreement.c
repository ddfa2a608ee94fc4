/* What the verifier proves is what the executor does. */
#include "../check.h"
#include "world.h"

#include "base/mem.h"
#include "program/gen/gen.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* IN to OUT; OUT to the other rank; what comes from there and IN to OUT. The slot must hold OUT as
 * it was when it was posted, however large it is. */
static void copy_then_fold(struct tt_program *program, int rank)
{
    *program = (struct tt_program){.func = TT_FUNC_ALLREDUCE,
                                   .algo = TT_ALGO_RING,
                                   .proto = TT_PROTO_SIMPLE,
                                   .geometry = TT_GEOMETRY_BLOCKS,
                                   .nranks = 2,
                                   .rank = rank,
                                   .root = -1,
                                   .nchunks = 1};
    struct tt_operand in = tt_gen_own(TT_SPACE_IN, tt_gen_number(0));
    struct tt_operand out = tt_gen_own(TT_SPACE_OUT, tt_gen_number(0));
    struct tt_operand slot = tt_gen_at(TT_SPACE_SLOT, !rank, tt_gen_number(0));
    tt_gen_thread(program);
    tt_gen_copy(program, in, out);
    tt_gen_copy(program, out, slot);
    struct tt_insn *fold = tt_gen_move(program, TT_MOVE_FOLD);
    tt_gen_src(fold, slot);
    tt_gen_src(fold, in);
    tt_gen_dst(fold, out);
    tt_gen_end(program);
    tt_program_find_refs(program);
}

static void run_copy_then_fold(enum world_kind kind, size_t count)
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
        copy_then_fold(&world->rank[r].program, r);
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
        assert_int_equal(tt_exec_submit(work, &world->rank[r].stream, false), ncclSuccess);
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
        run_copy_then_fold((enum world_kind)kind, 1024);
        run_copy_then_fold((enum world_kind)kind, 16384);
        run_copy_then_fold((enum world_kind)kind, 100000);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_holds_what_was_posted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
