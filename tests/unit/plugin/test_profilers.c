/* A profiler of one version, compiled against that version's header alone, is told what the table
 * of versions says: argument VERSION, the plugin in NCCL_PROFILER_PLUGIN writes down its calls.
 * TUTTI_PROFILER_TIMERS counts the same ones. */
#include "../check.h"

#include "base/mem.h"
#include "base/member.h"
#include "base/param.h"
#include "plugin/profiler/profiler.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NVERSIONS = 7 };

static struct tt_member member = {.rank = 2, .nranks = 4, .comm_id = 0xabc, .name = "tp"};
static int version;
static char path[] = "/tmp/tutti-profiler-log.XXXXXX";

static const char *calls(void)
{
    static char text[65536];
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[n] = '\0';
    if (file) fclose(file);
    return text;
}

static int times_called(const char *what)
{
    int n = 0;
    for (const char *at = calls(); (at = strstr(at, what)); at++)
        n++;
    return n;
}

static void expect(const char *what, int times)
{
    int n = times_called(what);
    if (n != times)
        print_message("version %d: %d times, not %d: %s\n%s", version, n, times, what, calls());
    assert_int_equal(n, times);
}

static struct tt_profiler *open_profiler(void)
{
    struct tt_profiler *profiler = NULL;
    const struct tt_profiler_config config = {.member = &member, .nnodes = 2};
    tt_profiler_open(&config, &profiler);
    return profiler;
}

static void state(struct tt_profiler *profiler, void *event, ncclProfilerEventState_t number,
                  size_t value)
{
    ncclProfilerEventStateArgs_v7_t args = {.proxyStep = {value}};
    tt_prof_state(profiler, event, number, &args);
}

/* ---- what a version is told ---- */

struct call_handles { /* handles of one call and all that hangs below */
    void *group_api, *api, *group, *coll, *p2p, *op, *step, *channel, *net;
};

static void start_calls(struct tt_profiler *profiler, uint32_t mask, struct call_handles *own)
{
    ncclProfilerEventDescr_v7_t api = {.type = ncclProfileGroupApi, .groupApi = {true, 2}};
    own->group_api = tt_prof_start(profiler, mask, &api);
    state(profiler, own->group_api, ncclProfilerGroupStartApiStop, 0);
    ncclProfilerEventDescr_v7_t coll_api = {.type = ncclProfileCollApi,
                                            .parentObj = own->group_api,
                                            .collApi = {.func = "AllReduce",
                                                        .count = 10,
                                                        .datatype = "ncclFloat32",
                                                        .graphCaptured = true,
                                                        .userTag = 77}};
    own->api = tt_prof_start(profiler, mask, &coll_api);
    ncclProfilerEventDescr_v7_t group = {.type = ncclProfileGroup};
    own->group = tt_prof_start(profiler, mask, &group);
    ncclProfilerEventDescr_v7_t coll = {.type = ncclProfileColl,
                                        .parentObj = own->api,
                                        .rank = 2,
                                        .coll = {.seqNumber = 5,
                                                 .func = "AllReduce",
                                                 .count = 10,
                                                 .datatype = "ncclFloat32",
                                                 .nChannels = 3,
                                                 .nWarps = 1,
                                                 .algo = "RING",
                                                 .proto = "LL128",
                                                 .parentGroup = own->group,
                                                 .userTag = 78}};
    own->coll = tt_prof_start(profiler, mask, &coll);
    ncclProfilerEventDescr_v7_t p2p = {.type = ncclProfileP2p,
                                       .rank = 2,
                                       .p2p = {.func = "Recv",
                                               .count = 11,
                                               .datatype = "ncclUint8?",
                                               .peer = 3,
                                               .nChannels = 4,
                                               .parentGroup = own->group,
                                               .userTag = 79}};
    own->p2p = tt_prof_start(profiler, mask, &p2p);
}

static void start_steps(struct tt_profiler *profiler, uint32_t mask, struct call_handles *own)
{
    ncclProfilerEventDescr_v7_t op = {.type = ncclProfileProxyOp,
                                      .parentObj = own->coll,
                                      .rank = 2,
                                      .proxyOp = {getpid(), 6, 1, 8, 4096, 1}};
    own->op = tt_prof_start(profiler, mask, &op);
    state(profiler, own->op, ncclProfilerProxyOpInProgress_v4, 0);
    ncclProfilerEventDescr_v7_t step = {
        .type = ncclProfileProxyStep, .parentObj = own->op, .rank = 2, .proxyStep = {7}};
    own->step = tt_prof_start(profiler, mask, &step);
    state(profiler, own->step, ncclProfilerProxyStepSendGPUWait, 0);
    state(profiler, own->step, ncclProfilerProxyStepSendPeerWait_v4, 0);
    state(profiler, own->step, ncclProfilerProxyStepSendWait, 4096);
    struct tt_prof_step seen = {profiler, own->step, mask};
    tt_prof_net_event(&own->net, ncclProfilerNetEventStart, &seen, 0x20001, NULL);
    tt_prof_net_event(&own->net, ncclProfilerNetEventUpdateAndStop, NULL, 0x20001, NULL);
    ncclProfilerEventDescr_v7_t ctrl = {.type = ncclProfileProxyCtrl};
    void *event = tt_prof_start(profiler, mask, &ctrl);
    state(profiler, event, ncclProfilerProxyCtrlAppendEnd, 9);
    tt_prof_stop(profiler, event);
    ncclProfilerEventDescr_v7_t channel = {
        .type = ncclProfileKernelCh, .parentObj = own->coll, .kernelCh = {6, 1234}};
    own->channel = tt_prof_start(profiler, mask, &channel);
    state(profiler, own->channel, ncclProfilerKernelChStop, 5678);
}

static void stop_all(struct tt_profiler *profiler, const struct call_handles *own)
{
    tt_prof_stop(profiler, own->channel);
    tt_prof_stop(profiler, own->step);
    tt_prof_stop(profiler, own->op);
    tt_prof_stop(profiler, own->p2p);
    tt_prof_stop(profiler, own->coll);
    tt_prof_stop(profiler, own->group);
    tt_prof_stop(profiler, own->api);
    tt_prof_stop(profiler, own->group_api);
}

/* How each version writes the same Coll and P2p. */
static const char *const coll_text[NVERSIONS + 1] = {
    [1] = "\"comm\":\"abc\",\"name\":\"tp\",\"seq\":5,\"func\":4,\"count\":10,\"datatype\":7,"
          "\"channels\":3,\"algo\":1,\"proto\":1,\"rank_of_op\":2",
    [2] = "\"comm\":\"abc\",\"name\":\"tp\",\"seq\":5,\"func\":\"AllReduce\",\"count\":10,"
          "\"datatype\":\"ncclFloat32\",\"channels\":3,\"algo\":\"RING\",\"proto\":\"LL128\","
          "\"rank_of_op\":2",
    [4] = "\"seq\":5,\"func\":\"AllReduce\",\"count\":10,\"datatype\":\"ncclFloat32\","
          "\"channels\":3,\"algo\":\"RING\",\"proto\":\"LL128\",\"group\":0,\"rank_of_op\":2,"
          "\"tag\":0",
    [5] = "\"channels\":3,\"algo\":\"RING\",\"proto\":\"LL128\",\"group\":3,\"rank_of_op\":2,"
          "\"tag\":0",
    [7] = "\"channels\":3,\"algo\":\"RING\",\"proto\":\"LL128\",\"group\":3,\"rank_of_op\":2,"
          "\"tag\":78",
};
static const char *const p2p_text[NVERSIONS + 1] = {
    [1] = "\"comm\":\"abc\",\"name\":\"tp\",\"func\":7,\"count\":11,\"datatype\":8,\"peer\":3",
    [2] = "\"comm\":\"abc\",\"name\":\"tp\",\"func\":\"Recv\",\"count\":11,"
          "\"datatype\":\"ncclUint8?\",\"peer\":3",
    [4] = "\"func\":\"Recv\",\"count\":11,\"datatype\":\"ncclUint8?\",\"peer\":3,\"channels\":4,"
          "\"group\":0,\"rank_of_op\":2,\"tag\":0",
    [5] = "\"peer\":3,\"channels\":4,\"group\":3,\"rank_of_op\":2,\"tag\":0",
    [7] = "\"peer\":3,\"channels\":4,\"group\":3,\"rank_of_op\":2,\"tag\":79",
};

/* The row of the version, or of the last one before it that has one. */
static const char *row(const char *const *texts)
{
    int at = version;
    while (!texts[at])
        at--;
    return texts[at];
}

static void expect_calls(void)
{
    bool api = version >= 5;
    expect("\"type\":256,", api);
    expect("\"type\":512,", api);
    expect("\"type\":1,\"parent\":0,", 1);
    expect(row(coll_text), 1);
    expect(row(p2p_text), 1);
    /* below CollApi, event 2, where there is one, else below Group, event 1 */
    expect(api ? "\"event\":4,\"type\":2,\"parent\":2," : "\"event\":2,\"type\":2,\"parent\":1,",
           1);
    expect("\"state\":23,", api);
    expect(",\"captured\":1,\"tag\":77}", version == 7);
}

static void expect_steps(void)
{
    char op[96];
    (void)snprintf(op, sizeof(op),
                   "\"pid_of_op\":%d,\"channel\":6,\"peer\":1,\"steps\":8,\"send\":1",
                   (int)getpid());
    expect(op, 1);
    expect("\"step\":7", 1);
    expect("\"type\":32,", 1);
    expect("\"type\":64,", version >= 3);
    expect("\"channel\":6,\"timer\":1234}", version >= 4);
    expect("\"type\":128,", version >= 3);
    expect("\"state\":19,", version >= 4);
    expect("\"state\":8,", 1);
    expect("\"state\":20,", version >= 4);
    expect(version >= 4 ? "\"state\":9,\"value\":4096" : "\"state\":9,\"value\":0", 1);
    expect("\"state\":18,\"value\":9", 1);
    expect("\"state\":21,", version >= 4);
    expect("\"state\":22,\"value\":5678", version >= 4);
}

static void a_version_gets_what_it_knows(void **unused)
{
    static const int known[NVERSIONS + 1] = {0, 0x3f, 0x3f, 0xff, 0xff, 0xfff, 0x7fff, 0xffff};
    struct call_handles own = {.net = NULL};
    (void)unused;
    setenv("PROFILER_MASK", "0xffff", 1);
    struct tt_profiler *profiler = open_profiler();
    assert_non_null(profiler);
    uint32_t mask = tt_prof_mask(profiler);
    assert_int_equal(mask, known[version]);
    expect("\"call\":\"init\"", 1);
    expect("\"comm\":\"abc\",\"name\":\"tp\",\"nodes\":2,\"ranks\":4,\"rank\":2", version >= 4);
    /* with another mask, as a plugin may set at any time, nothing else may come */
    start_calls(profiler, 0xffff, &own);
    start_steps(profiler, 0xffff, &own);
    ncclProfilerEventDescr_v7_t copy = {.type = ncclProfileCeColl, .parentObj = own.api};
    copy.ceColl.func = "AllGather";
    void *event = tt_prof_start(profiler, 0xffff, &copy);
    assert_int_equal(event != NULL, version >= 6);
    tt_prof_stop(profiler, event);
    stop_all(profiler, &own);
    expect_calls();
    expect_steps();
    tt_profiler_close(profiler);
    expect("\"call\":\"finalize\"", 1);
    assert_int_equal(times_called("\"call\":\"start\""), times_called("\"call\":\"stop\""));
}

/* ---- init ---- */

static void a_version_may_decline(void **unused)
{
    (void)unused;
    setenv("PROFILER_FAIL", "null", 1);
    assert_null(open_profiler());
    setenv("PROFILER_FAIL", "init", 1);
    assert_null(open_profiler());
    unsetenv("PROFILER_FAIL");
    struct tt_profiler *profiler = open_profiler();
    assert_non_null(profiler);
    tt_profiler_close(profiler);
}

/* PyTorch's plugin has no use for a context: NCCL gives it events all the same. */
static void no_context_is_no_refusal(void **unused)
{
    struct call_handles own = {.net = NULL};
    const int before = times_called("\"call\":\"start\""), ends = times_called("\"finalize\"");
    (void)unused;
    setenv("PROFILER_FAIL", "bare", 1);
    struct tt_profiler *profiler = open_profiler();
    assert_non_null(profiler);
    assert_int_equal(tt_prof_mask(profiler), ncclProfileColl);
    start_calls(profiler, tt_prof_mask(profiler), &own);
    stop_all(profiler, &own);
    expect("\"context\":0", version < 5 ? 2 : 4); /* Group and Coll, with calls from 5 on */
    assert_int_equal(times_called("\"call\":\"start\""), before + (version < 5 ? 2 : 4));
    tt_profiler_close(profiler);
    unsetenv("PROFILER_FAIL");
    assert_int_equal(times_called("\"finalize\""), ends); /* of no context */
}

static void *open_and_close(void *unused)
{
    (void)unused;
    struct tt_profiler *profiler = open_profiler();
    tt_profiler_close(profiler);
    return profiler; /* whether there was one */
}

static void inits_come_one_at_a_time(void **unused)
{
    pthread_t threads[6];
    (void)unused;
    setenv("PROFILER_FAIL", "threads", 1);
    for (size_t k = 0; k < TT_LEN(threads); k++)
        assert_int_equal(pthread_create(&threads[k], NULL, open_and_close, NULL), 0);
    for (size_t k = 0; k < TT_LEN(threads); k++) {
        void *had = NULL;
        pthread_join(threads[k], &had);
        assert_non_null(had);
    }
    unsetenv("PROFILER_FAIL");
}

/* ---- TUTTI_PROFILER_TIMERS ---- */

/* Standard error goes into a file meanwhile; NULL gives it back and returns what was written. */
static const char *catch_errors(FILE *into)
{
    static char text[8192];
    static FILE *file;
    static int kept = -1;
    if (into) {
        file = into;
        kept = dup(STDERR_FILENO);
        dup2(fileno(file), STDERR_FILENO);
        return NULL;
    }
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    text[len] = '\0';
    fclose(file);
    return text;
}

/* The numbers of all rows whose name begins so; each must be in order. */
static int counted(const char *report, const char *call)
{
    int sum = 0;
    char line[128];
    for (const char *at = report; *at; at += strcspn(at, "\n") + 1) {
        double mean, p99, most, total;
        int count = 0;
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
        if (strncmp(line, call, strlen(call)) != 0) continue;
        bool typed = !strncmp(line, "startEvent", strlen("startEvent"));
        const char *rest = line + strcspn(line, " ") + 1;
        if (typed) rest += strcspn(rest, " ");
        assert_int_equal(sscanf(rest, "%d %lf %lf %lf %lf", &count, &total, &mean, &p99, &most), 5);
        assert_true(count > 0 && mean <= most && p99 <= most && total >= 0);
        sum += count;
    }
    return sum;
}

static void calls_are_timed(void **unused)
{
    struct call_handles own = {.net = NULL};
    (void)unused;
    int before[] = {times_called("\"call\":\"start\""), times_called("\"call\":\"stop\"")};
    setenv("TUTTI_PROFILER_TIMERS", "1", 1);
    tt_param_forget();
    FILE *file = tmpfile();
    assert_non_null(file);
    struct tt_profiler *first = open_profiler(), *second = open_profiler();
    start_calls(first, tt_prof_mask(first), &own);
    start_steps(first, tt_prof_mask(first), &own);
    stop_all(first, &own);
    catch_errors(file);
    tt_profiler_close(first); /* one is left: no report yet */
    assert_int_equal(lseek(fileno(file), 0, SEEK_END), 0);
    tt_profiler_close(second);
    const char *report = catch_errors(NULL);
    print_message("%s", report);
    assert_ptr_equal(strstr(report, "PROFILER/Timers: calls of the profiler in process "), report);
    assert_int_equal(counted(report, "init"), 2);
    assert_int_equal(counted(report, "finalize"), 2);
    assert_int_equal(counted(report, "startEvent Coll "), 1);
    assert_int_equal(counted(report, "startEvent"), times_called("\"call\":\"start\"") - before[0]);
    assert_int_equal(counted(report, "stopEvent"), times_called("\"call\":\"stop\"") - before[1]);
    unsetenv("TUTTI_PROFILER_TIMERS");
    tt_param_forget();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_gets_what_it_knows),
        cmocka_unit_test(a_version_may_decline),
        cmocka_unit_test(no_context_is_no_refusal),
        cmocka_unit_test(inits_come_one_at_a_time),
        cmocka_unit_test(calls_are_timed), /* the last: timers stay for good */
    };
    version = argc > 1 ? atoi(argv[1]) : 0;
    if (version < 1 || version > NVERSIONS) return 2;
    int fd = mkstemp(path);
    if (fd < 0) return 2;
    close(fd);
    setenv("PROFILER_LOG", path, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
