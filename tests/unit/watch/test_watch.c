/* The watchdog ends what makes no progress, and leaves alone what does or has nothing to do,
 * whatever happens to the wall clock. */
#include "../bootstrap/team.h"
#include "../check.h"

#include "base/error.h"
#include "base/system/clock.h"
#include "exec/exec.h"
#include "watch/watch.h"

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The wall clock is about to be set back by an hour: a wait until a moment of it lasts that long.
 * Every call of the rooms under test comes here. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += 3600;
    return failed;
}

struct watched {
    struct tt_member member;
    struct tt_issue_queue queue;
    struct tt_bootstrap *bootstrap;
    struct tt_watch *watch;
};

static void watched_init(struct watched *watched)
{
    ncclUniqueId id;
    struct team_report report = {0};
    struct team_rank self = {.nranks = 1, .ids = &id, .nids = 1, .report = &report};
    const void *records;
    memset(watched, 0, sizeof(*watched));
    assert_int_equal(tt_id_create(&id), ncclSuccess);
    assert_int_equal(team_join(&self, &watched->member, &watched->bootstrap, &records),
                     ncclSuccess);
    const struct tt_watch_subject subject = {
        .member = &watched->member, .queue = &watched->queue, .bootstrap = watched->bootstrap};
    assert_int_equal(tt_watch_add(&subject, &watched->watch), ncclSuccess);
    assert_non_null(watched->watch);
}

static void watched_fini(struct watched *watched)
{
    tt_watch_remove(watched->watch);
    tt_bootstrap_leave(watched->bootstrap);
}

/* One is stuck, one works, one is idle; all three are watched at once. */
static void only_the_stuck_one_ends(void **state)
{
    struct watched stuck, busy, idle;
    (void)state;
    watched_init(&stuck);
    watched_init(&busy);
    watched_init(&idle);
    atomic_store(&stuck.queue.issued, 1);
    atomic_store(&busy.queue.issued, UINT64_MAX);
    while (!tt_member_aborted(&stuck.member)) {
        atomic_fetch_add(&busy.queue.served, 1);
        tt_sleep_usec(1000);
    }
    assert_int_equal(atomic_load(&stuck.member.abort), ncclTimeout);
    assert_non_null(strstr(tt_last_error(), "TUTTI_TIMEOUT"));
    assert_false(tt_member_aborted(&busy.member));
    assert_false(tt_member_aborted(&idle.member));
    watched_fini(&busy);
    watched_fini(&stuck);
    watched_fini(&idle);
    tt_watch_remove(NULL);
}

/* Rank 0 is stuck; rank 1 sends it a verdict (whom it blames, then a sentence) of
 * nothing but text, and before that one that it is stopped itself, which it leaves out. */
static void send_or_receive(struct team_rank *self)
{
    struct watched watched = {0};
    const void *records;
    char message[616], why[TT_WHY_BYTES];
    self->report->rc = team_join(self, &watched.member, &watched.bootstrap, &records);
    if (self->report->rc) return;
    if (self->rank == 1) {
        const uint64_t comm_id = htole64(watched.member.comm_id);
        memset(message, 'y', sizeof(message)); /* it stands still itself: no news to it */
        memcpy(message, &comm_id, sizeof(comm_id));
        memset(message + sizeof(comm_id), 0, sizeof(uint32_t));
        tt_bootstrap_send(watched.bootstrap, 0, TT_TAG_OWNER + 8, message, sizeof(message));
        memset(message, 'x', sizeof(message));
        tt_bootstrap_send(watched.bootstrap, 0, TT_TAG_OWNER + 8, message, sizeof(message));
    } else {
        const struct tt_watch_subject subject = {
            .member = &watched.member, .queue = &watched.queue, .bootstrap = watched.bootstrap};
        while (tt_bootstrap_mail(watched.bootstrap) < 2)
            tt_sleep_usec(1000);
        atomic_store(&watched.queue.issued, 1);
        self->report->rc = tt_watch_add(&subject, &watched.watch);
    }
    while (!self->report->rc && !tt_member_aborted(&watched.member))
        tt_sleep_usec(1000); /* rank 0 by its time-out, and then rank 1 */
    tt_member_why(&watched.member, why);
    if (self->rank == 0) self->report->wrong = !strstr(why, "operation 1 is next: xxxxx");
    tt_watch_remove(watched.watch);
    tt_bootstrap_leave(watched.bootstrap);
}

static void a_verdict_has_an_end(void **state)
{
    ncclUniqueId id;
    struct team team = {.nranks = 2, .ids = &id, .nids = 1};
    (void)state;
    assert_int_equal(tt_id_create(&id), ncclSuccess);
    team_run(&team, TEAM_THREADS, send_or_receive);
    for (int r = 0; r < team.nranks; r++) {
        assert_int_equal(team.reports[r].rc, ncclSuccess);
        assert_int_equal(team.reports[r].wrong, 0);
    }
    team_fini(&team);
}

static void comes_and_goes(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct watched one, two;
        watched_init(&one);
        watched_init(&two);
        watched_fini(&one);
        watched_fini(&two);
    }
}

enum { LIVES = 3000 };
static struct {
    struct tt_member member;
    pthread_barrier_t begin;
    _Atomic int ended; /* lives of the first thread's init that are over */
} lives = {.member = {.nranks = 2}};

static void *lives_first(void *unused)
{
    for (int life = 0; life < LIVES; life++) {
        struct tt_watch_init *init = tt_watch_init_begin(&lives.member);
        pthread_barrier_wait(&lives.begin);
        tt_watch_init_end(init);
        atomic_fetch_add(&lives.ended, 1);
    }
    return unused;
}

/* The last init to end waits for the thread's end; where another one begins meanwhile, which waits
 * for the rank that ends, both went on waiting. */
static void an_end_does_not_wait_for_a_beginning(void **state)
{
    pthread_t first;
    (void)state;
    alarm(100); /* a test that waits for ever ends */
    assert_int_equal(pthread_barrier_init(&lives.begin, NULL, 2), 0);
    assert_int_equal(pthread_create(&first, NULL, lives_first, NULL), 0);
    for (int life = 0; life < LIVES; life++) {
        pthread_barrier_wait(&lives.begin);
        for (int k = 0; k < life % 100 * 20; k++) /* later and later */
            atomic_thread_fence(memory_order_seq_cst);
        struct tt_watch_init *init = tt_watch_init_begin(&lives.member);
        while (atomic_load(&lives.ended) <= life)
            tt_sleep_usec(20);
        tt_watch_init_end(init);
    }
    pthread_join(first, NULL);
    pthread_barrier_destroy(&lives.begin);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_stuck_one_ends),
        cmocka_unit_test(a_verdict_has_an_end),
        cmocka_unit_test(comes_and_goes),
        cmocka_unit_test(an_end_does_not_wait_for_a_beginning),
    };
    setenv("TUTTI_TIMEOUT", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
