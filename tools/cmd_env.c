/* `tutti env`: every variable that the library knows, its value and where that came from. */
#include "tutti.h"

#include "base/param.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void help(FILE *out)
{
    fprintf(out,
            "usage: tutti env [--json] [--set] [NAME...]\n"
            "       tutti env --shell\n\n"
            "Lists the variables that Tutti knows: value, origin (environment, file, default), "
            "meaning.\n\n"
            "  --set      only those that are set\n"
            "  --json     an array of objects\n"
            "  --shell    export lines for a shell, so that compilers and programs find Tutti\n\n"
            "examples:\n"
            "  tutti env NCCL_DEBUG NCCL_SOCKET_IFNAME\n"
            "  eval \"$(tutti env --shell)\"\n");
}

/* Later entries of the search paths stay: ours come first only because the user asked for it. */
static int print_shell(void)
{
    char libraries[8192];
    char prefix[4096];
    if (!tutti_library_path(libraries, sizeof(libraries))) return 1;
    tutti_prefix(prefix, sizeof(prefix));
    printf("export LD_LIBRARY_PATH='%s'\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"\n", libraries);
    if (*prefix) {
        printf("export PATH='%s/bin'\"${PATH:+:$PATH}\"\n", prefix);
        printf(
            "export PKG_CONFIG_PATH='%s/lib/pkgconfig'\"${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}\"\n",
            prefix);
    }
    return 0;
}

static const char *text_or(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

static json_t *as_json(const struct tt_param *param)
{
    const char *value = tt_param_is_set(param->name) ? getenv(param->name) : param->fallback;
    return json_pack("{s:s, s:s?, s:s, s:s?, s:s, s:s, s:s, s:b}", "name", param->name, "value",
                     value, "origin", tt_param_origin(param->name), "default", param->fallback,
                     "area", text_or(param->area, ""), "values", text_or(param->values, ""),
                     "meaning", text_or(param->meaning, ""), "obeyed", param->obeyed);
}

static void as_text(const struct tt_param *param)
{
    bool set = tt_param_is_set(param->name);
    const char *value = set ? getenv(param->name) : param->fallback;
    printf("%-36s %-16s %-12s %s%s\n", param->name, text_or(value, "-"),
           set ? tt_param_origin(param->name) : "default", text_or(param->meaning, ""),
           param->obeyed ? "" : " (known; no effect on the host device)");
}

static bool wanted(const struct tt_param *param, char *const *names, int nnames, bool only_set)
{
    if (only_set && !tt_param_is_set(param->name)) return false;
    for (int i = 0; i < nnames; i++) {
        if (!strcmp(names[i], param->name)) return true;
    }
    return nnames == 0;
}

static int tell_unknown(const struct tt_param *table, size_t count, char *const *names, int nnames)
{
    int status = 0;
    for (int i = 0; i < nnames; i++) {
        size_t k = 0;
        while (k < count && strcmp(table[k].name, names[i]) != 0) {
            k++;
        }
        if (k < count) continue;
        fprintf(stderr, "tutti env: no variable %s is known; `tutti env` lists all\n", names[i]);
        status = 1;
    }
    return status;
}

static int print_list(char *const *names, int nnames, bool only_set, bool json)
{
    size_t count = 0;
    const struct tt_param *table = tt_param_table(&count);
    json_t *list = json ? json_array() : NULL;
    tt_param_load();
    for (size_t i = 0; i < count; i++) {
        if (!wanted(&table[i], names, nnames, only_set)) continue;
        if (json) {
            json_array_append_new(list, as_json(&table[i]));
        } else {
            as_text(&table[i]);
        }
    }
    if (json) {
        json_dumpf(list, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(list);
    }
    return tell_unknown(table, count, names, nnames);
}

int cmd_env(int argc, char **argv)
{
    bool json = false;
    bool only_set = false;
    int first = 1;
    for (; first < argc && argv[first][0] == '-'; first++) {
        const char *option = argv[first];
        if (!strcmp(option, "--shell")) return print_shell();
        if (!strcmp(option, "--help") || !strcmp(option, "-h")) {
            help(stdout);
            return 0;
        }
        if (!strcmp(option, "--json")) {
            json = true;
        } else if (!strcmp(option, "--set")) {
            only_set = true;
        } else {
            return tutti_usage_error("env", "no option %s", option);
        }
    }
    return print_list(argv + first, argc - first, only_set, json);
}
