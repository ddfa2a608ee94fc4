/* Which rank causes a hang: when this process asks the others, and which ranks get the answer. */
#include "watch/judge.h"

#include "base/log.h"
#include "base/member.h"
#include "base/wait.h"
#include "bootstrap/bootstrap.h"
#include "transport/transport.h"
#include "watch/inquiry/inquiry.h"
#include "watch/inquiry/verdict.h"
#include "watch/process.h"
#include "watch/progress.h"
#include "watch/watch_state.h"

#include <endian.h>
#include <stdbool.h>
#include <stdio.h>

#define INQUIRY_NSEC 1500000000ull      /* a rank that has not answered then is silent */
#define STOPPED_LOOK_NSEC 3000000000ull /* of standing still: is a process stopped? */
#define ON_ITS_WAY_NSEC 10000000000ull  /* over a network, after its sender has ended */
#define ENDED_LOOK_NSEC 500000000ull    /* a rank has left: others may follow unheard */
#define CROSSED_LOOK_NSEC 1000000000ull /* ... in two communicators of one device */
#define CERTAIN_NSEC 200000000ull       /* between two looks at a circle over communicators */
#define DOUBTFUL_NSEC 1000000000ull     /* where the ranks may only be late */
#define DEFER_NSEC 20000000ull          /* each rank leaves so much time to the one before it */
#define DEFER_RANKS 50
#define BEFORE_ABORT_NSEC 3000000000ull /* a verdict is asked for so long before TUTTI_TIMEOUT */
#define AGAIN_NSEC 2000000000ull        /* after a question that found no cause; then doubled */
enum { TAG_VERDICT = TT_TAG_OWNER + 8 };

/* Ranks of low numbers ask first; what they find out they send to the others, which then need not
 * ask.
 */
static uint64_t deferred_nsec(const struct tt_watch *watch)
{
    int rank = watch->subject.member->rank;
    return (uint64_t)(rank < DEFER_RANKS ? rank : DEFER_RANKS) * DEFER_NSEC;
}

/* When a verdict is wanted: with the report, or in time for the abort, whose sentence has it. */
static uint64_t verdict_nsec(void)
{
    uint64_t end = tt_watches.watchdog.abort_nsec;
    uint64_t before = end > 2 * BEFORE_ABORT_NSEC ? end - BEFORE_ABORT_NSEC : end / 2;
    return end && before < tt_watches.watchdog.report_nsec ? before
                                                           : tt_watches.watchdog.report_nsec;
}

/* This communicator waits for a rank that has ended, as was reported: what that sent is here, or on
 * its way for some seconds, or never comes. The tree may be cut, so that no other rank can say so
 * (its parent there had exited before). */
static bool waits_for_gone(const struct tt_watch *watch, uint64_t now)
{
    const struct tt_watch_subject *subject = &watch->subject;
    struct tt_wait wait;
    if (!watch->gone || !subject->transport || !tt_wait_list(subject->member, &wait, 1))
        return false;
    if (tt_bootstrap_rank_ended(subject->bootstrap, watch->gone - 1))
        return false; /* received: progress.c ends the wait, with that rank's own text */
    uint64_t limit_nsec = tt_transport_in_flight_nsec(subject->transport, watch->gone - 1);
    if (limit_nsec > ON_ITS_WAY_NSEC) limit_nsec = ON_ITS_WAY_NSEC;
    return now > wait.since_nsec && now - wait.since_nsec >= limit_nsec;
}

/* The same device stands still in another communicator as well: ranks may have used them in
 * different order. */
static bool is_crossed(const struct tt_watch *watch, uint64_t now)
{
    const struct tt_watch *other = tt_watches.watchdog.subjects;
    for (; other; other = other->next) {
        if (other != watch && other->subject.member->device == watch->subject.member->device &&
            other->issued != other->served && now - other->since_nsec >= CROSSED_LOOK_NSEC)
            return true;
    }
    return false;
}

/* How long nothing may have ended before the first inquiry. */
static uint64_t first_look_nsec(const struct tt_watch *watch, uint64_t now)
{
    if (tt_bootstrap_someone_ended(watch->subject.bootstrap)) return ENDED_LOOK_NSEC;
    const bool is_due = now - watch->since_nsec >= CROSSED_LOOK_NSEC && !watch->looked;
    return is_due && is_crossed(watch, now) ? CROSSED_LOOK_NSEC : STOPPED_LOOK_NSEC;
}

void tt_judge_ask(struct tt_watch *watch, uint64_t now)
{
    if (waits_for_gone(watch, now)) tt_progress_give_up(watch, watch->verdict + 2); /* no ": " */
    if (watch->issued == watch->served || tt_member_aborted(watch->subject.member)) return;
    uint64_t due_nsec = verdict_nsec(), idle_nsec = now - watch->since_nsec;
    uint64_t soon = first_look_nsec(watch, now);
    if (soon > due_nsec) soon = due_nsec;
    bool first = idle_nsec >= soon + deferred_nsec(watch) && !watch->looked;
    bool second = idle_nsec >= due_nsec + deferred_nsec(watch) && !watch->asked;
    bool others_ask =
        now - tt_watches.watchdog.inquiry.asked_nsec < INQUIRY_NSEC + DEFER_RANKS * DEFER_NSEC;
    if (others_ask && !watch->circle) return; /* they will say what they found */
    if (now < watch->again_nsec) return;
    if (!tt_watches.watchdog.report_nsec || watch->subject.member->nranks == 1 ||
        !(first || second))
        return;
    watch->looked = true;
    if (second) watch->asked = true;
    watch->wants = tt_inquiry_want(&tt_watches.watchdog.inquiry, tt_watches.watchdog.subjects, now,
                                   INQUIRY_NSEC, TT_INQUIRY_JUDGES);
    watch->until_nsec = now + INQUIRY_NSEC;
}

static void report_verdict(struct tt_watch *watch, const char *sentence)
{
    const struct tt_member *member = watch->subject.member;
    char name[TT_QUOTED_BYTES];
    tt_warn("comm 0x%llx%s rank %d of %d waits: %s", (unsigned long long)member->comm_id,
            tt_member_quoted(member, name, sizeof(name)), member->rank, member->nranks, sentence);
    snprintf(watch->verdict, sizeof(watch->verdict), ": %.380s", sentence);
}

static bool stands_still(const struct tt_verdict *verdict)
{
    return verdict->kind == TT_VERDICT_STOPPED || verdict->kind == TT_VERDICT_ENDED ||
           verdict->kind == TT_VERDICT_SILENT;
}

/* How it comes to the other ranks. */
struct verdict_message {
    uint64_t comm_id;       /* of the rank to blame, */
    uint32_t rank;          /* and the rank: little-endian, as is the other */
    unsigned char due;      /* the report is */
    unsigned char is_still; /* it is said to be stopped, gone or silent */
    unsigned char pad[2];
    char sentence[sizeof(((struct tt_verdict *)0)->sentence)];
};

static void send_to_all(const struct tt_watch *watch, const struct verdict_message *message)
{
    const struct tt_member *member = watch->subject.member;
    for (int rank = 0; rank < member->nranks; rank++) {
        if (rank == member->rank) continue;
        tt_bootstrap_send(watch->subject.bootstrap, rank, TAG_VERDICT, message, sizeof(*message));
    }
}

/* Those who wait in another communicator of a circle are told over that one. */
static bool is_of_circle(const struct tt_watch *other, const struct tt_watch *watch,
                         const struct tt_verdict *verdict)
{
    if (other == watch || other->subject.member->device != watch->subject.member->device)
        return false;
    for (int c = 0; c < verdict->ncomms; c++) {
        if (verdict->comms[c] == other->subject.member->comm_id) return true;
    }
    return false;
}

static void share_verdict(const struct tt_watch *watch, const struct tt_verdict *verdict)
{
    struct verdict_message message = {.comm_id = htole64(verdict->comm_id),
                                      .rank = htole32((uint32_t)verdict->rank),
                                      .due = watch->asked,
                                      .is_still = stands_still(verdict)};
    snprintf(message.sentence, sizeof(message.sentence), "%s", verdict->sentence);
    send_to_all(watch, &message);
    for (const struct tt_watch *other = tt_watches.watchdog.subjects; other; other = other->next) {
        if (is_of_circle(other, watch, verdict)) send_to_all(other, &message);
    }
}

/* That this process stood still is no news to it: it reads the message after it has gone on. */
static bool blames_own(const struct verdict_message *message)
{
    const struct tt_watch *watch = tt_watches.watchdog.subjects;
    while (watch && (watch->subject.member->comm_id != le64toh(message->comm_id) ||
                     (uint32_t)watch->subject.member->rank != le32toh(message->rank)))
        watch = watch->next;
    return message->is_still && watch;
}

/* No rank stood still long enough to be seen, or a circle is not there any more: others may be
 * busy, or their waits not listed yet. Or a rank stands still: what becomes of it, and of those
 * that waited for it, is not told where the tree is cut. */
static void ask_again(struct tt_watch *watch, uint64_t now)
{
    uint64_t pause_nsec = watch->pause_nsec ? 2 * watch->pause_nsec : AGAIN_NSEC;
    watch->pause_nsec =
        pause_nsec < tt_watches.watchdog.report_nsec ? pause_nsec : tt_watches.watchdog.report_nsec;
    watch->again_nsec = now + watch->pause_nsec;
    watch->looked = watch->asked = false;
}

void tt_judge_receive(struct tt_watch *watch, uint64_t now)
{
    struct verdict_message message;
    size_t bytes = 0;
    while (!tt_bootstrap_poll(watch->subject.bootstrap, TT_ANY_PEER, TAG_VERDICT, &message,
                              sizeof(message), &bytes)) {
        int level = message.due ? TT_REPORTED_DUE : TT_REPORTED_EARLY;
        const bool waits = watch->served != watch->issued ||
                           tt_bootstrap_exchange_nsec(watch->subject.bootstrap) != 0;
        if (bytes != sizeof(message) || watch->judged >= level || !waits || blames_own(&message))
            continue;
        message.sentence[sizeof(message.sentence) - 1] = 0;
        for (char *c = message.sentence; *c; c++) {
            if ((unsigned char)*c < ' ') *c = '?';
        }
        watch->judged = level;
        watch->looked = true;
        watch->asked |= message.due;
        report_verdict(watch, message.sentence);
        if (message.is_still) ask_again(watch, now);
    }
}

/* The inquiry before this one found the same circle, so it was there at one moment as a whole. */
static bool is_confirmed(struct tt_watch *watch, const struct tt_verdict *verdict, uint64_t now)
{
    if (watch->circle == verdict->circle) return true;
    watch->circle = verdict->circle;
    watch->again_nsec = now + (verdict->certain ? CERTAIN_NSEC : DOUBTFUL_NSEC);
    watch->looked = watch->asked = false;
    return false;
}

/* A rank has ended; another one than before is news. */
static void note_gone(struct tt_watch *watch, const struct tt_verdict *verdict)
{
    if (verdict->kind != TT_VERDICT_ENDED || verdict->comm_id != watch->subject.member->comm_id ||
        watch->gone == verdict->rank + 1)
        return;
    watch->gone = verdict->rank + 1;
    watch->judged = TT_REPORTED_NOTHING;
}

void tt_judge_end(struct tt_watch *watch, uint64_t now)
{
    const struct tt_member *member = watch->subject.member;
    struct tt_verdict verdict;
    if (!watch->wants ||
        !tt_inquiry_is_due(&tt_watches.watchdog.inquiry, watch->wants, watch->until_nsec, now))
        return;
    watch->wants = 0;
    tt_verdict_find(&tt_watches.watchdog.inquiry, tt_watches.watchdog.subjects, member->comm_id,
                    member->rank, &verdict);
    const bool is_lost = watch->circle && !verdict.circle;
    if (!verdict.circle) watch->circle = 0;
    if (verdict.circle && !is_confirmed(watch, &verdict, now)) return;
    if (verdict.circle && verdict.certain && watch->compares) {
        tt_transport_mismatch(watch->subject.transport, "%s", verdict.sentence);
        return;
    }
    const bool still = stands_still(&verdict);
    const int level = watch->asked ? TT_REPORTED_DUE : TT_REPORTED_EARLY;
    note_gone(watch, &verdict);
    if (verdict.kind != TT_VERDICT_NONE && (watch->asked || still || verdict.circle) &&
        watch->judged < level) {
        watch->judged = level;
        report_verdict(watch, verdict.sentence);
        share_verdict(watch, &verdict);
    }
    if (verdict.kind == TT_VERDICT_NONE || is_lost || still) ask_again(watch, now);
}
