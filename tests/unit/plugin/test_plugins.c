/* Finding, loading and hosting of plugins, against the test plugins. What a process loads it keeps
 * in registries, so every case runs in a process of its own. */
#include "../check.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/member.h"
#include "plugin/net/net.h"
#include "plugin/plugin.h"
#include "plugin/profiler/profiler.h"
#include "plugin/tuner/tuner.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *folder; /* of the test plugins */
static struct tt_member member = {.rank = 2, .nranks = 4, .comm_id = 0xabc, .name = "tp"};

static const char *plugin(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/libnccl-%s.so", folder, name);
    return path;
}

/* The log of the case, as text. */
static const char *log_text(void)
{
    static char text[65536];
    FILE *file = fopen(getenv("NCCL_DEBUG_FILE"), "r");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[n] = '\0';
    if (file) fclose(file);
    return text;
}

static bool logged(const char *what)
{
    if (strstr(log_text(), what)) return true;
    print_message("not in the log: %s\n%s", what, log_text());
    return false;
}

static int times_logged(const char *what)
{
    int n = 0;
    for (const char *at = log_text(); (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* ---- networks ---- */

static ncclResult_t open_net(const char *name, struct tt_net **net)
{
    struct tt_net_request request = {.member = &member, .name = name, .traffic_class = 3};
    return tt_net_open(&request, net);
}

static void the_builtin_is_the_last_resort(void)
{
    struct tt_net *net = NULL;
    setenv("NCCL_NET_PLUGIN", "absent,/nowhere/libother.so", 1);
    assert_int_equal(open_net(NULL, &net), ncclSuccess);
    assert_string_equal(net->name, "Socket");
    assert_null(tt_net_library(net));
    assert_true(logged("NET/Plugin: Could not find: absent libnccl-net-absent.so"));
    assert_true(logged("NET/Plugin: Could not find: /nowhere/libother.so"));
    assert_true(logged("Initialized NET plugin Socket"));
    assert_true(logged("Assigned NET plugin Socket to comm"));
    assert_true(logged("Using network Socket"));
    tt_net_close(net);
    assert_int_equal(open_net("socket", &net), ncclSuccess); /* without regard to case */
    tt_net_close(net);
    assert_int_equal(times_logged("Could not find: absent"), 1); /* a failure is final */
}

static void none_means_none(void)
{
    struct tt_net *net = NULL;
    setenv("NCCL_NET_PLUGIN", "NONE", 1);
    assert_int_equal(open_net(NULL, &net), ncclSuccess);
    assert_string_equal(net->name, "Socket");
    assert_int_equal(times_logged("NET/Plugin"), 0);
    tt_net_close(net);
}

static void a_name_that_nothing_has_fails(void)
{
    struct tt_net *net = NULL;
    setenv("NCCL_NET_PLUGIN", "none", 1);
    assert_int_equal(open_net("Pigeon", &net), ncclInvalidUsage);
    assert_null(net);
    assert_non_null(strstr(tt_last_error(), "Pigeon"));
}

static void a_plugin_comes_first(void)
{
    struct tt_net *net = NULL;
    struct tt_net *other = NULL;
    setenv("NCCL_NET_PLUGIN", plugin("net_test"), 1);
    setenv("TESTNET_DEVICES", "3", 1);
    assert_int_equal(open_net(NULL, &net), ncclSuccess);
    assert_int_equal(open_net("testnet", &other), ncclSuccess);
    assert_string_equal(net->name, "TestNet");
    assert_int_equal(net->ndevs, 3);
    assert_string_equal(tt_net_library(net), plugin("net_test"));
    assert_true(logged("NET/Plugin: Loaded net plugin TestNet (v12)"));
    assert_true(logged("Successfully loaded external network plugin"));
    assert_true(logged("traffic class 3"));
    assert_int_equal(times_logged("Loaded net plugin"), 1);
    assert_int_equal(times_logged("Initialized NET plugin TestNet"), 2);
    tt_net_close(net);
    tt_net_close(other);
    assert_int_equal(times_logged("TestNet: all is closed"), 2);
    assert_int_equal(open_net(NULL, &net), ncclSuccess); /* unloaded, and loaded again */
    assert_int_equal(times_logged("Loaded net plugin"), 2);
    tt_net_close(net);
}

/* The first `part` of 4 of a plugin's file, at `path`. */
static void cut_copy(const char *from, const char *path, long part)
{
    static char bytes[1 << 20];
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(path, "wb");
    assert_non_null(in);
    assert_non_null(out);
    const size_t length = fread(bytes, 1, sizeof(bytes), in);
    assert_true(length > 4096 && length < sizeof(bytes));
    const size_t kept = part ? length * (size_t)part / 4 : 100;
    assert_int_equal(fwrite(bytes, 1, kept, out), kept);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

/* A file system that was full while the plugin was copied: once SIGBUS. By its path, and by a name
 * that is looked for. */
static void a_plugin_that_is_cut_short_is_refused(void)
{
    char own[] = "/tmp/tutti-cut.XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(own));
    snprintf(path, sizeof(path), "%s/libnccl-net-cut.so", own);
    for (long part = 0; part < 4; part++) {
        struct tt_library library;
        cut_copy(plugin("net_test"), path, part);
        const bool opened = tt_library_open("NET", TT_LOG_NET, "libnccl-net", path, &library);
        print_message("part %ld: %s\n", part, opened ? "whole enough" : "refused");
        if (opened) tt_library_close(&library);
    }
    cut_copy(plugin("net_test"), path, 1);
    struct tt_net *net = NULL;
    char names[128];
    snprintf(names, sizeof(names), "%s,cut", path);
    setenv("LD_LIBRARY_PATH", own, 1);
    setenv("NCCL_NET_PLUGIN", names, 1);
    assert_int_equal(open_net(NULL, &net), ncclSuccess);
    assert_string_equal(net->name, "Socket");
    tt_net_close(net);
    assert_true(logged("libnccl-net-cut.so: the file is cut short"));
    assert_true(logged("NET/Plugin: libnccl-net-cut.so: the file is cut short"));
    assert_int_equal(remove(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* the loader would wait for a writer */
    struct tt_library library;
    assert_false(tt_library_open("NET", TT_LOG_NET, "libnccl-net", path, &library));
    assert_true(logged("libnccl-net-cut.so: it is not a regular file"));
    assert_int_equal(remove(path), 0);
    assert_int_equal(rmdir(own), 0);
}

static void a_plugin_without_devices_is_passed_over(void)
{
    struct tt_net *net = NULL;
    setenv("NCCL_NET_PLUGIN", plugin("net_test"), 1);
    setenv("TESTNET_DEVICES", "0", 1);
    assert_int_equal(open_net(NULL, &net), ncclSuccess);
    assert_string_equal(net->name, "Socket");
    assert_true(logged("Failed to initialize NET plugin TestNet"));
    tt_net_close(net);
}

static void a_library_without_the_symbol_is_unsupported(void)
{
    struct tt_net *net = NULL;
    setenv("NCCL_NET_PLUGIN", plugin("tuner_force"), 1);
    assert_int_equal(open_net(NULL, &net), ncclSuccess);
    assert_string_equal(net->name, "Socket");
    assert_true(logged("is unsupported"));
    tt_net_close(net);
}

static void another_name_passes_a_plugin_over(void)
{
    struct tt_net *net = NULL;
    setenv("NCCL_NET_PLUGIN", plugin("net_test"), 1);
    assert_int_equal(open_net("Socket", &net), ncclSuccess);
    assert_string_equal(net->name, "Socket");
    tt_net_close(net);
    assert_int_equal(open_net("TestNet", &net), ncclSuccess);
    tt_net_close(net);
}

static void the_newest_of_two_tables_is_taken(void)
{
    struct tt_net *net = NULL;
    setenv("NCCL_NET_PLUGIN", plugin("net_outsider_two"), 1);
    assert_int_equal(open_net(NULL, &net), ncclSuccess);
    assert_string_equal(net->name, "Outsider");
    assert_true(logged("Loaded net plugin Outsider (v9)"));
    tt_net_close(net);
}

static void unknown_versions_are_named(void)
{
    struct tt_net *net = NULL;
    char both[2 * PATH_MAX];
    snprintf(both, sizeof(both), "%s,", plugin("net_outsider_v13"));
    strncat(both, plugin("net_outsider_v1"), sizeof(both) - strlen(both) - 1);
    setenv("NCCL_NET_PLUGIN", both, 1);
    assert_int_equal(open_net(NULL, &net), ncclSuccess);
    assert_string_equal(net->name, "Socket");
    assert_true(logged("it has version 13 of the interface, this library takes versions 2 to 12"));
    assert_true(logged("it has version 1 of the interface, this library takes versions 2 to 12"));
    tt_net_close(net);
}

/* The first of the list that works; a name looks past it. */
static void a_list_has_an_order(void)
{
    struct tt_net *net = NULL;
    struct tt_net *other = NULL;
    char list[3 * PATH_MAX];
    snprintf(list, sizeof(list), "absent,,%s,", plugin("net_outsider_v6"));
    strncat(list, plugin("net_test"), sizeof(list) - strlen(list) - 1);
    setenv("NCCL_NET_PLUGIN", list, 1);
    setenv("OUTSIDER_DEVICES", "0", 1);
    assert_int_equal(open_net(NULL, &net), ncclSuccess);
    assert_string_equal(net->name, "TestNet"); /* the others: not there, without a device */
    assert_int_equal(open_net("outsider", &other), ncclInvalidUsage); /* which is final */
    assert_int_equal(open_net("Socket", &other), ncclSuccess);
    assert_string_equal(other->name, "Socket"); /* beside the plugin's, in one process */
    tt_net_close(other);
    tt_net_close(net);
}

static void a_count_of_users_keeps_a_library(void)
{
    struct tt_net *net = NULL;
    setenv("NCCL_NET_PLUGIN", plugin("net_outsider_v8"), 1);
    setenv("NCCL_NET_PLUGIN_REF_COUNT", "1", 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(open_net(NULL, &net), ncclSuccess);
        assert_string_equal(net->name, "Outsider");
        tt_net_close(net);
    }
    assert_int_equal(times_logged("Loaded net plugin"), 1);
    assert_int_equal(times_logged("Outsider: init"), 1); /* a second one would fail */
}

/* ---- tuners ---- */

static struct tt_tuner *open_tuner(const char *net_library)
{
    struct tt_tuner *tuner = NULL;
    const struct tt_tuner_config config = {.comm_id = 0xabc,
                                           .nranks = 4,
                                           .nnodes = 2,
                                           .least_local = 2,
                                           .most_local = 2,
                                           .net_library = net_library};
    tt_tuner_open(&config, &tuner);
    return tuner;
}

static void a_tuner_edits_the_table(void)
{
    float table[TT_TUNER_ALGOS][TT_TUNER_PROTOS];
    const struct tt_tuner_query query = {.func = 4, .bytes = 4096, .nops = 1};
    const struct tt_tuner_layout layout = {1, 2, 2};
    int nchannels = -1;
    setenv("NCCL_TUNER_PLUGIN", plugin("tuner_force"), 1);
    setenv("TUNER_FORCE", "1,2,3,8192", 1);
    struct tt_tuner *tuner = open_tuner(NULL);
    assert_non_null(tuner);
    for (int a = 0; a < TT_TUNER_ALGOS; a++) {
        for (int p = 0; p < TT_TUNER_PROTOS; p++)
            table[a][p] = 5.0f;
    }
    assert_int_equal(tt_tuner_ask(tuner, &query, table, &nchannels), ncclSuccess);
    assert_true(table[1][2] == 0.0f && table[0][0] == 5.0f);
    assert_int_equal(nchannels, 3);
    assert_int_equal(tt_tuner_chunk(tuner, &query, &layout, 65536), 8192);
    assert_true(logged("TUNER/Plugin: Using TestTuner (v6)"));
    assert_true(logged("Successfully loaded external tuner plugin"));
    tt_tuner_close(tuner);
    assert_true(logged("was asked 2 times, p50 "));
}

static void a_failing_tuner_is_reported_once(void)
{
    float table[TT_TUNER_ALGOS][TT_TUNER_PROTOS] = {{1}};
    const struct tt_tuner_query query = {.func = 4, .bytes = 4096, .nops = 1};
    const struct tt_tuner_layout layout = {1, 2, 2};
    int nchannels;
    setenv("NCCL_TUNER_PLUGIN", plugin("tuner_force"), 1);
    setenv("TUNER_FAIL", "ask", 1);
    struct tt_tuner *tuner = open_tuner(NULL);
    assert_int_equal(tt_tuner_ask(tuner, &query, table, &nchannels), ncclSystemError);
    assert_int_equal(tt_tuner_ask(tuner, &query, table, &nchannels), ncclSystemError);
    assert_int_equal(times_logged("getCollInfo returned"), 1);
    setenv("TUNER_FAIL", "chunk", 1);
    assert_int_equal(tt_tuner_chunk(tuner, &query, &layout, 65536), 65536);
    tt_tuner_close(tuner);
}

static void a_tuner_that_does_not_start_is_left_out(void)
{
    setenv("NCCL_TUNER_PLUGIN", plugin("tuner_force"), 1);
    setenv("TUNER_FAIL", "init", 1);
    assert_null(open_tuner(NULL));
    assert_true(logged("init returned"));
    unsetenv("TUNER_FAIL");
    struct tt_tuner *tuner = open_tuner(NULL); /* the next communicator may be luckier */
    assert_non_null(tuner);
    tt_tuner_close(tuner);
}

static void a_net_library_may_hold_the_tuner(void)
{
    struct tt_tuner *tuner = open_tuner(plugin("tuner_force"));
    assert_non_null(tuner);
    assert_true(logged("TUNER/Plugin: Could not find: libnccl-tuner.so"));
    tt_tuner_close(tuner);
}

static void a_net_library_need_not_hold_one(void)
{
    assert_null(open_tuner(plugin("net_test")));
    assert_int_equal(times_logged("unsupported"), 0);
}

/* ---- profilers ---- */

static struct tt_profiler *open_profiler(void)
{
    struct tt_profiler *profiler = NULL;
    const struct tt_profiler_config config = {.member = &member, .nnodes = 2};
    tt_profiler_open(&config, &profiler);
    return profiler;
}

static void a_mask_asks_for_ancestors(void)
{
    static const struct {
        uint32_t mask, expected; /* the types that are emitted */
    } cases[] = {
        {0, 0},
        {ncclProfileGroup, 1 | 256},
        {ncclProfileColl, 1 | 2 | 256 | 512},
        {ncclProfileP2p, 1 | 4 | 256 | 1024},
        {ncclProfileProxyOp, 1 | 2 | 4 | 8 | 256 | 512 | 1024},
        {ncclProfileProxyStep, 1 | 2 | 4 | 8 | 16 | 256 | 512 | 1024},
        {ncclProfileProxyCtrl, 32},
        {ncclProfileKernelCh, 1 | 2 | 4 | 64 | 256 | 512 | 1024},
        {ncclProfileNetPlugin, 1 | 2 | 4 | 8 | 16 | 128 | 256 | 512 | 1024},
        {ncclProfileGroupApi, 256},
        {ncclProfileCollApi, 256 | 512},
        {ncclProfileP2pApi, 256 | 1024},
        {ncclProfileKernelLaunch, 256 | 2048},
        {ncclProfileCeColl, 256 | 512 | 4096},
        {ncclProfileCeSync, 256 | 512 | 4096 | 8192},
        {ncclProfileCeBatch, 256 | 512 | 4096 | 16384},
    };
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        uint32_t emitted = 0;
        for (uint32_t type = 1; type < 32768; type *= 2) {
            if (tt_prof_wants(cases[i].mask, type)) emitted |= type;
        }
        print_message("mask %u\n", cases[i].mask);
        assert_int_equal(emitted, cases[i].expected);
    }
}

static void events_reach_the_plugin(void)
{
    setenv("NCCL_PROFILER_PLUGIN", plugin("profiler_json"), 1);
    setenv("PROFILER_MASK", "0xff", 1);
    struct tt_profiler *profiler = open_profiler();
    assert_non_null(profiler);
    assert_true(logged("PROFILER/Plugin: Loaded TestProfiler (v6)"));
    assert_true(logged("Profiler event mask: 0xff (255) - Enabled: Group Coll P2p ProxyOp"));
    uint32_t mask = tt_prof_mask(profiler);
    assert_int_equal(mask, 0xff);
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileProxyStep};
    void *step = tt_prof_start(profiler, mask, &descr);
    assert_non_null(step);
    assert_null(tt_prof_start(profiler, 1, &descr)); /* not asked for when it was sampled */
    struct tt_prof_step seen = {profiler, step, mask};
    void *own = &seen;
    tt_prof_net_event(&own, ncclProfilerNetEventStart, &seen, 1, NULL);
    assert_non_null(own);
    tt_prof_net_event(&own, ncclProfilerNetEventUpdateAndStop, NULL, 1, NULL);
    assert_null(own);
    tt_prof_net_event(&own, ncclProfilerNetEventStop, NULL, 1, NULL); /* twice: no harm */
    tt_prof_net_event(&own, ncclProfilerNetEventStart, NULL, 1, NULL);
    assert_null(own); /* no profiler watches the step */
    tt_prof_state(profiler, step, ncclProfilerProxyStepSendWait, NULL);
    tt_prof_stop(profiler, step);
    tt_prof_stop(profiler, NULL);
    tt_profiler_close(profiler);
}

static void version_7_sees_tags(void)
{
    setenv("NCCL_PROFILER_PLUGIN", plugin("profiler_tag"), 1);
    struct tt_profiler *profiler = open_profiler();
    assert_non_null(profiler);
    assert_true(logged("PROFILER/Plugin: Loaded tag (v7)"));
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileColl, .coll.userTag = 4711};
    assert_ptr_equal(tt_prof_start(profiler, tt_prof_mask(profiler), &descr), (void *)4711);
    tt_profiler_close(profiler);
}

/* Threads of a profiler may go on after its finalize. */
static void a_profiler_stays_mapped(void)
{
    const char *path = plugin("profiler_tag");
    setenv("NCCL_PROFILER_PLUGIN", path, 1);
    tt_profiler_close(open_profiler());
    assert_non_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
}

static void a_profiler_goes_where_that_is_asked_for(void)
{
    const struct tt_profiler_config config = {.member = &member, .nnodes = 2, .unloads = true};
    const char *path = plugin("profiler_tag");
    struct tt_profiler *profiler = NULL;
    setenv("NCCL_PROFILER_PLUGIN", path, 1);
    tt_profiler_open(&config, &profiler);
    tt_profiler_close(profiler);
    assert_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
}

static void a_profiler_may_decline(void)
{
    setenv("NCCL_PROFILER_PLUGIN", plugin("profiler_json"), 1);
    setenv("PROFILER_FAIL", "null", 1);
    assert_null(open_profiler());
    setenv("PROFILER_FAIL", "init", 1);
    assert_null(open_profiler());
    assert_true(logged("init returned 3"));
    unsetenv("PROFILER_FAIL");
    struct tt_profiler *profiler = open_profiler();
    assert_non_null(profiler);
    tt_profiler_close(profiler);
}

static void without_a_plugin_nothing_is_emitted(void)
{
    setenv("NCCL_PROFILER_PLUGIN", "none", 1);
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileColl};
    assert_null(open_profiler());
    assert_int_equal(tt_prof_mask(NULL), 0);
    assert_null(tt_prof_start(NULL, 4095, &descr));
    tt_prof_stop(NULL, NULL);
    tt_prof_state(NULL, NULL, ncclProfilerProxyCtrlIdle, NULL);
    tt_profiler_close(NULL);
}

/* ---- one process per case ---- */

struct isolated {
    const char *name;
    void (*run)(void);
};

static const struct isolated cases[] = {
    {"the_builtin_is_the_last_resort", the_builtin_is_the_last_resort},
    {"none_means_none", none_means_none},
    {"a_name_that_nothing_has_fails", a_name_that_nothing_has_fails},
    {"a_plugin_comes_first", a_plugin_comes_first},
    {"a_plugin_that_is_cut_short_is_refused", a_plugin_that_is_cut_short_is_refused},
    {"a_plugin_without_devices_is_passed_over", a_plugin_without_devices_is_passed_over},
    {"a_library_without_the_symbol_is_unsupported", a_library_without_the_symbol_is_unsupported},
    {"another_name_passes_a_plugin_over", another_name_passes_a_plugin_over},
    {"the_newest_of_two_tables_is_taken", the_newest_of_two_tables_is_taken},
    {"unknown_versions_are_named", unknown_versions_are_named},
    {"a_list_has_an_order", a_list_has_an_order},
    {"a_count_of_users_keeps_a_library", a_count_of_users_keeps_a_library},
    {"a_tuner_edits_the_table", a_tuner_edits_the_table},
    {"a_failing_tuner_is_reported_once", a_failing_tuner_is_reported_once},
    {"a_tuner_that_does_not_start_is_left_out", a_tuner_that_does_not_start_is_left_out},
    {"a_net_library_may_hold_the_tuner", a_net_library_may_hold_the_tuner},
    {"a_net_library_need_not_hold_one", a_net_library_need_not_hold_one},
    {"a_mask_asks_for_ancestors", a_mask_asks_for_ancestors},
    {"events_reach_the_plugin", events_reach_the_plugin},
    {"version_7_sees_tags", version_7_sees_tags},
    {"a_profiler_stays_mapped", a_profiler_stays_mapped},
    {"a_profiler_goes_where_that_is_asked_for", a_profiler_goes_where_that_is_asked_for},
    {"a_profiler_may_decline", a_profiler_may_decline},
    {"without_a_plugin_nothing_is_emitted", without_a_plugin_nothing_is_emitted},
};

static const struct isolated *now;

static void run_now(void **state)
{
    (void)state;
    now->run();
}

static int child_main(const char *name)
{
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        if (!strcmp(cases[i].name, name)) now = &cases[i];
    }
    const struct CMUnitTest test[] = {{now->name, run_now, NULL, NULL, NULL}};
    return cmocka_run_group_tests_name(now->name, test, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed = 0;
    folder = getenv("TUTTI_TEST_PLUGINS");
    if (!folder) return 2;
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "ALL", 1);
    if (argc > 1) return child_main(argv[1]);
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        char log[] = "/tmp/tutti-plugin-log.XXXXXX";
        int status = 1;
        int fd = mkstemp(log);
        setenv("NCCL_DEBUG_FILE", log, 1);
        pid_t pid = fork();
        if (pid == 0) execl("/proc/self/exe", argv[0], cases[i].name, (char *)NULL);
        if (pid > 0) waitpid(pid, &status, 0);
        if (status) fprintf(stderr, "FAILED: %s\n", cases[i].name);
        failed += status != 0;
        close(fd);
        unlink(log);
    }
    return failed;
}
