/* The last comparison: before a communicator ends, all its ranks must have made the same calls. A
 * rank that only gave (the root of a Broadcast, a rank that gives to a Reduce) has compared nothing
 * by then, and after its end no thread can report it any more.
 *
 * Ranks that share memory read each other's call logs. Where a rank is out of reach, rank 0 knows:
 * a rank that ends sends it a message with its last calls (LAST). Rank 0 asks those that have sent
 * none (WANTED), which answer when they have come as far (LATEST), whether their program ends the
 * communicator or not. When all agree, it says so to all (AGREED). The watchdogs write and read
 * the messages; a rank that ends the communicator waits for their outcome, but not for ranks that
 * have left, and not for ever: 2 s where a rank has not come as far, as it says when it is asked
 * and has no work (BEHIND), 10 s where messages only take their time. A rank that is later than
 * that finds what differs itself where memory is shared. */
#include "base/member.h"
#include "base/system/clock.h"
#include "base/wait.h"
#include "bootstrap/bootstrap.h"
#include "exec/exec.h"
#include "program/program.h"
#include "watch/compare/compare.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#define BEHIND_NSEC 2000000000ull
#define CLOSING_NSEC 10000000000ull
enum { TAG_CLOSING = TT_TAG_OWNER + 12 };
enum kind { LATEST = 1, LAST, WANTED, AGREED, BEHIND };

struct message {
    uint64_t from; /* rank, and the kind in the upper half */
    uint64_t words[TT_CALL_LOG_WORDS];
    char refused[TT_WHY_BYTES]; /* of LAST: tt_member_refused() */
};

static void turn_message(struct message *message)
{
    message->from = htole64(message->from); /* its own inverse */
    for (int k = 0; k < TT_CALL_LOG_WORDS; k++)
        message->words[k] = htole64(message->words[k]);
}

/* `number`: what is wanted or agreed. */
static void send(const struct tt_watch_subject *subject, int rank, enum kind kind, uint64_t number)
{
    struct message message = {.from = (uint64_t)kind << 32 | (uint32_t)subject->member->rank};
    if (kind == LATEST || kind == LAST) {
        tt_call_log_pack(subject->transport, message.words);
    } else {
        message.words[0] = number;
    }
    if (kind == LAST) tt_member_refused(subject->member, message.refused);
    turn_message(&message);
    tt_bootstrap_send(subject->bootstrap, rank, TAG_CLOSING, &message, sizeof(message));
}

static uint64_t begun_by(const struct tt_watch_subject *subject)
{
    return atomic_load_explicit(tt_transport_begun(subject->transport), memory_order_relaxed);
}

/* Some rank has not come as far as others that end. Rank 0 tells all. */
static void note_behind(struct tt_closing *closing, const struct tt_watch_subject *subject)
{
    if (atomic_exchange(&closing->behind, true) || subject->member->rank != 0) return;
    for (int rank = 1; rank < subject->member->nranks; rank++)
        send(subject, rank, BEHIND, 0);
}

/* ---- rank 0 ---- */

static bool has_room(struct tt_closing *closing, int nranks)
{
    if (!closing->messages) closing->messages = calloc((size_t)nranks, sizeof(struct message));
    return closing->messages != NULL;
}

static bool is_last(const struct message *message)
{
    return message->from >> 32 == LAST;
}

/* The call of the operation with that number among packed ones. */
static bool find_call(const struct message *message, uint64_t number, struct tt_call *call_out)
{
    for (int k = 0; k < TT_SLOTS; k++) {
        const uint64_t *at = message->words + 1 + k * TT_CALL_ENTRY_WORDS;
        if (at[0] >> 32 != number) continue;
        memcpy(call_out, at + 2, sizeof(*call_out));
        return true;
    }
    return false;
}

static void report_mismatch(const struct tt_closing *closing,
                            const struct tt_watch_subject *subject, int ender, uint64_t number,
                            int rank, const struct tt_call *call)
{
    const struct message *messages = closing->messages;
    char text[TT_CALL_BYTES];
    const char *refused = ender ? messages[ender].refused : ""; /* 0: its own is added */
    tt_call_text(call, false, text);
    tt_transport_mismatch(
        subject->transport,
        "ranks called different operations: rank %d called %s as operation %u, "
        "rank %d ended the communicator after %u operation(s); all ranks must make "
        "the same calls in the same order%.*s",
        rank, text, (uint32_t)number + 1, ender, (uint32_t)number, TT_WHY_BYTES - 1, refused);
}

/* The rank that ends the communicator after the fewest operations; -1: none ends it yet. */
static int first_ender(const struct tt_closing *closing, const struct tt_watch_subject *subject,
                       uint64_t *number_out)
{
    const struct message *messages = closing->messages;
    int ender = atomic_load_explicit(&closing->ends, memory_order_relaxed) ? 0 : -1;
    *number_out = begun_by(subject);
    for (int rank = 1; rank < subject->member->nranks; rank++) {
        if (!is_last(&messages[rank])) continue;
        if (ender >= 0 && messages[rank].words[0] >= *number_out) continue;
        ender = rank;
        *number_out = messages[rank].words[0];
    }
    return ender;
}

/* A rank ends the communicator before an operation that another rank is in. Looks once at each
 * rank. */
static bool someone_misses(const struct tt_closing *closing, const struct tt_watch_subject *subject)
{
    const struct message *messages = closing->messages;
    uint64_t number;
    struct tt_call call;
    int ender = first_ender(closing, subject, &number);
    for (int rank = 0; rank < subject->member->nranks && ender >= 0; rank++) {
        if (rank == ender) continue;
        bool found = rank ? find_call(&messages[rank], number + 1, &call)
                          : tt_call_log_get(subject->transport, number + 1, &call);
        if (!found) continue;
        report_mismatch(closing, subject, ender, number, rank, &call);
        return true;
    }
    return false;
}

/* Ask those whose last calls are not known as far as the last one of any rank. */
static void ask_the_others(struct tt_closing *closing, const struct tt_watch_subject *subject,
                           uint64_t number)
{
    const struct message *messages = closing->messages;
    if (closing->asked >= number) return;
    closing->asked = number;
    for (int rank = 1; rank < subject->member->nranks; rank++) {
        if (messages[rank].words[0] < number) send(subject, rank, WANTED, number);
    }
}

/* The operations up to which all are known to agree. */
static void conclude(struct tt_closing *closing, const struct tt_watch_subject *subject)
{
    const struct message *messages = closing->messages;
    const int nranks = subject->member->nranks;
    const uint64_t own = begun_by(subject);
    const bool ends = atomic_load_explicit(&closing->ends, memory_order_relaxed) != 0;
    uint64_t all = own, wanted = ends ? own : 0;
    if (!messages || someone_misses(closing, subject)) return;
    for (int rank = 1; rank < nranks; rank++) {
        const struct message *message = &messages[rank];
        if (message->words[0] < all) all = message->words[0];
        if (is_last(message) && message->words[0] > wanted) wanted = message->words[0];
        if (message->from && tt_call_log_compare(subject->transport, rank, message->words)) return;
    }
    if (own < wanted) closing->wanted = wanted;
    if (all < wanted) ask_the_others(closing, subject, wanted);
    if (all <= atomic_load_explicit(&closing->agreed, memory_order_relaxed)) return;
    for (int rank = 1; rank < nranks; rank++)
        send(subject, rank, AGREED, all);
    atomic_store_explicit(&closing->agreed, all, memory_order_release);
}

/* ---- all ranks ---- */

static void receive(struct tt_closing *closing, const struct tt_watch_subject *subject)
{
    struct message message;
    size_t bytes = 0;
    while (!tt_bootstrap_poll(subject->bootstrap, TT_ANY_PEER, TAG_CLOSING, &message,
                              sizeof(message), &bytes)) {
        if (bytes != sizeof(message)) continue;
        turn_message(&message);
        const uint32_t from = (uint32_t)message.from;
        const enum kind kind = (enum kind)(message.from >> 32);
        if (from >= (uint32_t)subject->member->nranks) continue;
        if (kind == WANTED) {
            closing->wanted = message.words[0];
        } else if (kind == BEHIND) {
            note_behind(closing, subject);
        } else if (kind == AGREED) {
            atomic_store_explicit(&closing->agreed, message.words[0], memory_order_release);
        } else if (subject->member->rank == 0 && has_room(closing, subject->member->nranks)) {
            memcpy((struct message *)closing->messages + from, &message, sizeof(message));
        }
    }
}

/* What others end with is wanted of this rank for a while, and nothing of its own is under way. */
static void look_behind(struct tt_closing *closing, const struct tt_watch_subject *subject,
                        uint64_t begun)
{
    const struct tt_issue_queue *queue = subject->queue;
    if (closing->wanted <= begun) closing->wanted = closing->wanted_nsec = 0;
    if (!closing->wanted || atomic_load(&closing->behind)) return;
    if (!closing->wanted_nsec) closing->wanted_nsec = tt_now_nsec();
    if (tt_now_nsec() - closing->wanted_nsec < BEHIND_NSEC ||
        atomic_load(&queue->issued) != atomic_load(&queue->served))
        return;
    if (subject->member->rank != 0) send(subject, 0, BEHIND, 0);
    note_behind(closing, subject);
}

void tt_closing_look(struct tt_closing *closing, const struct tt_watch_subject *subject)
{
    const uint64_t begun = begun_by(subject), mail = tt_bootstrap_mail(subject->bootstrap);
    const bool ends = atomic_load_explicit(&closing->ends, memory_order_acquire) != 0;
    if (mail != closing->mail) receive(closing, subject);
    closing->mail = mail;
    if (subject->member->rank == 0) {
        if (ends) (void)has_room(closing, subject->member->nranks);
        conclude(closing, subject);
    } else if (ends && !closing->reported) {
        closing->reported = true;
        send(subject, 0, LAST, 0);
    } else if (closing->wanted && begun >= closing->wanted && !closing->reported) {
        send(subject, 0, LATEST, 0);
    }
    look_behind(closing, subject, begun);
}

void tt_closing_fini(struct tt_closing *closing)
{
    free(closing->messages);
    closing->messages = NULL;
}

/* ---- the rank that ends the communicator ---- */

/* Where all others' calls are in reach none is under way. */
static uint64_t limit_nsec(struct tt_closing *closing, enum tt_calls_match agreement)
{
    return agreement != TT_CALLS_UNSEEN || atomic_load(&closing->behind) ? BEHIND_NSEC
                                                                         : CLOSING_NSEC;
}

static bool has_ended_well(struct tt_closing *closing, enum tt_calls_match agreement,
                           uint64_t begun)
{
    if (agreement == TT_CALLS_AGREE) return true;
    if (agreement != TT_CALLS_UNSEEN) return false;
    if (begun == 0) return true; /* what others miss of this rank they learn when they ask for it */
    return atomic_load_explicit(&closing->agreed, memory_order_acquire) >= begun;
}

ncclResult_t tt_closing_wait(struct tt_closing *closing, const struct tt_watch_subject *subject,
                             int event_fd)
{
    const uint64_t begun = begun_by(subject), since = tt_now_nsec();
    uint32_t sleeps = 0;
    for (;;) {
        const enum tt_calls_match agreement = tt_transport_agree(subject->transport, begun);
        if (has_ended_well(closing, agreement, begun)) break;
        if (tt_member_aborted(subject->member)) return tt_member_abort_code(subject->member);
        if (tt_bootstrap_someone_ended(subject->bootstrap) ||
            tt_now_nsec() - since >= limit_nsec(closing, agreement))
            break;
        if (!sleeps) {
            /* pairs with the acquire load in tt_closing_look() */
            atomic_store_explicit(&closing->ends, 1, memory_order_release);
            eventfd_write(event_fd, 1);
        }
        const struct timespec interval = {.tv_nsec = tt_wait_backoff_nsec(sleeps++)};
        nanosleep(&interval, NULL);
    }
    return tt_member_aborted(subject->member) ? tt_member_abort_code(subject->member) : ncclSuccess;
}
