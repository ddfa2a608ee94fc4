/* See options.h. */
#include "options.h"

#include "tutti.h"

#include <stdio.h>
#include <string.h>

static int takes(const struct tutti_option_table *table, const struct tutti_option *option)
{
    return (option->needs & table->allowed) == option->needs;
}

const struct tutti_option *tutti_option_take(const struct tutti_option_table *table, char **words,
                                             int count, const char **value_out, int *used_out)
{
    size_t length = strcspn(words[0], "=");
    const char *value = words[0][length] ? words[0] + length + 1 : NULL;
    const struct tutti_option *option = NULL;
    for (size_t k = 0; k < table->count; k++) {
        const char *name = table->rows[k].name;
        bool same = strlen(name) == length && !strncmp(name, words[0], length);
        if (same && takes(table, &table->rows[k])) option = &table->rows[k];
    }
    *used_out = 1;
    *value_out = value;
    if (!option) {
        struct tutti_words known = {"--help"};
        for (size_t k = 0; k < table->count; k++) {
            if (takes(table, &table->rows[k])) tutti_words_add(&known, table->rows[k].name);
        }
        (void)tutti_unknown(table->command, "option", words[0], &known);
    } else if (!option->value && value) {
        tutti_usage_error(table->command, "%s takes no value", option->name);
        option = NULL;
    } else if (option->value && !value && count < 2) {
        tutti_usage_error(table->command, "%s needs a value", option->name);
        option = NULL;
    } else if (option->value && !value) {
        *value_out = words[1];
        *used_out = 2;
    }
    return option;
}

void tutti_option_help(const struct tutti_option_table *table)
{
    printf("\noptions:\n");
    for (size_t k = 0; k < table->count; k++) {
        const struct tutti_option *option = &table->rows[k];
        char left[40];
        if (!takes(table, option)) continue;
        (void)snprintf(left, sizeof(left), "%s%s%s", option->name, option->value ? " " : "",
                       option->value ? option->value : "");
        printf("  %-16s %s\n", left, option->help);
    }
}
