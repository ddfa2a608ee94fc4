/* TUTTI_PLUGIN_CHECK: faults planted in a network (tests/plugins/net_outsider.c) are named, and a
 * network without one is not blamed. usage: test-plugin-net-faults [sound]
 * Every fault has a process of its own; what it does to the connection afterwards is no matter. */
#include "../check.h"

#include "base/mem.h"
#include "base/member.h"
#include "plugin/net/net.h"
#include "plugin/plugin.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 4096, POLLS_MOST = 1000000, IN_FLIGHT = 3 };

static const struct fault {
    const char *name, *says;
} faults[] = {
    {"devices-change", "devices: ndev: another number than before"},
    {"name-none", "getProperties: name: there is none"},
    {"name-twice", "getProperties: name: two devices have the same"},
    {"no-host-memory", "getProperties: ptrSupport: not even memory of the host"},
    {"no-connections", "getProperties: maxComms: less than 1"},
    {"no-receives", "getProperties: maxRecvs: less than 1"},
    {"handle-long", "listen: handle: more than 128 bytes were written"},
    {"connect-waits", "connect: it took more than 100 ms"},
    {"accept-waits", "accept: it took more than 100 ms"},
    {"isend-waits", "isend: it took more than 100 ms"},
    {"isend-computes", "isend: it took more than 100 ms"},
    {"irecv-waits", "irecv: it took more than 100 ms"},
    {"test-waits", "test: it took more than 100 ms"},
    {"in-progress", "irecv: result: not a code that it may return"},
    {"request-twice", "irecv: request: the same as one under way"},
    {"error-with-request", "isend: request: an error together with one"},
    {"done-other", "test: done: neither 0 nor 1"},
    {"done-unset", "test: done: it is not set"},
    {"size-none", "test: sizes: a receive is done and its size is not set"},
    {"size-large", "test: sizes: more than the receive has room for"},
    {"size-half", "test: sizes: another size than was sent"},
    {"size-of-send", "test: sizes: another size than was sent"},
    {"sizes-many", "test: sizes: more were set than the request has"},
    {"writes-beyond", "irecv: data: more bytes were written than test told"},
    {"changes-data", "isend: data: what was to be sent has been changed"},
    {"deregister-fails", "deregMr: result: an error for a registration of this connection"},
    {"close-send-fails", "closeSend: result: an error, though no request was under way"},
    {"close-recv-fails", "closeRecv: result: an error, though no request was under way"},
};

static char log_path[] = "/tmp/tutti-net-faults-log.XXXXXX";
static struct tt_member member = {.rank = 0, .nranks = 2, .comm_id = 1, .name = "faults"};

static const char *log_text(void)
{
    static char text[1 << 18];
    FILE *file = fopen(log_path, "r");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[n] = '\0';
    if (file) fclose(file);
    return text;
}

struct end { /* of a connection */
    bool sending;
    void *comm, *mhandle;
    char *memory;
    void *requests[IN_FLIGHT];
};

struct session {
    struct tt_net *net;
    struct end ends[2]; /* sender, receiver */
    bool broken;        /* some call failed: the rest is not tried */
};

static void connect_ends(struct session *session)
{
    static char handle[NCCL_NET_HANDLE_MAXSIZE];
    struct tt_net_plugin *net = session->net->plugin;
    void *listen_comm = NULL;
    struct end *sender = &session->ends[0], *receiver = &session->ends[1];
    if (net->ops.listen(net, session->net->ctx, 0, handle, &listen_comm)) return;
    for (int i = 0; i < POLLS_MOST && (!sender->comm || !receiver->comm); i++) {
        if (!sender->comm) net->ops.connect(net, session->net->ctx, 0, handle, &sender->comm);
        if (!receiver->comm) net->ops.accept(net, listen_comm, &receiver->comm);
        sched_yield();
    }
    net->ops.close_listen(net, listen_comm);
    session->broken = !sender->comm || !receiver->comm;
}

static void post(struct session *session, struct end *end, int k)
{
    struct tt_net_plugin *net = session->net->plugin;
    const struct tt_net_part part = {.data = end->memory + (size_t)k * ROOM,
                                     .bytes = end->sending ? ROOM / 2 : ROOM,
                                     .tag = 7,
                                     .mhandle = end->mhandle};
    for (int i = 0; i < POLLS_MOST && !session->broken && !end->requests[k]; i++) {
        session->broken = end->sending ? net->ops.isend(net, end->comm, &part, &end->requests[k])
                                       : net->ops.irecv(net, end->comm, &part, &end->requests[k]);
    }
}

/* True when the request is over, well or not. */
static bool finish(struct session *session, struct end *end, int k)
{
    struct tt_net_plugin *net = session->net->plugin;
    int done = 0, size = -1;
    if (!end->requests[k]) return true;
    if (net->ops.test(net, end->requests[k], &done, &size)) session->broken = true;
    if (done) end->requests[k] = NULL;
    return done || session->broken;
}

static void exchange(struct session *session)
{
    for (int k = 0; k < IN_FLIGHT; k++)
        post(session, &session->ends[1], k);
    for (int k = 0; k < IN_FLIGHT; k++)
        post(session, &session->ends[0], k);
    bool all = false;
    for (int i = 0; i < POLLS_MOST && !all && !session->broken; i++) {
        all = true;
        for (int k = 0; k < IN_FLIGHT; k++) {
            all &= finish(session, &session->ends[0], k);
            all &= finish(session, &session->ends[1], k);
        }
    }
}

static void close_end(struct session *session, struct end *end)
{
    struct tt_net_plugin *net = session->net->plugin;
    if (!end->comm) return;
    if (end->memory) net->ops.dereg_mr(net, end->comm, end->mhandle);
    if (end->sending) net->ops.close_send(net, end->comm);
    if (!end->sending) net->ops.close_recv(net, end->comm);
    free(end->memory);
}

static void run_session(void)
{
    struct session session = {.ends[0].sending = true};
    const struct tt_net_request request = {.member = &member, .traffic_class = -1};
    ncclNetProperties_v12_t props;
    int ndev = 0;
    if (tt_net_open(&request, &session.net)) return;
    assert_string_equal(session.net->name, "Outsider");
    struct tt_net_plugin *net = session.net->plugin;
    for (int dev = 0; dev < 2; dev++)
        net->ops.properties(net, dev, &props);
    net->ops.devices(net, &ndev);
    connect_ends(&session);
    for (int e = 0; e < 2 && !session.broken; e++) {
        struct end *end = &session.ends[e];
        end->memory = tt_calloc(IN_FLIGHT, ROOM);
        assert_int_equal(
            net->ops.reg_mr(net, end->comm, end->memory, (size_t)IN_FLIGHT * ROOM, &end->mhandle),
            ncclSuccess);
    }
    if (!session.broken) exchange(&session);
    close_end(&session, &session.ends[0]);
    close_end(&session, &session.ends[1]);
    tt_net_close(session.net);
}

static const struct fault *now;

static void a_fault_is_named(void **state)
{
    (void)state;
    setenv("OUTSIDER_FAULT", now->name, 1);
    run_session();
    if (!strstr(log_text(), now->says)) print_message("%s\n", log_text());
    assert_non_null(strstr(log_text(), now->says));
    assert_non_null(strstr(log_text(), " calls were checked, "));
}

/* However busy the machine is: waits for a processor are not the plugin's. */
static void a_sound_network_is_not_blamed(void **state)
{
    (void)state;
    run_session();
    const char *blamed = strstr(log_text(), "breaks the contract");
    if (blamed) print_message("%.*s\n", (int)strcspn(blamed, "\n"), blamed);
    assert_null(blamed);
    assert_non_null(strstr(log_text(), " calls were checked, "));
    assert_null(strstr(log_text(), "the host is wrong"));
}

static void without_the_variable_nothing_is_checked(void **state)
{
    (void)state;
    unsetenv("TUTTI_PLUGIN_CHECK");
    run_session();
    assert_null(strstr(log_text(), "were checked"));
}

/* One test in a process of its own. */
static int run_alone(const char *name, void (*run)(void **state))
{
    const struct CMUnitTest test[] = {{name, run, NULL, NULL, NULL}};
    int status = 1;
    if (truncate(log_path, 0)) return 1;
    pid_t pid = fork();
    if (pid == 0) _exit(cmocka_run_group_tests_name(name, test, NULL, NULL));
    if (pid > 0) waitpid(pid, &status, 0);
    return status != 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    int fd = mkstemp(log_path);
    if (fd < 0) return 2;
    close(fd);
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "ALL", 1);
    setenv("NCCL_DEBUG_FILE", log_path, 1);
    setenv("OUTSIDER_DEVICES", "2", 1);
    setenv("TUTTI_PLUGIN_CHECK", "1", 1);
    if (argc > 1) { /* sound */
        failed += run_alone("a_sound_network_is_not_blamed", a_sound_network_is_not_blamed);
        failed += run_alone("without_the_variable", without_the_variable_nothing_is_checked);
    }
    for (size_t i = 0; argc == 1 && i < TT_LEN(faults); i++) {
        now = &faults[i];
        failed += run_alone(now->name, a_fault_is_named);
    }
    unlink(log_path);
    (void)argv;
    return failed;
}
