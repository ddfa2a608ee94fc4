/* `tutti doctor`: what do the ranks of a running job do, and who keeps whom waiting? */
#include "doctor/ask.h"
#include "doctor/preflight.h"
#include "doctor/show.h"
#include "doctor/stacks.h"
#include "tutti.h"

#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PIDS = 4096 };

static const char help_text[] =
    "usage: tutti doctor [--pid PID | --address HOST[:PORT]] [--timeout SEC] [--stacks]\n"
    "                    [--json]\n"
    "       tutti doctor --flight FOLDER [--pid PID]\n"
    "       tutti doctor --preflight [--hosts HOST,...] [--json]\n\n"
    "Asks running jobs of this user on this host what their ranks do: each communicator with the\n"
    "verdict (who keeps the others waiting, and why), then rank by rank the operation, whom it\n"
    "waits for, since when, and its last call. One process answers for all that it is connected\n"
    "with, on other hosts too. Nothing needs to be set when the job is started.\n\n"
    "  -p, --pid PID       the job of this process alone\n"
    "  -a, --address ADDR  the job that listens there (NCCL_RAS_ADDR; port 28028)\n"
    "  -t, --timeout SEC   who has not answered then is missing (5; fractions are fine)\n"
    "  -s, --stacks        where the threads of the job's processes on this host are, function by\n"
    "                      function: each is stopped for some milliseconds, as by a debugger\n"
    "  -f, --flight DIR    write what each process of the jobs on this host did last into this\n"
    "                      folder, for `tutti trace check DIR`; several jobs: DIR/job.PID\n"
    "      --preflight     check this host before a job: interfaces, MTU, ports, limits, "
    "/dev/shm,\n"
    "                      NUMA, clock, PCIe ACS and links, IOMMU, plugins; says what to mend\n"
    "  -H, --hosts LIST    check these hosts (by $TUTTI_RSH, ssh), compare them, and let each\n"
    "                      connect to all others\n"
    "      --json          an array with an object per job, or per host\n"
    "  -h, --help          this text\n\n"
    "Exit status: 0 nobody stands still, or nothing is to be mended; 1 somebody does, no job was\n"
    "found, or something is; 2 usage.\n\n"
    "examples:\n"
    "  tutti doctor\n"
    "  tutti doctor --stacks\n"
    "  tutti doctor --pid 4711 --json\n"
    "  tutti doctor --flight /tmp/now && tutti trace check /tmp/now\n"
    "  tutti doctor --address node7:28028\n"
    "  tutti doctor --preflight --hosts node1,node2\n";

struct doctor_options {
    long pid;
    const char *address, *hosts, *flight;
    double timeout_sec;
    bool json, preflight, stacks;
};

static bool is_either(const char *text, const char *a, const char *b)
{
    return !strcmp(text, a) || !strcmp(text, b);
}

static bool parse_seconds(const char *text, double *seconds_out)
{
    char *end;
    double seconds = text ? strtod(text, &end) : 0;
    if (!text || end == text || *end || !(seconds > 0 && seconds <= 3600)) return false;
    *seconds_out = seconds;
    return true;
}

/* An option without a value. */
static bool is_switch(const char *name, struct doctor_options *options)
{
    bool *which = NULL;
    if (!strcmp(name, "--json")) which = &options->json;
    if (!strcmp(name, "--preflight")) which = &options->preflight;
    if (is_either(name, "-s", "--stacks")) which = &options->stacks;
    if (which) *which = true;
    return which;
}

/* Where the value of an option that is a text belongs; NULL: it is none. */
static const char **text_of(const char *name, struct doctor_options *options)
{
    if (is_either(name, "-f", "--flight")) return &options->flight;
    if (is_either(name, "-H", "--hosts")) return &options->hosts;
    return is_either(name, "-a", "--address") ? &options->address : NULL;
}

/* -1: go on. */
static int parse(int argc, char **argv, struct doctor_options *options)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (is_either(a, "-h", "--help")) {
            fputs(help_text, stdout);
            return 0;
        }
        if (is_switch(a, options)) continue;
        const char **text = text_of(a, options);
        bool good = text && value;
        if (good) *text = value;
        if (is_either(a, "-p", "--pid"))
            good = value && tutti_parse_int(value, 1, 1 << 30, &options->pid);
        if (is_either(a, "-t", "--timeout")) good = parse_seconds(value, &options->timeout_sec);
        if (!good) return tutti_usage_error("doctor", "'%s' is not understood", a);
        i++;
    }
    return -1;
}

/* The answer of the other end, as an owned object; NULL after a complaint. */
static json_t *examine(int fd, const struct doctor_options *options, const char *whom,
                       const char *why)
{
    char lines[64];
    char *text = NULL;
    json_t *job = NULL;
    snprintf(lines, sizeof(lines), "TIMEOUT %g\nDOCTOR\n", options->timeout_sec);
    if (fd >= 0) text = doctor_ask(fd, lines, options->timeout_sec + 2, &why);
    const char *from = text ? strchr(text, '{') : NULL; /* behind "OK" */
    if (from) job = json_loads(from, JSON_DISABLE_EOF_CHECK, NULL);
    if (text && !job) why = "what it answered is not understood";
    if (!job) fprintf(stderr, "tutti doctor: %s does not answer: %s\n", whom, why);
    free(text);
    return job;
}

static bool has_pid(const json_t *job, int pid)
{
    const json_t *process;
    size_t i;
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    json_array_foreach(json_object_get(job, "processes"), i, process)
    {
        const char *where = json_string_value(json_object_get(process, "host"));
        if (where && !strncmp(where, host, 63) &&
            json_integer_value(json_object_get(process, "pid")) == pid)
            return true;
    }
    return false;
}

/* All jobs of this user: a process that another has answered for is not asked again. */
static void examine_host(const struct doctor_options *options, json_t *jobs)
{
    int pids[MAX_PIDS];
    int count = doctor_list(pids, MAX_PIDS);
    for (int p = 0; p < count; p++) {
        const json_t *job;
        size_t i;
        bool known = false;
        char whom[32];
        const char *why;
        json_array_foreach(jobs, i, job) known |= has_pid(job, pids[p]);
        if (known) continue;
        snprintf(whom, sizeof(whom), "process %d", pids[p]);
        int fd = doctor_connect_pid(pids[p], options->timeout_sec, &why);
        if (fd < 0 && errno != EAGAIN) continue; /* it has just ended */
        json_array_append_new(jobs, examine(fd, options, whom, why));
    }
}

static void examine_one(const struct doctor_options *options, json_t *jobs)
{
    char whom[300];
    const char *why;
    snprintf(whom, sizeof(whom), "%s", options->address ? options->address : "");
    if (!options->address) snprintf(whom, sizeof(whom), "process %ld", options->pid);
    int fd = options->address ? doctor_connect_address(options->address, options->timeout_sec, &why)
                              : doctor_connect_pid((int)options->pid, options->timeout_sec, &why);
    json_array_append_new(jobs, examine(fd, options, whom, why));
}

/* The file of one process; false after a complaint, or when it has just ended. */
static bool save_flight(int pid, const char *folder, const struct doctor_options *options)
{
    const char *why = NULL;
    char path[PATH_MAX], host[256] = "";
    int fd = doctor_connect_pid(pid, options->timeout_sec, &why);
    bool ended = !options->pid && fd < 0 && errno != EAGAIN;
    char *text = fd >= 0 ? doctor_ask(fd, "FLIGHT\n", options->timeout_sec, &why) : NULL;
    if (text && !strstr(text, "{\"t\":\"end\"")) {
        why = "its library is older";
        free(text);
        text = NULL;
    }
    if (!text) {
        if (!ended) fprintf(stderr, "tutti doctor: process %d does not answer: %s\n", pid, why);
        return false;
    }
    gethostname(host, sizeof(host) - 1);
    snprintf(path, sizeof(path), "%s/flight.%s.%d.jsonl", folder, host, pid);
    FILE *file = tt_file_create(path);
    bool good = file && fputs(text, file) >= 0;
    if (file && fclose(file)) good = false;
    if (good) printf("%s\n", path);
    if (!good) fprintf(stderr, "tutti doctor: %s: %s\n", path, strerror(errno));
    free(text);
    return good;
}

static bool make_folder(const char *path)
{
    if (!mkdir(path, 0777) || errno == EEXIST) return true;
    fprintf(stderr, "tutti doctor: %s: %s\n", path, strerror(errno));
    return false;
}

/* The files of the processes of a job, each in `pids` put out of it. */
static int save_job(const json_t *job, const char *folder, int *pids, int count,
                    const struct doctor_options *options)
{
    int written = 0;
    for (int p = 0; p < count; p++) {
        if (!pids[p] || (job && !has_pid(job, pids[p]))) continue;
        written += save_flight(pids[p], folder, options);
        pids[p] = 0;
    }
    return written;
}

/* Several jobs have a folder each, as what is said of one is made from all files of a folder.
 * Exit status: nothing was written. */
static int save_flights(const struct doctor_options *options)
{
    int pids[MAX_PIDS] = {(int)options->pid};
    int count = options->pid ? 1 : doctor_list(pids, MAX_PIDS), written = 0;
    json_t *jobs = json_array();
    const json_t *job;
    size_t i;
    if (count > 1) examine_host(options, jobs);
    const size_t njobs = json_array_size(jobs);
    const bool made = make_folder(options->flight);
    if (!made) count = 0;
    json_array_foreach(jobs, i, job)
    {
        char path[PATH_MAX];
        int first = 0;
        while (first < count && !(pids[first] && has_pid(job, pids[first])))
            first++;
        if (first == count || njobs < 2) continue;
        snprintf(path, sizeof(path), "%s/job.%d", options->flight, pids[first]);
        if (!make_folder(path)) break;
        written += save_job(job, path, pids, count, options);
    }
    written += save_job(NULL, options->flight, pids, count, options);
    json_decref(jobs);
    if (njobs > 1)
        fprintf(stderr, "tutti doctor: %zu jobs: a folder each, for `tutti trace check`\n", njobs);
    if (made && !count)
        fprintf(stderr, "tutti doctor: no running job of this user was found on this host\n");
    return written ? 0 : 1;
}

/* The named hosts, or this one; a host that cannot be asked is something to mend. */
static json_t *preflight_hosts(const char *names)
{
    json_t *hosts = json_array();
    char *list = names ? strdup(names) : NULL, *rest = NULL;
    if (!list) json_array_append_new(hosts, preflight_host());
    for (char *name = list ? strtok_r(list, ",", &rest) : NULL; name;
         name = strtok_r(NULL, ",", &rest)) {
        char why[200];
        json_int_t asked = (json_int_t)time(NULL);
        json_t *host = preflight_remote(name, why, sizeof(why));
        if (!host) {
            host = json_pack("{s:s, s:[{s:s, s:s, s:s, s:s}]}", "host", name, "checks", "name",
                             "remote shell", "state", "mend", "found", why, "advice",
                             "both must work without a password, Tutti at the same path as here");
        } else {
            json_object_set_new(host, "asked", json_integer(asked));
            json_object_set_new(host, "called", json_string(name));
        }
        json_array_append_new(hosts, host);
    }
    free(list);
    if (names) {
        preflight_compare(hosts);
        preflight_connect(hosts, names);
    }
    return hosts;
}

static int preflight(const struct doctor_options *options)
{
    json_t *hosts = preflight_hosts(options->hosts);
    const json_t *host;
    size_t i;
    int faults = 0;
    json_array_foreach(hosts, i, host)
    {
        faults += preflight_faults(host);
        if (!options->json) preflight_show(host);
    }
    if (options->json && json_dumpf(hosts, stdout, JSON_INDENT(2)) == 0) printf("\n");
    json_decref(hosts);
    return faults ? 1 : 0;
}

static void add_stacks(json_t *jobs)
{
    int pids[MAX_PIDS];
    int count = doctor_list(pids, MAX_PIDS);
    json_t *job;
    size_t i;
    json_array_foreach(jobs, i, job) doctor_add_stacks(job, pids, count);
}

/* Exit status: somebody stands still, or there is no job. */
static int report(const json_t *jobs, bool json)
{
    const json_t *job;
    size_t i;
    int status = json_array_size(jobs) ? 0 : 1;
    json_array_foreach(jobs, i, job)
    {
        if (!json && i) printf("\n");
        if (json ? doctor_is_stuck(job) : doctor_show(job)) status = 1;
        if (!json) doctor_show_stacks(job);
    }
    if (json && json_dumpf(jobs, stdout, JSON_INDENT(2)) == 0) printf("\n");
    return status;
}

int cmd_doctor(int argc, char **argv)
{
    struct doctor_options options = {.timeout_sec = 5};
    if (argc == 2 && !strcmp(argv[1], "--preflight-listen")) return preflight_listen();
    if (argc == 3 && !strcmp(argv[1], "--preflight-reach")) return preflight_reach(argv[2]);
    int status = parse(argc, argv, &options);
    if (status >= 0) return status;
    if (options.hosts && !options.preflight)
        return tutti_usage_error("doctor", "--hosts goes with --preflight");
    if (options.preflight) return preflight(&options);
    if (options.flight && options.address)
        return tutti_usage_error("doctor", "--flight is for processes of this host");
    if (options.flight) return save_flights(&options);
    json_t *jobs = json_array();
    bool one = options.pid || options.address;
    if (one) {
        examine_one(&options, jobs);
    } else {
        examine_host(&options, jobs);
    }
    if (options.stacks) add_stacks(jobs);
    status = report(jobs, options.json);
    if (!json_array_size(jobs) && !one)
        fprintf(stderr, "tutti doctor: no running job of this user was found on this host\n");
    json_decref(jobs);
    return status;
}
