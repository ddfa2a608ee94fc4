/* Options of `tutti topo` and reading a machine. */
#include "machine.h"
#include "tutti.h"

#include "base/error.h"
#include "base/param.h"
#include "plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NODES = 65536, MOST_HOSTS = 256 };
enum {
    LOOKING = TOPO_SHOW | TOPO_EXPLAIN | TOPO_SEARCH | TOPO_DIFF | TOPO_CHECK | TOPO_EXPORT,
    EVERY = LOOKING | TOPO_REPORT,
    PLACING = TOPO_EXPLAIN | TOPO_SEARCH | TOPO_DIFF | TOPO_EXPORT | TOPO_REPORT,
};

struct option {
    const char *name, *value, *help;
    unsigned commands; /* that take it */
};

static const struct option table[] = {
    {"--nodes", "N[,N...]",
     "that many equal machines in a communicator (default 1; diff, report: 1,2)", PLACING},
    {"--clique", "N", "N hosts in one NVLink domain are a node", EVERY},
    {"--load-order", "fused", "elements in the order of a running communicator (default: file)",
     EVERY},
    {"--net-plugin", "FILE", "with the NICs of this network plugin, instead of the machine's own",
     EVERY},
    {"--json", NULL, "JSON instead of text", LOOKING},
    {"--svg", NULL, "a picture instead of text", TOPO_SHOW | TOPO_SEARCH},
    {"--xml", NULL, "show: a machine file; search: a graph file (NCCL_GRAPH_FILE)",
     TOPO_SHOW | TOPO_SEARCH},
    {"--p2p", NULL, "direct access between GPUs", TOPO_SHOW},
    {"--output", "FOLDER",
     "(or -o) of the pages (default: this one); or NAME.html, or - for one page", TOPO_REPORT},
    {"--strict", NULL, "exit 1 on warnings too", TOPO_CHECK},
    {"--time", NULL, "how long the search took, and memory per rank", TOPO_SEARCH},
};

static const char *const names[] = {"show",  "explain", "search", "diff",
                                    "check", "export",  "report"};

/* "show, search" */
static void list_commands(unsigned commands, char *text, size_t bytes)
{
    size_t at = 0;
    text[0] = '\0';
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]) && at < bytes; k++) {
        if (!(commands & (1U << k))) continue;
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", at ? ", " : "", names[k]);
    }
}

void topo_options_help(unsigned commands)
{
    printf("\noptions:\n");
    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        char left[40];
        char who[64];
        const char *value = table[k].value;
        if (!(table[k].commands & commands)) continue;
        (void)snprintf(left, sizeof(left), "%s%s%s", table[k].name, value ? " " : "",
                       value ? value : "");
        list_commands(table[k].commands, who, sizeof(who));
        bool says = strchr(table[k].help, ':') && !strncmp(table[k].help, "show:", 5);
        bool all = table[k].commands == EVERY || commands != EVERY || says;
        printf("  %-20s %s%s%s\n", left, all ? "" : who, all ? "" : ": ", table[k].help);
    }
}

static bool read_counts(struct topo_options *options, const char *text)
{
    char *end;
    for (options->ncounts = 0; options->ncounts < TOPO_MOST_COUNTS; text = end + 1) {
        long count = strtol(text, &end, 10);
        bool plain = *text >= '0' && *text <= '9';
        if (end == text || !plain || count < 1 || count > MOST_NODES) return false;
        options->nodes[options->ncounts++] = (int)count;
        if (*end == '\0') return true;
        if (*end != ',') return false;
    }
    return false;
}

static void set_flag(struct topo_options *options, const char *name)
{
    if (!strcmp(name, "--json")) options->json = true;
    if (!strcmp(name, "--svg")) options->svg = true;
    if (!strcmp(name, "--xml")) options->xml = true;
    if (!strcmp(name, "--time")) options->time = true;
    if (!strcmp(name, "--p2p")) options->p2p = true;
    if (!strcmp(name, "--strict")) options->strict = true;
}

/* An option with a value; 0, or 2 after saying what is wrong. */
static int read_value(struct topo_options *options, const char *name, const char *value)
{
    long number = 0;
    if (strcmp(name, "--nodes") == 0) {
        if (read_counts(options, value)) return 0;
        return tutti_usage_error("topo",
                                 "--nodes: '%s' is no list of up to %d numbers from 1 to %d", value,
                                 (int)TOPO_MOST_COUNTS, (int)MOST_NODES);
    }
    if (strcmp(name, "--clique") == 0) {
        if (!tutti_parse_int(value, 1, MOST_HOSTS, &number)) {
            return tutti_usage_error("topo", "--clique: '%s' is no number of hosts from 1 to %d",
                                     value, (int)MOST_HOSTS);
        }
        options->look.hosts = (int)number;
        return 0;
    }
    if (strcmp(name, "--net-plugin") == 0) {
        options->net_plugin = value;
        return *value ? 0 : tutti_usage_error("topo", "the name behind --net-plugin is empty");
    }
    if (strcmp(name, "--output") == 0) {
        options->output = value;
        return *value ? 0 : tutti_usage_error("topo", "the name behind --output is empty");
    }
    if (strcmp(value, "fused") != 0 && strcmp(value, "file") != 0) {
        return tutti_usage_error("topo", "--load-order: '%s' is neither fused nor file", value);
    }
    options->look.fused = strcmp(value, "fused") == 0;
    return 0;
}

/* "--name", "--name VALUE" or "--name=VALUE"; *used: words taken. */
static int read_option(struct topo_options *options, char **words, int count, int *used)
{
    const char *word = strcmp(words[0], "-o") == 0 ? "--output" : words[0];
    size_t length = strcspn(word, "=");
    const char *value = word[length] ? word + length + 1 : NULL;
    const struct option *option = NULL;
    char who[64];
    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        if (strlen(table[k].name) == length && !strncmp(table[k].name, word, length))
            option = &table[k];
    }
    *used = 1;
    if (!option) {
        struct tutti_words known = {"--help"};
        for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
            if (table[k].commands & options->command) tutti_words_add(&known, table[k].name);
        }
        return tutti_unknown("topo", "option", words[0], &known);
    }
    if (!(option->commands & options->command)) {
        list_commands(option->commands, who, sizeof(who));
        return tutti_usage_error("topo", "%s belongs to: %s", option->name, who);
    }
    if (!option->value) {
        if (value) return tutti_usage_error("topo", "%s takes no value", option->name);
        set_flag(options, option->name);
        return 0;
    }
    if (!value) {
        if (count < 2) return tutti_usage_error("topo", "%s needs a value", option->name);
        value = words[1];
        *used = 2;
    }
    return read_value(options, option->name, value);
}

/* Which of them do not go together. */
static int check_together(const struct topo_options *options)
{
    int forms = options->json + options->svg + options->xml;
    bool one = options->svg || options->xml || options->command == TOPO_EXPLAIN;
    if (forms > 1) return tutti_usage_error("topo", "only one of --json, --svg and --xml");
    if ((options->time || options->p2p) && (options->svg || options->xml)) {
        return tutti_usage_error("topo", "%s has no place in %s",
                                 options->time ? "--time" : "--p2p",
                                 options->svg ? "a picture (--svg)" : "a file (--xml)");
    }
    if (one && options->ncounts > 1) {
        return tutti_usage_error("topo", "--nodes: one number only for %s",
                                 options->svg   ? "a picture"
                                 : options->xml ? "a graph file"
                                                : "explain");
    }
    for (int k = 0; k < options->ncounts; k++) {
        if (options->nodes[k] <= MOST_NODES) continue;
        return tutti_usage_error("topo", "--nodes: %d nodes are more than %d", options->nodes[k],
                                 (int)MOST_NODES);
    }
    return 0;
}

/* Without direct access between GPUs there is no NVLink domain: its hosts are nodes of their own.
 */
static void leave_domain(struct topo_options *options)
{
    const char *level = tt_param_str("NCCL_P2P_LEVEL");
    bool off = tt_param_int("NCCL_MNNVL_ENABLE") == 0;
    bool none = tt_param_bool("NCCL_P2P_DISABLE") ||
                (level && (strcmp(level, "LOC") == 0 || strcmp(level, "PATH_LOC") == 0 ||
                           strcmp(level, "0") == 0));
    int hosts = options->look.hosts;
    if (hosts < 2 || (!off && !none)) return;
    (void)fprintf(stderr, "no NVLink domain (%s): its %d hosts are %d nodes\n",
                  off ? "NCCL_MNNVL_ENABLE=0" : "no direct access between GPUs", hosts, hosts);
    for (int k = 0; k < options->ncounts; k++)
        options->nodes[k] *= hosts;
    options->look.hosts = 0;
}

int topo_options_read(struct topo_options *options, unsigned command, int argc, char **argv)
{
    tt_env_open();
    *options = (struct topo_options){.command = command, .nodes = {1, 2}, .ncounts = 1};
    if (command & (TOPO_REPORT | TOPO_DIFF)) options->ncounts = 2;
    for (int k = 1; k < argc; k++) {
        const char *text = argv[k];
        if (!strcmp(text, "--help") || !strcmp(text, "-h")) return -1;
        if (text[0] == '-' && text[1]) {
            int used;
            int status = read_option(options, argv + k, argc - k, &used);
            if (status) return status;
            k += used - 1;
        } else if (text[0] == '\0') {
            return tutti_usage_error("topo", "the name of a file is empty");
        } else if (options->npaths == TOPO_MOST_FILES) {
            return tutti_usage_error("topo", "one file too many: %s", text);
        } else {
            options->paths[options->npaths++] = text;
        }
    }
    leave_domain(options);
    return check_together(options);
}

void topo_progress(const char *what)
{
    if (!isatty(STDERR_FILENO)) return;
    (void)fprintf(stderr, "\r\033[K%s%s", what ? what : "", what ? " ..." : "");
}

void topo_print_error(void)
{
    (void)fprintf(stderr, "tutti topo: %s\n", tt_last_error());
}

/* The warning without the place, "box.xml:7: warning: ". */
static const char *what_warned(const char *line)
{
    const char *found = strstr(line, ": warning: ");
    return found && found < strchrnul(line, '\n') ? found : line;
}

static bool same_warning(const char *a, const char *b)
{
    const char *left = what_warned(a);
    const char *right = what_warned(b);
    size_t bytes = strcspn(left, "\n");
    return bytes == strcspn(right, "\n") && strncmp(left, right, bytes) == 0;
}

/* Lines in a row that say the same of other places become the first of them and a number. */
static void print_warnings(const char *lines)
{
    for (const char *line = lines, *next; *line; line = next) {
        size_t bytes = strcspn(line, "\n");
        int more = 0;
        next = line + bytes + (line[bytes] == '\n');
        while (*next && same_warning(line, next)) {
            more++;
            next += strcspn(next, "\n");
            next += *next == '\n';
        }
        (void)fprintf(stderr, "%.*s", (int)bytes, line);
        if (more) (void)fprintf(stderr, " (and %d more alike)", more);
        (void)fputc('\n', stderr);
    }
}

struct tt_topo_file *topo_open(const struct topo_options *options, const char *path)
{
    struct tt_topo_file *file = NULL;
    char described[TT_MACHINE_FILE_BYTES];
    if (!path && tt_param_machine_file(described) && access(described, R_OK) == 0) {
        (void)fprintf(stderr, "this machine: as described in %s\n", described);
        path = described;
    }
    if (path && !strcmp(path, "-")) path = "/dev/stdin";
    if (path ? tt_topo_file_read(path, &file) : tt_topo_detect(&file)) {
        topo_print_error();
        return NULL;
    }
    if (options->net_plugin && !topo_take_nics(file, options->net_plugin)) {
        tt_topo_file_free(file);
        return NULL;
    }
    print_warnings(tt_topo_file_warnings(file));
    return file;
}

const char *topo_name(const char *path)
{
    if (path && !strcmp(path, "-")) return "standard input";
    return path ? path : "this machine";
}

json_t *topo_system(const struct tt_topo_file *file, const struct tt_topo_options *look)
{
    struct tt_topo_system *system = NULL;
    topo_progress("finding paths between all parts");
    ncclResult_t rc = tt_topo_system_make(file, look, &system);
    topo_progress(NULL);
    if (rc) {
        topo_print_error();
        return NULL;
    }
    topo_progress("describing the machine");
    char *members = tt_topo_system_json(system);
    tt_topo_system_free(system);
    size_t room = members ? strlen(members) + 3 : 0;
    char *text = members ? malloc(room) : NULL;
    json_t *object = NULL;
    if (text) {
        (void)snprintf(text, room, "{%s}", members);
        object = json_loads(text, 0, NULL);
    }
    free(text);
    free(members);
    topo_progress(NULL);
    if (!object) (void)fprintf(stderr, "tutti topo: out of memory for the report\n");
    return object;
}

void topo_print(const json_t *object)
{
    json_dumpf(object, stdout, JSON_REAL_PRECISION(7));
    (void)putchar('\n');
}
