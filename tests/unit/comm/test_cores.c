/* How many cores the ranks of a host have together, by affinity masks and by quotas. */
#include "../check.h"

#include "base/mem.h"
#include "comm/records/cores.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void masks_of_a_host(void **state)
{
    static const struct {
        const char *name;
        size_t nusers;
        struct tt_core_user users[4];
        int cores[2];
    } cases[] = {
        {"two ranks on one core", 2, {{0, {7, 1}}, {0, {7, 1}}}, {1, INT32_MAX}},
        {"bound to a core each", 2, {{0, {7, 1}}, {0, {8, 1}}}, {2, INT32_MAX}},
        {"four unbound on two cores",
         4,
         {{0, {7, 2}}, {0, {7, 2}}, {0, {7, 2}}, {0, {7, 2}}},
         {2, INT32_MAX}},
        {"fewer ranks than cores", 2, {{0, {7, 64}}, {0, {7, 64}}}, {2, INT32_MAX}},
        {"no limit", 2, {{0, {7, INT32_MAX}}, {0, {7, INT32_MAX}}}, {2, INT32_MAX}},
        {"two hosts alike", 4, {{1, {7, 1}}, {0, {7, 1}}, {1, {7, 1}}, {0, {9, 1}}}, {2, 1}},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        struct tt_core_user users[4];
        int cores[2] = {INT32_MAX, INT32_MAX};
        int nnodes = cases[i].cores[1] == INT32_MAX ? 1 : 2;
        print_message("case: %s\n", cases[i].name);
        for (size_t k = 0; k < 4; k++)
            users[k] = cases[i].users[k];
        tt_cores_together(users, cases[i].nusers, cores, nnodes);
        assert_int_equal(cores[0], cases[i].cores[0]);
        assert_int_equal(cores[1], cases[i].cores[1]);
    }
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (!text) {
        unlink(path);
        return;
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void quotas_of_a_folder(void **state)
{
    static const struct {
        const char *name, *max, *quota, *period;
        int32_t cores;
    } cases[] = {
        {"two cores", "200000 100000\n", NULL, NULL, 2},
        {"a core and a half", "150000 100000\n", NULL, NULL, 1},
        {"a fifth", "20000 100000\n", NULL, NULL, 1},
        {"no limit", "max 100000\n", NULL, NULL, INT32_MAX},
        {"version 1", NULL, "400000\n", "100000\n", 4},
        {"version 1, no limit", NULL, "-1\n", "100000\n", INT32_MAX},
        {"nonsense", "lots\n", "many\n", "0\n", INT32_MAX},
        {"no files", NULL, NULL, NULL, INT32_MAX},
    };
    char folder[] = "/tmp/test-cores-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        print_message("case: %s\n", cases[i].name);
        write_text(folder, "cpu.max", cases[i].max);
        write_text(folder, "cpu.cfs_quota_us", cases[i].quota);
        write_text(folder, "cpu.cfs_period_us", cases[i].period);
        assert_int_equal(tt_cores_quota_at(folder), cases[i].cores);
    }
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_of_a_host),
        cmocka_unit_test(quotas_of_a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
