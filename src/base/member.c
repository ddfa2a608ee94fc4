/* Why a communicator is broken: the first failure's sentence, kept until the abort flag goes down
 * again, so that every later call can repeat it. */
#include "base/member.h"

#include "base/error.h"

#include <stdio.h>

void tt_member_keep_why(struct tt_member *member, const char *why)
{
    pthread_mutex_lock(&member->why_lock);
    if (!member->why[0]) snprintf(member->why, sizeof(member->why), "%s", why);
    pthread_mutex_unlock(&member->why_lock);
}

const char *tt_member_quoted(const struct tt_member *member, char *text, size_t text_bytes)
{
    const bool named = member->name && *member->name;
    snprintf(text, text_bytes, "%s%s%s", named ? " \"" : "", named ? member->name : "",
             named ? "\"" : "");
    return text;
}

void tt_member_why(struct tt_member *member, char text_out[TT_WHY_BYTES])
{
    pthread_mutex_lock(&member->why_lock);
    snprintf(text_out, TT_WHY_BYTES, "%s", member->why);
    pthread_mutex_unlock(&member->why_lock);
}

void tt_member_keep_refusal(struct tt_member *member, const char *why)
{
    pthread_mutex_lock(&member->why_lock);
    snprintf(member->refusal, sizeof(member->refusal), "%s", why);
    pthread_mutex_unlock(&member->why_lock);
}

void tt_member_refused(struct tt_member *member, char text_out[TT_WHY_BYTES])
{
    text_out[0] = 0;
    pthread_mutex_lock(&member->why_lock);
    if (member->refusal[0]) {
        snprintf(text_out, TT_WHY_BYTES, "; a call of rank %d was refused: %s", member->rank,
                 member->refusal);
    }
    pthread_mutex_unlock(&member->why_lock);
}

bool tt_member_abort_why(struct tt_member *member, ncclResult_t code, const char *why)
{
    uint32_t none = 0;
    tt_member_keep_why(member, why);
    return atomic_compare_exchange_strong(&member->abort, &none, (uint32_t)code);
}

bool tt_member_abort(struct tt_member *member, ncclResult_t code)
{
    return tt_member_abort_why(member, code, tt_last_error());
}

void tt_member_forked(struct tt_member *member)
{
    pthread_mutex_init(&member->why_lock, NULL); /* another thread of the parent may have had it */
    snprintf(member->why, sizeof(member->why),
             "it was created before fork: only the process that made it may use it");
    atomic_store(&member->abort, (uint32_t)ncclInvalidUsage);
}

void tt_member_resume(struct tt_member *member, uint64_t seq)
{
    pthread_mutex_lock(&member->why_lock);
    member->why[0] = 0;
    pthread_mutex_unlock(&member->why_lock);
    atomic_store_explicit(&member->given_up, seq, memory_order_relaxed);
    /* pairs with the acquire load in tt_member_gives_up() */
    atomic_store_explicit(&member->abort, 0u, memory_order_release);
}
