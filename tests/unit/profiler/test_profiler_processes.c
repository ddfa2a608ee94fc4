/* Our profiler plugin in processes that fork, end, are killed and cannot write: what is in the file
 * then.
 * usage: test-profiler-processes LIBRARY */
#include "trace_file.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- forks and ends ---- */

static int run_child(void)
{
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    void *context = NULL;
    int mask = 0;
    if (v7->init(&context, 1, &mask, NULL, 1, 1, 0, trace_ignore)) return 1;
    TRACE_ONE_COLL(7, v7, context);
    return 0;
}

static void a_child_has_a_file_of_its_own(void **state)
{
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileGroup};
    void *context, *handle = NULL;
    int mask = 0, status = -1;
    (void)state;
    trace_init(v7->init, &context, &mask);
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
    trace_read(child);
    assert_int_equal(trace_count("{\"t\":\"head\""), 1);
    assert_int_equal(trace_end_says("starts"), 1);
    assert_int_equal(trace_end_says("open"), 0);
    unlink(trace_path(child));
    trace_read(getpid());
    assert_int_equal(trace_end_says("open"), 0);
}

static void a_process_that_just_ends_is_whole(void **state)
{
    int status = -1;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
        ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileGroup};
        void *context = NULL, *handle = NULL;
        int mask = 0;
        v7->init(&context, 1, &mask, NULL, 1, 1, 0, trace_ignore);
        v7->startEvent(context, &handle, &descr);
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    trace_read(child);
    assert_int_equal(trace_end_says("starts"), 1);
    assert_int_equal(trace_end_says("open"), 1);
    unlink(trace_path(child));
}

static void says_that_it_cannot_write(void **state)
{
    int status = -1;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
        void *context = NULL;
        int mask = 0;
        setenv("TUTTI_TRACE_FILE", "/nonexistent/folder/trace", 1);
        if (!v7->init(&context, 1, &mask, NULL, 1, 1, 0, trace_ignore)) _exit(1);
        setenv("TUTTI_TRACE_FILE", "/dev/full", 1); /* events go on, the job does too */
        if (v7->init(&context, 1, &mask, NULL, 1, 1, 0, trace_ignore)) _exit(2);
        struct trace_reported reported = {.context = context};
        trace_report_much(&reported);
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
            const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
            struct rlimit little = {.rlim_cur = 200, .rlim_max = RLIM_INFINITY};
            struct trace_reported reported = {0};
            int ends[2], mask = 0;
            char path[64];
            if (pipe(ends)) _exit(1);
            snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
            if (kind == 0) setenv("TUTTI_TRACE_FILE", path, 1);
            if (v7->init(&reported.context, 1, &mask, NULL, 1, 1, 0, trace_ignore)) _exit(2);
            if (kind == 0) close(ends[0]);
            if (kind == 1 && setrlimit(RLIMIT_FSIZE, &little)) _exit(3);
            trace_report_much(&reported);
            v7->finalize(reported.context);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        print_message("%s: status %x\n", kind ? "limit" : "pipe", status);
        assert_int_equal(status, 0);
        unlink(trace_path(child));
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
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    const struct timespec interval = {.tv_nsec = 1000000};
    void *context = NULL;
    int mask = 0;
    if (how > 1) signal(how, SIG_DFL); /* not the test library's */
    setenv("TUTTI_TRACE_KEEP", keep, 1);
    setenv("TUTTI_TRACE_RING", "65536", 1);
    if (v7->init(&context, 77, &mask, "kept", 1, 1, 0, trace_ignore)) _exit(2);
    report_turns(v7, context);
    if (how == 1) exit(0);
    if (how > 1) raise(how);
    for (int k = 0; how == SIGUSR2 && k < 20000; k++) { /* the process goes on; so long at most */
        FILE *file = fopen(trace_path(getpid()), "r");
        size_t bytes = file ? fread(trace_text, 1, sizeof(trace_text) - 1, file) : 0;
        trace_text[bytes] = '\0';
        if (file) fclose(file);
        if (strstr(trace_text, "\"t\":\"end\"")) _exit(0);
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
    trace_read(child);
    unlink(trace_path(child));
    return status;
}

static void the_last_ones_are_kept(void **state)
{
    (void)state;
    assert_int_equal(keep_in_child("10K", 0), 0);
    unsigned long starts = trace_count("\"t\":\"start\""),
                  colls = trace_count("\"func\":\"AllReduce\"");
    assert_true(starts > 10 && starts < 100);
    assert_int_equal(trace_count("\"t\":\"comm\""), 1);
    assert_int_equal(trace_count("\"t\":\"thread\""), 1);
    assert_int_equal(trace_count("\"t\":\"head\""), 1);
    assert_non_null(strstr(trace_text, "\"seq\":999,"));
    assert_null(strstr(trace_text, "\"seq\":500,"));
    assert_int_equal(trace_end_says("starts"), starts);
    assert_int_equal(trace_end_says("stops"), trace_count("\"t\":\"stop\""));
    assert_int_equal(trace_end_says("states"), trace_count("\"t\":\"state\""));
    assert_int_equal(trace_end_says("open"), 0);
    assert_int_equal(trace_end_says("lost_starts"), 0);
    assert_true(trace_end_says("rolled") > 4 * TURNS);
    /* ends of what has gone are not written, nor is it named as a parent */
    assert_int_equal(trace_count("\"t\":\"stop\""), starts);
    assert_true(trace_count("\"parent\":0,") - colls <= 1);
}

static void seconds_are_kept(void **state)
{
    (void)state;
    assert_int_equal(keep_in_child("1000s", 0), 0); /* all of it */
    assert_int_equal(trace_end_says("starts"), 2 * TURNS);
    assert_int_equal(trace_end_says("open"), 1);
    assert_int_equal(trace_end_says("rolled"), 0);
    assert_int_equal(keep_in_child("0.000000001s,1M", 0), 0);
    assert_true(trace_end_says("starts") <= 2);
    assert_int_equal(keep_in_child("64 parsecs", 0), 0); /* is said, and all is written */
    assert_int_equal(trace_end_says("starts"), 2 * TURNS);
}

static void who_asks_gets_them(void **state)
{
    static const int signals[] = {SIGTERM, SIGSEGV, SIGABRT};
    (void)state;
    assert_int_equal(keep_in_child("1M", 1), 0);
    assert_int_equal(trace_end_says("starts"), 2 * TURNS);
    for (size_t k = 0; k < sizeof(signals) / sizeof(signals[0]); k++) {
        int status = keep_in_child("1M", signals[k]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signals[k]);
        assert_int_equal(trace_end_says("starts"), 2 * TURNS);
    }
    assert_int_equal(keep_in_child("1M", SIGUSR2), 0);
}

/* Faster than lines can be made: what the ring has no room for is moved aside, in its order. Events
 * that found no room either are told again. */
static _Noreturn void burst_and_end(void)
{
    enum { BURST = 30000 };
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    const struct timespec interval = {.tv_nsec = 50000};
    void *context = NULL;
    int mask = 0;
    setenv("TUTTI_TRACE_RING", "1024", 1);
    if (v7->init(&context, 78, &mask, "burst", 1, 1, 0, trace_ignore)) _exit(2);
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
    trace_read(child);
    unlink(trace_path(child));
    assert_true(trace_end_says("aside") > 0);
    assert_int_equal(trace_end_says("starts"), 30000);
    for (const char *at = trace_text; (at = strstr(at, "\"seq\":")); next++)
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
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    const struct timespec interval = {.tv_nsec = 1000000};
    unsigned long wakes_before = 0;
    void *context = NULL;
    int mask = 0;
    setenv("TUTTI_TRACE_RING", "1024", 1);
    if (v7->init(&context, 79, &mask, "ease", 1, 1, 0, trace_ignore)) _exit(2);
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
        for (trace_read(getpid()); !strstr(trace_text, last); trace_read(getpid()))
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
    unlink(trace_path(child));
    assert_int_equal(status, 0);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
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
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return trace_run(argc, argv, run);
}
