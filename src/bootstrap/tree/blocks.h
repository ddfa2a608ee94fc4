/* Who is whose parent. Ranks lie in blocks, one per unique id; each block is a tree of arity 8, and
 * the blocks' first ranks (heads) form one too. A parent has a lower rank than its children. */
#pragma once

#include <stdbool.h>

#define TT_ARITY 8
#define TT_BRANCHES                                                                                \
    (2 * TT_ARITY) /* a head has children in its block and heads of other blocks                   \
                    */

struct tt_blocks {
    int nranks, nblocks; /* 1 <= nblocks <= nranks */
};

/* First rank of a block; nranks for the one after the last. The first nranks % nblocks blocks have
 * one rank more than the others, as upstream. */
int tt_blocks_start(const struct tt_blocks *blocks, int block);
int tt_blocks_block(const struct tt_blocks *blocks, int rank);
/* First of its block? */
bool tt_blocks_is_head(const struct tt_blocks *blocks, int rank);
/* Of rank 0: -1. */
int tt_blocks_parent(const struct tt_blocks *blocks, int rank);
/* Children in ascending order; how many. */
int tt_blocks_children(const struct tt_blocks *blocks, int rank, int children_out[TT_BRANCHES]);
/* Number of ranks in the subtree of `rank`. */
int tt_blocks_size(const struct tt_blocks *blocks, int rank);
/* Preorder of the subtree of `rank`; order_out has tt_blocks_size() entries, as many are returned.
 */
int tt_blocks_order(const struct tt_blocks *blocks, int rank, int *order_out);
/* Child number on the way from `rank` down to `target`; -1: go up. */
int tt_blocks_child_toward(const struct tt_blocks *blocks, int rank, int target);

/* Ranks that a block's root serves: those of the block, and the heads of the blocks below. */
int tt_blocks_clients(const struct tt_blocks *blocks, int block);
/* Place of a rank among them, -1 when it has no business there; and back. */
int tt_blocks_slot(const struct tt_blocks *blocks, int block, int rank);
int tt_blocks_rank_at(const struct tt_blocks *blocks, int block, int slot);
