/* `tutti plugin`: what authors of plugins want to know before a job does. */
#include "tutti.h"

#include "plugin/check.h"

#include <string.h>

static const char help_text[] =
    "usage: tutti plugin check FILE --kind profiler [--iterations N] [--seconds N] [--json]\n\n"
    "Drives a plugin through everything that a communicator may do with it, each case in a\n"
    "process of its own: a crash or a hang is a line that names the call. Then measures what\n"
    "a call takes and what memory grows by.\n\n"
    "FILE is what NCCL_PROFILER_PLUGIN would be: a path, a name, STATIC_PLUGIN excepted.\n\n"
    "  -k, --kind KIND     profiler (versions 1 to 7; the newest in the library is taken)\n"
    "  -n, --iterations N  AllReduces that are timed (2000; up to 10000000)\n"
    "      --seconds N     a case that takes longer hangs (20; up to 600)\n"
    "      --json          print the report as JSON\n"
    "  -h, --help          this text\n\n"
    "Exit status: 0 the plugin is sound, 1 it is not (cannot be opened, declines, crashes,\n"
    "hangs), 2 usage.\n\n"
    "examples:\n"
    "  tutti plugin check ./libnccl-profiler-mine.so --kind profiler\n"
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
            if (!take_value(a, i + 1 < argc ? argv[++i] : NULL, options))
                return tutti_usage_error("plugin", "'%s' is no option, or its value is wrong", a);
        } else if (!options->check.file) {
            options->check.file = a;
        } else {
            return tutti_usage_error("plugin", "one FILE, not '%s' as well", a);
        }
    }
    return -1;
}

int cmd_plugin(int argc, char **argv)
{
    struct plugin_options options = {.check = {.iterations = 2000, .seconds = 20}};
    if (argc < 2 || is_either(argv[1], "-h", "--help")) {
        fputs(help_text, stdout);
        return argc < 2 ? 2 : 0;
    }
    if (strcmp(argv[1], "check") != 0)
        return tutti_usage_error("plugin", "'%s' is none of: check", argv[1]);
    int status = parse(argc - 1, argv + 1, &options);
    if (status >= 0) return status;
    if (!options.check.file) return tutti_usage_error("plugin", "which FILE? see --help");
    if (!options.kind) return tutti_usage_error("plugin", "which --kind? profiler");
    if (!strcmp(options.kind, "profiler")) return check_profiler(&options.check);
    return tutti_usage_error("plugin", "--kind '%s' is none of: profiler", options.kind);
}
