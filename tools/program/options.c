/* Options of `tutti program` and `tutti verify`. */
#include "tutti.h"

#include "base/mem.h"
#include "program_tool.h"

#include <string.h>

enum { MOST_RANKS = 4096 };

struct option {
    const char *name, *value, *help;
    unsigned int needs; /* enum program_option; 0: all commands take it */
};

static const struct option table[] = {
    {"--algo", "NAME", "an algorithm of the library (tutti program list)", 0},
    {"--op", "NAME", "its collective: allreduce, allgather, ...", 0},
    {"--ranks", "N", "its ranks; a file says it itself", 0},
    {"--hosts", "H", "hosts of a hierarchical one (default: as few as have as many ranks)", 0},
    {"--layout", "P", "layout of slots: SIMPLE, LL128 or LL (default: the first it has)", 0},
    {"--root", "R", "its root, of those that have one (default 0)", 0},
    {"--json", NULL, "JSON instead of text", PROGRAM_JSON},
    {"--svg", NULL, "a picture instead of text: ranks side by side, time goes down", PROGRAM_SVG},
    {"--chunk", "C", "only messages of that chunk in the picture", PROGRAM_CHUNK},
};

void program_options_help(unsigned int allowed)
{
    printf("\noptions:\n");
    for (size_t k = 0; k < TT_LEN(table); k++) {
        char left[40];
        const char *value = table[k].value;
        if ((table[k].needs & allowed) != table[k].needs) continue;
        (void)snprintf(left, sizeof(left), "%s%s%s", table[k].name, value ? " " : "",
                       value ? value : "");
        printf("  %-16s %s\n", left, table[k].help);
    }
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
    if (!strcmp(name, "--hosts"))
        return read_number(options, name, value, 2, MOST_RANKS, &options->hosts);
    if (!strcmp(name, "--root"))
        return read_number(options, name, value, 0, MOST_RANKS - 1, &options->root);
    if (!strcmp(name, "--chunk"))
        return read_number(options, name, value, 0, 1 << 24, &options->chunk);
    return 0;
}

/* "--name", "--name VALUE" or "--name=VALUE"; *used: words taken. */
static int read_option(struct program_options *options, unsigned int allowed, char **words,
                       int count, int *used)
{
    size_t length = strcspn(words[0], "=");
    const char *value = words[0][length] ? words[0] + length + 1 : NULL;
    const struct option *option = NULL;
    for (size_t k = 0; k < TT_LEN(table); k++) {
        bool takes = (table[k].needs & allowed) == table[k].needs;
        bool same = strlen(table[k].name) == length && !strncmp(table[k].name, words[0], length);
        if (takes && same) option = &table[k];
    }
    *used = 1;
    if (!option) return tutti_usage_error(options->command, "no option %s", words[0]);
    if (!option->value && value)
        return tutti_usage_error(options->command, "%s takes no value", option->name);
    if (option->value && !value) {
        if (count < 2) return tutti_usage_error(options->command, "%s needs a value", option->name);
        value = words[1];
        *used = 2;
    }
    return set_option(options, option->name, value);
}

int program_options_read(struct program_options *options, unsigned int allowed, int argc,
                         char **argv)
{
    options->chunk = -1;
    for (int k = 1, used = 1; k < argc; k += used) {
        int wrong = 0;
        used = 1;
        if (!strcmp(argv[k], "--help") || !strcmp(argv[k], "-h")) return -1;
        if (argv[k][0] == '-' && argv[k][1]) {
            wrong = read_option(options, allowed, argv + k, argc - k, &used);
        } else if (options->npaths == 2) {
            wrong = tutti_usage_error(options->command, "more files than two: %s", argv[k]);
        } else {
            options->paths[options->npaths++] = argv[k];
        }
        if (wrong) return wrong;
    }
    return 0;
}
