/* The first of what is equal, against a look at each pair; and how often things are compared. */
#include "../check.h"

#include "base/dedup.h"
#include "base/mem.h"

#include <stdlib.h>

struct numbers {
    const int *value;
    long *compared;
};

static int compare(const void *things, int a, int b)
{
    const struct numbers *numbers = things;
    ++*numbers->compared;
    return (numbers->value[a] > numbers->value[b]) - (numbers->value[a] < numbers->value[b]);
}

static void first_of_each(void **state)
{
    static const int most[] = {1, 2, 7, 1000}; /* different values */
    int value[300], first[300];
    long compared = 0;
    (void)state;
    for (size_t c = 0; c < TT_LEN(most); c++) {
        unsigned seed = 12345;
        for (int i = 0; i < 300; i++) {
            seed = seed * 1103515245u + 12345u;
            value[i] = (int)(seed >> 16) % most[c];
        }
        const struct numbers numbers = {value, &compared};
        print_message("case: %d values\n", most[c]);
        assert_int_equal(tt_dedup_find(&numbers, 300, compare, first), ncclSuccess);
        for (int i = 0; i < 300; i++) {
            int wanted = 0;
            while (value[wanted] != value[i])
                wanted++;
            assert_int_equal(first[i], wanted);
        }
    }
    assert_int_equal(tt_dedup_find(NULL, 0, compare, NULL), ncclSuccess);
}

/* 12,500 hosts: 78 million pairs, 14 rounds of a sort. */
static void compares_little(void **state)
{
    enum { COUNT = 12500 };
    static int value[COUNT], first[COUNT];
    (void)state;
    for (int step = 0; step < 3; step++) {
        long compared = 0;
        for (int i = 0; i < COUNT; i++)
            value[i] = step == 0 ? i : step == 1 ? COUNT - i : i % 100;
        const struct numbers numbers = {value, &compared};
        assert_int_equal(tt_dedup_find(&numbers, COUNT, compare, first), ncclSuccess);
        assert_true(compared < 16l * COUNT);
        assert_int_equal(first[COUNT - 1], step == 2 ? 99 : COUNT - 1);
    }
}

static void out_of_memory(void **state)
{
    int value = 1, first = -7;
    long compared = 0;
    const struct numbers numbers = {&value, &compared};
    (void)state;
    tt_fault_at(0);
    assert_int_equal(tt_dedup_find(&numbers, 1, compare, &first), ncclSystemError);
    tt_fault_at(-1);
    assert_int_equal(first, -7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_of_each),
        cmocka_unit_test(compares_little),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
