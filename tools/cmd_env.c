/* `tutti env`: every variable that the library knows, its value and where that came from. */
#include "tutti.h"
#include "wrap.h"

#include "base/param.h"
#include "plugin/plugin.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void help(FILE *out)
{
    fprintf(
        out,
        "usage: tutti env [--json] [--set] [--obeyed] [NAME...]\n"
        "       tutti env --shell | --home | --machines\n\n"
        "Lists the variables that Tutti knows: value, origin (environment, file, plugin, "
        "default), meaning.\n"
        "One line each, but for a terminal that is narrower.\n\n"
        "  --set      only those that are set, and names in the environment that nobody obeys\n"
        "  --obeyed   without those that have no effect on the host device\n"
        "  --json     an array of objects\n"
        "  --shell    export lines for sh: where programs, compilers, pkg-config, CMake and man "
        "look\n"
        "  --home     the folder laid out as NVIDIA's are (include, lib, lib64, bin), for "
        "NCCL_HOME and\n"
        "             CUDA_HOME; beside NVIDIA's toolkit NCCL_HOME is the folder nccl in it\n"
        "  --machines the folder with machine files to try, for tutti topo and NCCL_TOPO_FILE\n\n"
        "examples:\n"
        "  tutti env NCCL_DEBUG NCCL_SOCKET_IFNAME\n"
        "  eval \"$(tutti env --shell)\"\n"
        "  make NCCL_HOME=\"$(tutti env --home)\" CUDA_HOME=\"$(tutti env --home)\"\n"
        "  tutti topo show \"$(tutti env --machines)/dgxh100.xml\"\n");
}

/* "export NAME='folders'", before what the user's variable holds already. */
static void print_path(const char *name, const char *folders)
{
    printf("export %s=", name);
    tutti_print_quoted(stdout, folders);
    printf("\"${%s:+:$%s}\"\n", name, name);
}

/* The root of a toolkit, by the names that Makefiles and CMake's modules read. */
static void print_roots(const char *home)
{
    static const char *const names[] = {"NCCL_HOME", "NCCL_ROOT", "CUDA_HOME", "CUDA_PATH",
                                        "CUDAToolkit_ROOT"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        printf("export %s=", names[i]);
        tutti_print_quoted(stdout, home);
        putchar('\n');
    }
}

/* Later entries of the search paths stay: ours come first only because the user asked for it. */
static int print_shell(void)
{
    char libraries[8192];
    char home[4096];
    char bin[4096];
    char folders[4 * 4096];
    if (!tutti_library_path(libraries, sizeof(libraries))) return 1;
    print_path("LD_LIBRARY_PATH", libraries);
    if (!tutti_folder(bin, sizeof(bin))) return 1;
    print_path("PATH", bin);
    if (!tutti_home(home, sizeof(home))) {
        fprintf(stderr, "tutti env: this is a build tree: programs find the libraries, compilers "
                        "find nothing; `meson install` makes the folder for them\n");
        return 0;
    }
    print_roots(home);
    snprintf(folders, sizeof(folders), "%s/include", home);
    print_path("CPATH", folders);
    print_path("LIBRARY_PATH", libraries);
    snprintf(folders, sizeof(folders), "%s/pkgconfig:%s/../pkgconfig", libraries, home);
    print_path("PKG_CONFIG_PATH", folders);
    snprintf(folders, sizeof(folders), "%s:%s/..", home, bin);
    print_path("CMAKE_PREFIX_PATH", folders);
    snprintf(folders, sizeof(folders), "%s/../share/man", bin);
    printf("export MANPATH="); /* an empty entry stands for the system's own pages */
    tutti_print_quoted(stdout, folders);
    printf("\":${MANPATH:-}\"\n");
    return 0;
}

static int print_home(void)
{
    char home[4096];
    if (!tutti_home(home, sizeof(home))) {
        fprintf(stderr, "tutti env: this is a build tree and has no such folder; "
                        "`meson install` makes one\n");
        return 1;
    }
    puts(home);
    return 0;
}

static const char *text_or(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

/* A value that the library does not understand, so that the default is used; NULL: nothing. */
static const char *ignored(const struct tt_param *param)
{
    const char *given = tt_param_text(param->name);
    return given && given[0] && !tt_param_is_set(param->name) ? given : NULL;
}

static json_t *as_json(const struct tt_param *param)
{
    const char *value = tt_param_is_set(param->name) ? tt_param_text(param->name) : param->fallback;
    return json_pack(
        "{s:s, s:s?, s:s, s:s?, s:s, s:s, s:s, s:s, s:b, s:s?}", "name", param->name, "value",
        value, "origin", ignored(param) ? "default" : tt_param_origin(param->name), "default",
        param->fallback, "unset", text_or(param->unset, ""), "area", text_or(param->area, ""),
        "values", text_or(param->values, ""), "meaning", text_or(param->meaning, ""), "obeyed",
        param->obeyed, "ignored", ignored(param));
}

struct choice {
    bool json, set, obeyed; /* the others: only those */
};

/* The meaning begins at a column of its own, on narrow terminals in a line of its own. */
static void print_row(const char *name, const char *value, const char *origin, const char *meaning)
{
    enum { MEANING_AT = 67, MEANING_LEAST = 40, MEANING_BELOW = 4 };
    const size_t width = tutti_columns(stdout);
    if (width && width < MEANING_AT + MEANING_LEAST) {
        printf("%-36s %-16s %s\n%*s", name, value, origin, MEANING_BELOW, "");
        tutti_print_wrapped(stdout, meaning, MEANING_BELOW, MEANING_BELOW, width);
        return;
    }
    int at = printf("%-36s %-16s %-12s ", name, value, origin);
    if (width && at > MEANING_AT) at = printf("\n%*s", MEANING_AT, "") - 1;
    tutti_print_wrapped(stdout, meaning, at > 0 ? (size_t)at : 0, MEANING_AT, width);
}

/* "4194304" of a default that the table has as "-2 = 4194304". */
static const char *default_of(const struct tt_param *param)
{
    const size_t bytes = param->fallback && param->unset ? strlen(param->fallback) : 0;
    if (!bytes || strncmp(param->unset, param->fallback, bytes) != 0 ||
        strncmp(param->unset + bytes, " = ", 3) != 0 || strchr(param->unset + bytes + 3, ' '))
        return param->fallback;
    return param->unset + bytes + 3;
}

static void as_text(const struct tt_param *param)
{
    bool set = tt_param_is_set(param->name);
    const char *value = set ? tt_param_text(param->name) : default_of(param);
    const char *wrong = ignored(param);
    char *meaning = NULL;
    if (asprintf(&meaning, "%s%s%s%s%s", text_or(param->meaning, ""),
                 param->obeyed ? "" : " (known; no effect on the host device)", wrong ? " (\"" : "",
                 wrong ? wrong : "", wrong ? "\" is not understood)" : "") < 0)
        return;
    print_row(param->name, text_or(value, "-"), set ? tt_param_origin(param->name) : "default",
              meaning);
    free(meaning);
}

/* Beside the folder of the command, as MANPATH's; in a build tree there are none. */
static int print_machines(void)
{
    char bin[4096];
    char folder[4096 + 32];
    if (!tutti_folder(bin, sizeof(bin))) return 1;
    snprintf(folder, sizeof(folder), "%s/../share/tutti/machines", bin);
    char *real = realpath(folder, NULL);
    if (!real) {
        fprintf(stderr, "tutti env: there is no folder %s; `meson install` makes it\n", folder);
        return 1;
    }
    puts(real);
    free(real);
    return 0;
}

static bool wanted(const struct tt_param *param, char *const *names, int nnames,
                   const struct choice *choice)
{
    if (choice->set && !tt_param_is_set(param->name) && !ignored(param)) return false;
    if (choice->obeyed && !param->obeyed) return false;
    for (int i = 0; i < nnames; i++) {
        if (!strcmp(names[i], param->name)) return true;
    }
    return nnames == 0;
}

static int report_unknown(const struct tt_param *table, size_t count, char *const *names,
                          int nnames)
{
    int status = 0;
    for (int i = 0; i < nnames; i++) {
        size_t k = 0;
        while (k < count && strcmp(table[k].name, names[i]) != 0) {
            k++;
        }
        if (k < count) continue;
        char wrong[256];
        if (tt_param_name_wrong(names[i], wrong, sizeof(wrong))) {
            fprintf(stderr, "tutti env: %s %s\n", names[i], wrong);
        } else {
            fprintf(stderr, "tutti env: no variable %s is known; `tutti env` lists all\n",
                    names[i]);
        }
        status = 1;
    }
    return status;
}

/* Names in the environment that have no effect, so that --set hides no typing mistake. */
static void print_wrong(json_t *list)
{
    for (char **entry = environ; *entry; entry++) {
        char name[128];
        char wrong[256];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="), *entry);
        if (!tt_param_name_wrong(name, wrong, sizeof(wrong))) continue;
        const char *value = getenv(name);
        if (list) {
            json_array_append_new(list, json_pack("{s:s, s:s?, s:s, s:s, s:b}", "name", name,
                                                  "value", value, "origin", "environment",
                                                  "meaning", wrong, "obeyed", 0));
        } else {
            print_row(name, text_or(value, "-"), "environment", wrong);
        }
    }
}

static int print_list(char *const *names, int nnames, const struct choice *choice)
{
    size_t count = 0;
    const struct tt_param *table = tt_param_table(&count);
    json_t *list = choice->json ? json_array() : NULL;
    bool headed = choice->json || choice->set || nnames; /* scripts read those lines */
    tt_env_open();
    tt_param_load();
    for (size_t i = 0; i < count; i++) {
        if (!wanted(&table[i], names, nnames, choice)) continue;
        if (!headed) print_row("NAME", "VALUE", "ORIGIN", "MEANING");
        headed = true;
        if (choice->json) {
            json_array_append_new(list, as_json(&table[i]));
        } else {
            as_text(&table[i]);
        }
    }
    if (choice->set && !nnames) print_wrong(list);
    if (choice->json) {
        json_dumpf(list, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(list);
    }
    return report_unknown(table, count, names, nnames);
}

/* An option that prints something and takes nothing more. NULL: it is none. */
static int (*printer_of(const char *option))(void)
{
    if (!strcmp(option, "--shell")) return print_shell;
    if (!strcmp(option, "--home")) return print_home;
    return !strcmp(option, "--machines") ? print_machines : NULL;
}

/* Options may stand before and behind names. */
int cmd_env(int argc, char **argv)
{
    struct choice choice = {.json = false};
    int nnames = 0;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        int (*printer)(void) = printer_of(option);
        if (printer && argc > 2) {
            return tutti_usage_error("env", "%s takes nothing more, not %s", option,
                                     argv[i > 1 ? 1 : 2]);
        }
        if (printer) return printer();
        if (!strcmp(option, "--help") || !strcmp(option, "-h")) {
            help(stdout);
            return 0;
        }
        if (option[0] != '-') {
            argv[1 + nnames++] = argv[i];
        } else if (!strcmp(option, "--json")) {
            choice.json = true;
        } else if (!strcmp(option, "--set")) {
            choice.set = true;
        } else if (!strcmp(option, "--obeyed")) {
            choice.obeyed = true;
        } else {
            return tutti_unknown(
                "env", "option", option,
                &(struct tutti_words){"--shell,--home,--machines,--json,--set,--obeyed,--help"});
        }
    }
    return print_list(argv + 1, nnames, &choice);
}
