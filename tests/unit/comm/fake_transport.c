/* A transport room for tests of comm/: remembers what it was given, proves that inboxes are shared.
 */
#include "base/member.h"
#include "exec/exec.h"
#include "plugin/tuner/tuner.h"
#include "transport/left.h"
#include "transport/serve.h"
#include "transport/transport.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

struct tt_transport {
    sem_t wake_up;
    struct tt_transport_config config;
};

size_t tt_transport_inbox_bytes(int nranks, int nchannels, size_t slice_bytes)
{
    return (size_t)nranks * (size_t)nchannels * slice_bytes;
}

uint32_t tt_transport_messages(const struct tt_transport *transport, int rank, bool sending)
{
    (void)transport, (void)rank, (void)sending;
    return 0;
}

bool tt_call_log_get(const struct tt_transport *transport, uint64_t number,
                     struct tt_call *call_out)
{
    (void)transport, (void)number, (void)call_out;
    return false;
}

void tt_call_log_pack(const struct tt_transport *transport, uint64_t words_out[TT_CALL_LOG_WORDS])
{
    (void)transport;
    memset(words_out, 0, TT_CALL_LOG_WORDS * sizeof(uint64_t));
}

ncclResult_t tt_call_log_compare(struct tt_transport *transport, int rank,
                                 const uint64_t words[TT_CALL_LOG_WORDS])
{
    (void)transport, (void)rank, (void)words;
    return ncclSuccess;
}

enum tt_calls_match tt_transport_agree(struct tt_transport *transport, uint64_t number)
{
    (void)transport, (void)number;
    return TT_CALLS_AGREE;
}

ncclResult_t tt_transport_mismatch(struct tt_transport *transport, const char *fmt, ...)
{
    (void)transport, (void)fmt;
    return ncclInvalidUsage;
}

/* Every rank writes its number into every peer's inbox. */
ncclResult_t tt_transport_create(const struct tt_transport_config *config, void *inbox,
                                 struct tt_transport **transport_out)
{
    struct tt_transport *transport = calloc(1, sizeof(*transport));
    (void)inbox;
    transport->config = *config;
    sem_init(&transport->wake_up, 0, 0);
    for (int r = 0; r < config->member->nranks; r++) {
        const struct tt_peer_reach *peer = &config->peers[r];
        int value = config->member->rank + 1;
        if (!peer->range_base) continue;
        memcpy(peer->range_base + peer->inbox_offset + 64 * (size_t)config->member->rank, &value,
               sizeof(value));
    }
    *transport_out = transport;
    return ncclSuccess;
}

void tt_transport_destroy(struct tt_transport *transport)
{
    free(transport);
}

const _Atomic uint64_t *tt_transport_begun(const struct tt_transport *transport)
{
    static const _Atomic uint64_t none;
    (void)transport;
    return &none;
}

uint64_t tt_transport_in_flight_nsec(struct tt_transport *transport, int rank)
{
    (void)transport, (void)rank;
    return 0;
}

bool tt_transport_rank_left(const struct tt_transport *transport, int rank,
                            struct tt_left *left_out)
{
    (void)transport, (void)rank, (void)left_out;
    return false;
}

/* No network edges: the proxy sleeps until its end. */
enum tt_net_state tt_transport_serve(struct tt_transport *transport, ncclResult_t *rc_out)
{
    (void)transport;
    *rc_out = ncclSuccess;
    return TT_NET_IDLE;
}

bool tt_transport_pending(struct tt_transport *transport, bool *gone_out)
{
    (void)transport;
    *gone_out = false;
    return false;
}

uint64_t tt_transport_drives(const struct tt_transport *transport)
{
    (void)transport;
    return 0;
}

void tt_transport_sleep(struct tt_transport *transport, uint64_t timeout_usec)
{
    (void)timeout_usec;
    sem_wait(&transport->wake_up);
}

void tt_transport_wake(struct tt_transport *transport)
{
    sem_post(&transport->wake_up);
}

void tt_issue_queue_fini(struct tt_issue_queue *queue)
{
    (void)queue;
}

size_t tt_transport_slice_most(int nranks, int nchannels, size_t slice_bytes)
{
    (void)nranks, (void)nchannels;
    return slice_bytes;
}
