/* Ranks whose process ended without leaving, and ranks that left while others go on: no error by
 * itself, but a rank that waits for something that it never began waits for ever. A rank that
 * left says so when it is asked for, or when its process ends. Each is noted once per membership
 * and passed on through the tree; the least count of operations begun among them is what decides.
 */
#include "bootstrap/tree/exits.h"

#include "base/log.h"
#include "base/member.h"
#include "bootstrap/wire/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

bool tt_exit_note(struct tt_bootstrap *b, int rank, enum tt_fail_kind kind, uint32_t begun,
                  const char *sentence)
{
    if (rank < 0 || rank >= b->nranks) return false;
    if (!b->exits) b->exits = calloc((size_t)b->nranks, sizeof(*b->exits));
    if (!b->exits || b->exits[rank]) return false;
    b->exits[rank] = (unsigned char)kind;
    if (!b->someone_ended || (int32_t)(begun - b->left_begun) < 0) {
        b->left_begun = begun;
        snprintf(b->left_sentence, sizeof(b->left_sentence), "%s", sentence);
    }
    b->someone_ended = true;
    if (kind == TT_FAIL_EXIT) b->someone_left = true;
    tt_info(TT_LOG_INIT, "comm 0x%llx: %s",
            b->member ? (unsigned long long)b->member->comm_id : 0ull, sentence);
    tt_exit_event(b);
    return true;
}

void tt_exit_event(const struct tt_bootstrap *b)
{
    if (b->event_fd >= 0) eventfd_write(b->event_fd, 1); /* full means: already awake */
}

uint32_t tt_exit_begun(const struct tt_bootstrap *b)
{
    if (!b->begun) return b->own_begun;
    return (uint32_t)atomic_load_explicit(b->begun, memory_order_relaxed);
}

void tt_bootstrap_attach(struct tt_bootstrap *b, const _Atomic uint64_t *begun, int event_fd)
{
    tt_service_lock();
    b->own_begun = tt_exit_begun(b);
    b->begun = begun;
    b->event_fd = event_fd;
    tt_service_unlock();
}

bool tt_bootstrap_someone_exited(const struct tt_bootstrap *b)
{
    return atomic_load_explicit(&b->someone_left, memory_order_relaxed);
}

const _Atomic bool *tt_bootstrap_exit_flag(const struct tt_bootstrap *b)
{
    return &b->someone_left;
}

bool tt_bootstrap_someone_ended(const struct tt_bootstrap *b)
{
    return atomic_load_explicit(&b->someone_ended, memory_order_relaxed);
}

bool tt_bootstrap_ended(struct tt_bootstrap *b, char *sentence, size_t sentence_bytes)
{
    if (!tt_bootstrap_someone_ended(b)) return false;
    tt_service_lock();
    bool ended = b->someone_ended;
    if (ended) snprintf(sentence, sentence_bytes, "%s", b->left_sentence);
    tt_service_unlock();
    return ended;
}

bool tt_bootstrap_exited(struct tt_bootstrap *b, char *sentence, size_t sentence_bytes)
{
    return tt_bootstrap_someone_exited(b) && tt_bootstrap_ended(b, sentence, sentence_bytes);
}

static enum tt_fail_kind kind_of(struct tt_bootstrap *b, int rank)
{
    if (!tt_bootstrap_someone_ended(b) || rank < 0 || rank >= b->nranks) return TT_FAIL_ERROR;
    tt_service_lock();
    enum tt_fail_kind kind = b->exits ? (enum tt_fail_kind)b->exits[rank] : TT_FAIL_ERROR;
    tt_service_unlock();
    return kind;
}

bool tt_bootstrap_rank_exited(struct tt_bootstrap *b, int rank)
{
    return kind_of(b, rank) == TT_FAIL_EXIT;
}

bool tt_bootstrap_rank_ended(struct tt_bootstrap *b, int rank)
{
    return kind_of(b, rank) != TT_FAIL_ERROR;
}

uint32_t tt_bootstrap_exit_begun(struct tt_bootstrap *b)
{
    tt_service_lock();
    uint32_t begun = b->left_begun;
    tt_service_unlock();
    return begun;
}
