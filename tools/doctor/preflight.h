/* What is checked on a host before a job starts there. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Owned: {host, time, version, checks: [{name, state, found, advice}]}. state: ok, mend (something
 * is to be mended), note (worth knowing, or not visible here). */
json_t *preflight_host(void);
/* The same of another host, by $TUTTI_RSH and this program's path there; NULL with a reason and
 * what to do (static). */
json_t *preflight_remote(const char *host, char *why, size_t why_bytes, const char **advice);
/* Let each of the hosts connect to all others, by listeners that this starts there. */
void preflight_connect(json_t *hosts, const char *names);
/* The two ends of that, run by the remote shell; exit statuses. */
int preflight_listen(void);
int preflight_reach(const char *addresses);

/* This program on another host, with `words` behind its name; NULL: nothing but a shell there. */
struct preflight_shell {
    pid_t child;
    FILE *from; /* its output */
    int to;     /* its input; it ends where this is closed */
};
bool preflight_shell_open(struct preflight_shell *shell, const char *host, const char *words);
/* Its exit status, or -1. Accepts one that did not open. */
int preflight_shell_close(struct preflight_shell *shell);

void preflight_add(json_t *host, const char *name, const char *state, const char *found,
                   const char *advice);
/* Add to the checks of each host what differs from the first: versions, MTU, clocks. */
void preflight_compare(json_t *hosts);
/* Number of checks whose state is `mend`. */
int preflight_faults(const json_t *host);
void preflight_show(const json_t *host);
