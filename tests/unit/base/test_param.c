/* The table of variables, the parsing of values, configuration files and unknown names. */
#include "../check.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/param/param_files.h"
#include "base/text/spelling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char conf_path[] = "/tmp/tutti-test-conf-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    const int fd = mkstemp(conf_path);
    if (fd < 0) return -1;
    close(fd);
    setenv("NCCL_CONF_FILE", conf_path, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tt_param_forget();
    return unlink(conf_path);
}

static void write_conf(const char *text)
{
    FILE *file = fopen(conf_path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    tt_param_forget();
}

static void table_is_sorted_and_whole(void **state)
{
    (void)state;
    size_t count = 0;
    const struct tt_param *table = tt_param_table(&count);
    assert_true(count > 300);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) assert_true(strcmp(table[i - 1].name, table[i].name) < 0);
        assert_non_null(table[i].area);
        assert_true(*table[i].values && *table[i].unset && *table[i].meaning);
        assert_ptr_equal(tt_param_find(table[i].name), &table[i]);
    }
    assert_null(tt_param_find("NCCL_NO_SUCH"));
    assert_non_null(tt_param_find("NCCL_DEBUG_LEVELS")); /* of 2.32, and 2.31's undocumented ones */
    assert_non_null(tt_param_find("NCCL_CFT_ENABLE"));
    assert_non_null(tt_param_find("NCCL_TOPO_SCATTER_START_NET"));
}

static void every_fallback_parses(void **state)
{
    (void)state;
    size_t count = 0;
    const struct tt_param *table = tt_param_table(&count);
    tt_param_forget();
    for (size_t i = 0; i < count; i++) {
        if (!table[i].fallback || getenv(table[i].name)) continue;
        if (!tt_param_str(table[i].name)) fail_msg("%s: fallback", table[i].name);
        assert_false(tt_param_is_set(table[i].name));
        assert_string_equal(tt_param_origin(table[i].name), "default");
    }
}

static void values_parse_by_type(void **state)
{
    static const struct {
        const char *name;
        const char *text;
        bool good;
        int64_t number;
    } cases[] = {
        {"NCCL_BUFFSIZE", "4194304", true, 4194304},
        {"NCCL_BUFFSIZE", "0x10", true, 16},
        {"NCCL_BUFFSIZE", "010", true, 8},
        {"NCCL_BUFFSIZE", " 7 ", true, 7},
        {"NCCL_BUFFSIZE", "-5", true, -5},
        {"NCCL_BUFFSIZE", "12k", false, -2},
        {"NCCL_BUFFSIZE", "many", false, -2},
        {"NCCL_BUFFSIZE", "99999999999999999999", false, -2},
        {"NCCL_BUFFSIZE", "", false, -2},
        {"NCCL_P2P_DISABLE", "1", true, 1},
        {"NCCL_P2P_DISABLE", "tRuE", true, 1},
        {"NCCL_P2P_DISABLE", "f", true, 0},
        {"NCCL_P2P_DISABLE", "maybe", false, 0},
        {"TUTTI_DEVICE_MEMORY", "2G", true, INT64_C(2) << 30},
        {"TUTTI_DEVICE_MEMORY", "3KiB", true, 3072},
        {"TUTTI_DEVICE_MEMORY", "5m", true, 5 << 20},
        {"TUTTI_DEVICE_MEMORY", "17", true, 17},
        {"TUTTI_DEVICE_MEMORY", "-1", false, 0},
        {"TUTTI_DEVICE_MEMORY", "1X", false, 0},
        {"TUTTI_DEVICE_MEMORY", "9999999999999T", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        print_message("case: %s '%s'\n", cases[i].name, cases[i].text);
        setenv(cases[i].name, cases[i].text, 1);
        tt_param_forget();
        assert_int_equal(tt_param_is_set(cases[i].name), cases[i].good);
        assert_int_equal(tt_param_int(cases[i].name), cases[i].number);
        assert_int_equal(tt_param_bool(cases[i].name), cases[i].number != 0);
        unsetenv(cases[i].name);
    }
}

static void words_take_the_spelling_of_the_table(void **state)
{
    (void)state;
    setenv("TUTTI_DEVICE", "HOST", 1);
    setenv("NCCL_SOCKET_FAMILY", "af_inet6", 1);
    setenv("NCCL_CHECK_MODE", "debug_globl", 1);
    tt_param_forget();
    assert_string_equal(tt_param_str("TUTTI_DEVICE"), "host");
    assert_string_equal(tt_param_str("NCCL_SOCKET_FAMILY"), "AF_INET6");
    assert_string_equal(tt_param_str("NCCL_CHECK_MODE"), "DEFAULT");
    assert_false(tt_param_is_set("NCCL_CHECK_MODE"));
    unsetenv("TUTTI_DEVICE");
    unsetenv("NCCL_SOCKET_FAMILY");
    unsetenv("NCCL_CHECK_MODE");
    tt_param_forget();
    assert_null(tt_param_str("NCCL_SOCKET_FAMILY"));
}

static void files_fill_the_environment(void **state)
{
    (void)state;
    setenv("NCCL_NET", "real", 1);
    unsetenv("NCCL_ALGO");
    unsetenv("TUTTI_TEST_ANY");
    write_conf("# comment\n"
               "no equals sign\n"
               "=no name\n"
               "NCCL_NET=file\n"
               "NCCL_ALGO=ring\r\n"
               "NCCL_ALGO=tree\n"
               "NCCL_SOCKET_IFNAME==eth0\n"
               "TUTTI_TEST_ANY= spaces stay ");
    assert_string_equal(tt_param_str("NCCL_NET"), "real");
    assert_string_equal(tt_param_origin("NCCL_NET"), "environment");
    assert_string_equal(tt_param_str("NCCL_ALGO"), "ring");
    assert_string_equal(tt_param_str("NCCL_SOCKET_IFNAME"), "=eth0");
    assert_string_equal(getenv("TUTTI_TEST_ANY"), " spaces stay ");
    assert_memory_equal(tt_param_origin("NCCL_ALGO"), "file ", 5);
    unsetenv("NCCL_NET");
    unsetenv("NCCL_ALGO");
    unsetenv("NCCL_SOCKET_IFNAME");
    unsetenv("TUTTI_TEST_ANY");
    write_conf("");
}

static void junk_in_files_is_harmless(void **state)
{
    (void)state;
    FILE *file = fopen(conf_path, "w");
    assert_non_null(file);
    for (int i = 0; i < 20000; i++) {
        fputc("NC=\n\r#\x01\xff"[i * 7 % 8], file);
    }
    for (int i = 0; i < 9000; i++) {
        fputc('x', file);
    }
    fclose(file);
    tt_param_forget();
    assert_false(tt_param_is_set("NCCL_PROTO"));
    write_conf("");
}

static void wrong_names(void **state)
{
    static const struct {
        const char *name;
        const char *said; /* its end; NULL: nothing */
    } cases[] = {
        {"NCCL_SOKET_IFNAME", "did you mean NCCL_SOCKET_IFNAME?"},
        {"NCCL_DEBUGG", "did you mean NCCL_DEBUG?"},
        {"TUTTI_DEVICS", "did you mean TUTTI_DEVICE?"},
        {"NCCL_COMPLETELY_UNRELATED_THING_OF_MINE", "`tutti env` lists all"},
        {"NCCL_SOCKET_TIMEOUT", "taken as TUTTI_INIT_TIMEOUT"},
        {"MSCCL_XML_FILES", "see: TUTTI_PROGRAM_DIR"},
        {"MSCCL_ALGO_DIR", "see: TUTTI_PROGRAM_DIR"},
        {"MSCCL_OF_SOMEBODY", NULL},
        {"NCCL_DEBUG", NULL},
        {"NCCL_HOME", NULL},
        {"HOME", NULL},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        char text[256] = "";
        const bool wrong = tt_param_name_wrong(cases[i].name, text, sizeof(text));
        print_message("case: %s -> %s\n", cases[i].name, text);
        assert_int_equal(wrong, cases[i].said != NULL);
        if (!wrong) continue;
        assert_true(strlen(text) > strlen(cases[i].said));
        assert_string_equal(text + strlen(text) - strlen(cases[i].said), cases[i].said);
    }
}

static void suggests_the_nearest_word(void **state)
{
    static const char words[] = "AF_INET, PARALLEL,Ring,Tree";
    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"Rng", "; did you mean Ring?"},
        {"tre", "; did you mean Tree?"},
        {"AF_INETT", "; did you mean AF_INET?"},
        {"PARALEL", "; did you mean PARALLEL?"},
        {"something else", ""},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        char said[40] = "?";
        print_message("case: '%s'\n", cases[i].text);
        tt_param_suggest(words, cases[i].text, strlen(cases[i].text), said, sizeof(said));
        assert_string_equal(said, cases[i].said);
    }
}

/* What a plugin may read is not called without effect. */
static void variables_of_plugins(void **state)
{
    char wrong[256];
    (void)state;
    unsetenv("NCCL_NET_PLUGIN");
    assert_true(tt_param_name_wrong("NCCL_FLOWER_POT_COUNT", wrong, sizeof(wrong)));
    setenv("NCCL_NET_PLUGIN", "none", 1);
    assert_true(tt_param_name_wrong("NCCL_FLOWER_POT_COUNT", wrong, sizeof(wrong)));
    setenv("NCCL_NET_PLUGIN", "mine", 1);
    assert_false(tt_param_name_wrong("NCCL_FLOWER_POT_COUNT", wrong, sizeof(wrong)));
    assert_true(tt_param_name_wrong("NCCL_DEBUGG", wrong, sizeof(wrong)));
    unsetenv("NCCL_NET_PLUGIN");
}

static void load_names_unknown_variables(void **state)
{
    char path[] = "/tmp/tutti-test-names-XXXXXX";
    char text[4096];
    (void)state;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    setenv("NCCL_DEBUG", "WARN", 1);
    setenv("NCCL_DEBUG_FILE", path, 1);
    setenv("NCCL_MIN_NCHANELS", "4", 1);
    setenv("NCCL_SOCKET_TIMEOUT", "17", 1);
    setenv("NCCL_HOME", "/opt/nccl", 1); /* builds' and containers', not addressed to us */
    setenv("NCCL_VERSION", "2.30.7", 1);
    tt_log_reset();
    tt_param_load();
    tt_param_load();
    const ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
    assert_true(len > 0);
    text[len] = '\0';
    const char *once = strstr(text, "NCCL_MIN_NCHANELS is not a known variable and has no effect; "
                                    "did you mean NCCL_MIN_NCHANNELS?");
    assert_non_null(once);
    assert_null(strstr(once + 1, "NCCL_MIN_NCHANELS is"));
    assert_non_null(strstr(text, "NCCL_SOCKET_TIMEOUT is not a variable of NCCL; taken as "
                                 "TUTTI_INIT_TIMEOUT"));
    assert_null(strstr(text, "NCCL_HOME"));
    assert_null(strstr(text, "NCCL_VERSION"));
    tt_param_forget();
    assert_int_equal(tt_param_int("TUTTI_INIT_TIMEOUT"), 17);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_sorted_and_whole),
        cmocka_unit_test(every_fallback_parses),
        cmocka_unit_test(values_parse_by_type),
        cmocka_unit_test(words_take_the_spelling_of_the_table),
        cmocka_unit_test(files_fill_the_environment),
        cmocka_unit_test(junk_in_files_is_harmless),
        cmocka_unit_test(wrong_names),
        cmocka_unit_test(suggests_the_nearest_word),
        cmocka_unit_test(variables_of_plugins),
        cmocka_unit_test(load_names_unknown_variables),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
