/* Communicators as threads and as processes: init, children, ends, errors. Transport and device
 * are fakes that show whether memory is really shared. */
#include "../bootstrap/team.h"
#include "../check.h"

#include "base/error.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"
#include "comm/comm.h"
#include "comm/records/record.h"
#include "device/device.h"
#include "transport/transport.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum team_form form = TEAM_THREADS;

static ncclResult_t make(struct team_rank *self, int device, struct tt_comm **comm_out)
{
    struct tt_comm *comm = NULL;
    const struct tt_comm_request request = {.func = "ncclCommInitRank",
                                            .nranks = self->nranks,
                                            .rank = self->rank,
                                            .device = device,
                                            .ids = self->ids,
                                            .nids = self->nids};
    ncclResult_t rc = tt_comm_alloc(&request, &comm);
    if (!rc) rc = tt_comm_init(comm, &request);
    self->report->rc = rc;
    if (rc) {
        snprintf(self->report->sentence, sizeof(self->report->sentence), "%s", tt_last_error());
        tt_comm_free(comm);
        return rc;
    }
    *comm_out = comm;
    return ncclSuccess;
}

/* Every peer left its number in this rank's inbox. */
static int inbox_wrong(const struct tt_comm *comm)
{
    int wrong = 0;
    for (int r = 0; r < comm->member.nranks; r++) {
        int value;
        memcpy(&value, (const char *)comm->inbox + 64 * (size_t)r, sizeof(value));
        wrong += value != r + 1;
    }
    return wrong;
}

static void body_init(struct team_rank *self)
{
    struct tt_comm *comm;
    if (make(self, self->rank, &comm)) return;
    self->report->wrong += inbox_wrong(comm);
    self->report->wrong += tt_comm_check(comm, "test") != ncclSuccess;
    self->report->wrong += comm->tune.nranks != self->nranks || comm->tune.nnodes != 1;
    self->report->wrong += !comm->tune.all_direct || comm->tune.ppn != self->nranks;
    self->report->wrong += comm->tune.oversubscribed != (self->nranks > 2);
    enum tt_reach want = form == TEAM_THREADS ? TT_REACH_PROCESS : TT_REACH_MAPPED;
    for (int r = 0; r < self->nranks; r++) {
        if (r != self->rank) self->report->wrong += comm->peers[r].reach != want;
    }
    self->report->rc = tt_comm_finalize(comm);
    self->report->wrong += tt_comm_check(comm, "test") != ncclInvalidUsage;
    tt_comm_free(comm);
}

static void run(int nranks, team_body body, ncclResult_t rc, const char *words)
{
    ncclUniqueId id;
    assert_int_equal(tt_id_create(&id), ncclSuccess);
    struct team team = {.nranks = nranks, .ids = &id, .nids = 1, .timeout_sec = 30};
    team_run(&team, form, body);
    for (int r = 0; r < nranks; r++) {
        if (team.reports[r].rc != rc || team.reports[r].wrong) {
            print_message("rank %d: rc %d wrong %d %s\n", r, team.reports[r].rc,
                          team.reports[r].wrong, team.reports[r].sentence);
        }
        assert_int_equal(team.reports[r].rc, rc);
        assert_int_equal(team.reports[r].wrong, 0);
        if (words) assert_non_null(strstr(team.reports[r].sentence, words));
    }
    team_fini(&team);
}

static void inits(void **state)
{
    static const int sizes[] = {1, 2, 4, 8};
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        run(sizes[i], body_init, ncclSuccess, NULL);
    }
}

static void body_same_device(struct team_rank *self)
{
    struct tt_comm *comm;
    if (!make(self, self->rank / 2, &comm)) tt_comm_free(comm);
}

static void one_device_twice(void **state)
{
    (void)state;
    run(3, body_same_device, ncclInvalidUsage, "NCCL_MULTI_RANK_GPU_ENABLE");
}

/* ---- split and shrink ---- */

static ncclResult_t child_of(struct tt_comm *parent, const char *func, struct tt_comm **child_out)
{
    const struct tt_comm_request request = {.func = func,
                                            .nranks = parent->member.nranks,
                                            .rank = parent->member.rank,
                                            .device = parent->member.device,
                                            .inherit = &parent->config};
    return tt_comm_alloc(&request, child_out);
}

static ncclResult_t split(struct tt_comm *parent, int color, int key, struct tt_comm **child_out)
{
    struct tt_comm *child = NULL;
    ncclResult_t rc = ncclSuccess;
    if (color != NCCL_SPLIT_NOCOLOR) rc = child_of(parent, "ncclCommSplit", &child);
    const struct tt_comm_color own = {tt_comm_count_child(parent), color, key};
    if (!rc) rc = tt_comm_split(parent, &own, child);
    *child_out = child;
    return rc;
}

/* Rank 0 has no colour; odd and even ranks form two children, in reverse order by key; then all
 * again with equal keys. */
static void body_split(struct team_rank *self)
{
    struct tt_comm *comm, *child = NULL, *again = NULL;
    if (make(self, self->rank, &comm)) return;
    int color = self->rank == 0 ? NCCL_SPLIT_NOCOLOR : self->rank % 2;
    self->report->rc = split(comm, color, -self->rank, &child);
    if (!self->report->rc) self->report->rc = split(comm, 5, 0, &again);
    self->report->wrong += (child == NULL) != (self->rank == 0);
    if (child) {
        int count = 0, above = 0;
        for (int r = 1; r < self->nranks; r++) {
            if (r % 2 == color) count++;
            if (r % 2 == color && r > self->rank) above++;
        }
        self->report->wrong += child->member.nranks != count || child->member.rank != above;
        self->report->wrong += child->member.comm_id == comm->member.comm_id;
        self->report->wrong += inbox_wrong(child);
    }
    if (again) {
        self->report->wrong += again->member.rank != self->rank;
        self->report->wrong += again->member.nranks != self->nranks;
    }
    tt_comm_free(child);
    tt_comm_free(comm); /* before its child: each has its own connections */
    if (again) self->report->wrong += tt_bootstrap_barrier(again->bootstrap) != ncclSuccess;
    tt_comm_free(again);
}

static void splits(void **state)
{
    (void)state;
    run(7, body_split, ncclSuccess, NULL);
}

static void body_shrink(struct team_rank *self)
{
    static const int gone[] = {3, 0};
    struct tt_comm *comm, *child = NULL;
    if (make(self, self->rank, &comm)) return;
    if (self->rank == 0 || self->rank == 3) {
        if (form == TEAM_PROCESSES) kill(getpid(), SIGKILL);
        tt_comm_free(comm);
        return;
    }
    while (form == TEAM_PROCESSES && !tt_comm_state(comm))
        tt_sleep_usec(1000);
    self->report->rc = child_of(comm, "ncclCommShrink", &child);
    if (!self->report->rc) {
        self->report->rc = tt_comm_shrink(comm, gone, 2, child, NCCL_SHRINK_ABORT);
    }
    self->report->wrong += child->member.nranks != self->nranks - 2;
    self->report->wrong += child->member.rank != (self->rank < 3 ? self->rank - 1 : self->rank - 2);
    if (!self->report->rc) self->report->wrong += inbox_wrong(child);
    tt_comm_free(comm);
    tt_comm_free(child);
}

/* Those that share resources have one issue queue, whichever ends first, and one abort ends all of
 * it. */
static void body_sharers(struct team_rank *self)
{
    struct tt_comm *comm, *child = NULL, *grandchild = NULL;
    if (make(self, self->rank, &comm)) return;
    comm->config.splitShare = 1;
    self->report->rc = split(comm, 0, 0, &child);
    if (self->report->rc) return;
    child->config.splitShare = 1;
    self->report->rc = split(child, 0, 0, &grandchild);
    if (self->report->rc) return;
    self->report->wrong += child->queue_used != &comm->queue;
    self->report->wrong += grandchild->queue_used != &comm->queue;
    tt_comm_free(comm);
    tt_comm_abort(child, ncclInternalError);
    self->report->wrong += tt_comm_state(grandchild) != ncclInternalError;
    self->report->wrong += atomic_load(&grandchild->queue_used->issued) != 0; /* still there */
    tt_comm_free(child);
    tt_comm_free(grandchild);
}

/* Who shares has no more channels than its parent, whatever it wants; others have their own. */
static void body_channels(struct team_rank *self)
{
    struct tt_comm *comm;
    if (make(self, self->rank, &comm)) return;
    for (int share = 0; share < 2 && !self->report->rc; share++) {
        struct tt_comm *child = NULL;
        comm->config.splitShare = share;
        self->report->rc = child_of(comm, "ncclCommSplit", &child);
        if (self->report->rc) break;
        child->config.minCTAs = 8;
        const struct tt_comm_color own = {tt_comm_count_child(comm), 0, self->rank};
        self->report->rc = tt_comm_split(comm, &own, child);
        self->report->wrong += child->topo.nchannels != (share ? comm->topo.nchannels : 8);
        tt_comm_free(child);
    }
    self->report->wrong += comm->topo.nchannels >= 8;
    tt_comm_free(comm);
}

static void channels_of_families(void **state)
{
    (void)state;
    run(3, body_channels, ncclSuccess, NULL);
}

static void resource_sharers(void **state)
{
    (void)state;
    run(1, body_sharers, ncclSuccess, NULL);
}

static void shrinks(void **state)
{
    (void)state;
    run(6, body_shrink, ncclSuccess, NULL);
}

/* ---- errors ---- */

static void body_abort(struct team_rank *self)
{
    struct tt_comm *comm;
    if (make(self, self->rank, &comm)) return;
    if (self->rank == 2) {
        tt_comm_abort(comm, ncclInternalError);
        self->report->wrong += tt_comm_state(comm) != ncclInternalError;
    } else {
        while (!tt_comm_state(comm))
            tt_sleep_usec(1000);
        self->report->wrong += tt_comm_state(comm) != ncclRemoteError;
        self->report->wrong += tt_comm_check(comm, "test") != ncclRemoteError;
        self->report->wrong += strstr(tt_last_error(), "rank 2 aborted") == NULL;
    }
    tt_comm_free(comm);
}

static void aborts(void **state)
{
    (void)state;
    run(5, body_abort, ncclSuccess, NULL);
}

/* Rank 1 revokes first; the others notice, revoke too, and all go on in a child. */
static void body_revoke(struct team_rank *self)
{
    struct tt_comm *comm, *child = NULL;
    if (make(self, self->rank, &comm)) return;
    while (self->rank != 1 && !tt_comm_state(comm))
        tt_sleep_usec(1000);
    self->report->rc = tt_comm_revoke(comm);
    self->report->wrong += tt_comm_state(comm) != ncclSuccess;
    self->report->wrong += tt_comm_check(comm, "test") != ncclInvalidUsage;
    if (!self->report->rc) self->report->rc = split(comm, 0, 0, &child);
    self->report->wrong += !child || tt_comm_check(child, "test") != ncclSuccess;
    tt_comm_free(comm);
    tt_comm_free(child);
}

static void revokes(void **state)
{
    (void)state;
    run(4, body_revoke, ncclSuccess, NULL);
}

static void bad_handles(void **state)
{
    uint64_t junk[64] = {0};
    (void)state;
    assert_int_equal(tt_comm_check(NULL, "test"), ncclInvalidArgument);
    assert_int_equal(tt_comm_check((struct tt_comm *)(void *)junk, "test"), ncclInvalidArgument);
    tt_comm_free(NULL);
    ncclUniqueId id;
    struct tt_comm *comm;
    assert_int_equal(tt_id_create(&id), ncclSuccess);
    const struct tt_comm_request request = {
        .func = "test", .nranks = 2, .rank = 0, .ids = &id, .nids = 1};
    assert_int_equal(tt_comm_alloc(&request, &comm), ncclSuccess);
    assert_int_equal(tt_comm_check(comm, "test"), ncclInvalidArgument); /* not made yet */
    tt_comm_free(comm);
}

static void nothing_is_left(void **state)
{
    int fds = 0, threads = 0;
    (void)state;
    if (form != TEAM_THREADS) return;
    for (int round = 0; round < 25; round++) {
        run(4, body_init, ncclSuccess, NULL);
        if (round == 10) {
            fds = team_entries("/proc/self/fd");
            threads = team_entries("/proc/self/task");
        }
    }
    assert_true(team_entries_fall("/proc/self/fd", fds));
    assert_true(team_entries_fall("/proc/self/task", threads));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_left),
        cmocka_unit_test(inits),
        cmocka_unit_test(one_device_twice),
        cmocka_unit_test(splits),
        cmocka_unit_test(channels_of_families),
        cmocka_unit_test(resource_sharers),
        cmocka_unit_test(shrinks),
        cmocka_unit_test(aborts),
        cmocka_unit_test(revokes),
        cmocka_unit_test(bad_handles),
    };
    if (argc > 1 && !strcmp(argv[1], "processes")) form = TEAM_PROCESSES;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
