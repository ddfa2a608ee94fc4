/* Which jobs run on this host, and what their processes say. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum { DOCTOR_PIDS_MOST = 4096 };

struct doctor_question {
    double timeout_sec;
    bool quiet; /* processes that do not answer are none of those that were asked for */
};

/* The answer of the other end, as an owned object; NULL with *why. */
json_t *doctor_examine(int fd, const struct doctor_question *question, const char **why);
/* Ranks that run and have not answered: the question passed through a process that is stopped. Each
 * is asked itself, for a second, as it cannot reach others either. */
void doctor_examine_missing(const struct doctor_question *question, json_t *jobs);
/* A process in an init is connected with no other: what others of this host say of its
 * communicators is added, until one says who has come, for as long again as a question may take. */
void doctor_examine_neighbours(int pid, const struct doctor_question *question, json_t *jobs);
/* All jobs of this user: a process that another has answered for is not asked again, and one that
 * is stopped is not asked at all. Returns how many are in no answer. */
int doctor_examine_host(const struct doctor_question *question, json_t *jobs);

/* It has answered in that job; or it is stopped, and one of its ranks that are missing. */
bool doctor_has_pid(const json_t *job, int pid);

/* A process of the job on this host that answers; 0: none. */
int doctor_pid_of(const json_t *job);

void doctor_say_silent(int pid, const char *why);
