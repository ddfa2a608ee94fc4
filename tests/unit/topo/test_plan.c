/* Rings visit every rank once and every host in one piece; trees reach every rank. */
#include "unit/check.h"

#include "topo/topo.h"

#include <stdlib.h>

enum { MOST = 64 };

/* deal: ranks dealt out to hosts one by one, else in blocks. */
static void place_ranks(struct tt_topo_rank *ranks, int n, int nhosts, int deal)
{
    int per_host = (n + nhosts - 1) / nhosts;
    for (int r = 0; r < n; r++) {
        ranks[r].node = deal ? r % nhosts : r / per_host;
        ranks[r].local_rank = deal ? r / nhosts : r % per_host;
    }
}

static void check_ring(const struct tt_topo_plan *plan, const struct tt_topo_rank *ranks,
                       int channel)
{
    int seen[MOST] = {0};
    int crossings = 0;
    for (int k = 0; k < plan->nranks; k++) {
        int rank = plan->ring[channel][k];
        int next = plan->ring[channel][(k + 1) % plan->nranks];
        assert_in_range(rank, 0, plan->nranks - 1);
        seen[rank]++;
        crossings += ranks[rank].node != ranks[next].node;
    }
    for (int r = 0; r < plan->nranks; r++)
        assert_int_equal(seen[r], 1);
    assert_int_equal(crossings, plan->nnodes > 1 ? plan->nnodes : 0);
}

static void check_tree(const struct tt_topo_plan *plan, const struct tt_topo_rank *ranks, int tree)
{
    const struct tt_tree_links *links = plan->tree[tree];
    int edges = 0;
    int crossings = 0;
    for (int r = 0; r < plan->nranks; r++) {
        for (int k = 0; k < 3; k++) {
            int child = links[r].child[k];
            if (child < 0) continue;
            edges++;
            crossings += ranks[child].node != ranks[r].node;
            assert_int_equal(links[child].parent, r);
        }
        int steps = 0;
        for (int up = r; up >= 0; up = links[up].parent)
            assert_true(++steps <= plan->nranks);
    }
    assert_int_equal(edges, plan->nranks - 1);
    assert_int_equal(crossings, plan->nnodes - 1);
}

/* Hosts one after the other, with their ranks in order; where each begins is told where they
 * differ.
 */
static void check_hosts(const struct tt_topo_plan *plan, const struct tt_topo_rank *ranks)
{
    int n = plan->nranks, nhosts = plan->nnodes, seen = 0;
    bool even = true;
    for (int host = 0; host < nhosts; host++) {
        int first = plan->host_first ? plan->host_first[host] : host * (n / nhosts), size = 0;
        assert_int_equal(first, seen);
        for (int rank = 0; rank < n; rank++) {
            if (ranks[rank].node != host) continue;
            assert_int_equal(plan->by_host[seen++], rank);
            size++;
        }
        even = even && size * nhosts == n;
    }
    assert_int_equal(even, !plan->host_first);
    if (!even) assert_int_equal(plan->host_first[nhosts], n);
}

static void plans_are_sound(void **state)
{
    (void)state;
    struct tt_topo_rank ranks[MOST] = {0};
    for (int n = 1; n <= MOST; n++) {
        for (int nhosts = 1; nhosts <= n; nhosts++) {
            struct tt_topo_plan plan;
            place_ranks(ranks, n, nhosts, nhosts % 2);
            assert_int_equal(tt_topo_plan_make(ranks, n, 3, &plan), ncclSuccess);
            assert_int_equal(plan.nchannels, 3);
            for (int c = 0; c < 3; c++)
                check_ring(&plan, ranks, c);
            for (int t = 0; t < 2; t++)
                check_tree(&plan, ranks, t);
            check_hosts(&plan, ranks);
            tt_topo_plan_free(&plan);
        }
    }
}

static void channels_follow_the_request(void **state)
{
    (void)state;
    static const struct {
        int requested, got;
    } cases[] = {{0, 2}, {-5, 2}, {1, 1}, {7, 7}, {64, 64}, {1000, 64}};
    struct tt_topo_rank ranks[4] = {{.node = 0}, {.node = 0}, {.node = 1}, {.node = 1}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct tt_topo_plan plan;
        assert_int_equal(tt_topo_plan_make(ranks, 4, cases[k].requested, &plan), ncclSuccess);
        assert_int_equal(plan.nchannels, cases[k].got);
        tt_topo_plan_free(&plan);
    }
}

static void one_host_is_in_rank_order(void **state)
{
    (void)state;
    struct tt_topo_rank ranks[5] = {0};
    struct tt_topo_plan plan;
    assert_int_equal(tt_topo_plan_make(ranks, 5, 0, &plan), ncclSuccess);
    for (int k = 0; k < 5; k++)
        assert_int_equal(plan.ring[0][k], k);
    assert_int_equal(plan.tree[0][0].parent, -1);
    assert_int_equal(plan.tree[0][4].parent, 3);
    tt_topo_plan_free(&plan);
    tt_topo_plan_free(&plan); /* an empty plan is freed without harm */
}

static void bad_hosts_are_refused(void **state)
{
    (void)state;
    struct tt_topo_rank late[3] = {{.node = 0}, {.node = 2}, {.node = 1}};
    struct tt_topo_rank negative[1] = {{.node = -1}};
    struct tt_topo_plan plan;
    assert_int_equal(tt_topo_plan_make(late, 3, 0, &plan), ncclInvalidArgument);
    assert_int_equal(tt_topo_plan_make(negative, 1, 0, &plan), ncclInvalidArgument);
    assert_int_equal(tt_topo_plan_make(late, 0, 0, &plan), ncclInvalidArgument);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_sound),
        cmocka_unit_test(channels_follow_the_request),
        cmocka_unit_test(one_host_is_in_rank_order),
        cmocka_unit_test(bad_hosts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
