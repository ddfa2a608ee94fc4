/* Operators: what a call's reduction becomes, per type and algorithm. */
#include "../check.h"
#include "fakes.h"

#include "base/mem.h"
#include "plan/bind/operator.h"
#include "plan/plan.h"
#include "plan/plan_state.h"

#include <string.h>

static struct tt_reduction reduction_of(struct tt_comm *comm, ncclDataType_t type, ncclRedOp_t op,
                                        ncclResult_t expected)
{
    struct tt_task task = {.func = TT_FUNC_ALLREDUCE, .type = type, .op = op, .comm = comm};
    struct tt_reduction reduction;
    assert_int_equal(tt_operator_reduction(comm->plan, &task, &reduction), expected);
    return reduction;
}

static void average_of_floats_scales_first(void **state)
{
    static const struct {
        const char *name;
        ncclDataType_t type;
        int nranks;
        uint64_t bits;
    } cases[] = {
        {"f16 1/2", ncclFloat16, 2, 0x3800},
        {"f16 1/3", ncclFloat16, 3, 0x3555},
        {"bf16 1/3", ncclBfloat16, 3, 0x3eab},
        {"e4m3 1/2", ncclFloat8e4m3, 2, 0x30},
        {"e4m3 1/3", ncclFloat8e4m3, 3, 0x2b},
        {"e4m3 1/96", ncclFloat8e4m3, 96, 0x05},
        {"e5m2 1/3", ncclFloat8e5m2, 3, 0x35},
        {"f32 1/3", ncclFloat32, 3, 0x3eaaaaab},
        {"f64 1/4", ncclFloat64, 4, 0x3fd0000000000000ull},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        struct tt_comm *comm = fake_comm(cases[i].nranks, 0, true);
        print_message("case: %s\n", cases[i].name);
        struct tt_reduction reduction = reduction_of(comm, cases[i].type, ncclAvg, ncclSuccess);
        assert_true(reduction.pre_mul);
        assert_int_equal(reduction.op, ncclSum);
        assert_int_equal(reduction.scalar_bits, cases[i].bits);
        fake_comm_free(comm);
    }
}

static void average_adapts_to_the_algorithm(void **state)
{
    struct tt_comm *comm = fake_comm(3, 0, true);
    struct tt_task task = {
        .func = TT_FUNC_ALLREDUCE, .type = ncclBfloat16, .op = ncclAvg, .comm = comm};
    struct tt_reduction reduction;
    (void)state;
    tt_operator_reduction(comm->plan, &task, &reduction);
    tt_operator_adapt(&reduction, &task, 3, TT_ALGO_RING);
    assert_true(reduction.pre_mul);
    tt_operator_adapt(&reduction, &task, 3, TT_ALGO_DIRECT);
    assert_false(reduction.pre_mul);
    assert_int_equal(reduction.post_div, 3);
    reduction = reduction_of(comm, ncclInt32, ncclAvg, ncclSuccess);
    assert_int_equal(reduction.post_div, 3);
    assert_false(reduction.pre_mul);
    fake_comm_free(comm);
}

static void user_operators(void **state)
{
    struct tt_comm *comm = fake_comm(2, 0, true), *other = fake_comm(2, 1, true);
    float scalar = 2.5f;
    double on_device = 3;
    ncclRedOp_t op, second;
    (void)state;
    assert_int_equal(tt_redop_create(comm, &scalar, ncclFloat32, ncclScalarHostImmediate, &op),
                     ncclSuccess);
    assert_int_equal(tt_redop_create(comm, &on_device, ncclFloat64, ncclScalarDevice, &second),
                     ncclSuccess);
    assert_true(op >= ncclNumOps && second >= ncclNumOps && op != second);
    scalar = 0; /* read inside create */
    struct tt_reduction reduction = reduction_of(comm, ncclFloat32, op, ncclSuccess);
    float kept;
    memcpy(&kept, &reduction.scalar_bits, sizeof(kept));
    assert_true(kept == 2.5f && reduction.pre_mul && !reduction.scalar_on_device);
    reduction = reduction_of(comm, ncclFloat64, second, ncclSuccess);
    assert_true(reduction.scalar_on_device && reduction.scalar_ptr == &on_device);
    reduction_of(comm, ncclInt32, op, ncclInvalidArgument);    /* another type */
    reduction_of(other, ncclFloat32, op, ncclInvalidArgument); /* another communicator */
    assert_int_equal(tt_redop_destroy(comm, op), ncclSuccess);
    assert_int_equal(tt_redop_destroy(comm, op), ncclInvalidArgument);
    reduction_of(comm, ncclFloat32, op, ncclInvalidArgument);
    assert_int_equal(
        tt_redop_create(comm, &scalar, (ncclDataType_t)99, ncclScalarHostImmediate, &op),
        ncclInternalError);
    fake_comm_free(comm);
    fake_comm_free(other);
}

static void operator_survives_its_destruction_in_a_group(void **state)
{
    static char buffer[256];
    struct tt_comm *comm = fake_comm(2, 0, true);
    float scalar = 2;
    ncclRedOp_t op;
    (void)state;
    fake_reset();
    tt_redop_create(comm, &scalar, ncclFloat32, ncclScalarHostImmediate, &op);
    struct tt_task task = {.func = TT_FUNC_ALLREDUCE,
                           .in = buffer,
                           .out = buffer,
                           .count = 4,
                           .type = ncclFloat32,
                           .op = op,
                           .root = -1,
                           .comm = comm,
                           .stream = fake_stream(0)};
    tt_group_start();
    assert_int_equal(tt_plan_add(&task, "call"), ncclSuccess);
    assert_int_equal(tt_redop_destroy(comm, op), ncclSuccess);
    assert_int_equal(tt_group_end(), ncclSuccess);
    assert_true(fake.works[0].frames[0].reduction.pre_mul);
    fake_comm_free(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(average_of_floats_scales_first),
        cmocka_unit_test(average_adapts_to_the_algorithm),
        cmocka_unit_test(user_operators),
        cmocka_unit_test(operator_survives_its_destruction_in_a_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
