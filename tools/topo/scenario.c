/* Scenarios: a machine file as one or more equal nodes of a communicator, made and as JSON. */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- making ---- */

void topo_scenario_free(struct topo_scenario *scenario)
{
    tt_topo_layout_free(scenario->layout);
    tt_topo_domains_free(scenario->domains, scenario->ndomains);
    *scenario = (struct topo_scenario){0};
}

bool topo_join(struct topo_scenario *scenario)
{
    size_t count = (size_t)scenario->nodes * (size_t)scenario->ndomains;
    struct tt_topo_comm_node *comm_nodes = calloc(count, sizeof(*comm_nodes));
    if (!comm_nodes) {
        (void)fprintf(stderr, "tutti topo: out of memory for %zu nodes\n", count);
        return false;
    }
    int ranks = 0; /* of a machine */
    for (int d = 0; d < scenario->ndomains; d++)
        ranks += scenario->domains[d].nranks;
    for (size_t p = 0; p < count; p++) {
        int machine = (int)p / scenario->ndomains;
        comm_nodes[p].domain = &scenario->domains[(int)p % scenario->ndomains];
        comm_nodes[p].rank_offset = machine * ranks;
    }
    topo_progress("joining nodes to a communicator");
    ncclResult_t rc = tt_topo_layout_make(comm_nodes, (int)count, NULL, &scenario->layout);
    topo_progress(NULL);
    free(comm_nodes);
    if (rc) topo_print_error();
    return rc == ncclSuccess;
}

bool topo_domains(const struct tt_topo_file *file, const struct tt_topo_options *look,
                  struct topo_scenario *scenario)
{
    topo_progress("searching for channels");
    ncclResult_t rc =
        tt_topo_domains_make(file, look, scenario->nodes, &scenario->domains, &scenario->ndomains);
    topo_progress(NULL);
    if (rc) topo_print_error();
    return rc == ncclSuccess;
}

bool topo_scenario_make(const struct tt_topo_file *file, const struct tt_topo_options *look,
                        int nodes, struct topo_scenario *scenario)
{
    *scenario = (struct topo_scenario){.nodes = nodes};
    if (topo_domains(file, look, scenario) && topo_join(scenario)) return true;
    topo_scenario_free(scenario);
    return false;
}

/* ---- as JSON ---- */

enum { MOST_NUMBERS = 20000000 }; /* some hundreds of megabytes */

bool topo_is_printable(const struct tt_topo_layout *layout)
{
    double each = layout->nrings + 4.0 * layout->ntrees + (layout->nvls[0] ? 10 : 0);
    if (each * layout->nranks <= MOST_NUMBERS) return true;
    (void)fprintf(stderr,
                  "tutti topo: the rings and trees of %d ranks are too many to print; `tutti topo "
                  "search --time` sums them up\n",
                  layout->nranks);
    return false;
}

json_t *topo_scenario_json(const struct topo_scenario *scenario)
{
    json_t *domains = json_array();
    for (int d = 0; d < scenario->ndomains; d++)
        json_array_append_new(domains, topo_domain_json(&scenario->domains[d]));
    json_t *object = json_pack("{s:i, s:i, s:o, s:o}", "nodes", scenario->nodes, "ranks",
                               scenario->layout->nranks, "domains", domains, "layout",
                               topo_layout_json(scenario->layout));
    json_t *tuning = export_tuning(scenario->layout);
    if (tuning) json_object_set_new(object, "tuning", tuning);
    return object;
}
