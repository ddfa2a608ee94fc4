/* The calls of a communicator into a network plugin. */
#include "net_drive.h"

#include "base/error.h"
#include "base/log.h"
#include "base/system/clock.h"
#include "plugin/plugin.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { MORE_MSEC = 300, LOOK_EVERY = 256 };
enum {
    CALL_NONE,
    CALL_INIT,
    CALL_LISTEN,
    CALL_CONNECT,
    CALL_ACCEPT,
    CALL_REG,
    CALL_ISEND,
    CALL_IRECV,
    CALL_TEST,
    CALL_DEREG,
    CALL_CLOSE_SEND,
    CALL_CLOSE_RECV,
    CALL_CLOSE_LISTEN,
    CALL_FINALIZE,
};

static const char *const call_names[] = {
    [CALL_NONE] = "no call",
    [CALL_INIT] = "init, devices or getProperties",
    [CALL_LISTEN] = "listen",
    [CALL_CONNECT] = "connect",
    [CALL_ACCEPT] = "accept",
    [CALL_REG] = "regMr",
    [CALL_ISEND] = "isend",
    [CALL_IRECV] = "irecv",
    [CALL_TEST] = "test",
    [CALL_DEREG] = "deregMr",
    [CALL_CLOSE_SEND] = "closeSend",
    [CALL_CLOSE_RECV] = "closeRecv",
    [CALL_FINALIZE] = "finalize",
    [CALL_CLOSE_LISTEN] = "closeListen",
};

void net_drive_where(const struct check_case_state *state, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "%s (%s)", call_names[state->call], state->doing);
}

/* Breaches so far go to the parent, who may have to end this process. */
static void gather(struct net_drive *drive)
{
    struct tt_net_breach breaches[CHECK_BREACHES];
    struct check_case_state *state = drive->state;
    int n = drive->net ? tt_net_breaches(drive->net->plugin, breaches, CHECK_BREACHES) : 0;
    if (state->nbreaches == 0 && n > 0) state->detail = tt_now_nsec();
    for (int i = 0; i < n; i++)
        check_breach(state, "%s: %s", breaches[i].function, breaches[i].what);
}

static struct tt_net_plugin *begin(struct net_drive *drive, int call)
{
    drive->state->call = call;
    drive->state->calls++;
    return drive->net->plugin;
}

bool net_drive_good(struct net_drive *drive, const char *function, ncclResult_t rc)
{
    char *note = drive->state->note;
    gather(drive);
    if (rc && !*note) {
        char warning[200];
        tt_log_plugin_warning(warning, sizeof(warning));
        snprintf(note, sizeof(drive->state->note), "%s: result %d (%s)%s%s%s", function, (int)rc,
                 tt_result_name(rc), *warning ? "; it warned: \"" : "", warning,
                 *warning ? "\"" : "");
    }
    return rc == ncclSuccess;
}

/* False when the process at the other end has ended badly. */
static bool partner_lives(struct net_drive *drive)
{
    if (!drive->partner || waitpid(drive->partner, &drive->partner_status, WNOHANG) <= 0)
        return true;
    drive->partner = 0;
    return drive->partner_status == 0;
}

bool net_drive_goes_on(struct net_drive *drive)
{
    struct check_case_state *state = drive->state;
    gather(drive);
    if (++drive->looks % LOOK_EVERY == 0 && !partner_lives(drive)) return false;
    if (state->nbreaches && tt_now_nsec() > state->detail + MORE_MSEC * 1000000ull) return false;
    sched_yield();
    return true;
}

/* ---- life ---- */

static bool look_at_devices(struct net_drive *drive)
{
    struct tt_net_plugin *net = begin(drive, CALL_INIT);
    ncclNetProperties_v12_t props;
    int ndevs = 0;
    for (int dev = 0; dev < drive->net->ndevs; dev++) {
        memset(&props, 0, sizeof(props));
        if (!net_drive_good(drive, "getProperties", net->ops.properties(net, dev, &props)))
            return false;
        if (props.maxRecvs < 2) drive->in_order = true;
    }
    return net_drive_good(drive, "devices", net->ops.devices(net, &ndevs));
}

bool net_drive_open(struct net_drive *drive, uint64_t comm_id, struct check_case_state *state)
{
    *drive = (struct net_drive){.state = state};
    drive->member = (struct tt_member){.nranks = 2, .comm_id = comm_id, .name = "check"};
    struct tt_plugin_refusal refusal = {"it could not be loaded again"};
    const struct tt_net_request request = {
        .member = &drive->member, .refusal = &refusal, .traffic_class = -1};
    state->call = CALL_INIT;
    if (tt_net_open(&request, &drive->net)) drive->net = NULL;
    if (!drive->net || drive->net->plugin->builtin) {
        tt_net_close(drive->net);
        drive->net = NULL;
        snprintf(state->note, sizeof(state->note), "not taken: %s", refusal.text);
        return false;
    }
    state->version = drive->net->plugin->ops.version;
    snprintf(state->name, sizeof(state->name), "%s", drive->net->name);
    state->mask = (uint32_t)drive->net->ndevs;
    return look_at_devices(drive);
}

void net_drive_close(struct net_drive *drive)
{
    if (!drive->net) return;
    gather(drive);
    drive->state->call = CALL_FINALIZE;
    const ncclResult_t rc = tt_net_close(drive->net);
    if (rc) check_result(drive->state, "finalize", (int)rc);
    drive->net = NULL;
    drive->state->call = CALL_NONE;
}

size_t net_drive_most(const struct net_drive *drive, size_t bytes)
{
    struct tt_net_plugin *net = drive->net->plugin;
    ncclNetProperties_v12_t props;
    memset(&props, 0, sizeof(props));
    if (net->ops.properties(net, 0, &props) || !props.maxP2pBytes) return bytes;
    return props.maxP2pBytes < bytes ? props.maxP2pBytes : bytes;
}

/* ---- connections ---- */

bool net_drive_listen(struct net_drive *drive, int dev, struct net_listener *listener)
{
    struct tt_net_plugin *net = begin(drive, CALL_LISTEN);
    memset(listener, 0, sizeof(*listener));
    return net_drive_good(
        drive, "listen",
        net->ops.listen(net, drive->net->ctx, dev, listener->handle, &listener->comm));
}

bool net_drive_close_listen(struct net_drive *drive, struct net_listener *listener)
{
    struct tt_net_plugin *net = begin(drive, CALL_CLOSE_LISTEN);
    return net_drive_good(drive, "closeListen", net->ops.close_listen(net, listener->comm));
}

static bool ask_to_connect(struct net_end *end, int dev, char *handle)
{
    struct tt_net_plugin *net = begin(end->drive, CALL_CONNECT);
    end->sending = true;
    return net_drive_good(end->drive, "connect",
                          net->ops.connect(net, end->drive->net->ctx, dev, handle, &end->comm));
}

bool net_drive_accept(struct net_end *end, void *listen_comm)
{
    struct tt_net_plugin *net = begin(end->drive, CALL_ACCEPT);
    return net_drive_good(end->drive, "accept", net->ops.accept(net, listen_comm, &end->comm));
}

bool net_drive_join(struct net_listener *listener, int dev, struct net_end *sender,
                    struct net_end *receiver)
{
    struct net_drive *drive = (receiver ? receiver : sender)->drive;
    for (;;) {
        bool sends = !sender || sender->comm, receives = !receiver || receiver->comm;
        if (sends && receives) return true;
        if (!sends && !ask_to_connect(sender, dev, listener->handle)) break;
        if (!receives && !net_drive_accept(receiver, listener->comm)) break;
        if (!net_drive_goes_on(drive)) break;
    }
    if (sender && !sender->comm)
        drive->net->plugin->ops.give_up(drive->net->plugin, listener->handle);
    return false;
}

bool net_drive_connect(struct net_drive *from, struct net_drive *to, int dev,
                       struct net_end ends[2])
{
    struct net_listener listener;
    ends[0] = (struct net_end){.drive = from, .sending = true};
    ends[1] = (struct net_end){.drive = to};
    if (!net_drive_listen(to, dev, &listener)) return false;
    bool joined = net_drive_join(&listener, dev, &ends[0], &ends[1]);
    return net_drive_close_listen(to, &listener) && joined;
}

bool net_drive_disconnect(struct net_end *end)
{
    if (!end->comm) return true;
    struct tt_net_plugin *net = begin(end->drive, end->sending ? CALL_CLOSE_SEND : CALL_CLOSE_RECV);
    void *comm = end->comm;
    end->comm = NULL;
    if (end->sending)
        return net_drive_good(end->drive, "closeSend", net->ops.close_send(net, comm));
    return net_drive_good(end->drive, "closeRecv", net->ops.close_recv(net, comm));
}

/* ---- memory and messages ---- */

bool net_drive_register(struct net_end *end, void *data, size_t bytes, void **mhandle)
{
    struct tt_net_plugin *net = begin(end->drive, CALL_REG);
    *mhandle = NULL;
    return net_drive_good(end->drive, "regMr",
                          net->ops.reg_mr(net, end->comm, data, bytes, mhandle));
}

bool net_drive_deregister(struct net_end *end, void *mhandle)
{
    struct tt_net_plugin *net = begin(end->drive, CALL_DEREG);
    return net_drive_good(end->drive, "deregMr", net->ops.dereg_mr(net, end->comm, mhandle));
}

bool net_drive_post(struct net_message *message)
{
    struct net_end *end = message->end;
    struct tt_net_plugin *net = begin(end->drive, end->sending ? CALL_ISEND : CALL_IRECV);
    ncclResult_t rc = end->sending
                          ? net->ops.isend(net, end->comm, &message->part, &message->request)
                          : net->ops.irecv(net, end->comm, &message->part, &message->request);
    message->posted = message->request != NULL;
    return net_drive_good(end->drive, end->sending ? "isend" : "irecv", rc);
}

/* False: the exchange is over. */
static bool test(struct net_message *message)
{
    struct net_end *end = message->end;
    struct tt_net_plugin *net = begin(end->drive, CALL_TEST);
    struct check_case_state *state = end->drive->state;
    int done = 0, bytes = -1;
    ncclResult_t rc = net->ops.test(net, message->request, &done, &bytes);
    if (!net_drive_good(end->drive, "test", rc)) return false;
    message->done = done != 0;
    if (!done || end->sending) return true;
    if (net->ops.consumed) net->ops.consumed(net, end->comm, 1, message->request);
    if (bytes == (int)message->bytes || bytes < 0) return true; /* not set: a breach of its own */
    snprintf(state->note, sizeof(state->note), "test: a message of %zu bytes came as one of %d",
             message->bytes, bytes);
    return false;
}

/* A host asks for the oldest request of a connection; where receives are grouped, several transfers
 * may share it, and each asks for its own. */
static bool may_test(const struct net_message *messages, int number)
{
    if (!messages[number].end->drive->in_order) return true;
    for (int k = 0; k < number; k++)
        if (messages[k].end == messages[number].end && !messages[k].done) return false;
    return true;
}

/* True when this message is the next of its end and there is room for a request. */
static bool may_post(const struct net_message *messages, int number)
{
    int in_flight = 0;
    for (int k = 0; k < number; k++) {
        if (messages[k].end != messages[number].end || messages[k].done) continue;
        if (!messages[k].posted) return false;
        in_flight++;
    }
    return in_flight < NET_IN_FLIGHT;
}

bool net_drive_advance(struct net_message *messages, int count, bool *good_out)
{
    bool all = true;
    for (int k = 0; k < count; k++) {
        struct net_message *message = &messages[k];
        if (message->done) continue;
        all = false;
        if (message->posted ? !may_test(messages, k) : !may_post(messages, k)) continue;
        *good_out = message->posted ? test(message) : net_drive_post(message);
        if (!*good_out) return false;
    }
    return all;
}

bool net_drive_exchange(struct net_drive *drive, struct net_message *messages, int count)
{
    for (bool good = true;;) {
        if (net_drive_advance(messages, count, &good)) return true;
        if (!good || !net_drive_goes_on(drive)) return false;
    }
}

bool net_drive_post_group(struct net_end *end, const struct tt_net_part *parts, int count,
                          void **request_out)
{
    struct tt_net_plugin *net = begin(end->drive, CALL_IRECV);
    *request_out = NULL;
    ncclResult_t rc = net->ops.irecv_group(net, end->comm, parts, count, request_out);
    return net_drive_good(end->drive, "irecv", rc);
}

bool net_drive_test_group(struct net_end *end, void *request, int count, int *bytes, bool *done_out)
{
    struct tt_net_plugin *net = begin(end->drive, CALL_TEST);
    int done = 0;
    ncclResult_t rc = net->ops.test(net, request, &done, bytes);
    *done_out = !rc && done;
    if (*done_out && net->ops.consumed) net->ops.consumed(net, end->comm, count, request);
    return net_drive_good(end->drive, "test", rc);
}
