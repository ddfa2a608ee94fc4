/* One rank's state: counters of the order, its waits and its last call, as a record of fixed size
 * that peers and reports read. A field that a peer sends is bounded here, before it is used.
 */
#include "watch/inquiry/status.h"

#include "base/member.h"
#include "base/wait.h"
#include "bootstrap/bootstrap.h"
#include "exec/exec.h"
#include "transport/transport.h"

#include <endian.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define GRAPHS_NSEC 1000000000ull /* shorter waits for graphs are everyday */

/* ---- what a wait is for ---- */

enum { REASON_BITS = 3 };
/* As the watchdog has them before "of" and "by"; the first one stands for all others. */
static const char *const reasons[1 << REASON_BITS] = {
    "room", "data", "arrival", "departure", "free slot", "call", "reading", "channel",
};

const char *tt_status_wait_word(const struct tt_status_wait *wait)
{
    return reasons[wait->reason % (1U << REASON_BITS)];
}

static uint8_t reason_of(const char *what)
{
    static const char article[] = "the ";
    if (!strncmp(what, article, sizeof(article) - 1)) what += sizeof(article) - 1;
    for (int i = 1; i < 1 << REASON_BITS; i++) {
        if (!strncmp(what, reasons[i], strlen(reasons[i]))) return (uint8_t)i;
    }
    return 0;
}

/* ---- filling ---- */

static void fill_waits(const struct tt_watch_subject *subject, uint64_t now,
                       struct tt_status *status)
{
    struct tt_wait waits[TT_STATUS_WAITS];
    status->nwaits = tt_wait_list(subject->member, waits, TT_STATUS_WAITS);
    for (int i = 0; i < status->nwaits; i++) {
        struct tt_status_wait *wait = &status->waits[i];
        uint64_t age_nsec = now > waits[i].since_nsec ? now - waits[i].since_nsec : 0;
        *wait = (struct tt_status_wait){.peer = waits[i].peer,
                                        .reason = reason_of(waits[i].what),
                                        .age_msec = (uint32_t)(age_nsec / 1000000),
                                        .number = waits[i].op_seq};
        memcpy(&wait->call, waits[i].call, sizeof(wait->call));
        if (!wait->call.known && subject->transport)
            tt_call_log_get(subject->transport, wait->number, &wait->call);
    }
}

void tt_status_fill(const struct tt_watch_subject *subject, uint64_t now,
                    struct tt_status *status_out)
{
    const struct tt_member *member = subject->member;
    struct tt_status status = {.comm_id = member->comm_id,
                               .rank = member->rank,
                               .nranks = member->nranks,
                               .device = member->device,
                               .abort = atomic_load(&member->abort)};
    snprintf(status.name, sizeof(status.name), "%s", member->name ? member->name : "");
    tt_status_clean(status.name);
    status.served = atomic_load_explicit(&subject->queue->served, memory_order_acquire);
    status.issued = atomic_load_explicit(&subject->queue->issued, memory_order_acquire);
    if (subject->transport) {
        status.begun =
            atomic_load_explicit(tt_transport_begun(subject->transport), memory_order_relaxed);
        tt_call_log_get(subject->transport, status.begun, &status.last);
    }
    if (status.issued != status.served) status.head_stream = tt_issue_head_stream(subject->queue);
    for (int f = 0; subject->calls && f < TT_STATUS_FUNCS; f++) {
        status.launched[f] =
            (uint32_t)atomic_load_explicit(&subject->calls[f], memory_order_relaxed);
    }
    if (subject->phase) {
        status.finalizes =
            atomic_load_explicit(subject->phase, memory_order_relaxed) >= subject->finalizes;
    }
    if (subject->grouped)
        status.grouped = atomic_load_explicit(subject->grouped, memory_order_relaxed);
    if (subject->graphs_nsec) {
        const uint64_t since = atomic_load_explicit(subject->graphs_nsec, memory_order_relaxed);
        if (since && now > since + GRAPHS_NSEC)
            status.graphs = atomic_load_explicit(subject->graph_refs, memory_order_relaxed);
    }
    const uint64_t since = tt_bootstrap_exchange_nsec(subject->bootstrap);
    if (since && now > since) status.exchange_msec = (uint32_t)((now - since) / 1000000);
    fill_waits(subject, now, &status);
    *status_out = status;
}

void tt_status_clean(char *text)
{
    for (char *c = text; *c; c++) {
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\') *c = '?';
    }
}

bool tt_status_has_work(const struct tt_status *status)
{
    return status->issued != status->served || status->nwaits > 0;
}

/* ---- on the wire: 64-bit little-endian words, names as bytes ---- */

enum { WORDS = 16, CALL_WORDS = 3, WAIT_WORDS = 2 + CALL_WORDS };
_Static_assert((WORDS + CALL_WORDS + TT_STATUS_WAITS * WAIT_WORDS) * 8 + TT_STATUS_NAME_BYTES <=
                   TT_STATUS_BYTES,
               "a status must fit");

static uint64_t both(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

void tt_status_pack(const struct tt_status *status, unsigned char bytes[TT_STATUS_BYTES])
{
    uint64_t words[TT_STATUS_BYTES / 8] = {0}, *at = words;
    *at++ = status->comm_id;
    *at++ = both((uint32_t)status->rank, (uint32_t)status->nranks);
    *at++ = both((uint32_t)status->device, status->abort);
    *at++ = status->issued;
    *at++ = status->served;
    *at++ = status->begun;
    *at++ = both(status->idle_msec, status->quiet_msec);
    const uint32_t *n = status->launched;
    *at++ = both(n[TT_FUNC_BROADCAST], n[TT_FUNC_REDUCE]);
    *at++ = both(n[TT_FUNC_ALLGATHER], n[TT_FUNC_REDUCESCATTER]);
    *at++ = both(n[TT_FUNC_ALLREDUCE], n[TT_FUNC_ALLTOALL]);
    *at++ = both(n[TT_FUNC_SEND], n[TT_FUNC_RECV]);
    *at++ = both(n[TT_FUNC_SCATTER], n[TT_FUNC_GATHER]);
    *at++ = both(status->init, (uint32_t)status->nwaits);
    *at++ = both(status->graphs, (status->grouped ? 1u : 0u) | (status->finalizes ? 2u : 0u));
    *at++ = status->head_stream;
    *at++ = status->exchange_msec;
    memcpy(at, &status->last, sizeof(status->last));
    at += CALL_WORDS;
    for (int i = 0; i < TT_STATUS_WAITS; i++, at += WAIT_WORDS) {
        const struct tt_status_wait *wait = &status->waits[i];
        at[0] = both((uint32_t)wait->peer, wait->age_msec);
        at[1] = wait->number << REASON_BITS | wait->reason;
        memcpy(at + 2, &wait->call, sizeof(wait->call));
    }
    for (size_t i = 0; i < TT_STATUS_BYTES / 8; i++)
        words[i] = htole64(words[i]);
    memcpy(bytes, words, TT_STATUS_BYTES);
    memcpy(bytes + TT_STATUS_BYTES - TT_STATUS_NAME_BYTES, status->name, TT_STATUS_NAME_BYTES);
}

static void unpack_calls(struct tt_status *status, const uint64_t *at)
{
    uint32_t *n = status->launched;
    static const int funcs[][2] = {{TT_FUNC_BROADCAST, TT_FUNC_REDUCE},
                                   {TT_FUNC_ALLGATHER, TT_FUNC_REDUCESCATTER},
                                   {TT_FUNC_ALLREDUCE, TT_FUNC_ALLTOALL},
                                   {TT_FUNC_SEND, TT_FUNC_RECV},
                                   {TT_FUNC_SCATTER, TT_FUNC_GATHER}};
    for (size_t i = 0; i < sizeof(funcs) / sizeof(funcs[0]); i++) {
        n[funcs[i][0]] = (uint32_t)(at[i] >> 32);
        n[funcs[i][1]] = (uint32_t)at[i];
    }
}

static bool is_sane(const struct tt_status *status)
{
    bool ranks = status->nranks > 0 && status->rank >= 0 && status->rank < status->nranks;
    for (int i = 0; i < status->nwaits && i < TT_STATUS_WAITS; i++)
        ranks &= status->waits[i].peer >= -1 && status->waits[i].peer < status->nranks;
    return ranks && status->nwaits >= 0 && status->nwaits <= TT_STATUS_WAITS;
}

bool tt_status_unpack(struct tt_status *status, const unsigned char bytes[TT_STATUS_BYTES])
{
    uint64_t words[TT_STATUS_BYTES / 8];
    const uint64_t *at = words + WORDS;
    memcpy(words, bytes, TT_STATUS_BYTES);
    for (size_t i = 0; i < TT_STATUS_BYTES / 8; i++)
        words[i] = le64toh(words[i]);
    *status = (struct tt_status){.comm_id = words[0],
                                 .rank = (int)(words[1] >> 32),
                                 .nranks = (int)(uint32_t)words[1],
                                 .device = (int)(words[2] >> 32),
                                 .abort = (uint32_t)words[2],
                                 .issued = words[3],
                                 .served = words[4],
                                 .begun = words[5],
                                 .idle_msec = (uint32_t)(words[6] >> 32),
                                 .quiet_msec = (uint32_t)words[6],
                                 .init = (uint32_t)(words[12] >> 32),
                                 .nwaits = (int)(uint32_t)words[12],
                                 .graphs = (uint32_t)(words[13] >> 32),
                                 .grouped = (words[13] & 1) != 0,
                                 .finalizes = (words[13] & 2) != 0,
                                 .head_stream = words[14],
                                 .exchange_msec = (uint32_t)words[15]};
    unpack_calls(status, words + 7);
    memcpy(&status->last, at, sizeof(status->last));
    at += CALL_WORDS;
    for (int i = 0; i < TT_STATUS_WAITS; i++, at += WAIT_WORDS) {
        struct tt_status_wait *wait = &status->waits[i];
        wait->peer = (int)(at[0] >> 32);
        wait->age_msec = (uint32_t)at[0];
        wait->number = at[1] >> REASON_BITS;
        wait->reason = at[1] & ((1U << REASON_BITS) - 1);
        memcpy(&wait->call, at + 2, sizeof(wait->call));
    }
    memcpy(status->name, bytes + TT_STATUS_BYTES - TT_STATUS_NAME_BYTES, TT_STATUS_NAME_BYTES - 1);
    tt_status_clean(status->name);
    return is_sane(status);
}
