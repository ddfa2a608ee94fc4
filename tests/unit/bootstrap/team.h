/* Runs a body as n ranks, each a thread or a process, and collects what they report.
 * Reports lie in shared memory, so both forms are checked the same way. */
#pragma once

#include "base/member.h"
#include "bootstrap/bootstrap.h"

enum team_form { TEAM_THREADS, TEAM_PROCESSES };

#define TEAM_MAX 256

struct team_report {
    ncclResult_t rc;
    int wrong; /* values that differ from what they should be */
    char sentence[700];
};

struct team_rank { /* what a body gets */
    int rank, nranks;
    const ncclUniqueId *ids;
    int nids;
    int64_t timeout_sec;
    void *arg;
    struct team_report *report; /* in shared memory */
};
typedef void (*team_body)(struct team_rank *self);

struct team {
    int nranks;
    const ncclUniqueId *ids;
    int nids;
    int64_t timeout_sec;
    void *arg;
    struct team_report *reports; /* nranks; made by team_run, freed by team_fini */
};
void team_run(struct team *team, enum team_form form, team_body body);
void team_fini(struct team *team);

/* Entries of a folder of /proc: descriptors or threads that are there now. */
int team_entries(const char *path);
/* True once the folder has at most that many, which it is given 5 s for: a thread that was joined
 * stands in /proc for a moment longer. */
bool team_entries_fall(const char *path, int count);

/* Join with a record that names the rank; fills the report on failure. */
ncclResult_t team_join(struct team_rank *self, struct tt_member *member,
                       struct tt_bootstrap **bootstrap_out, const void **records_out);
