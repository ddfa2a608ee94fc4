/* The command `tutti`: one row a subcommand, one file cmd_<name>.c each. */
#include "tutti.h"

#include "base/text/spelling.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct tutti_command commands[] = {
    {"run", "start a program as several ranks on this machine or on hosts", cmd_run, false},
    {"perf", "measure and check collectives", cmd_perf, false},
    {"topo", "show, explain and compare machines, and what follows from them", cmd_topo, true},
    {"program", "show and compare collectives as data, of files and of the library", cmd_program,
     true},
    {"verify", "prove that such a collective is right, or say where it is not", cmd_verify, false},
    {"tune", "measure this machine, so that the library chooses by its figures", cmd_tune, false},
    {"plugin", "drive a plugin through what a communicator does with it", cmd_plugin, true},
    {"trace", "what the files of a traced run say: summary, check, diff, convert", cmd_trace, true},
    {"doctor", "ask a running job who waits for whom and who is to blame", cmd_doctor, false},
    {"ras", "print the RAS report of a running job", cmd_ras, false},
    {"env", "list every variable with value and origin, or print what to eval", cmd_env, false},
    {"version", "print versions", cmd_version, false},
};

static int help(void)
{
    printf("tutti: collectives with NCCL's interfaces, on any machine\n\n"
           "usage: tutti COMMAND [OPTIONS]     tutti COMMAND --help\n\ncommands:\n");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    }
    printf("\nexamples:\n"
           "  tutti perf --ranks 4 allreduce       four processes on this machine's CPU\n"
           "  tutti run -n 8 ./my_nccl_program     eight ranks of your own program\n"
           "  tutti topo show box.xml              a machine file as a picture of text\n"
           "  tutti verify my_allreduce.xml        is an algorithm of MSCCL right?\n"
           "  eval \"$(tutti env --shell)\"          let the shell find headers and libraries\n");
    return 0;
}

/* What was said may not have arrived: a full disk shows when the last of it is written. */
static int finish(int status)
{
    bool lost = ferror(stdout) != 0;
    errno = 0; /* of a write that failed earlier nothing is known by now */
    if (fflush(stdout) == 0 && !lost) return status;
    fprintf(stderr, "tutti: standard output could not be written%s%s: what arrived is not whole\n",
            errno ? ": " : "", errno ? strerror(errno) : "");
    return status ? status : 1;
}

/* Commands below another one, which people look for at the top. NULL: none. */
static const char *below(const char *name)
{
    static const struct {
        const char *name, *command;
    } rows[] = {
        {"explain", "tutti topo explain"},  {"show", "tutti topo show"},
        {"report", "tutti topo report"},    {"search", "tutti topo search"},
        {"check", "tutti plugin check"},    {"convert", "tutti trace convert"},
        {"summary", "tutti trace summary"}, {"merge", "tutti trace convert"},
        {"list", "tutti program list"},     {"preflight", "tutti doctor --preflight"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!strcmp(name, rows[i].name)) return rows[i].command;
    }
    return NULL;
}

static const struct tutti_command *find(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (!strcmp(name, commands[i].name)) return &commands[i];
    }
    if (below(name)) {
        fprintf(stderr, "tutti: no command '%s'; did you mean `%s`? `tutti help` lists them\n",
                name, below(name));
        return NULL;
    }
    struct tutti_words words = {""};
    char meant[TT_SPELLING_BYTES];
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        tutti_words_add(&words, commands[i].name);
    tt_param_suggest(words.text, name, strlen(name), meant, sizeof(meant));
    fprintf(stderr, "tutti: no command '%s'%s `tutti help` lists them\n", name,
            *meant ? meant : ";");
    return NULL;
}

static bool asks_help(const char *word)
{
    return !strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h");
}

/* `tutti help`, `tutti help run`, `tutti help topo show` */
static int help_on(int argc, char **argv)
{
    char option[] = "--help";
    if (argc < 3) return help();
    const struct tutti_command *command = find(argv[2]);
    if (!command) return 2;
    char *words[] = {argv[2], option, NULL, NULL};
    bool part = command->parts && argc > 3;
    if (part) words[1] = argv[3];
    if (part) words[2] = option;
    return command->run(part ? 3 : 2, words);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        help();
        return finish(2);
    }
    const char *name = argv[1];
    if (asks_help(name)) return finish(help_on(argc, argv));
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) name = "version";
    const struct tutti_command *command = find(name);
    return command ? finish(command->run(argc - 1, argv + 1)) : 2;
}
