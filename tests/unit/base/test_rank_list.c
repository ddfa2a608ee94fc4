/* Lists of ranks: whole where they are short, cut with their number where they are long. */
#include "../check.h"

#include "base/text/rank_list.h"

#include <limits.h>
#include <string.h>

static void texts(void **state)
{
    static const struct {
        int first, step, count;
        const char *expected;
    } cases[] = {{0, 1, 0, ""},
                 {3, 1, 1, "3"},
                 {3, 2, 2, "3, 5"},
                 {0, 1, 8, "0, 1, 2, 3, 4, 5, 6, 7"},
                 {0, 1, 9, "0, 1, 2, 3, 4, 5, 6, 7, ... (9 in all)"},
                 {5, 5, 12, "5, 10, 15, 20, 25, 30, 35, 40, ... (12 in all)"}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct tt_rank_list list = {.count = 0};
        print_message("case: %s\n", cases[i].expected);
        for (int k = 0; k < cases[i].count; k++)
            tt_rank_list_add(&list, cases[i].first + k * cases[i].step);
        assert_string_equal(list.text, cases[i].expected);
        assert_int_equal(list.count, cases[i].count);
        assert_int_equal(list.first, cases[i].count ? cases[i].first : 0);
    }
}

static void longest_is_whole(void **state)
{
    struct tt_rank_list list = {.count = 0};
    (void)state;
    for (int k = 0; k < 100; k++)
        tt_rank_list_add(&list, INT_MAX);
    list.count = INT_MAX - 1;
    tt_rank_list_add(&list, INT_MAX);
    assert_non_null(strstr(list.text, ", ... (2147483647 in all)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(longest_is_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
