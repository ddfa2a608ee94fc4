/* Every single bit that is another, every pair of words that changed places, and every length that
 * is another gives another sum, wherever the bytes lie. */
#include "../check.h"

#include "base/sum.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 300, LARGE = 1 << 20 };

static void fill(unsigned char *bytes, size_t n)
{
    uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(state >> 24);
    }
}

static void finds_each_bit(void **state)
{
    unsigned char bytes[MOST];
    (void)state;
    fill(bytes, sizeof(bytes));
    for (size_t n = 1; n <= MOST; n++) {
        uint32_t sum = tt_sum(bytes, n);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            if (tt_sum(bytes, n) == sum) fail_msg("bit %zu of %zu bytes", bit, n);
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        assert_int_equal(tt_sum(bytes, n), sum);
    }
}

static void finds_order_and_length(void **state)
{
    unsigned char bytes[MOST] = {0}, swapped[MOST];
    (void)state;
    for (size_t n = 1; n <= MOST; n++) /* of zeros */
        assert_int_not_equal(tt_sum(bytes, n), tt_sum(bytes, n - 1));
    fill(bytes, sizeof(bytes));
    for (size_t at = 0; at + 68 <= MOST; at += 4) { /* the neighbour, and the same lane */
        for (size_t far = 4; far <= 64; far += 60) {
            memcpy(swapped, bytes, sizeof(swapped));
            memcpy(swapped + at, bytes + at + far, 4);
            memcpy(swapped + at + far, bytes + at, 4);
            if (tt_sum(swapped, MOST) == tt_sum(bytes, MOST)) fail_msg("words %zu, %zu", at, far);
        }
    }
}

static void is_the_same_anywhere(void **state)
{
    unsigned char *bytes = malloc(2 * LARGE);
    (void)state;
    assert_non_null(bytes);
    fill(bytes, LARGE);
    uint32_t sum = tt_sum(bytes, LARGE - 64);
    for (size_t skip = 1; skip < 64; skip++) {
        memmove(bytes + skip, bytes + skip - 1, LARGE - 64);
        assert_int_equal(tt_sum(bytes + skip, LARGE - 64), sum);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_each_bit),
        cmocka_unit_test(finds_order_and_length),
        cmocka_unit_test(is_the_same_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
