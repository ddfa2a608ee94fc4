/* `tutti topo check`: is a machine file sound? Warnings do not make it unsound. */
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
        printf("%s: sound; %zu GPUs, %zu NICs, %zu warnings\n", topo_name(options->paths[0]),
               json_array_size(json_object_get(json_object_get(machine, "system"), "gpus")),
               json_array_size(json_object_get(json_object_get(machine, "system"), "nets")),
               count_lines(tt_topo_file_warnings(file)));
    }
    if (options->json) {
        const char *error = machine ? NULL : tt_last_error();
        json_t *answer = json_pack("{s:s, s:b, s:s?, s:s}", "file", topo_name(options->paths[0]),
                                   "sound", machine != NULL, "error", error, "warnings",
                                   file ? tt_topo_file_warnings(file) : "");
        topo_print(answer);
        json_decref(answer);
    }
    int status = machine ? 0 : 1;
    json_decref(machine);
    tt_topo_file_free(file);
    return status;
}
