/* The call log as its owner writes it: one thread at a time, without waiting for readers, which are
 * in call_log.c. */
#include "transport/transport_state.h"

#include <string.h>

uint64_t tt_transport_begin(struct tt_transport *transport, uint32_t fingerprint,
                            const struct tt_call *call)
{
    uint64_t number = atomic_load_explicit(&transport->begun, memory_order_relaxed) + 1;
    uint64_t match = number << 32 | fingerprint;
    _Atomic uint64_t *match_at = &transport->call_log->begun[number % TT_CALL_LOG_LEN];
    struct tt_begun *begun = &transport->call_log->calls[number % TT_CALL_LOG_LEN];
    uint64_t words[3]; /* one by one, which needs no stack */
    memcpy(&words[0], call, sizeof(uint64_t));
    memcpy(&words[1], (const char *)call + sizeof(uint64_t), sizeof(uint64_t));
    memcpy(&words[2], (const char *)call + 2 * sizeof(uint64_t), sizeof(uint64_t));
    const uint64_t history = (transport->history ^ match) * 0x9e3779b97f4a7c15ull;
    transport->history = history;
    /* pairs with the acquire fence in tt_call_log_find(): a thread that sees these finds another
     * match header
     */
    atomic_store_explicit(match_at, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&begun->call[0], words[0], memory_order_relaxed);
    atomic_store_explicit(&begun->call[1], words[1], memory_order_relaxed);
    atomic_store_explicit(&begun->call[2], words[2], memory_order_relaxed);
    atomic_store_explicit(&begun->history, history, memory_order_relaxed);
    /* pairs with the acquire loads in tt_transport_compare() and tt_call_log_find() */
    atomic_store_explicit(match_at, match, memory_order_release);
    atomic_store_explicit(&transport->begun, number, memory_order_relaxed);
    return match;
}

/* One word of a call. */
static inline uint64_t word_of(const struct tt_call *call, size_t k)
{
    uint64_t word;
    memcpy(&word, (const char *)call + k * sizeof(word), sizeof(word));
    return word;
}

/* As above, for one of several operations. Returns the hash of all up to it. */
static inline uint64_t put(struct tt_barrier *call_log, uint64_t match, uint64_t history,
                           const uint64_t words[3])
{
    const uint64_t number = match >> 32;
    _Atomic uint64_t *match_at = &call_log->begun[number % TT_CALL_LOG_LEN];
    struct tt_begun *begun = &call_log->calls[number % TT_CALL_LOG_LEN];
    history = (history ^ match) * 0x9e3779b97f4a7c15ull;
    /* pairs with the acquire fence in tt_call_log_find(): a thread that sees these finds another
     * match header
     */
    atomic_store_explicit(match_at, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&begun->call[0], words[0], memory_order_relaxed);
    atomic_store_explicit(&begun->call[1], words[1], memory_order_relaxed);
    atomic_store_explicit(&begun->call[2], words[2], memory_order_relaxed);
    atomic_store_explicit(&begun->history, history, memory_order_relaxed);
    /* pairs with the acquire loads in tt_transport_compare() and tt_call_log_find() */
    atomic_store_explicit(match_at, match, memory_order_release);
    return history;
}

uint64_t tt_transport_begin_many(struct tt_transport *transport, uint32_t fingerprint,
                                 const struct tt_call *call, int ncalls)
{
    struct tt_barrier *const call_log = transport->call_log;
    const uint64_t before = atomic_load_explicit(&transport->begun, memory_order_relaxed);
    const uint64_t first = (before + 1) << 32 | fingerprint;
    const uint64_t words[3] = {word_of(call, 0), word_of(call, 1), word_of(call, 2)};
    uint64_t history = transport->history, match = first;
    for (int left = ncalls; left > 0; left--, match += TT_MATCH_STEP)
        history = put(call_log, match, history, words);
    transport->history = history;
    atomic_store_explicit(&transport->begun, before + (uint64_t)ncalls, memory_order_relaxed);
    return first;
}
