/* `tutti trace`: what the files of a traced run say. One row for each of its own subcommands. */
#include "options.h"
#include "trace/tool.h"
#include "tutti.h"

#include "base/mem.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct trace_command {
    const char *name, *full_name;
    const char *arguments;
    const char *summary;
    const char *examples;
    unsigned int allowed; /* enum trace_option */
    int (*run)(const struct trace_options *options);
};

static const struct trace_command commands[] = {
    {"summary", "trace summary", "PATH...",
     "per collective: count, bytes, time, bandwidth, who came last (without a command: this)",
     "  tutti trace tutti-trace.*.jsonl\n"
     "  tutti trace summary --json traces/ > summary.json\n",
     TRACE_JSON, trace_summary},
    {"check", "trace check", "PATH...",
     "are all events ended, all parents there, all ranks at the same operations? (exit 0: yes)",
     "  tutti trace check traces/\n", TRACE_JSON, trace_check},
    {"diff", "trace diff", "A B",
     "two runs, each a file or a folder (exit 0: alike; 1: they differ; 2: trouble)",
     "  tutti trace diff before/ after/\n", TRACE_JSON | TRACE_BY, trace_diff},
    {"convert", "trace convert", "PATH...",
     "the run for other tools: perfetto, chrome or perfetto-json (ui.perfetto.dev), otf2 (Vampir), "
     "jsonl, inspector, prometheus",
     "  tutti trace convert --to perfetto -o run.pftrace traces/\n"
     "  tutti trace convert --to otf2 -o archive traces/\n"
     "  tutti trace convert --to prometheus traces/\n",
     TRACE_TO | TRACE_OUTPUT, trace_convert},
    {"page", "trace page", "PATH...",
     "the run as one HTML file: timeline, stragglers, critical paths; needs nothing but a browser",
     "  tutti trace page -o run.html traces/\n", TRACE_OUTPUT | TRACE_EVENTS | TRACE_DETAILS,
     trace_page},
};

static const char about[] =
    "PATH is a file that libnccl-profiler-tutti.so wrote (TUTTI_TRACE_FILE), a folder of such\n"
    "files (*.jsonl, *.jsonl.1 ...), or - for standard input. The files of all ranks of one run\n"
    "belong together: clocks of several hosts are aligned, and operations are matched over all\n"
    "ranks.\n";

/* needs: enum trace_option */
static const struct tutti_option rows[] = {
    {"--json", NULL, "JSON instead of text", TRACE_JSON},
    {"--to", "FORMAT", "perfetto, chrome, perfetto-json, otf2, jsonl, inspector or prometheus",
     TRACE_TO},
    {"-o", "FILE", "where to (default: standard output); of otf2 a new folder", TRACE_OUTPUT},
    {"--by", "PERCENT", "diff: times at p50 that differ by more count (default: 10)", TRACE_BY},
    {"--events", "N", "page: about so many bars at most; short ones are joined (default: 1000000)",
     TRACE_EVENTS},
    {"--details", "N", "page: up to N joined events are seen when zoomed in (default: 20000000)",
     TRACE_DETAILS},
    {"--types", "LIST", "only events of these types, as in Coll,KernelCh (default: all)", 0},
    {"--memory", "MIB", "at most so much for events (default: half of the machine's)", 0},
};

static struct tutti_option_table options_of(const char *command, unsigned int allowed)
{
    return (struct tutti_option_table){rows, TT_LEN(rows), allowed, command};
}

static void help(const struct trace_command *command)
{
    struct tutti_option_table table = options_of("trace", command ? command->allowed : 0);
    if (command) {
        printf("usage: tutti trace %s %s [OPTIONS]\n\n%s: %s.\n\n%s", command->name,
               command->arguments, command->name, command->summary, about);
        tutti_option_help(&table);
        printf("\nexamples:\n%s", command->examples);
        return;
    }
    printf("usage: tutti trace [COMMAND] PATH... [OPTIONS]     tutti trace COMMAND --help\n\n%s\n"
           "commands:\n",
           about);
    for (size_t k = 0; k < TT_LEN(commands); k++) {
        printf("  %-8s %-8s %s\n", commands[k].name, commands[k].arguments, commands[k].summary);
        table.allowed |= commands[k].allowed;
    }
    tutti_option_help(&table);
    printf("\nexamples:\n");
    for (size_t k = 0; k < TT_LEN(commands); k++)
        (void)fputs(commands[k].examples, stdout);
}

/* ---- options ---- */

static int set_types(struct trace_options *options, const char *list)
{
    options->types = 0;
    while (*list) {
        size_t bytes = strcspn(list, ",");
        int type = 0;
        for (; type < TIMELINE_TYPE_COUNT_; type++) {
            const char *name = timeline_type_name((enum timeline_type)type);
            if (strlen(name) == bytes && !strncmp(name, list, bytes)) break;
        }
        if (type == TIMELINE_TYPE_COUNT_) {
            return tutti_usage_error(options->command, "no type of events is called '%.*s'",
                                     (int)bytes, list);
        }
        options->types |= 1u << type;
        list += bytes;
        list += *list == ',';
    }
    return 0;
}

static int set_option(struct trace_options *options, const char *name, const char *value)
{
    long mib = 0;
    if (!strcmp(name, "--json")) options->json = true;
    if (!strcmp(name, "--to")) options->to = value;
    if (!strcmp(name, "-o")) options->output = value;
    if (!strcmp(name, "--by")) {
        if (tutti_parse_int(value, 0, 1000000, &options->percent)) return 0;
        return tutti_usage_error(options->command, "--by: '%s' is no number of percent", value);
    }
    if (!strcmp(name, "--events")) {
        if (tutti_parse_int(value, 1000, 100000000, &options->events)) return 0;
        return tutti_usage_error(options->command, "--events: '%s' is no number from 1000 on",
                                 value);
    }
    if (!strcmp(name, "--details")) {
        if (tutti_parse_int(value, 0, 1000000000, &options->details)) return 0;
        return tutti_usage_error(options->command, "--details: '%s' is no number", value);
    }
    if (!strcmp(name, "--types")) return set_types(options, value);
    if (strcmp(name, "--memory") != 0) return 0;
    if (!tutti_parse_int(value, 1, 1 << 24, &mib))
        return tutti_usage_error(options->command, "--memory: '%s' is no number of MiB", value);
    options->limit_bytes = (size_t)mib << 20;
    return 0;
}

static size_t half_of_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (size_t)pages / 2 * (size_t)bytes : 0;
}

/* 0: done; -1: help is wanted; 2: wrong, and said. */
static int read_options(struct trace_options *options, unsigned int allowed, int argc, char **argv)
{
    options->types = (1u << TIMELINE_TYPE_COUNT_) - 1;
    options->limit_bytes = half_of_memory();
    options->percent = 10;
    options->events = 1000000;
    options->details = 20000000;
    const struct tutti_option_table table = options_of(options->command, allowed);
    for (int k = 0, used = 1; k < argc; k += used) {
        const struct tutti_option *option;
        const char *value;
        int wrong = 0;
        used = 1;
        if (!strcmp(argv[k], "--help") || !strcmp(argv[k], "-h")) return -1;
        if (argv[k][0] == '-' && argv[k][1]) {
            option = tutti_option_take(&table, argv + k, argc - k, &value, &used);
            wrong = option ? set_option(options, option->name, value) : 2;
        } else {
            options->paths[options->npaths++] = argv[k];
        }
        if (wrong) return wrong;
    }
    if (options->npaths == 0) return tutti_usage_error(options->command, "no file is named");
    return 0;
}

int trace_load(const struct trace_options *options, int first, int count, struct timeline *run)
{
    bool good = timeline_open(run);
    run->types = options->types;
    run->limit_bytes = options->limit_bytes;
    for (int k = first; good && k < first + count; k++)
        good = timeline_read(run, options->paths[k]);
    if (good && run->nprocesses == 0) {
        (void)fprintf(stderr, "tutti trace: no line `head` in what was read: these are no files of "
                              "libnccl-profiler-tutti.so\n");
        good = false;
    }
    if (good) good = timeline_finish(run);
    return good ? 0 : 1;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* An output that is read as well: overwritten before, or taken twice the next time. */
static int check_output(const struct trace_options *options)
{
    const char *name = options->output;
    char folder[PATH_MAX];
    struct stat file, parent, path;
    if (!name || !strcmp(name, "-")) return 0;
    const char *slash = strrchr(name, '/');
    int length = slash ? (int)(slash - name) + 1 : 0;
    (void)snprintf(folder, sizeof(folder), "%.*s.", length, name);
    bool there = stat(name, &file) == 0 && S_ISREG(file.st_mode);
    bool inside = stat(folder, &parent) == 0;
    inside = inside && timeline_is_trace(name + length);
    for (int k = 0; k < options->npaths; k++) {
        if (stat(options->paths[k], &path) != 0) continue;
        if ((there && is_same_file(&path, &file)) || (inside && is_same_file(&path, &parent))) {
            return tutti_usage_error(options->command, "-o %s would be read with %s", name,
                                     options->paths[k]);
        }
    }
    return 0;
}

static int run_command(const struct trace_command *command, int argc, char **argv)
{
    struct trace_options options = {.command = command->full_name};
    options.paths = tt_calloc((size_t)argc + 1, sizeof(options.paths[0]));
    if (!options.paths) return tutti_usage_error("trace", "out of memory");
    int status = read_options(&options, command->allowed, argc, argv);
    if (status == 0) status = check_output(&options);
    if (status == 0) status = command->run(&options);
    if (status < 0) help(command);
    free((void *)options.paths);
    return status < 0 ? 0 : status;
}

int cmd_trace(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        help(NULL);
        return argc > 1 ? 0 : 2;
    }
    for (size_t k = 0; k < TT_LEN(commands); k++) {
        if (!strcmp(name, commands[k].name)) return run_command(&commands[k], argc - 2, argv + 2);
    }
    if (strcspn(name, "/.*") < strlen(name) || *name == '-' || access(name, F_OK) == 0)
        return run_command(&commands[0], argc - 1, argv + 1);
    struct tutti_words words = {""};
    for (size_t k = 0; k < TT_LEN(commands); k++)
        tutti_words_add(&words, commands[k].name);
    return tutti_unknown("trace", "command and no file", name, &words);
}
