/* Networks of every version, each through the table of the newest. usage: test-plugin-nets VERSION
 * [refused] One process for each version; the plugin is tests/plugins/net_outsider.c. */
#include "../check.h"

#include "base/error.h"
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

enum { MESSAGE_MOST = 1 << 20, IN_FLIGHT = 4 };

static int version; /* of the plugin under test */
static char log_path[] = "/tmp/tutti-nets-log.XXXXXX";
static struct tt_member member = {.rank = 2, .nranks = 4, .comm_id = 0xabc, .name = "nets"};

static const char *log_text(void)
{
    static char text[1 << 18];
    FILE *file = fopen(log_path, "r");
    size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[n] = '\0';
    if (file) fclose(file);
    return text;
}

static int times_logged(const char *what)
{
    int n = 0;
    for (const char *at = log_text(); (at = strstr(at, what)); at++)
        n++;
    return n;
}

static bool logged(const char *what)
{
    if (strstr(log_text(), what)) return true;
    print_message("not in the log: %s\n%s", what, log_text());
    return false;
}

static void forget_log(void)
{
    assert_int_equal(truncate(log_path, 0), 0);
}

static struct tt_net *open_net(void)
{
    struct tt_net *net = NULL;
    const struct tt_net_request request = {.member = &member, .name = NULL, .traffic_class = 3};
    forget_log();
    assert_int_equal(tt_net_open(&request, &net), ncclSuccess);
    return net;
}

static struct tt_net *open_outsider(void)
{
    char loaded[64];
    struct tt_net *net = open_net();
    snprintf(loaded, sizeof(loaded), "NET/Plugin: Loaded net plugin Outsider (v%d)", version);
    assert_string_equal(net->name, "Outsider");
    assert_int_equal(net->plugin->ops.version, version);
    assert_true(logged(loaded));
    return net;
}

/* ---- what older versions do not say ---- */

static void properties_are_filled_in(void **state)
{
    (void)state;
    setenv("OUTSIDER_DEVICES", "2", 1);
    struct tt_net *net = open_outsider();
    ncclNetProperties_v12_t props;
    assert_int_equal(net->ndevs, 2);
    assert_int_equal(net->plugin->ops.properties(net->plugin, 1, &props), ncclSuccess);
    assert_string_equal(props.name, version == 2 ? "Outsider1" : "out1");
    assert_int_equal(props.ptrSupport, NCCL_PTR_HOST);
    assert_int_equal(props.guid, version == 2 ? 1 : 0x1001);
    assert_int_equal(props.speed, version == 2 ? 10000 : 25000);
    assert_int_equal(props.port, version == 2 ? 0 : 3);
    assert_int_equal(props.maxComms, version == 2 ? 65536 : 77);
    assert_int_equal(props.maxRecvs, 1);
    assert_true(props.latency == (version < 5 ? 0.0f : 1.5f));
    assert_int_equal(props.regIsGlobal, version >= 8);
    assert_int_equal(props.forceFlush, version >= 9);
    assert_int_equal(props.netDeviceType, NCCL_NET_DEVICE_HOST);
    assert_int_equal(props.vProps.ndevs, 1);
    assert_int_equal(props.vProps.devs[0], 1);
    assert_int_equal(props.maxP2pBytes, version < 9 ? 1 << 30 : 1 << 29);
    assert_int_equal(props.maxCollBytes, version < 9 ? 1 << 29 : 1 << 28);
    assert_int_equal(props.maxMultiRequestSize, version < 11 ? 1 : 2);
    assert_int_equal(props.railId, version < 12 ? -1 : 5);
    assert_int_equal(props.planeId, version < 12 ? -1 : 6);
    unsetenv("OUTSIDER_DEVICES");
    tt_net_close(net);
}

/* Sizes that no device can have, where the version says them; ndevs devices say the same. */
static void impossible_sizes_are_refused(void **state)
{
    static const struct {
        const char *variable, *value, *says;
    } cases[] = {
        {"OUTSIDER_P2P_BYTES", "0", "device 0 (out0) has maxP2pBytes 0, which"},
        {"OUTSIDER_P2P_BYTES", "1099511627777", "(out0) has maxP2pBytes 1099511627777, which"},
        {"OUTSIDER_COLL_BYTES", "0", "device 0 (out0) has maxCollBytes 0, which"},
        {"OUTSIDER_COLL_BYTES", "18446744073709551615", "maxCollBytes 18446744073709551615, which"},
        {"OUTSIDER_P2P_BYTES", "1099511627776", NULL},
        {"OUTSIDER_COLL_BYTES", "1", NULL},
    };
    (void)state;
    for (size_t k = 0; k < TT_LEN(cases); k++) {
        bool fits = !cases[k].says || version < 9;
        struct tt_net *net = open_outsider();
        print_message("case: %s=%s\n", cases[k].variable, cases[k].value);
        setenv(cases[k].variable, cases[k].value, 1);
        assert_int_equal(tt_net_check_sizes(net, 2), fits ? ncclSuccess : ncclInternalError);
        if (!fits) assert_true(logged(cases[k].says));
        unsetenv(cases[k].variable);
        tt_net_close(net);
    }
}

/* One device of others, from version 9 on; up to 4 before version 12. */
static void devices_become_one(void **state)
{
    ncclNetVDeviceProps_v12_t members = {.ndevs = 2, .devs = {0, 1}};
    const ncclNetVDeviceProps_v12_t turned = {.ndevs = 2, .devs = {1, 0}};
    int most = version < 9 ? 0 : version < 12 ? 4 : 8, dev = -1, again = -1, mbps = 0;
    (void)state;
    setenv("OUTSIDER_DEVICES", "2", 1);
    struct tt_net *net = open_outsider();
    assert_int_equal(net->plugin->ops.group_most(net->plugin), most);
    assert_int_equal(net->nopen, 2);
    if (most) {
        assert_true(tt_net_virtual(net, &members, &dev, &mbps));
        assert_int_equal(dev, 2);
        assert_int_equal(mbps, 25000);
        assert_int_equal(net->ndevs, 2);
        assert_int_equal(net->nopen, 3);
        assert_true(tt_net_virtual(net, &turned, &again, &mbps));
        assert_int_equal(again, dev);
        assert_int_equal(times_logged("NET/Outsider: virtual device"), 1);
        struct tt_net *other = NULL;
        const struct tt_net_request request = {.member = &member, .name = "OUTSIDER"};
        assert_int_equal(tt_net_open(&request, &other), ncclSuccess);
        assert_int_equal(other->ndevs, 2); /* by itself no edge takes the virtual one */
        tt_net_close(other);
        members = (ncclNetVDeviceProps_v12_t){.ndevs = 2, .devs = {0, 7}};
        assert_false(tt_net_virtual(net, &members, &dev, &mbps));
        assert_true(logged("no virtual device of 2 devices from 0 on"));
    }
    unsetenv("OUTSIDER_DEVICES");
    tt_net_close(net);
}

/* ---- a connection ---- */

struct pair {
    struct tt_net *net;
    void *listen_comm, *send_comm, *recv_comm, *send_mh, *recv_mh;
    char *out, *in;
};

static void connect_pair(struct pair *pair)
{
    static char handle[NCCL_NET_HANDLE_MAXSIZE];
    struct tt_net_plugin *net = pair->net->plugin;
    memset(handle, 0, sizeof(handle));
    assert_int_equal(net->ops.listen(net, pair->net->ctx, 0, handle, &pair->listen_comm),
                     ncclSuccess);
    while (!pair->send_comm || !pair->recv_comm) {
        if (!pair->send_comm) {
            assert_int_equal(net->ops.connect(net, pair->net->ctx, 0, handle, &pair->send_comm),
                             ncclSuccess);
        }
        if (!pair->recv_comm)
            assert_int_equal(net->ops.accept(net, pair->listen_comm, &pair->recv_comm),
                             ncclSuccess);
        sched_yield();
    }
    assert_int_equal(net->ops.close_listen(net, pair->listen_comm), ncclSuccess);
    pair->out = tt_calloc(1, MESSAGE_MOST);
    pair->in = tt_calloc(1, MESSAGE_MOST);
    assert_int_equal(net->ops.reg_mr(net, pair->send_comm, pair->out, MESSAGE_MOST, &pair->send_mh),
                     ncclSuccess);
    assert_int_equal(net->ops.reg_mr(net, pair->recv_comm, pair->in, MESSAGE_MOST, &pair->recv_mh),
                     ncclSuccess);
}

static void close_pair(struct pair *pair)
{
    struct tt_net_plugin *net = pair->net->plugin;
    assert_int_equal(net->ops.dereg_mr(net, pair->send_comm, pair->send_mh), ncclSuccess);
    assert_int_equal(net->ops.dereg_mr(net, pair->recv_comm, pair->recv_mh), ncclSuccess);
    assert_int_equal(net->ops.close_send(net, pair->send_comm), ncclSuccess);
    assert_int_equal(net->ops.close_recv(net, pair->recv_comm), ncclSuccess);
    free(pair->out);
    free(pair->in);
}

static void post(const struct pair *pair, bool sending, size_t at, size_t bytes, void **request)
{
    struct tt_net_plugin *net = pair->net->plugin;
    const struct tt_net_part part = {.data = (sending ? pair->out : pair->in) + at,
                                     .bytes = bytes,
                                     .tag = 41,
                                     .mhandle = sending ? pair->send_mh : pair->recv_mh};
    *request = NULL;
    while (!*request) {
        ncclResult_t rc = sending ? net->ops.isend(net, pair->send_comm, &part, request)
                                  : net->ops.irecv(net, pair->recv_comm, &part, request);
        assert_int_equal(rc, ncclSuccess);
    }
}

static bool finish(const struct pair *pair, void **request, size_t bytes)
{
    struct tt_net_plugin *net = pair->net->plugin;
    int done = 0, size = -1;
    if (!*request) return true;
    assert_int_equal(net->ops.test(net, *request, &done, &size), ncclSuccess);
    if (!done) return false;
    assert_int_equal(size, bytes);
    *request = NULL;
    return true;
}

static void exchange(const struct pair *pair, size_t bytes)
{
    void *sends[IN_FLIGHT], *recvs[IN_FLIGHT];
    const size_t stride = MESSAGE_MOST / IN_FLIGHT;
    memset(pair->in, 0, MESSAGE_MOST);
    for (size_t i = 0; i < MESSAGE_MOST; i++)
        pair->out[i] = (char)(i * 7 + bytes);
    for (int k = 0; k < IN_FLIGHT; k++)
        post(pair, false, (size_t)k * stride, stride, &recvs[k]); /* room for more than comes */
    for (int k = 0; k < IN_FLIGHT; k++)
        post(pair, true, (size_t)k * stride, bytes, &sends[k]);
    for (bool all = false; !all;) {
        all = true;
        for (int k = 0; k < IN_FLIGHT; k++) {
            all &= finish(pair, &sends[k], bytes);
            all &= finish(pair, &recvs[k], bytes);
        }
    }
    for (int k = 0; k < IN_FLIGHT; k++) {
        assert_memory_equal(pair->in + (size_t)k * stride, pair->out + (size_t)k * stride, bytes);
    }
}

static void messages_arrive(void **state)
{
    static const size_t sizes[] = {0, 1, 8, 4096, 100000};
    struct pair pair = {.net = open_outsider()};
    (void)state;
    connect_pair(&pair);
    for (size_t i = 0; i < TT_LEN(sizes); i++) {
        print_message("%zu bytes\n", sizes[i]);
        exchange(&pair, sizes[i]);
    }
    close_pair(&pair);
    tt_net_close(pair.net);
    assert_int_equal(times_logged("the host is wrong"), 0);
    if (version >= 10) assert_true(logged("connected with traffic class 3"));
}

static void what_an_int_cannot_say_is_refused(void **state)
{
    struct pair pair = {.net = open_outsider()};
    struct tt_net_plugin *net = pair.net->plugin;
    struct tt_net_part part = {.data = &pair, .bytes = (size_t)1 << 32, .tag = 1};
    void *out = NULL;
    char says[32];
    (void)state;
    connect_pair(&pair);
    snprintf(says, sizeof(says), "version %d of the interface", version);
    if (version <= 8) {
        assert_int_equal(net->ops.isend(net, pair.send_comm, &part, &out), ncclInternalError);
        assert_non_null(strstr(tt_last_error(), says));
        assert_int_equal(net->ops.irecv(net, pair.recv_comm, &part, &out), ncclInternalError);
        assert_null(out);
    }
    if (version <= 7) {
        assert_int_equal(net->ops.reg_mr(net, pair.send_comm, &pair, (size_t)1 << 31, &out),
                         ncclInternalError);
        assert_non_null(strstr(tt_last_error(), "regMr"));
    }
    close_pair(&pair);
    tt_net_close(pair.net);
}

/* ---- lives ---- */

static void init_comes_once_while_loaded(void **state)
{
    (void)state;
    struct tt_net *net = open_outsider();
    struct tt_net *other = NULL;
    const struct tt_net_request request = {.member = &member, .name = "OUTSIDER"};
    assert_int_equal(tt_net_open(&request, &other), ncclSuccess);
    assert_int_equal(times_logged("Outsider: init"), 1);
    assert_int_equal(times_logged("the host is wrong"), 0);
    tt_net_close(net);
    net = NULL;
    assert_int_equal(tt_net_open(&request, &net), ncclSuccess);
    assert_int_equal(times_logged("Outsider: init"), 1);
    tt_net_close(net);
    tt_net_close(other);
    net = open_outsider(); /* unloaded with its last user, and loaded again */
    assert_int_equal(times_logged("Outsider: init"), 1);
    tt_net_close(net);
}

/* A connection that is not accepted: closing must not wait for it. */
static void a_listener_may_close_early(void **state)
{
    struct pair pair = {.net = open_outsider()};
    struct tt_net_plugin *net = pair.net->plugin;
    static char handle[NCCL_NET_HANDLE_MAXSIZE];
    (void)state;
    memset(handle, 0, sizeof(handle));
    assert_int_equal(net->ops.listen(net, pair.net->ctx, 0, handle, &pair.listen_comm),
                     ncclSuccess);
    for (int i = 0; i < 3; i++)
        assert_int_equal(net->ops.accept(net, pair.listen_comm, &pair.recv_comm), ncclSuccess);
    assert_null(pair.recv_comm);
    assert_int_equal(net->ops.close_listen(net, pair.listen_comm), ncclSuccess);
    tt_net_close(pair.net);
    if (version < 5) assert_true(logged("is left behind"));
}

/* A plugin with older tables beside this one has one function for all, and it waits. */
static void accept_may_wait_up_to_version_6(void **state)
{
    static char handle[NCCL_NET_HANDLE_MAXSIZE];
    struct pair pair = {.net = open_net()}; /* it may be loaded still */
    struct tt_net_plugin *net = pair.net->plugin;
    void *recv_comm = NULL;
    (void)state;
    if (version > 6) {
        tt_net_close(pair.net);
        return;
    }
    setenv("OUTSIDER_FAULT", "accept-blocks", 1);
    assert_int_equal(net->ops.listen(net, pair.net->ctx, 0, handle, &pair.listen_comm),
                     ncclSuccess);
    assert_int_equal(net->ops.accept(net, pair.listen_comm, &recv_comm), ncclSuccess);
    assert_null(recv_comm);
    assert_int_equal(net->ops.close_listen(net, pair.listen_comm), ncclSuccess);
    connect_pair(&pair); /* the first call of accept comes before that of connect */
    exchange(&pair, 4096);
    close_pair(&pair);
    unsetenv("OUTSIDER_FAULT");
    tt_net_close(pair.net);
    assert_true(logged("is left behind"));
}

/* ---- refusals; each is final, so each is a child of its own ---- */

static void falls_through(const char *variable, const char *value, const char *says)
{
    setenv(variable, value, 1);
    struct tt_net *net = open_net();
    assert_string_equal(net->name, "Socket");
    assert_true(logged(says));
    tt_net_close(net);
}

static void failing_init(void **state)
{
    (void)state;
    falls_through("OUTSIDER_FAIL", "init", "Failed to initialize NET plugin Outsider");
}

static void failing_devices(void **state)
{
    (void)state;
    falls_through("OUTSIDER_FAIL", "devices", "Failed to initialize NET plugin Outsider");
}

static void missing_isend(void **state)
{
    (void)state;
    falls_through("OUTSIDER_NULL", "isend", "has no isend");
}

static void missing_close_listen(void **state)
{
    (void)state;
    falls_through("OUTSIDER_NULL", "closeListen", "has no closeListen");
}

static void missing_accept(void **state)
{
    (void)state;
    falls_through("OUTSIDER_NULL", "accept", "has no accept");
}

static void missing_flush_is_no_matter(void **state)
{
    (void)state;
    setenv("OUTSIDER_NULL", "iflush", 1);
    struct tt_net *net = open_outsider();
    tt_net_close(net);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest lives[] = {
        cmocka_unit_test(properties_are_filled_in),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(devices_become_one),
        cmocka_unit_test(messages_arrive),
        cmocka_unit_test(what_an_int_cannot_say_is_refused),
        cmocka_unit_test(init_comes_once_while_loaded),
        cmocka_unit_test(a_listener_may_close_early),
        cmocka_unit_test(accept_may_wait_up_to_version_6),
    };
    const struct CMUnitTest refusals[] = {
        cmocka_unit_test(failing_init),         cmocka_unit_test(failing_devices),
        cmocka_unit_test(missing_isend),        cmocka_unit_test(missing_accept),
        cmocka_unit_test(missing_close_listen), cmocka_unit_test(missing_flush_is_no_matter),
    };
    version = argc > 1 ? atoi(argv[1]) : 0;
    int fd = mkstemp(log_path);
    if (!version || fd < 0) return 2;
    close(fd);
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "ALL", 1);
    setenv("NCCL_DEBUG_FILE", log_path, 1);
    int failed = 0;
    if (argc == 2) failed = cmocka_run_group_tests(lives, NULL, NULL);
    for (size_t i = 0; argc > 2 && i < TT_LEN(refusals); i++) {
        const struct CMUnitTest one[] = {refusals[i]};
        int status = 1;
        pid_t pid = fork();
        if (pid == 0) _exit(cmocka_run_group_tests_name(one->name, one, NULL, NULL));
        if (pid > 0) waitpid(pid, &status, 0);
        failed += status != 0;
    }
    unlink(log_path);
    return failed;
}
