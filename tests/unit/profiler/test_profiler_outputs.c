/* What our profiler plugin writes beside its records: the inspector's lines and Prometheus's text,
 * during the run. Each case is a process of its own, as a process has one set of files.
 * usage: test-profiler-outputs LIBRARY */
#include "../check.h"

#include "nccl/profiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_BYTES = 1 << 20, CALLS = 50, WAITS = 4000, WAIT_USEC = 5000 };

static void *library;
static char folder[] = "/tmp/tutti-outputs.XXXXXX";
static char text[FILE_BYTES];
static int complaints;

static void count_complaints(ncclDebugLogLevel level, unsigned long flags, const char *file,
                             int line, const char *fmt, ...)
{
    (void)flags, (void)file, (void)line, (void)fmt;
    complaints += level == NCCL_LOG_WARN;
}

static const void *symbol(const char *name)
{
    const void *object = dlsym(library, name);
    assert_non_null(object);
    return object;
}

static void in_folder(const char *name, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/%s", folder, name);
}

/* False: it is not there. */
static bool read_file(const char *name)
{
    char path[256];
    in_folder(name, path, sizeof(path));
    FILE *file = fopen(path, "r");
    size_t bytes = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file) fclose(file);
    text[bytes] = '\0';
    return file != NULL;
}

static unsigned long count_of(const char *needle)
{
    unsigned long count = 0;
    for (const char *at = text; (at = strstr(at, needle)); at++)
        count++;
    return count;
}

static void set_files(const char *outputs)
{
    char path[256];
    in_folder("records", path, sizeof(path));
    setenv("TUTTI_TRACE_FILE", path, 1);
    in_folder("lines", path, sizeof(path));
    setenv("TUTTI_TRACE_INSPECTOR_FILE", path, 1);
    in_folder("metrics", path, sizeof(path));
    setenv("TUTTI_TRACE_PROMETHEUS_FILE", path, 1);
    setenv("TUTTI_TRACE_INTERVAL", "0.02", 1);
    if (outputs) setenv("TUTTI_TRACE_OUTPUTS", outputs, 1);
}

static void *stop_elsewhere(void *handle)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    ncclProfilerEventStateArgs_v7_t args = {.kernelCh = {.pTimer = 5500}};
    v7->recordEventState(handle, ncclProfilerKernelChStop, &args);
    v7->stopEvent(handle);
    return NULL;
}

/* An AllReduce of 4000 bytes on two channels, from 1000 to 5500 of the GPU's clock; the kernel of
 * the second channel ends in another thread. */
static void report_collective(void *context, uint64_t number)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    void *coll = NULL, *kernels[2] = {NULL, NULL};
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileColl};
    ncclProfilerEventStateArgs_v7_t args = {.kernelCh = {.pTimer = 4000}};
    pthread_t thread;
    descr.coll.seqNumber = number;
    descr.coll.func = "AllReduce";
    descr.coll.datatype = "ncclFloat32";
    descr.coll.algo = "RING";
    descr.coll.proto = "LL";
    descr.coll.count = 1000;
    descr.coll.nChannels = 2;
    v7->startEvent(context, &coll, &descr);
    v7->stopEvent(coll);
    for (int c = 0; c < 2; c++) {
        descr = (ncclProfilerEventDescr_v7_t){.type = ncclProfileKernelCh, .parentObj = coll};
        descr.kernelCh.channelId = (uint8_t)c;
        descr.kernelCh.pTimer = 1000 + 500 * (uint64_t)c;
        v7->startEvent(context, &kernels[c], &descr);
    }
    v7->recordEventState(kernels[0], ncclProfilerKernelChStop, &args);
    v7->stopEvent(kernels[0]);
    assert_int_equal(pthread_create(&thread, NULL, stop_elsewhere, kernels[1]), 0);
    pthread_join(thread, NULL);
}

static void report_message(void *context)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    void *send = NULL, *kernel = NULL;
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileP2p};
    descr.p2p.func = "Send";
    descr.p2p.datatype = "Unknown"; /* so NCCL calls ncclUint8 */
    descr.p2p.count = 77;
    descr.p2p.peer = 3;
    descr.p2p.nChannels = 1;
    v7->startEvent(context, &send, &descr);
    descr = (ncclProfilerEventDescr_v7_t){.type = ncclProfileKernelCh, .parentObj = send};
    v7->startEvent(context, &kernel, &descr);
    v7->stopEvent(kernel);
    v7->stopEvent(send);
}

static void *begin(void)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    static int mask; /* the plugin keeps the pointer */
    void *context = NULL;
    assert_int_equal(v7->init(&context, 0xabc, &mask, "the \"name\"", 2, 4, 1, count_complaints),
                     ncclSuccess);
    return context;
}

static void wait_for(const char *name, const char *needle, unsigned long times)
{
    for (int k = 0; k < WAITS && !(read_file(name) && count_of(needle) >= times); k++)
        usleep(WAIT_USEC);
    assert_int_equal(count_of(needle), times);
}

static void all_at_once(void)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    char total[256];
    set_files("jsonl,inspector,prometheus");
    void *context = begin();
    for (int k = 0; k < CALLS; k++)
        report_collective(context, (uint64_t)k);
    report_message(context);
    /* while the communicator lives */
    wait_for("lines", "\"coll\":\"AllReduce\"", CALLS);
    wait_for("metrics", "nccl_operations_total{", 2);
    snprintf(total, sizeof(total), "datatype=\"ncclFloat32\"} %d\n", CALLS);
    wait_for("metrics", total, 2); /* operations, and the histogram's count */
    v7->finalize(context);
    assert_int_equal(complaints, 0);

    read_file("lines");
    assert_int_equal(
        count_of("\"header\":{\"id\":\"0xabc\",\"comm_name\":\"the _name_\",\"rank\":1,"
                 "\"n_ranks\":4,\"nnodes\":2}"),
        CALLS + 1);
    assert_int_equal(count_of("\"coll_sn\":49,"), 1);
    assert_int_equal(count_of("\"coll_msg_size_bytes\":4000,\"coll_exec_time_us\":4.500,"
                              "\"coll_timing_source\":\"kernel_gpu\",\"coll_algobw_gbs\":0.888889,"
                              "\"coll_busbw_gbs\":1.333333}}"),
                     CALLS);
    assert_int_equal(count_of("\"p2p\":\"Send\",\"p2p_sn\":0,\"p2p_peer\":3,"), 1);
    assert_int_equal(count_of("\"p2p_timing_source\":\"kernel_cpu\""), 1); /* without times */
    read_file("metrics");
    assert_int_equal(count_of("nccl_bus_bandwidth_gbs{version=\"v5.1\",slurm_job_id="), 1);
    assert_int_equal(count_of("collective=\"AllReduce\",message_size=\"3-4KB\","
                              "algo_proto=\"RING_LL\",comm_id=\"0000000000000abc\",rank=\"1\","
                              "bytes=\"4000\",datatype=\"ncclFloat32\"} 1.33333333\n"),
                     1);
    assert_int_equal(count_of("\"ncclFloat32\",le=\"3e-06\"} 0\n"), 1);
    assert_int_equal(count_of("\"ncclFloat32\",le=\"1e-05\"} 50\n"), 1);
    assert_int_equal(count_of("nccl_p2p_exec_time_microseconds{"), 1);
    assert_int_equal(count_of("p2p_operation=\"Send\",message_size=\"77-78B\",comm_id="), 19);
    assert_int_equal(count_of("} 200000\n"), 1); /* bytes */
    assert_int_equal(count_of("nccl_collectives_total{version=\"v5.1\",slurm_job_id="), 1);
    assert_int_equal(count_of("\n# TYPE nccl_p2p_total counter\nnccl_p2p_total{version="), 1);
    assert_int_equal(count_of("\"} 1\n# TYPE nccl_collectives_dropped_total"), 1);
    read_file("records");
    assert_int_equal(count_of("\"type\":\"Coll\""), CALLS);
    assert_int_equal(count_of("\"datatype\":\"ncclUint8\",\"count\":77"), 1);
    assert_int_equal(count_of("\"open\":0,"), 1);
}

static void without_records(void)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    set_files("inspector");
    setenv("NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", "78", 1);
    void *context = begin();
    report_message(context); /* too small */
    report_collective(context, 0);
    v7->finalize(context);
    context = begin(); /* another one goes on in the same file */
    report_collective(context, 1);
    v7->finalize(context);
    assert_true(read_file("lines"));
    assert_int_equal(count_of("\n"), 2);
    assert_false(read_file("records"));
    assert_false(read_file("metrics"));
}

/* The numbers of the events of an operation, in the order of their times. */
static void verbose(void)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    set_files("inspector");
    setenv("NCCL_INSPECTOR_DUMP_VERBOSE", "1", 1);
    void *context = begin();
    report_collective(context, 7);
    report_message(context);
    v7->finalize(context);
    assert_true(read_file("lines"));
    assert_int_equal(count_of("\n"), 2);
    assert_int_equal(count_of("\"coll\":\"AllReduce\",\"coll_algo\":\"RING\",\"coll_proto\":\"LL\","
                              "\"coll_sn\":7,"),
                     1);
    assert_int_equal(
        count_of(",\"event_trace_sn\":{\"coll_start_sn\":1,\"coll_stop_sn\":2,\"kernel_events\":["
                 "{\"channel_id\":0,\"kernel_start_sn\":3,\"kernel_stop_sn\":6,"
                 "\"kernel_record_sn\":5},{\"channel_id\":1,\"kernel_start_sn\":4,"
                 "\"kernel_stop_sn\":8,\"kernel_record_sn\":7}]},\"event_trace_ts\":{"
                 "\"coll_start_ts\":1"),
        1);
    assert_int_equal(
        count_of("\"p2p_start_sn\":1,\"p2p_stop_sn\":4,\"kernel_events\":[{\"channel_id\":0,"
                 "\"kernel_start_sn\":2,\"kernel_stop_sn\":3,\"kernel_record_sn\":0}]}"),
        1);
    assert_int_equal(count_of("\"kernel_record_ts\":0}]}}}\n"), 1);
}

/* The inspector's own variables do what they did. */
static void as_the_inspector(void)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    char path[256], host[64] = "", name[160];
    set_files(NULL);
    unsetenv("TUTTI_TRACE_INSPECTOR_FILE");
    in_folder("dump", path, sizeof(path));
    setenv("NCCL_INSPECTOR_ENABLE", "1", 1);
    setenv("NCCL_INSPECTOR_DUMP_DIR", path, 1);
    void *context = begin();
    report_collective(context, 0);
    v7->finalize(context);
    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = '\0';
    snprintf(name, sizeof(name), "dump/%s-pid%d.log", host, (int)getpid());
    assert_true(read_file(name));
    assert_int_equal(count_of("\"coll_perf\""), 1);
    assert_true(read_file("records"));
}

/* Versions 1 to 3 tell less: times of the call, or of the kernels as the CPU sees them. */
static void older_versions(void)
{
    const ncclProfiler_v2_t *v2 = symbol("ncclProfiler_v2");
    const ncclProfiler_v3_t *v3 = symbol("ncclProfiler_v3");
    void *two = NULL, *three = NULL, *coll = NULL, *kernel = NULL;
    int mask = 0;
    set_files("inspector");
    assert_int_equal(v2->init(&two, &mask), ncclSuccess);
    ncclProfilerEventDescr_v2_t old = {.type = ncclProfileColl};
    old.coll.func = "AllGather";
    v2->startEvent(two, &coll, &old);
    v2->stopEvent(coll);
    assert_int_equal(v3->init(&three, &mask), ncclSuccess);
    ncclProfilerEventDescr_v3_t descr = {.type = ncclProfileColl};
    descr.coll.func = "Reduce";
    descr.coll.nMaxChannels = 1;
    v3->startEvent(three, &coll, &descr);
    v3->stopEvent(coll);
    descr = (ncclProfilerEventDescr_v3_t){.type = ncclProfileKernelCh, .parentObj = coll};
    v3->startEvent(three, &kernel, &descr);
    v3->stopEvent(kernel);
    v3->finalize(three);
    v2->finalize(two);
    assert_true(read_file("lines"));
    assert_int_equal(count_of("\"coll\":\"AllGather\""), 1);
    assert_int_equal(count_of("\"coll\":\"Reduce\""), 1);
    assert_int_equal(count_of("\"coll_timing_source\":\"collective_cpu\""), 1);
    assert_int_equal(count_of("\"coll_timing_source\":\"kernel_cpu\""), 1);
}

/* No job ends for a word that is none, or for files that cannot be made. */
static void what_cannot_be_done(void)
{
    const ncclProfiler_v7_t *v7 = symbol("ncclProfiler_v7");
    set_files("jsonl,grafana");
    v7->finalize(begin());
    assert_int_equal(complaints, 1);
    assert_true(read_file("records"));
    set_files("jsonl,inspector,prometheus");
    setenv("TUTTI_TRACE_PROMETHEUS_FILE", "/nowhere/at/all", 1);
    setenv("TUTTI_TRACE_INSPECTOR_FILE", "/dev/full", 1);
    for (int k = 0; k < 3; k++) {
        void *context = begin();
        report_collective(context, (uint64_t)k);
        v7->finalize(context);
    }
    assert_int_equal(complaints, 3); /* each file once */
    assert_true(read_file("records"));
}

static void in_a_child(void (*run)(void))
{
    int status = -1;
    assert_non_null(mkdtemp(strcpy(folder, "/tmp/tutti-outputs.XXXXXX")));
    pid_t child = fork();
    if (child == 0) {
        run();
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a folder of ours */
    assert_int_equal(status, 0);
}

#define CASE(name)                                                                                 \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        in_a_child(name);                                                                          \
    }
CASE(all_at_once)
CASE(without_records)
CASE(verbose)
CASE(as_the_inspector)
CASE(older_versions)
CASE(what_cannot_be_done)
#undef CASE

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_at_once),    cmocka_unit_test(test_without_records),
        cmocka_unit_test(test_verbose),        cmocka_unit_test(test_as_the_inspector),
        cmocka_unit_test(test_older_versions), cmocka_unit_test(test_what_cannot_be_done),
    };
    if (argc != 2) return 2;
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
