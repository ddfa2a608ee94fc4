/* Double binary tree: node numbers in binary say which is whose child, so no rank stores a tree.
 * Tree 0 puts node v at the height of its lowest set bit (node 0 on top); tree 1 is its mirror
 * image, or for odd counts its rotation by one, which makes inner nodes leaves. */
#include "tree.h"

/* Children of v (lowest set bit `low`): half a step to the left, and to the right the longest of
 * half, quarter, ... steps that stays inside. */
static struct tt_tree_node below_zero(int v, int low, int n)
{
    struct tt_tree_node links = {.parent = (v ^ low) | (low << 1), .child = {-1, -1}};
    if (links.parent >= n) links.parent = v ^ low;
    links.which = v < links.parent ? 0 : 1;
    if (low == 1) return links;
    links.child[0] = v - low / 2;
    int step = low / 2;
    while (step > 0 && v + step >= n) {
        step /= 2;
    }
    if (step > 0) links.child[1] = v + step;
    return links;
}

static struct tt_tree_node first_tree(int v, int n)
{
    if (v != 0) return below_zero(v, v & -v, n);
    struct tt_tree_node root = {.parent = -1, .child = {-1, -1}};
    int top = 1;
    while (top * 2 < n) {
        top *= 2;
    }
    if (n > 1) root.child[1] = top;
    return root;
}

/* Where node v of the communicator stands in the first tree, seen from the second; and back. */
static int to_first(int v, int n)
{
    return n % 2 == 0 ? n - 1 - v : (v + n - 1) % n;
}

static int from_first(int v, int n)
{
    if (v < 0) return -1;
    return n % 2 == 0 ? n - 1 - v : (v + 1) % n;
}

struct tt_tree_node tt_tree_node(int tree, int node, int nnodes)
{
    if (tree == 0) return first_tree(node, nnodes);
    struct tt_tree_node links = first_tree(to_first(node, nnodes), nnodes);
    links.parent = from_first(links.parent, nnodes);
    links.child[0] = from_first(links.child[0], nnodes);
    links.child[1] = from_first(links.child[1], nnodes);
    return links;
}
