/* Network edges come to life on the proxy's thread alone: some networks bind connections to the
 * thread that makes them. The receiver listens and sends its handle through the bootstrap; the
 * sender connects; both are polled and never wait.
 *
 * Where two ranks use both directions of a channel and the network's connections can have two, one
 * serves both: TCP then acknowledges with data, and half the descriptors are needed. A receiver
 * whose own sends have a connection offers it instead of listening. Where both are being made, the
 * lower rank waits for its own sends' first, unless the higher rank says that it will not receive:
 *
 *   lower rank                                        higher rank
 *   connects (its sends) ---------------------------> accepts
 *   "the other way round" --- by the bootstrap -----> sends over that connection
 */
#include "base/log.h"
#include "base/member.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"
#include "transport/net/net.h"
#include "transport/net/pool.h"

#include <stdio.h>
#include <string.h>

#define BOTH_NSEC 2000000ull  /* edges of one program are made together */
#define ALONE_NSEC 5000000ull /* a sender says by then that it has no receiving edge */

struct message { /* from the receiver to the sender */
    char handle[NCCL_NET_HANDLE_MAXSIZE];
    char reverse; /* no handle: the other direction of the connection that the sender receives by */
    char net[sizeof(((struct tt_net *)0)->name)]; /* what the handle is for */
};

/* Handles travel from the receiver to the sender under a tag of their own per line. */
static uint32_t handle_tag(const struct net_edge *edge, const struct net_line *line)
{
    const struct tt_edge_key *key = &edge->edge.key;
    uint32_t direct = line == &edge->direct ? 0x00800000u : 0;
    return 0x4e000000u | direct | (uint32_t)key->channel << 1 | (uint32_t)key->conn;
}

/* How it went with the direct line: under one tag to the sender, under the other to the receiver,
 * as both may have an edge of the same number to each other. */
static uint32_t word_tag(const struct net_edge *edge, bool to_sender)
{
    return handle_tag(edge, &edge->direct) | (to_sender ? 0x00600000u : 0x00400000u);
}

static ncclResult_t send_word(const struct net_edge *edge, bool good)
{
    const char word = (char)good;
    return tt_bootstrap_send(edge->edge.config->bootstrap, edge->edge.key.peer,
                             word_tag(edge, !edge->edge.key.sending), &word, sizeof(word));
}

/* ncclSystemError: the other end did not get the line. */
static ncclResult_t receive_word(const struct net_edge *edge, struct net_line *line)
{
    struct tt_bootstrap *bootstrap = edge->edge.config->bootstrap;
    char word = 0;
    size_t bytes = 0;
    uint64_t mail = tt_bootstrap_mail(bootstrap) + 1;
    if (mail == line->mail) return ncclInProgress;
    line->mail = mail;
    ncclResult_t rc =
        tt_bootstrap_poll(bootstrap, edge->edge.key.peer, word_tag(edge, edge->edge.key.sending),
                          &word, sizeof(word), &bytes);
    if (rc || word) return rc;
    line->phase = NET_BROKEN; /* it knows */
    return ncclSystemError;
}

void tt_net_give_hints(const struct net_edge *edge, uint64_t uses)
{
    const struct tt_transport_config *config = edge->edge.config;
    int npeers = config->member->nranks > 1 ? config->member->nranks - 1 : 1;
    ncclNetAttr_v12_t attr = NCCL_NET_ATTR_INIT;
    const uint32_t masks[] = {uses & UINT16_MAX, uses >> 16 & UINT16_MAX, uses >> 32};
    attr.sendCommAttr.minConcurrentPeers = attr.sendCommAttr.minFlowsPerPeer = 1;
    attr.sendCommAttr.maxConcurrentPeers = npeers;
    attr.sendCommAttr.maxFlowsPerPeer = config->nchannels;
    attr.recvCommAttr = attr.sendCommAttr;
    if (masks[0]) attr.op = masks[0];
    if (masks[1]) attr.algo = masks[1];
    if (masks[2]) attr.proto = masks[2];
    config->net->plugin->ops.set_attr(config->net->plugin, config->net->ctx, &attr);
}

/* The edge of the same channel to the same peer in the other direction; NULL: none so far. */
static struct net_edge *opposite(const struct net_edge *edge)
{
    const struct tt_edge_key *key = &edge->edge.key;
    for (struct net_edge *at = edge->transport->net_edges->first; at; at = at->next) {
        const struct tt_edge_key *other = &at->edge.key;
        if (other->peer == key->peer && other->channel == key->channel &&
            other->conn == key->conn && other->sending != key->sending)
            return at;
    }
    return NULL;
}

/* Of a sender, to the receiver: it will not receive by this channel, as far as one knows. */
static uint32_t alone_tag(const struct net_edge *edge)
{
    return handle_tag(edge, &edge->slots) | 0x00200000u;
}

static ncclResult_t say_alone(struct net_edge *edge, struct net_line *line)
{
    const char word = 1;
    if (line != &edge->slots || line->said_alone || !edge->edge.config->net->plugin->ops.reverse ||
        tt_now_nsec() - line->since_nsec < ALONE_NSEC || opposite(edge))
        return ncclSuccess;
    line->said_alone = true;
    return tt_bootstrap_send(edge->edge.config->bootstrap, edge->edge.key.peer, alone_tag(edge),
                             &word, sizeof(word));
}

static bool peer_is_alone(struct net_edge *edge, struct net_line *line)
{
    struct tt_bootstrap *bootstrap = edge->edge.config->bootstrap;
    char word;
    size_t bytes;
    uint64_t mail = tt_bootstrap_mail(bootstrap) + 1;
    if (mail == line->mail) return false;
    line->mail = mail;
    return !tt_bootstrap_poll(bootstrap, edge->edge.key.peer, alone_tag(edge), &word, sizeof(word),
                              &bytes);
}

/* Receiver: ncclSuccess with the edge of the other direction whose connection serves, or without:
 * listen; ncclInProgress: that is not known yet. */
static ncclResult_t look_back(struct net_edge *edge, struct net_line *line,
                              struct net_edge **other_out)
{
    const struct tt_net *net = edge->edge.config->net;
    struct net_edge *other = opposite(edge);
    *other_out = NULL;
    if (line != &edge->slots || !net->plugin->ops.reverse ||
        net->plugin->ops.reverse(net->plugin, net->ctx, NULL, NULL))
        return ncclSuccess;
    if (other && other->slots.phase == NET_READY) *other_out = other;
    if (*other_out || edge->edge.config->member->rank >= edge->edge.key.peer) return ncclSuccess;
    if (!other) return tt_now_nsec() - line->since_nsec < BOTH_NSEC ? ncclInProgress : ncclSuccess;
    if (!net_is_joining(&other->slots) || peer_is_alone(edge, line)) return ncclSuccess;
    return ncclInProgress;
}

static ncclResult_t reverse_of(struct net_edge *other, void **comm_out)
{
    const struct tt_net *net = other->edge.config->net;
    return net->plugin->ops.reverse(net->plugin, net->ctx, other->slots.comm, comm_out);
}

static ncclResult_t ready_step(struct net_edge *edge, struct net_line *line);

static ncclResult_t listen_step(struct net_edge *edge, struct net_line *line)
{
    struct net_edge *other;
    ncclResult_t found = look_back(edge, line, &other);
    if (!found && other) found = reverse_of(other, &line->comm);
    if (found) return found;
    if (line->comm) {
        struct message message = {.reverse = 1};
        memcpy(message.net, edge->edge.config->net->name, sizeof(message.net));
        ncclResult_t rc = tt_bootstrap_send(edge->edge.config->bootstrap, edge->edge.key.peer,
                                            handle_tag(edge, line), &message, sizeof(message));
        return rc ? rc : ready_step(edge, line);
    }
    const struct tt_transport_config *config = edge->edge.config;
    const struct tt_net *net = config->net;
    ncclResult_t rc =
        net->plugin->ops.listen(net->plugin, net->ctx, edge->dev, line->handle, &line->listen_comm);
    if (rc && line == &edge->slots) return rc;
    line->phase = rc ? NET_BROKEN : NET_ACCEPTING;
    struct message message = {.net = ""}; /* of no network: there is no such line */
    if (!rc) memcpy(message.handle, line->handle, sizeof(message.handle));
    if (!rc) memcpy(message.net, net->name, sizeof(message.net));
    return tt_bootstrap_send(config->bootstrap, edge->edge.key.peer, handle_tag(edge, line),
                             &message, sizeof(message));
}

/* A handle of another network would be read as what it is not. */
static ncclResult_t check_net(struct net_edge *edge, const struct message *message)
{
    const struct tt_transport_config *config = edge->edge.config;
    char sentence[256];
    if (!strncmp(message->net, config->net->name, sizeof(message->net))) return ncclSuccess;
    snprintf(sentence, sizeof(sentence),
             "rank %d has network %.60s and rank %d has %.60s: NCCL_NET and NCCL_NET_PLUGIN must "
             "mean the same network on all ranks",
             config->member->rank, config->net->name, edge->edge.key.peer, message->net);
    tt_net_broke_because(edge, ncclInvalidUsage, sentence);
    return ncclInvalidUsage;
}

/* From now on the handle stays where it is: the network keeps the state of connecting in it. */
static ncclResult_t handle_step(struct net_edge *edge, struct net_line *line)
{
    const struct tt_transport_config *config = edge->edge.config;
    struct message message;
    size_t bytes = 0;
    uint64_t mail = tt_bootstrap_mail(config->bootstrap) + 1;
    ncclResult_t rc = say_alone(edge, line);
    if (rc || mail == line->mail) return rc ? rc : ncclInProgress;
    line->mail = mail; /* what comes after this look is another number */
    rc = tt_bootstrap_poll(config->bootstrap, edge->edge.key.peer, handle_tag(edge, line), &message,
                           sizeof(message), &bytes);
    if (rc) return rc;
    if (bytes != sizeof(message)) return ncclRemoteError;
    if (line == &edge->direct && !message.net[0]) {
        line->phase = NET_BROKEN; /* the other end knows */
        return ncclSystemError;
    }
    rc = check_net(edge, &message);
    if (rc) return rc;
    memcpy(line->handle, message.handle, sizeof(line->handle));
    line->phase = message.reverse ? NET_REVERSING : NET_CONNECTING;
    return ncclSuccess;
}

static ncclResult_t ready_step(struct net_edge *edge, struct net_line *line)
{
    struct tt_net_plugin *net = edge->edge.config->net->plugin;
    line->mhandle = NULL;
    if (line == &edge->direct && edge->edge.key.sending) { /* from the user's memory alone */
        line->phase = NET_CONFIRMING;
        line->mail = 0;
        return ncclSuccess;
    }
    void *slots;
    size_t slots_bytes;
    tt_net_pool_memory(edge, &slots, &slots_bytes);
    ncclResult_t rc = net->ops.reg_mr(net, line->comm, slots, slots_bytes, &line->mhandle);
    if (rc) return rc;
    line->kept_mhandle = line->mhandle;
    line->registered = true;
    line->phase = NET_READY;
    return line == &edge->direct ? send_word(edge, true) : ncclSuccess;
}

static ncclResult_t confirm_step(struct net_edge *edge, struct net_line *line)
{
    ncclResult_t rc = receive_word(edge, line);
    if (rc) return rc;
    line->phase = NET_READY;
    tt_info(TT_LOG_NET | TT_LOG_REG,
            "rank %d: registered memory goes to rank %d over NET/%s without a copy",
            edge->edge.config->member->rank, edge->edge.key.peer, edge->edge.config->net->name);
    /* pairs with the acquire load in goes_direct() */
    atomic_store_explicit(&edge->direct_state, NET_DIRECT_READY, memory_order_release);
    return ncclSuccess;
}

static ncclResult_t reverse_step(struct net_edge *edge, struct net_line *line)
{
    struct net_edge *other = opposite(edge);
    if (!other || other->slots.phase == NET_BROKEN) return ncclRemoteError;
    if (other->slots.phase != NET_READY) return ncclInProgress;
    ncclResult_t rc = reverse_of(other, &line->comm);
    if (!rc && !line->comm) rc = ncclInternalError;
    return rc ? rc : ready_step(edge, line);
}

/* connect and accept answer success with no connection for "again". */
static ncclResult_t connect_step(struct net_edge *edge, struct net_line *line)
{
    const struct tt_net *net = edge->edge.config->net;
    ncclResult_t rc =
        net->plugin->ops.connect(net->plugin, net->ctx, edge->dev, line->handle, &line->comm);
    if (rc) return rc;
    return line->comm ? ready_step(edge, line) : ncclInProgress;
}

static ncclResult_t accept_step(struct net_edge *edge, struct net_line *line)
{
    struct tt_net_plugin *net = edge->edge.config->net->plugin;
    ncclResult_t rc = net->ops.accept(net, line->listen_comm, &line->comm);
    if (rc) return rc;
    if (!line->comm) return line == &edge->direct ? receive_word(edge, line) : ncclInProgress;
    net->ops.close_listen(net, line->listen_comm);
    line->listen_comm = NULL;
    return ready_step(edge, line);
}

static void close_line(struct net_edge *edge, struct net_line *line)
{
    struct tt_net_plugin *net = edge->edge.config->net->plugin;
    bool sending = edge->edge.key.sending;
    if (line->registered) net->ops.dereg_mr(net, line->comm, line->kept_mhandle);
    if (line->spare_registered) net->ops.dereg_mr(net, line->comm, line->spare_mhandle);
    if (line->comm && sending) net->ops.close_send(net, line->comm);
    if (line->comm && !sending) net->ops.close_recv(net, line->comm);
    if (!line->comm && sending) net->ops.give_up(net, line->handle);
    if (line->listen_comm) net->ops.close_listen(net, line->listen_comm);
    *line = (struct net_line){.phase = NET_BROKEN};
}

/* Nothing is lost, as nothing was sent over it yet: what would have been goes through slots. */
static void forgo_direct(struct net_edge *edge, ncclResult_t rc)
{
    const struct tt_transport_config *config = edge->edge.config;
    if (edge->direct.phase != NET_BROKEN) (void)send_word(edge, false);
    close_line(edge, &edge->direct);
    tt_info(TT_LOG_NET | TT_LOG_REG,
            "rank %d: registered memory is copied on its way %s rank %d: NET/%s gave no second "
            "connection (result %d)",
            config->member->rank, edge->edge.key.sending ? "to" : "from", edge->edge.key.peer,
            config->net->name, (int)rc);
}

bool tt_net_join(struct net_edge *edge, struct net_line *line)
{
    ncclResult_t rc = ncclSuccess;
    if (!edge->transport->net_edges->hinted) tt_net_give_hints(edge, 0);
    edge->transport->net_edges->hinted = true;
    if (!line->since_nsec) line->since_nsec = tt_now_nsec();
    switch (line->phase) {
    case NET_LISTENING: rc = listen_step(edge, line); break;
    case NET_WAITING_HANDLE: rc = handle_step(edge, line); break;
    case NET_CONNECTING: rc = connect_step(edge, line); break;
    case NET_ACCEPTING: rc = accept_step(edge, line); break;
    case NET_CONFIRMING: rc = confirm_step(edge, line); break;
    case NET_REVERSING: rc = reverse_step(edge, line); break;
    case NET_UNUSED:
    case NET_READY:
    case NET_BROKEN: return false;
    }
    if (rc && rc != ncclInProgress && line == &edge->direct) {
        forgo_direct(edge, rc);
    } else if (rc && rc != ncclInProgress && line->phase != NET_BROKEN) {
        tt_net_broke(edge, rc, "connecting");
    }
    return rc != ncclInProgress;
}

void tt_net_direct_close(struct net_edge *edge)
{
    if (edge->direct.phase == NET_UNUSED) return;
    tt_net_unpin(edge);
    close_line(edge, &edge->direct);
}

void tt_net_edge_close(struct net_edge *edge)
{
    tt_net_direct_close(edge);
    close_line(edge, &edge->slots);
}
