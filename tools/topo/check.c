/* `tutti topo check`: is a machine file sound? Warnings do not make it unsound; with --strict
 * they are a "no" as well. */
#include "machine.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

int topo_check(const struct topo_options *options)
{
    struct tt_topo_file *file = topo_open(options, options->paths[0]);
    json_t *machine = file ? topo_system(file, &options->look) : NULL;
    if (machine && !options->json) {
        const json_t *system = json_object_get(machine, "system");
        const size_t gpus = json_array_size(json_object_get(system, "gpus"));
        const size_t nics = json_array_size(json_object_get(system, "nets"));
        const size_t warnings = count_lines(tt_topo_file_warnings(file));
        printf("%s: sound; %zu GPU%s, %zu NIC%s, %zu warning%s\n", topo_name(options->paths[0]),
               gpus, gpus == 1 ? "" : "s", nics, nics == 1 ? "" : "s", warnings,
               warnings == 1 ? "" : "s");
    }
    if (options->json) {
        const char *error = machine ? NULL : tt_last_error();
        json_t *answer = json_pack("{s:s, s:b, s:s?, s:s}", "file", topo_name(options->paths[0]),
                                   "sound", machine != NULL, "error", error, "warnings",
                                   file ? tt_topo_file_warnings(file) : "");
        topo_print(answer);
        json_decref(answer);
    }
    bool strict = options->strict && file && *tt_topo_file_warnings(file);
    int status = machine && !strict ? 0 : 1;
    json_decref(machine);
    tt_topo_file_free(file);
    return status;
}
