/* Our profiler plugin through every table that it exports: what it writes, and what it counts where
 * it has no room. All tests write into one file; each looks for what is its own.
 * usage: test-profiler-plugin LIBRARY threads|processes */
#include "../check.h"

#include "nccl/profiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, EVENTS = 5000, FILE_BYTES = 16 << 20, PEERS = 64 };

static void *library;
static char folder[] = "/tmp/tutti-trace.XXXXXX";
static char text[FILE_BYTES];

static void ignore(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
                   const char *fmt, ...)
{
    (void)level, (void)flags, (void)file, (void)line, (void)fmt;
}

static const void *symbol(const char *name)
{
    const void *object = dlsym(library, name);
    assert_non_null(object);
    return object;
}

static const char *path_of(pid_t pid)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/trace.%d", folder, (int)pid);
    return path;
}

static void read_file(pid_t pid)
{
    FILE *file = fopen(path_of(pid), "r");
    assert_non_null(file);
    size_t bytes = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    assert_true(bytes < sizeof(text) - 1);
    text[bytes] = '\0';
}

static unsigned long count_of(const char *needle)
{
    unsigned long count = 0;
    for (const char *at = text; (at = strstr(at, needle)); at++)
        count++;
    return count;
}

/* A number of the last line `end`. */
static unsigned long end_says(const char *member)
{
    const char *last = NULL;
    char name[64];
    for (const char *at = text; (at = strstr(at, "{\"t\":\"end\"")); at++)
        last = at;
    assert_non_null(last);
    snprintf(name, sizeof(name), "\"%s\":", member);
    last = strstr(last, name);
    assert_non_null(last);
    return strtoul(last + strlen(name), NULL, 10);
}

/* ---- versions ---- */

/* One Coll of a table that has begun, with a number by which the test finds it. */
#define ONE_COLL(version, table, context)                                                          \
    ncclProfilerEventDescr_v##version##_t descr = {.type = ncclProfileColl};                       \
    void *handle = NULL;                                                                           \
    descr.coll.seqNumber = 7000 + (version);                                                       \
    descr.coll.count = 42;                                                                         \
    assert_int_equal((table)->startEvent(context, &handle, &descr), ncclSuccess);                  \
    assert_non_null(handle);                                                                       \
    assert_int_equal((table)->stopEvent(handle), ncclSuccess);                                     \
    assert_int_equal((table)->finalize(context), ncclSuccess)

static void init_new(ncclResult_t (*init)(void **, uint64_t, int *, const char *, int, int, int,
                                          ncclDebugLogger_t),
                     void **context, int *mask)
{
    *context = NULL;
    assert_int_equal(init(context, 0xabcdef, mask, "a \"name\"\n", 1, 8, 5, ignore), ncclSuccess);
    assert_non_null(*context);
}

static void drives_versions_5_to_7(void)
{
    const ncclProfiler_v5_t *v5 = symbol("ncclProfiler_v5");
    const ncclProfiler_v6_t *v6 = symbol("ncclProfiler_v6");
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    void *context;
    int mask = 0;
    init_new(v5->init, &context, &mask);
    assert_int_equal(mask, 0xfff);
    {
        ONE_COLL(5, v5, context);
    }
    init_new(v6->init, &context, &mask);
    assert_int_equal(mask, 0x7fff);
    {
        ONE_COLL(6, v6, context);
    }
    init_new(v7->init, &context, &mask);
    assert_int_equal(mask, 0xffff);
    {
        ONE_COLL(7, v7, context);
    }
}

static void drives_versions_1_to_4(void)
{
    const ncclProfiler_v1_t *v1 = symbol("ncclProfiler_v1");
    const ncclProfiler_v2_t *v2 = symbol("ncclProfiler_v2");
    const ncclProfiler_v3_t *v3 = symbol("ncclProfiler_v3");
    const ncclProfiler_v4_t *v4 = symbol("ncclProfiler_v4");
    void *context = NULL;
    int mask = 0;
    assert_int_equal(v1->init(&context, &mask), ncclSuccess);
    assert_int_equal(mask, 0x3f);
    {
        ONE_COLL(1, v1, context);
    }
    assert_int_equal(v2->init(&context, &mask), ncclSuccess);
    {
        ONE_COLL(2, v2, context);
    }
    assert_int_equal(v3->init(&context, &mask), ncclSuccess);
    assert_int_equal(mask, 0xff);
    {
        ONE_COLL(3, v3, context);
    }
    assert_int_equal(v4->init(&context, &mask, NULL, 0xabcdef, 1, 8, 5, ignore), ncclSuccess);
    {
        ONE_COLL(4, v4, context);
    }
}

static void hosts_every_version(void **state)
{
    (void)state;
    drives_versions_1_to_4();
    drives_versions_5_to_7();
    read_file(getpid());
    for (int version = 1; version <= 7; version++) {
        char seq[32];
        snprintf(seq, sizeof(seq), "\"seq\":%d,", 7000 + version);
        print_message("version %d\n", version);
        assert_int_equal(count_of(seq), 1);
    }
    assert_int_equal(count_of("\"count\":42"), 7);
    assert_int_equal(count_of("\"func\":\"Broadcast\""), 1); /* the number 0 of version 1 */
    assert_int_equal(count_of("\"name\":\"a _name__\",\"rank\":5,\"nranks\":8"), 3);
    assert_int_equal(end_says("open"), 0);
}

static void writes_what_it_is_reported(void **state)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileColl};
    ncclProfilerEventStateArgs_v7_t args = {.proxyStep = {.transSize = 98765}};
    void *context, *coll = NULL, *op = NULL, *foreign = NULL;
    int mask = 0;
    (void)state;
    init_new(v7->init, &context, &mask);
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
    read_file(getpid());
    assert_int_equal(count_of("\"datatype\":\"nccl_Float32\""), 1);
    assert_int_equal(count_of("\"algo\":\"a word that is longer t\""), 1);
    assert_int_equal(count_of("\"tag\":\"ffffffffffffffff\""), 1);
    assert_int_equal(count_of("\"state\":\"ProxyStepSendWait\",\"value\":98765"), 1);
    assert_int_equal(count_of("\"state\":\"ProxyOpInProgress\",\"value\":0"), 1);
    assert_int_equal(count_of("\"peer\":3,\"steps\":0,\"chunk\":0,\"send\":1}"), 1);
    assert_int_equal(count_of("\"parent\":16,\"c\":5,"), 1);
    assert_int_equal(count_of("\"c_pid\":77}"), 1);
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
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    uint64_t before[MOMENTS], after[MOMENTS];
    void *context;
    int mask = 0;
    (void)state;
    init_new(v7->init, &context, &mask);
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
    read_file(getpid());
    for (int i = 0; i < MOMENTS; i++) {
        char timer[32];
        snprintf(timer, sizeof(timer), "\"timer\":%d", FIRST + i);
        const char *found = strstr(text, timer);
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
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    char path[160];
    void *context;
    int mask = 0;
    (void)state;
    snprintf(path, sizeof(path), "%s/control", folder);
    setenv("TUTTI_TRACE_CONTROL", path, 1);
    init_new(v7->init, &context, &mask);
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
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    ncclProfilerEventDescr_v7_t descr = {.type = type, .parentObj = parent};
    void *handle = NULL;
    if (type == ncclProfileColl) descr.coll.seqNumber = seq;
    if (type == ncclProfileP2p) descr.p2p.peer = (int)seq;
    if (type == ncclProfileP2p) descr.p2p.func = "Send";
    v7->startEvent(context, &handle, &descr);
    if (handle) v7->stopEvent(handle);
    return handle;
}

/* Wait until the plugin has read what its control file says: whether Coll 1 is kept tells. */
static unsigned long control(const char *path, void *context, const char *says, bool keeps_one)
{
    unsigned long refused = 0;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(says, file);
    fclose(file);
    for (int k = 0; k < 10000; k++) {
        bool kept = begin_one(context, ncclProfileColl, 1, NULL) != NULL;
        refused += !kept;
        if (kept == keeps_one) return refused;
        usleep(1000);
    }
    fail();
    return refused;
}

/* Every third operation with what is below it; what is left out is counted, to the last one. */
static void keeps_a_sample(void **state)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    char path[160];
    void *context;
    int mask = 0;
    unsigned long messages = 0;
    (void)state;
    snprintf(path, sizeof(path), "%s/control", folder);
    setenv("TUTTI_TRACE_CONTROL", path, 1);
    init_new(v7->init, &context, &mask);
    unsigned long refused = control(path, context, "0xffff 3\n", false);
    for (uint64_t seq = 0; seq < 30; seq++) {
        void *coll = begin_one(context, ncclProfileColl, seq, NULL);
        void *kernel = begin_one(context, ncclProfileKernelCh, 0, coll);
        assert_int_equal(coll != NULL, seq % 3 == 0);
        assert_int_equal(kernel != NULL, seq % 3 == 0);
        refused += !coll + !kernel;
        messages += begin_one(context, ncclProfileP2p, 4, NULL) != NULL;
        usleep(20000); /* the rings are small, and the machine may be busy */
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
    read_file(getpid());
    assert_int_equal(end_says("passed"), refused);
}

/* ---- room ---- */

struct reported {
    void *context;
    unsigned long starts, refused, stops;
};

static void *report_much(void *opaque)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    struct reported *reported = opaque;
    for (int i = 0; i < EVENTS; i++) {
        ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileKernelCh};
        void *handle = NULL;
        v7->startEvent(reported->context, &handle, &descr);
        reported->starts++;
        if (!handle) reported->refused++;
        if (!handle) continue;
        v7->stopEvent(handle);
        reported->stops++;
    }
    return NULL;
}

/* The rings have 16 places here: what is not in the file is in the counts, to the last one. */
static void counts_what_is_lost(void **state)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    struct reported reported[THREADS] = {{0}};
    pthread_t threads[THREADS];
    unsigned long starts = 0, stops = 0, refused = 0;
    void *context;
    int mask = 0;
    (void)state;
    read_file(getpid());
    unsigned long starts_before = end_says("starts"), stops_before = end_says("stops");
    assert_int_equal(end_says("lost_starts"), 0);
    init_new(v7->init, &context, &mask);
    for (int i = 0; i < THREADS; i++) {
        reported[i].context = context;
        assert_int_equal(pthread_create(&threads[i], NULL, report_much, &reported[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        starts += reported[i].starts;
        stops += reported[i].stops;
        refused += reported[i].refused;
    }
    v7->finalize(context);
    read_file(getpid());
    print_message("%lu of %lu found no room\n", refused, starts);
    assert_int_equal(end_says("lost_starts"), refused);
    assert_int_equal(end_says("starts") - starts_before + end_says("lost_starts"), starts);
    assert_int_equal(end_says("stops") - stops_before + end_says("lost_stops"), stops);
    assert_int_equal(count_of("{\"t\":\"start\""), end_says("starts"));
    assert_int_equal(count_of("{\"t\":\"stop\""), end_says("stops"));
    assert_int_equal(end_says("open"), 0);
}

/* More threads, one after the other, than there are rings: a ring goes to the next one. */
static void threads_come_and_go(void **state)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    void *context;
    int mask = 0;
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct reported reported = {0};
        pthread_t thread;
        init_new(v7->init, &context, &mask);
        reported.context = context;
        assert_int_equal(pthread_create(&thread, NULL, report_much, &reported), 0);
        pthread_join(thread, NULL);
        v7->finalize(context);
        assert_true(reported.refused < reported.starts);
    }
}

/* ---- processes ---- */

static int run_child(void)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    void *context = NULL;
    int mask = 0;
    if (v7->init(&context, 1, &mask, NULL, 1, 1, 0, ignore)) return 1;
    ONE_COLL(7, v7, context);
    return 0;
}

static void a_child_has_a_file_of_its_own(void **state)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileGroup};
    void *context, *handle = NULL;
    int mask = 0, status = -1;
    (void)state;
    init_new(v7->init, &context, &mask);
    v7->startEvent(context, &handle, &descr);
    pid_t child = fork();
    if (child == 0) {
        void *mine = NULL;
        v7->stopEvent(handle); /* the parent's: it is not written down */
        v7->startEvent(context, &mine, &descr);
        _exit(mine ? 2 : run_child());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    v7->stopEvent(handle);
    v7->finalize(context);
    read_file(child);
    assert_int_equal(count_of("{\"t\":\"head\""), 1);
    assert_int_equal(end_says("starts"), 1);
    assert_int_equal(end_says("open"), 0);
    unlink(path_of(child));
    read_file(getpid());
    assert_int_equal(end_says("open"), 0);
}

static void a_process_that_just_ends_is_whole(void **state)
{
    int status = -1;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
        ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileGroup};
        void *context = NULL, *handle = NULL;
        int mask = 0;
        v7->init(&context, 1, &mask, NULL, 1, 1, 0, ignore);
        v7->startEvent(context, &handle, &descr);
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    read_file(child);
    assert_int_equal(end_says("starts"), 1);
    assert_int_equal(end_says("open"), 1);
    unlink(path_of(child));
}

static void says_that_it_cannot_write(void **state)
{
    int status = -1;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
        void *context = NULL;
        int mask = 0;
        setenv("TUTTI_TRACE_FILE", "/nonexistent/folder/trace", 1);
        if (!v7->init(&context, 1, &mask, NULL, 1, 1, 0, ignore)) _exit(1);
        setenv("TUTTI_TRACE_FILE", "/dev/full", 1); /* events go on, the job does too */
        if (v7->init(&context, 1, &mask, NULL, 1, 1, 0, ignore)) _exit(2);
        struct reported reported = {.context = context};
        report_much(&reported);
        _exit(v7->finalize(context) ? 3 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A limit of file sizes and a reader that went away come with signals that would end the process:
 * at the end of a communicator they would be for the thread that calls. */
static void signals_end_the_trace_alone(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
            struct rlimit little = {.rlim_cur = 200, .rlim_max = RLIM_INFINITY};
            struct reported reported = {0};
            int ends[2], mask = 0;
            char path[64];
            if (pipe(ends)) _exit(1);
            snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
            if (kind == 0) setenv("TUTTI_TRACE_FILE", path, 1);
            if (v7->init(&reported.context, 1, &mask, NULL, 1, 1, 0, ignore)) _exit(2);
            if (kind == 0) close(ends[0]);
            if (kind == 1 && setrlimit(RLIMIT_FSIZE, &little)) _exit(3);
            report_much(&reported);
            v7->finalize(reported.context);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        print_message("%s: status %x\n", kind ? "limit" : "pipe", status);
        assert_int_equal(status, 0);
        unlink(path_of(child));
    }
}

/* ---- TUTTI_TRACE_KEEP ---- */

enum { TURNS = 1000 };

/* A Coll with a KernelCh below it, so many times; the first one stays open. */
static void report_turns(const ncclProfiler_v7_t *v7, void *context)
{
    for (uint64_t k = 0; k < TURNS; k++) {
        ncclProfilerEventDescr_v7_t coll = {.type = ncclProfileColl}, channel;
        void *parent = NULL, *child = NULL;
        coll.coll.seqNumber = k;
        coll.coll.func = "AllReduce";
        v7->startEvent(context, &parent, &coll);
        if (k > 0) v7->stopEvent(parent);
        channel = (ncclProfilerEventDescr_v7_t){.type = ncclProfileKernelCh, .parentObj = parent};
        v7->startEvent(context, &child, &channel);
        ncclProfilerEventStateArgs_v7_t args = {.kernelCh = {.pTimer = 9}};
        v7->recordEventState(child, ncclProfilerKernelChStop, &args);
        v7->stopEvent(child);
    }
}

/* A child that keeps, and how it ends: 0 with finalize, 1 by exit, a signal. */
static _Noreturn void keep_and_end(const char *keep, int how)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    const struct timespec interval = {.tv_nsec = 1000000};
    void *context = NULL;
    int mask = 0;
    if (how > 1) signal(how, SIG_DFL); /* not the test library's */
    setenv("TUTTI_TRACE_KEEP", keep, 1);
    setenv("TUTTI_TRACE_RING", "65536", 1);
    if (v7->init(&context, 77, &mask, "kept", 1, 1, 0, ignore)) _exit(2);
    report_turns(v7, context);
    if (how == 1) exit(0);
    if (how > 1) raise(how);
    for (int k = 0; how == SIGUSR2 && k < 20000; k++) { /* the process goes on; so long at most */
        FILE *file = fopen(path_of(getpid()), "r");
        size_t bytes = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
        text[bytes] = '\0';
        if (file) fclose(file);
        if (strstr(text, "\"t\":\"end\"")) _exit(0);
        nanosleep(&interval, NULL);
    }
    v7->finalize(context);
    _exit(how == SIGUSR2 ? 3 : 0);
}

static int keep_in_child(const char *keep, int how)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) keep_and_end(keep, how);
    assert_int_equal(waitpid(child, &status, 0), child);
    read_file(child);
    unlink(path_of(child));
    return status;
}

static void the_last_ones_are_kept(void **state)
{
    (void)state;
    assert_int_equal(keep_in_child("10K", 0), 0);
    unsigned long starts = count_of("\"t\":\"start\""), colls = count_of("\"func\":\"AllReduce\"");
    assert_true(starts > 10 && starts < 100);
    assert_int_equal(count_of("\"t\":\"comm\""), 1);
    assert_int_equal(count_of("\"t\":\"thread\""), 1);
    assert_int_equal(count_of("\"t\":\"head\""), 1);
    assert_non_null(strstr(text, "\"seq\":999,"));
    assert_null(strstr(text, "\"seq\":500,"));
    assert_int_equal(end_says("starts"), starts);
    assert_int_equal(end_says("stops"), count_of("\"t\":\"stop\""));
    assert_int_equal(end_says("states"), count_of("\"t\":\"state\""));
    assert_int_equal(end_says("open"), 0);
    assert_int_equal(end_says("lost_starts"), 0);
    assert_true(end_says("rolled") > 4 * TURNS);
    /* ends of what has gone are not written, nor is it named as a parent */
    assert_int_equal(count_of("\"t\":\"stop\""), starts);
    assert_true(count_of("\"parent\":0,") - colls <= 1);
}

static void seconds_are_kept(void **state)
{
    (void)state;
    assert_int_equal(keep_in_child("1000s", 0), 0); /* all of it */
    assert_int_equal(end_says("starts"), 2 * TURNS);
    assert_int_equal(end_says("open"), 1);
    assert_int_equal(end_says("rolled"), 0);
    assert_int_equal(keep_in_child("0.000000001s,1M", 0), 0);
    assert_true(end_says("starts") <= 2);
    assert_int_equal(keep_in_child("64 parsecs", 0), 0); /* is said, and all is written */
    assert_int_equal(end_says("starts"), 2 * TURNS);
}

static void who_asks_gets_them(void **state)
{
    static const int signals[] = {SIGTERM, SIGSEGV, SIGABRT};
    (void)state;
    assert_int_equal(keep_in_child("1M", 1), 0);
    assert_int_equal(end_says("starts"), 2 * TURNS);
    for (size_t k = 0; k < sizeof(signals) / sizeof(signals[0]); k++) {
        int status = keep_in_child("1M", signals[k]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[k]);
        assert_int_equal(end_says("starts"), 2 * TURNS);
    }
    assert_int_equal(keep_in_child("1M", SIGUSR2), 0);
}

/* Faster than lines can be made: what the ring has no room for is moved aside, in its order. Events
 * that found no room either are told again. */
static _Noreturn void burst_and_end(void)
{
    enum { BURST = 30000 };
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    const struct timespec interval = {.tv_nsec = 50000};
    void *context = NULL;
    int mask = 0;
    setenv("TUTTI_TRACE_RING", "1024", 1);
    if (v7->init(&context, 78, &mask, "burst", 1, 1, 0, ignore)) _exit(2);
    for (uint64_t k = 0; k < BURST;) {
        ncclProfilerEventDescr_v7_t coll = {.type = ncclProfileColl};
        void *handle = NULL;
        coll.coll.seqNumber = k;
        coll.coll.func = "AllReduce";
        v7->startEvent(context, &handle, &coll);
        if (handle) v7->stopEvent(handle);
        if (!handle) nanosleep(&interval, NULL);
        k += handle != NULL;
    }
    v7->finalize(context);
    _exit(0);
}

static void a_burst_is_moved_aside(void **state)
{
    int status = -1;
    unsigned long next = 0;
    (void)state;
    pid_t child = fork();
    if (child == 0) burst_and_end();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    read_file(child);
    unlink(path_of(child));
    assert_true(end_says("aside") > 0);
    assert_int_equal(end_says("starts"), 30000);
    for (const char *at = text; (at = strstr(at, "\"seq\":")); next++)
        assert_int_equal(strtoul(at += strlen("\"seq\":"), NULL, 10), next);
    assert_int_equal(next, 30000);
}

static _Atomic unsigned long wakes;

/* Instead of the C library's, which it calls: how often the writer is woken. */
__attribute__((visibility("default"))) int pthread_cond_signal(pthread_cond_t *cond)
{
    static int (*really)(pthread_cond_t *);
    if (!really) really = (int (*)(pthread_cond_t *))dlsym(RTLD_NEXT, "pthread_cond_signal");
    wakes++;
    return really(cond);
}

/* A ring has 4096 words: 20 times a sixteenth of it, and each time until that is in the file. */
static _Noreturn void report_at_ease(void)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    const struct timespec interval = {.tv_nsec = 1000000};
    unsigned long wakes_before = 0;
    void *context = NULL;
    int mask = 0;
    setenv("TUTTI_TRACE_RING", "1024", 1);
    if (v7->init(&context, 79, &mask, "ease", 1, 1, 0, ignore)) _exit(2);
    for (int turn = 0; turn < 20; turn++) {
        char last[64];
        snprintf(last, sizeof(last), "\"seq\":%d,", turn * 32 + 31);
        for (uint64_t k = 0; k < 32; k++) {
            ncclProfilerEventDescr_v7_t coll = {.type = ncclProfileColl};
            void *handle = NULL;
            coll.coll.seqNumber = (uint64_t)turn * 32 + k;
            coll.coll.func = "AllReduce";
            v7->startEvent(context, &handle, &coll);
            if (handle) v7->stopEvent(handle);
        }
        for (read_file(getpid()); !strstr(text, last); read_file(getpid()))
            nanosleep(&interval, NULL);
        if (turn == 0) wakes_before = wakes; /* of the communicator and the ring */
    }
    _exit(wakes_before > 0 && wakes == wakes_before ? 0 : 3);
}

static void who_is_in_time_is_not_woken(void **state)
{
    int status = -1;
    (void)state;
    pid_t child = fork();
    if (child == 0) report_at_ease();
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(path_of(child));
    assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest threads[] = {
        cmocka_unit_test(hosts_every_version),
        cmocka_unit_test(writes_what_it_is_reported),
        cmocka_unit_test(counts_what_is_lost),
        cmocka_unit_test(threads_come_and_go),
        cmocka_unit_test(times_are_those_of_the_clock),
        cmocka_unit_test(a_file_changes_the_mask),
        cmocka_unit_test(keeps_a_sample),
    };
    const struct CMUnitTest processes[] = {
        cmocka_unit_test(a_burst_is_moved_aside),
        cmocka_unit_test(who_is_in_time_is_not_woken),
        cmocka_unit_test(the_last_ones_are_kept), /* before this process has rings of its own */
        cmocka_unit_test(seconds_are_kept),
        cmocka_unit_test(who_asks_gets_them),
        cmocka_unit_test(a_child_has_a_file_of_its_own),
        cmocka_unit_test(a_process_that_just_ends_is_whole),
        cmocka_unit_test(says_that_it_cannot_write),
        cmocka_unit_test(signals_end_the_trace_alone),
    };
    char pattern[128];
    if (argc < 3 || !mkdtemp(folder)) return 99;
    snprintf(pattern, sizeof(pattern), "%s/trace.%%p", folder);
    setenv("TUTTI_TRACE_FILE", pattern, 1);
    setenv("TUTTI_TRACE_RING", "16", 1);
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return 99;
    int failed = !strcmp(argv[2], "threads") ? cmocka_run_group_tests(threads, NULL, NULL)
                                             : cmocka_run_group_tests(processes, NULL, NULL);
    unlink(path_of(getpid()));
    rmdir(folder);
    return failed;
}
