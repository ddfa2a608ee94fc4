/* Calls in words, and who must have made one before it can end. */
#include "../check.h"

#include "program/program.h"

#include <string.h>

static void calls_in_words(void **state)
{
    static const struct {
        struct tt_call call;
        bool chosen;
        const char *text;
    } cases[] = {
        {{.count = 512, .root = -1, .func = TT_FUNC_ALLREDUCE, .type = ncclFloat32, .known = 1},
         false,
         "AllReduce(count 512, float, sum)"},
        {{.count = 7,
          .root = 3,
          .func = TT_FUNC_REDUCE,
          .type = ncclBfloat16,
          .op = TT_CALL_OWN_OP,
          .known = 1},
         false,
         "Reduce(count 7, bfloat16, own operator, root 3)"},
        {{.count = 1, .root = 2, .func = TT_FUNC_RECV, .type = ncclInt8, .known = 1},
         false,
         "Recv(count 1, int8, from rank 2)"},
        {{.count = 1,
          .root = -1,
          .func = TT_FUNC_ALLGATHER,
          .type = ncclFloat8e5m2,
          .known = 1,
          .algo = TT_ALGO_RING,
          .proto = TT_PROTO_SIMPLE,
          .nchannels = 2},
         true,
         "AllGather(count 1, float8e5m2) with RING, SIMPLE, 2 channel(s)"},
        {{.count = 1, .func = 200, .type = 200, .known = 1},
         false,
         "unknown function(count 1, unknown type)"},
        {{.known = 0}, true, "an operation that is not known here any more"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[TT_CALL_BYTES];
        tt_call_text(&cases[i].call, cases[i].chosen, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void who_is_needed(void **state)
{
    const struct tt_call all = {.func = TT_FUNC_ALLREDUCE, .root = -1, .known = 1};
    const struct tt_call from = {.func = TT_FUNC_BROADCAST, .root = 1, .known = 1};
    const struct tt_call to = {.func = TT_FUNC_REDUCE, .root = 1, .known = 1};
    struct tt_call other = all;
    (void)state;
    assert_true(tt_call_needs(&all, 0, 2));
    assert_true(tt_call_needs(&from, 1, 2));
    assert_false(tt_call_needs(&from, 0, 2));
    assert_true(tt_call_needs(&to, 0, 1));
    assert_false(tt_call_needs(&to, 0, 2));
    assert_true(tt_call_same(&all, &other));
    other.nchannels = 3; /* chosen, not called */
    assert_true(tt_call_same(&all, &other));
    other.count = 3;
    assert_false(tt_call_same(&all, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_in_words),
        cmocka_unit_test(who_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
