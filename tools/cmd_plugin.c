/* `tutti plugin`: what authors of plugins want to know before a job does. */
#include "tutti.h"

#include "base/mem.h"
#include "plugin/check.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help_text[] =
    "usage: tutti plugin check FILE [--kind net|collnet|tuner|profiler|env] [--iterations N] "
    "[--seconds N] [--json]\n\n"
    "Drives a plugin through what a communicator may do with it, each case in a process of its\n"
    "own: a crash or a hang is a line that names the call. A network is driven over loopback,\n"
    "a tuner is asked for every collective in communicators of many shapes, an environment\n"
    "plugin for every variable. Each breach of the contract is named by function and argument.\n"
    "Of all but networks it measures what a call takes and what memory grows by.\n\n"
    "FILE is what NCCL_NET_PLUGIN, NCCL_TUNER_PLUGIN, NCCL_PROFILER_PLUGIN or NCCL_ENV_PLUGIN\n"
    "would be: a path, a name, STATIC_PLUGIN excepted.\n\n"
    "  -k, --kind KIND     net (versions 2 to 12), collnet (3 to 12), tuner (1 to 6), profiler\n"
    "                      (1 to 7) or env (1 and 2); the newest in the library is taken. Not\n"
    "                      given: by the symbols of the library, where collnet does not count\n"
    "  -n, --iterations N  AllReduces that are timed, of a profiler, or questions, of a tuner\n"
    "                      and an environment plugin (2000; up to 10000000)\n"
    "      --seconds N     a case that takes longer hangs (20; up to 600)\n"
    "      --json          print the report as JSON\n"
    "  -h, --help          this text\n\n"
    "Exit status: 0 the plugin is sound, 1 it is not (cannot be opened, declines, breaks the\n"
    "contract, crashes, hangs), 2 usage.\n\n"
    "examples:\n"
    "  tutti plugin check ./libnccl-net-mine.so\n"
    "  tutti plugin check ./libnccl-net-mine.so --kind net --json\n"
    "  tutti plugin check ./libnccl-profiler-mine.so --kind profiler\n"
    "  NCCL_TUNER_CONFIG_FILE=rules.csv tutti plugin check ./libnccl-tuner-mine.so\n"
    "  NCCL_PROFILE_EVENT_MASK=4095 tutti plugin check ./libnccl-profiler-example.so -k profiler\n";

struct plugin_options {
    struct check_options check;
    const char *kind;
};

static bool is_either(const char *text, const char *a, const char *b)
{
    return !strcmp(text, a) || !strcmp(text, b);
}

/* An option with a value; false when it is none, or the value is wrong. */
static bool take_value(const char *name, const char *value, struct plugin_options *options)
{
    if (is_either(name, "-k", "--kind")) return (options->kind = value) != NULL;
    if (is_either(name, "-n", "--iterations"))
        return value && tutti_parse_int(value, 10, 10000000, &options->check.iterations);
    if (!strcmp(name, "--seconds"))
        return value && tutti_parse_int(value, 1, 600, &options->check.seconds);
    return false;
}

/* Returns the exit status. */
static int refuse(const char *name, const char *value)
{
    const struct tutti_words known = {"--kind,--iterations,--seconds,--json,--help"};
    const bool takes_value = is_either(name, "-k", "--kind") ||
                             is_either(name, "-n", "--iterations") || !strcmp(name, "--seconds");
    if (!takes_value) return tutti_unknown("plugin", "option", name, &known);
    if (!value) return tutti_usage_error("plugin", "'%s' wants a value after it", name);
    return tutti_usage_error("plugin", "'%s %s' is not understood", name, value);
}

/* -1: go on. */
static int parse(int argc, char **argv, struct plugin_options *options)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (is_either(a, "-h", "--help")) {
            fputs(help_text, stdout);
            return 0;
        }
        if (!strcmp(a, "--json")) {
            options->check.json = true;
        } else if (*a == '-') {
            const char *value = i + 1 < argc ? argv[i + 1] : NULL;
            if (!take_value(a, value, options)) return refuse(a, value);
            i++;
        } else if (!options->check.file) {
            options->check.file = a;
        } else {
            return tutti_usage_error("plugin", "one FILE, not '%s' as well", a);
        }
    }
    return -1;
}

/* A name of a plugin that is installed with us, as a job of `tutti run` finds it first. */
static const char *find_ours(const char *name, const char *kind, char *path, size_t path_bytes)
{
    static const char *const names[] = {"net", "tuner", "profiler", "env"};
    char home[PATH_MAX / 2];
    if (strchr(name, '/') || !tutti_home(home, sizeof(home))) return name;
    for (size_t k = 0; k < TT_LEN(names); k++) {
        if (kind && strcmp(kind, names[k]) != 0) continue;
        (void)snprintf(path, path_bytes, "%s/lib/libnccl-%s-%s.so", home, names[k], name);
        if (!access(path, R_OK)) return path;
    }
    (void)snprintf(path, path_bytes, "%s/lib/%s", home, name);
    return access(path, R_OK) ? name : path;
}

/* Look at the file, then drive it. Returns the status of the command. */
static int check_file(const struct plugin_options *options)
{
    const char *file = options->check.file;
    const struct check_kind *wanted = NULL;
    char reason[CHECK_REASON_BYTES];
    bool several = false;
    if (options->kind) {
        wanted = check_kind_named(options->kind);
        if (!wanted) {
            return tutti_usage_error("plugin",
                                     "--kind '%s' is none of: net, collnet, tuner, profiler, env",
                                     options->kind);
        }
    }
    if (strchr(file, '/') && access(file, R_OK)) {
        snprintf(reason, sizeof(reason), "%.500s: %s", file, strerror(errno));
        return check_refuse(wanted, &options->check, reason);
    }
    const struct check_kind *kind = check_look(file, wanted, &several, reason);
    if (several)
        return tutti_usage_error("plugin", "the file has plugins of several kinds: which --kind?");
    return kind ? check_run(kind, &options->check) : check_refuse(wanted, &options->check, reason);
}

int cmd_plugin(int argc, char **argv)
{
    char path[PATH_MAX];
    struct plugin_options options = {.check = {.iterations = 2000, .seconds = 20}};
    if (argc < 2 || is_either(argv[1], "-h", "--help")) {
        fputs(help_text, stdout);
        return argc < 2 ? 2 : 0;
    }
    if (strcmp(argv[1], "check") != 0)
        return tutti_unknown("plugin", "command", argv[1], &(struct tutti_words){"check"});
    int status = parse(argc - 1, argv + 1, &options);
    if (status >= 0) return status;
    if (!options.check.file) return tutti_usage_error("plugin", "which FILE?");
    options.check.file = find_ours(options.check.file, options.kind, path, sizeof(path));
    return check_file(&options);
}
