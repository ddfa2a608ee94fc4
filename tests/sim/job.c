/* What ranks do: meet, exchange, write to each other, be split, part. Ranks of a process are its
 * threads. */
#include "simulation.h"
#include "traffic.h"

#include "base/error.h"
#include "base/member.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"

#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT_SEC = 15, MOST_BYTES = 3000, LETTER = 7 };

struct rank {
    int rank;
    struct tt_member member, child_member;
    struct sim_report *report;
    unsigned char mine[MOST_BYTES], all[MOST_BYTES * SIM_RANKS];
};

static ncclResult_t fails(struct rank *self, ncclResult_t rc)
{
    snprintf(self->report->sentence, sizeof(self->report->sentence), "%s", tt_last_error());
    return rc;
}

/* ---- what is random in a process follows from the seed ---- */

static uint32_t random_word(void)
{
    struct sim_proc *proc = &sim->procs[sim_self() ? sim_self()->proc : 0];
    proc->random = proc->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(proc->random >> 32);
}

static void random_bytes(void *const bytes, const size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)random_word();
}

static const char *random_name(void)
{
    return "simulated";
}

static struct randombytes_implementation randomness = {
    .implementation_name = random_name, .random = random_word, .buf = random_bytes};

/* ---- steps ---- */

static ncclResult_t exchange(struct rank *self, struct tt_bootstrap *b, const int *ranks, size_t n,
                             size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        self->mine[i] = (unsigned char)((size_t)self->rank * 31 + i * 7 + bytes);
    ncclResult_t rc = tt_bootstrap_allgather(b, self->mine, bytes, self->all);
    if (rc) return fails(self, rc);
    for (size_t r = 0; r < n; r++) {
        size_t rank = ranks ? (size_t)ranks[r] : r;
        for (size_t i = 0; i < bytes; i++) {
            self->report->wrong +=
                self->all[r * bytes + i] != (unsigned char)(rank * 31 + i * 7 + bytes);
        }
    }
    return ncclSuccess;
}

static ncclResult_t messages(struct rank *self, struct tt_bootstrap *b)
{
    int n = sim->plan.nranks, next = (self->rank + 1) % n, prev = (self->rank + n - 1) % n;
    int value = self->rank * 1000;
    ncclResult_t rc = tt_bootstrap_send(b, next, LETTER, &value, sizeof(value));
    size_t bytes = 0;
    while (!rc) {
        rc = tt_bootstrap_poll(b, prev, LETTER, &value, sizeof(value), &bytes);
        if (rc != ncclInProgress) break;
        tt_sleep_usec(200);
        rc = ncclSuccess;
    }
    if (rc) return fails(self, rc);
    self->report->wrong += value != prev * 1000 || bytes != sizeof(value);
    return ncclSuccess;
}

/* Even and odd ranks part for a while. */
static ncclResult_t split(struct rank *self, struct tt_bootstrap *b)
{
    int ranks[SIM_RANKS], n = 0;
    const void *records;
    struct tt_bootstrap *child = NULL;
    for (int r = self->rank % 2; r < sim->plan.nranks; r += 2)
        ranks[n++] = r;
    self->child_member =
        (struct tt_member){.rank = self->rank / 2, .nranks = n, .comm_id = 77, .name = "half"};
    struct tt_bootstrap_child config = {.member = &self->child_member,
                                        .parent_ranks = ranks,
                                        .salt = {1, 1, (uint64_t)self->rank % 2},
                                        .whole_parent = true,
                                        .record = self->mine};
    ncclResult_t rc = tt_bootstrap_child(b, &config, &child, &records);
    if (rc) return fails(self, rc);
    tt_bootstrap_init_done(child);
    rc = exchange(self, child, ranks, (size_t)n, 100);
    tt_bootstrap_leave(child);
    return rc;
}

static ncclResult_t traffic(struct rank *self, struct tt_bootstrap *b)
{
    const char *cause = NULL;
    ncclResult_t rc = sim_traffic(&self->member, b, &self->report->wrong);
    if (!rc) return ncclSuccess;
    fails(self, rc);
    if (tt_bootstrap_error(b, &cause) && cause) /* as a communicator does */
        snprintf(self->report->sentence, sizeof(self->report->sentence), "%s", cause);
    return rc;
}

static ncclResult_t steps(struct rank *self, struct tt_bootstrap *b)
{
    size_t n = (size_t)sim->plan.nranks;
    ncclResult_t rc = exchange(self, b, NULL, n, 8);
    tt_bootstrap_init_done(b);
    self->report->step = 2;
    if (!rc) rc = messages(self, b);
    if (!rc) self->report->step = 3;
    if (!rc) rc = exchange(self, b, NULL, n, MOST_BYTES);
    if (!rc) self->report->step = 4;
    sim->complete_at = sim->now;
    if (!rc) rc = traffic(self, b);
    if (!rc) rc = split(self, b);
    if (!rc) self->report->step = 5;
    if (!rc) rc = exchange(self, b, NULL, n, 1);
    if (!rc) self->report->step = 6;
    return rc;
}

static void *play(void *arg)
{
    struct rank *self = arg;
    struct tt_bootstrap *b = NULL;
    const void *records = NULL;
    unsigned char record[TT_RECORD_BYTES];
    for (int i = 0; i < sim->plan.nids; i++) {
        if (sim->plan.maker[i] != self->rank) continue;
        if (tt_id_create(&sim->ids[i])) return NULL;
        sim->id_made[i] = true;
    }
    sim_self()->wait = SIM_ID;
    sim_turn();
    if (!sim_has_ids()) return NULL; /* as if it had never begun */
    memset(record, self->rank + 1, sizeof(record));
    self->member = (struct tt_member){.rank = self->rank,
                                      .nranks = sim->plan.nranks,
                                      .comm_id = tt_id_comm(sim->ids, sim->plan.nids),
                                      .name = ""};
    struct tt_bootstrap_config config = {.member = &self->member,
                                         .ids = sim->ids,
                                         .nids = sim->plan.nids,
                                         .record = record,
                                         .timeout_sec = TIMEOUT_SEC,
                                         .thread = self->rank};
    ncclResult_t rc = tt_bootstrap_join(&config, &b, &records);
    if (rc) {
        fails(self, rc);
    } else {
        self->report->step = 1;
        rc = steps(self, b);
        tt_bootstrap_leave(b);
    }
    self->report->at = sim->now;
    self->report->rc = rc;
    self->report->ended = true;
    return NULL;
}

/* Registered first, so it runs last. */
static void at_exit(int code, void *arg)
{
    (void)code, (void)arg;
    if (sim_self()) sim_process_end();
}

void sim_job(int proc)
{
    static struct rank ranks[SIM_RANKS];
    pthread_t threads[SIM_RANKS];
    int n = 0;
    on_exit(at_exit, NULL);
    randombytes_set_implementation(&randomness);
    setenv("NCCL_SOCKET_IFNAME", sim->plan.nways < 2 ? "=lo" : "sim", 1);
    setenv("TUTTI_NET_ENCRYPT", sim->plan.sealed ? "1" : "0", 1);
    setenv("NCCL_SOCKET_FAMILY", "AF_INET", 1);
    sim_thread_begin(proc); /* of which the first thread has its number */
    for (int r = 0; r < sim->plan.nranks; r++) {
        if (sim->plan.proc_of[r] != proc) continue;
        ranks[r] = (struct rank){.rank = r, .report = &sim->reports[r]};
        pthread_create(&threads[n++], NULL, play, &ranks[r]);
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    exit(0);
}
