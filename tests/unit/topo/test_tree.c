/* Both trees are trees, of the promised depth, and share the work of inner nodes. */
#include "unit/check.h"

#include "topo/plan/tree.h"

static int depth_of(int tree, int node, int n)
{
    int depth = 0;
    for (int v = node; v >= 0; v = tt_tree_node(tree, v, n).parent) {
        depth++;
        assert_true(depth <= n);
    }
    return depth - 1;
}

static int children_of(int tree, int node, int n)
{
    struct tt_tree_node node_links = tt_tree_node(tree, node, n);
    int count = 0;
    for (int k = 0; k < 2; k++) {
        if (node_links.child[k] < 0) continue;
        count++;
        assert_true(node_links.child[k] < n);
        assert_int_equal(tt_tree_node(tree, node_links.child[k], n).parent, node);
    }
    return count;
}

static void check_tree(int tree, int n)
{
    int edges = 0;
    int bound = 0;
    while ((1 << bound) < n) {
        bound++;
    }
    for (int v = 0; v < n; v++) {
        edges += children_of(tree, v, n);
        assert_true(depth_of(tree, v, n) <= bound);
    }
    assert_int_equal(edges, n - 1);
}

static void trees_are_trees(void **state)
{
    (void)state;
    for (int n = 1; n <= 600; n++) {
        check_tree(0, n);
        check_tree(1, n);
    }
}

static void inner_nodes_are_leaves_in_the_other(void **state)
{
    (void)state;
    for (int n = 2; n <= 600; n++) {
        int both = 0;
        for (int v = 0; v < n; v++) {
            both += children_of(0, v, n) > 0 && children_of(1, v, n) > 0;
        }
        assert_int_equal(both, n > 2 && n % 2 ? 1 : 0);
    }
}

static void known_tree(void **state)
{
    (void)state;
    /* 6 nodes: 0 - 4 - (2 - (1, 3), 5) */
    static const int parents[] = {-1, 2, 4, 2, 0, 4};
    for (int v = 0; v < 6; v++)
        assert_int_equal(tt_tree_node(0, v, 6).parent, parents[v]);
    for (int v = 0; v < 6; v++) {
        int mirrored = parents[5 - v] < 0 ? -1 : 5 - parents[5 - v];
        assert_int_equal(tt_tree_node(1, v, 6).parent, mirrored);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_are_trees),
        cmocka_unit_test(inner_nodes_are_leaves_in_the_other),
        cmocka_unit_test(known_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
