/* The call log: which collective operations a rank has begun, with the calls themselves. It is
 * written in call_log_write.c. Peers on this host read it where it lies; others are sent it. Ranks
 * that differ learn both calls in words, all ranks of the communicator alike. */
#include "base/error.h"
#include "base/member.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"
#include "transport/small.h"
#include "transport/transport_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const _Atomic uint64_t *tt_transport_begun(const struct tt_transport *transport)
{
    return &transport->begun;
}

uint32_t tt_transport_messages(const struct tt_transport *transport, int rank, bool sending)
{
    return atomic_load_explicit(&transport->messages[2 * rank + sending], memory_order_relaxed);
}

bool tt_call_log_find(const struct tt_transport *transport, int rank, uint64_t number,
                      struct tt_call_entry *entry_out)
{
    const struct tt_barrier *call_log = transport->barriers[rank];
    if (!call_log) return false;
    const _Atomic uint64_t *match = &call_log->begun[number % TT_CALL_LOG_LEN];
    const struct tt_begun *begun = &call_log->calls[number % TT_CALL_LOG_LEN];
    uint64_t words[3];
    uint64_t before = atomic_load_explicit(match, memory_order_acquire);
    for (int k = 0; k < 3; k++)
        words[k] = atomic_load_explicit(&begun->call[k], memory_order_relaxed);
    uint64_t history = atomic_load_explicit(&begun->history, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire); /* pairs with the fence in tt_transport_begin() */
    if (atomic_load_explicit(match, memory_order_relaxed) != before) return false;
    if (before >> 32 != number || number == 0) return false;
    *entry_out = (struct tt_call_entry){.match = before, .history = history};
    memcpy(&entry_out->call, words, sizeof(words));
    return true;
}

bool tt_call_log_get(const struct tt_transport *transport, uint64_t number,
                     struct tt_call *call_out)
{
    struct tt_call_entry entry;
    bool found = tt_call_log_find(transport, transport->config.member->rank, number, &entry);
    if (found) *call_out = entry.call;
    return found;
}

void tt_call_log_pack(const struct tt_transport *transport, uint64_t words_out[TT_CALL_LOG_WORDS])
{
    uint64_t newest = atomic_load_explicit(&transport->begun, memory_order_relaxed);
    memset(words_out, 0, TT_CALL_LOG_WORDS * sizeof(uint64_t));
    words_out[0] = newest;
    for (uint64_t k = 0; k < TT_SLOTS && k < newest; k++) {
        struct tt_call_entry entry;
        uint64_t *at = words_out + 1 + k * TT_CALL_ENTRY_WORDS;
        if (!tt_call_log_find(transport, transport->config.member->rank, newest - k, &entry)) break;
        at[0] = entry.match;
        at[1] = entry.history;
        memcpy(at + 2, &entry.call, sizeof(entry.call));
    }
}

/* ---- what differs ---- */

ncclResult_t tt_transport_mismatch(struct tt_transport *transport, const char *fmt, ...)
{
    const struct tt_transport_config *config = &transport->config;
    char sentence[TT_WHY_BYTES], refused[TT_WHY_BYTES];
    va_list args;
    if (atomic_exchange(&transport->reported, true)) return ncclInvalidUsage;
    va_start(args, fmt);
    int len = vsnprintf(sentence, sizeof(sentence), fmt, args);
    va_end(args);
    tt_member_refused(config->member, refused); /* the others may wait for that call */
    if (len >= 0 && (size_t)len < sizeof(sentence))
        snprintf(sentence + len, sizeof(sentence) - (size_t)len, "%s", refused);
    if (!config->bootstrap) return tt_fail(ncclInvalidUsage, "%s", sentence);
    tt_bootstrap_fail_all(config->bootstrap, ncclInvalidUsage, sentence);
    return ncclInvalidUsage;
}

enum { CALLERS_BYTES = 80 };
#define CALLERS_NSEC 100000000ull /* until those that differ are told who calls what */

struct parting { /* two ranks that made different calls of the same number */
    int rank[2]; /* the lower one first */
    struct tt_call_entry entry[2];
};

static bool part_at(const struct tt_transport *transport, uint64_t number, struct parting *parting)
{
    struct tt_call_entry entry;
    int first = -1;
    for (int rank = 0; rank < transport->config.member->nranks; rank++) {
        if (!tt_call_log_find(transport, rank, number, &entry)) continue;
        if (first < 0) {
            parting->rank[0] = first = rank;
            parting->entry[0] = entry;
        } else if (entry.match != parting->entry[0].match) {
            parting->rank[1] = rank;
            parting->entry[1] = entry;
            return true;
        }
    }
    return false;
}

/* The first operation up to `newest` in which ranks in reach of this host's memory differ, as far
 * as their logs go back, and the lowest ranks that do: so all that notice one say the same. */
static bool find_parting(const struct tt_transport *transport, uint64_t newest,
                         struct parting *parting_out)
{
    uint64_t number = newest >= TT_CALL_LOG_LEN ? newest - TT_CALL_LOG_LEN + 1 : 1;
    while (number <= newest && !part_at(transport, number, parting_out))
        number++;
    return number <= newest;
}

/* Who makes the call of `entry`, as far as logs are in reach: "rank 1", "ranks 0, 2, 3". */
static int name_callers(const struct tt_transport *transport, int rank,
                        const struct tt_call_entry *entry, char text[CALLERS_BYTES])
{
    struct tt_call_entry other;
    int count = 0, first = 0;
    bool cut = false;
    char list[CALLERS_BYTES - 16];
    size_t used = 0;
    for (int r = 0; r < transport->config.member->nranks; r++) {
        bool makes = r == rank || (tt_call_log_find(transport, r, entry->match >> 32, &other) &&
                                   other.match == entry->match);
        if (!makes) continue;
        if (!count++) first = r;
        cut = used + 24 > sizeof(list);
        if (!cut) used += (size_t)snprintf(list + used, sizeof(list) - used, ", %d", r);
    }
    if (count > 1) {
        snprintf(text, CALLERS_BYTES, "ranks %s%s", list + 2, cut ? ", ..." : "");
    } else {
        snprintf(text, CALLERS_BYTES, "rank %d", first);
    }
    return count;
}

/* Ranks of this host that are about to make the call make it within moments; when all have, it can
 * be said who is alone. `without` is not waited for (-1: all are). */
static void await_callers(const struct tt_transport *transport, uint64_t number, int without)
{
    const struct tt_member *member = transport->config.member;
    const uint64_t until = tt_now_nsec() + CALLERS_NSEC;
    const struct timespec pause = {.tv_nsec = 500000};
    struct tt_call_entry entry;
    for (;;) {
        bool all = true;
        for (int r = 0; r < member->nranks && all; r++) {
            all = r == without || !transport->barriers[r] ||
                  tt_call_log_find(transport, r, number, &entry);
        }
        if (all || tt_member_aborted(member) || tt_now_nsec() > until) return;
        nanosleep(&pause, NULL);
    }
}

/* The calls of two ranks, the lower one first, each with all that are known to make it: the same
 * sentence, whichever rank notices. One against all others is said to be alone. */
static ncclResult_t report_pair(struct tt_transport *transport, const struct parting *parting)
{
    const struct tt_call_entry *a = &parting->entry[0], *b = &parting->entry[1];
    bool chosen = tt_call_same(&a->call, &b->call); /* then this is what differs */
    char calls[2][TT_CALL_BYTES], callers[2][CALLERS_BYTES];
    int counts[2], all = transport->config.member->nranks;
    await_callers(transport, a->match >> 32, -1);
    for (int k = 0; k < 2; k++) {
        tt_call_text(&parting->entry[k].call, chosen, calls[k]);
        counts[k] = name_callers(transport, parting->rank[k], &parting->entry[k], callers[k]);
    }
    for (int k = 0; k < 2; k++) {
        if (all > 2 && counts[k] == 1 && counts[!k] == all - 1)
            snprintf(callers[k], CALLERS_BYTES, "rank %d alone", parting->rank[k]);
    }
    return tt_transport_mismatch(transport,
                                 "ranks called different operations: %s called %s as operation "
                                 "%u, %s called %s as operation %u; %s",
                                 callers[0], calls[0], (uint32_t)(a->match >> 32), callers[1],
                                 calls[1], (uint32_t)(b->match >> 32),
                                 chosen ? "settings and plugins must be the same on all ranks"
                                        : "all ranks must make the same calls in the same order");
}

ncclResult_t tt_call_log_mismatch(struct tt_transport *transport, const struct tt_call_entry *own,
                                  int peer, const struct tt_call_entry *theirs)
{
    const uint64_t mine = own->match >> 32, others = theirs->match >> 32;
    int rank = transport->config.member->rank;
    struct parting parting;
    struct tt_call_entry own_then;
    if (find_parting(transport, mine > others ? mine : others, &parting))
        return report_pair(transport, &parting);
    if (others < mine && tt_call_log_find(transport, rank, others, &own_then) &&
        own_then.match != theirs->match)
        own = &own_then;
    bool first = rank < peer;
    parting = (struct parting){.rank = {first ? rank : peer, first ? peer : rank},
                               .entry = {first ? *own : *theirs, first ? *theirs : *own}};
    return report_pair(transport, &parting);
}

ncclResult_t tt_call_log_ended(struct tt_transport *transport, int ender, uint64_t number, int rank,
                               const struct tt_call *call)
{
    const uint64_t next = number + 1;
    struct tt_call_entry entry;
    char text[TT_CALL_BYTES], callers[CALLERS_BYTES];
    await_callers(transport, next, ender);
    snprintf(callers, sizeof(callers), "rank %d", rank);
    if (tt_call_log_find(transport, rank, next, &entry))
        name_callers(transport, rank, &entry, callers);
    tt_call_text(call, false, text);
    return tt_transport_mismatch(
        transport,
        "ranks called different operations: %s called %s as operation "
        "%u, rank %d ended the communicator after %u operation(s); all ranks "
        "must make the same calls in the same order",
        callers, text, (uint32_t)next, ender, (uint32_t)number);
}

ncclResult_t tt_call_log_history(struct tt_transport *transport, int rank, uint64_t number)
{
    struct parting parting;
    int own = transport->config.member->rank;
    if (find_parting(transport, number, &parting)) return report_pair(transport, &parting);
    return tt_transport_mismatch(transport,
                                 "ranks called different operations: rank %d and rank %d agree in "
                                 "operation %u, but not in all before it; all ranks must make the "
                                 "same calls in the same order",
                                 own < rank ? own : rank, own < rank ? rank : own,
                                 (uint32_t)number);
}

ncclResult_t tt_transport_compare(struct tt_transport *transport, uint64_t match, int rank)
{
    struct tt_call_entry own, theirs;
    if (!tt_call_log_find(transport, rank, match >> 32, &theirs) || theirs.match == match)
        return ncclSuccess;
    if (!tt_call_log_find(transport, transport->config.member->rank, match >> 32, &own))
        own = (struct tt_call_entry){.match = match};
    return tt_call_log_mismatch(transport, &own, rank, &theirs);
}

ncclResult_t tt_call_log_compare(struct tt_transport *transport, int rank,
                                 const uint64_t words[TT_CALL_LOG_WORDS])
{
    struct tt_call_entry own, theirs;
    for (int k = TT_SLOTS - 1; k >= 0; k--) { /* oldest first */
        const uint64_t *at = words + 1 + k * TT_CALL_ENTRY_WORDS;
        theirs = (struct tt_call_entry){.match = at[0], .history = at[1]};
        memcpy(&theirs.call, at + 2, sizeof(theirs.call));
        if (!tt_call_log_find(transport, transport->config.member->rank, at[0] >> 32, &own))
            continue;
        if (own.match != theirs.match) return tt_call_log_mismatch(transport, &own, rank, &theirs);
        if (own.history == theirs.history) continue;
        return tt_call_log_history(transport, rank, own.match >> 32);
    }
    return ncclSuccess;
}
