/* Older tuner plugins, built from declarations of their own, hosted as the newest version.
 * One process for each version (argument), because a process has one tuner library. */
#include "../check.h"

#include "base/mem.h"
#include "plugin/tuner/tuner.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int version;          /* of the plugin under test */
static const char *left_out; /* a function that its table has not; NULL: all there */
static char notes_path[] = "/tmp/tutti-tuner-notes.XXXXXX";
static char log_path[] = "/tmp/tutti-tuner-log.XXXXXX";

static const char *text_of(const char *path)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[n] = '\0';
    if (file) fclose(file);
    return text;
}

static bool noted(const char *what)
{
    if (strstr(text_of(notes_path), what)) return true;
    print_message("not noted: %s\n%s", what, text_of(notes_path));
    return false;
}

static int times_noted(const char *what)
{
    int n = 0;
    for (const char *at = text_of(notes_path); (at = strstr(at, what)); at++)
        n++;
    return n;
}

static bool logged(const char *what)
{
    if (strstr(text_of(log_path), what)) return true;
    print_message("not in the log: %s\n%s", what, text_of(log_path));
    return false;
}

static struct tt_tuner *open_tuner(int nranks)
{
    ncclTunerConstants_v6_t constants = {.baseLatencies[1][2] = 8.5};
    const struct tt_tuner_config config = {.comm_id = 0xabc,
                                           .nranks = nranks,
                                           .nnodes = 2,
                                           .least_local = nranks / 2,
                                           .most_local = nranks / 2,
                                           .constants = &constants};
    struct tt_tuner *tuner = NULL;
    tt_tuner_open(&config, &tuner);
    return tuner;
}

typedef float table_t[TT_TUNER_ALGOS][TT_TUNER_PROTOS];

static void fill(table_t table)
{
    for (int a = 0; a < TT_TUNER_ALGOS; a++) {
        for (int p = 0; p < TT_TUNER_PROTOS; p++)
            table[a][p] = a <= NCCL_ALGO_RING ? 5.0f : -1.0f;
    }
}

static ncclResult_t ask(struct tt_tuner *tuner, table_t table, int *nchannels)
{
    const struct tt_tuner_query query = {.func = 4, .bytes = 4096, .nops = 1};
    fill(table);
    return tt_tuner_ask(tuner, &query, table, nchannels);
}

static int zeros(table_t table)
{
    int n = 0;
    for (int a = 0; a < TT_TUNER_ALGOS; a++) {
        for (int p = 0; p < TT_TUNER_PROTOS; p++)
            n += table[a][p] == 0.0f;
    }
    return n;
}

static int start(void **state)
{
    (void)state;
    unsetenv("OUTSIDER_CHOICE");
    unsetenv("OUTSIDER_FAIL");
    return truncate(notes_path, 0);
}

static void an_outsider_chooses(void **state)
{
    table_t table;
    int nchannels = -1;
    char loaded[64];
    (void)state;
    setenv("OUTSIDER_CHOICE", "0,1,3", 1);
    struct tt_tuner *tuner = open_tuner(4);
    assert_non_null(tuner);
    assert_int_equal(ask(tuner, table, &nchannels), ncclSuccess);
    assert_true(table[0][1] == 0.0f);
    assert_int_equal(zeros(table), 1);
    assert_int_equal(nchannels, 3);
    const struct tt_tuner_query query = {.func = 4, .bytes = 4096, .nops = 1};
    const struct tt_tuner_layout layout = {0, 1, 3};
    assert_int_equal(tt_tuner_chunk(tuner, &query, &layout, 65536), 65536);
    const unsigned asked = version == 6 ? 2 : 1; /* the chunk is a question as well */
    struct tt_tuner_stats stats;
    tt_tuner_stats(tuner, &stats);
    assert_string_equal(stats.name, "Outsider");
    assert_int_equal(stats.asked, asked);
    assert_true(stats.p50_usec > 0 && stats.p50_usec <= stats.max_usec);
    assert_true(stats.max_usec <= stats.sum_usec);
    tt_tuner_close(tuner);
    snprintf(loaded, sizeof(loaded), "TUNER/Plugin: Using Outsider (v%d)", version);
    assert_true(logged(loaded));
    assert_true(logged("outsider is up"));
    assert_true(logged(asked == 2 ? "Outsider was asked 2 times, p50 "
                                  : "Outsider was asked 1 times, p50 "));
    assert_true(noted("init 4 2"));
    assert_true(noted(version <= 2 ? "ask 4 4096 collnet 0 nvls 0" : "ask 4 4096 table 7x3"));
    assert_true(noted("end 0"));
    if (version == 6) assert_true(noted("chunk 4 4096 of 0/1 on 3: 65536"));
    if (version >= 5) assert_true(noted("v5 comm abc domains 2 of 2..2 ring latency 8.5"));
}

/* Versions 1 and 2 answer with numbers: only a whole answer within the table, of a possible entry,
 * counts. The others edit the table themselves; the caller enforces the mask. */
static void half_answers_are_none(void **state)
{
    static const char *const answers[] = {"-1,2,0", "1,-1,0", "7,0,0",
                                          "0,3,0",  "4,2,0",  "-5,-5,-9"};
    (void)state;
    struct tt_tuner *tuner = open_tuner(4);
    assert_non_null(tuner);
    for (size_t i = 0; i < TT_LEN(answers); i++) {
        table_t table;
        int nchannels = -1;
        print_message("case: %s\n", answers[i]);
        setenv("OUTSIDER_CHOICE", answers[i], 1);
        assert_int_equal(ask(tuner, table, &nchannels), ncclSuccess);
        assert_int_equal(zeros(table), 0);
    }
    tt_tuner_close(tuner);
}

static void support_is_read_from_the_table(void **state)
{
    table_t table;
    int nchannels = 0;
    const struct tt_tuner_query query = {.func = 2, .bytes = 64, .nops = 1};
    (void)state;
    if (version > 2) return;
    struct tt_tuner *tuner = open_tuner(4);
    fill(table);
    table[NCCL_ALGO_COLLNET_CHAIN][2] = 3;
    assert_int_equal(tt_tuner_ask(tuner, &query, table, &nchannels), ncclSuccess);
    assert_true(noted("ask 2 64 collnet 1 nvls 0"));
    table[NCCL_ALGO_NVLS_TREE][2] = 3;
    assert_int_equal(tt_tuner_ask(tuner, &query, table, &nchannels), ncclSuccess);
    assert_true(noted("ask 2 64 collnet 1 nvls 1"));
    tt_tuner_close(tuner);
}

static void errors_are_passed_on(void **state)
{
    table_t table;
    int nchannels = 0;
    (void)state;
    setenv("OUTSIDER_FAIL", "init", 1);
    assert_null(open_tuner(4));
    setenv("OUTSIDER_FAIL", "ask", 1);
    struct tt_tuner *tuner = open_tuner(4);
    assert_non_null(tuner);
    assert_int_equal(ask(tuner, table, &nchannels), ncclInternalError);
    tt_tuner_close(tuner);
    assert_true(logged("init returned 2; going on without it"));
    assert_true(logged("getCollInfo returned 3; the built-in choice is used"));
}

/* Versions 5 and 6 edit the model; what is no number is put back. */
static void constants_are_taken(void **state)
{
    (void)state;
    struct tt_tuner *tuner = open_tuner(4);
    assert_null(tt_tuner_constants(tuner));
    tt_tuner_close(tuner);
    if (version < 5) return;
    setenv("OUTSIDER_EDIT", "3 7.25,21 nan,143 -2,84 inf,96 0", 1);
    tuner = open_tuner(4);
    unsetenv("OUTSIDER_EDIT");
    const ncclTunerConstants_v6_t *c = tt_tuner_constants(tuner);
    assert_non_null(c);
    assert_true(c->baseLatencies[NCCL_ALGO_RING][NCCL_PROTO_LL] == 7.25);
    assert_true(c->baseLatencies[NCCL_ALGO_RING][NCCL_PROTO_SIMPLE] == 8.5);
    assert_true(c->hwLatencies[NCCL_HW_NVLINK][0][0] == 0);
    assert_true(c->perChMaxNVLSTreeBws[3][2] == 0);
    tt_tuner_close(tuner);
    assert_true(logged("Outsider: init left 3 constants that are no times or bandwidths"));
    setenv("OUTSIDER_EDIT", "3 1", 1);
    setenv("OUTSIDER_FAIL", "init", 1); /* edits of an init that failed do not count */
    assert_null(tt_tuner_constants(open_tuner(4)));
    unsetenv("OUTSIDER_EDIT");
}

static void requested_chunks_are_judged(void **state)
{
    const struct tt_tuner_query query = {.func = 4, .bytes = 4096, .nops = 1};
    const struct tt_tuner_layout layout = {1, 2, 1};
    (void)state;
    if (version < 6) return;
    struct tt_tuner *tuner = open_tuner(4);
    setenv("OUTSIDER_CHUNK", "4096", 1);
    assert_int_equal(tt_tuner_chunk(tuner, &query, &layout, 65536), 4096);
    setenv("OUTSIDER_CHUNK", "0", 1);
    assert_int_equal(tt_tuner_chunk(tuner, &query, &layout, 65536), 65536);
    setenv("OUTSIDER_CHUNK", "4096", 1);
    setenv("OUTSIDER_FAIL", "chunk", 1);
    assert_int_equal(tt_tuner_chunk(tuner, &query, &layout, 65536), 65536);
    unsetenv("OUTSIDER_CHUNK");
    tt_tuner_close(tuner);
    assert_true(logged("getChunkSize returned 3; the built-in choice is used"));
}

/* Without init or getCollInfo there is no tuner; the function at the end is not needed. */
static void incomplete_tables_are_refused(void **state)
{
    table_t table;
    int nchannels = 0;
    (void)state;
    struct tt_tuner *tuner = open_tuner(4);
    if (strcmp(left_out, "end") != 0) {
        assert_null(tuner);
        assert_true(logged("Outsider has no init or getCollInfo; going on without it"));
        return;
    }
    assert_non_null(tuner);
    assert_int_equal(ask(tuner, table, &nchannels), ncclSuccess);
    tt_tuner_close(tuner);
}

static void *ask_often(void *arg)
{
    for (int i = 0; i < 200; i++) {
        table_t table;
        int nchannels = 0;
        ask(arg, table, &nchannels);
    }
    return NULL;
}

/* Communicators of several sizes, from several threads: an instance each, or for version 1 one
 * state that follows the communicator that asks. */
static void communicators_do_not_mix(void **state)
{
    struct tt_tuner *tuners[3];
    pthread_t threads[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        tuners[i] = open_tuner(4 << i);
        assert_non_null(tuners[i]);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, tuners[i]), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    if (version == 1) { /* calls were serial, and each was answered for its own size */
        assert_int_equal(times_noted("guests 0"), 600);
        assert_int_equal(times_noted("ranks 8 "), 200);
    }
    for (int i = 0; i < 3; i++)
        tt_tuner_close(tuners[i]);
    assert_int_equal(times_noted("init"), times_noted("end"));
    assert_true(noted("end 0"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_outsider_chooses, start),
        cmocka_unit_test_setup(half_answers_are_none, start),
        cmocka_unit_test_setup(support_is_read_from_the_table, start),
        cmocka_unit_test_setup(errors_are_passed_on, start),
        cmocka_unit_test_setup(communicators_do_not_mix, start),
        cmocka_unit_test_setup(constants_are_taken, start),
        cmocka_unit_test_setup(requested_chunks_are_judged, start),
    };
    const struct CMUnitTest incomplete[] = {
        cmocka_unit_test_setup(incomplete_tables_are_refused, start)};
    if (argc < 2) return 2;
    version = atoi(argv[1]);
    int notes = mkstemp(notes_path), log = mkstemp(log_path);
    if (notes < 0 || log < 0) return 2;
    setenv("OUTSIDER_LOG", notes_path, 1);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "INIT,tune", 1);
    setenv("NCCL_DEBUG_FILE", log_path, 1);
    left_out = argc > 2 ? argv[2] : NULL;
    int failed = left_out ? cmocka_run_group_tests(incomplete, NULL, NULL)
                          : cmocka_run_group_tests(tests, NULL, NULL);
    close(notes);
    close(log);
    unlink(notes_path);
    unlink(log_path);
    return failed;
}
