/* Which NIC a message to another node leaves through: the own one of its channel, or the one that
 * the peer's device would have here (spec topology, section 4). Each GPU of a DGX H100 has one. */
#include "../check.h"

#include "base/mem.h"
#include "base/param.h"
#include "topo/plan/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS = 2, GPUS = 8, RANKS = HOSTS * GPUS };
enum choice { OWN, PEERS };

static char *text; /* the machine file */

static char *read_text(const char *folder)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/c06-dgxh100.xml", folder);
    FILE *in = fopen(path, "r");
    char *bytes = calloc(1, 1 << 20);
    if (in && bytes && fread(bytes, 1, (1 << 20) - 1, in) == 0) bytes[0] = 0;
    if (in) (void)fclose(in);
    return bytes;
}

/* GPUs that reach each other over PCI alone: rows of NVLinks become comments of their length. */
static void cut_links(char *bytes)
{
    for (char *at = bytes; (at = strstr(at, "<nvlink ")); at++) {
        char *end = strstr(at, "/>");
        memset(at, ' ', (size_t)(end - at) + 2);
    }
}

/* NICs of rank `rank` of the first host. */
static void nics_of(const struct tt_topo_file *file, int rank, struct tt_topo_nics *nics)
{
    static const char *const bus_ids[GPUS] = {"0000:14:00.0", "0000:2c:00.0", "0000:44:00.0",
                                              "0000:5c:00.0", "0000:94:00.0", "0000:ac:00.0",
                                              "0000:c4:00.0", "0000:dc:00.0"};
    struct tt_topo_rank ranks[RANKS];
    memset(ranks, 0, sizeof(ranks));
    for (int r = 0; r < RANKS; r++) {
        ranks[r] = (struct tt_topo_rank){.node = r / GPUS, .local_rank = r % GPUS};
        (void)snprintf(ranks[r].bus_id, sizeof(ranks[r].bus_id), "%s", bus_ids[r % GPUS]);
    }
    const struct tt_topo_host hosts[HOSTS] = {{file, 1, 0}, {file, 2, 1}};
    const struct tt_topo_machine machine = {
        .hosts = hosts, .nhosts = HOSTS, .ranks = ranks, .nranks = RANKS, .no_collnet = true};
    assert_int_equal(tt_topo_machine_nics(&machine, rank, nics), ncclSuccess);
}

static void check_choice(const struct tt_topo_file *file, enum choice choice)
{
    struct tt_topo_nics *nics = tt_calloc(GPUS, sizeof(*nics));
    assert_non_null(nics);
    for (int r = 0; r < GPUS; r++)
        nics_of(file, r, &nics[r]);
    for (int r = 0; r < GPUS; r++) {
        for (int d = 0; d < GPUS; d++) {
            for (int c = 0; c < 16; c++) {
                int wanted = choice == PEERS ? nics[d].own[c] : nics[r].own[c];
                assert_true(wanted >= 0);
                assert_int_equal(nics[r].toward[d][c], wanted);
            }
        }
        assert_int_equal(nics[r].toward[GPUS][0], nics[r].own[0]); /* no such device here */
        if (r) assert_int_not_equal(nics[r].own[0], nics[0].own[0]);
    }
    free(nics);
}

static const struct {
    const char *name, *level, *pxn_disable, *cross_nic;
    bool links;
    enum choice choice;
} cases[] = {
    {"by default", NULL, NULL, NULL, true, PEERS},
    {"level 2", "2", NULL, NULL, true, PEERS},
    {"level 1", "1", NULL, NULL, true, PEERS},
    {"level 0", "0", NULL, NULL, true, OWN},
    {"PXN off", NULL, "1", NULL, true, OWN},
    {"level 1, PXN off", "1", "1", NULL, true, OWN},
    {"CROSS_NIC=0, PXN off", NULL, "1", "0", true, PEERS},
    {"CROSS_NIC=0, level 0", "0", NULL, "0", true, PEERS},
    {"CROSS_NIC=1, level 0", "0", NULL, "1", true, OWN},
    {"no NVLink: nobody can relay", NULL, NULL, NULL, false, OWN},
    {"no NVLink, level 1", "1", NULL, NULL, false, OWN},
    {"no NVLink, CROSS_NIC=0", NULL, NULL, "0", false, PEERS},
};

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void messages_by_variable(void **state)
{
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        struct tt_topo_file *file = NULL;
        char *own = strdup(text);
        print_message("case: %s\n", cases[i].name);
        set("NCCL_P2P_PXN_LEVEL", cases[i].level);
        set("NCCL_PXN_DISABLE", cases[i].pxn_disable);
        set("NCCL_CROSS_NIC", cases[i].cross_nic);
        tt_param_forget();
        if (!cases[i].links) cut_links(own);
        assert_int_equal(tt_topo_file_parse("test", own, strlen(own), &file), ncclSuccess);
        check_choice(file, cases[i].choice);
        tt_topo_file_free(file);
        free(own);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(messages_by_variable)};
    text = read_text(argc > 1 ? argv[1] : ".");
    int failed = text ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
    free(text);
    return failed;
}
