/* `tutti doctor`: what do the ranks of a running job do, and who keeps whom waiting? */
#include "doctor/ask.h"
#include "doctor/examine.h"
#include "doctor/init.h"
#include "doctor/merge.h"
#include "doctor/preflight.h"
#include "doctor/show.h"
#include "doctor/stacks.h"
#include "tutti.h"

#include "base/system/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* STATUS_NO_JOB   exit status: there was no process to ask */
enum { BRIEF_SEC = 2, STATUS_NO_JOB = 3 };

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
    "Exit status: 0 nobody stands still, or nothing is to be mended; 1 somebody does, is stopped\n"
    "or does not answer, or something is to be mended; 2 usage; 3 no job of this user runs on\n"
    "this host, or what --pid or --address names is none.\n\n"
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
    struct doctor_question question;
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

/* Say what is wrong with an argument, and which option is meant. Returns the exit status. */
static int refuse(const char *a, const char *value, const struct doctor_options *options)
{
    const struct tutti_words known = {
        "--pid,--address,--timeout,--stacks,--flight,--preflight,--hosts,--json,--help"};
    const bool is_known = text_of(a, &(struct doctor_options){0}) || is_either(a, "-p", "--pid") ||
                          is_either(a, "-t", "--timeout");
    if (is_known && !value) return tutti_usage_error("doctor", "'%s' wants a value after it", a);
    if (is_known) return tutti_usage_error("doctor", "'%s %s' is not understood", a, value);
    long pid;
    const char *meant = NULL;
    if (options->preflight && *a != '-') meant = "--hosts";
    if (!meant && tutti_parse_int(a, 1, 1 << 30, &pid)) meant = "--pid";
    if (!meant && *a == '-') return tutti_unknown("doctor", "option", a, &known);
    if (!meant) return tutti_usage_error("doctor", "'%s' is not understood", a);
    return tutti_usage_error("doctor", "'%s' is not understood; meant: %s %s", a, meant, a);
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
        if (is_either(a, "-t", "--timeout"))
            good = parse_seconds(value, &options->question.timeout_sec);
        if (!good) return refuse(a, value, options);
        i++;
    }
    return -1;
}

/* Returns the exit status. */
static int say_no_job(void)
{
    fprintf(stderr, "tutti doctor: no running job of this user was found on this host; of one in a "
                    "container or network namespace: nsenter -t PID -n tutti doctor\n");
    return STATUS_NO_JOB;
}

/* Exit status, as far as it is known: 0, or why there is no answer. */
static int examine_one(const struct doctor_options *options, json_t *jobs)
{
    const struct doctor_question *question = &options->question;
    const int pid = (int)options->pid;
    const char *why = "", *address = options->address;
    json_t *job = NULL;
    if (address) {
        int fd = doctor_connect_address(address, options->question.timeout_sec, &why);
        job = doctor_examine(fd, question, &why);
        if (!job) {
            fprintf(stderr, "tutti doctor: %s does not answer: %s%s\n", address, why,
                    fd >= 0 ? "; does another user's job listen there?" : "");
        }
    } else {
        const bool stopped = doctor_is_stopped(pid);
        int fd = stopped ? -1 : doctor_connect_pid(pid, question->timeout_sec, &why);
        job = doctor_examine(fd, question, &why);
        if (!job) doctor_say_silent(pid, why);
    }
    const bool answered = job != NULL;
    doctor_merge(jobs, job);
    if (!address) doctor_examine_missing(question, jobs);
    if (!address) doctor_examine_neighbours(pid, question, jobs);
    if (answered) return 0;
    return !address && doctor_is_stopped(pid) ? 1 : STATUS_NO_JOB;
}

struct flights {
    const struct doctor_options *options;
    struct timespec began; /* all processes have one limit together */
    int written, missing;
};

/* What is left of the limit, and time for a process that answers at once. */
static double left_sec(const struct flights *flights)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double left = flights->options->question.timeout_sec -
                  (double)(now.tv_sec - flights->began.tv_sec) -
                  (double)(now.tv_nsec - flights->began.tv_nsec) * 1e-9;
    return left > 0.5 ? left : 0.5;
}

/* What a process did last; NULL with *why, or without when it has just ended. Owned. */
static char *ask_flight(int pid, const struct flights *flights, const char **why)
{
    const double limit_sec = left_sec(flights);
    *why = "";
    if (doctor_is_stopped(pid)) return NULL;
    int fd = doctor_connect_pid(pid, limit_sec, why);
    if (fd < 0 && errno != EAGAIN && !flights->options->pid) *why = NULL;
    char *text = fd >= 0 ? doctor_ask(fd, "FLIGHT\n", limit_sec, why) : NULL;
    if (!text || strstr(text, "{\"t\":\"end\"")) return text;
    *why = "its library is older";
    free(text);
    return NULL;
}

/* The file of one process. */
static void save_flight(int pid, const char *folder, struct flights *flights)
{
    const char *why;
    char path[PATH_MAX], host[256] = "";
    char *text = ask_flight(pid, flights, &why);
    if (!text) {
        if (!why) return;
        doctor_say_silent(pid, why);
        flights->missing++;
        return;
    }
    gethostname(host, sizeof(host) - 1);
    snprintf(path, sizeof(path), "%s/flight.%s.%d.jsonl", folder, host, pid);
    FILE *file = tt_file_create(path);
    bool good = file && fputs(text, file) >= 0;
    if (file && fclose(file)) good = false;
    if (good) printf("%s\n", path);
    if (!good) fprintf(stderr, "tutti doctor: %s: %s\n", path, strerror(errno));
    free(text);
    flights->written += good;
    flights->missing += !good;
}

static bool make_folder(const char *path)
{
    if (!mkdir(path, 0777) || errno == EEXIST) return true;
    fprintf(stderr, "tutti doctor: %s: %s\n", path, strerror(errno));
    return false;
}

/* The files of the processes of a job, each in `pids` put out of it. */
static void save_job(const json_t *job, const char *folder, int *pids, int count,
                     struct flights *flights)
{
    for (int p = 0; p < count; p++) {
        if (!pids[p] || (job && !doctor_has_pid(job, pids[p]))) continue;
        save_flight(pids[p], folder, flights);
        pids[p] = 0;
    }
}

/* Several jobs have a folder each, as what is said of one is made from all files of a folder.
 * Exit status: nothing was written, or not all. */
static int save_flights(const struct doctor_options *options)
{
    int pids[DOCTOR_PIDS_MOST] = {(int)options->pid};
    int count = options->pid ? 1 : doctor_list(pids, DOCTOR_PIDS_MOST);
    struct doctor_question brief = {.timeout_sec = options->question.timeout_sec, .quiet = true};
    struct flights flights = {.options = options};
    json_t *jobs = json_array();
    const json_t *job;
    size_t i;
    if (brief.timeout_sec > BRIEF_SEC) brief.timeout_sec = BRIEF_SEC;
    if (count > 1) doctor_examine_host(&brief, jobs);
    const size_t njobs = json_array_size(jobs);
    const bool made = make_folder(options->flight);
    clock_gettime(CLOCK_MONOTONIC, &flights.began);
    if (!made) count = 0;
    json_array_foreach(jobs, i, job)
    {
        char path[PATH_MAX];
        int first = 0;
        while (first < count && !(pids[first] && doctor_has_pid(job, pids[first])))
            first++;
        if (first == count || njobs < 2) continue;
        snprintf(path, sizeof(path), "%s/job.%d", options->flight, pids[first]);
        if (!make_folder(path)) break;
        save_job(job, path, pids, count, &flights);
    }
    save_job(NULL, options->flight, pids, count, &flights);
    json_decref(jobs);
    if (njobs > 1)
        fprintf(stderr, "tutti doctor: %zu jobs: a folder each, for `tutti trace check`\n", njobs);
    if (made && !count) return say_no_job();
    return flights.written && !flights.missing ? 0 : 1;
}

/* The named hosts, or this one; a host that cannot be asked is something to mend. */
static json_t *preflight_hosts(const char *names)
{
    json_t *hosts = json_array();
    char *list = names ? strdup(names) : NULL, *rest = NULL;
    if (!list) json_array_append_new(hosts, preflight_host());
    for (char *name = list ? strtok_r(list, ",", &rest) : NULL; name;
         name = strtok_r(NULL, ",", &rest)) {
        char why[400];
        const char *advice = "";
        json_int_t asked = (json_int_t)time(NULL);
        json_t *host = preflight_remote(name, why, sizeof(why), &advice);
        if (!host) {
            host = json_pack("{s:s, s:[{s:s, s:s, s:s, s:s}]}", "host", name, "checks", "name",
                             "remote shell", "state", "mend", "found", why, "advice", advice);
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
    int pids[DOCTOR_PIDS_MOST];
    int count = doctor_list(pids, DOCTOR_PIDS_MOST);
    json_t *job;
    size_t i;
    json_array_foreach(jobs, i, job) doctor_add_stacks(job, pids, count);
}

/* Exit status: a rank stands still. */
static int report(const json_t *jobs, bool json)
{
    const json_t *job;
    size_t i;
    int status = 0;
    json_array_foreach(jobs, i, job)
    {
        if (!json && i) printf("\n");
        if (json ? doctor_is_stuck(job) : doctor_show(job)) status = 1;
        if (!json) doctor_show_stacks(job);
    }
    if (json && json_dumpf(jobs, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) == 0)
        printf("\n");
    return status;
}

/* What running jobs do. Returns the exit status. */
static int ask_jobs(const struct doctor_options *options)
{
    json_t *jobs = json_array(), *job;
    size_t i;
    int status = 0;
    if (options->pid || options->address) {
        status = examine_one(options, jobs);
    } else if (doctor_examine_host(&options->question, jobs)) {
        status = 1; /* a process is silent */
    } else if (!json_array_size(jobs)) {
        status = say_no_job();
    }
    if (options->stacks) add_stacks(jobs);
    json_array_foreach(jobs, i, job)
    {
        char program[DOCTOR_PROGRAM_BYTES];
        const int pid = doctor_pid_of(job);
        doctor_judge_inits(job);
        if (pid && doctor_program_of(pid, program))
            json_object_set_new(job, "program", json_string(program));
    }
    const int stuck = report(jobs, options->json);
    json_decref(jobs);
    return status ? status : stuck;
}

int cmd_doctor(int argc, char **argv)
{
    struct doctor_options options = {.question = {.timeout_sec = 5}};
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
    return ask_jobs(&options);
}
