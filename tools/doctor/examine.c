/* Asks processes for their answers and puts those about one job together. A process answers for all
 * that it is connected with, so most need not be asked. */
#include "doctor/examine.h"

#include "doctor/ask.h"
#include "doctor/init.h"
#include "doctor/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ASKED = 256, BRIEF_SEC = 2 };

void doctor_say_silent(int pid, const char *why)
{
    fprintf(stderr, "tutti doctor: process %d does not answer: %s\n", pid,
            doctor_why_silent(pid, why));
}

json_t *doctor_examine(int fd, const struct doctor_question *question, const char **why)
{
    char lines[64];
    char *text = NULL;
    json_t *job = NULL;
    snprintf(lines, sizeof(lines), "TIMEOUT %g\nDOCTOR\n", question->timeout_sec);
    if (fd >= 0) text = doctor_ask(fd, lines, question->timeout_sec + 2, why);
    const char *from = text ? strchr(text, '{') : NULL; /* behind "OK" */
    if (from) job = json_loads(from, JSON_DISABLE_EOF_CHECK, NULL);
    if (text && !job) *why = "what it answered is not understood";
    free(text);
    return job;
}

static bool lists_pid(const json_t *list, int pid)
{
    const json_t *process;
    size_t i;
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    json_array_foreach(list, i, process)
    {
        const char *where = json_string_value(json_object_get(process, "host"));
        if (where && !strncmp(where, host, 63) &&
            json_integer_value(json_object_get(process, "pid")) == pid)
            return true;
    }
    return false;
}

bool doctor_has_pid(const json_t *job, int pid)
{
    const json_t *comm;
    size_t i;
    bool found = lists_pid(json_object_get(job, "processes"), pid);
    if (found || !doctor_is_stopped(pid)) return found;
    json_array_foreach(json_object_get(job, "communicators"), i, comm) found |=
        lists_pid(json_object_get(comm, "missing"), pid);
    return found;
}

static bool is_known(const json_t *jobs, int pid)
{
    const json_t *job;
    size_t i;
    bool known = false;
    json_array_foreach(jobs, i, job) known |= doctor_has_pid(job, pid);
    return known;
}

void doctor_examine_missing(const struct doctor_question *question, json_t *jobs)
{
    struct doctor_question brief = *question;
    int asked[MAX_ASKED], nasked = 0, pid;
    if (brief.timeout_sec > 1) brief.timeout_sec = 1;
    while (nasked < MAX_ASKED && (pid = doctor_missing_pid(jobs, asked, nasked))) {
        const char *why = "";
        asked[nasked++] = pid;
        int fd = doctor_connect_pid(pid, brief.timeout_sec, &why);
        if (fd >= 0) doctor_merge(jobs, doctor_examine(fd, &brief, &why));
    }
}

/* Its socket goes with the process. */
static bool has_ended(int pid)
{
    const char *why = "";
    const int fd = doctor_connect_pid(pid, BRIEF_SEC, &why);
    const bool ended = fd < 0 && errno != EAGAIN;
    if (fd >= 0) close(fd);
    return ended;
}

int doctor_examine_host(const struct doctor_question *question, json_t *jobs)
{
    int pids[DOCTOR_PIDS_MOST], silent = 0;
    int count = doctor_list(pids, DOCTOR_PIDS_MOST);
    for (int p = 0; p < count; p++) {
        const char *why = "";
        if (doctor_is_stopped(pids[p]) || is_known(jobs, pids[p])) continue;
        int fd = doctor_connect_pid(pids[p], question->timeout_sec, &why);
        if (fd < 0 && errno != EAGAIN) {
            pids[p] = 0; /* it has just ended */
            continue;
        }
        json_t *job = doctor_examine(fd, question, &why);
        const bool answered = job != NULL;
        doctor_merge(jobs, job);
        doctor_examine_missing(question, jobs);
        if (answered) continue;
        if (has_ended(pids[p])) {
            pids[p] = 0;
            continue;
        }
        if (!question->quiet) doctor_say_silent(pids[p], why);
        pids[p] = 0;
        silent++;
    }
    for (int p = 0; p < count; p++) {
        if (!doctor_is_stopped(pids[p]) || is_known(jobs, pids[p])) continue;
        if (!question->quiet) doctor_say_silent(pids[p], "");
        silent++;
    }
    return silent;
}

/* It is in an init of which no process with the root has answered. */
static bool is_unclear(const json_t *job)
{
    const json_t *comm, *rank;
    size_t i, k;
    json_array_foreach(json_object_get(job, "communicators"), i, comm)
    {
        if (!doctor_in_init(comm)) continue;
        json_array_foreach(json_object_get(comm, "missing"), k, rank)
        {
            const char *state = json_string_value(json_object_get(rank, "state"));
            if (state && !strcmp(state, "unknown")) return true;
        }
    }
    return false;
}

static double now_sec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* One process, if it is of that job. */
static void examine_neighbour(int pid, double timeout_sec, json_t *jobs)
{
    const struct doctor_question brief = {.timeout_sec = timeout_sec < 1 ? timeout_sec : 1};
    const char *why = "";
    const int fd = doctor_connect_pid(pid, brief.timeout_sec, &why);
    json_t *other = doctor_examine(fd, &brief, &why);
    if (other && doctor_shares_comm(json_array_get(jobs, 0), other)) {
        doctor_merge(jobs, other);
    } else {
        json_decref(other);
    }
}

/* Those of its session first, as ranks of a job are as a rule. */
void doctor_examine_neighbours(int pid, const struct doctor_question *question, json_t *jobs)
{
    int pids[DOCTOR_PIDS_MOST];
    const json_t *job = json_array_get(jobs, 0);
    const pid_t session = getsid(pid);
    const double until_sec = now_sec() + question->timeout_sec;
    if (!is_unclear(job)) return;
    const int count = doctor_list(pids, DOCTOR_PIDS_MOST);
    for (int p = 0; p < 2 * count && is_unclear(job); p++) {
        const int other = pids[p % count];
        const double left_sec = until_sec - now_sec();
        if (left_sec <= 0) break;
        if ((getsid(other) == session) != (p < count)) continue;
        if (!doctor_is_stopped(other) && !doctor_has_pid(job, other))
            examine_neighbour(other, left_sec, jobs);
    }
    doctor_examine_missing(question, jobs); /* the root knows more of them */
}

int doctor_pid_of(const json_t *job)
{
    int pids[DOCTOR_PIDS_MOST];
    const int count = doctor_list(pids, DOCTOR_PIDS_MOST);
    for (int p = 0; p < count; p++) {
        if (!doctor_is_stopped(pids[p]) && doctor_has_pid(job, pids[p])) return pids[p];
    }
    return 0;
}
