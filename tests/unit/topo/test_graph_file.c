/* Graph files in place of a search: what is written is taken, what makes no sense is refused with
 * the place. The first argument is the folder of machines. */
#include "unit/check.h"

#include "base/error.h"
#include "base/param.h"
#include "topo/topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *folder;

struct made {
    struct tt_topo_domain *domains;
    int ndomains;
    ncclResult_t rc;
};

/* The two A6000, alone or in a communicator of two such machines, with this graph file. */
static struct made make(const char *content, int nodes)
{
    char path[] = "/tmp/tutti-graph-XXXXXX";
    char machine[512];
    struct tt_topo_file *file = NULL;
    struct tt_topo_options options = {0};
    struct made made = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    size_t bytes = strlen(content);
    assert_int_equal(write(fd, content, bytes), (ssize_t)bytes);
    (void)close(fd);
    (void)snprintf(machine, sizeof(machine), "%s/c10-2xa6000-bridge.xml", folder);
    assert_int_equal(tt_topo_file_read(machine, &file), ncclSuccess);
    setenv("NCCL_GRAPH_FILE", path, 1);
    tt_param_forget();
    made.rc = tt_topo_domains_make(file, &options, nodes, &made.domains, &made.ndomains);
    unsetenv("NCCL_GRAPH_FILE");
    tt_param_forget();
    tt_topo_file_free(file);
    (void)unlink(path);
    return made;
}

#define RING "<graph id='0' pattern='4' crossnic='0' nchannels='1' speedintra='7' speedinter='5' "
#define TYPES "typeintra='NVL' typeinter='PIX' samechannels='1'>"
#define GPUS "<gpu dev='0x1' rank='1'/><gpu dev='0x0' rank='0'/>"

static void channels_are_taken(void **state)
{
    (void)state;
    struct made made = make("<graphs version='1'>" RING TYPES "<channel>" GPUS "</channel></graph>"
                            "</graphs>",
                            1);
    assert_int_equal(made.rc, ncclSuccess);
    const struct tt_topo_graph *ring = &made.domains[0].graph[TT_GRAPH_RING];
    assert_int_equal(ring->nchannels, 1);
    assert_int_equal(ring->intra[0], 1);
    assert_int_equal(ring->intra[1], 0);
    assert_true(ring->bw_intra == 7 && ring->bw_inter == 5 && ring->latency_inter == 0);
    assert_int_equal(made.domains[0].graph[TT_GRAPH_TREE].nchannels, 1); /* as many as the ring */
    tt_topo_domains_free(made.domains, made.ndomains);
}

static void other_ranks_are_found_by_device(void **state)
{
    (void)state;
    struct made made = make("<graphs version='1'>" RING TYPES "<channel><gpu dev='0x1' rank='9'/>"
                            "<gpu dev='0x0' rank='8'/></channel></graph></graphs>",
                            1);
    assert_int_equal(made.rc, ncclSuccess);
    assert_int_equal(made.domains[0].graph[TT_GRAPH_RING].intra[0], 1);
    tt_topo_domains_free(made.domains, made.ndomains);
}

static void forbidden_crossing_is_searched_anew(void **state)
{
    (void)state;
    setenv("NCCL_CROSS_NIC", "0", 1);
    struct made made = make("<graphs version='1'><graph id='0' pattern='4' crossnic='1' "
                            "nchannels='1' speedintra='7' speedinter='5' " TYPES "<channel>" GPUS
                            "</channel></graph></graphs>",
                            1);
    unsetenv("NCCL_CROSS_NIC");
    tt_param_forget();
    assert_int_equal(made.rc, ncclSuccess);
    assert_true(made.domains[0].graph[TT_GRAPH_RING].bw_intra != 7);
    tt_topo_domains_free(made.domains, made.ndomains);
}

static void nonsense_is_refused(void **state)
{
    static const struct {
        const char *content, *words;
        int nodes;
    } cases[] = {
        {"", "", 1},
        {"<system version='1'/>", "no graph file of version 1", 1},
        {"<graphs version='2'/>", "no graph file of version 1", 1},
        {"<graphs version='1'><graph id='7'/></graphs>", "id is missing", 1},
        {"<graphs version='1'><graph id='0' pattern='1'/></graphs>", "pattern is missing", 1},
        {"<graphs version='1'><graph id='0' pattern='4' crossnic='3'/></graphs>", "crossnic", 1},
        {"<graphs version='1'>\n<graph id='0' pattern='4' crossnic='0' nchannels='65'/></graphs>",
         ":2: <graph>: nchannels", 1},
        {"<graphs version='1'><graph id='0' pattern='4' crossnic='0' nchannels='1' "
         "speedintra='nan' speedinter='1'/></graphs>",
         "speedintra", 1},
        {"<graphs version='1'>" RING "typeintra='C2C' typeinter='PIX' samechannels='1'/></graphs>",
         "type of path", 1},
        {"<graphs version='1'>" RING "typeintra='NVL' typeinter='PIX'/></graphs>", "samechannels",
         1},
        {"<graphs version='1'>" RING TYPES "</graph></graphs>", "fewer channels", 1},
        {"<graphs version='1'>" RING TYPES "<channel>" GPUS "</channel><channel>" GPUS
         "</channel></graph></graphs>",
         "more channels", 1},
        {"<graphs version='1'>" RING TYPES "<channel><gpu dev='0x0'/></channel></graph></graphs>",
         "GPUs of the node are missing", 1},
        {"<graphs version='1'>" RING TYPES "<channel><gpu dev='0x0'/><gpu rank='0'/></channel>"
         "</graph></graphs>",
         "the GPU is there twice", 1},
        {"<graphs version='1'>" RING TYPES "<channel><gpu dev='0x5'/></channel></graph></graphs>",
         "is a GPU of this node", 1},
        {"<graphs version='1'>" RING TYPES "<channel>" GPUS "<gpu dev='0x0'/></channel></graph>"
         "</graphs>",
         "more GPUs than", 1},
        {"<graphs version='1'>" RING TYPES "<channel>" GPUS "</channel></graph></graphs>",
         "a NIC is missing", 2},
        {"<graphs version='1'>" RING TYPES "<channel><net dev='0x77'/>" GPUS
         "</channel></graph></graphs>",
         "no NIC of this node", 2},
        {"<graphs version='1'>" RING TYPES "<channel><net dev='0'/><net dev='0'/><net dev='0'/>"
         "</channel></graph></graphs>",
         "a third NIC", 2},
    };
    (void)state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        print_message("case: %s\n", cases[k].words);
        struct made made = make(cases[k].content, cases[k].nodes);
        assert_int_equal(made.rc, ncclInvalidUsage);
        print_message("  %s\n", tt_last_error());
        assert_non_null(strstr(tt_last_error(), cases[k].words));
        assert_non_null(strstr(tt_last_error(), "/tmp/tutti-graph-"));
        assert_null(made.domains);
    }
}

static void a_missing_file_is_an_error(void **state)
{
    char machine[512];
    struct tt_topo_file *file = NULL;
    struct tt_topo_options options = {0};
    struct tt_topo_domain *domains = NULL;
    int ndomains = 0;
    (void)state;
    (void)snprintf(machine, sizeof(machine), "%s/c10-2xa6000-bridge.xml", folder);
    assert_int_equal(tt_topo_file_read(machine, &file), ncclSuccess);
    setenv("NCCL_GRAPH_FILE", "/nonexistent/graphs.xml", 1);
    tt_param_forget();
    assert_int_equal(tt_topo_domains_make(file, &options, 1, &domains, &ndomains), ncclSystemError);
    assert_non_null(strstr(tt_last_error(), "/nonexistent/graphs.xml"));
    unsetenv("NCCL_GRAPH_FILE");
    tt_param_forget();
    tt_topo_file_free(file);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_are_taken),
        cmocka_unit_test(other_ranks_are_found_by_device),
        cmocka_unit_test(forbidden_crossing_is_searched_anew),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(a_missing_file_is_an_error),
    };
    folder = argc > 1 ? argv[1] : "tests/golden/machines";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
