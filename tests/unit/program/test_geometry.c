/* Where chunks lie: examples by hand, and the rule that all chunks of all passes cover a channel's
 * part exactly once. */
#include "unit/check.h"

#include "program/program.h"

static struct tt_program split(int nchunks, bool whole)
{
    return (struct tt_program){.nparts = nchunks, .whole_window = whole};
}

static struct tt_program blocks(int nblocks)
{
    return (struct tt_program){.nparts = 1, .nranks = nblocks, .out_blocks = true};
}

static void expect(const struct tt_geometry *geometry, uint32_t pass, int chunk, size_t first,
                   size_t count)
{
    struct tt_extent extent = tt_geometry_extent(geometry, pass, chunk);
    assert_int_equal(extent.count, count);
    if (count) assert_int_equal(extent.first, first);
}

static void direct_is_one_window(void **state)
{
    (void)state;
    struct tt_program program = split(4, true);
    struct tt_geometry geometry;
    tt_geometry_init(&geometry, &program, 100, (struct tt_extent){0, 100}, SIZE_MAX, 16);
    assert_int_equal(geometry.npasses, 1);
    expect(&geometry, 0, 0, 0, 32);
    expect(&geometry, 0, 2, 64, 32);
    expect(&geometry, 0, 3, 96, 4);
    tt_geometry_init(&geometry, &program, 1, (struct tt_extent){0, 1}, SIZE_MAX, 16);
    expect(&geometry, 0, 0, 0, 1);
    expect(&geometry, 0, 1, 0, 0);
    tt_geometry_init(&geometry, &program, ((size_t)1 << 40) + 3,
                     (struct tt_extent){0, ((size_t)1 << 40) + 3}, SIZE_MAX, 1);
    expect(&geometry, 0, 3, 3 * (((size_t)1 << 38) + 1), ((size_t)1 << 38));
}

static void ring_shrinks_its_last_window(void **state)
{
    (void)state;
    struct tt_program program = split(4, false);
    struct tt_geometry geometry;
    /* limit cut to 16: window 64 */
    tt_geometry_init(&geometry, &program, 100, (struct tt_extent){0, 100}, 19, 4);
    assert_int_equal(geometry.npasses, 2);
    expect(&geometry, 0, 3, 48, 16);
    expect(&geometry, 1, 0, 64, 12); /* 36 left: 9 rounded up to 12 */
    expect(&geometry, 1, 2, 88, 12);
    expect(&geometry, 1, 3, 100, 0);
}

static void small_counts_make_small_chunks(void **state)
{
    (void)state;
    struct tt_program program = split(4, false);
    struct tt_geometry geometry;
    tt_geometry_init(&geometry, &program, 10, (struct tt_extent){0, 10}, 1000, 4);
    assert_int_equal(geometry.npasses, 1);
    expect(&geometry, 0, 0, 0, 4);
    expect(&geometry, 0, 2, 8, 2);
    expect(&geometry, 0, 3, 0, 0);
}

static void blocks_keep_their_stride(void **state)
{
    (void)state;
    struct tt_program program = blocks(3);
    struct tt_geometry geometry;
    /* second part of a channel pair */
    tt_geometry_init(&geometry, &program, 50, (struct tt_extent){20, 25}, 8, 4);
    assert_int_equal(geometry.npasses, 4);
    expect(&geometry, 0, 0, 20, 8);
    expect(&geometry, 0, 2, 120, 8);
    expect(&geometry, 3, 1, 94, 1);
}

static void an_empty_part_is_one_empty_pass(void **state)
{
    (void)state;
    struct tt_program programs[] = {split(4, false), split(4, true), blocks(4)};
    for (int k = 0; k < 3; k++) {
        struct tt_geometry geometry;
        tt_geometry_init(&geometry, &programs[k], 8, (struct tt_extent){8, 0}, 16, 4);
        assert_int_equal(geometry.npasses, 1);
        for (int c = 0; c < 4; c++)
            expect(&geometry, 0, c, 0, 0);
    }
}

/* Blocks of 10 elements in three parts: chunk 3b + p is part p of block b. */
static void blocks_have_parts(void **state)
{
    (void)state;
    struct tt_program program = {.nparts = 3, .nranks = 4, .out_blocks = true};
    struct tt_geometry geometry;
    tt_geometry_init(&geometry, &program, 10, (struct tt_extent){0, 10}, 2, 2);
    assert_int_equal(geometry.npasses, 2);
    expect(&geometry, 0, 0, 0, 2);
    expect(&geometry, 0, 2, 4, 2);
    expect(&geometry, 0, 3, 10, 2);
    expect(&geometry, 0, 11, 34, 2);
    expect(&geometry, 1, 0, 6, 2);
    expect(&geometry, 1, 10, 38, 2);
    expect(&geometry, 1, 11, 40, 0);
}

static size_t covered(const struct tt_geometry *geometry, size_t chunks_per_pass)
{
    size_t at = geometry->lo;
    for (uint32_t pass = 0; pass < geometry->npasses; pass++) {
        for (size_t c = 0; c < chunks_per_pass; c++) {
            struct tt_extent extent = tt_geometry_extent(geometry, pass, (int)c);
            assert_int_equal(extent.first, at);
            at += extent.count;
        }
    }
    return at;
}

static void chunks_cover_every_part_once(void **state)
{
    (void)state;
    static const size_t limits[] = {1, 3, 4, 7, 16, 1000, SIZE_MAX};
    static const size_t grains[] = {1, 4, 16, 5};
    struct tt_program programs[] = {split(2, false), split(7, false), split(7, true), blocks(5)};
    for (size_t count = 1; count < 90; count++) {
        for (size_t k = 0; k < 112; k++) {
            const struct tt_program *program = &programs[k % 4];
            size_t lo = program->whole_window ? 0 : count / 3;
            struct tt_geometry geometry;
            tt_geometry_init(&geometry, program, count, (struct tt_extent){lo, count - lo},
                             limits[k / 4 % 7], grains[k / 28]);
            assert_int_equal(covered(&geometry, (size_t)program->nparts), count);
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(direct_is_one_window),
        cmocka_unit_test(ring_shrinks_its_last_window),
        cmocka_unit_test(small_counts_make_small_chunks),
        cmocka_unit_test(blocks_keep_their_stride),
        cmocka_unit_test(an_empty_part_is_one_empty_pass),
        cmocka_unit_test(blocks_have_parts),
        cmocka_unit_test(chunks_cover_every_part_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
