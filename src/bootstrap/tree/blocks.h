/* The tree of ranks. Ranks are divided into blocks, one per unique id. Each block is a tree of
 * arity 8, and the first ranks (heads) of the blocks form another one. A parent has a lower rank
 * than its children. Pure: no I/O, any thread. */
#pragma once

#include <stdbool.h>

#define TT_ARITY 8
/* A head has children in its block, and heads of other blocks. */
#define TT_BRANCHES (2 * TT_ARITY)

struct tt_blocks {
    int nranks, nblocks; /* 1 <= nblocks <= nranks */
};

/* First rank of a block; nranks for the one after the last. The first nranks % nblocks blocks have
 * one rank more than the others, as in NCCL. */
int tt_blocks_start(const struct tt_blocks *blocks, int block);
int tt_blocks_block(const struct tt_blocks *blocks, int rank);
/* True for the first rank of a block. */
bool tt_blocks_is_head(const struct tt_blocks *blocks, int rank);
/* Parent of a rank; -1 for rank 0. */
int tt_blocks_parent(const struct tt_blocks *blocks, int rank);
/* Write the children in ascending order; returns their number. */
int tt_blocks_children(const struct tt_blocks *blocks, int rank, int children_out[TT_BRANCHES]);
/* Number of ranks in the subtree of `rank`. */
int tt_blocks_size(const struct tt_blocks *blocks, int rank);
/* Preorder of the subtree of `rank`; order_out has tt_blocks_size() entries, as many are returned.
 */
int tt_blocks_order(const struct tt_blocks *blocks, int rank, int *order_out);
/* Index of the child of `rank` whose subtree has `target`; -1: none, the way is up. */
int tt_blocks_child_toward(const struct tt_blocks *blocks, int rank, int target);

/* Ranks that a block's root serves: those of the block, and the heads of the blocks below. */
int tt_blocks_clients(const struct tt_blocks *blocks, int block);
/* Slot of a rank among them, -1 when that root does not serve it; and the rank of a slot. */
int tt_blocks_slot(const struct tt_blocks *blocks, int block, int rank);
int tt_blocks_rank_at(const struct tt_blocks *blocks, int block, int slot);
