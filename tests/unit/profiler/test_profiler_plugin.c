/* Our profiler plugin through every table that it exports: what it writes, and what it counts where
 * it has no room. All tests write into one file; each looks for what is its own.
 * usage: test-profiler-plugin LIBRARY */
#include "trace_file.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, PEERS = 64 };

/* ---- versions ---- */

static void drives_versions_5_to_7(void)
{
    const ncclProfiler_v5_t *v5 = trace_symbol("ncclProfiler_v5");
    const ncclProfiler_v6_t *v6 = trace_symbol("ncclProfiler_v6");
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    void *context;
    int mask = 0;
    trace_init(v5->init, &context, &mask);
    assert_int_equal(mask, 0xfff);
    {
        TRACE_ONE_COLL(5, v5, context);
    }
    trace_init(v6->init, &context, &mask);
    assert_int_equal(mask, 0x7fff);
    {
        TRACE_ONE_COLL(6, v6, context);
    }
    trace_init(v7->init, &context, &mask);
    assert_int_equal(mask, 0xffff);
    {
        TRACE_ONE_COLL(7, v7, context);
    }
}

static void drives_versions_1_to_4(void)
{
    const ncclProfiler_v1_t *v1 = trace_symbol("ncclProfiler_v1");
    const ncclProfiler_v2_t *v2 = trace_symbol("ncclProfiler_v2");
    const ncclProfiler_v3_t *v3 = trace_symbol("ncclProfiler_v3");
    const ncclProfiler_v4_t *v4 = trace_symbol("ncclProfiler_v4");
    void *context = NULL;
    int mask = 0;
    assert_int_equal(v1->init(&context, &mask), ncclSuccess);
    assert_int_equal(mask, 0x3f);
    {
        TRACE_ONE_COLL(1, v1, context);
    }
    assert_int_equal(v2->init(&context, &mask), ncclSuccess);
    {
        TRACE_ONE_COLL(2, v2, context);
    }
    assert_int_equal(v3->init(&context, &mask), ncclSuccess);
    assert_int_equal(mask, 0xff);
    {
        TRACE_ONE_COLL(3, v3, context);
    }
    assert_int_equal(v4->init(&context, &mask, NULL, 0xabcdef, 1, 8, 5, trace_ignore), ncclSuccess);
    {
        TRACE_ONE_COLL(4, v4, context);
    }
}

static void hosts_every_version(void **state)
{
    (void)state;
    drives_versions_1_to_4();
    drives_versions_5_to_7();
    trace_read(getpid());
    for (int version = 1; version <= 7; version++) {
        char seq[32];
        snprintf(seq, sizeof(seq), "\"seq\":%d,", 7000 + version);
        print_message("version %d\n", version);
        assert_int_equal(trace_count(seq), 1);
    }
    assert_int_equal(trace_count("\"count\":42"), 7);
    assert_int_equal(trace_count("\"func\":\"Broadcast\""), 1); /* the number 0 of version 1 */
    assert_int_equal(trace_count("\"name\":\"a _name__\",\"rank\":5,\"nranks\":8"), 3);
    assert_int_equal(trace_end_says("open"), 0);
}

static void writes_what_it_is_reported(void **state)
{
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileColl};
    ncclProfilerEventStateArgs_v7_t args = {.proxyStep = {.transSize = 98765}};
    void *context, *coll = NULL, *op = NULL, *foreign = NULL;
    int mask = 0;
    (void)state;
    trace_init(v7->init, &context, &mask);
    descr.coll.func = "AllReduce";
    descr.coll.datatype = "nccl\"Float32";
    descr.coll.algo = "a word that is longer than there is room for";
    descr.coll.userTag = UINT64_MAX;
    v7->startEvent(context, &coll, &descr);
    descr = (ncclProfilerEventDescr_v7_t){.type = ncclProfileProxyOp, .parentObj = coll};
    descr.proxyOp.pid = getpid();
    descr.proxyOp.peer = 3;
    descr.proxyOp.isSend = 1;
    v7->startEvent(context, &op, &descr);
    v7->recordEventState(op, ncclProfilerProxyStepSendWait, &args);
    v7->recordEventState(op, ncclProfilerProxyOpInProgress_v4, NULL);
    /* A proxy that works for another process passes that one's handles: addresses of nothing. */
    descr.parentObj = (void *)0x10;
    descr.proxyOp.pid = 1;
    v7->startEvent((void *)(uintptr_t)(77u << 24 | 5), &foreign, &descr);
    v7->stopEvent(foreign);
    v7->stopEvent(op);
    v7->stopEvent(coll);
    v7->finalize(context);
    trace_read(getpid());
    assert_int_equal(trace_count("\"datatype\":\"nccl_Float32\""), 1);
    assert_int_equal(trace_count("\"algo\":\"a word that is longer t\""), 1);
    assert_int_equal(trace_count("\"tag\":\"ffffffffffffffff\""), 1);
    assert_int_equal(trace_count("\"state\":\"ProxyStepSendWait\",\"value\":98765"), 1);
    assert_int_equal(trace_count("\"state\":\"ProxyOpInProgress\",\"value\":0"), 1);
    assert_int_equal(trace_count("\"peer\":3,\"steps\":0,\"chunk\":0,\"send\":1}"), 1);
    assert_int_equal(trace_count("\"parent\":16,\"c\":5,"), 1);
    assert_int_equal(trace_count("\"c_pid\":77}"), 1);
}

static uint64_t now_nsec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Times come from a counter of the processor: in the file they are the monotonic clock's. */
static void times_are_those_of_the_clock(void **state)
{
    enum { MOMENTS = 60, FIRST = 880000, SLACK_NSEC = 50000 };
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    uint64_t before[MOMENTS], after[MOMENTS];
    void *context;
    int mask = 0;
    (void)state;
    trace_init(v7->init, &context, &mask);
    for (int i = 0; i < MOMENTS; i++) {
        ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileKernelCh};
        void *handle = NULL;
        descr.kernelCh.pTimer = FIRST + (uint64_t)i;
        while (!handle) { /* the ring is small */
            usleep(1000); /* so that the clock is looked at meanwhile */
            before[i] = now_nsec();
            v7->startEvent(context, &handle, &descr);
            after[i] = now_nsec();
        }
        v7->stopEvent(handle);
    }
    v7->finalize(context);
    trace_read(getpid());
    for (int i = 0; i < MOMENTS; i++) {
        char timer[32];
        snprintf(timer, sizeof(timer), "\"timer\":%d", FIRST + i);
        const char *found = strstr(trace_text, timer);
        assert_non_null(found);
        assert_ptr_equal(strstr(found + 1, timer), NULL);
        while (strncmp(found, "\"ts\":", 5) != 0)
            found--;
        uint64_t ts = strtoull(found + 5, NULL, 10);
        if (ts + SLACK_NSEC < before[i] || ts > after[i] + SLACK_NSEC) {
            fail_msg("event %d: %llu is not in %llu..%llu", i, (unsigned long long)ts,
                     (unsigned long long)before[i], (unsigned long long)after[i]);
        }
    }
}

/* The mask follows a file; what is no number changes nothing. */
static void a_file_changes_the_mask(void **state)
{
    static const struct {
        const char *says;
        int mask;
    } cases[] = {{"0\n", 0}, {"0xfff", 0xfff}, {"nothing", 0xfff}, {"70", 70}, {"-1", 0xffff}};
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    char path[160];
    void *context;
    int mask = 0;
    (void)state;
    snprintf(path, sizeof(path), "%s/control", trace_folder);
    setenv("TUTTI_TRACE_CONTROL", path, 1);
    trace_init(v7->init, &context, &mask);
    assert_int_equal(__atomic_load_n(&mask, __ATOMIC_RELAXED), 0xffff);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(cases[i].says, file);
        fclose(file);
        print_message("case: %s\n", cases[i].says);
        for (int k = 0; k < 10000; k++) {
            if (__atomic_load_n(&mask, __ATOMIC_RELAXED) == cases[i].mask) break;
            usleep(1000);
        }
        assert_int_equal(__atomic_load_n(&mask, __ATOMIC_RELAXED), cases[i].mask);
    }
    unlink(path);
    unsetenv("TUTTI_TRACE_CONTROL");
    v7->finalize(context);
}

static void *begin_one(void *context, uint64_t type, uint64_t seq, void *parent)
{
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    ncclProfilerEventDescr_v7_t descr = {.type = type, .parentObj = parent};
    void *handle = NULL;
    if (type == ncclProfileColl) descr.coll.seqNumber = seq;
    if (type == ncclProfileP2p) descr.p2p.peer = (int)seq;
    if (type == ncclProfileP2p) descr.p2p.func = "Send";
    v7->startEvent(context, &handle, &descr);
    if (handle) v7->stopEvent(handle);
    return handle;
}

/* Wait until the file has that text so many times: then the ring, which is small, has room. */
static void await_written(const char *needle, unsigned long count)
{
    for (int k = 0; k < 10000; k++) {
        trace_read(getpid());
        if (trace_count(needle) >= count) return;
        usleep(1000);
    }
    fail_msg("%s was not written %lu times", needle, count);
}

/* Wait until the plugin has read what its control file says: whether Coll 1 is kept tells. */
static unsigned long control(const char *path, void *context, const char *says, bool keeps_one)
{
    static unsigned long written; /* of Coll 1 */
    unsigned long refused = 0;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(says, file);
    fclose(file);
    for (int k = 0; k < 10000; k++) {
        bool kept = begin_one(context, ncclProfileColl, 1, NULL) != NULL;
        refused += !kept;
        written += kept;
        if (kept == keeps_one) {
            await_written("\"seq\":1,", written);
            return refused;
        }
        usleep(1000);
    }
    fail();
    return refused;
}

/* Every third operation with what is below it; what is left out is counted, to the last one. */
static void keeps_a_sample(void **state)
{
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    char path[160];
    void *context;
    int mask = 0;
    unsigned long messages = 0;
    (void)state;
    snprintf(path, sizeof(path), "%s/control", trace_folder);
    setenv("TUTTI_TRACE_CONTROL", path, 1);
    trace_init(v7->init, &context, &mask);
    unsigned long refused = control(path, context, "0xffff 3\n", false);
    for (uint64_t seq = 6000; seq < 6030; seq++) {
        char written[32];
        void *coll = begin_one(context, ncclProfileColl, seq, NULL);
        void *kernel = begin_one(context, ncclProfileKernelCh, 0, coll);
        assert_int_equal(coll != NULL, seq % 3 == 0);
        assert_int_equal(kernel != NULL, seq % 3 == 0);
        refused += !coll + !kernel;
        messages += begin_one(context, ncclProfileP2p, 4, NULL) != NULL;
        snprintf(written, sizeof(written), "\"seq\":%d,", (int)seq);
        if (coll) await_written(written, 1);
    }
    assert_int_equal(messages, 10);
    for (uint64_t k = 0; k < 16 * PEERS; k++) /* of 16 communicators: none of the first is passed */
        begin_one((char *)context + k / PEERS, ncclProfileP2p, 100 + k % PEERS, NULL);
    assert_null(begin_one(context, ncclProfileGroupApi, 0, NULL));
    refused += 20 + 1;
    refused += control(path, context, "0xffff 1\n", true);
    assert_non_null(begin_one(context, ncclProfileGroupApi, 0, NULL));
    unlink(path);
    unsetenv("TUTTI_TRACE_CONTROL");
    v7->finalize(context);
    trace_read(getpid());
    assert_int_equal(trace_end_says("passed"), refused);
}

/* ---- room ---- */

/* The rings have 16 places here: what is not in the file is in the counts, to the last one. */
static void counts_what_is_lost(void **state)
{
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    struct trace_reported reported[THREADS] = {{0}};
    pthread_t threads[THREADS];
    unsigned long starts = 0, stops = 0, refused = 0;
    void *context;
    int mask = 0;
    (void)state;
    trace_read(getpid());
    unsigned long starts_before = trace_end_says("starts"), stops_before = trace_end_says("stops");
    assert_int_equal(trace_end_says("lost_starts"), 0);
    trace_init(v7->init, &context, &mask);
    for (int i = 0; i < THREADS; i++) {
        reported[i].context = context;
        assert_int_equal(pthread_create(&threads[i], NULL, trace_report_much, &reported[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        starts += reported[i].starts;
        stops += reported[i].stops;
        refused += reported[i].refused;
    }
    v7->finalize(context);
    trace_read(getpid());
    print_message("%lu of %lu found no room\n", refused, starts);
    assert_int_equal(trace_end_says("lost_starts"), refused);
    assert_int_equal(trace_end_says("starts") - starts_before + trace_end_says("lost_starts"),
                     starts);
    assert_int_equal(trace_end_says("stops") - stops_before + trace_end_says("lost_stops"), stops);
    assert_int_equal(trace_count("{\"t\":\"start\""), trace_end_says("starts"));
    assert_int_equal(trace_count("{\"t\":\"stop\""), trace_end_says("stops"));
    assert_int_equal(trace_end_says("open"), 0);
}

/* More threads, one after the other, than there are rings: a ring goes to the next one. */
static void threads_come_and_go(void **state)
{
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    void *context;
    int mask = 0;
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct trace_reported reported = {0};
        pthread_t thread;
        trace_init(v7->init, &context, &mask);
        reported.context = context;
        assert_int_equal(pthread_create(&thread, NULL, trace_report_much, &reported), 0);
        pthread_join(thread, NULL);
        v7->finalize(context);
        assert_true(reported.refused < reported.starts);
    }
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_every_version),
        cmocka_unit_test(writes_what_it_is_reported),
        cmocka_unit_test(counts_what_is_lost),
        cmocka_unit_test(threads_come_and_go),
        cmocka_unit_test(times_are_those_of_the_clock),
        cmocka_unit_test(a_file_changes_the_mask),
        cmocka_unit_test(keeps_a_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return trace_run(argc, argv, run);
}
