/* Set-up allocations, element sizes, result texts and the clock. */
#include "../check.h"

#include "base/mem.h"
#include "base/system/clock.h"

#include <stdlib.h>

static void calloc_is_zeroed_and_aligned(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 100000};
    (void)state;
    for (size_t i = 0; i < TT_LEN(sizes); i++) {
        unsigned char *memory = tt_calloc(sizes[i], 3);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % TT_LINE_BYTES, 0);
        for (size_t b = 0; b < sizes[i] * 3; b++) {
            assert_int_equal(memory[b], 0);
        }
        free(memory);
    }
    assert_null(tt_calloc(SIZE_MAX / 2, 3));
    assert_null(tt_calloc(SIZE_MAX, 1));
}

static void faults_come_once(void **state)
{
    (void)state;
    tt_fault_at(1);
    void *first = tt_calloc(1, 1);
    void *second = tt_calloc(1, 1);
    void *third = tt_calloc(1, 1);
    tt_fault_at(-1);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    free(first);
    free(third);
}

static void products_report_overflow(void **state)
{
    size_t product = 0;
    (void)state;
    assert_true(tt_mul_size(3, 5, &product));
    assert_int_equal(product, 15);
    assert_false(tt_mul_size(SIZE_MAX, 2, &product));
}

static void types_have_sizes(void **state)
{
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    (void)state;
    assert_int_equal(TT_LEN(sizes), ncclNumTypes);
    for (size_t i = 0; i < TT_LEN(sizes); i++) {
        assert_int_equal(tt_type_bytes((ncclDataType_t)i), sizes[i]);
    }
    assert_int_equal(tt_type_bytes((ncclDataType_t)-1), 0);
    assert_int_equal(tt_type_bytes(ncclNumTypes), 0);
}

static void clock_moves_forward(void **state)
{
    (void)state;
    const uint64_t start = tt_now_nsec();
    tt_sleep_usec(1000);
    assert_true(tt_now_nsec() >= start + 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calloc_is_zeroed_and_aligned), cmocka_unit_test(faults_come_once),
        cmocka_unit_test(products_report_overflow),     cmocka_unit_test(types_have_sizes),
        cmocka_unit_test(clock_moves_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
