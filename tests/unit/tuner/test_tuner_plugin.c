/* Our tuner plugin through every table that it exports: rules, models, reloading. */
#include "../check.h"

#include "base/mem.h"
#include "nccl/tuner.h"
#include "nccl/tuner_v1.h"
#include "nccl/tuner_v2.h"
#include "nccl/tuner_v3.h"
#include "nccl/tuner_v4.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef float table_t[NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];

static void *library;
static char rules_path[] = "/tmp/tutti-tuner-rules.XXXXXX";
static char log_text[65536];

static void keep(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static void keep(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
                 const char *fmt, ...)
{
    size_t used = strlen(log_text);
    va_list args;
    (void)file, (void)line;
    assert_true(flags == NCCL_TUNING);
    used += (size_t)snprintf(log_text + used, sizeof(log_text) - used, "%d ", (int)level);
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    vsnprintf(log_text + used, sizeof(log_text) - used - 1, fmt, args);
    va_end(args);
    strcat(log_text, "\n");
}

static const void *symbol(const char *name)
{
    const void *object = dlsym(library, name);
    assert_non_null(object);
    return object;
}

static const ncclTuner_v6_t *newest(void)
{
    return symbol("ncclTunerPlugin_v6");
}

static void write_rules(const char *text)
{
    FILE *file = fopen(rules_path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void *open_six(size_t nranks, size_t nnodes)
{
    static ncclTunerConstants_v6_t constants;
    ncclNvlDomainInfo_v6_t domains = {1, 1, 1};
    void *ctx = NULL;
    assert_int_equal(newest()->init(&ctx, 0, nranks, nnodes, keep, &domains, &constants), 0);
    return ctx;
}

static void fill(table_t table)
{
    for (int a = 0; a < NCCL_NUM_ALGORITHMS; a++) {
        for (int p = 0; p < NCCL_NUM_PROTOCOLS; p++)
            table[a][p] = a <= NCCL_ALGO_RING ? 5.0f : -1.0f;
    }
}

/* "algorithm,protocol,channels" of what the plugin prefers, "-" when it has no preference. */
static const char *choice(void *ctx, ncclFunc_t func, size_t bytes, int nops, int registered)
{
    static char text[64];
    table_t table;
    int nchannels = 0, found = 0;
    fill(table);
    assert_int_equal(newest()->getCollInfo(ctx, func, bytes, nops, (float **)(void *)table, 7, 3,
                                           registered, &nchannels),
                     0);
    snprintf(text, sizeof(text), "-");
    for (int a = 0; a < NCCL_NUM_ALGORITHMS; a++) {
        for (int p = 0; p < NCCL_NUM_PROTOCOLS; p++) {
            assert_true(a <= NCCL_ALGO_RING ? table[a][p] >= 0 : table[a][p] == -1.0f);
            if (table[a][p] != 0.0f) continue;
            snprintf(text, sizeof(text), "%d,%d,%d", a, p, nchannels);
            found++;
        }
    }
    assert_true(found <= 1);
    assert_true(found || nchannels == 0);
    return text;
}

static int start(void **state)
{
    (void)state;
    unsetenv("TUTTI_TUNER_MODEL");
    unsetenv("TUTTI_TUNE_FILE");
    setenv("NCCL_TUNER_CONFIG_FILE", rules_path, 1);
    log_text[0] = '\0';
    write_rules("");
    return 0;
}

static void rules_steer(void **state)
{
    static const struct {
        ncclFunc_t func;
        size_t bytes, nranks, nnodes;
        int nops, registered;
        const char *choice;
    } cases[] = {
        {ncclFuncAllReduce, 1023, 8, 1, 1, 0, "1,2,4"},
        {ncclFuncAllReduce, 1024, 8, 1, 1, 0, "0,0,-"}, /* both ends belong to the range */
        {ncclFuncAllReduce, 4096, 8, 1, 1, 0, "0,0,-"},
        {ncclFuncAllReduce, 4097, 8, 1, 1, 0, "1,2,4"}, /* the wider rule behind it */
        {ncclFuncAllReduce, 4097, 8, 2, 1, 0, "-"},
        {ncclFuncBroadcast, 64, 8, 2, 1, 0, "1,1,2"},
        {ncclFuncBroadcast, 64, 16, 2, 1, 0, "1,2,3"},
        {ncclFuncReduce, 64, 8, 1, 2, 0, "1,0,-"},
        {ncclFuncReduce, 64, 8, 1, 1, 0, "-"},
        {ncclFuncAllGather, 64, 8, 1, 1, 1, "1,1,-"},
        {ncclFuncAllGather, 64, 8, 1, 1, 0, "1,2,-"},
        {ncclFuncReduceScatter, 64, 8, 1, 1, 0, "1,2,7"}, /* NVLS is impossible: the next rule */
        {ncclFuncReduceScatter, SIZE_MAX, 8, 1, 1, 0, "1,2,7"},
    };
    (void)state;
    write_rules("# a comment\n\n"
                "allreduce,1024,4096,tree,ll,-1,-1,-1\r\n"
                " allreduce , 0 , 1000000 , ring , simple , 4 , 1 , -1 , -1 , -1 \n"
                "broadcast,0,4294967295,ring,ll128,2,2,8\n"
                "broadcast,0,4294967295,ring,simple,3,-1,16\n"
                "reduce,0,100,ring,ll,-1,-1,-1,2\n"
                "allgather,0,100,ring,ll128,-1,-1,-1,-1,1\n"
                "allgather,0,100,ring,simple,-1,-1,-1,-1,-1\n"
                "reducescatter,0,-1,nvls,simple,1,-1,-1\n"
                "reducescatter,0,-1,ring,simple,7,-1,-1"); /* no end of line */
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        char expected[32];
        const char *tail = strrchr(cases[i].choice, '-');
        bool kept = tail && tail != cases[i].choice;
        snprintf(expected, sizeof(expected), "%s", cases[i].choice);
        if (kept) strcpy(strrchr(expected, '-'), "0"); /* channels stay the host's */
        void *ctx = open_six(cases[i].nranks, cases[i].nnodes);
        print_message("case %zu\n", i);
        assert_string_equal(
            choice(ctx, cases[i].func, cases[i].bytes, cases[i].nops, cases[i].registered),
            expected);
        newest()->finalize(ctx);
    }
    assert_null(strstr(log_text, "skipped"));
    assert_non_null(strstr(log_text, "TUNER/Tutti: 9 rules from "));
}

static void bad_lines_are_named_and_skipped(void **state)
{
    static const struct {
        const char *line, *reason;
    } cases[] = {
        {"alltoall,0,1,ring,ll,1,1,1", "field 1, 'alltoall', is no collective"},
        {"AllReduce,0,1,ring,ll,1,1,1", "field 1, 'AllReduce', is no collective"},
        {"allreduce,x,1,ring,ll,1,1,1", "field 2, 'x', is no number"},
        {"allreduce,-1,1,ring,ll,1,1,1", "field 2, '-1', is no number"},
        {"allreduce,0,99999999999999999999,ring,ll,1,1,1", "field 3, '9999"},
        {"allreduce,9,8,ring,ll,1,1,1", "field 3, '8', is less"},
        {"allreduce,0,1,circle,ll,1,1,1", "field 4, 'circle', is no algorithm"},
        {"allreduce,0,1,ring,LL,1,1,1", "field 5, 'LL', is no protocol"},
        {"allreduce,0,1,ring,ll,-2,1,1", "field 6, '-2', is neither"},
        {"allreduce,0,1,ring,ll,4096,1,1", "field 6, '4096', is more channels"},
        {"allreduce,0,1,ring,ll,1,1x,1", "field 7, '1x', is neither"},
        {"allreduce,0,1,ring,ll,1,1,", "field 8, '', is neither"},
        {"allreduce,0,1,ring,ll,1,1,1,1,2", "field 10, '2', is neither"},
        {"allreduce,0,1,ring,ll,1,1", "7 fields, a rule has 8 to 10"},
        {"allreduce,0,1,ring,ll,1,1,1,1,1,1,1", "more than 10 fields"},
        {"nonsense", "1 fields"},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        char text[512], prefix[128];
        snprintf(text, sizeof(text), "# first\n%s\nallreduce,0,64,ring,ll,2,-1,-1\n",
                 cases[i].line);
        log_text[0] = '\0';
        write_rules(text);
        void *ctx = open_six(8, 1);
        snprintf(prefix, sizeof(prefix), "2 TUNER/Tutti: %s:2: %s", rules_path, cases[i].reason);
        print_message("case: %s\n%s", cases[i].line, log_text);
        assert_non_null(strstr(log_text, prefix));
        assert_non_null(strstr(log_text, "; the line is skipped"));
        assert_non_null(strstr(log_text, "1 rules from"));
        assert_string_equal(choice(ctx, ncclFuncAllReduce, 64, 1, 0), "1,0,2");
        newest()->finalize(ctx);
    }
}

static void hostile_files_do_no_harm(void **state)
{
    char text[4096];
    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    write_rules(text);
    void *ctx = open_six(8, 1);
    assert_non_null(strstr(log_text, ":1: longer than 255 characters; the line is skipped"));
    newest()->finalize(ctx);
    setenv("NCCL_TUNER_CONFIG_FILE", "/tmp", 1);
    ctx = open_six(8, 1);
    assert_non_null(strstr(log_text, "no rules, /tmp: it is no regular file"));
    newest()->finalize(ctx);
    setenv("NCCL_TUNER_CONFIG_FILE", "/nowhere/at/all", 1);
    ctx = open_six(8, 1);
    assert_non_null(strstr(log_text, "no rules, /nowhere/at/all: No such file"));
    assert_string_equal(choice(ctx, ncclFuncAllReduce, 64, 1, 0), "-");
    newest()->finalize(ctx);
}

/* ---- models ---- */

/* Values by hand from the description: time = 12 or 17 + links + bytes / (1000 * bandwidth). */
static void the_mi300_model_chooses(void **state)
{
    static const struct {
        ncclFunc_t func;
        size_t bytes, nranks, nnodes;
        const char *choice;
    } cases[] = {
        /* tree LL 12 + 2 * 7 * 0.8 = 23.2; ring LL 12 + 14 * 0.8 = 23.2, but faster bytes
         * (138 * 8 / 14 = 79 against 69 GB/s); both are seen at a tenth */
        {ncclFuncAllReduce, 1024, 8, 1, "1,0,0"},
        /* LL: 23.2 + 1.1e9 / (1000 * 79 * 0.2); Simple: 17 + 14 * 3.6 + 1.1e9 / (1000 * 192) */
        {ncclFuncAllReduce, 1u << 30, 8, 1, "1,2,0"},
        {ncclFuncBroadcast, 64, 8, 1, "1,0,0"},
        /* 64 ranks on 8 nodes: tree LL 12 + 2 * (5.6 + 3 * 12.5) = 98; ring LL 12 + (126 - 16) * 1
         * + 16 * 9.5 = 274 */
        {ncclFuncAllReduce, 1024, 64, 8, "0,0,0"},
        {ncclFuncAllGather, 1u << 30, 64, 8, "1,2,0"},
    };
    (void)state;
    setenv("TUTTI_TUNER_MODEL", "mi300", 1);
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        void *ctx = open_six(cases[i].nranks, cases[i].nnodes);
        print_message("case %zu\n", i);
        assert_string_equal(choice(ctx, cases[i].func, cases[i].bytes, 1, 0), cases[i].choice);
        newest()->finalize(ctx);
    }
    write_rules("allreduce,0,2000,tree,ll,-1,-1,-1\n"); /* rules come first */
    void *ctx = open_six(8, 1);
    assert_string_equal(choice(ctx, ncclFuncAllReduce, 1024, 1, 0), "0,0,0");
    newest()->finalize(ctx);
    setenv("TUTTI_TUNER_MODEL", "h100", 1);
    ctx = open_six(8, 1);
    assert_non_null(strstr(log_text, "not 'h100'"));
    newest()->finalize(ctx);
}

static void measured_times_replace_predictions(void **state)
{
    char path[] = "/tmp/tutti-tuner-table.XXXXXX";
    table_t table;
    int nchannels = 0;
    (void)state;
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    fputs("tutti-tune 1\nphase_usec 1\n"
          "time allreduce ring simple 4 1 4096 50\ntime allreduce ring simple 4 1 1024 20\n"
          "time allreduce tree ll 4 1 1024 7.5\ntime allreduce nvls simple 4 1 1024 1\n"
          "time allreduce ring ll 8 1 1024 99\ntime allreduce ring ll 4 1 1024 many\n",
          file);
    fclose(file);
    setenv("TUTTI_TUNER_MODEL", "measured", 1);
    setenv("TUTTI_TUNE_FILE", path, 1);
    void *ctx = open_six(4, 1);
    assert_non_null(strstr(log_text, ":8: is not 'time collective"));
    assert_non_null(strstr(log_text, "4 measured times for 4 ranks on 1 nodes"));
    static const struct {
        size_t bytes;
        double ring, tree;
    } cases[] = {{1, 20, 7.5}, {1024, 20, 7.5}, {2560, 35, 18.75}, {4096, 50, 30}, {8192, 100, 60}};
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        fill(table);
        newest()->getCollInfo(ctx, ncclFuncAllReduce, cases[i].bytes, 1, (float **)(void *)table, 7,
                              3, 0, &nchannels);
        print_message("case: %zu bytes\n", cases[i].bytes);
        assert_true(fabs((double)table[1][2] - cases[i].ring) < 1e-3);
        assert_true(fabs((double)table[0][0] - cases[i].tree) < 1e-3);
        assert_true(table[1][0] == 5.0f && table[4][2] == -1.0f);
    }
    newest()->finalize(ctx);
    unlink(path);
}

/* ---- every version ---- */

static void every_version_answers(void **state)
{
    const ncclTuner_v1_t *one = symbol("ncclTunerPlugin_v1");
    const ncclTuner_v2_t *two = symbol("ncclTunerPlugin_v2");
    const ncclTuner_v3_t *three = symbol("ncclTunerPlugin_v3");
    const ncclTuner_v4_t *four = symbol("ncclTunerPlugin_v4");
    const ncclTuner_v5_t *five = symbol("ncclTunerPlugin_v5");
    table_t table;
    void *ctx = NULL;
    int algo = -1, proto = -1, nchannels = 0;
    (void)state;
    write_rules("allreduce,0,64,nvls,simple,9,-1,-1\nallreduce,0,64,ring,ll128,5,-1,-1\n");
    assert_int_equal(one->init(4, 1, keep), 0);
    assert_int_equal(one->getCollInfo(ncclFuncAllReduce, 64, 0, 0, 1, &algo, &proto, &nchannels),
                     0);
    assert_true(algo == 1 && proto == 1 && nchannels == 5);
    assert_int_equal(one->destroy(), 0);
    assert_int_equal(one->destroy(), 0); /* once too often */
    algo = proto = -1;
    assert_int_equal(two->init(4, 1, keep, &ctx), 0);
    two->getCollInfo(ctx, ncclFuncAllReduce, 64, 0, 1, 1, &algo, &proto, &nchannels);
    assert_true(algo == 4 && proto == 2 && nchannels == 9);
    algo = proto = -1;
    two->getCollInfo(ctx, ncclFuncAllReduce, 65, 0, 1, 1, &algo, &proto, &nchannels);
    assert_true(algo == -1 && proto == -1);
    two->destroy(ctx);
    three->init(4, 1, keep, &ctx);
    fill(table);
    three->getCollInfo(ctx, ncclFuncAllReduce, 64, 1, (float **)(void *)table, 6, 3, &nchannels);
    assert_true(table[1][1] == 0.0f && nchannels == 5);
    three->destroy(ctx);
    four->init(4, 1, keep, &ctx);
    fill(table);
    four->getCollInfo(ctx, ncclFuncAllReduce, 64, 1, (float **)(void *)table, 7, 3, 0, &nchannels);
    assert_true(table[1][1] == 0.0f);
    four->destroy(ctx);
    assert_int_equal(five->init(&ctx, 7, 4, 1, keep, NULL, NULL), 0);
    fill(table);
    five->getCollInfo(ctx, ncclFuncAllReduce, 64, 1, (float **)(void *)table, 7, 3, 0, &nchannels);
    assert_true(table[1][1] == 0.0f);
    five->finalize(ctx);
}

/* ---- reloading ---- */

enum { RANKS = 4 };

/* Call until the choice changes; the number of that call. 0: it did not within 60 seconds. */
static unsigned long calls_until_change(int rank, unsigned long long comm, atomic_int *started)
{
    static ncclTunerConstants_v6_t constants;
    ncclNvlDomainInfo_v6_t domains = {1, 1, 1};
    const struct timespec pace = {0, 200000L * (rank + 1)}; /* ranks are not in step */
    time_t end = time(NULL) + 60;
    void *ctx = NULL;
    if (newest()->init(&ctx, comm, RANKS, 1, keep, &domains, &constants)) return 0;
    unsigned long calls = 1;
    while (strcmp(choice(ctx, ncclFuncAllReduce, 64, 1, 0), "1,2,2") != 0) {
        if (time(NULL) > end) return 0;
        if (calls++ == 3) atomic_fetch_add(started, 1);
        nanosleep(&pace, NULL);
    }
    newest()->finalize(ctx);
    return calls;
}

/* Four ranks call at different paces while the file changes: all follow it from the same call. */
static void all_ranks_follow_a_change_at_one_call(void **state)
{
    unsigned long *calls =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    atomic_int *started = (atomic_int *)(calls + RANKS);
    unsigned long long comm = ((unsigned long long)getpid() << 32) | (unsigned)time(NULL);
    pid_t pids[RANKS];
    (void)state;
    assert_true(calls != MAP_FAILED);
    write_rules("allreduce,0,64,ring,ll,1,-1,-1\n");
    for (int r = 0; r < RANKS; r++) {
        pids[r] = fork();
        if (pids[r] > 0) continue;
        calls[r] = calls_until_change(r, comm, started);
        _exit(0);
    }
    for (time_t end = time(NULL) + 60; atomic_load(started) < RANKS && time(NULL) < end;)
        sched_yield();
    write_rules("allreduce,0,64,ring,simple,2,-1,-1\n");
    for (int r = 0; r < RANKS; r++) {
        int status = 1;
        waitpid(pids[r], &status, 0);
        assert_int_equal(status, 0);
    }
    for (int r = 0; r < RANKS; r++) {
        print_message("rank %d: call %lu\n", r, calls[r]);
        assert_true(calls[r] > 3);
        assert_int_equal(calls[r], calls[0]);
    }
    munmap(calls, 4096);
}

/* What stands under the segment's name without being a segment of this user is left alone: the
 * rules are read from the file, and nothing that is written there is believed. */
static void foreign_segments_are_not_joined(void **state)
{
    enum { BAD_BYTES = 4096 };
    static const struct {
        const char *name;
        mode_t mode;
        off_t bytes;
    } cases[] = {
        {"others may write", 0666, 0},
        {"others may read", 0644, 0},
        {"cut short", 0600, BAD_BYTES},
        {"too long", 0600, 4 << 20},
    };
    ncclNvlDomainInfo_v6_t domains = {1, 1, 1};
    static ncclTunerConstants_v6_t constants;
    (void)state;
    write_rules("allreduce,0,64,ring,ll,1,-1,-1\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[64];
        void *ctx = NULL;
        struct stat st;
        const unsigned long long comm = ((unsigned long long)getpid() << 32) | (0xf0 + i);
        snprintf(name, sizeof(name), "/tutti-tuner-%u-%llx", (unsigned)getuid(), comm);
        print_message("case: %s\n", cases[i].name);
        int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        assert_true(fd >= 0);
        assert_int_equal(fchmod(fd, cases[i].mode), 0);
        assert_int_equal(ftruncate(fd, cases[i].bytes), 0);
        assert_int_equal(newest()->init(&ctx, comm, 1, 1, keep, &domains, &constants), 0);
        assert_string_equal(choice(ctx, ncclFuncAllReduce, 64, 1, 0), "1,0,1");
        newest()->finalize(ctx);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_size, cases[i].bytes); /* untouched */
        close(fd);
        assert_int_equal(shm_unlink(name), 0); /* and still there */
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rules_steer, start),
        cmocka_unit_test_setup(bad_lines_are_named_and_skipped, start),
        cmocka_unit_test_setup(hostile_files_do_no_harm, start),
        cmocka_unit_test_setup(the_mi300_model_chooses, start),
        cmocka_unit_test_setup(measured_times_replace_predictions, start),
        cmocka_unit_test_setup(every_version_answers, start),
        cmocka_unit_test_setup(all_ranks_follow_a_change_at_one_call, start),
        cmocka_unit_test_setup(foreign_segments_are_not_joined, start),
    };
    int fd = mkstemp(rules_path);
    library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library || fd < 0) return 2;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(fd);
    unlink(rules_path);
    return failed;
}
