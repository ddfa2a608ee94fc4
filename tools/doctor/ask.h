/* Ask running processes about their job: over the local sockets of this user's processes, or over
 * TCP. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A connection to the process with that pid; -1 with a reason in *why (static), and EAGAIN in errno
 * when it is there and accepts nothing within the time. */
int doctor_connect_pid(int pid, double timeout_sec, const char **why);
/* To "host[:port]", where ranks listen (NCCL_RAS_ADDR). */
int doctor_connect_address(const char *address, double timeout_sec, const char **why);

/* Send lines, and read until the other side closes: owned text, NULL with *why. Closes `fd`. */
char *doctor_ask(int fd, const char *lines, double timeout_sec, const char **why);

/* The process is stopped by a signal (SIGSTOP, SIGTSTP): it will not answer. */
bool doctor_is_stopped(int pid);
/* Why it does not answer, as /proc shows (static); `otherwise` where that shows nothing. */
const char *doctor_why_silent(int pid, const char *otherwise);

enum { DOCTOR_PROGRAM_BYTES = 64 };
/* How the process was started, cut where it is long. False: there is no such process. */
bool doctor_program_of(int pid, char text[DOCTOR_PROGRAM_BYTES]);

/* Pids of this user's processes on this host that answer, ascending; at most max. */
int doctor_list(int *pids, int max);
