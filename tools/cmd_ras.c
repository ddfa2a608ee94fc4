/* `tutti ras`: the client of the RAS port, with the options of NCCL's own. */
#include "doctor/ask.h"
#include "doctor/examine.h"
#include "tutti.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char help_text[] =
    "usage: tutti ras [-f text|json] [-h HOST] [-p PORT | --pid PID] [-t SEC] [-v | -D | "
    "-m[GROUPS]]\n"
    "       tutti ras [-h HOST] [-p PORT] [-t SEC] CONTROL PROFILER_MASK VALUE\n\n"
    "Prints what the RAS service of a running job knows: processes, communicators, ranks that do\n"
    "not answer, failed, or are behind the others. The options are those of ncclras, which works\n"
    "as well. `tutti doctor` says who is to blame.\n\n"
    "  -f, --format FORMAT    text or json (text)\n"
    "  -h, --host HOST        where a process of the job listens (localhost)\n"
    "  -p, --port PORT        (28028; NCCL_RAS_ADDR of the job)\n"
    "      --pid PID          ask this process of this host; where several jobs run and none is\n"
    "                         named, the first is asked, and the others are listed\n"
    "  -t, --timeout SEC      who has not answered then is missing (5; 0: wait)\n"
    "  -v, --verbose          list more ranks\n"
    "  -D, --diagnostics      compare devices, driver and NCCL_ variables of all ranks\n"
    "  -m, --monitor[=GROUPS] print events until the job ends: lifecycle, trace or all\n"
    "                         (lifecycle)\n"
    "      --json             the same as -f json\n"
    "      --help             this text\n\n"
    "CONTROL PROFILER_MASK sets what the profiler plugins of all processes are told: none, all, a\n"
    "number, or names of events with commas between them (group,coll,p2p,proxyop,kernelch,...).\n\n"
    "Exit status: 0 there is a report, 1 there is none, 2 usage.\n\n"
    "examples:\n"
    "  tutti ras\n"
    "  tutti ras -v -h node7\n"
    "  tutti ras --json\n"
    "  tutti ras --monitor=all\n"
    "  tutti ras CONTROL PROFILER_MASK coll,kernelch\n";

enum { PREAMBLE_LINES = 3 }; /* answers to what is said before the command */

struct ras_options {
    const char *format, *host, *port; /* host, port NULL: not named */
    long pid;                         /* 0: not named */
    const char *monitor;              /* groups, "" for the default; NULL: no monitor */
    double timeout_sec;
    bool verbose, diagnostics;
    char control[256]; /* "" none */
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
    if (!strcmp(name, "--pid")) return tutti_parse_int(value, 1, 1 << 30, &options->pid);
    if (is_either(name, "-f", "--format")) {
        options->format = value;
        return is_either(value, "text", "json");
    }
    if (!is_either(name, "-t", "--timeout")) return false;
    options->timeout_sec = strtod(value, &end);
    return end != value && !*end && options->timeout_sec >= 0 && options->timeout_sec <= 86400;
}

/* Words without a value of their own. */
static bool take_switch(struct ras_options *options, const char *word)
{
    if (is_either(word, "-v", "--verbose")) {
        options->verbose = true;
    } else if (is_either(word, "-D", "--diagnostics")) {
        options->diagnostics = true;
    } else if (!strcmp(word, "--json")) {
        options->format = "json";
    } else if (is_either(word, "-m", "--monitor")) {
        options->monitor = "";
    } else if (!strncmp(word, "--monitor=", 10)) {
        options->monitor = word + 10;
    } else if (!strncmp(word, "-m", 2)) {
        options->monitor = word + 2;
    } else {
        return false;
    }
    return true;
}

static bool take_control(struct ras_options *options, int count, char **words)
{
    if (count != 3 || strcasecmp(words[0], "control") != 0) return false;
    snprintf(options->control, sizeof(options->control), "%s %s", words[1], words[2]);
    return true;
}

/* Returns the exit status. */
static int refuse(const char *name, const char *value)
{
    const struct tutti_words known = {"--format,--host,--port,--pid,--timeout,--verbose,--"
                                      "diagnostics,--monitor,--json,--help,CONTROL"};
    const bool takes_value = is_either(name, "-h", "--host") || is_either(name, "-p", "--port") ||
                             is_either(name, "-f", "--format") || !strcmp(name, "--pid") ||
                             is_either(name, "-t", "--timeout");
    if (!takes_value)
        return tutti_unknown("ras", *name == '-' ? "option" : "command", name, &known);
    if (!value) return tutti_usage_error("ras", "'%s' wants a value after it", name);
    return tutti_usage_error("ras", "'%s %s' is not understood", name, value);
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
        if (take_switch(options, a)) continue;
        if (take_control(options, argc - i, argv + i)) {
            i += 2;
        } else if (equals && !strncmp(a, "--", 2)) {
            snprintf(name, sizeof(name), "%.*s", (int)(equals - a), a);
            if (!take_value(options, name, equals + 1))
                return tutti_usage_error("ras", "'%s' is not understood", a);
        } else if (take_value(options, a, i + 1 < argc ? argv[i + 1] : NULL)) {
            i++;
        } else {
            return refuse(a, i + 1 < argc ? argv[i + 1] : NULL);
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

static const char banner[] = "RAS Monitor Mode - watching for peer changes (Ctrl+C to exit)...\n"
                             "================================================================\n";

/* The answer to the command, behind those to the lines before it; false: the command is refused. */
static bool read_answer(FILE *from)
{
    char answer[256] = "";
    for (int k = 0; k <= PREAMBLE_LINES; k++) {
        if (!fgets(answer, sizeof(answer), from)) return true; /* the job has ended */
    }
    bool refused = !strncmp(answer, "ERROR", 5);
    (void)fputs(answer, refused ? stderr : stdout);
    fflush(stdout);
    return !refused;
}

/* Events as they come, until the job ends. Exit status. */
static int monitor(int fd, const char *lines)
{
    FILE *from = fdopen(fd, "r");
    int c = EOF, flags = fcntl(fd, F_GETFL);
    bool taken = from && flags >= 0 && !fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) &&
                 write(fd, lines, strlen(lines)) == (ssize_t)strlen(lines) && read_answer(from);
    if (taken) fputs(banner, stderr);
    while (taken && (c = getc(from)) != EOF) {
        putchar(c);
        if (c == '\n') fflush(stdout);
    }
    if (from) fclose(from);
    return taken ? 0 : 1;
}

static void make_lines(const struct ras_options *options, char *lines, size_t bytes)
{
    const char *status = options->verbose ? "VERBOSE STATUS" : "STATUS";
    const char *command = options->diagnostics ? "DIAGNOSTICS" : status, *value = "";
    if (*options->control) {
        command = "CONTROL ";
        value = options->control;
    } else if (options->monitor) {
        command = "MONITOR ";
        value = options->monitor;
    }
    snprintf(lines, bytes, "CLIENT PROTOCOL 2\nTIMEOUT %g\nSET FORMAT %s\n%s%s\n",
             options->timeout_sec, options->format, command, value);
}

/* All jobs of a host share the port, where any of them answers. The process to ask where several
 * run, with a list of them; 0: there is one at most; -1: a change wants to be told which. */
static long choose_job(const struct ras_options *options)
{
    int pids[DOCTOR_PIDS_MOST];
    const struct doctor_question question = {.timeout_sec = 1, .quiet = true};
    json_t *jobs = json_array();
    const json_t *job;
    size_t i;
    long chosen = 0;
    if (doctor_list(pids, DOCTOR_PIDS_MOST) > 1) doctor_examine_host(&question, jobs);
    const size_t njobs = json_array_size(jobs);
    if (njobs > 1) fprintf(stderr, "tutti ras: %zu jobs run on this host:\n", njobs);
    json_array_foreach(jobs, i, job)
    {
        char program[DOCTOR_PROGRAM_BYTES] = "";
        const int pid = njobs > 1 ? doctor_pid_of(job) : 0;
        if (!pid || !doctor_program_of(pid, program)) continue;
        const bool asked = !chosen && !*options->control;
        fprintf(stderr, "  --pid %-8d %s%s\n", pid, program, asked ? "   <- asked" : "");
        if (!chosen) chosen = pid;
    }
    json_decref(jobs);
    return chosen && *options->control ? -1 : chosen;
}

static int connect_job(const struct ras_options *options, double timeout_sec, char *name,
                       size_t name_bytes, const char **why)
{
    const char *host = options->host ? options->host : "localhost";
    const char *port = options->port ? options->port : "28028";
    const bool v6 = strchr(host, ':') && *host != '[';
    snprintf(name, name_bytes, v6 ? "[%s]:%s" : "%s:%s", host, port);
    if (!options->pid) return doctor_connect_address(name, timeout_sec, why);
    snprintf(name, name_bytes, "process %ld", options->pid);
    const int fd = doctor_connect_pid((int)options->pid, timeout_sec, why);
    if (fd < 0) *why = doctor_why_silent((int)options->pid, *why);
    return fd;
}

int cmd_ras(int argc, char **argv)
{
    struct ras_options options = {.format = "text", .timeout_sec = 5};
    char name[300], lines[512];
    const char *why;
    int status = parse(argc, argv, &options);
    if (status >= 0) return status;
    if (options.pid && (options.host || options.port))
        return tutti_usage_error("ras", "--pid names a process of this host, not a port");
    if (!options.pid && !options.host && !options.port) options.pid = choose_job(&options);
    if (options.pid < 0) return tutti_usage_error("ras", "CONTROL changes one job: --pid PID");
    make_lines(&options, lines, sizeof(lines));
    double timeout_sec = options.timeout_sec > 0 ? options.timeout_sec + 2 : 86400;
    int fd = connect_job(&options, timeout_sec, name, sizeof(name), &why);
    if (fd >= 0 && options.monitor) return monitor(fd, lines);
    char *text = fd >= 0 ? doctor_ask(fd, lines, timeout_sec, &why) : NULL;
    const char *report = text ? skip_answers(text, PREAMBLE_LINES) : "";
    bool refused = !strncmp(report, "ERROR", 5) || !strncmp(report, "BUSY", 4);
    if (text) {
        fputs(report, refused ? stderr : stdout);
    } else {
        fprintf(stderr, "tutti ras: no report from %s: %s\n", name, why);
    }
    free(text);
    return text && !refused ? 0 : 1;
}
