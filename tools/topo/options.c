/* Options of `tutti topo` and reading a machine. */
#include "machine.h"
#include "tutti.h"

#include "base/error.h"
#include "base/param.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NODES = 65536, MOST_HOSTS = 128 };

static bool read_counts(struct topo_options *options, const char *text)
{
    char *end;
    for (options->ncounts = 0; options->ncounts < TOPO_MOST_COUNTS; text = end + 1) {
        long count = strtol(text, &end, 10);
        if (end == text || count < 1 || count > MOST_NODES) return false;
        options->nodes[options->ncounts++] = (int)count;
        if (*end == '\0') return true;
        if (*end != ',') return false;
    }
    return false;
}

struct flag {
    const char *name;
    bool *set;
};

static bool read_flag(struct topo_options *options, const char *text)
{
    const struct flag flags[] = {
        {"--json", &options->json}, {"--svg", &options->svg}, {"--xml", &options->xml},
        {"--time", &options->time}, {"--p2p", &options->p2p},
    };
    for (size_t k = 0; k < sizeof(flags) / sizeof(flags[0]); k++) {
        if (strcmp(text, flags[k].name) != 0) continue;
        *flags[k].set = true;
        return true;
    }
    return false;
}

/* An option with a value; 0, or 2 after saying what is wrong. */
static int read_value(struct topo_options *options, const char *name, const char *value)
{
    long number = 0;
    if (!value) return tutti_usage_error("topo", "%s needs a value", name);
    if (strcmp(name, "--nodes") == 0) {
        if (read_counts(options, value)) return 0;
        return tutti_usage_error("topo",
                                 "--nodes: '%s' is no list of up to %d numbers from 1 to %d", value,
                                 (int)TOPO_MOST_COUNTS, (int)MOST_NODES);
    }
    if (strcmp(name, "--clique") == 0) {
        options->look.hosts = 0;
        if (!tutti_parse_int(value, 1, MOST_HOSTS, &number)) {
            return tutti_usage_error("topo", "--clique: '%s' is no number of hosts from 1 to %d",
                                     value, (int)MOST_HOSTS);
        }
        options->look.hosts = (int)number;
        return 0;
    }
    if (strcmp(value, "fused") != 0 && strcmp(value, "file") != 0) {
        return tutti_usage_error("topo", "--load-order: '%s' is neither fused nor file", value);
    }
    options->look.fused = strcmp(value, "fused") == 0;
    return 0;
}

static bool takes_value(const char *text)
{
    return !strcmp(text, "--nodes") || !strcmp(text, "--clique") || !strcmp(text, "--load-order");
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

int topo_options_read(struct topo_options *options, int argc, char **argv, void (*help)(void))
{
    *options = (struct topo_options){.nodes = {1}, .ncounts = 1};
    for (int k = 1; k < argc; k++) {
        const char *text = argv[k];
        if (!strcmp(text, "--help") || !strcmp(text, "-h")) {
            help();
            return -1;
        }
        if (takes_value(text)) {
            int status = read_value(options, text, k + 1 < argc ? argv[k + 1] : NULL);
            if (status) return status;
            k++;
        } else if (text[0] == '-' && text[1]) {
            if (!read_flag(options, text)) return tutti_usage_error("topo", "no option %s", text);
        } else if (options->npaths == 2) {
            return tutti_usage_error("topo", "one file too many: %s", text);
        } else {
            options->paths[options->npaths++] = text;
        }
    }
    leave_domain(options);
    return 0;
}

void topo_tell(void)
{
    (void)fprintf(stderr, "%s\n", tt_last_error());
}

struct tt_topo_file *topo_open(const char *path)
{
    struct tt_topo_file *file = NULL;
    char described[TT_MACHINE_FILE_BYTES];
    if (!path && tt_param_machine_file(described) && access(described, R_OK) == 0) {
        (void)fprintf(stderr, "this machine: as described in %s\n", described);
        path = described;
    }
    if (path ? tt_topo_file_read(path, &file) : tt_topo_detect(&file)) {
        topo_tell();
        return NULL;
    }
    (void)fputs(tt_topo_file_warnings(file), stderr);
    return file;
}

const char *topo_name(const char *path)
{
    return path ? path : "this machine";
}

json_t *topo_system(const struct tt_topo_file *file, const struct tt_topo_options *look)
{
    struct tt_topo_system *system = NULL;
    if (tt_topo_system_make(file, look, &system)) {
        topo_tell();
        return NULL;
    }
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
    if (!object) (void)fprintf(stderr, "tutti topo: out of memory for the report\n");
    return object;
}

void topo_print(const json_t *object)
{
    json_dumpf(object, stdout, JSON_REAL_PRECISION(7));
    (void)putchar('\n');
}
