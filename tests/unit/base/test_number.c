/* Numbers are read with a point whatever the program's locale says; where no locale with a comma
 * can be made the second half is left out. */
#include "../check.h"

#include "base/text/number.h"

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void reads_points(void **state)
{
    char *end = NULL;
    (void)state;
    assert_true(tt_number_read("16.5 GT/s", &end) == 16.5);
    assert_string_equal(end, " GT/s");
    assert_true(tt_number_read("nothing", &end) == 0);
    assert_string_equal(end, "nothing");
}

static void reads_points_among_commas(void **state)
{
    char folder[] = "/tmp/tutti-number-XXXXXX", command[160];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof(command), "localedef -i de_DE -f ISO-8859-1 %s/comma >/dev/null 2>&1",
             folder);
    int made = system(command); /* NOLINT(cert-env33-c): no words from outside */
    setenv("LOCPATH", folder, 1);
    bool commas = setlocale(LC_NUMERIC, "comma") && strtod("16.5", NULL) == 16;
    if (commas) reads_points(state);
    setlocale(LC_NUMERIC, "C");
    snprintf(command, sizeof(command), "rm -r %s", folder);
    if (system(command)) made = 1; /* NOLINT(cert-env33-c): the same */
    if (!commas) {
        print_message("no locale with commas (localedef: %d)\n", made);
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_points),
        cmocka_unit_test(reads_points_among_commas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
