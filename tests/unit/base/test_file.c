/* What may be opened by name: regular files for reading, anything that takes bytes for writing, and
 * never a wait. */
#include "../check.h"

#include "base/mem.h"
#include "base/system/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT "two\nlines"

static char folder[] = "/tmp/tutti-test-file-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void only_regular_files_are_read(void **state)
{
    static const struct {
        const char *path, *why; /* NULL: it opens */
    } cases[] = {
        {"text", NULL},
        {"fifo", "not a regular file"},
        {".", "not a regular file"},
        {"absent", "No such file or directory"},
        {"../../dev/null", "not a regular file"},
    };
    (void)state;
    alarm(60); /* a FIFO that hangs ends the test */
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        const char *why = NULL;
        print_message("case: %s\n", cases[i].path);
        FILE *file = tt_file_open(in_folder(cases[i].path), &why);
        assert_int_equal(file != NULL, cases[i].why == NULL);
        if (file) fclose(file);
        if (cases[i].why) assert_string_equal(why, cases[i].why);
    }
    alarm(0);
}

static void files_are_read_whole_or_not_at_all(void **state)
{
    static const struct {
        const char *path, *text, *why; /* text NULL: it is refused */
        size_t most_bytes;
    } cases[] = {
        {"text", TEXT, NULL, 4096},
        {"text", TEXT, NULL, sizeof(TEXT) - 1},
        {"text", NULL, "it is too large", sizeof(TEXT) - 2},
        {"fifo", NULL, "not a regular file", 4096},
        {"absent", NULL, "No such file or directory", 4096},
    };
    (void)state;
    alarm(60);
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        const char *why = NULL;
        size_t bytes = 0;
        print_message("case: %zu, %s\n", i, cases[i].path);
        char *text = tt_file_read(in_folder(cases[i].path), cases[i].most_bytes, &bytes, &why);
        assert_int_equal(text != NULL, cases[i].text != NULL);
        if (text) {
            assert_string_equal(text, cases[i].text);
            assert_int_equal(bytes, strlen(cases[i].text));
            free(text);
        } else {
            assert_string_equal(why, cases[i].why);
        }
    }
    alarm(0);
}

static void fifos_are_written_when_read(void **state)
{
    (void)state;
    alarm(60);
    assert_null(tt_file_create(in_folder("fifo")));
    assert_int_equal(errno, ENXIO);
    const int reader = open(in_folder("fifo"), O_RDONLY | O_NONBLOCK);
    FILE *file = tt_file_create(in_folder("fifo"));
    assert_non_null(file);
    assert_int_equal(fcntl(fileno(file), F_GETFL) & O_NONBLOCK, 0);
    fclose(file);
    close(reader);
    alarm(0);
}

static void what_was_there_is_replaced(void **state)
{
    struct stat status;
    (void)state;
    FILE *file = tt_file_create(in_folder("text"));
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &status), 0);
    assert_int_equal(status.st_size, 0);
    fclose(file);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || mkfifo(in_folder("fifo"), 0600)) return 1;
    FILE *file = fopen(in_folder("text"), "w");
    return !file || fputs(TEXT, file) < 0 || fclose(file);
}

static int tear_down(void **state)
{
    (void)state;
    return remove(in_folder("text")) || remove(in_folder("fifo")) || rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_regular_files_are_read),
        cmocka_unit_test(files_are_read_whole_or_not_at_all),
        cmocka_unit_test(fifos_are_written_when_read),
        cmocka_unit_test(what_was_there_is_replaced),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
