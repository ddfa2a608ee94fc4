/* Every single bit that is another, every pair of words that changed places, every other length,
 * place and key gives another tag, wherever the bytes lie; and all processors make the same. */
#include "../check.h"

#include "base/mem.h"
#include "transport/net/mac.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 300, LARGE = 1 << 20, FOLDED = 64 * TT_MAC_BLOCK_BYTES };

static const uint64_t here[TT_MAC_CONTEXT_WORDS] = {1, 2, 3};
static struct tt_mac_key key;

static void fill(unsigned char *bytes, size_t n)
{
    uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(state >> 24);
    }
}

static void make_key(struct tt_mac_key *made, unsigned char seed)
{
    const unsigned char bytes[TT_MAC_SEED_BYTES] = {seed};
    tt_mac_key_init(made, bytes);
}

static uint64_t tag(const void *bytes, size_t n)
{
    return tt_mac(&key, here, bytes, n);
}

static void finds_each_bit(void **state)
{
    static unsigned char bytes[16384];
    static const size_t far[] = {4095, 4096, 8191, 8192, 8193, 16384};
    (void)state;
    fill(bytes, sizeof(bytes));
    for (size_t i = 1; i <= MOST + TT_LEN(far); i++) {
        size_t n = i <= MOST ? i : far[i - MOST - 1];
        uint64_t before = tag(bytes, n);
        for (size_t bit = 0; bit<8 * n; bit += n> MOST ? 61 : 1) {
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            if (tag(bytes, n) == before) fail_msg("bit %zu of %zu bytes", bit, n);
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        assert_true(tag(bytes, n) == before);
    }
}

static void finds_order_and_length(void **state)
{
    unsigned char bytes[MOST] = {0}, swapped[MOST];
    (void)state;
    for (size_t n = 1; n <= MOST; n++) /* of zeros */
        assert_true(tag(bytes, n) != tag(bytes, n - 1));
    fill(bytes, sizeof(bytes));
    for (size_t at = 0; at + 68 <= MOST; at += 4) { /* the neighbour, and the same lane */
        for (size_t far = 4; far <= 64; far += 60) {
            memcpy(swapped, bytes, sizeof(swapped));
            memcpy(swapped + at, bytes + at + far, 4);
            memcpy(swapped + at + far, bytes + at, 4);
            if (tag(swapped, MOST) == tag(bytes, MOST)) fail_msg("words %zu, %zu", at, far);
        }
    }
}

/* Blocks that changed places, also blocks that were compressed to one word. */
static void finds_blocks_that_moved(void **state)
{
    const size_t block = TT_MAC_BLOCK_BYTES, n = 2 * FOLDED + 77;
    unsigned char *bytes = malloc(n), spare[TT_MAC_BLOCK_BYTES];
    (void)state;
    assert_non_null(bytes);
    fill(bytes, n);
    uint64_t before = tag(bytes, n);
    for (size_t at = 0; at + 2 * block <= n; at += block) {
        memcpy(spare, bytes + at, block);
        memmove(bytes + at, bytes + at + block, block);
        memcpy(bytes + at + block, spare, block);
        if (tag(bytes, n) == before) fail_msg("the block at %zu", at);
        memmove(bytes + at + block, bytes + at, block);
        memcpy(bytes + at, spare, block);
    }
    assert_true(tag(bytes, n) == before);
    free(bytes);
}

static void is_the_same_anywhere(void **state)
{
    unsigned char *bytes = malloc(2 * LARGE);
    (void)state;
    assert_non_null(bytes);
    fill(bytes, LARGE);
    uint64_t before = tag(bytes, LARGE - 64);
    for (size_t skip = 1; skip < 64; skip++) {
        memmove(bytes + skip, bytes + skip - 1, LARGE - 64);
        assert_true(tag(bytes + skip, LARGE - 64) == before);
    }
    free(bytes);
}

static void fits_one_place_and_key(void **state)
{
    static const size_t sizes[] = {0, 8, 56, 300, 5000};
    unsigned char bytes[5000];
    struct tt_mac_key again, other;
    (void)state;
    fill(bytes, sizeof(bytes));
    make_key(&again, 1);
    make_key(&other, 2);
    for (size_t i = 0; i < TT_LEN(sizes); i++) {
        uint64_t before = tag(bytes, sizes[i]);
        assert_true(tt_mac(&again, here, bytes, sizes[i]) == before);
        assert_true(tt_mac(&other, here, bytes, sizes[i]) != before);
        for (int word = 0; word < TT_MAC_CONTEXT_WORDS; word++) {
            uint64_t there[TT_MAC_CONTEXT_WORDS];
            memcpy(there, here, sizeof(here));
            there[word]++;
            assert_true(tt_mac(&key, there, bytes, sizes[i]) != before);
        }
    }
}

static void all_methods_agree(void **state)
{
    static unsigned char bytes[TT_MAC_BLOCK_BYTES];
    uint64_t plain[2], other[2];
    (void)state;
    fill(bytes, sizeof(bytes));
    for (size_t n = 0; n <= sizeof(bytes); n += TT_MAC_STEP_BYTES) {
        tt_mac_sum(key.secret.words, bytes, n, plain);
        for (tt_mac_sum_fn *const *sum = tt_mac_sums(); *sum; sum++) {
            (*sum)(key.secret.words, bytes, n, other);
            assert_memory_equal(plain, other, sizeof(plain));
        }
    }
}

/* Products as they are written: shifted, and added without carries. */
static void is_a_sum_of_products(void **state)
{
    static unsigned char bytes[TT_MAC_BLOCK_BYTES];
    uint64_t expected[2] = {0}, sum[2];
    (void)state;
    fill(bytes, sizeof(bytes));
    for (size_t i = 0; i < TT_MAC_BLOCK_BYTES / 8; i += 2) {
        uint64_t word[2];
        memcpy(word, bytes + 8 * i, sizeof(word));
        uint64_t a = word[0] ^ key.secret.words[i], b = word[1] ^ key.secret.words[i + 1];
        for (int bit = 0; bit < 64; bit++) {
            if (!(b >> bit & 1)) continue;
            expected[0] ^= a << bit;
            if (bit) expected[1] ^= a >> (64 - bit);
        }
    }
    tt_mac_sum(key.secret.words, bytes, sizeof(bytes), sum);
    assert_memory_equal(sum, expected, sizeof(sum));
}

/* The same values for ever: hosts of one job may run different releases of the compiler. */
static void has_known_values(void **state)
{
    static const struct {
        size_t n;
        uint64_t tag;
    } cases[] = {{0, 0x0957b2cb26f1cf5f},
                 {64, 0x9c70d5a5c967c465},
                 {65, 0x02467d8e28900265},
                 {5000, 0xb4723e91f8876e57},
                 {2 * FOLDED, 0xe88df9732b8b0f49}};
    unsigned char *bytes = malloc(2 * FOLDED);
    (void)state;
    assert_non_null(bytes);
    fill(bytes, 2 * FOLDED);
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        uint64_t now = tag(bytes, cases[i].n);
        print_message("case: %zu bytes, tag 0x%016llx\n", cases[i].n, (unsigned long long)now);
        assert_true(now == cases[i].tag);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_each_bit),          cmocka_unit_test(finds_order_and_length),
        cmocka_unit_test(finds_blocks_that_moved), cmocka_unit_test(is_the_same_anywhere),
        cmocka_unit_test(fits_one_place_and_key),  cmocka_unit_test(all_methods_agree),
        cmocka_unit_test(is_a_sum_of_products),    cmocka_unit_test(has_known_values),
    };
    make_key(&key, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
