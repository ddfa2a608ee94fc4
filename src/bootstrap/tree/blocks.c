/* The tree over blocks, by arithmetic alone: no tables, so that a rank's memory does not grow with
 * the communicator. */
#include "bootstrap/tree/blocks.h"

#include <stdint.h>

int tt_blocks_start(const struct tt_blocks *blocks, int block)
{
    int base = blocks->nranks / blocks->nblocks, longer = blocks->nranks % blocks->nblocks;
    return block * base + (block < longer ? block : longer);
}

int tt_blocks_block(const struct tt_blocks *blocks, int rank)
{
    int base = blocks->nranks / blocks->nblocks, longer = blocks->nranks % blocks->nblocks;
    int first_short = longer * (base + 1);
    return rank < first_short ? rank / (base + 1) : longer + (rank - first_short) / base;
}

bool tt_blocks_is_head(const struct tt_blocks *blocks, int rank)
{
    return tt_blocks_start(blocks, tt_blocks_block(blocks, rank)) == rank;
}

int tt_blocks_parent(const struct tt_blocks *blocks, int rank)
{
    int block = tt_blocks_block(blocks, rank), start = tt_blocks_start(blocks, block);
    if (rank == 0) return -1;
    if (rank > start) return start + (rank - start - 1) / TT_ARITY;
    return tt_blocks_start(blocks, (block - 1) / TT_ARITY);
}

/* Children of node i in a tree of arity 8 over n nodes: the first one, how many. */
static int nodes_below(int i, int n, int *first_out)
{
    int64_t first = (int64_t)i * TT_ARITY + 1;
    *first_out = first < n ? (int)first : n;
    return n - *first_out < TT_ARITY ? n - *first_out : TT_ARITY;
}

int tt_blocks_children(const struct tt_blocks *blocks, int rank, int children_out[TT_BRANCHES])
{
    int block = tt_blocks_block(blocks, rank), start = tt_blocks_start(blocks, block);
    int size = tt_blocks_start(blocks, block + 1) - start, first, n;
    n = nodes_below(rank - start, size, &first);
    for (int i = 0; i < n; i++)
        children_out[i] = start + first + i;
    if (rank != start) return n;
    int heads = nodes_below(block, blocks->nblocks, &first);
    for (int i = 0; i < heads; i++)
        children_out[n + i] = tt_blocks_start(blocks, first + i);
    return n + heads;
}

/* Walk level by level through the subtree of node `i` of n: the next range of nodes. */
static bool next_level(int64_t *first, int64_t *last, int n)
{
    *first = *first * TT_ARITY + 1;
    *last = *last * TT_ARITY + TT_ARITY;
    return *first < n;
}

int tt_blocks_size(const struct tt_blocks *blocks, int rank)
{
    int block = tt_blocks_block(blocks, rank), start = tt_blocks_start(blocks, block), size = 0;
    int64_t first = rank - start, last = first, n = tt_blocks_start(blocks, block + 1) - start;
    do {
        size += (int)((last < n ? last + 1 : n) - first);
    } while (next_level(&first, &last, (int)n));
    first = last = block;
    n = blocks->nblocks;
    while (rank == start && next_level(&first, &last, (int)n)) {
        int end = (int)(last < n ? last + 1 : n);
        size += tt_blocks_start(blocks, end) - tt_blocks_start(blocks, (int)first);
    }
    return size;
}

/* As deep as the tree: 14 levels for a million ranks. */
int tt_blocks_order(const struct tt_blocks *blocks, int rank, int *order_out)
{
    int children[TT_BRANCHES], done = 1;
    int n = tt_blocks_children(blocks, rank, children);
    order_out[0] = rank;
    for (int i = 0; i < n; i++)
        done += tt_blocks_order(blocks, children[i], order_out + done);
    return done;
}

int tt_blocks_child_toward(const struct tt_blocks *blocks, int rank, int target)
{
    int children[TT_BRANCHES] = {0};
    int parent = rank;
    while (target > rank && (parent = tt_blocks_parent(blocks, target)) != rank)
        target = parent;
    int n = target > rank ? tt_blocks_children(blocks, rank, children) : 0;
    for (int i = 0; i < n; i++) {
        if (children[i] == target) return i;
    }
    return -1;
}

int tt_blocks_clients(const struct tt_blocks *blocks, int block)
{
    int first;
    return tt_blocks_start(blocks, block + 1) - tt_blocks_start(blocks, block) +
           nodes_below(block, blocks->nblocks, &first);
}

int tt_blocks_slot(const struct tt_blocks *blocks, int block, int rank)
{
    int its = tt_blocks_block(blocks, rank), start = tt_blocks_start(blocks, block), first;
    if (its == block) return rank - start;
    if (!tt_blocks_is_head(blocks, rank)) return -1;
    int heads = nodes_below(block, blocks->nblocks, &first);
    if (its < first || its >= first + heads) return -1;
    return tt_blocks_start(blocks, block + 1) - start + its - first;
}

int tt_blocks_rank_at(const struct tt_blocks *blocks, int block, int slot)
{
    int start = tt_blocks_start(blocks, block), size = tt_blocks_start(blocks, block + 1) - start;
    if (slot < size) return start + slot;
    return tt_blocks_start(blocks, block * TT_ARITY + 1 + slot - size);
}
