/* Two ranks with network edges between them; the calls of the network are counted. */
#include "net_pair.h"

#include "plugin/net/net_abi.h"

#include <pthread.h>

/* ---- a bootstrap of two mailboxes ---- */

struct tt_bootstrap {
    int rank;
    pthread_mutex_t lock;
    int nmessages;
    struct {
        int from;
        uint32_t tag;
        size_t bytes;
        char text[256];
    } messages[64];
};

static struct tt_bootstrap boxes[2] = {{.rank = 0, .lock = PTHREAD_MUTEX_INITIALIZER},
                                       {.rank = 1, .lock = PTHREAD_MUTEX_INITIALIZER}};

ncclResult_t tt_bootstrap_send(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               const void *message, size_t bytes)
{
    struct tt_bootstrap *box = &boxes[peer];
    pthread_mutex_lock(&box->lock);
    assert_true(box->nmessages < 64 && bytes <= sizeof(box->messages[0].text));
    box->messages[box->nmessages].from = bootstrap->rank;
    box->messages[box->nmessages].tag = tag;
    box->messages[box->nmessages].bytes = bytes;
    memcpy(box->messages[box->nmessages++].text, message, bytes);
    pthread_mutex_unlock(&box->lock);
    return ncclSuccess;
}

/* The two ranks have the same. */
void tt_bootstrap_key(const struct tt_bootstrap *bootstrap, const char *kind,
                      unsigned char key_out[32])
{
    (void)bootstrap;
    memset(key_out, (int)strlen(kind), 32);
}

_Atomic int nreported, known_after;

void tt_bootstrap_fail(struct tt_bootstrap *bootstrap, ncclResult_t rc, const char *sentence)
{
    (void)bootstrap, (void)rc, (void)sentence;
    atomic_fetch_add(&nreported, 1);
}

char reported[640];

void tt_bootstrap_fail_all(struct tt_bootstrap *bootstrap, ncclResult_t rc, const char *sentence)
{
    (void)bootstrap, (void)rc;
    snprintf(reported, sizeof(reported), "%s", sentence);
}

bool tt_bootstrap_rank_ended(struct tt_bootstrap *bootstrap, int rank)
{
    (void)bootstrap, (void)rank;
    return false;
}

ncclResult_t tt_bootstrap_error(const struct tt_bootstrap *bootstrap, const char **sentence_out)
{
    (void)bootstrap, (void)sentence_out;
    if (atomic_load(&known_after) == 1) return ncclRemoteError;
    if (atomic_load(&known_after)) atomic_fetch_sub(&known_after, 1);
    return ncclSuccess;
}

/* Another number each time: every poll looks. */
uint64_t tt_bootstrap_mail(const struct tt_bootstrap *bootstrap)
{
    static _Atomic uint64_t looks;
    (void)bootstrap;
    return atomic_fetch_add(&looks, 1);
}

ncclResult_t tt_bootstrap_poll(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               void *message, size_t max_bytes, size_t *bytes_out)
{
    ncclResult_t rc = ncclInProgress;
    pthread_mutex_lock(&bootstrap->lock);
    for (int i = 0; i < bootstrap->nmessages; i++) {
        if (bootstrap->messages[i].from != peer || bootstrap->messages[i].tag != tag) continue;
        assert_true(bootstrap->messages[i].bytes <= max_bytes);
        *bytes_out = bootstrap->messages[i].bytes;
        memcpy(message, bootstrap->messages[i].text, *bytes_out);
        bootstrap->messages[i] = bootstrap->messages[--bootstrap->nmessages];
        rc = ncclSuccess;
        break;
    }
    pthread_mutex_unlock(&bootstrap->lock);
    return rc;
}

/* ---- two ranks ---- */

struct rank ranks[2];
bool gathers = true;
_Atomic int nposted, nregistered, nuser, nclosed, nlistening, nlistened;
_Atomic int fault, nfaults;
bool refuses;
_Atomic bool withholds;
char *users[2];
static struct tt_net_ops as_it_is;
static struct tt_net_plugin socket_plugin;

static ncclResult_t no_event(void **handle, int type, void *parent, int64_t id, void *extra)
{
    (void)handle, (void)type, (void)parent, (void)id, (void)extra;
    return ncclSuccess;
}

static bool is_users(const char *at)
{
    for (int r = 0; r < 2; r++) {
        if (users[r] && at >= users[r] && at < users[r] + USER_BYTES) return true;
    }
    return false;
}

static ncclResult_t count_irecv(struct tt_net_plugin *self, void *recv_comm,
                                const struct tt_net_part *part, void **request)
{
    ncclResult_t rc = as_it_is.irecv(self, recv_comm, part, request);
    if (*request) atomic_fetch_add(&nposted, 1);
    if (*request && is_users(part->data)) atomic_fetch_add(&nuser, 1);
    return rc;
}

static ncclResult_t count_isend(struct tt_net_plugin *self, void *send_comm,
                                const struct tt_net_part *part, void **request)
{
    if (atomic_load(&withholds) && is_users(part->data)) return ncclSuccess;
    ncclResult_t rc = as_it_is.isend(self, send_comm, part, request);
    if (*request && is_users(part->data)) atomic_fetch_add(&nuser, 1);
    return rc;
}

static ncclResult_t fails(enum fault what)
{
    if (atomic_load(&fault) != (int)what) return ncclSuccess;
    atomic_fetch_add(&nfaults, 1);
    return ncclSystemError;
}

/* The handle is the region's first byte: it must come back. */
static ncclResult_t count_reg_mr(struct tt_net_plugin *self, void *comm, void *data, size_t bytes,
                                 void **mhandle)
{
    (void)self, (void)comm, (void)bytes;
    ncclResult_t rc = is_users(data) ? ncclSuccess : fails(FAULT_REGISTER);
    if (rc) return rc;
    if (refuses && is_users(data)) return ncclSystemError;
    atomic_fetch_add(&nregistered, 1);
    *mhandle = data;
    return ncclSuccess;
}

static ncclResult_t count_dereg_mr(struct tt_net_plugin *self, void *comm, void *mhandle)
{
    (void)self, (void)comm;
    assert_non_null(mhandle);
    atomic_fetch_sub(&nregistered, 1);
    return ncclSuccess;
}

static ncclResult_t failing_test(struct tt_net_plugin *self, void *request, int *done, int *size)
{
    ncclResult_t rc = fails(FAULT_TEST);
    return rc ? rc : as_it_is.test(self, request, done, size);
}

static ncclResult_t count_close_recv(struct tt_net_plugin *self, void *recv_comm)
{
    atomic_fetch_add(&nclosed, 1);
    return as_it_is.close_recv(self, recv_comm);
}

static ncclResult_t count_listen(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                                 void **listen_comm)
{
    ncclResult_t rc = as_it_is.listen(self, ctx, dev, handle, listen_comm);
    if (!rc) atomic_fetch_add(&nlistening, 1);
    if (!rc) atomic_fetch_add(&nlistened, 1);
    return rc;
}

static ncclResult_t count_close_listen(struct tt_net_plugin *self, void *listen_comm)
{
    atomic_fetch_sub(&nlistening, 1);
    return as_it_is.close_listen(self, listen_comm);
}

static ncclResult_t failing_connect(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                                    void **send_comm)
{
    ncclResult_t rc = fails(FAULT_CONNECT);
    return rc ? rc : as_it_is.connect(self, ctx, dev, handle, send_comm);
}

/* After all is done: the sender knows nothing of it. */
static ncclResult_t failing_accept(struct tt_net_plugin *self, void *listen_comm, void **recv_comm)
{
    ncclResult_t rc = as_it_is.accept(self, listen_comm, recv_comm);
    if (rc || !*recv_comm) return rc;
    rc = fails(FAULT_ACCEPT);
    if (!rc) return rc;
    as_it_is.close_recv(self, *recv_comm);
    *recv_comm = NULL;
    return rc;
}

static void look_at_calls(struct tt_net_ops *ops)
{
    as_it_is = *ops;
    ops->irecv = count_irecv;
    ops->isend = count_isend;
    ops->test = failing_test;
    ops->reg_mr = count_reg_mr;
    ops->dereg_mr = count_dereg_mr;
    ops->close_recv = count_close_recv;
    ops->listen = count_listen;
    ops->close_listen = count_close_listen;
    ops->connect = failing_connect;
    ops->accept = failing_accept;
}

void rank_open(int r)
{
    struct rank *rank = &ranks[r];
    ncclNetCommConfig_v12_t net_config = {.trafficClass = -1};
    struct tt_net_trust trust = {.rank = r};
    if (!socket_plugin.object) {
        tt_net_adopt_socket(&socket_plugin);
        if (!gathers)
            assert_int_equal(tt_net_adopt(&socket_plugin, 12, &tt_net_socket), ncclSuccess);
        socket_plugin.builtin = gathers;
        look_at_calls(&socket_plugin.ops);
    }
    memset(rank, 0, sizeof(*rank));
    boxes[r].nmessages = 0;
    rank->member.rank = r;
    rank->member.nranks = 2;
    rank->member.name = "";
    rank->peers[0].reach = rank->peers[1].reach = TT_REACH_NET;
    rank->net = (struct tt_net){.plugin = &socket_plugin, .ndevs = 1, .name = "Socket"};
    assert_int_equal(tt_net_socket.init(&rank->net.ctx, 1, &net_config, NULL, no_event),
                     ncclSuccess);
    tt_net_socket_set_trust(rank->net.ctx, &trust);
    rank->inbox = tt_calloc(1, tt_transport_inbox_bytes(2, CHANNELS, SLICE));
    struct tt_transport_config config = {.member = &rank->member,
                                         .peers = rank->peers,
                                         .bootstrap = &boxes[r],
                                         .net = &rank->net,
                                         .nchannels = CHANNELS,
                                         .slice_bytes = SLICE,
                                         .pool_bytes = POOL_BYTES,
                                         .allow_direct = true,
                                         .allow_shm = true};
    assert_int_equal(tt_transport_create(&config, rank->inbox, &rank->transport), ncclSuccess);
    assert_int_equal(tt_proxy_create(&rank->member, rank->transport, NULL, &rank->proxy),
                     ncclSuccess);
}

void rank_close(int r)
{
    struct rank *rank = &ranks[r];
    tt_proxy_destroy(rank->proxy);
    tt_transport_destroy(rank->transport);
    if (rank->net.ctx) tt_net_socket.finalize(rank->net.ctx);
    free(rank->inbox);
    rank->proxy = NULL;
    rank->transport = NULL;
    rank->net.ctx = NULL;
    rank->inbox = NULL;
}

struct tt_edge *edge_of(int r, int conn, bool sending)
{
    return edge_at(r, 0, conn, sending);
}

struct tt_edge *edge_at(int r, int channel, int conn, bool sending)
{
    struct tt_edge_key key = {.peer = 1 - r, .channel = channel, .conn = conn, .sending = sending};
    struct tt_edge *edge = NULL;
    assert_int_equal(tt_transport_edge(ranks[r].transport, &key, &edge), ncclSuccess);
    return edge;
}

struct tt_bootstrap *box_of(int r)
{
    return &boxes[r];
}

/* ---- moving ---- */

static size_t bytes_of(int k)
{
    return (size_t)k * 1009 % (SLICE + 1);
}

bool try_send(struct tt_edge *edge, int k)
{
    char *payload = tt_edge_acquire(edge, bytes_of(k));
    if (!payload) return false;
    if (bytes_of(k) <= TT_SLOT_INLINE_BYTES) {
        char small[TT_SLOT_INLINE_BYTES];
        memset(small, k, sizeof(small));
        tt_edge_post_small(edge, 77, small, bytes_of(k));
    } else {
        memset(payload, k, bytes_of(k));
        tt_edge_post(edge, 77, bytes_of(k));
    }
    return true;
}

bool try_receive(struct tt_edge *edge, int k)
{
    const char *payload = NULL;
    size_t bytes = 0;
    ncclResult_t rc = tt_edge_peek(edge, 77, &payload, &bytes);
    if (rc == ncclInProgress) return false;
    assert_int_equal(rc, ncclSuccess);
    assert_int_equal(bytes, bytes_of(k));
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal((unsigned char)payload[i], k % 256);
    tt_edge_release(edge);
    return true;
}

int run_all(int argc, char **argv, const struct CMUnitTest *tests, size_t ntests)
{
    gathers = argc < 2 || strcmp(argv[1], "abi") != 0;
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    return _cmocka_run_group_tests("network edges", tests, ntests, NULL, NULL);
}
