/* What was meant: the nearest word, and none when nothing is near. */
#include "../check.h"

#include "base/text/spelling.h"

#include <string.h>

static void distances(void **state)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } cases[] = {{"", "", 0},          {"ring", "ring", 0}, {"ring", "rings", 1},
                 {"tree", "three", 1}, {"tree", "ring", 4}, {"perf", "pref", 1},
                 {"", "abc", 3}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        print_message("case: %s, %s\n", cases[i].a, cases[i].b);
        assert_int_equal(tt_edit_distance(cases[i].a, cases[i].b), cases[i].distance);
    }
}

static void suggestions(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {{"rimg", "; did you mean RING?"},
                 {"Tre", "; did you mean TREE?"},
                 {"collnetdirect", ""},
                 {"trxyz", ""},
                 {"--frob", ""},
                 {"rign", "; did you mean RING?"},
                 {"", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char out[64];
        print_message("case: %s\n", cases[i].text);
        tt_param_suggest("RING, TREE", cases[i].text, strlen(cases[i].text), out, sizeof(out));
        assert_string_equal(out, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(distances), cmocka_unit_test(suggestions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
