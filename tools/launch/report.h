/* What became of a job, as one JSON object (`tutti run --json`): each rank's end, warnings, and
 * who waited for whom. Nothing is written before the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct launch_report;
struct launch_options;

/* NULL: memory is short. `options` are borrowed. */
struct launch_report *launch_report_create(const struct launch_options *options);
void launch_report_destroy(struct launch_report *report); /* accepts NULL */

/* A rank has been started. Accepts NULL. host: index into options->hosts; -1: here */
void launch_report_start(struct launch_report *report, int rank, int host, pid_t pid);

/* A line that a rank wrote: kept where it is a warning of the library. Accepts NULL. */
void launch_report_line(struct launch_report *report, int rank, const char *line, size_t bytes);

/* A rank has ended, `status` as waitpid() gave it; `sent`: not well, after it was told to. Accepts
 * NULL. */
void launch_report_end(struct launch_report *report, int rank, int status, bool sent);

/* A rank has failed: the first is the one to blame, unless the job is being ended because of a
 * signal. Its end may come later. Accepts NULL. */
void launch_report_blame(struct launch_report *report, int rank);

/* The rank that the first warning of a rank names as the cause, or whom that one names, and so on.
 * -1: none does. Accepts NULL. */
int launch_report_blamed(const struct launch_report *report);

/* Ranks wait (waits[rank]) for one that has ended, which is to blame. Accepts NULL. */
void launch_report_hang(struct launch_report *report, const char *sentence, const bool *waits,
                        int ended);

/* The job is being ended because of a signal, unless a rank has failed before. What ranks warn of
 * from now on is a consequence. Accepts NULL. */
void launch_report_interrupt(struct launch_report *report);

/* Write the object; `status` is the command's. Accepts NULL. */
void launch_report_write(const struct launch_report *report, int status, FILE *to);
