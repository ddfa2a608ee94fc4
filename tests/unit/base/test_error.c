/* Whose failure a thread reads: its own, or the process's where it has none. */
#include "../check.h"

#include "base/error.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char log_path[] = "/tmp/test-error-XXXXXX";

static void in_thread(void *(*call)(void *), void *arg)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, call, arg), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void fails(const char *text)
{
    tt_fail(ncclSystemError, "%s", text);
}

static void *fail_later(void *unused)
{
    fails("later");
    return unused;
}

static void *read_last(void *text_out)
{
    strcpy(text_out, tt_last_error());
    return NULL;
}

static void own_failure_first(void **state)
{
    char text[64];
    (void)state;
    in_thread(read_last, text);
    assert_string_equal(text, "");
    in_thread(fail_later, NULL);
    assert_string_equal(tt_last_error(), "later"); /* this thread has not failed yet */
    fails("ours");
    in_thread(fail_later, NULL);
    assert_string_equal(tt_last_error(), "ours");
    in_thread(read_last, text);
    assert_string_equal(text, "later");
}

static void *take_own(void *text_out)
{
    fails("of the job");
    tt_error_take(text_out, 64);
    return NULL;
}

/* A text that was taken is no later failure's, but the thread can still be asked for it. */
static void taken_once(void **state)
{
    char text[64];
    (void)state;
    fails("first");
    tt_error_take(text, sizeof(text));
    assert_string_equal(text, "first");
    assert_string_equal(tt_last_error(), "first");
    in_thread(take_own, text);
    assert_string_equal(text, "of the job");
    assert_string_equal(tt_last_error(), "first");
    tt_error_take(text, sizeof(text)); /* a failure that this thread did not report itself */
    assert_string_equal(text, "of the job");
    assert_string_equal(tt_last_error(), "of the job");
    fails("second");
    tt_error_take(text, sizeof(text));
    assert_string_equal(text, "second");
}

/* A loop that polls a wrong handle does not fill the disk with one line. */
static void a_repeated_failure_is_said_rarely(void **state)
{
    static char log[64 << 10];
    enum { CALLS = 100 };
    int lines = 0;
    (void)state;
    for (int i = 0; i < CALLS; i++)
        fails("comm is NULL, here");
    FILE *file = fopen(log_path, "r");
    assert_non_null(file);
    size_t bytes = fread(log, 1, sizeof(log) - 1, file);
    fclose(file);
    log[bytes] = 0;
    for (const char *at = log; (at = strstr(at, "comm is NULL, here")); at++)
        lines++;
    assert_int_equal(lines, 16 + 2); /* and 32 and 64 */
    assert_non_null(strstr(log, "comm is NULL, here (64 times in a row by now)\n"));
    fails("another");
    fails("comm is NULL, here");
    assert_string_equal(tt_last_error(), "comm is NULL, here");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_failure_first),
        cmocka_unit_test(taken_once),
        cmocka_unit_test(a_repeated_failure_is_said_rarely),
    };
    int fd = mkstemp(log_path);
    if (fd < 0) return 1;
    close(fd);
    setenv("NCCL_DEBUG", "WARN", 1);
    setenv("NCCL_DEBUG_FILE", log_path, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(log_path);
    return failed;
}
