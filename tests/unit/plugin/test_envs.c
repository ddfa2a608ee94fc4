/* Environment plugins, one process for each test: a process asks one for all its life.
 * usage: test_envs VERSION */
#include "../check.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "plugin/plugin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4 };

static const char *folder; /* of the plugins */
static int version;
static char own[] = "/tmp/tutti-envs.XXXXXX";

static const char *path_of(const char *name)
{
    static char path[4][128];
    static int next;
    char *text = path[next++ % 4];
    snprintf(text, sizeof(path[0]), "%s/%s", own, name);
    return text;
}

static const char *text_of(const char *name)
{
    static char text[1 << 18];
    FILE *file = fopen(path_of(name), "r");
    const size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[n] = '\0';
    if (file) fclose(file);
    return text;
}

static int times(const char *name, const char *what)
{
    int n = 0;
    for (const char *at = text_of(name); (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* Run `body` in a child that ends as a program does; true when it returned 0. */
static bool child(int (*body)(void))
{
    int status = -1;
    const pid_t pid = fork();
    if (pid == 0) {
        setenv("NCCL_DEBUG", "INFO", 1);
        setenv("NCCL_DEBUG_SUBSYS", "ALL", 1);
        setenv("NCCL_DEBUG_FILE", path_of("log"), 1);
        setenv("ENVTEST_FILE", path_of("answers"), 1);
        setenv("ENVTEST_NOTES", path_of("notes"), 1);
        exit(body());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status) print_message("%s%s", text_of("log"), text_of("notes"));
    return status == 0;
}

static void use(const char *fault)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/libnccl-env_test_v%d.so", folder, version);
    setenv("NCCL_ENV_PLUGIN", path, 1);
    if (fault) setenv("ENVTEST_FAULT", fault, 1);
}

static int clean(void **state)
{
    static const char *const names[] = {"log", "notes", "answers"};
    (void)state;
    for (size_t i = 0; i < TT_LEN(names); i++)
        unlink(path_of(names[i]));
    unsetenv("ENVTEST_FAULT");
    unsetenv("ENVTEST_PASS");
    unsetenv("NCCL_ENV_PLUGIN");
    FILE *answers = fopen(path_of("answers"), "w");
    assert_non_null(answers);
    fputs("NCCL_BUFFSIZE=12345\nNCCL_SOCKET_IFNAME=lo\nNCCL_DEBUG_FILE=/nowhere\n"
          "NCCL_P2P_DISABLE=1\nNCCL_CHECK_MODE=debug_local\n",
          answers);
    return fclose(answers);
}

#define EXPECT(what)                                                                               \
    if (!(what)) return printf("line %d: not so: %s\n", __LINE__, #what), fflush(stdout), 1

static int asks_it(void)
{
    use(NULL);
    setenv("NCCL_SOCKET_IFNAME", "eth7", 1);
    setenv("NCCL_MIN_CTAS", "5", 1);
    setenv("TUTTI_TIMEOUT", "77", 1);
    tt_env_open();
    tt_env_open();
    EXPECT(tt_param_int("TUTTI_TIMEOUT") == 77); /* ours: it cannot know it */
    EXPECT(tt_param_int("NCCL_BUFFSIZE") == 12345);
    EXPECT(!strcmp(tt_param_str("NCCL_SOCKET_IFNAME"), "lo")); /* the environment says eth7 */
    EXPECT(!tt_param_is_set("NCCL_MIN_CTAS"));                 /* NULL is final */
    EXPECT(!strcmp(tt_param_str("NCCL_CHECK_MODE"), "DEBUG_LOCAL"));
    EXPECT(!strcmp(tt_param_origin("NCCL_BUFFSIZE"), "plugin EnvTest"));
    EXPECT(!strcmp(tt_param_origin("NCCL_MIN_CTAS"), "default"));
    /* what it is found by, and how to log, comes from the environment */
    EXPECT(!strcmp(tt_param_str("NCCL_DEBUG_FILE"), path_of("log")));
    EXPECT(strstr(tt_param_str("NCCL_ENV_PLUGIN"), "env_test"));
    EXPECT(!strcmp(tt_param_origin("NCCL_ENV_PLUGIN"), "environment"));
    return 0;
}

static void it_is_asked_instead_of_the_environment(void **state)
{
    char line[128];
    (void)state;
    assert_true(child(asks_it));
    snprintf(line, sizeof(line), "ENV/Plugin: Using EnvTest (v%d)", version);
    assert_int_equal(times("log", line), 1);
    assert_int_equal(times("log", "Successfully loaded external env plugin "), 1);
    assert_int_equal(times("log", "ENVTEST: 5 answers"), version > 1); /* version 1 has no logger */
    assert_int_equal(times("notes", " init 2.32.3\n"), 1);
    assert_int_equal(times("notes", " finalize \n"), 1);
    assert_non_null(strstr(strstr(text_of("notes"), "NCCL_BUFFSIZE"), "finalize"));
    assert_int_equal(times("notes", " getEnv NCCL_P2P_DISABLE\n"), 0); /* it was not needed */
    assert_int_equal(times("notes", " getEnv NCCL_DEBUG"), 0);
    assert_int_equal(times("notes", " getEnv NCCL_ENV_PLUGIN"), 0);
}

static int reads_once(void)
{
    use(version > 1 ? "logs" : NULL);
    tt_env_open();
    for (int k = 0; k < 5; k++)
        EXPECT(tt_param_int("NCCL_BUFFSIZE") == 12345);
    return 0;
}

static void a_value_is_asked_for_once(void **state)
{
    (void)state;
    assert_true(child(reads_once));
    assert_int_equal(times("notes", " getEnv NCCL_BUFFSIZE\n"), 1);
    assert_int_equal(times("log", "ENVTEST: asked NCCL_BUFFSIZE"), version > 1);
}

static int text_stays(void)
{
    use("text-moves");
    tt_env_open();
    const char *one = tt_param_text("NCCL_BUFFSIZE");
    const char *other = tt_param_text("NCCL_SOCKET_IFNAME");
    EXPECT(!strcmp(one, "12345") && !strcmp(other, "lo"));
    EXPECT(tt_param_text("NCCL_BUFFSIZE") == one); /* kept once */
    return 0;
}

static void texts_outlive_the_next_question(void **state)
{
    (void)state;
    assert_true(child(text_stays));
}

static void *ask_all(void *arg)
{
    size_t count = 0;
    const struct tt_param *table = tt_param_table(&count);
    for (size_t k = 0; k < count; k++)
        tt_param_is_set(table[k].name);
    return arg;
}

static int threads_ask(void)
{
    pthread_t threads[THREADS];
    use("not-threads"); /* aborts when two are in it */
    tt_env_open();
    for (int k = 0; k < THREADS; k++)
        EXPECT(pthread_create(&threads[k], NULL, ask_all, NULL) == 0);
    for (int k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
    return tt_param_int("NCCL_BUFFSIZE") != 12345;
}

static void one_thread_at_a_time(void **state)
{
    (void)state;
    assert_true(child(threads_ask));
}

static int forks(void)
{
    int status = -1;
    use(NULL);
    tt_env_open();
    const pid_t pid = fork();
    if (pid == 0) exit(tt_param_int("NCCL_BUFFSIZE") != 12345);
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    return 0;
}

static void only_its_own_process_ends_it(void **state)
{
    (void)state;
    assert_true(child(forks));
    assert_int_equal(times("notes", " finalize \n"), 1);
}

static const struct fault_case {
    const char *fault, *says;
} faults[] = {
    {"init-fails", "ENV/Plugin: EnvTest: init returned 3; the environment is asked instead"},
    {"no-init", "ENV/Plugin: EnvTest has no init or getEnv; the environment is asked instead"},
    {"no-getenv", "ENV/Plugin: EnvTest has no init or getEnv; the environment is asked instead"},
};
static const char *fault;

static int falls_back(void)
{
    use(fault);
    setenv("NCCL_BUFFSIZE", "54321", 1);
    setenv("TUTTI_STRICT", "1", 1);
    tt_env_open();
    EXPECT(tt_param_int("NCCL_BUFFSIZE") == 54321);
    EXPECT(!strcmp(tt_param_origin("NCCL_BUFFSIZE"), "environment"));
    EXPECT(tt_param_check() == ncclInvalidUsage);
    return 0;
}

static void a_plugin_that_fails_is_reported_and_left(void **state)
{
    for (size_t i = 0; i < TT_LEN(faults); i++) {
        print_message("fault: %s\n", faults[i].fault);
        clean(state);
        fault = faults[i].fault;
        assert_true(child(falls_back));
        assert_int_equal(times("log", faults[i].says), 2); /* the warning, and what strict says */
        assert_int_equal(times("notes", "getEnv"), 0);
        assert_int_equal(times("notes", "finalize"), 0);
    }
}

static int goes_without(void)
{
    use(fault);
    tt_env_open();
    return tt_param_int("NCCL_BUFFSIZE") != 12345;
}

static void a_name_and_an_end_may_be_missing(void **state)
{
    fault = "no-name";
    assert_true(child(goes_without));
    assert_int_equal(times("log", "ENV/Plugin: Using without a name"), 1);
    clean(state);
    fault = "no-finalize";
    assert_true(child(goes_without));
    clean(state);
    fault = "finalize-fails";
    assert_true(child(goes_without));
    assert_int_equal(times("log", "ENV/Plugin: finalize returned 2"), 1);
}

static const char *named;
static int is_named(void)
{
    setenv("NCCL_BUFFSIZE", "54321", 1);
    if (named) setenv("NCCL_ENV_PLUGIN", named, 1);
    tt_env_open();
    return tt_param_int("NCCL_BUFFSIZE") != 54321;
}

static void it_is_found_as_the_others_are(void **state)
{
    char path[512];
    char says[640];
    named = "NONE";
    assert_true(child(is_named));
    assert_int_equal(times("log", "ENV/Plugin"), 0);
    clean(state);
    named = "absent";
    assert_true(child(is_named));
    assert_int_equal(times("log", "ENV/Plugin: Could not find: absent libnccl-env-absent.so"), 1);
    assert_int_equal(times("log", "NCCL_ENV_PLUGIN: no plugin absent could be loaded"), 1);
    clean(state);
    named = NULL;
    assert_true(child(is_named));
    assert_int_equal(times("log", "ENV/Plugin: Could not find: libnccl-env.so"), 1);
    clean(state);
    snprintf(path, sizeof(path), "%s/libnccl-env_test_v3.so", folder);
    named = path;
    assert_true(child(is_named));
    snprintf(says, sizeof(says),
             "External env plugin %s is unsupported: it has no ncclEnvPlugin_v2", path);
    assert_int_equal(times("log", says), 1);
    clean(state);
    snprintf(path, sizeof(path), "%s/libnccl-env_test_v66.so", folder);
    assert_true(child(is_named));
    assert_int_equal(times("log", "; it has ncclEnvPlugin_v66"), 1);
}

/* A bare name, and the default one, in the loader's path. */
static void by_name(void **state)
{
    char path[512], link[512], command[64];
    snprintf(path, sizeof(path), "%s/libnccl-env_test_v%d.so", folder, version);
    for (int bare = 0; bare < 2; bare++) {
        clean(state);
        snprintf(link, sizeof(link), "%s/libnccl-env%s.so", own, bare ? "-mine" : "");
        assert_int_equal(symlink(path, link), 0);
        snprintf(command, sizeof(command), "%d", version);
        const pid_t pid = fork();
        if (pid == 0) { /* the loader reads its path when a program starts */
            setenv("LD_LIBRARY_PATH", own, 1);
            if (bare) setenv("NCCL_ENV_PLUGIN", "mine", 1);
            setenv("ENVTEST_FILE", path_of("answers"), 1);
            execl("/proc/self/exe", "test_envs", command, "named", (char *)NULL);
            _exit(99);
        }
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        unlink(link);
        assert_int_equal(status, 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(it_is_asked_instead_of_the_environment, clean),
        cmocka_unit_test_setup(a_value_is_asked_for_once, clean),
        cmocka_unit_test_setup(texts_outlive_the_next_question, clean),
        cmocka_unit_test_setup(one_thread_at_a_time, clean),
        cmocka_unit_test_setup(only_its_own_process_ends_it, clean),
        cmocka_unit_test_setup(a_plugin_that_fails_is_reported_and_left, clean),
        cmocka_unit_test_setup(a_name_and_an_end_may_be_missing, clean),
        cmocka_unit_test_setup(it_is_found_as_the_others_are, clean),
        cmocka_unit_test_setup(by_name, clean),
    };
    if (argc > 2) { /* started by by_name() */
        tt_env_open();
        return tt_param_int("NCCL_BUFFSIZE") != 12345;
    }
    folder = getenv("TUTTI_TEST_PLUGINS");
    version = argc > 1 ? atoi(argv[1]) : 2;
    if (!folder || !mkdtemp(own)) return 77;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clean(NULL);
    unlink(path_of("answers"));
    rmdir(own);
    return failed;
}
