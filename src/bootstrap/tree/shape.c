/* The tree over blocks, by arithmetic alone: no tables, so that a rank's memory does not grow with
 * the communicator. */
#include "bootstrap/tree/shape.h"

#include <stdint.h>

int tt_shape_start(const struct tt_shape *shape, int block)
{
    int base = shape->nranks / shape->nblocks, longer = shape->nranks % shape->nblocks;
    return block * base + (block < longer ? block : longer);
}

int tt_shape_block(const struct tt_shape *shape, int rank)
{
    int base = shape->nranks / shape->nblocks, longer = shape->nranks % shape->nblocks;
    int first_short = longer * (base + 1);
    return rank < first_short ? rank / (base + 1) : longer + (rank - first_short) / base;
}

bool tt_shape_is_head(const struct tt_shape *shape, int rank)
{
    return tt_shape_start(shape, tt_shape_block(shape, rank)) == rank;
}

int tt_shape_parent(const struct tt_shape *shape, int rank)
{
    int block = tt_shape_block(shape, rank), start = tt_shape_start(shape, block);
    if (rank == 0) return -1;
    if (rank > start) return start + (rank - start - 1) / TT_ARITY;
    return tt_shape_start(shape, (block - 1) / TT_ARITY);
}

/* Children of node i in a tree of arity 8 over n nodes: the first one, how many. */
static int nodes_below(int i, int n, int *first_out)
{
    int64_t first = (int64_t)i * TT_ARITY + 1;
    *first_out = first < n ? (int)first : n;
    return n - *first_out < TT_ARITY ? n - *first_out : TT_ARITY;
}

int tt_shape_children(const struct tt_shape *shape, int rank, int children_out[TT_BRANCHES])
{
    int block = tt_shape_block(shape, rank), start = tt_shape_start(shape, block);
    int size = tt_shape_start(shape, block + 1) - start, first, n;
    n = nodes_below(rank - start, size, &first);
    for (int i = 0; i < n; i++)
        children_out[i] = start + first + i;
    if (rank != start) return n;
    int heads = nodes_below(block, shape->nblocks, &first);
    for (int i = 0; i < heads; i++)
        children_out[n + i] = tt_shape_start(shape, first + i);
    return n + heads;
}

/* Walk level by level through the subtree of node `i` of n: the next range of nodes. */
static bool next_level(int64_t *first, int64_t *last, int n)
{
    *first = *first * TT_ARITY + 1;
    *last = *last * TT_ARITY + TT_ARITY;
    return *first < n;
}

int tt_shape_size(const struct tt_shape *shape, int rank)
{
    int block = tt_shape_block(shape, rank), start = tt_shape_start(shape, block), size = 0;
    int64_t first = rank - start, last = first, n = tt_shape_start(shape, block + 1) - start;
    do {
        size += (int)((last < n ? last + 1 : n) - first);
    } while (next_level(&first, &last, (int)n));
    first = last = block;
    n = shape->nblocks;
    while (rank == start && next_level(&first, &last, (int)n)) {
        int end = (int)(last < n ? last + 1 : n);
        size += tt_shape_start(shape, end) - tt_shape_start(shape, (int)first);
    }
    return size;
}

/* As deep as the tree: 14 levels for a million ranks. */
int tt_shape_order(const struct tt_shape *shape, int rank, int *order_out)
{
    int children[TT_BRANCHES], done = 1;
    int n = tt_shape_children(shape, rank, children);
    order_out[0] = rank;
    for (int i = 0; i < n; i++)
        done += tt_shape_order(shape, children[i], order_out + done);
    return done;
}

int tt_shape_way(const struct tt_shape *shape, int rank, int target)
{
    int children[TT_BRANCHES] = {0};
    int parent = rank;
    while (target > rank && (parent = tt_shape_parent(shape, target)) != rank)
        target = parent;
    int n = target > rank ? tt_shape_children(shape, rank, children) : 0;
    for (int i = 0; i < n; i++) {
        if (children[i] == target) return i;
    }
    return -1;
}

int tt_shape_guests(const struct tt_shape *shape, int block)
{
    int first;
    return tt_shape_start(shape, block + 1) - tt_shape_start(shape, block) +
           nodes_below(block, shape->nblocks, &first);
}

int tt_shape_seat(const struct tt_shape *shape, int block, int rank)
{
    int its = tt_shape_block(shape, rank), start = tt_shape_start(shape, block), first;
    if (its == block) return rank - start;
    if (!tt_shape_is_head(shape, rank)) return -1;
    int heads = nodes_below(block, shape->nblocks, &first);
    if (its < first || its >= first + heads) return -1;
    return tt_shape_start(shape, block + 1) - start + its - first;
}

int tt_shape_seated(const struct tt_shape *shape, int block, int seat)
{
    int start = tt_shape_start(shape, block), size = tt_shape_start(shape, block + 1) - start;
    if (seat < size) return start + seat;
    return tt_shape_start(shape, block * TT_ARITY + 1 + seat - size);
}
