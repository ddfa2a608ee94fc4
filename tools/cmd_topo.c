/* `tutti topo`: machines as the library sees them, from files in NCCL's format. One row for each of
 * its own subcommands. */
#include "tutti.h"

#include "topo/machine.h"

#include <stdio.h>
#include <string.h>

struct topo_command {
    const char *name;
    const char *arguments;
    const char *summary;
    int npaths;
    int (*run)(const struct topo_options *options);
};

static const struct topo_command commands[] = {
    {"show", "[FILE]", "its parts as a tree, and who reaches whom how (--p2p: by direct access)", 1,
     topo_show},
    {"explain", "[FILE]", "why channels run where they do, what limits them, what would help", 1,
     topo_explain},
    {"search", "[FILE]", "its channels in a communicator of --nodes of them", 1, topo_search},
    {"diff", "FILE FILE", "what two machines do not have in common (exit 1: something)", 2,
     topo_diff},
    {"check", "[FILE]", "is the file sound? exit 0: yes, perhaps with warnings; 1: no", 1,
     topo_check},
    {"export", "[FILE]", "graph, paths, access, channels, layout as JSON", 1, topo_export},
};

static const char options_help[] =
    "\noptions:\n"
    "  --nodes N[,N...]     that many equal machines in a communicator (default 1)\n"
    "  --clique N           N hosts in one NVLink domain are a node\n"
    "  --load-order fused   elements in the order of a running communicator (default: file)\n"
    "  --json               JSON instead of text\n"
    "  --svg                show, search: a picture instead of text\n"
    "  --xml                show: a machine file; search: a graph file (NCCL_GRAPH_FILE)\n"
    "  --p2p                show: direct access between GPUs\n"
    "  --time               search: how long it took, and memory per rank\n";

static const char examples_help[] = "\nexamples:\n"
                                    "  tutti topo show dgx.xml\n"
                                    "  tutti topo show dgx.xml --svg > dgx.svg\n"
                                    "  tutti topo explain dgx.xml --nodes 2\n"
                                    "  tutti topo search dgx.xml --nodes 1,512 --time\n"
                                    "  tutti topo diff bought.xml delivered.xml --nodes 1,2\n"
                                    "  tutti topo check dgx.xml\n"
                                    "  tutti topo show --xml > here.xml\n"
                                    "  tutti topo export dgx.xml --json --nodes 1,2,16\n";

static void help(void)
{
    printf("usage: tutti topo COMMAND [FILE] [OPTIONS]\n\n"
           "Reads machine files in NCCL's format (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE); without\n"
           "FILE, looks at this machine. Obeys NCCL's variables, NCCL_GRAPH_FILE too.\n\n"
           "commands:\n");
    for (size_t k = 0; k < sizeof(commands) / sizeof(commands[0]); k++) {
        printf("  %-8s %-12s %s\n", commands[k].name, commands[k].arguments, commands[k].summary);
    }
    printf("%s%s", options_help, examples_help);
}

static int run(const struct topo_command *command, int argc, char **argv)
{
    struct topo_options options;
    int status = topo_options_read(&options, argc, argv, help);
    if (status) return status < 0 ? 0 : status;
    bool detect = options.npaths == 0 && command->npaths == 1; /* of this machine, then */
    if (options.npaths != command->npaths && !detect) {
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
    for (size_t k = 0; k < sizeof(commands) / sizeof(commands[0]); k++) {
        if (!strcmp(name, commands[k].name)) return run(&commands[k], argc - 1, argv + 1);
    }
    return tutti_usage_error("topo", "no command '%s'", name);
}
