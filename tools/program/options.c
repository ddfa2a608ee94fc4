/* Options of `tutti program` and `tutti verify`. */
#include "options.h"

#include "tutti.h"

#include "base/mem.h"
#include "program_tool.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 4096 };

/* needs: enum program_option */
static const struct tutti_option rows[] = {
    {"--algo", "NAME", "an algorithm of the library (tutti program list)", 0},
    {"--op", "NAME", "its collective: allreduce, allgather, ...", 0},
    {"--ranks", "N", "its ranks; a file says it itself", 0},
    {"--hosts", "H",
     "hosts that it is for (default: 1; of a hierarchical one as few as have as many ranks), or "
     "the "
     "ranks of each: 4,3,4",
     0},
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

/* A number of hosts, or the ranks of each. */
static int read_hosts(struct program_options *options, const char *value)
{
    options->host_sizes = strchr(value, ',') ? value : NULL;
    if (!options->host_sizes)
        return read_number(options, "--hosts", value, 2, MOST_RANKS, &options->hosts);
    options->hosts = 0;
    options->host_ranks = 0;
    for (const char *at = value; at; at = *at ? at + 1 : NULL) {
        char *end;
        long size = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : 0;
        if (size < 1 || size > MOST_RANKS || (*end && *end != ','))
            return tutti_usage_error(options->command, "--hosts: '%s' is no list of ranks", value);
        options->hosts++;
        options->host_ranks += size;
        at = end;
    }
    return 0;
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
    if (!strcmp(name, "--hosts")) return read_hosts(options, value);
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
    if (!options->host_sizes) return 0;
    long asked = options->ranks;
    options->ranks = options->host_ranks;
    if (options->ranks > MOST_RANKS) {
        return tutti_usage_error(options->command, "--hosts: %ld ranks; at most %d", options->ranks,
                                 (int)MOST_RANKS);
    }
    if (asked && asked != options->ranks) {
        return tutti_usage_error(options->command, "--hosts: %s are %ld ranks, not %ld",
                                 options->host_sizes, options->ranks, asked);
    }
    return 0;
}
