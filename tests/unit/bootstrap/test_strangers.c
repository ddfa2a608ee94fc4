/* Who does not know the secret has no effect: silent, noisy, many; and nothing is left behind by
 * memberships, good or failed. */
#include "../check.h"
#include "team.h"

#include "base/error.h"
#include "base/system/clock.h"
#include "bootstrap/join/id.h"
#include "bootstrap/join/root.h"
#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/service.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define STRANGERS 150

static enum team_form form = TEAM_THREADS;

/* Address out of an id (IPv4 only), as a stranger would read it off the wire. */
static int open_socket(const ncclUniqueId *id)
{
    const unsigned char *bytes = (const unsigned char *)id->internal;
    struct sockaddr_in addr = {.sin_family = AF_INET};
    if (bytes[48] != 4) return -1;
    addr.sin_port = htons((uint16_t)(bytes[49] | bytes[50] << 8));
    memcpy(&addr.sin_addr, bytes + 51, 4);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
        close(fd);
        return -1;
    }
    return fd;
}

static void body_barrier(struct team_rank *self)
{
    struct tt_member member = {0};
    struct tt_bootstrap *b = NULL;
    const void *records;
    if (team_join(self, &member, &b, &records)) return;
    self->report->rc = tt_bootstrap_barrier(b);
    tt_bootstrap_leave(b);
}

static void init_all(const ncclUniqueId *id, int nranks)
{
    struct team team = {.nranks = nranks, .ids = id, .nids = 1, .timeout_sec = 30};
    team_run(&team, form, body_barrier);
    for (int r = 0; r < nranks; r++) {
        if (team.reports[r].rc) print_message("rank %d: %s\n", r, team.reports[r].sentence);
        assert_int_equal(team.reports[r].rc, ncclSuccess);
    }
    team_fini(&team);
}

/* kind 0: says nothing; 1: noise; 2: begins like one of us; 3: a hello with an unknown key */
static void say(int fd, int kind)
{
    unsigned char bytes[200];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)rand();
    if (kind >= 2) memcpy(bytes, "TUTI\1\0\1\0", 8);
    if (kind == 3) {
        memset(bytes + 48, 0, 32);
        bytes[52] = 0xff;
        bytes[53] = bytes[54] = bytes[55] = 0xff;
    }
    size_t len = kind == 0 ? 0 : kind == 2 ? 40 : sizeof(bytes);
    if (len && send(fd, bytes, len, MSG_NOSIGNAL) < 0) return;
}

static void strangers_have_no_effect(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        ncclUniqueId id;
        int fds[STRANGERS];
        print_message("case: kind %d\n", kind);
        assert_int_equal(tt_id_create(&id), ncclSuccess);
        for (int i = 0; i < STRANGERS; i++) {
            fds[i] = open_socket(&id);
            if (fds[i] >= 0) say(fds[i], kind);
        }
        init_all(&id, 6);
        for (int i = 0; i < STRANGERS; i++) {
            if (fds[i] >= 0) close(fds[i]);
        }
    }
}

static void nothing_is_left(void **state)
{
    int fds = 0, threads = 0;
    (void)state;
    if (form != TEAM_THREADS) return;
    for (int round = 0; round < 30; round++) {
        ncclUniqueId id;
        assert_int_equal(tt_id_create(&id), ncclSuccess);
        init_all(&id, 5);
        if (round == 10) {
            fds = team_entries("/proc/self/fd");
            threads = team_entries("/proc/self/task");
        }
    }
    assert_true(team_entries_fall("/proc/self/fd", fds));
    assert_true(team_entries_fall("/proc/self/task", threads));
}

/* After fork a child's calls on the parent's membership fail, and its death means nothing. */
static void fork_is_harmless(void **state)
{
    ncclUniqueId id;
    int status = -1;
    (void)state;
    if (form != TEAM_PROCESSES) return;
    assert_int_equal(tt_id_create(&id), ncclSuccess);
    struct team_report report = {0};
    struct team_rank self = {
        .rank = 0, .nranks = 1, .ids = &id, .nids = 1, .timeout_sec = 30, .report = &report};
    struct tt_member member = {0};
    struct tt_bootstrap *b = NULL;
    const void *records;
    assert_int_equal(team_join(&self, &member, &b, &records), ncclSuccess);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int wrong = tt_bootstrap_barrier(b) != ncclInvalidUsage;
        wrong += atomic_load(&member.abort) != ncclInvalidUsage;
        tt_bootstrap_leave(b);
        ncclUniqueId fresh; /* new ones work */
        wrong += tt_id_create(&fresh) != ncclSuccess;
        self.ids = &fresh;
        atomic_store(&member.abort, 0);
        wrong += team_join(&self, &member, &b, &records) != ncclSuccess;
        wrong += tt_bootstrap_barrier(b) != ncclSuccess;
        tt_bootstrap_leave(b);
        exit(wrong);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(tt_bootstrap_barrier(b), ncclSuccess);
    tt_bootstrap_leave(b);
}

/* A fixed address: no process makes the id, rank 0 opens the root; used twice in a row. */
static void body_fixed(struct team_rank *self)
{
    ncclUniqueId id;
    self->report->rc = tt_id_create(&id);
    self->ids = &id;
    for (int round = 0; round < 3 && !self->report->rc; round++)
        body_barrier(self);
    self->ids = NULL;
}

static void fixed_address(void **state)
{
    char text[64];
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    (void)state;
    if (form != TEAM_PROCESSES) return;
    /* Held with address reuse: rank 0 may listen there, and the kernel gives it to no other
     * process. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
    getsockname(fd, (struct sockaddr *)&addr, &len);
    snprintf(text, sizeof(text), "127.0.0.1:%d", ntohs(addr.sin_port));
    setenv("NCCL_COMM_ID", text, 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    struct team team = {.nranks = 5, .nids = 1, .timeout_sec = 30};
    team_run(&team, form, body_fixed);
    unsetenv("NCCL_COMM_ID");
    close(fd);
    for (int r = 0; r < 5; r++) {
        if (team.reports[r].rc) print_message("rank %d: %s\n", r, team.reports[r].sentence);
        assert_int_equal(team.reports[r].rc, ncclSuccess);
    }
    team_fini(&team);
}

/* ---- a rank of another build, which knows the secret ---- */

struct unlike {
    _Atomic bool closed;
    int code;
    char sentence[TT_SENTENCE_BYTES];
};

static void unlike_opened(struct tt_conn *conn)
{
    static const unsigned char request[TT_JOIN_BYTES - 28] = {0xf0, 0x59}; /* version 23024 */
    tt_conn_send(conn, TT_FRAME_JOIN, request, sizeof(request));
}

static void unlike_frame(struct tt_conn *conn, uint16_t type, const unsigned char *bytes,
                         size_t len)
{
    struct unlike *unlike = conn->owner;
    if (type == TT_FRAME_REFUSE) unlike->code = (int)tt_refuse_unpack(bytes, len, unlike->sentence);
}

static void unlike_closed(struct tt_conn *conn, const char *why)
{
    struct unlike *unlike = conn->owner;
    (void)why;
    atomic_store(&unlike->closed, true);
}

static void another_build(void **state)
{
    static const struct tt_conn_ops ops = {unlike_opened, unlike_frame, unlike_closed};
    struct unlike unlike = {0};
    struct tt_id_parts parts;
    struct tt_key key;
    struct tt_conn *conn = NULL;
    ncclUniqueId id;
    (void)state;
    assert_int_equal(tt_id_create(&id), ncclSuccess);
    assert_int_equal(tt_id_read(&id, &parts), ncclSuccess);
    tt_key_derive(parts.secret, TT_KEY_ROOT, &key);
    struct tt_conn_dial dial = {
        .addr = &parts.addr,
        .key = &key,
        .hello = {.kind = TT_KEY_ROOT, .own_rank = 1, .wanted_rank = -1, .nranks = 2},
        .ops = &ops,
        .owner = &unlike,
        .limit_bytes = 4096};
    tt_service_lock();
    assert_int_equal(tt_conn_dial(&dial, &conn), ncclSuccess);
    tt_service_unlock();
    while (!atomic_load(&unlike.closed))
        tt_sleep_usec(1000);
    print_message("%s\n", unlike.sentence);
    assert_int_equal(unlike.code, ncclInvalidUsage);
    assert_non_null(strstr(unlike.sentence, "rank 1 at 1"));
    assert_non_null(strstr(unlike.sentence, "another build of this library (version 23024, "));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_address), /* first: the interface is chosen once per process */
        cmocka_unit_test(strangers_have_no_effect),
        cmocka_unit_test(another_build),
        cmocka_unit_test(nothing_is_left),
        cmocka_unit_test(fork_is_harmless),
    };
    if (argc > 1 && !strcmp(argv[1], "processes")) form = TEAM_PROCESSES;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
