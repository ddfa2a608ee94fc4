/* `tutti topo`: machines as the library sees them, from files in NCCL's format. One row for each of
 * its own subcommands. */
#include "tutti.h"

#include "topo/machine.h"

#include <stdio.h>
#include <string.h>

enum { ANY = -1 };

struct topo_command {
    const char *name;
    const char *arguments;
    const char *summary;
    const char *examples;
    int npaths; /* files; ANY: as many as there are */
    int (*run)(const struct topo_options *options);
};

static const struct topo_command commands[] = {
    /* in the order of TOPO_SHOW ... */
    {"show", "[FILE]", "its parts as a tree, and who reaches whom how (--p2p: by direct access)",
     "  tutti topo show dgx.xml\n"
     "  tutti topo show dgx.xml --svg > dgx.svg\n"
     "  tutti topo show --net-plugin ./libnccl-net-mine.so\n"
     "  tutti topo show --xml > here.xml\n",
     1, topo_show},
    {"explain", "[FILE]", "why channels run where they do, what limits them, what would help",
     "  tutti topo explain dgx.xml --nodes 2\n"
     "  NCCL_P2P_LEVEL=NVL tutti topo explain dgx.xml\n",
     1, topo_explain},
    {"search", "[FILE]", "its channels in a communicator of --nodes of them",
     "  tutti topo search dgx.xml --nodes 1,512 --time\n"
     "  tutti topo search dgx.xml --nodes 2 --svg > channels.svg\n",
     1, topo_search},
    {"diff", "FILE FILE",
     "how two machines differ: a verdict, then lines (exit 0: not; 1: they do; 2: trouble)",
     "  tutti topo diff bought.xml delivered.xml --nodes 1,2\n", 2, topo_diff},
    {"check", "[FILE]", "is the file sound? exit 0: yes, perhaps with warnings; 1: no",
     "  tutti topo check dgx.xml\n", 1, topo_check},
    {"export", "[FILE]", "graph, paths, access, channels, layout as JSON",
     "  tutti topo export dgx.xml --json --nodes 1,2,16\n", 1, topo_export},
    {"report", "[FILE...]", "a page of HTML for each: tree, paths, channels, what would be faster",
     "  tutti topo report dgx.xml --output - > dgx.html\n"
     "  tutti topo report racks/*.xml --nodes 1,16 --output pages\n",
     ANY, topo_report},
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const char about_files[] =
    "Reads machine files in NCCL's format (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE), - from\n"
    "standard input; without FILE, looks at this machine. Obeys NCCL's variables,\n"
    "NCCL_GRAPH_FILE too.\n";

static void help(void)
{
    printf("usage: tutti topo COMMAND [FILE] [OPTIONS]     tutti topo COMMAND --help\n\n%s\n"
           "commands:\n",
           about_files);
    for (size_t k = 0; k < COMMANDS; k++)
        printf("  %-8s %-12s %s\n", commands[k].name, commands[k].arguments, commands[k].summary);
    topo_options_help((1U << COMMANDS) - 1);
    printf("\nexamples:\n");
    for (size_t k = 0; k < COMMANDS; k++)
        (void)fputs(commands[k].examples, stdout);
}

static void help_with(size_t which)
{
    const struct topo_command *command = &commands[which];
    printf("usage: tutti topo %s %s [OPTIONS]\n\n%s: %s.\n\n%s", command->name, command->arguments,
           command->name, command->summary, about_files);
    topo_options_help(1U << which);
    printf("\nexamples:\n%s", command->examples);
}

static int run(size_t which, int argc, char **argv)
{
    const struct topo_command *command = &commands[which];
    struct topo_options options;
    int status = topo_options_read(&options, 1U << which, argc, argv);
    if (status < 0) help_with(which);
    if (status) return status < 0 ? 0 : status;
    bool detect = options.npaths == 0 && command->npaths != 2; /* of this machine, then */
    if (command->npaths != ANY && options.npaths != command->npaths && !detect) {
        return tutti_usage_error("topo", "usage: tutti topo %s %s", command->name,
                                 command->arguments);
    }
    return command->run(&options);
}

int cmd_topo(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        help();
        return argc > 1 ? 0 : 2;
    }
    for (size_t k = 0; k < COMMANDS; k++) {
        if (!strcmp(name, commands[k].name)) return run(k, argc - 1, argv + 1);
    }
    struct tutti_words words = {""};
    for (size_t k = 0; k < COMMANDS; k++)
        tutti_words_add(&words, commands[k].name);
    return tutti_unknown("topo", "command", name, &words);
}
