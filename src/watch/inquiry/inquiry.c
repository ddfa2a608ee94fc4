/* The messages of inquiries. A question carries its route: a list of hops, each from one rank of a
 * communicator to another. Each rank on the route sends the question on over the next hop and keeps
 * nothing. The last one answers with the state of all ranks of its process, and the answer takes
 * the same hops back. So only the asking process has state (inquiry_found.c). It begins with the
 * communicators that it is in. Where an answer names a communicator whose ranks have not answered,
 * it asks them through the answering process. A process answers each inquiry once, whichever route
 * a question took first. */
#include "watch/inquiry/inquiry.h"

#include "base/mem.h"
#include "base/member.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"
#include "plugin/profiler/profiler.h"
#include "watch/inquiry/inquiry_found.h"
#include "watch/process.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { TAG_QUESTION = TT_TAG_OWNER + 2, TAG_ANSWER };
enum { MESSAGE_STATUSES = 11 };
#define QUIET_NSEC 100000000ull /* no answer for so long: ask by other ways */
#define JOIN_NSEC 1500000000ull /* what was found is news for so long */
enum { ID_JUDGES = 1 };         /* in the id of an inquiry by a watchdog */
enum { SETTINGS = -1 };         /* in place of a count: the message has lines of settings */

struct message_head { /* all words little-endian on the wire */
    uint64_t id, asks;
    uint64_t nhops, at; /* at: the hop that it is on */
    uint64_t hops[TT_INQUIRY_HOPS][2];
};
struct answer {
    struct message_head head;
    uint64_t key, pid, count;
    char host[TT_STATUS_HOST_BYTES], addr[TT_STATUS_ADDR_BYTES];
    unsigned char status[MESSAGE_STATUSES][TT_STATUS_BYTES]; /* or SETTINGS: text */
};
_Static_assert(sizeof(struct answer) <= 4096, "one message of the bootstrap");
#define ANSWER_BYTES(count) (offsetof(struct answer, status) + (size_t)(count)*TT_STATUS_BYTES)

/* ---- messages ---- */

static void turn_head(struct message_head *head)
{
    uint64_t words[sizeof(*head) / 8];
    memcpy(words, head, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        words[i] = htole64(words[i]); /* its own inverse */
    memcpy(head, words, sizeof(words));
}

static struct tt_inquiry_hop hop_of(const struct message_head *head, uint64_t at)
{
    return (struct tt_inquiry_hop){.comm_id = head->hops[at][0],
                                   .from = (int)(head->hops[at][1] >> 32),
                                   .to = (int)(uint32_t)head->hops[at][1]};
}

static const struct tt_watch *watch_of(const struct tt_watch *watches, uint64_t comm_id, int rank)
{
    for (const struct tt_watch *watch = watches; watch; watch = watch->next) {
        const struct tt_member *member = watch->subject.member;
        if (member->comm_id == comm_id && member->rank == rank) return watch;
    }
    return NULL;
}

/* Over the hop that the head says, there or back. A rank that is not here any more: it is lost. */
static void post(const struct tt_watch *watches, const struct message_head *head, uint32_t tag,
                 void *message, size_t bytes)
{
    struct tt_inquiry_hop hop = hop_of(head, head->at);
    bool back = tag == TAG_ANSWER;
    const struct tt_watch *watch = watch_of(watches, hop.comm_id, back ? hop.to : hop.from);
    if (!watch || tt_bootstrap_error(watch->subject.bootstrap, NULL)) return;
    memcpy(message, head, sizeof(*head));
    turn_head(message);
    tt_bootstrap_send(watch->subject.bootstrap, back ? hop.from : hop.to, tag, message, bytes);
}

/* ---- this process ---- */

/* Communicators that share one count their operations together. */
static bool shares_queue(const struct tt_watch *watch)
{
    const struct tt_watch *other = tt_watches.watchdog.subjects;
    while (other && (other == watch || other->subject.queue != watch->subject.queue))
        other = other->next;
    return other;
}

static void own_status(const struct tt_watch *watch, const struct tt_status_process *self,
                       uint64_t now, struct tt_status *status)
{
    tt_status_fill(&watch->subject, now, status);
    status->process = *self;
    if (shares_queue(watch)) status->head_stream = 0; /* it may be the other one's */
    if (tt_status_has_work(status) && now > watch->since_nsec)
        status->idle_msec = (uint32_t)((now - watch->since_nsec) / 1000000);
    if (now > watch->begun_nsec)
        status->quiet_msec = (uint32_t)((now - watch->begun_nsec) / 1000000);
}

/* A communicator that is not connected yet: nothing is known of it but which ranks are to be in it.
 */
static void init_status(const struct tt_watch_init *init, const struct tt_status_process *self,
                        uint64_t now, struct tt_status *status)
{
    const uint32_t age_msec = (uint32_t)((now - init->since_nsec) / 1000000);
    *status = (struct tt_status){.process = *self,
                                 .comm_id = init->comm_id,
                                 .rank = init->rank,
                                 .nranks = init->nranks,
                                 .device = init->device,
                                 .init = ncclInProgress,
                                 .idle_msec = age_msec,
                                 .quiet_msec = age_msec};
    memcpy(status->name, init->name, sizeof(status->name));
}

/* The first status of the process, then the next; false: that was the last one. */
static bool next_status(const struct tt_inquiry *inquiry, const struct tt_watch **watch,
                        const struct tt_watch_init **init, uint64_t now, struct tt_status *status)
{
    if (*watch) {
        own_status(*watch, &inquiry->self, now, status);
        *watch = (*watch)->next;
    } else if (*init) {
        init_status(*init, &inquiry->self, now, status);
        *init = (*init)->next;
    } else {
        return false;
    }
    return true;
}

/* watch  of any communicator; NULL: all are in their init, so the address is not known */
static void know_self(struct tt_inquiry *inquiry, const struct tt_watch *watch)
{
    struct tt_status_process *self = &inquiry->self;
    if (!self->key) {
        if (getrandom(&self->key, sizeof(self->key), GRND_NONBLOCK) < 0)
            self->key = (uintptr_t)inquiry ^ tt_now_nsec();
        self->key |= 1;
        self->pid = (int)getpid();
        gethostname(self->host, sizeof(self->host) - 1);
        tt_status_clean(self->host);
        snprintf(self->addr, sizeof(self->addr), "unknown");
    }
    if (!watch || self->located) return;
    int rank = watch->subject.member->rank;
    self->located = true;
    const char *host = tt_bootstrap_peer(watch->subject.bootstrap, rank, &self->pid);
    snprintf(self->host, sizeof(self->host), "%s", host);
    tt_status_clean(self->host);
    tt_bootstrap_address(watch->subject.bootstrap, rank, self->addr, sizeof(self->addr));
}

/* ---- asking ---- */

static void ask(const struct tt_watch *watches, struct tt_inquiry *inquiry,
                struct tt_inquiry_comm *comm)
{
    struct message_head head = {
        .id = inquiry->id, .asks = inquiry->asks, .nhops = (uint64_t)comm->nhops + 1};
    struct message_head message;
    if (comm->nhops == TT_INQUIRY_HOPS) return;
    for (int i = 0; i < comm->nhops; i++) {
        head.hops[i][0] = comm->hops[i].comm_id;
        head.hops[i][1] = (uint64_t)comm->hops[i].from << 32 | (uint32_t)comm->hops[i].to;
    }
    head.hops[comm->nhops][0] = comm->comm_id;
    for (int rank = 0; rank < comm->nranks; rank++) {
        if (comm->rank[rank]) continue;
        comm->rank[rank] |= TT_INQUIRY_ASKED;
        head.hops[comm->nhops][1] = (uint64_t)comm->from << 32 | (uint32_t)rank;
        post(watches, &head, TAG_QUESTION, &message, sizeof(message));
    }
}

/* Near ones first: their answers have most of what the others' would. */
static void ask_next(const struct tt_watch *watches, struct tt_inquiry *inquiry, bool quiet)
{
    int nearest = TT_INQUIRY_HOPS;
    for (size_t i = 0; i < inquiry->ncomms; i++) {
        const struct tt_inquiry_comm *comm = &inquiry->comms[i];
        bool waits = memchr(comm->rank, TT_INQUIRY_ASKED, (size_t)comm->nranks) != NULL;
        if (waits && !quiet) return;
        if (!comm->in_init && memchr(comm->rank, 0, (size_t)comm->nranks) && comm->nhops < nearest)
            nearest = comm->nhops;
    }
    for (size_t i = 0; i < inquiry->ncomms && nearest < TT_INQUIRY_HOPS; i++) {
        if (!inquiry->comms[i].in_init && inquiry->comms[i].nhops == nearest)
            ask(watches, inquiry, &inquiry->comms[i]);
    }
}

/* What a question asks of this process, beside an answer. */
static void obey(const struct tt_inquiry *inquiry, const struct tt_watch *watches,
                 const struct message_head *head, struct answer *message)
{
    const size_t room = sizeof(message->status);
    const char *text = inquiry->own_settings ? inquiry->own_settings : "";
    if (head->asks & TT_INQUIRY_PROFILERS) tt_profiler_set_mask((uint32_t)(head->asks >> 32));
    if (!(head->asks & TT_INQUIRY_SETTINGS)) return;
    message->count = htole64((uint64_t)SETTINGS);
    do { /* before the answer, and over the same way */
        size_t bytes = strnlen(text, room);
        memcpy(message->status, text, bytes);
        post(watches, head, TAG_ANSWER, message, offsetof(struct answer, status) + bytes);
        text += bytes;
    } while (*text);
}

static void begin(struct tt_inquiry *inquiry, const struct tt_watch *watches, uint64_t now)
{
    tt_inquiry_reset(inquiry);
    know_self(inquiry, watches);
    inquiry->number++;
    inquiry->id = inquiry->self.key - 1 + 2 * inquiry->number; /* even: the key is odd */
    inquiry->asks = inquiry->next.asks;
    if (inquiry->asks & TT_INQUIRY_JUDGES) inquiry->id |= ID_JUDGES;
    inquiry->open = true;
    inquiry->began_nsec = inquiry->received_nsec = now;
    inquiry->until_nsec = now + inquiry->next.limit_nsec;
    memset(&inquiry->next, 0, sizeof(inquiry->next));
    if (inquiry->asks & TT_INQUIRY_PROFILERS) tt_profiler_set_mask((uint32_t)(inquiry->asks >> 32));
    if (inquiry->asks & TT_INQUIRY_SETTINGS && inquiry->own_settings) {
        tt_inquiry_add_settings(inquiry, inquiry->self.key, inquiry->own_settings,
                                strlen(inquiry->own_settings));
    }
    const struct tt_watch *watch = watches;
    const struct tt_watch_init *init = inquiry->inits;
    for (struct tt_status status; next_status(inquiry, &watch, &init, now, &status);)
        tt_inquiry_add_status(inquiry, &status, NULL, 0);
    ask_next(watches, inquiry, false);
}

uint64_t tt_inquiry_want(struct tt_inquiry *inquiry, const struct tt_watch *watches, uint64_t now,
                         uint64_t limit_nsec, uint64_t asks)
{
    const uint64_t more = asks & (TT_INQUIRY_SETTINGS | TT_INQUIRY_PROFILERS);
    bool young = now - inquiry->began_nsec <= JOIN_NSEC;
    if (!watches && !inquiry->inits) return inquiry->number;
    if (inquiry->open && young && !more) {
        if (inquiry->until_nsec < now + limit_nsec) inquiry->until_nsec = now + limit_nsec;
        return inquiry->number;
    }
    inquiry->next.wanted = true;
    if (more & TT_INQUIRY_PROFILERS) inquiry->next.asks = (uint32_t)inquiry->next.asks;
    inquiry->next.asks |= asks;
    if (inquiry->next.limit_nsec < limit_nsec) inquiry->next.limit_nsec = limit_nsec;
    if (inquiry->open) {
        if (!young) inquiry->until_nsec = now;
        return inquiry->number + 1;
    }
    begin(inquiry, watches, now);
    return inquiry->number;
}

bool tt_inquiry_is_due(const struct tt_inquiry *inquiry, uint64_t number, uint64_t until_nsec,
                       uint64_t now)
{
    return number <= inquiry->ended || (number <= inquiry->number && now >= until_nsec);
}

/* ---- mail ---- */

static bool answered_before(struct tt_inquiry *inquiry, uint64_t id)
{
    const size_t count = sizeof(inquiry->answered) / sizeof(inquiry->answered[0]);
    for (size_t i = 0; i < count; i++) {
        if (inquiry->answered[i] == id) return true;
    }
    memmove(inquiry->answered, inquiry->answered + 1, (count - 1) * sizeof(id));
    inquiry->answered[count - 1] = id;
    return false;
}

static void answer(struct tt_inquiry *inquiry, const struct tt_watch *watches,
                   const struct message_head *head, uint64_t now)
{
    if (answered_before(inquiry, head->id)) return;
    if (head->id & ID_JUDGES) inquiry->asked_nsec = now;
    struct answer *message = tt_calloc(1, sizeof(*message));
    if (!message) return;
    know_self(inquiry, watches);
    message->key = htole64(inquiry->self.key);
    message->pid = htole64((uint64_t)inquiry->self.pid);
    memcpy(message->host, inquiry->self.host, sizeof(message->host));
    memcpy(message->addr, inquiry->self.addr, sizeof(message->addr));
    obey(inquiry, watches, head, message);
    const struct tt_watch *watch = watches;
    const struct tt_watch_init *init = inquiry->inits;
    uint64_t count = 0;
    for (struct tt_status status; next_status(inquiry, &watch, &init, now, &status);) {
        tt_status_pack(&status, message->status[count++]);
        if (count < MESSAGE_STATUSES && (watch || init)) continue;
        message->count = htole64(count);
        post(watches, head, TAG_ANSWER, message, ANSWER_BYTES(count));
        count = 0;
    }
    free(message);
}

static void receive_answer(struct tt_inquiry *inquiry, const struct message_head *head,
                           const struct answer *message, size_t bytes, uint64_t now)
{
    struct tt_status status = {0};
    struct tt_inquiry_hop hops[TT_INQUIRY_HOPS];
    struct tt_status_process process = {.key = le64toh(message->key),
                                        .pid = (int)le64toh(message->pid)};
    uint64_t count = le64toh(message->count);
    if (!inquiry->open || head->id != inquiry->id) return; /* too late */
    if (count == (uint64_t)SETTINGS && bytes >= offsetof(struct answer, status)) {
        tt_inquiry_add_settings(inquiry, process.key, (const char *)message->status,
                                bytes - offsetof(struct answer, status));
        return;
    }
    if (count > MESSAGE_STATUSES || bytes != ANSWER_BYTES(count)) return;
    inquiry->received_nsec = now;
    snprintf(process.host, sizeof(process.host), "%.*s", (int)sizeof(message->host) - 1,
             message->host);
    snprintf(process.addr, sizeof(process.addr), "%.*s", (int)sizeof(message->addr) - 1,
             message->addr);
    tt_status_clean(process.host);
    tt_status_clean(process.addr);
    for (uint64_t i = 0; i < head->nhops; i++)
        hops[i] = hop_of(head, i);
    for (uint64_t i = 0; i < count; i++) {
        if (!tt_status_unpack(&status, message->status[i])) continue;
        status.process = process;
        tt_inquiry_add_status(inquiry, &status, hops, (int)head->nhops);
    }
}

/* A message that came over the hop that its head says, to or from the watched rank. */
static void receive(struct tt_inquiry *inquiry, const struct tt_watch *watches, uint32_t tag,
                    struct answer *message, size_t bytes, uint64_t now)
{
    struct message_head head = message->head;
    turn_head(&head);
    if (head.nhops == 0 || head.nhops > TT_INQUIRY_HOPS || head.at >= head.nhops) return;
    if (tag == TAG_QUESTION) {
        if (head.at + 1 == head.nhops) {
            answer(inquiry, watches, &head, now);
            return;
        }
        head.at++;
        post(watches, &head, tag, message, bytes);
    } else if (head.at > 0) {
        head.at--;
        post(watches, &head, tag, message, bytes);
    } else {
        receive_answer(inquiry, &head, message, bytes, now);
    }
}

static void read_mail(struct tt_inquiry *inquiry, const struct tt_watch *watches,
                      const struct tt_watch *watch, uint64_t now)
{
    struct tt_bootstrap *bootstrap = watch->subject.bootstrap;
    for (uint32_t tag = TAG_QUESTION; tag <= TAG_ANSWER; tag++) {
        union {
            struct answer message;
            unsigned char bytes[4096];
        } in;
        size_t bytes = 0;
        while (!tt_bootstrap_poll(bootstrap, TT_ANY_PEER, tag, &in, sizeof(in), &bytes)) {
            if (bytes >= sizeof(struct message_head))
                receive(inquiry, watches, tag, &in.message, bytes, now);
        }
    }
}

void tt_inquiry_step(struct tt_inquiry *inquiry, struct tt_watch *watches, uint64_t now)
{
    for (struct tt_watch *watch = watches; watch; watch = watch->next) {
        uint64_t mail = tt_bootstrap_mail(watch->subject.bootstrap);
        if (mail == watch->mail) continue;
        watch->mail = mail;
        read_mail(inquiry, watches, watch, now);
    }
    if (!inquiry->open && inquiry->next.wanted) begin(inquiry, watches, now);
    if (!inquiry->open) return;
    inquiry->late = !tt_inquiry_is_complete(inquiry);
    inquiry->took_nsec = now - inquiry->began_nsec;
    if (inquiry->next.wanted && inquiry->took_nsec > JOIN_NSEC) inquiry->until_nsec = now;
    if (now < inquiry->until_nsec && inquiry->late) {
        bool quiet = now - inquiry->received_nsec > QUIET_NSEC;
        if (quiet) inquiry->received_nsec = now;
        ask_next(watches, inquiry, quiet);
        return;
    }
    inquiry->open = false;
    inquiry->ended = inquiry->number;
}
