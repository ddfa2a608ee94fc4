/* See pair.h. */
#include "pair.h"

#include "../check.h"

#include <sched.h>
#include <string.h>

static ncclResult_t no_event(void **handle, int type, void *parent, int64_t id, void *extra)
{
    (void)handle, (void)type, (void)parent, (void)id, (void)extra;
    return ncclSuccess;
}

static void end_open(struct end *end, int rank)
{
    ncclNetCommConfig_v12_t config = {.trafficClass = NCCL_NET_TRAFFIC_CLASS_UNDEF};
    assert_int_equal(tt_net_socket.init(&end->ctx, 7, &config, NULL, no_event), ncclSuccess);
    end->trust.rank = rank;
    memset(end->trust.key, 'k', sizeof(end->trust.key));
    tt_net_socket_set_trust(end->ctx, &end->trust);
}

void pair_open(struct pair *pair)
{
    memset(pair, 0, sizeof(*pair));
    end_open(&pair->from, 0);
    end_open(&pair->to, 1);
    assert_int_equal(tt_net_socket.listen(pair->to.ctx, 0, pair->handle, &pair->listen_comm),
                     ncclSuccess);
}

void pair_join(struct pair *pair)
{
    while (!pair->send_comm || !pair->recv_comm) {
        if (!pair->send_comm)
            assert_int_equal(
                tt_net_socket.connect(pair->from.ctx, 0, pair->handle, &pair->send_comm, NULL),
                ncclSuccess);
        if (!pair->recv_comm)
            assert_int_equal(tt_net_socket.accept(pair->listen_comm, &pair->recv_comm, NULL),
                             ncclSuccess);
        sched_yield();
    }
    tt_net_socket.closeListen(pair->listen_comm);
    pair->listen_comm = NULL;
}

void pair_close(struct pair *pair)
{
    tt_net_socket.closeListen(pair->listen_comm);
    tt_net_socket.closeSend(pair->send_comm);
    tt_net_socket.closeRecv(pair->recv_comm);
    tt_net_socket.finalize(pair->from.ctx);
    tt_net_socket.finalize(pair->to.ctx);
}

void *pair_send(struct pair *pair, const void *bytes, size_t size)
{
    void *request = NULL;
    void *data = (void *)(uintptr_t)bytes;
    assert_int_equal(tt_net_socket.isend(pair->send_comm, data, size, 0, NULL, NULL, &request),
                     ncclSuccess);
    assert_non_null(request);
    return request;
}

void *pair_recv(struct pair *pair, void *bytes, size_t room)
{
    void *request = NULL;
    int tag = 0;
    assert_int_equal(
        tt_net_socket.irecv(pair->recv_comm, 1, &bytes, &room, &tag, NULL, NULL, &request),
        ncclSuccess);
    assert_non_null(request);
    return request;
}

ncclResult_t pair_wait(void *request, int *size_out)
{
    for (;;) {
        int done = 0;
        ncclResult_t rc = tt_net_socket.test(request, &done, size_out);
        if (rc || done) return rc;
        sched_yield();
    }
}
