/* Double binary tree over N nodes. Private to the room. */
#pragma once

struct tt_tree_node { /* neighbours of a node; -1: none */
    int parent;
    int which; /* 0, 1: its parent's first or second child */
    int child[2];
};

/* Neighbours of node `node` of `nnodes` in tree 0 or 1. Every node is inner in at most one tree
 * (for odd counts one node is inner in both). A root has only a second child. Depth is log2(nnodes)
 * rounded up.
 * Source of the construction: spec algorithms, section 3. */
struct tt_tree_node tt_tree_node(int tree, int node, int nnodes);
