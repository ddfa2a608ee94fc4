/* How full graphs make links: of every machine, alone and over nodes, no link carries more than it
 * has, as the search promises; what channels begin and end at is in use; and known figures. */
#include "../check.h"

#include "topo/search/loads.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct look {
    struct tt_topo_file *file;
    struct tt_topo_domain *domains;
    int ndomains;
};

static void look_at(struct look *look, const char *folder, const char *name, int nodes)
{
    char path[PATH_MAX];
    const struct tt_topo_options options = {0};
    *look = (struct look){0};
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    print_message("case: %s over %d nodes\n", name, nodes);
    assert_int_equal(tt_topo_file_read(path, &look->file), ncclSuccess);
    assert_int_equal(
        tt_topo_domains_make(look->file, &options, nodes, &look->domains, &look->ndomains),
        ncclSuccess);
}

static void leave(struct look *look)
{
    tt_topo_domains_free(look->domains, look->ndomains);
    tt_topo_file_free(look->file);
}

static void fits(const char *graph, const struct tt_topo_loads *loads)
{
    for (int k = 0; k < loads->count; k++) {
        const struct tt_topo_load *load = &loads->load[k];
        if (load->used <= 1.0001F * load->bw) continue;
        fail_msg("%s: %s to %s carries %.4g of %.4g", graph, load->from, load->to,
                 (double)load->used, (double)load->bw);
    }
}

static void check(const struct look *look, const struct tt_topo_domain *domain)
{
    const struct tt_topo_options options = {0};
    struct tt_topo_loads loads[TT_GRAPH_COUNT_];
    assert_int_equal(tt_topo_loads_make(look->file, &options, domain, loads), ncclSuccess);
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++) {
        bool used = domain->graph[kind].nchannels > 0 && (domain->inter || domain->nranks > 1);
        if (used) assert_true(loads[kind].count > 0);
        fits(tt_graph_kind_name((enum tt_graph_kind)kind), &loads[kind]);
    }
    tt_topo_loads_free(loads);
}

static void no_link_carries_more_than_it_has(void **state)
{
    DIR *folder = opendir(*state);
    int count = 0;
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".xml") != 0) continue;
        for (int nodes = 1; nodes <= 2; nodes++) {
            struct look look;
            look_at(&look, *state, entry->d_name, nodes);
            for (int d = 0; d < look.ndomains; d++)
                check(&look, &look.domains[d]);
            leave(&look);
        }
        count++;
    }
    (void)closedir(folder);
    assert_true(count >= 20);
}

static const struct tt_topo_load *find(const struct tt_topo_loads *loads, const char *from,
                                       const char *to)
{
    for (int k = 0; k < loads->count; k++) {
        if (!strcmp(loads->load[k].from, from) && !strcmp(loads->load[k].to, to))
            return &loads->load[k];
    }
    return NULL;
}

static void figures_are_as_counted_by_hand(void **state)
{
    static const struct {
        const char *name;
        int nodes;
        enum tt_graph_kind kind;
        const char *from, *to;
        float used;
    } cases[] = {
        /* eight rings of 48, one in and one out by every port */
        {"c06-dgxh100.xml", 2, TT_GRAPH_RING, "NET/3", "", 48},
        {"c06-dgxh100.xml", 2, TT_GRAPH_RING, "PCI/3", "NIC/3", 48},
        /* of eight rings, one goes by each NIC: seven steps leave a GPU by NVLink */
        {"c06-dgxh100.xml", 2, TT_GRAPH_RING, "DEV/0", "NVS/0", 336},
        /* twelve rings of 30 leave every GPU once */
        {"c06-dgxh100.xml", 1, TT_GRAPH_RING, "DEV/0", "NVS/0", 360},
        /* two ports of one NIC carry two channels of 2.4 each, times 6/5 on PCI */
        {"gvisor-b200-vm.xml", 2, TT_GRAPH_NVLS, "CPU/0", "NIC/0", 11.52F},
    };
    const struct tt_topo_options options = {0};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct look look;
        struct tt_topo_loads loads[TT_GRAPH_COUNT_];
        look_at(&look, *state, cases[k].name, cases[k].nodes);
        assert_int_equal(tt_topo_loads_make(look.file, &options, &look.domains[0], loads),
                         ncclSuccess);
        const struct tt_topo_load *load = find(&loads[cases[k].kind], cases[k].from, cases[k].to);
        print_message("%s > %s\n", cases[k].from, cases[k].to);
        assert_non_null(load);
        assert_float_equal(load->used, cases[k].used, 0.01F);
        tt_topo_loads_free(loads);
        leave(&look);
    }
}

int main(int argc, char **argv)
{
    char fallback[] = "tests/golden/machines";
    char *folder = argc > 1 ? argv[1] : fallback;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(no_link_carries_more_than_it_has, folder),
        cmocka_unit_test_prestate(figures_are_as_counted_by_hand, folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
