/* Two questions go over the bootstrap.
 *
 * CALL_LOG: a rank whose calls have come to rest (none began between two looks) sends its last ones
 * to the rank after it, which compares them with its own. When all neighbours agree, all ranks do;
 * so each rank sends one message however many there are.
 *
 * ASK: a rank that waits long sends to the one it waits for in which call it is and how many
 * messages the two have exchanged by its count. The asked one compares that with what it waits for
 * itself. Works of a communicator run in the order of its calls, so if neither can go on before the
 * other, both calls are wrong together. Counts distinguish this from data that is still on its way.
 *
 * The same message finds circles of more ranks (edge chasing: Chandy, Misra and Haas, 1983). A rank
 * that gets one, has not come to what the sender waits for, and waits itself sends it on to whom it
 * waits for, with the name of the rank that began it. Where it comes back to that rank, which has
 * waited in one and the same call all the time, so have all on the way to it: no wait on it could
 * end before the next one. The lowest rank of a circle finds it; others do not pass its message
 * on.
 *
 * A rank that stands in a split, a window's registration or the like compares what it is asked with
 * that call, too: a collective that it has not made comes after it here, and before it at the rank
 * that asks. */
#include "watch/compare/compare.h"

#include "base/member.h"
#include "base/wait.h"
#include "bootstrap/bootstrap.h"
#include "exec/exec.h"
#include "program/program.h"

#include <endian.h>
#include <stdatomic.h>
#include <string.h>

enum { TAG_CALL_LOG = TT_TAG_OWNER, TAG_ASK };
enum { LISTED_WAITS = 8 };
#define ASK_AGE_NSEC 40000000ull /* younger waits are left alone */
#define ASK_PAUSE_NSEC 50000000ull
#define ASK_MOST_NSEC 1000000000ull
#define MEET_NSEC 1000000000ull /* of a wait for all ranks in a split or the like */

/* ---- the other's call log ---- */

static void turn_words(uint64_t *words, int count)
{
    for (int k = 0; k < count; k++)
        words[k] = htole64(words[k]); /* its own inverse */
}

static void send_call_log(const struct tt_watch_subject *subject)
{
    uint64_t words[TT_CALL_LOG_WORDS];
    int next = (subject->member->rank + 1) % subject->member->nranks;
    tt_call_log_pack(subject->transport, words);
    turn_words(words, TT_CALL_LOG_WORDS);
    tt_bootstrap_send(subject->bootstrap, next, TAG_CALL_LOG, words, sizeof(words));
}

/* True when the rank before this one sent something new. */
static bool receive_call_log(struct tt_watch_compare *compare,
                             const struct tt_watch_subject *subject)
{
    uint64_t words[TT_CALL_LOG_WORDS];
    size_t bytes = 0;
    bool news = false;
    int nranks = subject->member->nranks, before = (subject->member->rank + nranks - 1) % nranks;
    while (!tt_bootstrap_poll(subject->bootstrap, before, TAG_CALL_LOG, words, sizeof(words),
                              &bytes)) {
        if (bytes != sizeof(words)) continue;
        turn_words(words, TT_CALL_LOG_WORDS);
        memcpy(compare->theirs, words, sizeof(words));
        compare->received = news = true;
    }
    return news;
}

/* ---- which rank waits for which ---- */

struct side { /* one of two ranks of which at least one waits for the other */
    int rank;
    bool messages;           /* in sends and receives, or what is made of them */
    bool data;               /* waits for bytes, not for room */
    bool early;              /* waits for the other's call: its own one has not begun */
    bool meets;              /* it stands in a split or the like as well */
    uint64_t number;         /* of the collective that it is in */
    uint64_t begun;          /* collectives */
    uint32_t sent, received; /* messages to and from the other, begun */
    struct tt_call call;
};
enum { SIDE_WORDS = 7, SIDE_MESSAGES = 1, SIDE_DATA = 2, SIDE_EARLY = 4, SIDE_MEETS = 8 };

struct origin {    /* of a message that follows waits */
    int rank, via; /* the rank that began it, and the one it waits for */
    uint32_t round, hops;
    uint64_t since_nsec; /* of its wait, by its clock */
};
enum { ASK_WORDS = SIDE_WORDS + 3 };

static struct side side_of(const struct tt_watch_subject *subject, const struct tt_wait *wait,
                           int other)
{
    struct side side = {
        .rank = subject->member->rank,
        .data = tt_wait_is_for_data(wait->what),
        .early = tt_wait_is_for_call(wait->what),
        .meets = tt_bootstrap_exchange_nsec(subject->bootstrap) != 0,
        .number = wait->op_seq,
        .begun = atomic_load_explicit(tt_transport_begun(subject->transport), memory_order_relaxed),
        .sent = tt_transport_messages(subject->transport, other, true),
        .received = tt_transport_messages(subject->transport, other, false)};
    memcpy(&side.call, wait->call, sizeof(side.call));
    side.messages = side.call.known && !side.early;
    if (!side.call.known) tt_call_log_get(subject->transport, side.number, &side.call);
    return side;
}

static void side_pack(const struct side *side, uint64_t words[SIDE_WORDS])
{
    words[0] = (side->messages ? SIDE_MESSAGES : 0) | (side->data ? SIDE_DATA : 0) |
               (side->early ? SIDE_EARLY : 0) | (side->meets ? SIDE_MEETS : 0);
    words[1] = side->number;
    words[2] = side->begun;
    words[3] = (uint64_t)side->received << 32 | side->sent;
    memcpy(words + 4, &side->call, sizeof(side->call));
    turn_words(words, SIDE_WORDS);
}

static struct side side_unpack(int rank, uint64_t words[SIDE_WORDS])
{
    turn_words(words, SIDE_WORDS);
    struct side side = {.rank = rank,
                        .messages = (words[0] & SIDE_MESSAGES) != 0,
                        .data = (words[0] & SIDE_DATA) != 0,
                        .early = (words[0] & SIDE_EARLY) != 0,
                        .meets = (words[0] & SIDE_MEETS) != 0,
                        .number = words[1],
                        .begun = words[2],
                        .sent = (uint32_t)words[3],
                        .received = (uint32_t)(words[3] >> 32)};
    memcpy(&side.call, words + 4, sizeof(side.call));
    return side;
}

static void origin_pack(const struct origin *origin, uint64_t words[3])
{
    words[0] = (uint64_t)(uint32_t)origin->rank << 32 | (uint32_t)origin->via;
    words[1] = (uint64_t)origin->round << 32 | origin->hops;
    words[2] = origin->since_nsec;
    turn_words(words, 3);
}

static struct origin origin_unpack(uint64_t words[3])
{
    turn_words(words, 3);
    return (struct origin){.rank = (int)(words[0] >> 32),
                           .via = (int)(uint32_t)words[0],
                           .round = (uint32_t)(words[1] >> 32),
                           .hops = (uint32_t)words[1],
                           .since_nsec = words[2]};
}

static bool is_less(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/* The other has not begun its end of the message that the waiting one is in. */
static bool lacks(const struct side *waiting, const struct side *other)
{
    return waiting->data ? is_less(other->sent, waiting->received)
                         : is_less(other->received, waiting->sent);
}

/* One is in a message, the other in a collective that cannot end before the first has called it. */
static bool crosses(const struct side *message, const struct side *collective)
{
    return lacks(message, collective) && message->begun < collective->number;
}

/* `asker` waits for `own`, which waits for `own_peer`. Can neither go on? */
static bool deadlocks(const struct side *asker, const struct side *own, int own_peer)
{
    bool mutual = own_peer == asker->rank;
    if (asker->messages && own->messages) return mutual && lacks(asker, own) && lacks(own, asker);
    if (own->messages) return mutual && crosses(own, asker);
    return asker->messages && crosses(asker, own) &&
           tt_call_needs(&own->call, asker->rank, own->rank);
}

/* ranks  that wait for each other; the two are neighbours */
static void report_mismatch(const struct tt_watch_subject *subject, const struct side *a,
                            const struct side *b, uint32_t ranks)
{
    const struct side *first = a->rank < b->rank ? a : b, *second = first == a ? b : a;
    char calls[2][TT_CALL_BYTES];
    tt_call_text(&first->call, false, calls[0]);
    tt_call_text(&second->call, false, calls[1]);
    if (tt_func_is_message((enum tt_func)a->call.func) &&
        tt_func_is_message((enum tt_func)b->call.func)) {
        tt_transport_mismatch(
            subject->transport,
            "%u ranks wait for each other in messages: rank %d called %s, rank %d "
            "called %s; Sends and Recvs that need each other must be called "
            "between one ncclGroupStart and its ncclGroupEnd",
            ranks, first->rank, calls[0], second->rank, calls[1]);
        return;
    }
    if (ranks > 2) {
        tt_transport_mismatch(
            subject->transport,
            "ranks called different operations: rank %d called %s, rank %d called "
            "%s; %u ranks wait for each other in a circle",
            first->rank, calls[0], second->rank, calls[1], ranks);
        return;
    }
    tt_transport_mismatch(
        subject->transport,
        "ranks called different operations: rank %d called %s, rank %d called %s; "
        "each waits for the other",
        first->rank, calls[0], second->rank, calls[1]);
}

static void send_ask(const struct tt_watch_subject *subject, const struct tt_wait *wait,
                     const struct origin *origin)
{
    uint64_t words[ASK_WORDS];
    struct side own = side_of(subject, wait, wait->peer);
    side_pack(&own, words);
    origin_pack(origin, words + SIDE_WORDS);
    tt_bootstrap_send(subject->bootstrap, wait->peer, TAG_ASK, words, sizeof(words));
}

static bool has_peer(const struct tt_watch_subject *subject, const struct tt_wait *wait)
{
    return wait->peer >= 0 && wait->peer < subject->member->nranks &&
           wait->peer != subject->member->rank;
}

/* This rank has not come to what the asker waits for. The calls of two ranks that wait for each
 * other's may be on their way. */
static bool keeps_waiting(const struct side *asker, const struct side *own)
{
    if (asker->early && own->early) return false;
    return asker->messages ? lacks(asker, own) : own->begun < asker->number;
}

/* True once for each such message. */
static bool is_news(struct tt_watch_compare *compare, const struct origin *origin)
{
    const uint64_t name = (uint64_t)(uint32_t)origin->rank << 32 | origin->round;
    for (int i = 0; i < TT_COMPARE_PASSED; i++) {
        if (compare->passed[i] == name) return false;
    }
    compare->passed[compare->npassed++ % TT_COMPARE_PASSED] = name;
    return true;
}

/* Send such a message on, or notice that it has come back. */
static void follow(struct tt_watch_compare *compare, const struct tt_watch_subject *subject,
                   const struct side *asker, struct origin origin, const struct tt_wait *waits,
                   int nwaits)
{
    int rank = subject->member->rank;
    bool mine = origin.rank == rank;
    if (nwaits == 0 || origin.rank > rank || origin.hops >= (uint32_t)subject->member->nranks)
        return;
    struct side own = side_of(subject, &waits[0], asker->rank);
    if (!keeps_waiting(asker, &own) || (!mine && !is_news(compare, &origin))) return;
    origin.hops++;
    for (int i = 0; i < nwaits; i++) {
        bool same = waits[i].peer == origin.via && waits[i].since_nsec == origin.since_nsec;
        if (mine && same) {
            own = side_of(subject, &waits[i], origin.via);
            report_mismatch(subject, asker, &own, origin.hops);
        } else if (!mine && has_peer(subject, &waits[i])) {
            send_ask(subject, &waits[i], &origin);
        }
    }
}

static void receive_ask(const struct tt_watch_subject *subject, const struct side *asker,
                        const struct tt_wait *waits, int nwaits)
{
    for (int i = 0; i < nwaits; i++) {
        struct side own = side_of(subject, &waits[i], asker->rank);
        if (deadlocks(asker, &own, waits[i].peer)) report_mismatch(subject, asker, &own, 2);
    }
}

/* This rank has made all its calls and stands in a split or the like. The asker's collective, which
 * it has not made, came before that there. Messages have no place in the order of all ranks' calls,
 * and a group's calls none in that of its jobs. */
static void receive_before_exchange(const struct tt_watch_subject *subject,
                                    const struct side *asker, uint64_t now)
{
    const uint64_t since = tt_bootstrap_exchange_nsec(subject->bootstrap);
    const uint64_t begun =
        atomic_load_explicit(tt_transport_begun(subject->transport), memory_order_relaxed);
    const bool grouped =
        subject->grouped && atomic_load_explicit(subject->grouped, memory_order_relaxed);
    const bool works = atomic_load_explicit(&subject->queue->issued, memory_order_relaxed) !=
                       atomic_load_explicit(&subject->queue->served, memory_order_relaxed);
    if (!since || now < since + MEET_NSEC || asker->messages || asker->meets || grouped || works ||
        begun >= asker->number)
        return;
    const char *meets = atomic_load_explicit(&subject->member->meets, memory_order_relaxed);
    char call[TT_CALL_BYTES];
    tt_call_text(&asker->call, false, call);
    tt_transport_mismatch(subject->transport,
                          "ranks called different operations: rank %d called %s as operation %u, "
                          "rank %d called %s after %u operation(s); all ranks must make the same "
                          "calls in the same order",
                          asker->rank, call, (uint32_t)asker->number, subject->member->rank,
                          meets ? meets : "a split or registration", (uint32_t)begun);
}

/* Those that wait for this rank. */
static void receive_asks(struct tt_watch_compare *compare, const struct tt_watch_subject *subject,
                         const struct tt_wait *waits, int nwaits, uint64_t now)
{
    uint64_t words[ASK_WORDS] = {0};
    for (int asker = 0; asker < subject->member->nranks; asker++) {
        size_t bytes = 0;
        while (
            !tt_bootstrap_poll(subject->bootstrap, asker, TAG_ASK, words, sizeof(words), &bytes)) {
            struct side theirs = side_unpack(asker, words);
            struct origin origin = origin_unpack(words + SIDE_WORDS);
            if (bytes != sizeof(words)) continue;
            receive_ask(subject, &theirs, waits, nwaits);
            receive_before_exchange(subject, &theirs, now);
            follow(compare, subject, &theirs, origin, waits, nwaits);
        }
    }
}

static void ask(struct tt_watch_compare *compare, const struct tt_watch_subject *subject,
                const struct tt_wait *waits, int nwaits, uint64_t now)
{
    bool asked = false;
    if (nwaits == 0) compare->ask_nsec = compare->ask_pause_nsec = 0;
    if (now < compare->ask_nsec) return;
    for (int i = 0; i < nwaits; i++) {
        const uint64_t since = waits[i].since_nsec;
        bool old = now > since && now - since >= ASK_AGE_NSEC;
        if (!old || !has_peer(subject, &waits[i])) continue;
        const struct origin origin = {.rank = subject->member->rank,
                                      .via = waits[i].peer,
                                      .round = ++compare->round,
                                      .since_nsec = since};
        send_ask(subject, &waits[i], &origin);
        asked = true;
    }
    if (!asked) return;
    compare->ask_nsec = now + compare->ask_pause_nsec;
    compare->ask_pause_nsec =
        compare->ask_pause_nsec ? 2 * compare->ask_pause_nsec : ASK_PAUSE_NSEC;
    if (compare->ask_pause_nsec > ASK_MOST_NSEC) compare->ask_pause_nsec = ASK_MOST_NSEC;
}

void tt_compare_look(struct tt_watch_compare *compare, const struct tt_watch_subject *subject,
                     uint64_t now)
{
    struct tt_wait waits[LISTED_WAITS];
    uint64_t begun =
        atomic_load_explicit(tt_transport_begun(subject->transport), memory_order_relaxed);
    bool moved = begun != compare->begun, news = false;
    uint64_t mail = tt_bootstrap_mail(subject->bootstrap);
    int nwaits = tt_wait_list(subject->member, waits, LISTED_WAITS);
    compare->begun = begun;
    if (mail != compare->mail) {
        compare->mail = mail;
        news = receive_call_log(compare, subject);
        receive_asks(compare, subject, waits, nwaits, now);
    }
    if (compare->received && (news || moved)) {
        int nranks = subject->member->nranks,
            before = (subject->member->rank + nranks - 1) % nranks;
        tt_call_log_compare(subject->transport, before, compare->theirs);
    }
    if (!moved && begun != compare->reported) {
        compare->reported = begun;
        send_call_log(subject);
    }
    ask(compare, subject, waits, nwaits, now);
}
