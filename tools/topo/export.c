/* `tutti topo export`: everything about a machine, alone and in communicators, as one object. */
#include "machine.h"

#include <stdio.h>

int topo_export(const struct topo_options *options)
{
    struct tt_topo_file *file = topo_open(options, options->paths[0]);
    if (!file) return 1;
    json_t *all = topo_system(file, &options->look);
    json_t *scenarios = json_array();
    bool done = all != NULL;
    for (int k = 0; done && k < options->ncounts; k++) {
        struct topo_scenario scenario;
        done = topo_scenario_make(file, &options->look, options->nodes[k], &scenario);
        if (!done) break;
        done = topo_is_printable(scenario.layout);
        if (done) json_array_append_new(scenarios, topo_scenario_json(&scenario));
        topo_scenario_free(&scenario);
    }
    if (done) {
        int hosts = options->look.hosts > 1 ? options->look.hosts : 1;
        json_object_set_new(all, "schema", json_string("topo-expected/1"));
        json_object_set_new(all, "topology", json_string(topo_name(options->paths[0])));
        json_object_set_new(all, "hosts_in_clique", json_integer(hosts));
        json_object_set(all, "scenarios", scenarios);
        topo_print(all);
    }
    json_decref(scenarios);
    json_decref(all);
    tt_topo_file_free(file);
    return done ? 0 : 1;
}
