/* `tutti ras`: the client of the RAS port, with the options of NCCL's own. */
#include "doctor/ask.h"
#include "tutti.h"

#include <stdlib.h>
#include <string.h>

static const char help_text[] =
    "usage: tutti ras [-f text|json] [-h HOST] [-p PORT] [-t SEC] [-v]\n\n"
    "Prints what the RAS service of a running job knows: processes, communicators, ranks that do\n"
    "not answer, failed, or are behind the others. The options are those of ncclras, which works\n"
    "as well. `tutti doctor` says who is to blame.\n\n"
    "  -f, --format FORMAT  text or json (text)\n"
    "  -h, --host HOST      where a process of the job listens (localhost)\n"
    "  -p, --port PORT      (28028; NCCL_RAS_ADDR of the job)\n"
    "  -t, --timeout SEC    who has not answered then is missing (5; 0: wait)\n"
    "  -v, --verbose        list more ranks\n"
    "      --json           the same as -f json\n"
    "      --help           this text\n\n"
    "Exit status: 0 there is a report, 1 there is none, 2 usage.\n\n"
    "examples:\n"
    "  tutti ras\n"
    "  tutti ras -v -h node7\n"
    "  tutti ras --json\n";

struct ras_options {
    const char *format, *host, *port;
    double timeout_sec;
    bool verbose;
};

static bool is_either(const char *text, const char *a, const char *b)
{
    return !strcmp(text, a) || !strcmp(text, b);
}

static bool take_value(struct ras_options *options, const char *name, const char *value)
{
    char *end;
    if (!value) return false;
    if (is_either(name, "-h", "--host")) return (options->host = value) != NULL;
    if (is_either(name, "-p", "--port")) return (options->port = value) != NULL;
    if (is_either(name, "-f", "--format")) {
        options->format = value;
        return is_either(value, "text", "json");
    }
    if (!is_either(name, "-t", "--timeout")) return false;
    options->timeout_sec = strtod(value, &end);
    return end != value && !*end && options->timeout_sec >= 0 && options->timeout_sec <= 86400;
}

/* -1: go on. */
static int parse(int argc, char **argv, struct ras_options *options)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *equals = strchr(a, '=');
        char name[32];
        if (!strcmp(a, "--help")) {
            fputs(help_text, stdout);
            return 0;
        }
        if (is_either(a, "-v", "--verbose")) {
            options->verbose = true;
        } else if (!strcmp(a, "--json")) {
            options->format = "json";
        } else if (equals && !strncmp(a, "--", 2)) {
            snprintf(name, sizeof(name), "%.*s", (int)(equals - a), a);
            if (!take_value(options, name, equals + 1))
                return tutti_usage_error("ras", "'%s' is not understood", a);
        } else if (take_value(options, a, i + 1 < argc ? argv[i + 1] : NULL)) {
            i++;
        } else {
            return tutti_usage_error("ras", "'%s' is not understood", a);
        }
    }
    return -1;
}

/* Behind the answers to the lines that were sent before the report was asked for. */
static const char *skip_answers(const char *text, int count)
{
    for (; count > 0 && text; count--) {
        text = strchr(text, '\n');
        if (text) text++;
    }
    return text ? text : "";
}

int cmd_ras(int argc, char **argv)
{
    struct ras_options options = {
        .format = "text", .host = "localhost", .port = "28028", .timeout_sec = 5};
    char address[300], lines[128];
    const char *why;
    int status = parse(argc, argv, &options);
    if (status >= 0) return status;
    bool v6 = strchr(options.host, ':') && *options.host != '[';
    snprintf(address, sizeof(address), v6 ? "[%s]:%s" : "%s:%s", options.host, options.port);
    snprintf(lines, sizeof(lines), "CLIENT PROTOCOL 2\nTIMEOUT %g\nSET FORMAT %s\n%sSTATUS\n",
             options.timeout_sec, options.format, options.verbose ? "VERBOSE " : "");
    double patience_sec = options.timeout_sec > 0 ? options.timeout_sec + 2 : 86400;
    int fd = doctor_connect_address(address, patience_sec, &why);
    char *text = fd >= 0 ? doctor_ask(fd, lines, patience_sec, &why) : NULL;
    if (text) {
        fputs(skip_answers(text, 3), stdout);
    } else {
        fprintf(stderr, "tutti ras: no report from %s: %s\n", address, why);
    }
    free(text);
    return text ? 0 : 1;
}
