/* Options of `tutti program` and `tutti verify`. */
#include "options.h"

#include "tutti.h"

#include "base/mem.h"
#include "program_tool.h"

#include <string.h>

enum { MOST_RANKS = 4096 };

/* needs: enum program_option */
static const struct tutti_option rows[] = {
    {"--algo", "NAME", "an algorithm of the library (tutti program list)", 0},
    {"--op", "NAME", "its collective: allreduce, allgather, ...", 0},
    {"--ranks", "N", "its ranks; a file says it itself", 0},
    {"--hosts", "H",
     "hosts that it is for (default: 1; of a hierarchical one as few as have as many ranks)", 0},
    {"--layout", "P", "layout of slots: SIMPLE, LL128 or LL (default: the first it has)", 0},
    {"--root", "R", "its root, of those that have one (default 0)", 0},
    {"--counts", "LIST",
     "of an alltoallv: chunks from each rank to each, rows parted by ';' (or @FILE: by lines; "
     "default: 1)",
     0},
    {"--json", NULL, "JSON instead of text", PROGRAM_JSON},
    {"--svg", NULL, "a picture instead of text: ranks side by side, time goes down", PROGRAM_SVG},
    {"--chunk", "C", "only messages of that chunk in the picture", PROGRAM_CHUNK},
};

static struct tutti_option_table options_of(const char *command, unsigned int allowed)
{
    return (struct tutti_option_table){rows, TT_LEN(rows), allowed, command};
}

void program_options_help(unsigned int allowed)
{
    const struct tutti_option_table table = options_of("program", allowed);
    tutti_option_help(&table);
}

static int read_number(const struct program_options *options, const char *name, const char *value,
                       long low, long high, long *out)
{
    if (tutti_parse_int(value, low, high, out)) return 0;
    return tutti_usage_error(options->command, "%s: '%s' is no number from %ld to %ld", name, value,
                             low, high);
}

static int set_option(struct program_options *options, const char *name, const char *value)
{
    if (!strcmp(name, "--json")) options->json = true;
    if (!strcmp(name, "--svg")) options->svg = true;
    if (!strcmp(name, "--algo")) options->algo = value;
    if (!strcmp(name, "--op")) options->op = value;
    if (!strcmp(name, "--ranks"))
        return read_number(options, name, value, 2, MOST_RANKS, &options->ranks);
    if (!strcmp(name, "--layout")) options->proto = value;
    if (!strcmp(name, "--counts")) options->counts = value;
    if (!strcmp(name, "--hosts"))
        return read_number(options, name, value, 2, MOST_RANKS, &options->hosts);
    if (!strcmp(name, "--root"))
        return read_number(options, name, value, 0, MOST_RANKS - 1, &options->root);
    if (!strcmp(name, "--chunk"))
        return read_number(options, name, value, 0, 1 << 24, &options->chunk);
    return 0;
}

int program_options_read(struct program_options *options, unsigned int allowed, int argc,
                         char **argv)
{
    options->chunk = -1;
    const struct tutti_option_table table = options_of(options->command, allowed);
    for (int k = 1, used = 1; k < argc; k += used) {
        const struct tutti_option *option;
        const char *value;
        int wrong = 0;
        used = 1;
        if (!strcmp(argv[k], "--help") || !strcmp(argv[k], "-h")) return -1;
        if (argv[k][0] == '-' && argv[k][1]) {
            option = tutti_option_take(&table, argv + k, argc - k, &value, &used);
            wrong = option ? set_option(options, option->name, value) : 2;
        } else if (options->npaths == 2) {
            wrong = tutti_usage_error(options->command, "more files than two: %s", argv[k]);
        } else {
            options->paths[options->npaths++] = argv[k];
        }
        if (wrong) return wrong;
    }
    return 0;
}
