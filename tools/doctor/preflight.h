/* What is checked on a host before a job starts there. */
#pragma once

#include <jansson.h>

/* Owned: {host, time, version, checks: [{name, state, found, advice}]}. state: ok, mend (something
 * is to be mended), note (worth knowing, or not visible here). */
json_t *preflight_host(void);
/* The same of another host, by $TUTTI_RSH and this program's path there; NULL with a reason. */
json_t *preflight_remote(const char *host, char *why, size_t why_bytes);
/* Add to the checks of each host what differs from the first: versions, MTU, clocks. */
void preflight_compare(json_t *hosts);
/* Number of checks whose state is `mend`. */
int preflight_faults(const json_t *host);
void preflight_show(const json_t *host);
