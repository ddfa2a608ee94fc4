/* Meeting, exchanging and parting of ranks, as threads and as processes, and what goes wrong when
 * a rank brings the wrong number, the wrong id, or does not come. */
#include "../check.h"
#include "team.h"

#include "base/error.h"
#include "base/system/clock.h"
#include "bootstrap/tree/blocks.h"
#include "bootstrap/wire/service.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const form_names[] = {"threads", "processes"};

static int first_form = TEAM_THREADS, last_form = TEAM_PROCESSES;

static unsigned char pattern(int rank, size_t i, size_t round)
{
    return (unsigned char)(rank * 31 + (int)i * 7 + (int)round);
}

static void exchange_round(struct team_rank *self, struct tt_bootstrap *b, size_t bytes)
{
    size_t total = bytes * (size_t)self->nranks;
    unsigned char *mine = malloc(bytes + 1), *all = malloc(total + 1);
    for (size_t i = 0; i < bytes; i++)
        mine[i] = pattern(self->rank, i, bytes);
    self->report->rc = tt_bootstrap_allgather(b, mine, bytes, all);
    for (int r = 0; r < self->nranks && !self->report->rc; r++) {
        for (size_t i = 0; i < bytes; i++) {
            self->report->wrong += all[(size_t)r * bytes + i] != pattern(r, i, bytes);
        }
    }
    free(mine);
    free(all);
}

static void receive(struct team_rank *self, struct tt_bootstrap *b, int peer, uint32_t tag,
                    int want)
{
    int value[2] = {-1, -1};
    size_t bytes = 0;
    ncclResult_t rc;
    do {
        rc = tt_bootstrap_poll(b, peer, tag, value, sizeof(value), &bytes);
        if (rc == ncclInProgress) tt_sleep_usec(100);
    } while (rc == ncclInProgress);
    self->report->wrong += rc != ncclSuccess || bytes != sizeof(int) || value[0] != want;
}

/* Every rank writes twice to every rank, itself included. */
static void messages(struct team_rank *self, struct tt_bootstrap *b)
{
    for (int k = 0; k < 2; k++) {
        for (int p = 0; p < self->nranks; p++) {
            int value = self->rank * 1000 + p * 2 + k;
            tt_bootstrap_send(b, p, 7, &value, sizeof(value));
        }
    }
    for (int p = 0; p < self->nranks; p++) {
        receive(self, b, p, 7, p * 1000 + self->rank * 2);
        receive(self, b, p, 7, p * 1000 + self->rank * 2 + 1);
    }
}

static void body_all(struct team_rank *self)
{
    struct tt_member member = {0};
    struct tt_bootstrap *b = NULL;
    const unsigned char *records;
    const void *opaque;
    if (team_join(self, &member, &b, &opaque)) return;
    records = opaque;
    for (int r = 0; r < self->nranks; r++) {
        self->report->wrong += records[(size_t)r * TT_RECORD_BYTES] != (unsigned char)(r + 1);
    }
    static const size_t sizes[] = {0, 8, 1, 4096, 65536};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        exchange_round(self, b, sizes[i]);
    messages(self, b);
    if (!self->report->rc) self->report->rc = tt_bootstrap_barrier(b);
    tt_bootstrap_leave(b);
}

static void all_meet(void **state)
{
    static const int sizes[] = {1, 2, 5, 9, 20};
    (void)state;
    for (int form = first_form; form <= last_form; form++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            ncclUniqueId id;
            print_message("case: %d %s\n", sizes[i], form_names[form]);
            assert_int_equal(tt_id_create(&id), ncclSuccess);
            struct team team = {.nranks = sizes[i], .ids = &id, .nids = 1, .timeout_sec = 30};
            team_run(&team, (enum team_form)form, body_all);
            for (int r = 0; r < sizes[i]; r++) {
                assert_int_equal(team.reports[r].rc, ncclSuccess);
                assert_int_equal(team.reports[r].wrong, 0);
            }
            team_fini(&team);
        }
    }
}

static void several_ids(void **state)
{
    ncclUniqueId ids[3];
    (void)state;
    for (int form = first_form; form <= last_form; form++) {
        for (int i = 0; i < 3; i++)
            assert_int_equal(tt_id_create(&ids[i]), ncclSuccess);
        struct team team = {.nranks = 7, .ids = ids, .nids = 3, .timeout_sec = 30};
        team_run(&team, (enum team_form)form, body_all);
        for (int r = 0; r < 7; r++) {
            assert_int_equal(team.reports[r].rc, ncclSuccess);
            assert_int_equal(team.reports[r].wrong, 0);
        }
        team_fini(&team);
    }
}

static void body_barrier(struct team_rank *self)
{
    struct tt_member member = {0};
    struct tt_bootstrap *b = NULL;
    const void *records;
    if (team_join(self, &member, &b, &records)) return;
    for (int r = 0; r < self->nranks; r++) {
        const unsigned char *record = (const unsigned char *)records + (size_t)r * TT_RECORD_BYTES;
        self->report->wrong += *record != (unsigned char)(r + 1);
    }
    exchange_round(self, b, 8);
    if (!self->report->rc) self->report->rc = tt_bootstrap_barrier(b);
    tt_bootstrap_leave(b);
}

/* All roots are in this process, so the busiest one is seen. */
static void roots_share_the_work(void **state)
{
    enum { N = 200, M = 12 };
    static const int counts[] = {1, 2, 3, 8, M};
    ncclUniqueId ids[M];
    (void)state;
    if (first_form != TEAM_THREADS) return;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const struct tt_blocks blocks = {N, counts[i]};
        uint32_t most = 0;
        print_message("case: %d ranks, %d roots\n", N, counts[i]);
        for (int k = 0; k < counts[i]; k++) {
            assert_int_equal(tt_id_create(&ids[k]), ncclSuccess);
            uint32_t clients = (uint32_t)tt_blocks_clients(&blocks, k);
            if (clients > most) most = clients;
        }
        tt_service()->busiest_root = 0;
        struct team team = {.nranks = N, .ids = ids, .nids = counts[i], .timeout_sec = 60};
        team_run(&team, TEAM_THREADS, body_barrier);
        for (int r = 0; r < N; r++) {
            assert_int_equal(team.reports[r].rc, ncclSuccess);
            assert_int_equal(team.reports[r].wrong, 0);
        }
        team_fini(&team);
        print_message("the busiest root had %u connections\n", tt_service()->busiest_root);
        assert_int_equal(tt_service()->busiest_root, most);
    }
}

/* ---- disagreement: every rank gets the reason ---- */

static void body_join_only(struct team_rank *self)
{
    struct tt_member member = {0};
    struct tt_bootstrap *b = NULL;
    const void *records;
    if (!team_join(self, &member, &b, &records)) tt_bootstrap_leave(b);
}

static void body_other_count(struct team_rank *self)
{
    if (self->rank == 2) self->nranks++;
    body_join_only(self);
}

static void body_same_rank(struct team_rank *self)
{
    if (self->rank == 2) self->rank = 1;
    body_join_only(self);
}

static void body_other_id(struct team_rank *self)
{
    const ncclUniqueId *spare = self->arg;
    ncclUniqueId mine[2] = {self->ids[0], spare[0]};
    if (self->rank == 1) self->ids = mine;
    body_join_only(self);
}

/* The last rank shows what ids it has only to the wrong root. */
static void body_last_root(struct team_rank *self)
{
    const ncclUniqueId *spare = self->arg;
    ncclUniqueId mine[2] = {self->ids[0], spare[0]};
    if (self->rank == 3) self->ids = mine;
    body_join_only(self);
}

/* The last rank alone is in the third block, but goes to the first root too. */
static void body_third_id(struct team_rank *self)
{
    const ncclUniqueId *spare = self->arg;
    ncclUniqueId mine[3] = {self->ids[0], self->ids[1], spare[0]};
    if (self->rank == 3) self->ids = mine;
    body_join_only(self);
}

static void body_swapped_ids(struct team_rank *self)
{
    ncclUniqueId mine[2] = {self->ids[1], self->ids[0]};
    if (self->rank == 1) self->ids = mine;
    body_join_only(self);
}

static void body_absent(struct team_rank *self)
{
    if (self->rank == 1) {
        self->report->rc = ncclTimeout;
        snprintf(self->report->sentence, sizeof(self->report->sentence), "missing 1");
        return;
    }
    body_join_only(self);
}

static void body_gives_up(struct team_rank *self)
{
    struct tt_member member = {0};
    struct tt_bootstrap *b = NULL;
    const void *records;
    if (self->rank == 1) atomic_store(&member.abort, ncclInternalError);
    team_join(self, &member, &b, &records);
    if (self->rank == 1) {
        self->report->rc = ncclRemoteError;
        snprintf(self->report->sentence, sizeof(self->report->sentence), "gave up");
    }
}

/* As ranks of two builds do. Rank 0 gets the first sight of it, the others a report. */
static void body_other_size(struct team_rank *self)
{
    struct tt_member member = {0};
    struct tt_bootstrap *b = NULL;
    const void *records;
    char own[12] = {0}, all[12 * 4];
    if (team_join(self, &member, &b, &records)) return;
    ncclResult_t rc = tt_bootstrap_allgather(b, own, self->rank == 2 ? 12 : 8, all);
    snprintf(self->report->sentence, sizeof(self->report->sentence), "%s", tt_last_error());
    self->report->rc = rc == ncclInvalidUsage && self->rank == 0 ? ncclRemoteError : rc;
    tt_bootstrap_leave(b);
}

static void all_get_the_reason(void **state)
{
    static const struct {
        const char *name;
        team_body body;
        int nids;
        ncclResult_t rc;
        const char *words;
        int64_t timeout_sec;
    } cases[] = {
        {"another n", body_other_count, 1, ncclInvalidUsage, "says", 30},
        {"a rank twice", body_same_rank, 1, ncclInvalidUsage, "came twice", 30},
        {"second id differs", body_other_id, 2, ncclInvalidArgument, "different unique ids", 30},
        {"third id differs", body_third_id, 3, ncclInvalidArgument, "different unique ids", 30},
        {"last one's root differs", body_last_root, 2, ncclTimeout, "missing", 1},
        {"ids swapped", body_swapped_ids, 2, ncclInvalidArgument, "different unique ids", 30},
        {"a rank never comes", body_absent, 1, ncclTimeout, "missing 1", 1},
        {"a rank gives up", body_gives_up, 1, ncclRemoteError, "gave up", 30},
        {"another size", body_other_size, 1, ncclRemoteError, "rank 0 gave 8 bytes, rank 2 12;",
         30},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int form = first_form; form <= last_form; form++) {
            ncclUniqueId ids[3], spare;
            print_message("case: %s, %s\n", cases[i].name, form_names[form]);
            assert_int_equal(tt_id_create(&ids[0]), ncclSuccess);
            assert_int_equal(tt_id_create(&ids[1]), ncclSuccess);
            assert_int_equal(tt_id_create(&ids[2]), ncclSuccess);
            assert_int_equal(tt_id_create(&spare), ncclSuccess);
            struct team team = {.nranks = 4,
                                .ids = ids,
                                .nids = cases[i].nids,
                                .arg = &spare,
                                .timeout_sec = cases[i].timeout_sec};
            team_run(&team, (enum team_form)form, cases[i].body);
            for (int r = 0; r < 4; r++) {
                print_message("rank %d: %d %s\n", r, team.reports[r].rc, team.reports[r].sentence);
                assert_int_equal(team.reports[r].rc, cases[i].rc);
                assert_non_null(strstr(team.reports[r].sentence, cases[i].words));
            }
            team_fini(&team);
        }
    }
}

/* ---- ids ---- */

static void bad_ids(void **state)
{
    ncclUniqueId id;
    (void)state;
    assert_int_equal(tt_id_create(&id), ncclSuccess);
    assert_int_equal(tt_id_check(&id), ncclSuccess);
    for (size_t i = 0; i < sizeof(id); i++) {
        ncclUniqueId damaged = id;
        damaged.internal[i] = (char)(damaged.internal[i] ^ 0x10);
        assert_int_equal(tt_id_check(&damaged), ncclInvalidArgument);
    }
    ncclUniqueId cut = id;
    memset(cut.internal + 40, 0, sizeof(cut) - 40);
    assert_int_equal(tt_id_check(&cut), ncclInvalidArgument);
    assert_non_null(strstr(tt_last_error(), "zero byte"));

    ncclUniqueId foreign = {{1, 2, 3, 4, 5, 6, 7, 8, 2, 0, 0x1f, 0x40, 127, 0, 0, 1}};
    assert_int_equal(tt_id_check(&foreign), ncclInvalidArgument);
    assert_non_null(strstr(tt_last_error(), "another library"));

    ncclUniqueId other;
    assert_int_equal(tt_id_create(&other), ncclSuccess);
    assert_int_not_equal(tt_id_comm(&id, 1), tt_id_comm(&other, 1));
}

/* ---- death, children, fork ---- */

static void body_death(struct team_rank *self)
{
    struct tt_member member = {0};
    struct tt_bootstrap *b = NULL;
    const void *records;
    const char *sentence;
    int victim = *(int *)self->arg;
    if (team_join(self, &member, &b, &records)) return;
    if (self->rank == victim) kill(getpid(), SIGKILL);
    while (!tt_bootstrap_error(b, &sentence))
        tt_sleep_usec(1000);
    self->report->rc = tt_bootstrap_barrier(b);
    self->report->wrong = atomic_load(&member.abort) != ncclRemoteError;
    snprintf(self->report->sentence, sizeof(self->report->sentence), "%s", sentence);
    tt_bootstrap_leave(b);
}

static void death_is_reported(void **state)
{
    static const int victims[] = {0, 1, 2, 11};
    (void)state;
    if (last_form != TEAM_PROCESSES) return;
    for (size_t i = 0; i < sizeof(victims) / sizeof(victims[0]); i++) {
        ncclUniqueId id;
        int victim = victims[i];
        char words[32];
        snprintf(words, sizeof(words), "rank %d ", victim);
        assert_int_equal(tt_id_create(&id), ncclSuccess);
        struct team team = {.nranks = 12, .ids = &id, .nids = 1, .arg = &victim, .timeout_sec = 30};
        team_run(&team, TEAM_PROCESSES, body_death);
        for (int r = 0; r < 12; r++) {
            if (r == victim) continue;
            print_message("rank %d: %d %s\n", r, team.reports[r].rc, team.reports[r].sentence);
            assert_int_equal(team.reports[r].rc, ncclRemoteError);
            assert_int_equal(team.reports[r].wrong, 0);
            assert_non_null(strstr(team.reports[r].sentence, words));
        }
        team_fini(&team);
    }
}

static void body_child(struct team_rank *self)
{
    struct tt_member member = {0}, child_member = {0};
    struct tt_bootstrap *b = NULL, *child = NULL;
    const void *records;
    int parents[TEAM_MAX];
    unsigned char record[TT_RECORD_BYTES] = {0}, keys[2][32];
    if (team_join(self, &member, &b, &records)) return;
    int color = self->rank % 2, count = 0;
    for (int r = color; r < self->nranks; r += 2)
        parents[count++] = r;
    child_member.rank = self->rank / 2;
    child_member.nranks = count;
    record[0] = (unsigned char)(self->rank + 1);
    struct tt_bootstrap_child spec = {.member = &child_member,
                                      .parent_ranks = parents,
                                      .salt = {1, 1, (uint64_t)color},
                                      .record = record};
    self->report->rc = tt_bootstrap_child(b, &spec, &child, &records);
    if (self->report->rc) return;
    for (int r = 0; r < count; r++) {
        const unsigned char *bytes = records;
        self->report->wrong += bytes[(size_t)r * TT_RECORD_BYTES] != parents[r] + 1;
    }
    tt_bootstrap_key(b, "test", keys[0]);
    tt_bootstrap_key(child, "test", keys[1]);
    self->report->wrong += memcmp(keys[0], keys[1], sizeof(keys[0])) == 0;
    struct team_rank sub = *self;
    sub.rank = child_member.rank;
    sub.nranks = count;
    exchange_round(&sub, child, 100);
    messages(&sub, child);
    tt_bootstrap_leave(child);
    tt_bootstrap_leave(b);
}

static void children(void **state)
{
    (void)state;
    for (int form = first_form; form <= last_form; form++) {
        ncclUniqueId id;
        assert_int_equal(tt_id_create(&id), ncclSuccess);
        struct team team = {.nranks = 21, .ids = &id, .nids = 1, .timeout_sec = 30};
        team_run(&team, (enum team_form)form, body_child);
        for (int r = 0; r < 21; r++) {
            assert_int_equal(team.reports[r].rc, ncclSuccess);
            assert_int_equal(team.reports[r].wrong, 0);
        }
        team_fini(&team);
    }
}

/* Ranks 1 and 3 are to be a pair, and rank 3 does not come. */
static void body_waits(struct team_rank *self)
{
    struct tt_member member = {0}, child_member = {.nranks = 2, .name = ""};
    struct tt_bootstrap *b = NULL, *child = NULL;
    static const int parents[] = {1, 3};
    static const unsigned char record[TT_RECORD_BYTES];
    const struct team_report *waits = self->report - self->rank + 1;
    const void *records;
    if (team_join(self, &member, &b, &records)) return;
    tt_bootstrap_init_done(b);
    if (self->rank == 1) {
        struct tt_bootstrap_child spec = {.member = &child_member,
                                          .parent_ranks = parents,
                                          .salt = {1, 2, 0},
                                          .whole_parent = true,
                                          .record = record};
        self->report->rc = tt_bootstrap_child(b, &spec, &child, &records);
        snprintf(self->report->sentence, sizeof(self->report->sentence), "%s", tt_last_error());
        __atomic_store_n(&self->report->wrong, 1, __ATOMIC_RELEASE); /* here: it is over */
    }
    for (int k = 0; k < 60000 && !__atomic_load_n(&waits->wrong, __ATOMIC_ACQUIRE); k++)
        tt_sleep_usec(1000);
    tt_bootstrap_leave(b);
}

static void missing_in_child_is_named(void **state)
{
    ncclUniqueId id;
    (void)state;
    assert_int_equal(tt_id_create(&id), ncclSuccess);
    struct team team = {.nranks = 4, .ids = &id, .nids = 1, .timeout_sec = 5};
    team_run(&team, (enum team_form)last_form, body_waits);
    print_message("%s\n", team.reports[1].sentence);
    assert_int_equal(team.reports[1].rc, ncclTimeout);
    assert_non_null(
        strstr(team.reports[1].sentence, "rank 3 (rank 1 of the new communicator) on "));
    team_fini(&team);
}

/* The second process to exit must not take the first one's exit for an error. */
static void body_exit(struct team_rank *self)
{
    struct tt_member member = {0};
    struct tt_bootstrap *b = NULL;
    const void *records;
    char sentence[TT_RECORD_BYTES];
    if (team_join(self, &member, &b, &records)) return;
    self->report->rc = tt_bootstrap_barrier(b);
    if (self->rank == 1) return; /* exits without leaving */
    while (!tt_bootstrap_exited(b, sentence, sizeof(sentence)))
        tt_sleep_usec(1000);
    self->report->rc = tt_bootstrap_error(b, NULL);
    self->report->wrong = strstr(sentence, "rank 1 on host") == NULL;
    tt_bootstrap_leave(b);
}

/* Peers write into the memory of a rank until they have noticed its abort. */
static void body_abort(struct team_rank *self)
{
    static int memory[2]; /* 1: freed */
    struct tt_member member = {0};
    struct tt_bootstrap *b = NULL;
    const void *records;
    if (team_join(self, &member, &b, &records)) return;
    int *own = &memory[self->rank];
    tt_bootstrap_own_memory(b, own, sizeof(*own));
    if (self->rank == 0) {
        tt_bootstrap_abort(b, ncclInternalError, "rank 0 aborted");
        tt_bootstrap_leave(b);
        tt_sleep_usec(300000);
        self->report->wrong = __atomic_load_n(own, __ATOMIC_ACQUIRE) != 0;
        for (int k = 0; k < 500 && !__atomic_load_n(own, __ATOMIC_ACQUIRE); k++)
            tt_sleep_usec(10000);
        self->report->wrong += !__atomic_load_n(own, __ATOMIC_ACQUIRE);
        return;
    }
    while (!tt_bootstrap_error(b, NULL))
        tt_sleep_usec(1000);
    tt_bootstrap_abort(b, ncclInternalError, "rank 1 aborted"); /* and its works still run */
    tt_sleep_usec(500000);
    tt_bootstrap_leave(b);
}

static void an_abort_keeps_memory(void **state)
{
    ncclUniqueId id;
    (void)state;
    assert_int_equal(tt_id_create(&id), ncclSuccess);
    struct team team = {.nranks = 2, .ids = &id, .nids = 1, .timeout_sec = 60};
    team_run(&team, last_form, body_abort);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(team.reports[r].rc, ncclSuccess);
        assert_int_equal(team.reports[r].wrong, 0);
    }
    team_fini(&team);
}

static void exit_without_leave(void **state)
{
    ncclUniqueId id;
    (void)state;
    if (last_form != TEAM_PROCESSES) return;
    assert_int_equal(tt_id_create(&id), ncclSuccess);
    struct team team = {.nranks = 3, .ids = &id, .nids = 1, .timeout_sec = 30};
    team_run(&team, TEAM_PROCESSES, body_exit);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(team.reports[r].rc, ncclSuccess);
        assert_int_equal(team.reports[r].wrong, 0);
    }
    team_fini(&team);
}

/* Callers that cannot be accepted for 2.5 s make a root fail; those who have gone away do not. */
static void only_who_still_calls_counts(void **state)
{
    enum { MSEC = 1000000, LOOKS = 25 };
    const uint64_t began = (uint64_t)5000 * MSEC;
    uint64_t now = began;
    (void)state;
    assert_false(tt_service_cannot_accept(now));
    for (int k = 0; k < LOOKS; k++, now += (uint64_t)100 * MSEC) {
        assert_false(tt_service_cannot_accept(now));
        tt_service_accepted_none(now);
    }
    assert_true(tt_service_cannot_accept(now));
    now += (uint64_t)600 * MSEC;
    assert_false(tt_service_cannot_accept(now));
    tt_service_accepted_none(now); /* another caller: its time begins now */
    assert_false(tt_service_cannot_accept(now + (uint64_t)100 * MSEC));
    tt_service()->exhausted_nsec = tt_service()->exhausted_last_nsec = 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_meet),
        cmocka_unit_test(several_ids),
        cmocka_unit_test(roots_share_the_work),
        cmocka_unit_test(bad_ids),
        cmocka_unit_test(children),
        cmocka_unit_test(missing_in_child_is_named),
        cmocka_unit_test(death_is_reported),
        cmocka_unit_test(an_abort_keeps_memory),
        cmocka_unit_test(only_who_still_calls_counts),
        cmocka_unit_test(exit_without_leave),
        cmocka_unit_test(all_get_the_reason),
    };
    signal(SIGPIPE, SIG_DFL);
    if (argc > 1 && !strcmp(argv[1], "threads")) last_form = TEAM_THREADS;
    if (argc > 1 && !strcmp(argv[1], "processes")) first_form = TEAM_PROCESSES;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
