/* Where did the ranks part? The call logs that lie in this host's memory show it of all ranks at
 * once: a rank that notices a difference names the first operation in which two of them differ, and
 * the two lowest ranks that do, so that all that notice one say the same. */
#include "transport/transport_state.h"

/* Number of the newest operation in a call log. */
static uint64_t newest_in(const struct tt_barrier *log)
{
    uint64_t newest = 0;
    for (int k = 0; k < TT_CALL_LOG_LEN; k++) {
        /* pairs with the release store in tt_transport_begin() */
        uint64_t number = atomic_load_explicit(&log->begun[k], memory_order_acquire) >> 32;
        if (number > newest) newest = number;
    }
    return newest;
}

/* `rank` has no entry of the operation, or another one than this rank. */
static enum tt_calls_match compare_with(struct tt_transport *transport, int rank, uint64_t number,
                                        const struct tt_call_entry *own)
{
    struct tt_call_entry theirs;
    if (!transport->barriers[rank]) return TT_CALLS_UNSEEN;
    if (tt_call_log_find(transport, rank, number + 1, &theirs)) {
        (void)tt_call_log_ended(transport, transport->config.member->rank, number, rank,
                                &theirs.call);
        return TT_CALLS_DIFFER;
    }
    if (number == 0) return TT_CALLS_AGREE;
    if (tt_call_log_find(transport, rank, number, &theirs)) {
        if (theirs.match == own->match && theirs.history == own->history) return TT_CALLS_AGREE;
        if (theirs.match == own->match)
            return tt_call_log_history(transport, rank, number) ? TT_CALLS_DIFFER : TT_CALLS_AGREE;
        return tt_call_log_mismatch(transport, own, rank, &theirs) ? TT_CALLS_DIFFER
                                                                   : TT_CALLS_AGREE;
    }
    /* its own number as the newest: it was not there yet when it was looked for */
    return newest_in(transport->barriers[rank]) <= number ? TT_CALLS_LATE : TT_CALLS_AGREE;
}

enum tt_calls_match tt_transport_agree(struct tt_transport *transport, uint64_t number)
{
    const struct tt_member *member = transport->config.member;
    enum tt_calls_match worst = TT_CALLS_AGREE;
    struct tt_call_entry own = {0};
    if (number && !tt_call_log_find(transport, member->rank, number, &own)) return TT_CALLS_AGREE;
    for (int rank = 0; rank < member->nranks && worst != TT_CALLS_DIFFER; rank++) {
        if (rank == member->rank) continue;
        enum tt_calls_match found = compare_with(transport, rank, number, &own);
        if (found > worst) worst = found;
    }
    return worst;
}
