/* One network edge, mover's side: slots are handed to the network step by step, by the thread that
 * holds the lock of all network edges. */
#include "base/error.h"
#include "base/member.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"
#include "transport/net/net.h"
#include "transport/net/pool.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CAUSE_LOOKS = 100, CAUSE_LOOK_USEC = 2000 };

/* A rank that closes a connection has often lost another rank and left. When one died its
 * neighbours in the bootstrap's tree learn it at once, so a moment later this rank knows as well
 * whom to blame. Plugins often have no code of their own for a connection that is closed. */
static void await_cause(const struct tt_transport_config *config)
{
    for (int look = 0; look < CAUSE_LOOKS; look++) {
        if (tt_member_aborted(config->member) || tt_bootstrap_error(config->bootstrap, NULL))
            return;
        tt_sleep_usec(CAUSE_LOOK_USEC);
    }
}

/* The built-in's own sentence says more than the code: it has just written it. */
static const char *reason_of(const struct tt_net *net, ncclResult_t rc)
{
    const char *last = tt_last_error();
    bool said = rc == ncclSystemError || rc == ncclRemoteError;
    bool own = net->plugin->builtin && said && !strncmp(last, "NET/", 4);
    return own ? last : tt_result_text(rc);
}

/* Errors after the first one of all edges, after an abort or after what another rank told are
 * consequences: they are not told, so that the text of the first one stays. */
static bool is_first_error(const struct net_edge *edge)
{
    const struct tt_transport_config *config = edge->edge.config;
    return !atomic_load_explicit(&edge->transport->net_edges->error, memory_order_relaxed) &&
           !tt_member_aborted(config->member) && !tt_bootstrap_error(config->bootstrap, NULL);
}

void tt_net_broke_because(struct net_edge *edge, ncclResult_t rc, const char *sentence)
{
    const struct tt_transport_config *config = edge->edge.config;
    edge->slots.phase = NET_BROKEN;
    if (is_first_error(edge)) {
        tt_fail(rc, "%s", sentence);
        /* every rank gets the cause, not only that a rank gave up; after an abort it is none */
        if (!tt_member_aborted(config->member)) tt_bootstrap_fail(config->bootstrap, rc, sentence);
        atomic_store_explicit(&edge->transport->net_edges->error, (int)rc, memory_order_relaxed);
    }
    /* last: calls that see it say what is known by now */
    atomic_store_explicit(&edge->error, (int)rc, memory_order_release);
}

void tt_net_broke(struct net_edge *edge, ncclResult_t rc, const char *what)
{
    const struct tt_transport_config *config = edge->edge.config;
    char sentence[400];
    edge->slots.phase = NET_BROKEN;
    snprintf(sentence, sizeof(sentence), "rank %d: %s %s rank %d over NET/%.64s failed: %.200s",
             config->member->rank, what, edge->edge.key.sending ? "to" : "from",
             edge->edge.key.peer, config->net->name, reason_of(config->net, rc));
    if ((rc == ncclRemoteError || !config->net->plugin->builtin) && is_first_error(edge))
        await_cause(config);
    tt_net_broke_because(edge, rc, sentence);
}

/* The slot as a message with room for, or of, so many bytes. */
static void part_of(const struct net_edge *edge, uint64_t number, size_t bytes,
                    struct tt_net_part *part)
{
    struct net_slot *slot = net_slot_at(edge, number);
    part->data = slot;
    part->bytes = sizeof(*slot) + bytes;
    if (!edge->gathers) return;
    part->head = slot;
    part->head_bytes = sizeof(*slot);
    part->data = slot + 1;
    part->bytes = bytes;
}

/* Payloads of memory that the network registered have a message of their own; what it did not take
 * after all goes through the slot. */
static bool sends_apart(struct net_edge *edge)
{
    struct net_slot *slot = net_slot_at(edge, edge->issued);
    struct tt_net_landing *memory = &edge->memory[edge->issued % TT_SLOTS];
    if (tt_net_pin(edge, memory->at, slot->bytes)) return true;
    memcpy(slot + 1, memory->at, slot->bytes);
    memory->at = NULL;
    return false;
}

/* The proxy joins it: the thread that moves the network wakes it. */
static void want_line(struct net_edge *edge, enum net_phase phase)
{
    edge->direct.phase = phase;
    atomic_store_explicit(&edge->transport->net_edges->joining, true, memory_order_relaxed);
}

enum mac_of { MAC_OF_HEAD, MAC_OF_PAYLOAD };

/* A message has its place by its sender, its receiver, its channel and its number. A payload of
 * up to 8 bytes stands in the head in place of its MAC: the head's is over it. */
static uint64_t mac_of(const struct net_edge *edge, uint64_t number, enum mac_of part,
                       const void *bytes, size_t len_bytes)
{
    uint64_t word = 0;
    if (part == MAC_OF_PAYLOAD && len_bytes <= sizeof(word)) {
        if (len_bytes) memcpy(&word, bytes, len_bytes);
        return word;
    }
    const struct tt_edge_key *key = &edge->edge.key;
    uint64_t own = (uint32_t)edge->edge.config->member->rank, peer = (uint32_t)key->peer;
    const uint64_t context[TT_MAC_CONTEXT_WORDS] = {
        key->sending ? own << 32 | peer : peer << 32 | own,
        (uint64_t)key->channel << 32 | (uint64_t)key->conn << 1 | part,
        number,
    };
    return tt_mac(&edge->transport->net_edges->mac_key, context, bytes, len_bytes);
}

static uint64_t head_mac(const struct net_edge *edge, uint64_t number)
{
    return mac_of(edge, number, MAC_OF_HEAD, net_slot_at(edge, number),
                  offsetof(struct net_slot, head_mac));
}

static ncclResult_t issue_send(struct net_edge *edge, struct net_step *step)
{
    step->request = step->payload = NULL;
    step->landed = false;
    step->group = 1;
    struct tt_net_plugin *net = edge->edge.config->net->plugin;
    struct net_slot *slot = net_slot_at(edge, edge->issued);
    struct tt_net_part part = {
        .tag = edge->first_tag + (int)(edge->issued % TT_SLOTS),
        .mhandle = edge->slots.mhandle,
        .event = step->seen.profiler ? &step->seen : NULL,
    };
    char *memory = edge->memory[edge->issued % TT_SLOTS].at;
    bool apart = memory && !edge->gathers && sends_apart(edge);
    /* the executor would like to have the direct line, and the receiver has not been asked yet */
    bool asks = edge->direct.phase == NET_UNUSED &&
                atomic_load_explicit(&edge->direct_state, memory_order_relaxed) == NET_DIRECT_ASKED;
    slot->flags &= NET_FLAG_MAC; /* of an attempt before */
    slot->flags |= (apart ? NET_FLAG_APART : 0u) | (asks ? NET_FLAG_ASKS : 0u);
    part_of(edge, edge->issued, apart ? 0 : slot->bytes, &part);
    if (edge->gathers && memory) part.data = memory;
    if (edge->proves && !(slot->flags & NET_FLAG_MAC)) {
        slot->flags |= NET_FLAG_MAC;
        slot->payload_mac = mac_of(edge, edge->issued, MAC_OF_PAYLOAD, part.data, slot->bytes);
        slot->head_mac = head_mac(edge, edge->issued);
    }
    if (step->op) tt_net_watch_state(step, ncclProfilerProxyStepSendPeerWait_v4, slot->bytes);
    ncclResult_t rc = net->ops.isend(net, edge->slots.comm, &part, &step->request);
    if (rc || !step->request) return rc;
    if (asks) want_line(edge, NET_WAITING_HANDLE);
    if (step->op) tt_net_watch_state(step, ncclProfilerProxyStepSendWait, slot->bytes);
    return ncclSuccess;
}

/* How many messages one request is for, from the next one on. Those of one transfer come without
 * anything from here, so they may wait for each other; but the first must have been accepted, as it
 * may be of another call, with fewer of them. 0: more will be asked for together soon. */
static int group_size(struct net_edge *edge, uint64_t limit)
{
    /* pair with the stores in net.c */
    uint64_t end = atomic_load_explicit(&edge->transfer_end, memory_order_acquire);
    uint64_t first = atomic_load_explicit(&edge->transfer_first, memory_order_relaxed);
    uint64_t emptied = atomic_load_explicit(&edge->emptied, memory_order_acquire);
    if (end < edge->issued + 2 || emptied <= first) return 1;
    uint64_t size = end - edge->issued;
    if (size > (uint64_t)edge->group_most) size = (uint64_t)edge->group_most;
    return limit - edge->issued < size ? 0 : (int)size;
}

static ncclResult_t issue_recv(struct net_edge *edge, struct net_step *first, int count)
{
    struct tt_net_plugin *net = edge->edge.config->net->plugin;
    struct net_op *op = atomic_load_explicit(&edge->op, memory_order_acquire);
    struct tt_net_part parts[TT_NET_GROUP];
    void *request = NULL;
    for (int i = 0; i < count; i++) {
        const uint64_t number = edge->issued + (uint64_t)i;
        struct net_step *step = net_step_at(edge, number);
        step->request = step->payload = NULL;
        step->landed = false;
        step->group = 0;
        if (op && !step->op) tt_net_watch_start(op, edge, number, ncclProfilerProxyStepRecvWait);
        parts[i] = (struct tt_net_part){
            .tag = edge->first_tag + (int)(number % TT_SLOTS),
            .mhandle = edge->slots.mhandle,
            .event = step->seen.profiler ? &step->seen : NULL,
        };
        part_of(edge, number, edge->edge.config->slice_bytes, &parts[i]);
        if (edge->gathers) parts[i].landing = &edge->memory[number % TT_SLOTS];
    }
    ncclResult_t rc = count == 1
                          ? net->ops.irecv(net, edge->slots.comm, parts, &request)
                          : net->ops.irecv_group(net, edge->slots.comm, parts, count, &request);
    first->request = request;
    first->group = (uint8_t)count;
    return rc;
}

/* Networks that ask for it learn which receives the executor is done with, before their requests
 * give way to new ones. Returns how many messages that holds for. */
static uint64_t report_consumed(struct net_edge *edge, uint64_t emptied)
{
    struct tt_net_plugin *net = edge->edge.config->net->plugin;
    while (edge->consumed < emptied) {
        const struct net_step *step = net_step_at(edge, edge->consumed);
        uint64_t end = edge->consumed + step->group;
        if (end > emptied) break;
        net->ops.consumed(net, edge->slots.comm, step->group, step->request);
        for (; edge->consumed < end; edge->consumed++) {
            step = net_step_at(edge, edge->consumed);
            if (step->payload) net->ops.consumed(net, edge->direct.comm, 1, step->payload);
        }
    }
    return edge->consumed;
}

/* How many messages may be under way by now. */
static uint64_t issue_limit(struct net_edge *edge)
{
    /* pair with the release stores in net.c */
    if (edge->edge.key.sending) return atomic_load_explicit(&edge->filled, memory_order_acquire);
    uint64_t limit = atomic_load_explicit(&edge->wanted, memory_order_acquire);
    uint64_t expected = atomic_load_explicit(&edge->expected, memory_order_acquire);
    uint64_t emptied = atomic_load_explicit(&edge->emptied, memory_order_acquire);
    bool reports = edge->edge.config->net->plugin->ops.consumed;
    uint64_t room = (reports ? report_consumed(edge, emptied) : emptied) + edge->slot_mask + 1;
    if (limit < expected) limit = expected;
    return limit < room ? limit : room;
}

/* True: something happened. */
static bool issue_failed(struct net_edge *edge, ncclResult_t rc)
{
    tt_net_broke(edge, rc, edge->edge.key.sending ? "sending" : "receiving");
    return true;
}

static bool issue_step(struct net_edge *edge)
{
    bool moved = false;
    bool sending = edge->edge.key.sending;
    uint64_t limit = issue_limit(edge);
    while (edge->issued < limit) {
        struct net_step *step = net_step_at(edge, edge->issued);
        int count = sending || edge->group_most < 2 ? 1 : group_size(edge, limit);
        if (!count) return moved;
        ncclResult_t rc = edge->pooled ? tt_net_pool_register(edge, &edge->slots) : ncclSuccess;
        if (!rc) rc = sending ? issue_send(edge, step) : issue_recv(edge, step, count);
        if (rc) return issue_failed(edge, rc);
        if (!step->request) return moved;
        edge->issued += (uint64_t)count;
        moved = true;
    }
    return moved;
}

/* All ranks get what is wrong with the message. */
static ncclResult_t damaged(struct net_edge *edge, uint64_t number, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static ncclResult_t damaged(struct net_edge *edge, uint64_t number, const char *fmt, ...)
{
    char sentence[256], what[128];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    snprintf(sentence, sizeof(sentence), "rank %d: message %llu from rank %d is damaged: %s",
             edge->edge.config->member->rank, (unsigned long long)number, edge->edge.key.peer,
             what);
    tt_net_broke_because(edge, ncclRemoteError, sentence);
    return ncclRemoteError;
}

static ncclResult_t changed(struct net_edge *edge, uint64_t number)
{
    return damaged(edge, number, "bad MAC: these are not the bytes that rank %d sent",
                   edge->edge.key.peer);
}

/* A message came: look at its header before any other code does. `size` < 0: the network said
 * nothing. Some plugins always tell the room that the receive had. */
static ncclResult_t check_slot(struct net_edge *edge, int size)
{
    const struct net_slot *slot = net_slot_at(edge, edge->headed);
    const struct tt_transport_config *config = edge->edge.config;
    bool apart = slot->flags & NET_FLAG_APART;
    size_t with = apart ? 0 : slot->bytes;
    bool known = (size_t)size == sizeof(*slot) + with ||
                 (!edge->gathers && (size_t)size == sizeof(*slot) + config->slice_bytes);
    /* what gathers has landed somewhere, or nowhere: net_peek() looks; it comes one by one */
    bool fits = (edge->gathers || slot->bytes <= config->slice_bytes) &&
                !(slot->flags & ~(uint32_t)(edge->gathers ? NET_FLAG_MAC : NET_FLAG_MOST)) &&
                (size < 0 || known);
    if (edge->proves && !(slot->flags & NET_FLAG_MAC))
        return damaged(edge, edge->headed, "it has no MAC: is TUTTI_NET_INTEGRITY the same there?");
    if (edge->proves && slot->head_mac != head_mac(edge, edge->headed))
        return changed(edge, edge->headed);
    if (fits && slot->flags & NET_FLAG_ASKS && edge->direct.phase == NET_UNUSED)
        want_line(edge, NET_LISTENING);
    if (fits) return ncclSuccess;
    return damaged(edge, edge->headed, "%d bytes came, its header says %u with flags %x", size,
                   slot->bytes, slot->flags);
}

/* Headers: all of a message but what goes apart. */
static ncclResult_t head_step(struct net_edge *edge, bool *moved_out)
{
    struct tt_net_plugin *net = edge->edge.config->net->plugin;
    while (edge->headed < edge->issued) {
        const struct net_step *step = net_step_at(edge, edge->headed);
        int done = 0, sizes[TT_NET_GROUP];
        for (int i = 0; i < step->group; i++)
            sizes[i] = -1;
        ncclResult_t rc = net->ops.test(net, step->request, &done, sizes);
        if (rc || !done) return rc;
        for (int i = 0, count = step->group; i < count; i++) {
            if (!edge->edge.key.sending) rc = check_slot(edge, sizes[i]);
            if (rc) return rc;
            edge->headed++;
        }
        *moved_out = true;
    }
    return ncclSuccess;
}

/* Where the payload of the next message to post comes from, or goes to: named memory if the header
 * is the expected one and the network has it registered, else the slot. False: the user took memory
 * back that was to be sent. */
static bool place_payload(struct net_edge *edge, struct net_step *step, struct tt_net_part *part)
{
    struct net_slot *slot = net_slot_at(edge, edge->posted);
    const struct tt_net_landing *memory = &edge->memory[edge->posted % TT_SLOTS];
    bool named = edge->edge.key.sending || tt_net_lands(memory, slot->match, slot->bytes);
    const struct net_pin *pin = named ? tt_net_pin(edge, memory->at, slot->bytes) : NULL;
    step->landed = pin != NULL;
    part->data = pin ? memory->at : (char *)(slot + 1);
    part->mhandle = pin ? pin->mhandle : edge->direct.mhandle;
    part->bytes = slot->bytes;
    return pin || !edge->edge.key.sending;
}

/* No request: ask again. */
static ncclResult_t post_payload(struct net_edge *edge, struct net_step *step)
{
    struct tt_net_plugin *net = edge->edge.config->net->plugin;
    bool sending = edge->edge.key.sending;
    struct tt_net_part part = {
        .tag = sending ? edge->edge.config->member->rank : edge->edge.key.peer,
        .event = step->seen.profiler ? &step->seen : NULL,
    };
    if (edge->pooled && !sending) {
        ncclResult_t rc = tt_net_pool_register(edge, &edge->direct);
        if (rc) return rc;
    }
    if (!place_payload(edge, step, &part)) return ncclInvalidUsage;
    return sending ? net->ops.isend(net, edge->direct.comm, &part, &step->payload)
                   : net->ops.irecv(net, edge->direct.comm, &part, &step->payload);
}

/* Payloads that go apart: once the header has left; to be received once it came and the executor
 * has said where the payload may land. */
static ncclResult_t payload_step(struct net_edge *edge, bool *moved_out)
{
    bool sending = edge->edge.key.sending;
    /* pairs with the release stores in net.c */
    uint64_t wanted = atomic_load_explicit(&edge->wanted, memory_order_acquire);
    uint64_t limit = sending ? edge->issued : edge->headed;
    for (; edge->posted < limit; edge->posted++) {
        struct net_step *step = net_step_at(edge, edge->posted);
        if (!(net_slot_at(edge, edge->posted)->flags & NET_FLAG_APART)) continue;
        if (edge->direct.phase == NET_BROKEN) return ncclSystemError;
        if (edge->direct.phase != NET_READY || (!sending && edge->posted >= wanted)) break;
        ncclResult_t rc = post_payload(edge, step);
        if (rc || !step->payload) return rc;
        *moved_out = true;
    }
    return ncclSuccess;
}

/* All of the oldest message is here. `size` < 0: nothing of it went apart, or the network said
 * nothing. */
static ncclResult_t check_payload(struct net_edge *edge, int size)
{
    const struct net_slot *slot = net_slot_at(edge, edge->tested);
    const struct tt_net_landing *landing = &edge->memory[edge->tested % TT_SLOTS];
    struct net_step *step = net_step_at(edge, edge->tested);
    const void *payload = slot + 1;
    if (size >= 0 && (size_t)size != slot->bytes) {
        return damaged(edge, edge->tested, "%d bytes came apart, its header says %u", size,
                       slot->bytes);
    }
    if (edge->gathers)
        step->landed = landing->at && tt_net_lands(landing, slot->match, slot->bytes);
    if (step->landed) payload = landing->at;
    /* without a place it was not taken either: the executor says so */
    bool taken = step->landed || slot->bytes <= edge->edge.config->slice_bytes;
    if (edge->proves && taken &&
        slot->payload_mac != mac_of(edge, edge->tested, MAC_OF_PAYLOAD, payload, slot->bytes))
        return changed(edge, edge->tested);
    if (step->op) {
        tt_net_watch_state(step, ncclProfilerProxyStepRecvFlushWait, slot->bytes);
        tt_net_watch_state(step, ncclProfilerProxyStepRecvGPUWait, slot->bytes);
    }
    return ncclSuccess;
}

static ncclResult_t finish_step(struct net_edge *edge, bool *moved_out)
{
    struct tt_net_plugin *net = edge->edge.config->net->plugin;
    bool sending = edge->edge.key.sending;
    while (edge->tested < edge->headed && edge->tested < edge->posted) {
        struct net_step *step = net_step_at(edge, edge->tested);
        int done = !step->payload, size = -1; /* a plugin may set `done` at the end alone */
        ncclResult_t rc = ncclSuccess;
        if (step->payload) rc = net->ops.test(net, step->payload, &done, &size);
        if (rc || !done) return rc;
        if (sending) {
            if (step->op) tt_net_watch_stop(step);
        } else {
            rc = check_payload(edge, size);
            if (rc) return rc;
        }
        edge->tested++;
        *moved_out = true;
        /* pairs with the acquire loads in net.c */
        atomic_store_explicit(sending ? &edge->emptied : &edge->filled, edge->tested,
                              memory_order_release);
    }
    return ncclSuccess;
}

bool tt_net_step(struct net_edge *edge)
{
    bool moved = issue_step(edge), tested = false;
    if (edge->slots.phase != NET_READY) return moved;
    ncclResult_t rc = head_step(edge, &tested);
    if (edge->gathers) edge->posted = edge->headed; /* nothing goes apart */
    if (!rc && !edge->gathers) rc = payload_step(edge, &tested);
    if (!rc) rc = finish_step(edge, &tested);
    if (rc) tt_net_broke(edge, rc, edge->edge.key.sending ? "sending" : "receiving");
    if (!rc && tested) issue_step(edge); /* what the test made room for */
    return moved || tested || rc;
}

bool tt_net_step_pending(const struct net_edge *edge)
{
    return edge->slots.phase != NET_BROKEN && edge->edge.key.sending &&
           edge->tested != atomic_load_explicit(&edge->filled, memory_order_acquire);
}
