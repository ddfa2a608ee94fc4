/* Tables of options, for commands whose subcommands take different ones. */
#pragma once

#include <stddef.h>

struct tutti_option {
    const char *name, *value, *help; /* value: what stands for it in the help; NULL: takes none */
    unsigned int needs;              /* bits that a command must have; 0: all commands take it */
};

struct tutti_option_table {
    const struct tutti_option *rows;
    size_t count;
    unsigned int allowed; /* bits of the command */
    const char *command;  /* for messages: "trace diff" */
};

/* The option that begins at words[0] ("--name", "--name VALUE" or "--name=VALUE"), of `count` words
 * that are left. *value_out is borrowed from the words, NULL for an option that takes none;
 * *used_out is 1 or 2, the words taken. NULL: wrong, and said. */
const struct tutti_option *tutti_option_take(const struct tutti_option_table *table, char **words,
                                             int count, const char **value_out, int *used_out);
/* The part "options:" of a help text, on standard output. */
void tutti_option_help(const struct tutti_option_table *table);
