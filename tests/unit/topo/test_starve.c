/* Each allocation fails once, from a machine file's text to the plan of a communicator: an error
 * that says so, or the very plan that there is with all memory. Leaks are the sanitizer's. */
#include "../check.h"
#include "../starve.h"

#include "base/error.h"
#include "base/mem.h"
#include "topo/file/complete.h"
#include "topo/plan/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;

enum { HOSTS = 2, GPUS = 2, RANKS = HOSTS * GPUS };

struct scenario { /* two hosts, of one file or of two */
    const char *name;
    int domain;     /* of the second host */
    bool completed; /* by what takes part */
    const char *bus_ids[GPUS];
};

static struct tt_topo_rank ranks[RANKS];

static void place_ranks(const struct scenario *scenario)
{
    for (int r = 0; r < RANKS; r++) {
        ranks[r] = (struct tt_topo_rank){.node = r / GPUS, .local_rank = r % GPUS};
        (void)snprintf(ranks[r].bus_id, sizeof(ranks[r].bus_id), "%s", scenario->bus_ids[r % GPUS]);
    }
}

static ncclResult_t read_file(const struct scenario *scenario, struct tt_topo_file **file_out)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s.xml", folder, scenario->name);
    if (!scenario->completed) return tt_topo_file_read(path, file_out);
    const struct tt_topo_device devices[GPUS] = {{scenario->bus_ids[0], 0, 90},
                                                 {scenario->bus_ids[1], 1, 90}};
    const struct tt_topo_nic nics[] = {{.name = "new0", .mbps = 100000, .rail = -1, .plane = -1}};
    const struct tt_topo_local local = {
        .devices = devices, .ndevices = GPUS, .nics = nics, .nnics = 1};
    ncclResult_t rc = tt_topo_partial_read(path, file_out);
    return rc ? rc : tt_topo_complete(*file_out, &local);
}

/* All that a communicator asks, as one text. */
static ncclResult_t report(const struct tt_topo_machine *machine, struct tt_topo_plan *plan,
                           char **texts)
{
    struct tt_topo_nics *nics = tt_calloc(1, sizeof(*nics));
    ncclResult_t rc = nics ? ncclSuccess : tt_fail(ncclSystemError, "test: out of memory");
    if (!rc) rc = tt_topo_machine_nics(machine, 1, nics);
    if (!rc) rc = tt_topo_plan_from_machine(machine, TT_MAX_CHANNELS, plan);
    if (!rc) rc = tt_topo_machine_text(machine, 1, &texts[0]);
    if (!rc) rc = tt_topo_machine_dump(machine, 0, &texts[1]);
    if (!rc) rc = tt_topo_machine_graphs(machine, 3, &texts[2]);
    free(nics);
    return rc;
}

struct reports {
    char *texts[3]; /* owned */
    int nchannels;
    int ring[RANKS]; /* the first */
};

static void forget(struct reports *reports)
{
    for (size_t k = 0; k < TT_LEN(reports->texts); k++)
        free(reports->texts[k]);
}

static ncclResult_t run(const struct scenario *scenario, struct reports *reports)
{
    struct tt_topo_file *file = NULL;
    struct tt_topo_plan plan = {0};
    *reports = (struct reports){0};
    ncclResult_t rc = read_file(scenario, &file);
    const struct tt_topo_host hosts[HOSTS] = {{file, 1, 0}, {file, 2, scenario->domain}};
    const struct tt_topo_machine machine = {
        .hosts = hosts, .nhosts = HOSTS, .ranks = ranks, .nranks = RANKS, .no_collnet = true};
    if (!rc) rc = report(&machine, &plan, reports->texts);
    reports->nchannels = plan.nchannels;
    if (!rc) memcpy(reports->ring, tt_topo_ring(&plan, 0), sizeof(reports->ring));
    tt_topo_plan_free(&plan);
    tt_topo_file_free(file);
    return rc;
}

static void assert_same(const struct reports *reports, const struct reports *wanted)
{
    for (size_t k = 0; k < TT_LEN(reports->texts); k++)
        assert_string_equal(reports->texts[k], wanted->texts[k]);
    assert_int_equal(reports->nchannels, wanted->nchannels);
    assert_memory_equal(reports->ring, wanted->ring, sizeof(reports->ring));
}

static void starve(const struct scenario *scenario)
{
    struct reports wanted, reports;
    long n = 0, survived = 0, silent = 0;
    bool failed = true;
    place_ranks(scenario);
    assert_int_equal(run(scenario, &wanted), ncclSuccess);
    while (failed) {
        (void)tt_fail(ncclInternalError, "nobody said anything");
        starve_at(++n);
        ncclResult_t rc = run(scenario, &reports);
        failed = starve_end();
        if (rc != ncclSuccess && (rc != ncclSystemError || !strstr(tt_last_error(), "memory")))
            print_message("allocation %ld: code %d: %s\n", n, (int)rc, tt_last_error());
        silent += rc && (rc != ncclSystemError || !strstr(tt_last_error(), "memory"));
        if (!rc) assert_same(&reports, &wanted);
        survived += failed && !rc;
        forget(&reports);
        if (n > 100) n += n / 6; /* the rest by samples */
    }
    print_message("%s: %ld allocations, %ld of them are done without\n", scenario->name, n,
                  survived);
    forget(&wanted);
    assert_int_equal(silent, 0);
}

static void every_allocation(void **state)
{
    static const struct scenario scenarios[] = {
        {"c08-gb200-tray", 0, false, {"0000:06:00.0", "0009:06:00.0"}},
        {"c06-dgxh100", 1, true, {"0000:14:00.0", "0000:2c:00.0"}},
    };
    (void)state;
    for (size_t s = 0; s < TT_LEN(scenarios); s++)
        starve(&scenarios[s]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation)};
    folder = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
