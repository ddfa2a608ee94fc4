/* The log's layout, filters, file and time stamps, and the failure text. Lines are read back from a
 * file of NCCL_DEBUG_FILE, as a tool would. */
#include "../check.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char log_path[] = "/tmp/tutti-test-log-XXXXXX";

static void set(const char *name, const char *value)
{
    if (value) {
        assert_int_equal(setenv(name, value, 1), 0);
    } else {
        assert_int_equal(unsetenv(name), 0);
    }
}

/* Start with an empty file and these variables. */
static void restart(const char *level, const char *subs, const char *stamp)
{
    assert_int_equal(truncate(log_path, 0), 0);
    set("NCCL_DEBUG", level);
    set("NCCL_DEBUG_SUBSYS", subs);
    set("NCCL_DEBUG_TIMESTAMP_FORMAT", stamp);
    set("NCCL_DEBUG_TIMESTAMP_LEVELS", NULL);
    set("NCCL_WARN_ENABLE_DEBUG_INFO", NULL);
    tt_log_reset();
    tt_log_set_device(0);
}

static char *read_back(void)
{
    static char text[65536];
    FILE *file = fopen(log_path, "r");
    assert_non_null(file);
    const size_t len = fread(text, 1, sizeof(text) - 1, file);
    text[len] = '\0';
    fclose(file);
    return text;
}

static void assert_matches(const char *text, const char *pattern)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    const int code = regexec(&regex, text, 0, NULL, 0);
    regfree(&regex);
    if (code != 0) fail_msg("'%s' does not match '%s'", text, pattern);
}

static int set_up(void **state)
{
    (void)state;
    const int fd = mkstemp(log_path);
    if (fd < 0) return -1;
    close(fd);
    setenv("HOME", "/nonexistent", 1);
    setenv("NCCL_DEBUG_FILE", log_path, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(log_path);
}

static void layout_per_level(void **state)
{
    static const struct {
        const char *name;
        enum tt_log_level level;
        uint32_t sub;
        const char *pattern;
    } cases[] = {
        {"version", TT_LOG_VERSION, TT_LOG_ALL, "^text 7\n$"},
        {"warn", TT_LOG_WARN, TT_LOG_ALL,
         "^\n<[a-zA-Z0-9_-]+:[0-9]+:[0-9]+ \\[3\\] net/socket.c:58 \\(some_func\\) NCCL WARN text "
         "7\n$"},
        {"attn", TT_LOG_ATTN, TT_LOG_ALL,
         "^\n<[^ ]+ \\[3\\] net/socket.c:58 \\(some_func\\) NCCL ATTN text 7\n$"},
        {"info", TT_LOG_INFO, TT_LOG_INIT, "^[^ ]+:[0-9]+:[0-9]+ \\[3\\] NCCL INFO text 7\n$"},
        {"call", TT_LOG_TRACE, TT_LOG_CALL, "^[^ ]+:[0-9]+:[0-9]+ NCCL CALL text 7\n$"},
        {"trace", TT_LOG_TRACE, TT_LOG_NET,
         "^[^ ]+:[0-9]+:[0-9]+ \\[3\\] [0-9]+\\.[0-9]{6} some_func:58 NCCL TRACE text 7\n$"},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        print_message("case: %s\n", cases[i].name);
        restart("TRACE", "ALL", "<");
        tt_log_set_device(3);
        tt_log_line(cases[i].level, cases[i].sub, "../src/net/socket.c", 58, "some_func", "text %d",
                    7);
        assert_matches(read_back(), cases[i].pattern);
    }
}

static void levels_and_subsystems_filter(void **state)
{
    static const struct {
        const char *level;
        const char *subs;
        bool warn, init, net, init_or_net, trace;
    } cases[] = {
        {NULL, NULL, false, false, false, false, false},
        {"", NULL, false, false, false, false, false},
        {"version", NULL, false, false, false, false, false},
        {"warn", NULL, true, false, false, false, false},
        {"INFO", NULL, true, true, false, true, false},
        {"info", "net", true, false, true, true, false},
        {"info", " net , ,init ", true, true, true, true, false},
        {"info", "^NET,ENV", true, true, false, true, false},
        {"info", "^ALL", true, false, false, false, false},
        {"info", "", true, false, false, false, false},
        {"info", "unknown,NET", true, false, true, true, false},
        {"trace", "ALL", true, true, true, true, true},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        print_message("case: %s, %s\n", cases[i].level, cases[i].subs);
        restart(cases[i].level, cases[i].subs, "");
        assert_int_equal(tt_log_on(TT_LOG_WARN, TT_LOG_ALL), cases[i].warn);
        assert_int_equal(tt_log_on(TT_LOG_INFO, TT_LOG_INIT), cases[i].init);
        assert_int_equal(tt_log_on(TT_LOG_INFO, TT_LOG_NET), cases[i].net);
        assert_int_equal(tt_log_on(TT_LOG_INFO, TT_LOG_INIT | TT_LOG_NET), cases[i].init_or_net);
        assert_int_equal(tt_log_on(TT_LOG_TRACE, TT_LOG_NET), cases[i].trace);
    }
}

/* ATTN stands between WARN and INFO; NCCL_DEBUG_LEVELS adds to what NCCL_DEBUG brings. */
static void levels_are_added(void **state)
{
    static const struct {
        const char *level, *more;
        bool warn, attn, info, trace;
    } cases[] = {
        {"WARN", NULL, true, false, false, false},
        {"attn", NULL, true, true, false, false},
        {"INFO", "", true, true, true, false},
        {"WARN", "ATTN", true, true, false, false},
        {"WARN", " info", true, false, true, false},
        {NULL, "ATTN,TRACE", false, true, false, true},
        {"VERSION", "ALL", true, true, true, true},
        {"WARN", "LOUD,ATTN", true, true, false, false},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        print_message("case: %s, %s\n", cases[i].level, cases[i].more);
        restart(cases[i].level, "INIT", "");
        set("NCCL_DEBUG_LEVELS", cases[i].more);
        assert_int_equal(tt_log_on(TT_LOG_WARN, TT_LOG_ALL), cases[i].warn);
        assert_int_equal(tt_log_on(TT_LOG_ATTN, TT_LOG_ALL), cases[i].attn);
        assert_int_equal(tt_log_on(TT_LOG_INFO, TT_LOG_INIT), cases[i].info);
        assert_int_equal(tt_log_on(TT_LOG_TRACE, TT_LOG_INIT), cases[i].trace);
        tt_attn("look");
        assert_true(!strstr(read_back(), "NCCL ATTN look") == !cases[i].attn);
    }
    set("NCCL_DEBUG_LEVELS", NULL);
}

static void unknown_words_are_named(void **state)
{
    (void)state;
    restart("INFO", "nett,init", "");
    tt_info(TT_LOG_INIT, "go");
    assert_matches(read_back(), "NCCL WARN NCCL_DEBUG_SUBSYS: 'nett' is not known.*\n.*INFO go\n$");
    restart("WARN", NULL, "");
    set("NCCL_DEBUG_TIMESTAMP_LEVELS", "WARN,LOUD");
    tt_warn("go");
    assert_matches(read_back(), "NCCL_DEBUG_TIMESTAMP_LEVELS: 'LOUD' is not known");
}

static void stamps_follow_format_and_levels(void **state)
{
    static const struct {
        const char *format;
        const char *levels;
        const char *warn_pattern;
        const char *info_pattern;
    } cases[] = {
        {NULL, NULL, "^\n\\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\\] [^ ]+:", "^[^[ ]+:[0-9]+:"},
        {"%H_%3f|", "ALL", "^\n[0-9]{2} [0-9]{3}\\|[^ ]+:", "^[0-9]{2} [0-9]{3}\\|[^ ]+:"},
        {"%%3f|", "INFO", "^\n[^|]+ NCCL WARN", "^%3f\\|[^ ]+:"},
        {"@", "^INFO", "^\n@[^ ]+:", "^[^@]+:[0-9]+:"},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        print_message("case: %s, %s\n", cases[i].format, cases[i].levels);
        restart("INFO", NULL, cases[i].format);
        set("NCCL_DEBUG_TIMESTAMP_LEVELS", cases[i].levels);
        tt_warn("x");
        assert_matches(read_back(), cases[i].warn_pattern);
        assert_int_equal(truncate(log_path, 0), 0);
        tt_info(TT_LOG_INIT, "x");
        assert_matches(read_back(), cases[i].info_pattern);
    }
}

static void text_is_never_a_format(void **state)
{
    (void)state;
    restart("INFO", NULL, "");
    tt_log_plugin(TT_LOG_INFO, TT_LOG_INIT, "p.c", 1, "%s\n\n", "%n %s");
    assert_matches(read_back(), "NCCL INFO %n %s\n$");
    restart("WARN", NULL, "%%s ");
    const char *volatile nothing = NULL; /* hidden from the compiler, which would warn */
    tt_log_plugin(TT_LOG_WARN, TT_LOG_ALL, "100%n.c", 12, "%s", nothing);
    assert_matches(read_back(), "^\n%s [^ ]+ \\[0\\] 100%n.c:12 NCCL WARN \\(null\\)\n$");
    restart("TRACE", "ALL", "");
    tt_log_plugin(99, TT_LOG_ALL, NULL, 1, "never");
    tt_log_plugin(TT_LOG_TRACE, TT_LOG_NET, "isend", 9, "done");
    assert_matches(read_back(), "^[^\n]+ isend:9 NCCL TRACE done\n$");
}

static void long_lines_stay_whole(void **state)
{
    (void)state;
    char *text = calloc(1, 10001);
    assert_non_null(text);
    memset(text, 'x', 10000);
    restart("INFO", NULL, "");
    tt_info(TT_LOG_INIT, "%s", text);
    const char *line = strstr(read_back(), "INFO ");
    assert_non_null(line);
    assert_int_equal(strlen(line), 5 + 10000 + 1);
    free(text);
}

static void first_warn_raises_the_level(void **state)
{
    (void)state;
    restart("WARN", NULL, "");
    set("NCCL_WARN_ENABLE_DEBUG_INFO", "1");
    assert_false(tt_log_on(TT_LOG_INFO, TT_LOG_INIT));
    tt_warn("trouble");
    assert_true(tt_log_on(TT_LOG_INFO, TT_LOG_INIT));
}

static void failures_are_kept_and_trailed(void **state)
{
    (void)state;
    restart(NULL, NULL, "");
    errno = ENOENT;
    assert_int_equal(tt_fail(ncclSystemError, "open %s: %m", "x%d"), ncclSystemError);
    assert_int_equal(errno, ENOENT);
    assert_string_equal(tt_last_error(), "open x%d: No such file or directory");
    assert_string_equal(read_back(), "");

    restart("INFO", "NONE_KNOWN,COLL", "");
    assert_int_equal(tt_trail(tt_fail(ncclInvalidArgument, "bad")), ncclInvalidArgument);
    assert_int_equal(tt_trail(ncclInProgress), ncclInProgress);
    assert_matches(read_back(), "NCCL WARN bad\n[^\n]+INFO [^\n]*test_log.c:[0-9]+ "
                                "\\(failures_are_kept_and_trailed\\) -> 4\n[^\n]+ -> 4\n$");
}

static void expected_failures_are_quiet(void **state)
{
    (void)state;
    restart("INFO", "NET", "");
    tt_fail(ncclSystemError, "first");
    const uint32_t before = tt_log_expect(TT_LOG_NET);
    tt_fail(ncclSystemError, "probe failed");
    assert_int_equal(tt_log_expect(before), TT_LOG_NET);
    assert_string_equal(tt_last_error(), "first");
    assert_matches(read_back(), "NCCL INFO probe failed\n");
}

static void child_prints_its_own_pid(void **state)
{
    (void)state;
    char pattern[64];
    restart("INFO", NULL, "");
    tt_info(TT_LOG_INIT, "parent");
    const pid_t pid = fork();
    if (pid == 0) {
        tt_info(TT_LOG_INIT, "child");
        _exit(0);
    }
    assert_true(pid > 0);
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    snprintf(pattern, sizeof(pattern), ":%d:%d \\[0\\] NCCL INFO child\n$", (int)pid, (int)pid);
    assert_matches(read_back(), pattern);
}

static void file_names_expand(void **state)
{
    char path[128];
    char pattern[128];
    (void)state;
    snprintf(pattern, sizeof(pattern), "/tmp/tutti-%%p-%%%%-%%x.log");
    snprintf(path, sizeof(path), "/tmp/tutti-%d-%%-%%x.log", (int)getpid());
    restart("INFO", NULL, "");
    set("NCCL_DEBUG_FILE", pattern);
    tt_info(TT_LOG_INIT, "x");
    set("NCCL_DEBUG_FILE", log_path);
    assert_int_equal(unlink(path), 0);

    set("NCCL_DEBUG_FILE", "/nonexistent/dir/file");
    restart("WARN", NULL, "");
    assert_true(tt_log_on(TT_LOG_WARN, TT_LOG_ALL)); /* and one sentence went to stdout */
    set("NCCL_DEBUG_FILE", log_path);
}

static void every_code_has_a_text(void **state)
{
    (void)state;
    for (int code = -2; code < 12; code++) {
        const char *text = tt_result_text((ncclResult_t)code);
        assert_non_null(text);
        assert_true(*text);
    }
    assert_string_equal(tt_result_text((ncclResult_t)99), tt_result_text((ncclResult_t)-5));
}

/* A case that may hang, or end the process by a signal, has a process of its own. */
static void assert_survives(void (*run)(void))
{
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        run();
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void write_beyond_limit(void)
{
    const struct rlimit limit = {8192, 8192};
    if (setrlimit(RLIMIT_FSIZE, &limit)) _exit(1);
    for (int i = 0; i < 1000; i++)
        tt_warn("line %d", i);
    /* a signal that waits before is kept for its owner */
    sigset_t one, waiting;
    sigemptyset(&one);
    sigaddset(&one, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &one, NULL);
    raise(SIGXFSZ);
    tt_warn("one line more");
    sigpending(&waiting);
    if (!sigismember(&waiting, SIGXFSZ)) _exit(2);
}

static void write_to_full_disk(void)
{
    set("NCCL_DEBUG_FILE", "/dev/full");
    tt_log_reset();
    for (int i = 0; i < 10; i++)
        tt_warn("line %d", i);
}

static char fifo_path[] = "/tmp/tutti-test-log-XXXXXX/fifo";

static void write_to_fifo(void)
{
    char line[256];
    set("NCCL_DEBUG_FILE", fifo_path); /* no process reads it: stdout, as for any file that fails */
    tt_log_reset();
    tt_warn("nobody reads this");
    int reader = open(fifo_path, O_RDONLY | O_NONBLOCK);
    tt_log_reset();
    tt_warn("somebody reads this");
    const ssize_t got = read(reader, line, sizeof(line) - 1);
    if (got <= 0) _exit(1);
    line[got] = '\0';
    if (!strstr(line, "somebody reads this")) _exit(2);
    close(reader);
    tt_warn("nobody reads this any more"); /* SIGPIPE */
}

static void log_at_end(void *text)
{
    tt_warn("%s", (const char *)text);
}

/* A device and an expectation of its own; it writes once more when it ends. */
static void *log_as_device_7(void *key)
{
    static char text[] = "at the end";
    tt_log_set_device(7);
    assert_int_equal(tt_log_expect(TT_LOG_NET), 0);
    assert_int_equal(tt_log_expect(0), TT_LOG_NET);
    assert_int_equal(pthread_setspecific(*(pthread_key_t *)key, text), 0);
    tt_warn("in between");
    return NULL;
}

static void each_thread_logs_as_its_own(void **state)
{
    pthread_key_t key;
    pthread_t thread;
    (void)state;
    restart("WARN", NULL, "");
    tt_log_set_device(2);
    assert_int_equal(tt_log_expect(TT_LOG_INIT), 0);
    assert_int_equal(pthread_key_create(&key, log_at_end), 0);
    assert_int_equal(pthread_create(&thread, NULL, log_as_device_7, &key), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(tt_log_expect(0), TT_LOG_INIT);
    tt_warn("of the first");
    assert_int_equal(pthread_key_delete(key), 0);
    const char *text = read_back();
    assert_matches(text, "\\[7\\] .*in between");
    assert_matches(text, "\\[7\\] .*at the end");
    assert_matches(text, "\\[2\\] .*of the first");
}

/* The log's destination fails: the program goes on. */
static void no_destination_ends_the_process(void **state)
{
    (void)state;
    restart("WARN", NULL, "");
    assert_survives(write_beyond_limit);
    assert_survives(write_to_full_disk);
    fifo_path[strlen(fifo_path) - 5] = '\0';
    assert_non_null(mkdtemp(fifo_path));
    fifo_path[strlen(fifo_path)] = '/';
    assert_int_equal(mkfifo(fifo_path, 0600), 0);
    assert_survives(write_to_fifo);
    assert_int_equal(remove(fifo_path), 0);
    *strrchr(fifo_path, '/') = '\0';
    assert_int_equal(rmdir(fifo_path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_per_level),
        cmocka_unit_test(levels_and_subsystems_filter),
        cmocka_unit_test(levels_are_added),
        cmocka_unit_test(unknown_words_are_named),
        cmocka_unit_test(stamps_follow_format_and_levels),
        cmocka_unit_test(text_is_never_a_format),
        cmocka_unit_test(long_lines_stay_whole),
        cmocka_unit_test(first_warn_raises_the_level),
        cmocka_unit_test(failures_are_kept_and_trailed),
        cmocka_unit_test(expected_failures_are_quiet),
        cmocka_unit_test(each_thread_logs_as_its_own),
        cmocka_unit_test(child_prints_its_own_pid),
        cmocka_unit_test(file_names_expand),
        cmocka_unit_test(no_destination_ends_the_process),
        cmocka_unit_test(every_code_has_a_text),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
