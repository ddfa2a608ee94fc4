/* The tree over blocks: parents, children, subtrees, routes and positions agree with each other for
 * many numbers of ranks and blocks, and no rank or root has more to do than promised. */
#include "../check.h"

#include "bootstrap/tree/blocks.h"

#include <stdio.h>
#include <stdlib.h>

static const int sizes[][2] = {{1, 1},   {2, 1},    {9, 1},   {10, 1},   {73, 1},    {1000, 1},
                               {2, 2},   {5, 3},    {9, 9},   {10, 9},   {20, 19},   {100, 8},
                               {100, 9}, {101, 10}, {333, 7}, {600, 80}, {999, 128}, {5000, 600}};

static void blocks_are_upstreams(void **state)
{
    const struct tt_blocks blocks = {11, 4}; /* 3 3 3 2 */
    static const int starts[] = {0, 3, 6, 9, 11};
    (void)state;
    for (int k = 0; k <= 4; k++)
        assert_int_equal(tt_blocks_start(&blocks, k), starts[k]);
    for (int r = 0; r < 11; r++)
        assert_int_equal(tt_blocks_block(&blocks, r), r / 3);
}

static void check_rank(const struct tt_blocks *blocks, int rank)
{
    int children[TT_BRANCHES], size = 1;
    int n = tt_blocks_children(blocks, rank, children);
    assert_in_range(n, 0, TT_BRANCHES);
    for (int i = 0; i < n; i++) {
        assert_true(children[i] > rank && children[i] < blocks->nranks);
        assert_true(i == 0 || children[i] > children[i - 1]);
        assert_int_equal(tt_blocks_parent(blocks, children[i]), rank);
        assert_int_equal(tt_blocks_child_toward(blocks, rank, children[i]), i);
        size += tt_blocks_size(blocks, children[i]);
    }
    assert_int_equal(tt_blocks_size(blocks, rank), size);
    int *order = calloc((size_t)size, sizeof(*order));
    assert_int_equal(tt_blocks_order(blocks, rank, order), size);
    assert_int_equal(order[0], rank);
    for (int i = 1; i < size; i++)
        assert_true(tt_blocks_child_toward(blocks, rank, order[i]) >= 0);
    free(order);
    int parent = tt_blocks_parent(blocks, rank);
    assert_int_equal(parent < 0, rank == 0);
    if (parent >= 0) assert_true(tt_blocks_child_toward(blocks, rank, parent) < 0);
}

static void check_block(const struct tt_blocks *blocks, int block)
{
    int clients = tt_blocks_clients(blocks, block);
    int most = (blocks->nranks + blocks->nblocks - 1) / blocks->nblocks + TT_ARITY;
    assert_in_range(clients, 1, most);
    for (int i = 0; i < clients; i++) {
        int rank = tt_blocks_rank_at(blocks, block, i);
        assert_int_equal(tt_blocks_slot(blocks, block, rank), i);
        /* a rank that is here gets its parent's address here, but for the head, who asks above */
        int parent = tt_blocks_parent(blocks, rank);
        if (i == 0) continue;
        assert_in_range(tt_blocks_slot(blocks, block, parent), 0, clients);
    }
    if (block == 0) return;
    int head = tt_blocks_start(blocks, block), above = (block - 1) / TT_ARITY;
    assert_true(tt_blocks_is_head(blocks, head));
    assert_true(tt_blocks_slot(blocks, above, head) >= 0);
    assert_int_equal(tt_blocks_slot(blocks, above, tt_blocks_parent(blocks, head)), 0);
}

static void all_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const struct tt_blocks blocks = {sizes[i][0], sizes[i][1]};
        print_message("case: %d ranks, %d blocks\n", blocks.nranks, blocks.nblocks);
        assert_int_equal(tt_blocks_size(&blocks, 0), blocks.nranks);
        for (int r = 0; r < blocks.nranks; r++)
            check_rank(&blocks, r);
        for (int k = 0; k < blocks.nblocks; k++)
            check_block(&blocks, k);
    }
}

static void a_million(void **state)
{
    const struct tt_blocks blocks = {1 << 20, 1000};
    int rank = blocks.nranks - 1, steps = 0;
    (void)state;
    assert_int_equal(tt_blocks_size(&blocks, 0), blocks.nranks);
    while (rank > 0) {
        rank = tt_blocks_parent(&blocks, rank);
        steps++;
    }
    assert_in_range(steps, 1, 8); /* log8 of 1049 and of 1000, each rounded up */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_upstreams),
        cmocka_unit_test(all_agree),
        cmocka_unit_test(a_million),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
