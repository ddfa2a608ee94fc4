/* Figures of a machine: the file they are kept in, and how they follow from measured times. */
#include "../check.h"
#include "tools/tune/tune.h"

#include "base/mem.h"
#include "tune/host.h"
#include "tune/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char good[] = "tutti-tune 1\nmachine Box, 2 cores\nphase_usec 0.5\nswitch_usec 2\n"
                           "net_phase_usec 9\ntouch_usec 0.04\ndirect_bytes_usec 30000\n"
                           "slot_bytes_usec 20000\ncrowded_slot_bytes_usec 10000\n"
                           "net_bytes_usec 5000\nprogram 00ff00ff00ff00ff 4096 1.5 2.5\n# a "
                           "remark\ntime allreduce ring ll 2 1 8 3\n";

static void a_file_is_read(void **state)
{
    char reason[256] = "";
    struct tt_tune_host host;
    (void)state;
    assert_int_equal(tt_tune_host_parse(good, "Box, 2 cores", &host, reason, sizeof(reason)),
                     ncclSuccess);
    assert_string_equal(reason, "");
    assert_int_equal(host.nmeasured, 1);
    assert_true(host.measured[0].hash == 0xff00ff00ff00ff && host.measured[0].bytes == 4096 &&
                host.measured[0].usec == 1.5 && host.measured[0].own_usec == 2.5);
    assert_true(host.phase_usec == 0.5 && host.net_bytes_usec == 5000 && host.touch_usec == 0.04);
}

/* What is printed reads the same. */
static void a_file_survives_a_round_trip(void **state)
{
    char *text = NULL, reason[256];
    size_t bytes = 0;
    struct tt_tune_host host, again;
    (void)state;
    assert_int_equal(tt_tune_host_parse(good, "Box, 2 cores", &host, reason, sizeof(reason)), 0);
    FILE *out = open_memstream(&text, &bytes);
    tt_tune_host_print(out, "Box, 2 cores", &host);
    fclose(out);
    assert_int_equal(tt_tune_host_parse(text, "Box, 2 cores", &again, reason, sizeof(reason)), 0);
    assert_memory_equal(&host, &again, sizeof(host));
    free(text);
}

static void bad_files_are_refused(void **state)
{
    static const struct {
        const char *from, *to, *reason;
    } cases[] = {
        {"Box, 2", "Box, 4", "it was measured on 'Box, 4 cores', this is 'Box, 2 cores'"},
        {"tutti-tune 1", "tutti-tune 2", "line 1: it does not begin with 'tutti-tune 1'"},
        {"tutti-tune 1", "{\"a\": 1}", "line 1: "},
        {"machine Box, 2 cores\n", "", "it does not name its machine"},
        {"phase_usec 0.5\n", "", "it has no phase_usec"},
        {"phase_usec 0.5", "phase_usec nan", "line 3: phase_usec is nan"},
        {"phase_usec 0.5", "phase_usec -1", "line 3: phase_usec is -1"},
        {"phase_usec 0.5", "phase_usec 1e300", "line 3: phase_usec is 1e300"},
        {"phase_usec 0.5", "phase_usec", "line 3: phase_usec is "},
        {"touch_usec 0.04", "touched 1", "line 6: nobody knows 'touched'"},
        {"4096 1.5", "4096 -1", "line 11: 'program 00ff00ff00ff00ff 4096 -1 2.5' is no measured"},
        {"1.5 2.5", "1.5", "line 11: 'program 00ff00ff00ff00ff 4096 1.5' is no measured program"},
        {"1.5 2.5", "1.5 2.5x", "line 11: "},
        {"00ff00ff", "none", "line 11: "},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        char text[1024], reason[256] = "";
        struct tt_tune_host host;
        const char *at = strstr(good, cases[i].from);
        print_message("case: %s\n", cases[i].reason);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, cases[i].to,
                 at + strlen(cases[i].from));
        assert_int_equal(tt_tune_host_parse(text, "Box, 2 cores", &host, reason, sizeof(reason)),
                         ncclInvalidUsage);
        assert_ptr_equal(strstr(reason, cases[i].reason), reason);
    }
    char reason[256];
    struct tt_tune_host host;
    assert_int_equal(tt_tune_host_parse("", "x", &host, reason, sizeof(reason)), ncclInvalidUsage);
}

/* ---- the fit ---- */

static double model(const struct tt_tune_host *host, int nranks, enum tt_algo algo, size_t bytes)
{
    const struct tt_tune_env env = {.nranks = nranks,
                                    .nnodes = 1,
                                    .ppn = nranks,
                                    .nchannels = 2,
                                    .ncores = 2,
                                    .all_direct = true,
                                    .host = host,
                                    .oversubscribed = nranks > 2,
                                    .slice_bytes = 65536};
    const struct tt_tune_query query = {
        .func = TT_FUNC_ALLREDUCE, .type = ncclFloat32, .bytes = bytes, .nops = 1};
    enum tt_proto proto = algo == TT_ALGO_DIRECT ? TT_PROTO_SIMPLE : TT_PROTO_LL;
    return tt_model_time(&env, &query, algo, proto);
}

/* Times that the model itself predicts lead back to its figures. */
static void the_fit_inverts_the_model(void **state)
{
    const struct tt_tune_host truth = {.phase_usec = 0.4,
                                       .switch_usec = 3,
                                       .net_phase_usec = 7,
                                       .touch_usec = 0.08,
                                       .direct_bytes_usec = 21e3,
                                       .slot_bytes_usec = 13e3,
                                       .crowded_slot_bytes_usec = 6e3,
                                       .net_bytes_usec = 2e3};
    const struct tune_samples samples = {.cores = 2,
                                         .oneshot_8 = model(&truth, 2, TT_ALGO_ONESHOT, 8),
                                         .oneshot_64k = model(&truth, 2, TT_ALGO_ONESHOT, 65536),
                                         .direct_1m = model(&truth, 2, TT_ALGO_DIRECT, 1 << 20),
                                         .shared2_8 = model(&truth, 4, TT_ALGO_ONESHOT, 8),
                                         .shared4_8 = model(&truth, 8, TT_ALGO_ONESHOT, 8),
                                         .shared2_64k = model(&truth, 4, TT_ALGO_ONESHOT, 65536),
                                         .net_8 = 14,
                                         .net_1m = 14 + 4 * 1048576 / 13e3 + 1048576 / 2e3};
    struct tt_tune_host found, wanted = truth;
    unsigned kept = 99;
    (void)state;
    tune_fit(&samples, &found, &kept);
    assert_int_equal(kept, 0);
    for (int f = 0; f < TT_TUNE_FIGURES; f++) {
        double got = *tt_tune_host_figure(&found, f), want = *tt_tune_host_figure(&wanted, f);
        print_message("%s: %g, true %g\n", tt_tune_host_name(f), got, want);
        assert_true(fabs(got - want) < 0.05 * want); /* eight bytes are not nothing */
    }
}

static void contradictory_times_keep_the_builtin(void **state)
{
    const struct tune_samples nothing = {2, -1, -1, -1, -1, -1, -1, -1, -1};
    const struct tune_samples odd = {2, 5, 4, 1, 10, 1, 1, 10, 2};
    struct tt_tune_host host;
    unsigned kept = 0;
    (void)state;
    tune_fit(&nothing, &host, &kept);
    assert_int_equal(kept, (1U << TT_TUNE_FIGURES) - 1);
    assert_memory_equal(&host, &tt_tune_host_default, sizeof(host));
    tune_fit(&odd, &host, &kept);
    for (int f = 0; f < TT_TUNE_FIGURES; f++)
        assert_true(*tt_tune_host_figure(&host, f) > 0);
    assert_true(kept != 0);
}

/* Slower switches move the border between one-shot and direct: the figures are used. */
static void figures_move_the_choice(void **state)
{
    struct tt_tune_host slow = tt_tune_host_default;
    (void)state;
    slow.switch_usec *= 10;
    double usual = model(NULL, 8, TT_ALGO_DIRECT, 1024);
    assert_true(usual == model(&tt_tune_host_default, 8, TT_ALGO_DIRECT, 1024));
    assert_true(model(&slow, 8, TT_ALGO_DIRECT, 1024) > 5 * usual);
}

static void the_place_is_reported(void **state)
{
    char path[256], name[TT_TUNE_MACHINE_BYTES];
    (void)state;
    assert_true(tt_tune_host_path(path, sizeof(path)));
    assert_string_equal(path, "/tmp/tutti-no-such-home/.config/tutti/machine.tune");
    tt_tune_machine_name(name);
    assert_non_null(strstr(name, " cores"));
    struct tt_tune_host host;
    uint64_t hash = 1;
    tt_tune_host_load(&host, &hash); /* no file: no error, nothing measured */
    assert_int_equal(hash, 0);
    assert_memory_equal(&host, &tt_tune_host_default, sizeof(host));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(a_file_survives_a_round_trip),
        cmocka_unit_test(bad_files_are_refused),
        cmocka_unit_test(the_fit_inverts_the_model),
        cmocka_unit_test(contradictory_times_keep_the_builtin),
        cmocka_unit_test(figures_move_the_choice),
        cmocka_unit_test(the_place_is_reported),
    };
    unsetenv("TUTTI_TUNE_FILE");
    setenv("HOME", "/tmp/tutti-no-such-home", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
