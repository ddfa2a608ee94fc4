/* Messages that no rank received. A small Send ends well although its receiver never calls Recv,
 * and the receiver's end cannot know that there was one; so the two compare their counts when they
 * end the communicator.
 *
 * A rank that ends it tells those that it received messages from how many (TAKEN), and asks those
 * to whom it sent more than it was told (SENT), again and again until it has an answer: TAKEN, when
 * all were received; KEPT, when the other rank goes on and will compare at its own end; or that it
 * has ended the communicator, which the bootstrap of a rank says that has left it. So one of the
 * two always knows. The watchdog of a rank answers; all that it knows is used under its lock, so
 * that what it keeps is there when the rank ends. */
#include "base/log.h"
#include "base/member.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "base/wait.h"
#include "bootstrap/bootstrap.h"
#include "device/device.h"
#include "watch/compare/compare.h"

#include <endian.h>
#include <stdlib.h>
#include <time.h>

#define ANSWER_NSEC 2000000000ull
#define GONE_ANSWER_NSEC 100000000ull  /* a rank exited: others may be out of reach */
#define ASK_NSEC 20000000ull           /* until the question is asked again, doubled each time */
enum { ASKED_MOST = 64 };              /* ranks: what an end may cost, but under strict mode */
enum { TAG_SENT = TT_TAG_OWNER + 16 }; /* a rank that has left says that it has */
enum { TAG_TAKEN = TT_TAG_OWNER - 1, TAG_KEPT = TT_TAG_OWNER - 2 }; /* that need not be known */

struct message { /* little-endian */
    uint32_t from, count;
};

static ncclResult_t send(const struct tt_watch_subject *subject, int rank, uint32_t tag,
                         uint32_t count)
{
    const struct message message = {htole32((uint32_t)subject->member->rank), htole32(count)};
    return tt_bootstrap_send(subject->bootstrap, rank, tag, &message, sizeof(message));
}

/* The next one with that tag; false: there is none. */
static bool receive(const struct tt_watch_subject *subject, uint32_t tag, struct message *message)
{
    size_t bytes = 0;
    while (!tt_bootstrap_poll(subject->bootstrap, TT_ANY_PEER, tag, message, sizeof(*message),
                              &bytes)) {
        message->from = le32toh(message->from);
        message->count = le32toh(message->count);
        if (bytes == sizeof(*message) && message->from < (uint32_t)subject->member->nranks)
            return true;
    }
    return false;
}

static uint32_t counted(const struct tt_watch_subject *subject, int rank, bool sending)
{
    return tt_transport_messages(subject->transport, rank, sending);
}

static bool is_less(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

void tt_unreceived_init(struct tt_unreceived *unreceived, int nranks)
{
    unreceived->sent = calloc((size_t)nranks, sizeof(*unreceived->sent));
    unreceived->answered = calloc((size_t)nranks, sizeof(*unreceived->answered));
}

void tt_unreceived_fini(struct tt_unreceived *unreceived)
{
    free(unreceived->sent);
    free(unreceived->answered);
    *unreceived = (struct tt_unreceived){.sent = NULL};
}

/* ---- what is said ---- */

/* A GPU may wait for ever in such a Send. */
static void note_missing(void)
{
    if (tt_param_bool("TUTTI_STRICT")) tuttiHostFail("a message was not received (TUTTI_STRICT)");
}

static void report_receiver(const struct tt_watch_subject *subject, int rank, uint32_t sent)
{
    int pid;
    char name[TT_QUOTED_BYTES];
    const struct tt_member *member = subject->member;
    const char *host = tt_bootstrap_peer(subject->bootstrap, rank, &pid);
    tt_warn("comm 0x%llx%s rank %d of %d: rank %d on host %s (pid %d) has sent %u message(s) to "
            "this rank, which ends the communicator after %u: a ncclRecv is missing",
            (unsigned long long)member->comm_id, tt_member_quoted(member, name, sizeof(name)),
            member->rank, member->nranks, rank, host, pid, sent, counted(subject, rank, false));
    note_missing();
}

static void report_sender(const struct tt_watch_subject *subject, int rank, uint32_t taken)
{
    int pid;
    char name[TT_QUOTED_BYTES];
    const struct tt_member *member = subject->member;
    const char *host = tt_bootstrap_peer(subject->bootstrap, rank, &pid);
    tt_warn("comm 0x%llx%s rank %d of %d: rank %d on host %s (pid %d) has ended the "
            "communicator after %u of %u message(s) that this rank has sent to it: a ncclRecv is "
            "missing there",
            (unsigned long long)member->comm_id, tt_member_quoted(member, name, sizeof(name)),
            member->rank, member->nranks, rank, host, pid, taken, counted(subject, rank, true));
    note_missing();
}

/* ---- ranks that are asked: the lock of the watchdog is held ---- */

static bool lacks(const struct tt_unreceived *unreceived, const struct tt_watch_subject *subject,
                  int rank)
{
    return is_less(counted(subject, rank, false), unreceived->sent[rank]);
}

static void receive_askers(struct tt_unreceived *unreceived, const struct tt_watch_subject *subject)
{
    struct message message;
    while (receive(subject, TAG_SENT, &message)) {
        const int rank = (int)message.from;
        unreceived->sent[rank] = message.count;
        unreceived->open = true;
        if (!unreceived->ends && lacks(unreceived, subject, rank))
            send(subject, rank, TAG_KEPT, message.count);
    }
}

/* Who asked is told when nothing is missing any more; or never will come, which is reported here.
 */
static void answer(struct tt_unreceived *unreceived, const struct tt_watch_subject *subject)
{
    bool open = false;
    for (int rank = 0; rank < subject->member->nranks && unreceived->open; rank++) {
        const uint32_t sent = unreceived->sent[rank];
        if (sent == unreceived->answered[rank]) continue;
        if (lacks(unreceived, subject, rank)) {
            open |= !unreceived->ends;
            if (!unreceived->ends) continue;
            report_receiver(subject, rank, sent);
        }
        unreceived->answered[rank] = sent;
        send(subject, rank, TAG_TAKEN, sent);
    }
    unreceived->open = open;
}

void tt_unreceived_look(struct tt_unreceived *unreceived, const struct tt_watch_subject *subject)
{
    const uint64_t mail = tt_bootstrap_mail(subject->bootstrap);
    if (!unreceived->sent || !unreceived->answered) return;
    if (mail != unreceived->mail) receive_askers(unreceived, subject);
    unreceived->mail = mail;
    answer(unreceived, subject);
}

void tt_unreceived_end(struct tt_unreceived *unreceived, const struct tt_watch_subject *subject)
{
    if (!unreceived->sent || !unreceived->answered) return;
    for (int rank = 0; rank < subject->member->nranks; rank++) {
        const uint32_t taken = rank == subject->member->rank ? 0 : counted(subject, rank, false);
        if (taken) send(subject, rank, TAG_TAKEN, taken);
    }
    unreceived->ends = true;
    tt_unreceived_look(unreceived, subject);
}

/* ---- the rank that ends the communicator ---- */

/* Of one rank that this one has sent messages to. */
struct receiver {
    int rank;
    bool ended, kept;
    uint32_t sent, taken;
    uint64_t ask_nsec, pause_nsec;
};

static void receive_answers(const struct tt_watch_subject *subject, struct receiver *receivers,
                            int count)
{
    struct message message;
    while (receive(subject, TAG_TAKEN, &message)) {
        for (int i = 0; i < count; i++) {
            if ((uint32_t)receivers[i].rank == message.from) receivers[i].taken = message.count;
        }
    }
    while (receive(subject, TAG_KEPT, &message)) {
        for (int i = 0; i < count; i++)
            receivers[i].kept |= (uint32_t)receivers[i].rank == message.from;
    }
}

/* True when nothing more is to be known of it. */
static bool is_answered(const struct tt_watch_subject *subject, const struct receiver *receiver)
{
    if (receiver->kept || !is_less(receiver->taken, receiver->sent)) return true;
    if (receiver->ended && !tt_bootstrap_rank_exited(subject->bootstrap, receiver->rank))
        report_sender(subject, receiver->rank, receiver->taken); /* one that exited says why */
    return receiver->ended;
}

/* One look at all of them; returns of how many more is to be known. */
static int ask_all(const struct tt_watch_subject *subject, struct receiver *receivers, int count,
                   uint64_t now)
{
    int left = 0;
    for (int i = 0; i < count; i++) /* what it has said before its end is there by then */
        receivers[i].ended = tt_bootstrap_rank_ended(subject->bootstrap, receivers[i].rank);
    receive_answers(subject, receivers, count);
    for (int i = 0; i < count; i++) {
        struct receiver *receiver = &receivers[i];
        if (is_answered(subject, receiver)) continue;
        if (now >= receiver->ask_nsec) {
            if (send(subject, receiver->rank, TAG_SENT, receiver->sent)) continue;
            receiver->ask_nsec = now + receiver->pause_nsec;
            receiver->pause_nsec *= 2;
        }
        receivers[left++] = *receiver;
    }
    return left;
}

static int list_receivers(const struct tt_watch_subject *subject, struct receiver *receivers,
                          int most)
{
    const struct tt_member *member = subject->member;
    int count = 0;
    for (int k = 1; k < member->nranks && count < most; k++) {
        const int rank = (member->rank + k) % member->nranks;
        const uint32_t sent = counted(subject, rank, true);
        if (!sent) continue;
        receivers[count++] = (struct receiver){.rank = rank, .sent = sent, .pause_nsec = ASK_NSEC};
    }
    return count;
}

void tt_unreceived_wait(const struct tt_unreceived *unreceived,
                        const struct tt_watch_subject *subject)
{
    const struct tt_member *member = subject->member;
    const int most =
        tt_param_bool("TUTTI_STRICT") || member->nranks < ASKED_MOST ? member->nranks : ASKED_MOST;
    const uint64_t since = tt_now_nsec();
    uint32_t sleeps = 0;
    if (!unreceived->sent || !unreceived->answered) return;
    struct receiver *receivers = calloc((size_t)most, sizeof(*receivers));
    int count = receivers ? list_receivers(subject, receivers, most) : 0;
    for (;;) {
        const uint64_t now = tt_now_nsec();
        const bool gone = tt_bootstrap_someone_exited(subject->bootstrap);
        count = ask_all(subject, receivers, count, now);
        if (!count || tt_member_aborted(member)) break;
        if (now - since >= (gone ? GONE_ANSWER_NSEC : ANSWER_NSEC)) break;
        const struct timespec interval = {.tv_nsec = tt_wait_backoff_nsec(sleeps++)};
        nanosleep(&interval, NULL);
    }
    free(receivers);
}
