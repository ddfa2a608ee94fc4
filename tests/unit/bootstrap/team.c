/* Ranks as threads or forked processes; see team.h. */
#include "team.h"

#include "base/error.h"
#include "base/system/clock.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct runner {
    struct team_rank self;
    team_body body;
};

static void *run_thread(void *arg)
{
    struct runner *runner = arg;
    runner->body(&runner->self);
    return NULL;
}

void team_run(struct team *team, enum team_form form, team_body body)
{
    pthread_t threads[TEAM_MAX];
    pid_t pids[TEAM_MAX];
    struct runner runners[TEAM_MAX];
    team->reports = mmap(NULL, sizeof(*team->reports) * TEAM_MAX, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int r = 0; r < team->nranks; r++) {
        team->reports[r].rc = ncclNumResults; /* no report */
        runners[r] = (struct runner){.self = {.rank = r,
                                              .nranks = team->nranks,
                                              .ids = team->ids,
                                              .nids = team->nids,
                                              .timeout_sec = team->timeout_sec,
                                              .arg = team->arg,
                                              .report = &team->reports[r]},
                                     .body = body};
        if (form == TEAM_THREADS) {
            pthread_create(&threads[r], NULL, run_thread, &runners[r]);
            continue;
        }
        fflush(NULL);
        pids[r] = fork();
        if (pids[r] == 0) {
            alarm(60);
            body(&runners[r].self);
            exit(0);
        }
    }
    for (int r = 0; r < team->nranks; r++) {
        if (form == TEAM_THREADS) {
            pthread_join(threads[r], NULL);
        } else {
            waitpid(pids[r], NULL, 0);
        }
    }
}

void team_fini(struct team *team)
{
    munmap(team->reports, sizeof(*team->reports) * TEAM_MAX);
    team->reports = NULL;
}

ncclResult_t team_join(struct team_rank *self, struct tt_member *member,
                       struct tt_bootstrap **bootstrap_out, const void **records_out)
{
    unsigned char record[TT_RECORD_BYTES];
    memset(record, self->rank + 1, sizeof(record));
    member->rank = self->rank;
    member->nranks = self->nranks;
    member->comm_id = tt_id_comm(self->ids, self->nids);
    member->name = "";
    struct tt_bootstrap_config config = {
        .member = member,
        .ids = self->ids,
        .nids = self->nids,
        .record = record,
        .timeout_sec = self->timeout_sec,
    };
    ncclResult_t rc = tt_bootstrap_join(&config, bootstrap_out, records_out);
    self->report->rc = rc;
    if (rc) snprintf(self->report->sentence, sizeof(self->report->sentence), "%s", tt_last_error());
    return rc;
}

int team_entries(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    while (dir && readdir(dir))
        count++;
    if (dir) closedir(dir);
    return count;
}

bool team_entries_fall(const char *path, int count)
{
    for (int k = 0; k < 5000 && team_entries(path) > count; k++)
        tt_sleep_usec(1000);
    return team_entries(path) <= count;
}
