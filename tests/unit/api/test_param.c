/* Values by name over NCCL's parameter interface: each type as text, and what a getter refuses. */
#include "../check.h"

#include "base/param.h"
#include "nccl.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *set, *shown;
} rows[] = {
    {"NCCL_BUFFSIZE", "0x800000", "8388608"},
    {"NCCL_MAX_NCHANNELS", "0x10", "16"},
    {"NCCL_P2P_DISABLE", "TRUE", "1"},
    {"NCCL_SHM_DISABLE", "7", "1"},
    {"NCCL_CHECK_MODE", "debug_local", "DEBUG_LOCAL"},
    {"NCCL_SOCKET_FAMILY", NULL, ""},
    {"NCCL_SOCKET_IFNAME", "^lo", "^lo"},
    {"NCCL_TOPO_DUMP_FILE", NULL, ""},
};
enum { NROWS = sizeof(rows) / sizeof(rows[0]) };

static int set_up(void **state)
{
    (void)state;
    for (size_t k = 0; k < NROWS; k++) {
        if (rows[k].set) {
            setenv(rows[k].name, rows[k].set, 1);
        } else {
            unsetenv(rows[k].name);
        }
    }
    tt_param_forget();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tt_param_forget();
    return 0;
}

static void texts_of_all_types_stay(void **state)
{
    const char *values[NROWS];
    (void)state;
    for (size_t k = 0; k < NROWS; k++) {
        int length = -1;
        assert_int_equal(ncclParamGetParameter(rows[k].name, &values[k], &length), ncclSuccess);
        assert_int_equal(length, strlen(rows[k].shown));
    }
    for (size_t k = 0; k < NROWS; k++) { /* each one still, after all others were asked for */
        print_message("case: %s\n", rows[k].name);
        assert_string_equal(values[k], rows[k].shown);
    }
}

static void words_are_texts(void **state)
{
    ncclParamHandle_t *const none = NULL;
    ncclParamHandle_t handle;
    const char *text = NULL;
    char bytes[16];
    int length = 0;
    int64_t number = 5;
    (void)state;
    assert_int_equal(ncclParamBind(none, "NCCL_CHECK_MODE"), ncclInvalidArgument);
    assert_int_equal(ncclParamBind(&handle, "NCCL_CHECK_MODE"), ncclSuccess);
    assert_int_equal(ncclParamGetStr(handle, &text), ncclSuccess);
    assert_string_equal(text, "DEBUG_LOCAL");
    assert_int_equal(ncclParamGet(handle, bytes, sizeof(bytes), &length), ncclSuccess);
    assert_int_equal(length, sizeof("DEBUG_LOCAL"));
    assert_string_equal(bytes, "DEBUG_LOCAL");
    assert_int_equal(ncclParamGetI64(handle, &number), ncclInvalidArgument);
    assert_int_equal(number, 5);
}

static void numbers_are_64_bits(void **state)
{
    ncclParamHandle_t handle;
    const char *text = NULL;
    int64_t number = 0;
    int32_t narrow = 0;
    int length = 0;
    (void)state;
    assert_int_equal(ncclParamBind(&handle, "NCCL_BUFFSIZE"), ncclSuccess);
    assert_int_equal(ncclParamGetI64(handle, &number), ncclSuccess);
    assert_int_equal(number, 8388608);
    number = 0;
    assert_int_equal(ncclParamGet(handle, &number, sizeof(number), &length), ncclSuccess);
    assert_int_equal(number, 8388608);
    assert_int_equal(length, sizeof(number));
    assert_int_equal(ncclParamGet(handle, &number, 4, &length), ncclInvalidArgument);
    assert_int_equal(length, 0);
    assert_int_equal(ncclParamGetI32(handle, &narrow), ncclInvalidArgument);
    assert_int_equal(ncclParamGetStr(handle, &text), ncclInvalidArgument);
    assert_int_equal(ncclParamBind(&handle, "NCCL_NO_SUCH"), ncclInvalidArgument);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_all_types_stay),
        cmocka_unit_test(words_are_texts),
        cmocka_unit_test(numbers_are_64_bits),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
