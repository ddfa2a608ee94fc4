/* Messages that no rank received. A small Send ends well although its receiver never calls Recv,
 * and the receiver's end cannot know that there was one; so the two compare their counts when they
 * end the communicator.
 *
 * A rank that ends it tells those that it received messages from how many (TAKEN), and asks those
 * to whom it sent more than it was told (SENT). The watchdog of a rank that still is there answers
 * when it has received so many; one that has gone says by its end that it never will. Whichever of
 * the two ends later so knows; an asker waits 100 ms at most, and then leaves it to the other. */
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

#define ANSWER_NSEC 100000000ull
enum { ASKED_MOST = 64 };              /* ranks: what an end may cost */
enum { TAG_SENT = TT_TAG_OWNER + 16 }; /* a rank that has left says that it has */
enum { TAG_TAKEN = TT_TAG_OWNER - 1 }; /* of which that need not be known */

struct message { /* little-endian */
    uint32_t from, count;
};

static void send(const struct tt_watch_subject *subject, int rank, uint32_t tag, uint32_t count)
{
    const struct message message = {htole32((uint32_t)subject->member->rank), htole32(count)};
    tt_bootstrap_send(subject->bootstrap, rank, tag, &message, sizeof(message));
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

/* ---- ranks that are asked ---- */

static void receive_askers(struct tt_unreceived *unreceived, const struct tt_watch_subject *subject)
{
    struct message message;
    while (receive(subject, TAG_SENT, &message)) {
        atomic_store_explicit(&unreceived->sent[message.from], message.count, memory_order_relaxed);
        atomic_store_explicit(&unreceived->open, true, memory_order_release);
    }
}

void tt_unreceived_look(struct tt_unreceived *unreceived, const struct tt_watch_subject *subject)
{
    const uint64_t mail = tt_bootstrap_mail(subject->bootstrap);
    if (!unreceived->sent || !unreceived->answered) return;
    if (mail != unreceived->mail) receive_askers(unreceived, subject);
    unreceived->mail = mail;
    if (!atomic_load_explicit(&unreceived->open, memory_order_acquire)) return;
    bool open = false;
    atomic_store_explicit(&unreceived->open, false, memory_order_relaxed);
    for (int rank = 0; rank < subject->member->nranks; rank++) {
        uint32_t sent = atomic_load_explicit(&unreceived->sent[rank], memory_order_relaxed);
        if (sent == unreceived->answered[rank]) continue;
        if (is_less(counted(subject, rank, false), sent)) {
            open = true;
            continue;
        }
        unreceived->answered[rank] = sent;
        send(subject, rank, TAG_TAKEN, sent);
    }
    if (open) atomic_store_explicit(&unreceived->open, true, memory_order_relaxed);
}

/* ---- the rank that ends the communicator ---- */

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

/* Of one rank that this one has sent messages to. */
struct receiver {
    int rank;
    bool asked;
    uint32_t sent, taken;
};

static void receive_takers(const struct tt_watch_subject *subject, struct receiver *receivers,
                           int count)
{
    struct message message;
    while (receive(subject, TAG_TAKEN, &message)) {
        for (int i = 0; i < count; i++) {
            if ((uint32_t)receivers[i].rank == message.from) receivers[i].taken = message.count;
        }
    }
}

/* One look at all of them; returns of how many more is to be known. */
static int ask_all(const struct tt_watch_subject *subject, struct receiver *receivers, int count)
{
    bool ended[ASKED_MOST];
    int left = 0;
    for (int i = 0; i < count; i++) /* what it has said before its end is there by then */
        ended[i] = tt_bootstrap_rank_ended(subject->bootstrap, receivers[i].rank);
    receive_takers(subject, receivers, count);
    for (int i = 0; i < count; i++) {
        struct receiver *receiver = &receivers[i];
        if (!is_less(receiver->taken, receiver->sent)) continue;
        if (ended[i]) { /* one that exited says why itself */
            if (!tt_bootstrap_rank_exited(subject->bootstrap, receiver->rank))
                report_sender(subject, receiver->rank, receiver->taken);
            continue;
        }
        if (!receiver->asked) send(subject, receiver->rank, TAG_SENT, receiver->sent);
        receiver->asked = true;
        receivers[left++] = *receiver;
    }
    return left;
}

void tt_unreceived_close(struct tt_unreceived *unreceived, const struct tt_watch_subject *subject)
{
    struct receiver receivers[ASKED_MOST];
    const struct tt_member *member = subject->member;
    const uint64_t until = tt_now_nsec() + ANSWER_NSEC;
    uint32_t sleeps = 0;
    int count = 0;
    if (!unreceived->sent || !unreceived->answered) return;
    receive_askers(unreceived, subject);
    for (int k = 1; k < member->nranks; k++) {
        const int rank = (member->rank + k) % member->nranks;
        const uint32_t sent = counted(subject, rank, true), taken = counted(subject, rank, false);
        const uint32_t theirs = atomic_load_explicit(&unreceived->sent[rank], memory_order_relaxed);
        if (is_less(taken, theirs)) report_receiver(subject, rank, theirs);
        if (taken) send(subject, rank, TAG_TAKEN, taken);
        if (sent && count < ASKED_MOST)
            receivers[count++] = (struct receiver){.rank = rank, .sent = sent};
    }
    while ((count = ask_all(subject, receivers, count)) && tt_now_nsec() < until &&
           !tt_member_aborted(member)) {
        const struct timespec interval = {.tv_nsec = tt_wait_backoff_nsec(sleeps++)};
        nanosleep(&interval, NULL);
    }
}
