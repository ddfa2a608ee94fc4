/* Are operations being finished? None for TUTTI_WATCHDOG seconds: one report. For TUTTI_TIMEOUT
 * seconds: the communicator is aborted with ncclTimeout. A process that exited without goodbye
 * while work waits for what it will never do: ncclRemoteError. */
#include "watch/progress.h"

#include "base/error.h"
#include "base/log.h"
#include "base/member.h"
#include "base/wait.h"
#include "bootstrap/bootstrap.h"
#include "exec/exec.h"
#include "transport/left.h"
#include "transport/transport.h"
#include "watch/process.h"
#include "watch/watch_state.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define EXITED_TIMEOUT_NSEC 20000000ull
#define LEFT_TIMEOUT_NSEC 1000000000ull /* for what a rank that left well has sent before */
#define EXIT_TIMEOUT_NSEC 500000000ull  /* where nothing is known of transports */
enum { LISTED_WAITS = 8, SENTENCE_BYTES = 700 };

static void raise_abort(struct tt_watch *watch, ncclResult_t rc, const char *sentence)
{
    struct tt_member *member = watch->subject.member;
    if (tt_member_aborted(member)) return;
    /* the others hear the reason before this rank's caller can give up and tell them that */
    tt_bootstrap_fail(watch->subject.bootstrap, rc, sentence);
    tt_error_keep("comm 0x%llx rank %d: %s", (unsigned long long)member->comm_id, member->rank,
                  sentence); /* threads that see the flag ask for it at once */
    if (!tt_member_abort_why(member, rc, sentence)) return;
    tt_fail(rc, "comm 0x%llx rank %d: %s", (unsigned long long)member->comm_id, member->rank,
            sentence);
}

static void describe_wait(const struct tt_watch *watch, const struct tt_wait *wait, uint64_t now,
                          char *text, size_t text_bytes)
{
    double age_sec = (double)(now - wait->since_nsec) * 1e-9;
    if (wait->peer < 0) {
        snprintf(text, text_bytes, "%s, for %.0f s", wait->what, age_sec);
        return;
    }
    int pid;
    const char *host = tt_bootstrap_peer(watch->subject.bootstrap, wait->peer, &pid);
    snprintf(text, text_bytes, "%s rank %d on host %s (pid %d), for %.0f s", wait->what, wait->peer,
             host, pid, age_sec);
}

/* The verdict on one line, then what each waiting step waits for. */
static void report(struct tt_watch *watch, uint64_t issued, uint64_t now)
{
    const struct tt_member *member = watch->subject.member;
    struct tt_wait waits[LISTED_WAITS];
    char text[256], name[TT_QUOTED_BYTES];
    int count = tt_wait_list(member, waits, LISTED_WAITS);
    tt_warn("comm 0x%llx%s rank %d of %d: no operation was finished for %.0f s; operation "
            "%llu of %llu issued is next; %d wait(s) known",
            (unsigned long long)member->comm_id, tt_member_quoted(member, name, sizeof(name)),
            member->rank, member->nranks, (double)(now - watch->since_nsec) * 1e-9,
            (unsigned long long)watch->served + 1, (unsigned long long)issued, count);
    for (int i = 0; i < count && i < LISTED_WAITS; i++) {
        describe_wait(watch, &waits[i], now, text, sizeof(text));
        tt_warn("comm 0x%llx rank %d waits: %s", (unsigned long long)member->comm_id, member->rank,
                text);
    }
}

/* How long the network may still bring what such a rank sent. Where this rank waits for it to read,
 * that is a word that it has read, which is on the way at most: nothing of its own is left. */
static uint64_t net_in_flight_nsec(const struct tt_watch *watch, const struct tt_wait *wait)
{
    uint64_t in_flight_nsec = tt_transport_in_flight_nsec(watch->subject.transport, wait->peer);
    bool short_one = in_flight_nsec > LEFT_TIMEOUT_NSEC && !tt_wait_is_for_data(wait->what);
    return short_one ? LEFT_TIMEOUT_NSEC : in_flight_nsec;
}

/* How long a wait for a rank that is gone may last: all that it sent is here or on the way, and a
 * thread that has no processor needs its time to take it. UINT64_MAX: no rank waits for such a
 * rank, or its transport says more. */
static uint64_t gone_timeout_nsec(const struct tt_watch *watch, uint64_t idle_nsec)
{
    uint64_t least = UINT64_MAX;
    const struct tt_watch_subject *subject = &watch->subject;
    struct tt_wait waits[LISTED_WAITS];
    int count = tt_wait_list(subject->member, waits, LISTED_WAITS);
    for (int i = 0; i < count && i < LISTED_WAITS; i++) {
        int peer = waits[i].peer;
        if (!tt_bootstrap_rank_ended(subject->bootstrap, peer)) continue;
        if (idle_nsec < net_in_flight_nsec(watch, &waits[i])) continue;
        bool exited = tt_bootstrap_rank_exited(subject->bootstrap, peer);
        uint64_t timeout_nsec = exited ? EXITED_TIMEOUT_NSEC : LEFT_TIMEOUT_NSEC;
        if (timeout_nsec < least) least = timeout_nsec;
    }
    return least;
}

/* A rank is gone: in an operation which that rank never began, at once; in a wait for that rank
 * when it has lasted and nothing was finished meanwhile. */
static bool cannot_succeed(struct tt_watch *watch, uint64_t idle_nsec, uint64_t now)
{
    const struct tt_watch_subject *subject = &watch->subject;
    if (!tt_bootstrap_someone_ended(subject->bootstrap)) return false;
    if (!subject->transport) return idle_nsec >= EXIT_TIMEOUT_NSEC;
    uint32_t theirs = tt_bootstrap_exit_begun(subject->bootstrap);
    uint32_t ours = (uint32_t)atomic_load_explicit(tt_transport_begun(subject->transport),
                                                   memory_order_relaxed);
    if ((int32_t)(ours - theirs) > 0) return true;
    uint64_t timeout_nsec = gone_timeout_nsec(watch, idle_nsec);
    if (timeout_nsec == UINT64_MAX) {
        watch->alone_nsec = 0;
        return false;
    }
    if (!watch->alone_nsec) watch->alone_nsec = now;
    return now - watch->alone_nsec >= timeout_nsec;
}

static void name_end(const struct tt_watch *watch, int rank, char *text, size_t text_bytes)
{
    int pid;
    const char *host = tt_bootstrap_peer(watch->subject.bootstrap, rank, &pid);
    snprintf(text, text_bytes,
             "rank %d on host %s (pid %d) has ended the communicator (ncclCommDestroy)", rank, host,
             pid);
}

/* Of a message to or from a rank that ended as one that has no such call does. */
static const char *missing_call(const struct tt_call *call)
{
    return call->func == TT_FUNC_SEND ? ": a ncclRecv is missing there"
                                      : ": a ncclSend is missing there";
}

/* Which rank is gone, and in what this one waits. `ended`: a rank that ended well; -1: none. */
static void describe_end(const struct tt_watch *watch, const char *gone, int ended, char *text,
                         size_t text_bytes)
{
    const struct tt_watch_subject *subject = &watch->subject;
    char call_text[TT_CALL_BYTES];
    struct tt_wait waits[LISTED_WAITS];
    struct tt_call call = {0};
    int count = tt_wait_list(subject->member, waits, LISTED_WAITS);
    if (count > 0) memcpy(&call, waits[0].call, sizeof(call));
    bool message = call.known != 0;
    if (!message && subject->transport)
        tt_call_log_get(subject->transport, count > 0 ? waits[0].op_seq : watch->begun, &call);
    tt_call_text(&call, false, call_text);
    if (message) {
        snprintf(text, text_bytes, "%.400s; rank %d waits in %s%s", gone, subject->member->rank,
                 call_text, ended >= 0 && ended == waits[0].peer ? missing_call(&call) : "");
    } else if (call.known) {
        snprintf(text, text_bytes, "%.400s; rank %d waits in %s as operation %llu", gone,
                 subject->member->rank, call_text,
                 (unsigned long long)(count > 0 ? waits[0].op_seq : watch->begun));
    } else {
        snprintf(text, text_bytes, "%s", gone);
    }
}

/* The other rank of the message that this one waits in, when it has left well; else -1. */
static int awaited_end(const struct tt_watch *watch)
{
    struct tt_bootstrap *bootstrap = watch->subject.bootstrap;
    struct tt_wait wait;
    struct tt_call call;
    if (!tt_wait_list(watch->subject.member, &wait, 1)) return -1;
    memcpy(&call, wait.call, sizeof(call));
    const bool ended = call.known && tt_bootstrap_rank_ended(bootstrap, wait.peer) &&
                       !tt_bootstrap_rank_exited(bootstrap, wait.peer);
    return ended ? wait.peer : -1;
}

static bool report_ended(const struct tt_watch *watch, char *text, size_t text_bytes)
{
    char gone[TT_WHY_BYTES];
    const int peer = awaited_end(watch);
    if (!tt_bootstrap_ended(watch->subject.bootstrap, gone, sizeof(gone))) return false;
    if (peer >= 0) name_end(watch, peer, gone, sizeof(gone));
    describe_end(watch, gone, peer, text, text_bytes);
    return true;
}

void tt_progress_give_up(struct tt_watch *watch, const char *gone)
{
    char sentence[SENTENCE_BYTES];
    describe_end(watch, gone, -1, sentence, sizeof(sentence));
    raise_abort(watch, ncclRemoteError, sentence);
}

static bool is_of_all(const struct tt_left *why)
{
    return why->rc == ncclInvalidUsage || why->rc == ncclInvalidArgument;
}

/* A rank that this one waits for has ended the communicator, as the memory that they share says: it
 * need not be heard of, where the tree of the bootstrap is cut. The word is there for a second. A
 * difference between calls that it left for is certain at once. */
static bool waits_for_left(struct tt_watch *watch, uint64_t now)
{
    const struct tt_watch_subject *subject = &watch->subject;
    struct tt_wait waits[LISTED_WAITS];
    bool waits_now = false;
    if (!subject->transport) return false;
    int count = tt_wait_list(subject->member, waits, LISTED_WAITS);
    for (int i = 0; i < count && i < LISTED_WAITS; i++) {
        const int peer = waits[i].peer;
        if (peer >= 0 && !watch->left &&
            tt_transport_rank_left(subject->transport, peer, &watch->why)) {
            watch->left = peer + 1;
            watch->left_nsec = now;
        }
        waits_now |= watch->left == peer + 1;
    }
    return watch->left && waits_now &&
           (is_of_all(&watch->why) || now - watch->left_nsec >= LEFT_TIMEOUT_NSEC);
}

static void end_as_left(struct tt_watch *watch)
{
    const struct tt_watch_subject *subject = &watch->subject;
    const int rank = watch->left - 1;
    char gone[TT_WHY_BYTES], text[SENTENCE_BYTES];
    if (is_of_all(&watch->why)) {
        tt_transport_mismatch(subject->transport, "%s", watch->why.sentence);
        return;
    }
    int pid;
    const char *host = tt_bootstrap_peer(subject->bootstrap, rank, &pid);
    if (watch->why.rc) {
        snprintf(gone, sizeof(gone),
                 "rank %d on host %s (pid %d) has aborted or destroyed the communicator: %.200s",
                 rank, host, pid, watch->why.sentence);
    } else {
        name_end(watch, rank, gone, sizeof(gone));
    }
    describe_end(watch, gone, watch->why.rc ? -1 : rank, text, sizeof(text));
    raise_abort(watch, ncclRemoteError, text);
}

/* A call that waits for those of other ranks is not issued yet, but it is outstanding. */
static bool waits_for_calls(const struct tt_member *member)
{
    struct tt_wait waits[LISTED_WAITS];
    const int count = tt_wait_list(member, waits, LISTED_WAITS);
    return count > 0 && tt_wait_is_for_call(waits[0].what);
}

void tt_progress_look(struct tt_watch *watch, uint64_t now)
{
    char sentence[SENTENCE_BYTES];
    const struct tt_issue_queue *queue = watch->subject.queue;
    uint64_t served = atomic_load_explicit(&queue->served, memory_order_acquire);
    uint64_t issued = atomic_load_explicit(&queue->issued, memory_order_acquire);
    if (issued == served && waits_for_calls(watch->subject.member)) issued++;
    if (served != watch->served || issued == served) {
        watch->served = served;
        watch->since_nsec = now;
        watch->reported = watch->looked = watch->asked = false;
        watch->alone_nsec = 0;
        watch->judged = TT_REPORTED_NOTHING;
        watch->gone = watch->left = 0;
        watch->verdict[0] = 0;
        watch->wants = watch->again_nsec = watch->pause_nsec = watch->circle = 0;
    }
    watch->issued = issued;
    if (issued == served) return;
    uint64_t idle_nsec = now - watch->since_nsec;
    if (tt_member_aborted(watch->subject.member)) return;
    if (tt_watches.watchdog.report_nsec && idle_nsec >= tt_watches.watchdog.report_nsec &&
        !watch->reported) {
        watch->reported = true;
        report(watch, issued, now);
    }
    if (tt_watches.watchdog.abort_nsec && idle_nsec >= tt_watches.watchdog.abort_nsec) {
        snprintf(sentence, sizeof(sentence),
                 "no operation was finished for %.0f s (TUTTI_TIMEOUT); operation %llu is next%s",
                 (double)idle_nsec * 1e-9, (unsigned long long)served + 1, watch->verdict);
        raise_abort(watch, ncclTimeout, sentence);
    } else if (cannot_succeed(watch, idle_nsec, now) &&
               report_ended(watch, sentence, sizeof(sentence))) {
        raise_abort(watch, ncclRemoteError, sentence);
    } else if (waits_for_left(watch, now)) {
        end_as_left(watch);
    }
}

bool tt_progress_exit_pending(void)
{
    for (const struct tt_watch *watch = tt_watches.watchdog.subjects; watch; watch = watch->next) {
        const struct tt_issue_queue *queue = watch->subject.queue;
        if (tt_bootstrap_someone_ended(watch->subject.bootstrap) &&
            !tt_member_aborted(watch->subject.member) &&
            atomic_load_explicit(&queue->issued, memory_order_relaxed) != watch->served)
            return true;
    }
    return false;
}
