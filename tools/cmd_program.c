/* `tutti program`: collectives as data. One row for each of its own subcommands. */
#include "tutti.h"

#include "base/mem.h"
#include "program/program_tool.h"

#include <string.h>

struct program_command {
    const char *name, *full_name;
    const char *arguments;
    const char *summary;
    const char *examples;
    unsigned int allowed; /* enum program_option */
    int (*run)(const struct program_options *options);
};

static const struct program_command commands[] = {
    {"list", "program list", "", "the algorithms of the library, by collective",
     "  tutti program list\n", PROGRAM_JSON, program_list},
    {"show", "program show", "[FILE]",
     "a program as a listing, as JSON with its messages, as a picture",
     "  tutti program show my_allreduce.xml\n"
     "  tutti program show --algo ring --op allreduce --ranks 4 --svg > ring.svg\n"
     "  tutti program show my_allreduce.xml --svg --chunk 0 > chunk0.svg\n",
     PROGRAM_JSON | PROGRAM_SVG | PROGRAM_CHUNK, program_show},
    {"check", "program check", "[FILE]", "is it right? the same as tutti verify",
     "  tutti program check my_allreduce.xml\n", PROGRAM_JSON, program_verify},
    {"export", "program export", "[FILE]", "the same in MSCCL's XML, as far as that can say it",
     "  tutti program export --algo ring --op allreduce --ranks 8 > ring8.xml\n", 0,
     program_export},
    {"diff", "program diff", "FILE [FILE]",
     "how two programs differ (exit 0: not; 1: they do; 2: trouble)",
     "  tutti program diff before.xml after.xml\n", PROGRAM_JSON, program_diff},
};

static const char search_summary[] = "programs with the fewest steps and rounds, by a SAT solver";
static const char search_examples[] =
    "  tutti program search --op allgather --topology dgx1v -o found\n"
    "  tutti program search --op allreduce --topology ring --ranks 8 --size 1M\n";

/* It takes options of its own. */
static int run_search(int argc, char **argv)
{
    int status = program_search(argc, argv);
    if (status >= 0) return status;
    printf("usage: tutti program search --op O [OPTIONS]\n\n");
    program_search_help();
    printf("\nexamples:\n%s", search_examples);
    return 0;
}

static const char about[] =
    "A program says which chunks move where, for all ranks. FILE is an algorithm in MSCCL's XML\n"
    "or a plan of MSCCL++ (-: standard input); --algo, --op and --ranks name one of the library's, "
    "over a ring in the\n"
    "order of ranks or a binary tree.\n";

static void help(void)
{
    printf("usage: tutti program COMMAND [FILE] [OPTIONS]     tutti program COMMAND --help\n\n%s\n"
           "commands:\n",
           about);
    for (size_t k = 0; k < TT_LEN(commands); k++)
        printf("  %-6s %-12s %s\n", commands[k].name, commands[k].arguments, commands[k].summary);
    printf("  %-6s %-12s %s\n", "search", "", search_summary);
    program_options_help(PROGRAM_JSON | PROGRAM_SVG | PROGRAM_CHUNK);
    printf("\nexamples:\n");
    for (size_t k = 0; k < TT_LEN(commands); k++)
        (void)fputs(commands[k].examples, stdout);
    (void)fputs(search_examples, stdout);
}

static int run(const struct program_command *command, int argc, char **argv)
{
    struct program_options options = {.command = command->full_name};
    int status = program_options_read(&options, command->allowed, argc, argv);
    if (status < 0) {
        printf("usage: tutti program %s %s [OPTIONS]\n\n%s: %s.\n\n%s", command->name,
               command->arguments, command->name, command->summary, about);
        program_options_help(command->allowed);
        printf("\nexamples:\n%s", command->examples);
    }
    if (status) return status < 0 ? 0 : status;
    return command->run(&options);
}

int cmd_program(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        help();
        return argc > 1 ? 0 : 2;
    }
    for (size_t k = 0; k < TT_LEN(commands); k++) {
        if (!strcmp(name, commands[k].name)) return run(&commands[k], argc - 1, argv + 1);
    }
    if (!strcmp(name, "search")) return run_search(argc - 1, argv + 1);
    struct tutti_words words = {"search"};
    for (size_t k = 0; k < TT_LEN(commands); k++)
        tutti_words_add(&words, commands[k].name);
    return tutti_unknown("program", "command", name, &words);
}
