/* Whose failure a thread reads: its own, or the process's where it has none. */
#include "../check.h"

#include "base/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_failure_first),
        cmocka_unit_test(taken_once),
    };
    setenv("NCCL_DEBUG", "NONE", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
