/* Messages over NET/Socket from each rank to the next one, through the library's edges and proxy:
 * their bytes, order and sizes. */
#include "traffic.h"

#include "simulation.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/member.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"
#include "net/socket.h"
#include "plugin/net/net_abi.h"
#include "proxy/proxy.h"
#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

enum { SLICE_BYTES = 4096, MESSAGES = 10, MESSAGES_LONG = 24, PAUSE_USEC = 1000 };
#define REST_NSEC 300000000ull /* most between two messages where lanes are to come and go */
#define LONG_NSEC 60000000000ull
#define TIMEOUT_NSEC 90000000000ull /* a connection gives up after 68 s */

struct line { /* of one channel, to the next rank and from the one before */
    struct tt_edge *out, *in;
    int sent, got;
    uint64_t rests_until;
};

struct lines {
    int nchannels, nmessages;
    struct tt_net net;
    struct tt_peer_reach peers[SIM_RANKS];
    void *inbox;
    struct tt_transport *transport;
    struct tt_proxy *proxy;
    struct line lines[SIM_PATHS];
};

static ncclResult_t no_event(void **handle, int type, void *parent, int64_t id, void *extra)
{
    (void)handle, (void)type, (void)parent, (void)id, (void)extra;
    return ncclSuccess;
}

static size_t bytes_of(int k)
{
    return (size_t)k * 1009 % (SLICE_BYTES + 1);
}

static ncclResult_t lines_open(struct lines *lines, struct tt_member *member,
                               struct tt_bootstrap *b)
{
    static struct tt_net_plugin plugin; /* of the process: a table */
    ncclNetCommConfig_v12_t net_config = {.trafficClass = -1};
    struct tt_net_trust trust = {.rank = member->rank};
    int n = member->nranks;
    if (!plugin.object) tt_net_adopt_socket(&plugin);
    for (int r = 0; r < n; r++)
        lines->peers[r].reach = TT_REACH_NET;
    const int nways = sim->plan.nways; /* each is a device, which a channel uses */
    lines->nchannels = nways;
    lines->nmessages = nways > 1 ? MESSAGES_LONG : MESSAGES;
    lines->net =
        (struct tt_net){.plugin = &plugin, .ndevs = nways, .nopen = nways, .name = "Socket"};
    ncclResult_t rc = tt_net_socket.init(&lines->net.ctx, 1, &net_config, NULL, no_event);
    if (rc) return rc;
    tt_bootstrap_key(b, "net", trust.key);
    tt_net_socket_set_trust(lines->net.ctx, &trust);
    lines->inbox = tt_calloc(1, tt_transport_inbox_bytes(n, nways, SLICE_BYTES));
    struct tt_transport_config config = {.member = member,
                                         .peers = lines->peers,
                                         .bootstrap = b,
                                         .net = &lines->net,
                                         .nchannels = nways,
                                         .slice_bytes = SLICE_BYTES};
    rc = tt_transport_create(&config, lines->inbox, &lines->transport);
    if (!rc) rc = tt_proxy_create(member, lines->transport, NULL, &lines->proxy);
    for (int c = 0; c < nways; c++) {
        struct tt_edge_key out = {.peer = (member->rank + 1) % n, .channel = c, .sending = true};
        struct tt_edge_key in = {.peer = (member->rank + n - 1) % n, .channel = c};
        if (!rc) rc = tt_transport_edge(lines->transport, &out, &lines->lines[c].out);
        if (!rc) rc = tt_transport_edge(lines->transport, &in, &lines->lines[c].in);
    }
    return rc;
}

static void lines_close(struct lines *lines)
{
    tt_proxy_destroy(lines->proxy);
    tt_transport_destroy(lines->transport);
    if (lines->net.ctx) tt_net_socket.finalize(lines->net.ctx);
    free(lines->inbox);
}

static bool send_one(struct line *line, const struct tt_member *member)
{
    const int k = line->sent;
    char *payload = tt_edge_acquire(line->out, bytes_of(k));
    char small[TT_SLOT_INLINE_BYTES];
    if (!payload) return false;
    line->sent++;
    if (bytes_of(k) <= TT_SLOT_INLINE_BYTES) {
        memset(small, k + member->rank, sizeof(small));
        tt_edge_post_small(line->out, 77, small, bytes_of(k));
        return true;
    }
    memset(payload, k + member->rank, bytes_of(k));
    tt_edge_post(line->out, 77, bytes_of(k));
    return true;
}

/* ncclInProgress: none is there. */
static ncclResult_t receive_one(struct line *line, const struct tt_member *member, int *wrong)
{
    const int k = line->got, from = (member->rank + member->nranks - 1) % member->nranks;
    const char *payload = NULL;
    size_t bytes = 0;
    ncclResult_t rc = tt_edge_peek(line->in, 77, &payload, &bytes);
    if (rc) return rc;
    *wrong += bytes != bytes_of(k);
    for (size_t i = 0; i < bytes; i++)
        *wrong += (unsigned char)payload[i] != (unsigned char)(k + from);
    tt_edge_release(line->in);
    line->got++;
    return ncclSuccess;
}

/* One step of a line: ncclSuccess if something moved. */
static ncclResult_t step(struct lines *lines, struct line *line, const struct tt_member *member,
                         int *wrong)
{
    const bool rests = tt_now_nsec() < line->rests_until;
    bool moved = !rests && line->sent < lines->nmessages && send_one(line, member);
    if (moved && lines->nchannels > 1) line->rests_until = tt_now_nsec() + sim_chance(REST_NSEC);
    ncclResult_t rc =
        line->got < lines->nmessages ? receive_one(line, member, wrong) : ncclInProgress;
    return moved && rc == ncclInProgress ? ncclSuccess : rc;
}

static bool has_ended(const struct lines *lines)
{
    bool ended = true;
    for (int c = 0; c < lines->nchannels; c++) {
        const struct line *line = &lines->lines[c];
        ended &= line->got == lines->nmessages && line->sent == lines->nmessages &&
                 tt_edge_drained(line->out);
    }
    return ended;
}

static ncclResult_t carry(struct lines *lines, const struct tt_member *member,
                          struct tt_bootstrap *b, int *wrong)
{
    uint64_t since = tt_now_nsec();
    while (!has_ended(lines)) {
        bool moved = false;
        for (int c = 0; c < lines->nchannels; c++) {
            ncclResult_t rc = step(lines, &lines->lines[c], member, wrong);
            if (rc && rc != ncclInProgress) return rc;
            moved |= rc == ncclSuccess;
        }
        if (moved) {
            since = tt_now_nsec();
            continue;
        }
        ncclResult_t rc = tt_bootstrap_error(b, NULL);
        if (!rc && tt_now_nsec() - since > LONG_NSEC)
            rc = tt_transport_progress(lines->transport, &moved); /* of a line that is not read */
        if (rc) return rc;
        if (tt_now_nsec() - since > TIMEOUT_NSEC)
            return tt_fail(ncclInternalError, "nothing moves");
        tt_sleep_usec(PAUSE_USEC);
    }
    return ncclSuccess;
}

/* Meanwhile no thread asks for messages. */
static ncclResult_t meet(struct tt_bootstrap *b)
{
    char own = 0, all[SIM_RANKS];
    return tt_bootstrap_allgather(b, &own, sizeof(own), all);
}

ncclResult_t sim_traffic(struct tt_member *member, struct tt_bootstrap *b, int *wrong)
{
    struct lines lines = {0};
    ncclResult_t rc = lines_open(&lines, member, b);
    if (!rc) rc = carry(&lines, member, b, wrong);
    if (!rc && lines.nchannels > 1) rc = meet(b); /* who closes has no lane that may come anew */
    if (rc && !tt_bootstrap_error(b, NULL)) tt_bootstrap_fail(b, rc, tt_last_error());
    lines_close(&lines);
    return rc;
}
