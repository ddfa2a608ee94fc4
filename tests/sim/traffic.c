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

enum { SLICE_BYTES = 4096, MESSAGES = 10, PAUSE_USEC = 1000 };
#define LONG_NSEC 60000000000ull
#define TIMEOUT_NSEC 90000000000ull /* a connection gives up after 68 s */

struct lines {
    struct tt_net net;
    struct tt_peer_reach peers[SIM_RANKS];
    void *inbox;
    struct tt_transport *transport;
    struct tt_proxy *proxy;
    struct tt_edge *out, *in;
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
    lines->net = (struct tt_net){.plugin = &plugin, .ndevs = 1, .nopen = 1, .name = "Socket"};
    ncclResult_t rc = tt_net_socket.init(&lines->net.ctx, 1, &net_config, NULL, no_event);
    if (rc) return rc;
    tt_bootstrap_key(b, "net", trust.key);
    tt_net_socket_set_trust(lines->net.ctx, &trust);
    lines->inbox = tt_calloc(1, tt_transport_inbox_bytes(n, 1, SLICE_BYTES));
    struct tt_transport_config config = {.member = member,
                                         .peers = lines->peers,
                                         .bootstrap = b,
                                         .net = &lines->net,
                                         .nchannels = 1,
                                         .slice_bytes = SLICE_BYTES};
    rc = tt_transport_create(&config, lines->inbox, &lines->transport);
    if (!rc) rc = tt_proxy_create(member, lines->transport, NULL, &lines->proxy);
    struct tt_edge_key out = {.peer = (member->rank + 1) % n, .sending = true};
    struct tt_edge_key in = {.peer = (member->rank + n - 1) % n};
    if (!rc) rc = tt_transport_edge(lines->transport, &out, &lines->out);
    if (!rc) rc = tt_transport_edge(lines->transport, &in, &lines->in);
    return rc;
}

static void lines_close(struct lines *lines)
{
    tt_proxy_destroy(lines->proxy);
    tt_transport_destroy(lines->transport);
    if (lines->net.ctx) tt_net_socket.finalize(lines->net.ctx);
    free(lines->inbox);
}

static bool send_one(struct lines *lines, const struct tt_member *member, int k)
{
    char *payload = tt_edge_acquire(lines->out, bytes_of(k));
    char small[TT_SLOT_INLINE_BYTES];
    if (!payload) return false;
    if (bytes_of(k) <= TT_SLOT_INLINE_BYTES) {
        memset(small, k + member->rank, sizeof(small));
        tt_edge_post_small(lines->out, 77, small, bytes_of(k));
        return true;
    }
    memset(payload, k + member->rank, bytes_of(k));
    tt_edge_post(lines->out, 77, bytes_of(k));
    return true;
}

/* ncclInProgress: none is there. */
static ncclResult_t receive_one(struct lines *lines, const struct tt_member *member, int k,
                                int *wrong)
{
    const char *payload = NULL;
    size_t bytes = 0;
    int from = (member->rank + member->nranks - 1) % member->nranks;
    ncclResult_t rc = tt_edge_peek(lines->in, 77, &payload, &bytes);
    if (rc) return rc;
    *wrong += bytes != bytes_of(k);
    for (size_t i = 0; i < bytes; i++)
        *wrong += (unsigned char)payload[i] != (unsigned char)(k + from);
    tt_edge_release(lines->in);
    return ncclSuccess;
}

static ncclResult_t carry(struct lines *lines, const struct tt_member *member,
                          struct tt_bootstrap *b, int *wrong)
{
    ncclResult_t rc = ncclSuccess;
    int sent = 0, got = 0;
    uint64_t since = tt_now_nsec();
    while (got < MESSAGES || sent < MESSAGES || !tt_edge_drained(lines->out)) {
        bool moved = sent < MESSAGES && send_one(lines, member, sent);
        sent += moved;
        rc = got < MESSAGES ? receive_one(lines, member, got, wrong) : ncclInProgress;
        if (rc && rc != ncclInProgress) return rc;
        got += rc == ncclSuccess;
        if (moved || rc == ncclSuccess) {
            since = tt_now_nsec();
            continue;
        }
        rc = tt_bootstrap_error(b, NULL);
        if (!rc && tt_now_nsec() - since > LONG_NSEC)
            rc = tt_transport_progress(lines->transport, &moved); /* of a line that is not read */
        if (rc) return rc;
        if (tt_now_nsec() - since > TIMEOUT_NSEC)
            return tt_fail(ncclInternalError, "nothing moves");
        tt_sleep_usec(PAUSE_USEC);
    }
    return ncclSuccess;
}

ncclResult_t sim_traffic(struct tt_member *member, struct tt_bootstrap *b, int *wrong)
{
    struct lines lines = {0};
    ncclResult_t rc = lines_open(&lines, member, b);
    if (!rc) rc = carry(&lines, member, b, wrong);
    if (rc && !tt_bootstrap_error(b, NULL)) tt_bootstrap_fail(b, rc, tt_last_error());
    lines_close(&lines);
    return rc;
}
