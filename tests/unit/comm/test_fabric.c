/* NVLink domains from records alone: every rank derives the same, whatever its own place in them.
 */
#include "../check.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"
#include "comm/records/fabric.h"

#include <stdlib.h>
#include <string.h>

struct world { /* records of ranks, `gpus` on each host */
    struct tt_comm *comm;
    char *records; /* owned */
    int nhosts;
};

static struct tt_comm_record *record_at(const struct world *world, int rank)
{
    return (struct tt_comm_record *)(void *)(world->records + (size_t)rank * TT_RECORD_BYTES);
}

static struct world make_world(int nhosts, int gpus)
{
    int n = nhosts * gpus;
    struct world world = {tt_calloc(1, sizeof(struct tt_comm)),
                          tt_calloc((size_t)n, TT_RECORD_BYTES), nhosts};
    assert_non_null(world.comm);
    assert_non_null(world.records);
    world.comm->records = record_at(&world, 0);
    world.comm->member.nranks = n;
    for (int r = 0; r < n; r++) {
        *record_at(&world, r) = (struct tt_comm_record){
            .host_id = 1000 + (uint64_t)(r / gpus), .machine = 5, .fabric_uuid = 77};
    }
    return world;
}

static void end_world(struct world *world)
{
    free(world->records);
    free(world->comm);
}

/* What rank `rank` makes of it. */
static ncclResult_t agree(const struct world *world, int rank, struct tt_agreement *agreed)
{
    world->comm->member.rank = rank;
    *agreed = (struct tt_agreement){0};
    ncclResult_t rc = tt_record_agree(world->comm, agreed);
    return rc ? rc : tt_fabric_agree(world->comm, agreed);
}

static const struct {
    const char *name;
    const char
        *cliques; /* of each rank, two on each host; '-': in no domain, '!': its memory fails */
    const char *domains; /* of each host */
    const char *sizes;   /* by rank */
    ncclResult_t rc;
} cases[] = {
    {"one domain", "aaaaaa", "000", "666666", ncclSuccess},
    {"two", "aabbaabb", "0101", "44444444", ncclSuccess},
    {"hosts that disagree", "aaabaa", "010", "555055", ncclSuccess},
    {"alone in its clique", "aaaabc", "002", "444400", ncclSuccess},
    {"one rank in none", "aaa-aa", "012", "000000", ncclSuccess},
    {"broken", "aaaa!a", "012", "000000", ncclSystemError},
};

static void all_see_the_same(void **state)
{
    (void)state;
    for (size_t c = 0; c < TT_LEN(cases); c++) {
        int n = (int)strlen(cases[c].cliques);
        struct world world = make_world(n / 2, 2);
        for (int r = 0; r < n; r++) {
            char clique = cases[c].cliques[r];
            record_at(&world, r)->fabric_clique = clique == '!' ? 'a' : (uint32_t)clique;
            if (clique == '-') record_at(&world, r)->fabric_uuid = 0;
            if (clique == '!') record_at(&world, r)->flags = TT_RECORD_FABRIC_BROKEN;
        }
        for (int r = 0; r < n; r++) {
            struct tt_agreement agreed;
            print_message("case: %s, rank %d\n", cases[c].name, r);
            assert_int_equal(agree(&world, r, &agreed), cases[c].rc);
            for (int h = 0; h < world.nhosts; h++)
                assert_int_equal(agreed.domain[h], cases[c].domains[h] - '0');
            assert_int_equal(agreed.clique_size, cases[c].sizes[r] - '0');
            tt_agreement_fini(&agreed);
        }
        end_world(&world);
    }
}

/* 12,500 hosts of 8, every fifth in the same domain: no pair of hosts is looked at. */
static void many_hosts(void **state)
{
    enum { HOSTS = 12500 };
    struct world world = make_world(HOSTS, 8);
    struct tt_agreement agreed;
    (void)state;
    for (int r = 0; r < HOSTS * 8; r++)
        record_at(&world, r)->fabric_clique = (uint32_t)(r / 8 % 5);
    assert_int_equal(agree(&world, 9, &agreed), ncclSuccess);
    assert_int_equal(agreed.nnodes, HOSTS);
    assert_int_equal(agreed.clique_size, HOSTS / 5 * 8);
    for (int h = 0; h < HOSTS; h++)
        assert_int_equal(agreed.domain[h], h % 5);
    tt_agreement_fini(&agreed);
    end_world(&world);
}

/* Each allocation fails once: an error, and nothing of it stays. */
static void short_of_memory(void **state)
{
    struct world world = make_world(4, 2);
    struct tt_agreement agreed;
    ncclResult_t rc = ncclSystemError;
    (void)state;
    int fault = 0;
    for (; rc; fault++) {
        tt_fault_at(fault);
        rc = agree(&world, 0, &agreed);
        tt_fault_at(-1);
        assert_true(rc == ncclSuccess || rc == ncclSystemError);
        if (rc) assert_non_null(strstr(tt_last_error(), "out of memory"));
        tt_agreement_fini(&agreed);
    }
    assert_in_range(fault, 11, 12);
    end_world(&world);
}

/* ---- variables ---- */

static uint32_t clique_of(const char *value)
{
    struct tt_comm_record record = {.machine = 5, .bus_id = "0000:07:00.0"};
    setenv("NCCL_MNNVL_UUID", "77", 1);
    setenv("NCCL_MNNVL_CLIQUE_ID", value, 1);
    tt_param_forget();
    tt_fabric_fill(&record);
    return record.fabric_clique;
}

static void clique_numbers(void **state)
{
    static const struct {
        const char *value;
        uint32_t clique;
    } numbers[] = {{"-1", 0},         {"-2", 0},           {"0", 0},
                   {"7", 7},          {"-3", 0xfffffffdu}, {"4294967295", 0xffffffffu},
                   {"4294967301", 5}, {"seven", 0}};
    (void)state;
    for (size_t i = 0; i < TT_LEN(numbers); i++) {
        print_message("case: %s\n", numbers[i].value);
        assert_int_equal(clique_of(numbers[i].value), numbers[i].clique);
    }
    unsetenv("NCCL_MNNVL_CLIQUE_ID");
    unsetenv("NCCL_MNNVL_UUID");
}

static void faults_by_word(void **state)
{
    static const struct {
        const char *value;
        uint32_t flags;
    } words[] = {{"", 0},
                 {"fabric", TT_RECORD_FABRIC_BROKEN},
                 {"multicast, fabric", TT_RECORD_FABRIC_BROKEN | TT_RECORD_MULTICAST_BROKEN},
                 {",,multicast,", TT_RECORD_MULTICAST_BROKEN},
                 {"fabrics,multi", 0}};
    const uint32_t mask = TT_RECORD_FABRIC_BROKEN | TT_RECORD_MULTICAST_BROKEN;
    (void)state;
    for (size_t i = 0; i < TT_LEN(words); i++) {
        print_message("case: %s\n", words[i].value);
        setenv("TUTTI_MACHINE_FAULTS", words[i].value, 1);
        tt_param_forget();
        assert_int_equal(tt_fabric_flags() & mask, words[i].flags);
    }
    unsetenv("TUTTI_MACHINE_FAULTS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_see_the_same), cmocka_unit_test(many_hosts),
        cmocka_unit_test(short_of_memory),  cmocka_unit_test(clique_numbers),
        cmocka_unit_test(faults_by_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
