/* How all ranks learn of a failure: the first error stops everything that waits here and is flooded
 * along the tree. Of later ones only deaths and leavers are reported, and of few ranks, for those
 * that make a smaller communicator meanwhile. Exits without goodbye and revocations take the same
 * way. */
#include "bootstrap/tree/failure.h"

#include "base/error.h"
#include "base/member.h"
#include "bootstrap/tree/exits.h"
#include "bootstrap/tree/probe.h"
#include "bootstrap/wire/address.h"
#include "bootstrap/wire/service.h"
#include "bootstrap/wire/wire.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAIL_BYTES (16 + TT_SENTENCE_BYTES)
#define MOST_GONE 8 /* at the end of a broken communicator all ranks leave: n times n frames */

/* ---- the frame ---- */

struct fail { /* what a FAIL frame says */
    int rank;
    ncclResult_t rc;
    enum tt_fail_kind kind;
    uint32_t begun; /* of an exit: collectives that the rank had begun */
    const char *sentence;
};

static void fail_pack(const struct fail *fail, unsigned char bytes[FAIL_BYTES])
{
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, FAIL_BYTES);
    tt_wire_put32(&wire, (uint32_t)fail->rank);
    tt_wire_put32(&wire, (uint32_t)fail->rc);
    tt_wire_put32(&wire, fail->kind);
    tt_wire_put32(&wire, fail->begun);
    tt_wire_put_text(&wire, fail->sentence, TT_SENTENCE_BYTES);
}

static void flood_fail(struct tt_bootstrap *b, const struct tt_conn *except,
                       const struct fail *fail)
{
    unsigned char bytes[FAIL_BYTES];
    fail_pack(fail, bytes);
    tt_tree_flood(b, except, TT_FRAME_FAIL, bytes, sizeof(bytes));
}

/* To a child that connects after the error. */
void tt_failure_repeat(const struct tt_bootstrap *b, struct tt_conn *conn)
{
    ncclResult_t rc = (ncclResult_t)atomic_load_explicit(&b->error, memory_order_relaxed);
    const struct fail fail = {b->error_rank, rc, b->error_kind, 0, b->sentence};
    unsigned char bytes[FAIL_BYTES];
    if (!rc) return;
    fail_pack(&fail, bytes);
    tt_conn_send(conn, TT_FRAME_FAIL, bytes, sizeof(bytes));
}

/* ---- taking it ---- */

/* Say it once, in the thread that waits if there is one: that is whose call fails. */
ncclResult_t tt_failure_report(struct tt_bootstrap *b)
{
    ncclResult_t rc = (ncclResult_t)atomic_load_explicit(&b->error, memory_order_relaxed);
    if (b->reported || !b->member) return rc;
    b->reported = true;
    return tt_fail(rc, "comm 0x%llx rank %d: %s", (unsigned long long)b->member->comm_id, b->rank,
                   b->sentence);
}

static void take_sentence(struct tt_bootstrap *b, const char *sentence)
{
    if (atomic_load_explicit(&b->has_sentence, memory_order_relaxed)) return;
    snprintf(b->sentence, sizeof(b->sentence), "%s", sentence);
    /* pairs with the acquire load in tt_bootstrap_error() */
    atomic_store_explicit(&b->has_sentence, true, memory_order_release);
}

/* Remember the first error, stop everything that waits. True when it is the first. A thread that
 * sees the abort flag asks for the text at once, so that is there before. */
static bool take_error(struct tt_bootstrap *b, const struct fail *fail)
{
    if (atomic_load_explicit(&b->error, memory_order_relaxed)) return false;
    b->error_rank = fail->rank;
    b->error_kind = fail->kind;
    /* the abort with this rank's own sentence is reported by the thread that raised it */
    if (b->given_up && b->member && tt_member_aborted(b->member) &&
        atomic_load_explicit(&b->has_sentence, memory_order_relaxed))
        b->reported = true;
    take_sentence(b, fail->sentence);
    atomic_store_explicit(&b->error, (int)fail->rc, memory_order_release);
    if (b->member) {
        if (b->waiting == 0) tt_failure_report(b);
        tt_error_keep("comm 0x%llx rank %d: %s", (unsigned long long)b->member->comm_id, b->rank,
                      b->sentence);
        tt_member_abort_why(b->member, fail->rc, fail->sentence);
    }
    pthread_cond_broadcast(&b->changed);
    return true;
}

/* A rank that does not come any more, after the first error. True when that is news. */
static bool note_gone(struct tt_bootstrap *b, const struct fail *fail)
{
    const bool whole = fail->kind != TT_FAIL_DEATH && fail->kind != TT_FAIL_LEFT;
    const bool known = fail->rank == b->error_rank &&
                       (b->error_kind == TT_FAIL_DEATH || b->error_kind == TT_FAIL_LEFT);
    if (whole || known || b->ngone == MOST_GONE || fail->rank < 0 || fail->rank >= b->nranks)
        return false;
    for (const struct tt_gone *gone = b->gone; gone; gone = gone->next) {
        if (gone->rank == fail->rank) return false;
    }
    const size_t bytes = strlen(fail->sentence) + 1;
    struct tt_gone *gone = malloc(sizeof(*gone) + bytes);
    if (!gone) return false;
    gone->rank = fail->rank;
    memcpy(gone->sentence, fail->sentence, bytes);
    gone->next = b->gone;
    b->gone = gone;
    b->ngone++;
    pthread_cond_broadcast(&b->changed);
    return true;
}

/* The first error, or the end of one rank more. */
static void take_fail(struct tt_bootstrap *b, const struct tt_conn *from, const struct fail *fail)
{
    if (take_error(b, fail) || note_gone(b, fail)) flood_fail(b, from, fail);
}

static void fail_as(struct tt_bootstrap *b, int rank, ncclResult_t rc, enum tt_fail_kind kind,
                    const char *fmt, va_list args)
{
    char sentence[TT_SENTENCE_BYTES];
    vsnprintf(sentence, sizeof(sentence), fmt, args);
    const struct fail fail = {rank, rc, kind, 0, sentence};
    take_fail(b, NULL, &fail);
}

void tt_tree_fail(struct tt_bootstrap *b, int rank, ncclResult_t rc, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fail_as(b, rank, rc, TT_FAIL_ERROR, fmt, args);
    va_end(args);
}

/* A rank's connection has ended without goodbye. */
static void report_death(struct tt_bootstrap *b, int rank, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void report_death(struct tt_bootstrap *b, int rank, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fail_as(b, rank, ncclRemoteError, TT_FAIL_DEATH, fmt, args);
    va_end(args);
}

/* A revoked communicator stays usable here (shrink goes through it): only operations stop. */
static void take_revoke(struct tt_bootstrap *b, struct tt_conn *from, int rank,
                        const char *sentence)
{
    if (b->revoke_sent) return;
    b->revoke_sent = true;
    const struct fail fail = {rank, ncclRemoteError, TT_FAIL_REVOKE, 0, sentence};
    flood_fail(b, from, &fail);
    if (b->revoked || !b->member) return;
    tt_fail(ncclRemoteError, "comm 0x%llx rank %d: %s", (unsigned long long)b->member->comm_id,
            b->rank, sentence);
    tt_member_abort_why(b->member, ncclRemoteError, sentence);
}

void tt_failure_frame(struct tt_bootstrap *b, struct tt_conn *conn, const unsigned char *bytes,
                      size_t len)
{
    struct tt_wire wire;
    char sentence[TT_SENTENCE_BYTES];
    tt_wire_read(&wire, bytes, len);
    struct fail fail = {.rc = ncclRemoteError, .sentence = sentence};
    fail.rank = (int)tt_wire_get32(&wire);
    /* The code there is its own, except that what is too late is too late for all that wait. */
    uint32_t code = tt_wire_get32(&wire);
    fail.kind = (enum tt_fail_kind)tt_wire_get32(&wire);
    if (code == ncclTimeout && (b->deadline_nsec != 0 || fail.kind == TT_FAIL_ERROR))
        fail.rc = ncclTimeout;
    if (fail.kind == TT_FAIL_ALL && (code == ncclInvalidUsage || code == ncclInvalidArgument))
        fail.rc = (ncclResult_t)code;
    fail.begun = tt_wire_get32(&wire);
    tt_wire_get_text(&wire, sentence, sizeof(sentence));
    if (wire.bad) return;
    if (fail.kind == TT_FAIL_REVOKE) {
        take_revoke(b, conn, fail.rank, sentence);
    } else if (fail.kind == TT_FAIL_EXIT || fail.kind == TT_FAIL_ENDED) {
        if (tt_exit_note(b, fail.rank, fail.kind, fail.begun, sentence)) flood_fail(b, conn, &fail);
    } else {
        take_fail(b, conn, &fail);
    }
}

void tt_failure_who(const struct tt_bootstrap *b, int rank, char *text, size_t text_bytes)
{
    const struct tt_bootstrap *old = b->parent_ranks ? b->parent_tree : NULL;
    const struct tt_contact *contact = NULL;
    char here[48] = "";
    int number = old ? b->parent_ranks[rank] : rank;
    if (old) snprintf(here, sizeof(here), " (rank %d of the new communicator)", rank);
    if (old && old->contacts) {
        contact = &old->contacts[number];
    } else if (b->contacts) {
        contact = &b->contacts[rank];
    } else if (rank == b->parent) {
        contact = &b->parent_contact;
    }
    if (contact) {
        snprintf(text, text_bytes, "rank %d%s on host %s (pid %d)", number, here, contact->host,
                 (int)contact->pid);
    } else {
        snprintf(text, text_bytes, "rank %d%s", number, here);
    }
}

/* On this host, as its name and address say, where a process with its pid runs and does not exit.
 * When the kernel closes the sockets of one that ends, it has said before that it exits. */
static bool runs_here(const struct tt_bootstrap *b, int peer)
{
    enum { STAT_BYTES = 512, FIELDS = 5, EXITS = 4 }; /* PF_EXITING of the kernel */
    const struct tt_contact *contact = b->contacts ? &b->contacts[peer] : NULL;
    char path[40], text[STAT_BYTES] = "";
    if (!contact || strcmp(contact->host, b->contacts[b->rank].host) != 0 ||
        !tt_addr_same_ip(&contact->addr, &b->contacts[b->rank].addr))
        return false;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)contact->pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    const char *after = n > 0 ? strrchr(text, ')') : NULL; /* a name may hold anything */
    if (!after || strlen(after) < sizeof(") R 1 ")) return false;
    const char state = after[2];
    char *field = text + (after + 3 - text);
    for (int k = 0; k < FIELDS; k++) /* between the state and the flags */
        (void)strtol(field, &field, 10);
    return state != 'Z' && state != 'X' && !(strtoul(field, NULL, 10) & EXITS);
}

void tt_failure_lost(struct tt_bootstrap *b, int peer, const char *why)
{
    char text[TT_WHO_BYTES];
    if (why == tt_conn_starved) {
        tt_tree_fail(b, b->rank, ncclSystemError, "rank %d is out of memory", b->rank);
        return;
    }
    if (why == tt_conn_robbed) {
        tt_tree_fail(b, b->rank, ncclSystemError,
                     "rank %d: its process has closed or replaced a descriptor of this library",
                     b->rank);
        return;
    }
    tt_failure_who(b, peer, text, sizeof(text));
    report_death(b, peer, "%s is gone: %s%s", text, why,
                 runs_here(b, peer) ? ", though its process runs: it has closed or replaced a "
                                      "descriptor of this library, or the connection was cut"
                                    : "");
}

/* ---- while a child is being born ---- */

uint32_t tt_failure_child_tag(const uint64_t salt[3])
{
    uint64_t hash = (salt[0] * 31 + salt[1]) * 0x9e3779b97f4a7c15ull + salt[2];
    return 0xffff8000u | (uint32_t)((hash * 0x9e3779b97f4a7c15ull) >> 49);
}

void tt_failure_child_pack(const uint64_t salt[3], const char *sentence,
                           unsigned char bytes[TT_CHILD_FAIL_BYTES])
{
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, TT_CHILD_FAIL_BYTES);
    for (int i = 0; i < 3; i++)
        tt_wire_put64(&wire, salt[i]);
    tt_wire_put_text(&wire, sentence, TT_SENTENCE_BYTES);
}

static bool take_child_fail(struct tt_bootstrap *b)
{
    char sentence[TT_SENTENCE_BYTES];
    struct tt_wire wire;
    uint64_t salt[3];
    if (!b->parent_ranks) return false;
    struct tt_message *message =
        tt_mailbox_take(&b->parent_tree->mailbox, TT_ANY_PEER, tt_failure_child_tag(b->salt));
    if (!message) return false;
    tt_wire_read(&wire, message->text, message->bytes);
    for (int i = 0; i < 3; i++)
        salt[i] = tt_wire_get64(&wire);
    tt_wire_get_text(&wire, sentence, sizeof(sentence));
    bool ours = !wire.bad && memcmp(salt, b->salt, sizeof(salt)) == 0;
    for (int r = 0; ours && r < b->nranks; r++) {
        if (b->parent_ranks[r] == message->peer)
            tt_tree_fail(b, r, ncclRemoteError, "%s", sentence);
    }
    free(message);
    return ours;
}

/* The member that a rank of the parent is; -1: none. */
static int member_of(const struct tt_bootstrap *b, int rank)
{
    for (int r = 0; r < b->nranks; r++) {
        if ((b->parent_ranks ? b->parent_ranks[r] : r) == rank) return r;
    }
    return -1;
}

/* A rank that died or left after the first one, which may have been no member. */
static bool member_is_gone(struct tt_bootstrap *b, const struct tt_bootstrap *parent)
{
    for (const struct tt_gone *gone = parent->gone; gone; gone = gone->next) {
        const int r = member_of(b, gone->rank);
        if (r < 0) continue;
        tt_tree_fail(b, r, ncclRemoteError, "%s", gone->sentence);
        return true;
    }
    return false;
}

/* The news may not get here. */
static bool member_is_silent(struct tt_bootstrap *b)
{
    char text[TT_WHO_BYTES];
    const int rank = tt_probe_run(b);
    if (rank < 0) return false;
    tt_failure_who(b, rank, text, sizeof(text));
    tt_tree_fail(b, rank, ncclRemoteError, "%s is gone: it does not listen any more", text);
    return true;
}

/* As long as a child is being born, the parent's tree is what notices deaths, and an abort of the
 * parent is one of the child. */
void tt_failure_watch_parent(struct tt_bootstrap *b)
{
    const struct tt_bootstrap *parent = b->parent_tree;
    if (!parent || take_child_fail(b)) return;
    if (parent->given_up != b->parent_given_up) {
        tt_tree_fail(b, b->rank, parent->given_up_code,
                     "rank %d gave up the communicator that this one is made from", parent->rank);
        return;
    }
    if (!atomic_load_explicit(&parent->error, memory_order_acquire)) return;
    if (member_is_silent(b)) return;
    if (member_is_gone(b, parent) || !b->watches_parent) return;
    const int r = member_of(b, parent->error_rank);
    if (r >= 0) {
        tt_tree_fail(b, r, ncclRemoteError, "%s", parent->sentence);
        return;
    }
    /* about another rank, but members that receive it first do not come; later ends are not
     * reported */
    if (b->whole_parent) tt_tree_fail(b, b->rank, ncclRemoteError, "%s", parent->sentence);
}

void tt_failure_ended(struct tt_bootstrap *b)
{
    char sentence[TT_SENTENCE_BYTES + TT_WHY_BYTES]; /* cut where it is sent */
    if (!b->leaving || b->finished || b->end_reported || atomic_load(&b->error)) return;
    b->end_reported = true;
    snprintf(sentence, sizeof(sentence),
             "rank %d on host %s (pid %d) ended the communicator (ncclCommDestroy) after %u "
             "collective(s)%s",
             b->rank, b->contacts ? b->contacts[b->rank].host : "?", (int)getpid(),
             tt_exit_begun(b), b->refused);
    const struct fail fail = {b->rank, ncclRemoteError, TT_FAIL_ENDED, tt_exit_begun(b), sentence};
    flood_fail(b, NULL, &fail);
}

/* Who ended well by its code, and has left a group open, may have called ncclCommDestroy in it. */
static void exit_sentence(const struct tt_bootstrap *b, int code, char sentence[TT_SENTENCE_BYTES])
{
    const char *host = b->contacts ? b->contacts[b->rank].host : "?";
    const int pid = getpid();
    char refused[TT_WHY_BYTES] = "";
    if (b->member) tt_member_refused(b->member, refused);
    if (!code && b->member && atomic_load_explicit(&b->member->grouped, memory_order_relaxed)) {
        snprintf(sentence, TT_SENTENCE_BYTES,
                 "rank %d on host %s (pid %d) exited (code 0) inside a group that holds calls: a "
                 "ncclGroupEnd is missing there%s",
                 b->rank, host, pid, refused);
    } else {
        snprintf(sentence, TT_SENTENCE_BYTES,
                 "rank %d on host %s (pid %d) exited (code %d) without ncclCommDestroy%s", b->rank,
                 host, pid, code, refused);
    }
}

void tt_failure_exit(int code)
{
    char sentence[TT_SENTENCE_BYTES];
    for (struct tt_bootstrap *b = tt_service()->members; b; b = b->next) {
        if (!b->leaving && !atomic_load(&b->error)) {
            exit_sentence(b, code, sentence);
            const struct fail fail = {b->rank, ncclRemoteError, TT_FAIL_EXIT, tt_exit_begun(b),
                                      sentence};
            flood_fail(b, NULL, &fail);
        }
        tt_failure_ended(b);
        tt_tree_flood(b, NULL, TT_FRAME_BYE, NULL, 0);
    }
}

/* ---- the outside ---- */

static void give_up(struct tt_bootstrap *b, ncclResult_t rc, enum tt_fail_kind kind,
                    const char *sentence)
{
    char named[TT_SENTENCE_BYTES];
    const char *reported = sentence;
    if (!strstr(sentence, "rank ")) { /* what is clear here says nothing to the others */
        snprintf(named, sizeof(named), "rank %d: %.600s", b->rank, sentence);
        reported = named;
    }
    const struct fail fail = {b->rank, rc, kind, 0, reported};
    tt_service_lock();
    b->given_up++;
    b->given_up_code = rc;
    const bool here = b->epoch == tt_service()->epoch;
    if (here && !atomic_load(&b->error)) {
        take_sentence(b, sentence);
        flood_fail(b, NULL, &fail);
    } else if (here && note_gone(b, &fail)) {
        flood_fail(b, NULL, &fail);
    }
    tt_service_unlock();
}

void tt_bootstrap_fail(struct tt_bootstrap *b, ncclResult_t rc, const char *sentence)
{
    give_up(b, rc, TT_FAIL_ERROR, sentence);
}

void tt_bootstrap_abort(struct tt_bootstrap *b, ncclResult_t rc, const char *sentence)
{
    give_up(b, rc, TT_FAIL_LEFT, sentence);
}

void tt_bootstrap_fail_all(struct tt_bootstrap *b, ncclResult_t rc, const char *sentence)
{
    tt_service_lock();
    const struct fail fail = {b->rank, rc, TT_FAIL_ALL, 0, sentence};
    if (b->epoch == tt_service()->epoch && take_error(b, &fail)) flood_fail(b, NULL, &fail);
    tt_service_unlock();
}

void tt_bootstrap_revoke(struct tt_bootstrap *b)
{
    char sentence[TT_SENTENCE_BYTES];
    tt_service_lock();
    if (b->epoch == tt_service()->epoch) {
        b->revoked = true;
        snprintf(sentence, sizeof(sentence),
                 "rank %d revoked the communicator; a rank that goes on with it (ncclCommShrink, "
                 "ncclCommSplit) calls ncclCommRevoke itself",
                 b->rank);
        take_revoke(b, NULL, b->rank, sentence);
    }
    tt_service_unlock();
}

ncclResult_t tt_bootstrap_error(const struct tt_bootstrap *b, const char **sentence_out)
{
    /* pairs with the release store in take_sentence() */
    bool has_sentence = atomic_load_explicit(&b->has_sentence, memory_order_acquire);
    if (sentence_out) *sentence_out = has_sentence ? b->sentence : "";
    return (ncclResult_t)atomic_load_explicit(&b->error, memory_order_acquire);
}

int tt_bootstrap_error_rank(const struct tt_bootstrap *b)
{
    /* pairs with the release store in take_error() */
    return atomic_load_explicit(&b->error, memory_order_acquire) ? b->error_rank : -1;
}

bool tt_bootstrap_rank_died(struct tt_bootstrap *b, int rank)
{
    bool failed = tt_bootstrap_error_rank(b) == rank; /* its kind was written before */
    return (failed && b->error_kind == TT_FAIL_DEATH) || tt_bootstrap_rank_exited(b, rank);
}
